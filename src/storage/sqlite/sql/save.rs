//! Export of all views to a file that other programs can read without runvault.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, Transaction, params_from_iter};

use super::reader::{Bound, Reader};
use crate::artifact::{Column, ColumnType};
use crate::storage::interface::{Saved, SqlError, SqlReader, SqlStatement, View};
use crate::storage::sqlite::staging::{PlaceError, StagedFile};
use crate::storage::sqlite::{StorageError, pool};

impl From<PlaceError> for SqlError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Exists(path) => Self::Exists { path },
            PlaceError::Refused { path, reason } => Self::Place { path, reason },
            PlaceError::Store(error) => Self::Store(error),
        }
    }
}

impl Reader<'_> {
    /// Writes all views as tables to a new SQLite file at `path`, readable by its owner only, with indexes on artifact
    /// row ids and on hashes. It gets its final name when it is complete and on disk. `watch` is called after each row
    /// with the name of the table and its number of rows so far, and can interrupt the export with
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    /// Returns [`SqlError::Exists`] if the file exists and `force` does not allow replacing it,
    /// [`SqlError::Interrupted`] if `watch` interrupted it, and another [`SqlError`] otherwise. `path` then has its
    /// previous content, and no other files are left.
    pub(super) fn save(
        &self,
        path: &Path,
        force: bool,
        watch: &mut dyn FnMut(&'static str, u64) -> ControlFlow<()>,
    ) -> Result<Saved, SqlError> {
        let place = StagedFile::at(path, self.path(), force)?;
        let unfinished = place.temp_path().to_owned();
        pool::create_private(&unfinished).map_err(|error| StorageError::io(path, error))?;
        let failed = |error| StorageError::from_sqlite(path, error);
        let mut target = pool::connect(&unfinished).map_err(failed)?;
        // The file is not visible until it is complete, so nothing needs to be undone.
        target.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;").map_err(failed)?;
        let mut rows = Vec::new();
        let transaction = target.transaction().map_err(failed)?;
        for view in SqlReader::views(self) {
            rows.push((view.name, self.copy(view, &transaction, path, watch)?));
        }
        transaction.commit().map_err(failed)?;
        close(target).map_err(failed)?;
        Ok(Saved { bytes: place.finish()?, rows })
    }

    fn copy(
        &self,
        view: &View,
        target: &Transaction<'_>,
        path: &Path,
        watch: &mut dyn FnMut(&'static str, u64) -> ControlFlow<()>,
    ) -> Result<u64, SqlError> {
        let failed = |error| SqlError::from(StorageError::from_sqlite(path, error));
        target.execute_batch(&table(view)).map_err(failed)?;
        let marks = vec!["?"; view.columns.len()].join(", ");
        let insert = format!("INSERT INTO \"{}\" VALUES ({marks})", view.name);
        let mut insert = target.prepare(&insert).map_err(failed)?;
        let mut copied = 0;
        for row in self.statement(&format!("SELECT * FROM \"{}\"", view.name), &[])?.rows() {
            insert.execute(params_from_iter(row?.iter().map(Bound))).map_err(failed)?;
            copied += 1;
            if watch(view.name, copied).is_break() {
                return Err(SqlError::Interrupted);
            }
        }
        for column in view.columns.iter().filter(|column| is_indexed(view, column)) {
            let (table, column) = (view.name, column.name);
            let index = format!("CREATE INDEX \"{table}_by_{column}\" ON \"{table}\" (\"{column}\")");
            target.execute_batch(&index).map_err(failed)?;
        }
        Ok(copied)
    }
}

/// Returns the statement that creates the table for a view. It declares references to artifacts, which other programs
/// can follow.
fn table(view: &View) -> String {
    let columns = view.columns.iter().map(|column| {
        let sort = match column.sort {
            ColumnType::Number => " INTEGER",
            ColumnType::Real => " REAL",
            ColumnType::Text | ColumnType::Hash | ColumnType::Json => " TEXT",
            ColumnType::Any => "",
        };
        let key = match (is_artifact(column), view.name) {
            (true, "artifacts") => " PRIMARY KEY",
            (true, _) => " REFERENCES artifacts (artifact)",
            (false, _) => "",
        };
        format!("\"{}\"{sort}{key}", column.name)
    });
    format!("CREATE TABLE \"{}\" ({})", view.name, columns.collect::<Vec<_>>().join(", "))
}

fn is_indexed(view: &View, column: &Column) -> bool {
    column.sort == ColumnType::Hash || (is_artifact(column) && view.name != "artifacts")
}

/// Whether the column contains artifact row ids.
fn is_artifact(column: &Column) -> bool {
    matches!(column.name, "artifact" | "target_artifact")
}

fn close(connection: Connection) -> rusqlite::Result<()> {
    connection.close().map_err(|(_, error)| error)
}
