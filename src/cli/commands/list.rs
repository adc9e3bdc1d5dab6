//! `runvault list`

use std::io::{self, Write};

use chrono::{DateTime, Utc};
use clap::Args as ClapArgs;
use runvault::artifact::AttributeInfo;
use runvault::storage::TimeBasis;
use runvault::vault::columns::{ArtifactColumn, ColumnContext};
use runvault::vault::details::Detail;
use runvault::vault::find::{ArtifactFilter, FindOrder};
use runvault::vault::list::{ListRequest, ListRow};
use runvault::vault::run_stats::RunStatsRequest;
use runvault::vault::unfinished::{UnfinishedRun, UnfinishedRunsRequest};
use runvault::{Vault, clock, formats};

use super::find::conditions::KindFilterArgs;
use crate::cli::args::choice::{self, RunGroupingArg};
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::inputs::SessionFiles;
use crate::cli::args::vault::VaultArgs;
use crate::cli::args::{attribute, help, settings};
use crate::cli::commands::find::SCREENFUL;
use crate::cli::commands::find::conditions::FindConditionArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::hits::LineTemplate;
use crate::cli::output::stdout::{self, BAD, CAUTION, FAINT, counted};
use crate::cli::output::table::{TextCell, TextColumn, TextTable};
use crate::cli::output::{columns, json, run_stats, terminal, time};

/// List artifacts, one row per run, with time, model and errors
///
/// The artifacts of one run are one row: the run pack, its trace, its export pack and the session in it. A row is
/// listed if one of them matches. Values that no artifact states are empty. If several recordings have one run id, each
/// is a row of its own.
///
/// Runs that are being recorded come first, with their state in place of a hash. Of them are known the run id, the
/// beginning, the models, the labels, and the numbers of calls and of failed ones; other columns are empty. They match
/// a kind that calls are stored as, --label, and --since and --until by the time of creation. With any other condition,
/// and with --flat or --format, they are not listed.
#[derive(ClapArgs)]
#[command(mut_args(help::rarely(&["prompt", "run-id"])))]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    #[command(flatten)]
    what: KindFilterArgs,

    #[command(flatten)]
    conditions: FindConditionArgs,

    /// Print the number of runs, failures, tokens, latency and costs of each value instead: of model, tool, agent, day,
    /// label:KEY, or an attribute such as provider
    #[arg(long, value_name = "WHAT", value_parser = choice::run_grouping, hide_short_help = true,
        conflicts_with_all = ["flat", "limit", "sort", "columns", "format"])]
    group_by: Option<RunGroupingArg>,

    /// List each artifact in a row of its own
    #[arg(long)]
    flat: bool,

    /// List only what was read from a file that is no longer on disk, under its name or compressed, where it was or where
    /// agents keep their sessions
    #[arg(long, hide_short_help = true, conflicts_with = "group_by")]
    gone: bool,

    /// Maximum number of rows. Default: 100 on a terminal, else unlimited
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Sort order. Default: newest first, by the time that --by names
    #[arg(long, value_name = "ORDER", value_parser = attribute::order(), hide_short_help = true)]
    sort: Option<FindOrder>,

    /// Columns to print, such as created,hash,tokens,cost; an unknown name lists all columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = columns::named, add = CandidateSource::Columns.completer())]
    columns: Vec<ArtifactColumn>,

    /// Print each row in this format, such as '{{kind}} {{created}}'; the names are those of --columns; \n and \t are
    /// escapes
    #[arg(long, value_name = "TEXT", conflicts_with = "columns", hide_short_help = true)]
    format: Option<LineTemplate>,

    /// Print one line of JSON for each row
    #[arg(long, conflicts_with_all = ["columns", "format"])]
    json: bool,
}

/// The attributes of the default columns that are left out first on a narrow terminal.
const DETAILS: [&str; 3] = ["agent", formats::STEPS.name, "tokens"];

/// The attributes of the default columns.
const ATTRIBUTES: [&str; 6] = ["run_id", "model_id", "agent", formats::STEPS.name, "tokens", "errors"];

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        let vault = args.open()?;
        if let Some(group_by) = &self.group_by {
            return self.print_groups(&vault, group_by);
        }
        let columns = match &self.format {
            _ if self.json => Vec::new(),
            Some(template) => template.columns().collect(),
            None if self.columns.is_empty() => default_columns(),
            None => self.columns.clone(),
        };
        let mut request = self.request(&vault, &columns)?;
        let mut printer = self.printer(columns);
        for run in self.unfinished(args, &vault, &request.filter)? {
            printer.add_unfinished(&run)?;
        }
        let (files, most) = (self.gone.then(SessionFiles::list), request.limit);
        if self.gone {
            // Of those, it is not known how many rows have to be read.
            request.limit = None;
            request.details.push(Detail::Captures);
        }
        let has_room = |listed: u64| most.is_none_or(|most| listed < most);
        let mut listed = 0;
        let next = request.visit::<CommandError>(&vault, &mut |row| {
            if has_room(listed) && files.as_ref().is_none_or(|files| is_gone(files, &row)) {
                listed += 1;
                printer.add(&row)?;
            }
            Ok(files.is_none() || has_room(listed))
        })?;
        let rows = printer.finish()?;
        if !self.json && self.format.is_none() {
            let more = if next.is_some() { "; --limit shows more" } else { "" };
            stdout::note(&format!("{}{more}", counted(rows, "row")));
        }
        if rows == 0 {
            self.conditions.note_near(&vault, &request.filter)?;
        }
        Ok(if rows == 0 && most != Some(0) { Status::No } else { Status::Done })
    }

    /// Returns the runs that are not finished, which are no artifacts yet.
    fn unfinished(
        &self,
        args: &VaultArgs,
        vault: &Vault,
        filter: &ArtifactFilter,
    ) -> Result<Vec<UnfinishedRun>, CommandError> {
        if self.flat || self.gone || self.format.is_some() || self.limit == Some(0) {
            return Ok(Vec::new());
        }
        // Without the directory of a user, there is none with runs of a database.
        let directory = args.recordings().ok();
        Ok(vault.run(&UnfinishedRunsRequest { directory, filter: filter.clone() })?.runs)
    }

    /// Prints statistics of the runs in place of the runs.
    fn print_groups(&self, vault: &Vault, group_by: &RunGroupingArg) -> Result<Status, CommandError> {
        let filter = self.what.filter(vault, &self.conditions)?;
        let (by, prices) = (group_by.grouping.clone(), settings::prices()?);
        let request = RunStatsRequest { filter, by, prices, ..RunStatsRequest::default() };
        let status = run_stats::print(&group_by.text, &vault.run(&request)?, self.json)?;
        if status == Status::No {
            self.conditions.note_near(vault, &request.filter)?;
        }
        Ok(status)
    }

    /// Returns the request for what the columns show. JSON has all that rows always have, and no others.
    fn request(&self, vault: &Vault, columns: &[ArtifactColumn]) -> Result<ListRequest, CommandError> {
        let is_for_people = terminal::is_terminal() && !self.json && self.format.is_none();
        let attributes = columns.iter().filter_map(|column| Some(column.attribute()?.to_owned()));
        // The other columns are of the first artifact.
        let is_shown = |detail: &Detail| {
            columns.iter().any(|column| column.detail(TimeBasis::LastSeen) == Some(*detail))
        };
        Ok(ListRequest {
            filter: self.what.filter(vault, &self.conditions)?,
            order: self.sort.clone().unwrap_or_else(|| self.conditions.order()),
            flat: self.flat,
            attributes: attributes.collect(),
            details: Detail::ALL.into_iter().filter(is_shown).collect(),
            prices: settings::prices()?,
            limit: self.limit.or(is_for_people.then_some(SCREENFUL)),
            ..ListRequest::default()
        })
    }

    fn printer(&self, columns: Vec<ArtifactColumn>) -> ListRowPrinter<'_> {
        let out: Box<dyn Write> = if self.json { Box::new(stdout::raw()) } else { Box::new(stdout::text()) };
        let form = match &self.format {
            _ if self.json => ListRowForm::Json,
            Some(template) => ListRowForm::Lines(template),
            None => {
                let omits_empty = self.columns.is_empty() && terminal::is_terminal();
                ListRowForm::Table { columns, omits_empty, cells: Vec::new(), table: None }
            }
        };
        ListRowPrinter { out: io::BufWriter::new(out), form, now: clock::now(), rows: 0 }
    }
}

/// Maximum number of rows that are kept to determine the widths of columns, where the output is not a terminal.
const ALIGNED_ROWS: usize = 1_024;

/// A printer of rows as they are read.
struct ListRowPrinter<'p> {
    out: io::BufWriter<Box<dyn Write>>,
    form: ListRowForm<'p>,
    now: DateTime<Utc>,
    /// Number of rows so far.
    rows: u64,
}

enum ListRowForm<'p> {
    Json,
    Lines(&'p LineTemplate),
    Table {
        columns: Vec<ArtifactColumn>,
        /// Whether columns without values are omitted: most vaults have no values for some of the default columns.
        omits_empty: bool,
        /// The rows that are not printed yet.
        cells: Vec<Vec<TextCell>>,
        table: Option<TextTable>,
    },
}

impl ListRowPrinter<'_> {
    fn add_unfinished(&mut self, run: &UnfinishedRun) -> Result<(), CommandError> {
        self.rows += 1;
        match &mut self.form {
            ListRowForm::Json => Ok(json::line(&mut self.out, run)?),
            ListRowForm::Lines(_) => Ok(()),
            ListRowForm::Table { columns, cells, .. } => {
                cells.push(columns.iter().map(|column| unfinished_cell(run, *column)).collect());
                Ok(())
            }
        }
    }

    fn add(&mut self, row: &ListRow) -> Result<(), CommandError> {
        self.rows += 1;
        let Some(context) = ColumnContext::of_row(row, self.now) else { return Ok(()) };
        match &mut self.form {
            ListRowForm::Json => json::line(&mut self.out, row)?,
            ListRowForm::Lines(template) => writeln!(self.out, "{}", template.fill(&context))?,
            ListRowForm::Table { columns, cells, .. } => {
                cells.push(columns.iter().map(|column| columns::cell(&context, *column)).collect());
                if cells.len() >= ALIGNED_ROWS && !terminal::is_terminal() {
                    self.write_cells()?;
                }
            }
        }
        Ok(())
    }

    /// Writes the rows of a table that are not printed yet.
    fn write_cells(&mut self) -> Result<(), CommandError> {
        let ListRowForm::Table { columns, omits_empty, cells, table } = &mut self.form else { return Ok(()) };
        let mut rows = std::mem::take(cells);
        if *omits_empty {
            let is_used =
                |index: usize| rows.iter().any(|row| row.get(index).is_some_and(|cell| !cell.is_empty()));
            let used: Vec<bool> = (0..columns.len()).map(is_used).collect();
            let is_used = |index: usize| used.get(index).copied().unwrap_or_default();
            *columns = select_by_index(std::mem::take(columns), is_used);
            rows = rows.into_iter().map(|row| select_by_index(row, is_used)).collect();
        }
        let new = || TextTable::new(columns.iter().map(|column| layout(*column)).collect());
        let titled = terminal::is_terminal() && !rows.is_empty();
        let table = table.get_or_insert_with(|| if titled { new().titled() } else { new() });
        for row in rows {
            table.push(row);
        }
        Ok(table.write(&mut self.out)?)
    }

    /// Prints what is left, and returns the number of rows.
    fn finish(mut self) -> Result<u64, CommandError> {
        self.write_cells()?;
        self.out.flush()?;
        Ok(self.rows)
    }
}

/// Returns whether none of the files that a row was read from is on disk.
fn is_gone(files: &SessionFiles, row: &ListRow) -> bool {
    let captures = row.members.iter().filter_map(|member| member.details.captures.as_ref()).flatten();
    let mut sources =
        captures.filter_map(|capture| Some((capture.source_path.as_deref()?, capture))).peekable();
    sources.peek().is_some() && !sources.any(|(path, capture)| files.has(path, capture))
}

/// Returns the cell of a column for a run that is not finished. Its state is in place of a hash.
fn unfinished_cell(run: &UnfinishedRun, column: ArtifactColumn) -> TextCell {
    let since = |show: fn(DateTime<Utc>) -> String| run.started_at.map(|at| show(at.0)).unwrap_or_default();
    match column {
        ArtifactColumn::Hash => TextCell::new(run.state.name(), CAUTION),
        ArtifactColumn::Age => TextCell::new(&since(|at| time::ago(at, clock::now())), FAINT),
        ArtifactColumn::Created => TextCell::new(&since(time::display), FAINT),
        ArtifactColumn::Attribute("run_id") => TextCell::plain(&run.run_id),
        ArtifactColumn::Attribute("model_id") => TextCell::plain(&run.models.join(", ")),
        ArtifactColumn::Attribute("errors") if run.failed > 0 => TextCell::new(&run.failed.to_string(), BAD),
        ArtifactColumn::Attribute(name) if name == formats::STEPS.name => {
            TextCell::plain(&counted(run.calls, "call"))
        }
        ArtifactColumn::Labels => {
            let labels: Vec<String> =
                run.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            TextCell::plain(&labels.join(" "))
        }
        _ => TextCell::plain(""),
    }
}

fn select_by_index<T>(items: Vec<T>, is_kept: impl Fn(usize) -> bool) -> Vec<T> {
    items.into_iter().enumerate().filter(|(index, _)| is_kept(*index)).map(|(_, item)| item).collect()
}

/// Returns the default columns. In pipes and files the time is absolute.
fn default_columns() -> Vec<ArtifactColumn> {
    let time = if terminal::is_terminal() { ArtifactColumn::Age } else { ArtifactColumn::Created };
    let [run, model, agent, steps, tokens, errors] = ATTRIBUTES.map(ArtifactColumn::Attribute);
    let duration = ArtifactColumn::Short(AttributeInfo::DURATION_MS);
    let (tags, labels) = (ArtifactColumn::Tags, ArtifactColumn::Labels);
    vec![
        ArtifactColumn::Hash,
        ArtifactColumn::Kind,
        time,
        run,
        model,
        agent,
        steps,
        duration,
        tokens,
        errors,
        tags,
        labels,
    ]
}

/// Returns the layout of a column. Where there is no room for all, a row says when a run was and whether it failed.
fn layout(column: ArtifactColumn) -> TextColumn {
    let layout = columns::layout(column);
    match column {
        ArtifactColumn::Created | ArtifactColumn::Age => TextColumn::new(column.name()).whole(),
        ArtifactColumn::Kind => TextColumn::new(column.name()).minor(),
        ArtifactColumn::Attribute(name) if DETAILS.contains(&name) => layout.minor(),
        ArtifactColumn::Short(_) => layout.minor(),
        _ => layout,
    }
}
