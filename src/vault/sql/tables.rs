//! The tables that are saved for other programs: the views, in a form for people who look at them.

use crate::artifact::ColumnType::{Any, Hash, Json, Number, Real, Text, Time};
use crate::artifact::{Column, Kind};
use crate::formats;
use crate::storage::{SavedTable, SqlView};

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
