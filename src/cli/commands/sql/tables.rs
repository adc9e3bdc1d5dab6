//! The list of available tables and views.

use std::io::{self, BufWriter, Write};

use runvault::vault::sql::{self, SqlView, SqlViewSummary};

use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::fit;
use crate::cli::output::json;
use crate::cli::output::stdout::{self, FAINT, HASH, plain};
use crate::cli::output::terminal;

pub(super) fn print(as_json: bool) -> Result<Status, CommandError> {
    let views = sql::views();
    if as_json {
        let mut out = stdout::raw();
        views.iter().try_for_each(|view| json::line(&mut out, &SqlViewSummary::from(view)))?;
        return Ok(Status::Done);
    }
    let mut out = BufWriter::new(stdout::text());
    writeln!(out, "{FAINT}in the vault file, for any program that reads SQLite{FAINT:#}")?;
    views.iter().filter(|view| view.is_plain).try_for_each(|view| block(&mut out, view))?;
    writeln!(out, "\n{FAINT}in \"runvault sql\" and the files it saves{FAINT:#}")?;
    views.iter().filter(|view| !view.is_plain).try_for_each(|view| block(&mut out, view))?;
    out.flush()?;
    Ok(Status::Done)
}

/// The column at which descriptions start.
const BESIDE: usize = 20;

fn block(out: &mut dyn Write, view: &SqlView) -> io::Result<()> {
    writeln!(out, "\n{HASH}{}{HASH:#}: {}", view.name, plain(view.about))?;
    let room = terminal::width().unwrap_or(usize::MAX).saturating_sub(BESIDE + 2);
    for column in &view.columns {
        for (index, line) in fit::fold(&plain(column.about), room).into_iter().enumerate() {
            let name = if index == 0 { column.name } else { "" };
            writeln!(out, "  {name:BESIDE$}{FAINT}{line}{FAINT:#}")?;
        }
    }
    Ok(())
}
