//! Answers about views and saved tables.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::Column;
use crate::storage::{SaveSummary, SqlView};
use crate::vault::api::PathName;

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
