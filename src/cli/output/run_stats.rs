//! Tables of what groups of runs state.

use std::io::{self, Write};

use runvault::vault::run_stats::{RunGroup, RunStatsAnswer, RunTotals};

use super::exit::{CommandError, Status};
use super::stdout::{self, BAD, NAME, counted};
use super::table::{TextCell, TextColumn, TextTable};
use super::{json, time};

/// A column of numbers.
struct NumberColumn {
    title: &'static str,
    is_minor: bool,
    text: fn(&RunTotals) -> Option<String>,
}

impl NumberColumn {
    const fn new(title: &'static str, text: fn(&RunTotals) -> Option<String>) -> Self {
        Self { title, is_minor: false, text }
    }

    const fn minor(self) -> Self {
        Self { is_minor: true, ..self }
    }
}

/// The columns of numbers that not all vaults have.
const COLUMNS: [NumberColumn; 5] = [
    NumberColumn::new("tokens_in", |totals| totals.tokens_input.map(|count| count.to_string())).minor(),
    NumberColumn::new("tokens_out", |totals| totals.tokens_output.map(|count| count.to_string())).minor(),
    NumberColumn::new("p50", |totals| totals.latency_p50_ms.map(time::duration)).minor(),
    NumberColumn::new("p95", |totals| totals.latency_p95_ms.map(time::duration)),
    NumberColumn::new("cost", |totals| totals.cost_usd.map(|cost| cost.to_string())),
];

/// Prints statistics of runs, with the title of the column of the values. The answer is no if there are no runs.
pub(crate) fn print(title: &str, answer: &RunStatsAnswer, as_json: bool) -> Result<Status, CommandError> {
    let RunStatsAnswer { groups, total, without, .. } = answer;
    if as_json {
        json::line(&mut stdout::raw(), answer)?;
    } else {
        let mut out = io::BufWriter::new(stdout::text());
        if !groups.is_empty() {
            table(title, groups, total).write(&mut out)?;
        }
        out.flush()?;
        drop(out);
        note(title, total, *without);
    }
    Ok(if total.runs == 0 { Status::No } else { Status::Done })
}

fn table(title: &str, groups: &[RunGroup], total: &RunTotals) -> TextTable {
    let stated: Vec<&NumberColumn> = COLUMNS.iter().filter(|column| (column.text)(total).is_some()).collect();
    let number = |title: &str| TextColumn::new(title).whole().right();
    let mut columns = vec![TextColumn::new(title).of_ids(), number("count"), number("failed")];
    columns.extend(stated.iter().map(|column| {
        let layout = number(column.title);
        if column.is_minor { layout.minor() } else { layout }
    }));
    let mut table = TextTable::new(columns).titled();
    let mut push = |value: TextCell, totals: &RunTotals| {
        let failures = totals.failures.to_string();
        let failures =
            if totals.failures > 0 { TextCell::new(&failures, BAD) } else { TextCell::plain(&failures) };
        let mut cells = vec![value, TextCell::plain(&totals.runs.to_string()), failures];
        cells.extend(stated.iter().map(|column| TextCell::plain(&(column.text)(totals).unwrap_or_default())));
        table.push(cells);
    };
    for group in groups {
        push(TextCell::new(&group.value, NAME), &group.totals);
    }
    push(TextCell::plain("all"), total);
    table
}

/// Tells what the table does not show.
fn note(title: &str, total: &RunTotals, without: u64) {
    let mut said = vec![counted(total.runs, "run")];
    if without > 0 {
        said.push(format!("{without} without {title}"));
    }
    let unknown = total.runs - total.runs_with_cost;
    if total.cost_usd.is_some() && unknown > 0 {
        said.push(format!("the costs of {unknown} are not known"));
    }
    stdout::note(&said.join("; "));
}
