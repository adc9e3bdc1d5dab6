//! Lists: a row or a line of JSON for each item.

use std::io::{self, Write};

use serde::Serialize;

use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::stdout;
use crate::cli::output::table::{TextCell, TextColumn, TextTable};

/// Prints `items` as a table of `columns` that ends with the line `ending`, or as JSON.
pub(crate) fn print<T: Serialize>(
    items: &[T],
    as_json: bool,
    columns: Vec<TextColumn>,
    row: impl Fn(&T) -> Vec<TextCell>,
    ending: &str,
) -> Result<Status, CommandError> {
    let mut out = io::BufWriter::new(stdout::text());
    if as_json {
        items.iter().try_for_each(|item| json::line(&mut out, item))?;
        return Ok(out.flush().map(|()| Status::Done)?);
    }
    let mut table = TextTable::new(columns);
    for item in items {
        table.push(row(item));
    }
    table.write(&mut out)?;
    out.flush()?;
    stdout::note(ending);
    Ok(Status::Done)
}
