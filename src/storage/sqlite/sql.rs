//! SQL queries, on a separate connection that cannot write.
//!
//! Plain views are stored in the vault's file, and any program can read them. Those of the artifacts of a kind are
//! temporary views of these: a process that does not query in SQL need not parse them. SQL cannot read compressed or packed
//! content: [`ComputedView`](crate::storage::ComputedView) views provide it row by row. Each is a temporary view over
//! two functions: `runvault_rows` returns a JSON list with one element per row of an artifact, and `runvault_cell`
//! returns one value of a row. So the planner selects the artifacts before any of their content is read, and values
//! keep their types. Virtual tables would need less code, but require unsafe code.
//!
//! Functions cannot use the connection on which they are called, so they have a separate one. Both see the same state:
//! transactions are begun on both until their journals have the same head.

mod reader;
mod save;

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error};

use super::SqliteSnapshot;
use super::dictionaries::DecompressionDictionaryCache;
use super::pool::SqlitePooledConnection;
use super::rows::ArtifactId;
use crate::artifact::{Cell, TableRow};
use crate::storage::interface::{ComputedView, SqlError};

/// Maximum size in bytes of the cached rows, which joins read repeatedly.
const MAX_CACHE_BYTES: usize = 64 << 20;

/// Number of row requests, with [`OFTEN_FOR_EACH`] per artifact on average, that indicates a query that joins contents
/// with each other.
const OFTEN: u64 = 100_000;
const OFTEN_FOR_EACH: u64 = 20;

type ComputedRowCache = HashMap<(usize, i64), Arc<Vec<TableRow>>>;

/// The source of the rows of computed views.
pub(super) struct ComputedRowSource {
    path: PathBuf,
    /// A connection that is in a transaction.
    connection: Mutex<Connection>,
    readers: DecompressionDictionaryCache,
    views: Vec<ComputedView>,
    /// The cached rows, by view and artifact, and their size in bytes.
    kept: Mutex<(ComputedRowCache, usize)>,
    /// The error that made a function fail: SQLite only passes on a message.
    failure: Mutex<Option<SqlError>>,
    /// Number of times that rows were requested.
    request_count: AtomicU64,
    /// The callback to call once if that is too often.
    callback: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl ComputedRowSource {
    /// Creates a source that reads on `connection`, which is in a transaction.
    pub(super) fn new(path: &Path, connection: Connection, views: Vec<ComputedView>) -> Self {
        Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
            readers: DecompressionDictionaryCache::default(),
            views,
            kept: Mutex::default(),
            failure: Mutex::default(),
            request_count: AtomicU64::default(),
            callback: Mutex::default(),
        }
    }

    /// Creates the views of this source on `connection`, which sees the same state of the vault.
    pub(super) fn offer(self: &Arc<Self>, connection: &Connection) -> rusqlite::Result<()> {
        let flags = FunctionFlags::SQLITE_UTF8
            | FunctionFlags::SQLITE_DETERMINISTIC
            | FunctionFlags::SQLITE_INNOCUOUS;
        let source = self.clone();
        connection.create_scalar_function("runvault_rows", 2, flags, move |context| source.count(context))?;
        let source = self.clone();
        connection.create_scalar_function("runvault_cell", 4, flags, move |context| source.cell(context))?;
        self.views
            .iter()
            .enumerate()
            .try_for_each(|(number, view)| connection.execute_batch(&statement(number, view)))
    }

    /// Takes the error that made a function fail since the last call.
    pub(super) fn failure(&self) -> Option<SqlError> {
        self.failure.lock().take()
    }

    /// Calls `callback` once if the same artifacts are read repeatedly.
    pub(super) fn on_rereading(&self, callback: Box<dyn FnOnce() + Send>) {
        *self.callback.lock() = Some(callback);
    }

    fn note_rereading(&self) -> rusqlite::Result<()> {
        let request_count = self.request_count.fetch_add(1, Ordering::Relaxed) + 1;
        let last_artifact = || {
            self.connection
                .lock()
                .query_row("SELECT coalesce(max(id), 0) FROM artifact", [], |row| row.get(0))
        };
        if request_count.is_multiple_of(OFTEN) && request_count / OFTEN_FOR_EACH >= last_artifact()? {
            let callback = self.callback.lock().take();
            if let Some(callback) = callback {
                callback();
            }
        }
        Ok(())
    }

    /// Returns a JSON list with one element per row that an artifact has in a view.
    fn count(&self, context: &Context<'_>) -> rusqlite::Result<Option<String>> {
        self.note_rereading()?;
        let Some(rows) = self.rows(context)? else { return Ok(None) };
        let zeros = vec!["0"; rows.len()];
        Ok(Some(format!("[{}]", zeros.join(","))))
    }

    /// Returns one cell of a row.
    fn cell(&self, context: &Context<'_>) -> rusqlite::Result<Value> {
        let (row, column): (usize, usize) = (context.get(2)?, context.get(3)?);
        let rows = self.rows(context)?;
        let cell = rows.as_ref().and_then(|rows| rows.get(row)?.get(column));
        Ok(match cell {
            None | Some(Cell::Null) => Value::Null,
            Some(Cell::Integer(integer)) => Value::Integer(*integer),
            Some(Cell::Real(real)) => Value::Real(*real),
            Some(Cell::Text(text)) => Value::Text(text.clone()),
            Some(Cell::Blob(bytes)) => Value::Blob(bytes.clone()),
        })
    }

    /// Returns the rows that the first two arguments identify: the number of a view and the row id of an artifact.
    fn rows(&self, context: &Context<'_>) -> rusqlite::Result<Option<Arc<Vec<TableRow>>>> {
        let key: (usize, i64) = (context.get(0)?, context.get(1)?);
        if let Some(rows) = self.kept.lock().0.get(&key) {
            return Ok(Some(rows.clone()));
        }
        let Some(view) = self.views.get(key.0) else { return Ok(None) };
        let rows = self.make(view, ArtifactId(key.1)).map(Arc::new).map_err(|error| {
            let message = error.to_string();
            self.failure.lock().get_or_insert(error);
            Error::UserFunctionError(message.into())
        })?;
        self.insert_into_cache(key, &rows);
        Ok(Some(rows))
    }

    fn make(&self, view: &ComputedView, artifact: ArtifactId) -> Result<Vec<TableRow>, SqlError> {
        let mut connection = self.connection.lock();
        let connection = SqlitePooledConnection::Borrowed(&mut connection);
        let snapshot = SqliteSnapshot::resume(connection, &self.readers, &self.path);
        let artifact = snapshot.artifact_by_id(artifact)?;
        (view.rows)(&snapshot, &artifact, &[])
    }

    /// Caches rows until they are too large. The next request is usually for another artifact, so all entries are
    /// equally useful.
    fn insert_into_cache(&self, key: (usize, i64), rows: &Arc<Vec<TableRow>>) {
        let bytes: usize = rows.iter().flatten().map(|cell| size_of::<Cell>() + size(cell)).sum();
        let (kept, kept_bytes) = &mut *self.kept.lock();
        if *kept_bytes + bytes > MAX_CACHE_BYTES {
            kept.clear();
            *kept_bytes = 0;
        }
        kept.insert(key, rows.clone());
        *kept_bytes += bytes;
    }
}

fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Null | Cell::Integer(_) | Cell::Real(_) => 0,
        Cell::Text(text) => text.len(),
        Cell::Blob(bytes) => bytes.len(),
    }
}

/// Returns the statement that creates a view. The condition on the kind applies to the artifact, as those of queries on
/// `artifact` and `core_hash` do: they are evaluated before the functions are called.
fn statement(number: usize, view: &ComputedView) -> String {
    let mut columns = String::new();
    for (index, column) in view.columns.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(columns, ", runvault_cell({number}, a.id, r.key, {index}) AS \"{}\"", column.name);
    }
    let condition = view.kind.map_or(String::new(), |kind| {
        format!(" WHERE a.kind = (SELECT k.id FROM main.kind k WHERE k.name = '{kind}')")
    });
    format!(
        "CREATE TEMP VIEW \"{}\" AS
         SELECT a.id AS artifact, 'sha256:' || lower(hex(a.core)) AS core_hash{columns}
           FROM main.artifact a JOIN json_each(runvault_rows({number}, a.id)) r{condition}",
        view.name
    )
}

/// A cell to be bound to a statement.
pub(super) struct BoundCell<'c>(pub(super) &'c Cell);

impl ToSql for BoundCell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Cell::Null => ValueRef::Null,
            Cell::Integer(integer) => ValueRef::Integer(*integer),
            Cell::Real(real) => ValueRef::Real(*real),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
