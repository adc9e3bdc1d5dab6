//! The tables that are saved for other programs: the views, in a form for people who look at them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::ColumnType::{Any, Hash, Json, Number, Real, Text, Time};
use crate::artifact::{Column, Kind};
use crate::formats;
use crate::storage::{SaveSummary, SavedTable, SqlView};
use crate::vault::api::PathName;

/// The name of the column with the number of a row, in tables without another key.
pub const ROW_ID: &str = "row_id";
/// The name of the column with what an artifact is called.
pub const TITLE: &str = "title";

/// The view of all artifacts.
pub(in crate::vault) const ARTIFACTS: &str = "artifacts";

/// Maximum number of characters of a title.
const MAX_TITLE: usize = 80;
/// Number of digits of a hash in a title.
const DIGITS: usize = 12;

/// Returns the tables of these views. They have the same names and columns, and a key. Columns that people read come
/// first; hashes and JSON are last.
#[must_use]
pub fn saved_tables(views: &[SqlView]) -> Vec<SavedTable> {
    views.iter().map(table).collect()
}

fn table(view: &SqlView) -> SavedTable {
    let title = title(view.name);
    let is_numbered = !view.columns.iter().any(|column| column.is_key);
    let mut columns: Vec<Column> = view.columns.iter().copied().map(typed).collect();
    if title.is_some() {
        columns
            .push(Column::new(TITLE, Text, "its kind, and its id or the start of its core hash").searched());
    }
    columns.sort_by_key(rank);
    let cells: Vec<String> = columns
        .iter()
        .map(|column| match &title {
            Some(title) if column.name == TITLE => format!("{title} AS \"{TITLE}\""),
            // An index or a JSON Pointer.
            _ if is_any(view, column) => format!("CAST(v.\"{0}\" AS TEXT) AS \"{0}\"", column.name),
            _ => format!("v.\"{}\"", column.name),
        })
        .collect();
    let query = format!("SELECT {} FROM \"{}\" v", cells.join(", "), view.name);
    if is_numbered {
        columns.insert(0, Column::new(ROW_ID, Number, "the number of the row in this table").key());
    }
    SavedTable { name: view.name, about: view.about, columns, is_numbered, query }
}

/// Returns the column with one type for all of its cells.
fn typed(column: Column) -> Column {
    if column.sort == Any { Column { sort: Text, ..column } } else { column }
}

fn is_any(view: &SqlView, column: &Column) -> bool {
    view.columns.iter().any(|of_view| of_view.name == column.name && of_view.sort == Any)
}

/// Returns the position of a column among the others: equal ones stay in their order.
fn rank(column: &Column) -> usize {
    match column.sort {
        _ if column.is_key => 0,
        _ if column.references.is_some() => 1,
        _ if column.name == TITLE => 2,
        Text | Any if !column.is_searched => 3,
        Text | Any => 4,
        Time => 5,
        Number | Real => 6,
        Hash => 7,
        Json => 8,
    }
}

/// Returns the SQL expression for what the artifact of a row `v` is called, if each row of the view is an artifact.
fn title(view: &str) -> Option<String> {
    if let Some(kind) = formats::ALL.into_iter().find(|kind| kind.plural() == view) {
        return Some(called(kind, kind.view().named_by.map(|column| format!("v.\"{column}\""))));
    }
    let cases = formats::ALL.into_iter().map(|kind| {
        let name = kind.view().named_by.map(|column| {
            let kinds = kind.plural();
            format!("(SELECT k.\"{column}\" FROM \"{kinds}\" k WHERE k.artifact = v.artifact)")
        });
        format!(" WHEN '{}' THEN {}", kind.name(), called(kind, name))
    });
    (view == ARTIFACTS).then(|| format!("CASE v.kind{} ELSE v.kind END", cases.collect::<String>()))
}

/// Returns the expression for the noun of a kind, and a name or the start of the hash.
fn called(kind: Kind, name: Option<String>) -> String {
    let digits = crate::digest::PREFIX.len() + 1;
    let hash = format!("substr(v.core_hash, {digits}, {DIGITS})");
    let name = name.map_or(hash.clone(), |name| format!("coalesce(nullif({name}, ''), {hash})"));
    format!("substr('{} ' || {name}, 1, {MAX_TITLE})", kind.noun())
}

/// A view that SQL queries can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlViewSummary {
    /// Its name.
    pub name: String,
    /// A description of a row.
    pub about: String,
    /// Whether it is in the vault's file, where any program that reads SQLite can use it.
    pub in_file: bool,
    /// Its columns, in order.
    pub columns: Vec<SqlColumnSummary>,
}

/// A column of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlColumnSummary {
    /// Its name.
    pub name: String,
    /// The type of its values: `number`, `real`, `text`, `time`, `hash`, `json` or `any`.
    pub sort: String,
    /// A description of its values.
    pub about: String,
}

/// What was saved for other programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SqlSaveAnswer {
    /// The file or directory.
    #[serde(flatten)]
    pub file: PathName,
    /// Its size in bytes, without `metadata.json`.
    pub bytes: u64,
    /// The number of rows of each table, by name.
    pub rows: BTreeMap<String, u64>,
}

impl From<&SqlView> for SqlViewSummary {
    fn from(view: &SqlView) -> Self {
        Self {
            name: view.name.to_owned(),
            about: view.about.to_owned(),
            in_file: view.is_plain,
            columns: view.columns.iter().map(SqlColumnSummary::from).collect(),
        }
    }
}

impl From<&Column> for SqlColumnSummary {
    fn from(column: &Column) -> Self {
        Self {
            name: column.name.to_owned(),
            sort: column.sort.name().to_owned(),
            about: column.about.to_owned(),
        }
    }
}

impl SqlSaveAnswer {
    /// Creates the data of what was saved at `path`.
    #[must_use]
    pub fn new(path: &Path, saved: &SaveSummary) -> Self {
        let rows = saved.rows.iter().map(|(table, rows)| ((*table).to_owned(), *rows));
        Self { file: path.into(), bytes: saved.bytes, rows: rows.collect() }
    }
}
