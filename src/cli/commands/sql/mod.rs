//! `runvault sql`

mod rows;
mod text;

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use self::rows::RowPrinter;
use clap::Args as ClapArgs;
use runvault::artifact::Cell;
use runvault::digest::hex;
use runvault::display::{escaped, is_plain};
use runvault::vault::sql::{
    self, SaveForm, SaveOptions, SqlError, SqlSaveAnswer, SqlView, SqlViewSummary, VaultSqlReader,
    VaultSqlStatement,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::stdout::{self, FAINT, HASH, counted, plain};
use crate::cli::output::terminal::{self, Stop};
use crate::cli::output::{disk, fit, json};
use text::VerticalMode;

/// Query the vault with SQL
///
/// Queries are read-only and see one snapshot of the vault. Besides the views in the vault file, they can use views
/// of the contents of artifacts: interactions, steps, records, effects, mentions, links. --tables lists them. --save
/// writes all of them to a SQLite file for other programs, such as Datasette, with a metadata.json for it.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    /// The query; - reads it from standard input
    #[arg(required_unless_present_any = ["file", "tables", "save"])]
    query: Option<String>,

    /// Read the query from this file
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    file: Option<PathBuf>,
    /// Bind :NAME in the query to this text
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,

    /// Print CSV (RFC 4180)
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one line of JSON for each row
    #[arg(long)]
    json: bool,
    /// Omit the header
    #[arg(long, conflicts_with = "json", hide_short_help = true)]
    no_header: bool,
    /// Print each row as a list of its columns: always, never, or if a table is too wide for the terminal
    #[arg(
        short = 'x', long, visible_alias = "expanded", value_name = "WHEN", value_enum, num_args = 0..=1,
        require_equals = true, default_value = "auto", default_missing_value = "always",
        conflicts_with_all = ["csv", "json", "tables"], hide_possible_values = true
    )]
    vertical: VerticalMode,

    /// List the views and columns that queries can use
    #[arg(long, conflicts_with_all = ["query", "file", "save", "parameters", "csv", "no_header"])]
    tables: bool,

    /// Write all views that queries can use to a new SQLite file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["query", "file", "parameters", "csv", "no_header", "vertical"])]
    save: Option<PathBuf>,
    /// Write a directory of Parquet files instead, one for each view; needs a program with the feature parquet
    ///
    /// It is built with: cargo install --path . --locked --features parquet
    #[arg(long, requires = "save", conflicts_with_all = ["query", "file", "tables"])]
    parquet: bool,
    /// Replace existing files
    #[arg(long, requires = "save", conflicts_with_all = ["query", "file", "tables"], hide_short_help = true)]
    force: bool,
}

/// The note about queries that may take hours and have a faster form.
const REREADING: &str = "this query reads the same artifacts repeatedly, as joins of contents do; \
    WITH … AS MATERIALIZED reads them once (docs/sql.md, \"What a query costs\")";

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or_default();
    // Some write the name with its prefix, as in the query.
    let name = name.trim_start_matches([':', '@', '$']);
    if name.is_empty() {
        return Err("expected NAME=VALUE, where the query has :NAME".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        if self.tables {
            return print(self.json);
        }
        if let Some(path) = &self.save {
            disk::expect_file(path)?;
        }
        let vault = vault.open()?;
        let reader = vault.sql()?;
        if let Some(path) = &self.save {
            let form = if self.parquet { SaveForm::Parquet } else { SaveForm::Sqlite };
            let options = SaveOptions { path, form, force: self.force };
            return save(&*reader, &options, self.json);
        }
        let parameters: Vec<(&str, Cell)> =
            self.parameters.iter().map(|(name, value)| (name.as_str(), Cell::Text(value.clone()))).collect();
        let query = self.text()?;
        reader.on_rereading(Box::new(|| stdout::note(REREADING)));
        let mut statement = reader.prepare(&query, &parameters)?;
        if self.json {
            as_json(&mut *statement)?;
        } else if self.csv {
            self.as_csv(&mut *statement)?;
        } else {
            self.as_table(&mut *statement)?;
        }
        Ok(Status::Done)
    }

    /// Returns the query.
    fn text(&self) -> Result<String, CommandError> {
        let failed = |name: &dyn std::fmt::Display, error: io::Error| {
            CommandError::CouldNotRun(format!("cannot read the query from {name}: {error}"))
        };
        match (&self.query, &self.file) {
            (Some(query), _) if query != "-" => Ok(query.clone()),
            (None, Some(path)) if path.as_os_str() != "-" => {
                fs::read_to_string(path).map_err(|error| failed(&path.display(), error))
            }
            _ => {
                let mut query = String::new();
                let read = io::stdin().lock().read_to_string(&mut query);
                read.map_err(|error| failed(&"standard input", error))?;
                Ok(query)
            }
        }
    }

    fn as_table(&self, statement: &mut VaultSqlStatement<'_>) -> Result<(), CommandError> {
        let mut out = BufWriter::new(stdout::text());
        let titles = statement.columns().to_vec();
        // Some terminals do not report a width, but the line must be limited.
        let room = terminal::width().or_else(|| terminal::is_terminal().then_some(100));
        let vertical = match self.vertical {
            VerticalMode::Auto if !terminal::is_terminal() => VerticalMode::Never,
            when => when,
        };
        let mut rows = RowPrinter::new(&mut out, &titles, !self.no_header, room, vertical);
        let mut count = 0;
        for row in statement.rows() {
            match row {
                Ok(row) => rows.push(row)?,
                Err(error) => {
                    // A query that is refused has no rows, so it has no head either.
                    if count > 0 {
                        rows.write()?;
                        out.flush()?;
                    }
                    return Err(error.into());
                }
            }
            count += 1;
        }
        rows.write()?;
        out.flush()?;
        stdout::note(&counted(count, "row"));
        Ok(())
    }

    fn as_csv(&self, statement: &mut VaultSqlStatement<'_>) -> Result<(), CommandError> {
        let mut out = BufWriter::new(stdout::raw());
        let titles: Vec<Cell> = statement.columns().iter().map(|title| Cell::Text(title.clone())).collect();
        let mut rows = statement.rows();
        // A query that is refused has no rows, so it has no head either.
        let first = rows.next().transpose()?;
        if !self.no_header {
            write_record(&mut out, &titles)?;
        }
        for row in first.into_iter().map(Ok).chain(rows) {
            write_record(&mut out, &row?)?;
        }
        Ok(out.flush()?)
    }
}

/// Writes a record. It is data, so nothing in it is escaped; on a terminal, control characters are an error.
fn write_record(out: &mut dyn Write, cells: &[Cell]) -> Result<(), CommandError> {
    let record = text::record(cells);
    if terminal::is_terminal() && !is_plain(record.as_bytes()) {
        out.flush()?;
        let message = "the result contains terminal control characters; use --json, a file or a pipe";
        return Err(CommandError::CouldNotRun(message.to_owned()));
    }
    Ok(out.write_all(record.as_bytes())?)
}

/// A row as an object.
struct RowObject<'r> {
    names: &'r [String],
    cells: &'r [Cell],
}

impl Serialize for RowObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.cells.len()))?;
        for (name, cell) in self.names.iter().zip(self.cells) {
            match cell {
                Cell::Null => map.serialize_entry(name, &())?,
                Cell::Integer(integer) => map.serialize_entry(name, integer)?,
                Cell::Real(real) => map.serialize_entry(name, real)?,
                Cell::Text(text) => map.serialize_entry(name, text)?,
                Cell::Blob(bytes) => map.serialize_entry(name, &hex(bytes))?,
            }
        }
        map.end()
    }
}

fn as_json(statement: &mut VaultSqlStatement<'_>) -> Result<(), CommandError> {
    let names = distinct(statement.columns());
    let mut out = BufWriter::new(stdout::raw());
    for row in statement.rows() {
        json::line(&mut out, &RowObject { names: &names, cells: &row? })?;
    }
    Ok(out.flush()?)
}

/// Makes names unique: the members of an object must have different names.
fn distinct(names: &[String]) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        let others = (2..).map(|number| format!("{name}_{number}"));
        let mut free = std::iter::once(name.clone()).chain(others).filter(|name| !distinct.contains(name));
        distinct.extend(free.next());
    }
    distinct
}

fn save(
    reader: &VaultSqlReader<'_>,
    options: &SaveOptions<'_>,
    as_json: bool,
) -> Result<Status, CommandError> {
    let mut progress = CommandProgress::new("saving");
    let total: usize = reader.views().len();
    let mut done: Vec<&str> = Vec::new();
    let stop = Stop::on_signals()?;
    let saved = sql::save(reader, options, &mut |table, rows| {
        if done.last() != Some(&table) {
            done.push(table);
        }
        progress.part(&format!("{table}, {}", counted(rows, "row")), done.len() as u64, total as u64);
        stop.control()
    })?;
    drop(progress);
    let name = options.path.to_string_lossy();
    if as_json {
        json::line(&mut stdout::raw(), &SqlSaveAnswer::new(options.path, &saved))?;
        return Ok(Status::Done);
    }
    let rows: u64 = saved.rows.iter().map(|(_, rows)| rows).sum();
    let tables = counted(saved.rows.len() as u64, "table");
    writeln!(
        stdout::text(),
        "{}: {tables}, {}, {}",
        escaped(&name),
        counted(rows, "row"),
        stdout::size(saved.bytes)
    )?;
    Ok(Status::Done)
}

impl From<SqlError> for CommandError {
    fn from(error: SqlError) -> Self {
        let message = hints::with_hint(&error);
        match error {
            SqlError::Query(_)
            | SqlError::Refused(_)
            | SqlError::Several
            | SqlError::Empty
            | SqlError::Parameter(_) => Self::Usage(message),
            SqlError::Unreadable { .. }
            | SqlError::Exists { .. }
            | SqlError::Place { .. }
            | SqlError::Unsupported(_)
            | SqlError::Store(_) => Self::CouldNotRun(message),
            SqlError::Interrupted => Self::Interrupted,
        }
    }
}

fn print(as_json: bool) -> Result<Status, CommandError> {
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

#[cfg(test)]
mod tests {
    #[test]
    fn members_have_names_of_their_own() {
        let names = ["a", "a", "a_2", "a", "b"].map(str::to_owned);
        assert_eq!(super::distinct(&names), ["a", "a_2", "a_2_2", "a_3", "b"]);
    }
}
