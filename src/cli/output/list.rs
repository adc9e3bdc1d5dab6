//! Lists: a row or a line of JSON for each item.

use std::io::{self, Write};

use serde::Serialize;

use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout;
use crate::cli::output::table::{Cell, Column, Table};

/// Prints `items` as a table of `columns` that ends with the line `ending`, or as JSON.
pub(crate) fn print<T: Serialize>(
    items: &[T],
    as_json: bool,
    columns: Vec<Column>,
    row: impl Fn(&T) -> Vec<Cell>,
    ending: &str,
) -> Result<Status, Failure> {
    let mut out = io::BufWriter::new(stdout::text());
    if as_json {
        items.iter().try_for_each(|item| json::line(&mut out, item))?;
        return Ok(out.flush().map(|()| Status::Done)?);
    }
    let mut table = Table::new(columns);
    for item in items {
        table.push(row(item));
    }
    table.write(&mut out)?;
    out.flush()?;
    stdout::note(ending);
    Ok(Status::Done)
}
