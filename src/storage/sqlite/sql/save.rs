//! Export of tables to a file that other programs can read without runvault.

use std::path::Path;

use rusqlite::{Connection, Statement, Transaction, params_from_iter};

use super::BoundCell;
use crate::artifact::{Cell, Column, ColumnType};
use crate::storage::interface::{RowProgress, SaveSummary, SavedTable, SqlError, SqlReader};
use crate::storage::sqlite::staging::StagedDatabase;
use crate::storage::sqlite::{StorageError, connection};

impl dyn SqlReader + '_ {
    /// Writes these tables to a new SQLite file at `path`, readable by its owner only, with indexes on references, hashes
    /// and facets, and a full-text index of the columns that are searched. It gets its final name when it is complete and
    /// on disk. `watch` is called after each row with the name of the table and its number of rows so far, and can
    /// interrupt it with [`ControlFlow::Break`](std::ops::ControlFlow::Break).
    ///
    /// # Errors
    /// Returns [`SqlError::Exists`] if the file exists and `force` does not allow replacing it,
    /// [`SqlError::Interrupted`] if `watch` interrupted it, and another [`SqlError`] otherwise. `path` then has its
    /// previous content, and no other files are left.
    pub fn write_file(
        &self,
        tables: &[SavedTable],
        path: &Path,
        force: bool,
        watch: &mut RowProgress<'_>,
    ) -> Result<SaveSummary, SqlError> {
        let place = StagedDatabase::at(path, self.vault_path(), force)?;
        let unfinished = place.temp_path().to_owned();
        connection::create_private(&unfinished).map_err(|error| StorageError::io(path, error))?;
        let failed = |error| StorageError::from_sqlite(path, error);
        let mut target = connection::connect(&unfinished).map_err(failed)?;
        // The file is not visible until it is complete, so nothing needs to be undone, and tables can refer to later ones.
        let pragmas = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF;";
        target.execute_batch(pragmas).map_err(failed)?;
        let mut rows = Vec::new();
        let transaction = target.transaction().map_err(failed)?;
        for table in tables {
            rows.push((table.name, copy(self, table, &transaction, path, watch)?));
        }
        transaction.commit().map_err(failed)?;
        close(target).map_err(failed)?;
        Ok(SaveSummary { bytes: place.finish()?, rows })
    }
}

fn copy(
    reader: &dyn SqlReader,
    table: &SavedTable,
    target: &Transaction<'_>,
    path: &Path,
    watch: &mut RowProgress<'_>,
) -> Result<u64, SqlError> {
    let failed = |error| SqlError::from(StorageError::from_sqlite(path, error));
    let mut inserts = InsertStatements::new(table, target).map_err(failed)?;
    let mut copied = 0;
    for row in reader.prepare(&table.query, &[])?.rows() {
        copied += 1;
        let mut row = row?;
        if table.is_numbered {
            row.insert(0, Cell::Integer(copied));
        }
        inserts.insert(&row).map_err(failed)?;
        if watch(table.name, copied.unsigned_abs()).is_break() {
            return Err(SqlError::Interrupted);
        }
    }
    drop(inserts);
    for column in table.columns.iter().filter(|column| is_indexed(column)) {
        let (table, column) = (table.name, column.name);
        let index = format!("CREATE INDEX \"{table}_by_{column}\" ON \"{table}\" (\"{column}\")");
        target.execute_batch(&index).map_err(failed)?;
    }
    Ok(copied.unsigned_abs())
}

/// The statements that insert the rows of a table.
struct InsertStatements<'t> {
    row: Statement<'t>,
    /// The one for the full-text index, if columns are searched, and the positions of their cells, after that of the key.
    words: Option<(Statement<'t>, Vec<usize>)>,
}

impl<'t> InsertStatements<'t> {
    /// Creates the table and its full-text index. Datasette finds the index by its `content`.
    fn new(table: &SavedTable, target: &'t Transaction<'_>) -> rusqlite::Result<Self> {
        target.execute_batch(&definition(table))?;
        let marks = |count| vec!["?"; count].join(", ");
        let name = table.name;
        let insert = format!("INSERT INTO \"{name}\" VALUES ({})", marks(table.columns.len()));
        let row = target.prepare(&insert)?;
        let position = |is_meant: fn(&Column) -> bool| {
            table.columns.iter().enumerate().filter(move |(_, column)| is_meant(column))
        };
        let Some((key, key_column)) = position(|column| column.is_key).next() else {
            return Ok(Self { row, words: None });
        };
        let searched: Vec<_> = position(|column| column.is_searched).collect();
        if searched.is_empty() {
            return Ok(Self { row, words: None });
        }
        let columns: Vec<_> = searched.iter().map(|(_, column)| format!("\"{}\"", column.name)).collect();
        let columns = columns.join(", ");
        target.execute_batch(&format!(
            "CREATE VIRTUAL TABLE \"{name}_fts\" USING fts5 ({columns}, content=\"{name}\", \
             content_rowid=\"{}\", tokenize=\"unicode61 remove_diacritics 2\")",
            key_column.name
        ))?;
        let marks = marks(searched.len() + 1);
        let words =
            target.prepare(&format!("INSERT INTO \"{name}_fts\" (rowid, {columns}) VALUES ({marks})"))?;
        let positions = std::iter::once(key).chain(searched.iter().map(|(position, _)| *position)).collect();
        Ok(Self { row, words: Some((words, positions)) })
    }

    fn insert(&mut self, cells: &[Cell]) -> rusqlite::Result<()> {
        self.row.execute(params_from_iter(cells.iter().map(BoundCell)))?;
        if let Some((words, positions)) = &mut self.words {
            let cells = positions.iter().filter_map(|position| cells.get(*position));
            words.execute(params_from_iter(cells.map(BoundCell)))?;
        }
        Ok(())
    }
}

/// Returns the statement that creates a table. It declares keys and references, which other programs can follow.
fn definition(table: &SavedTable) -> String {
    let columns = table.columns.iter().map(|column| {
        let sort = match column.sort {
            ColumnType::Number => " INTEGER",
            ColumnType::Real => " REAL",
            ColumnType::Text | ColumnType::Time | ColumnType::Hash | ColumnType::Json => " TEXT",
            ColumnType::Any => "",
        };
        let key = if column.is_key { " PRIMARY KEY" } else { "" };
        let reference = column.references.map(|to| format!(" REFERENCES \"{}\" (\"{}\")", to.table, to.key));
        format!("\"{}\"{sort}{key}{}", column.name, reference.unwrap_or_default())
    });
    format!("CREATE TABLE \"{}\" ({})", table.name, columns.collect::<Vec<_>>().join(", "))
}

fn is_indexed(column: &Column) -> bool {
    !column.is_key && (column.sort == ColumnType::Hash || column.references.is_some() || column.is_facet)
}

fn close(connection: Connection) -> rusqlite::Result<()> {
    connection.close().map_err(|(_, error)| error)
}
