//! Reading of query results, on a connection that is restricted to reading.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode};

use super::{BoundCell, ComputedRowSource};
use crate::artifact::Cell;
use crate::digest::Digest;
use crate::storage::StorageError;
use crate::storage::interface::{
    ComputedView, KindView, SqlError, SqlQueries, SqlReader, SqlRows, SqlStatement, SqlView,
};
use crate::storage::sqlite::error::BusyReason;
use crate::storage::sqlite::identity::VaultFile;
use crate::storage::sqlite::{Store, connection, schema};
use crate::storage::views::{is_plain, known_columns, known_tables, position_after, query_of_kind};

/// A reader that answers SQL queries about the vault in its state when the reader was created.
///
/// It cannot write. Until it is dropped, concurrent writes stay in the vault's write-ahead log, which grows.
pub(super) struct SqliteQueryReader<'s> {
    connection: Connection,
    source: Arc<ComputedRowSource>,
    guard: QueryAuthorizer,
    views: Vec<SqlView>,
    file: VaultFile,
    /// Borrowed from the store, which must outlive the reader: the last connection to close leaves the log behind if it
    /// is read-only.
    path: &'s Path,
}

/// Opens two connections that see the same state of the vault at `path`.
fn connect_twice(path: &Path) -> Result<[Connection; 2], StorageError> {
    /// Maximum number of attempts. If others write this often, they do not stop.
    const TRIES: usize = 1000;
    let connect = || {
        let both = [connection::connect_to_read(path)?, connection::connect_to_read(path)?];
        for _ in 0..TRIES {
            both.iter().try_for_each(|one| one.execute_batch("BEGIN"))?;
            if head(&both[0])? == head(&both[1])? {
                return Ok(Some(both));
            }
            both.iter().try_for_each(|one| one.execute_batch("ROLLBACK"))?;
        }
        Ok(None)
    };
    let both = connect().map_err(|error| StorageError::from_sqlite(path, error))?;
    both.ok_or_else(|| StorageError::busy(path, BusyReason::Contended))
}

/// Returns the head of the journal. It identifies a state, since every change to a vault has an entry.
fn head(connection: &Connection) -> rusqlite::Result<(i64, Option<Digest>)> {
    // Always one row, even without entries.
    connection.query_row("SELECT max(seq), chain FROM journal", [], |row| {
        Ok((row.get::<_, Option<i64>>(0)?.unwrap_or_default(), row.get(1)?))
    })
}

impl SqlQueries for Store {
    fn reader(
        &self,
        of_kinds: &[KindView],
        computed: Vec<ComputedView>,
    ) -> Result<Box<dyn SqlReader + '_>, SqlError> {
        let failed = |error| StorageError::from_sqlite(self.path(), error);
        let mut views = SqlView::plain();
        let file = VaultFile::new(self.path());
        let [connection, other] = connect_twice(self.path())?;
        file.learn(&connection);
        schema::expect_views(&connection, is_plain).map_err(failed)?;
        for view in of_kinds {
            let query = query_of_kind(view, "main.");
            let sql = format!("CREATE TEMP VIEW \"{}\" AS {query}", view.name);
            connection.execute_batch(&sql).map_err(failed)?;
        }
        views.extend(of_kinds.iter().map(SqlView::from));
        views.extend(computed.iter().map(SqlView::from));
        let source = Arc::new(ComputedRowSource::new(self.path(), other, computed));
        source.offer(&connection).map_err(failed)?;
        connection.execute_batch("PRAGMA query_only = ON").map_err(failed)?;
        // An unknown name in double quotes would be a string: a misspelt column would be compared as text.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false).map_err(failed)?;
        let guard = QueryAuthorizer::default();
        guard.watch(&connection).map_err(failed)?;
        Ok(Box::new(SqliteQueryReader { connection, source, guard, views, file, path: self.path() }))
    }
}

impl SqlReader for SqliteQueryReader<'_> {
    fn views(&self) -> &[SqlView] {
        &self.views
    }

    fn on_rereading(&self, callback: Box<dyn FnOnce() + Send>) {
        self.source.on_rereading(callback);
    }

    fn prepare(
        &self,
        query: &str,
        parameters: &[(&str, Cell)],
    ) -> Result<Box<dyn SqlStatement + '_>, SqlError> {
        Ok(Box::new(self.statement(query, parameters)?))
    }

    fn vault_path(&self) -> &Path {
        self.path
    }
}

impl SqliteQueryReader<'_> {
    fn statement(&self, query: &str, parameters: &[(&str, Cell)]) -> Result<SqliteStatement<'_>, SqlError> {
        if query.contains('\0') {
            return Err(SqlError::Query("the query has a NUL character".to_owned()));
        }
        let prepared = self.connection.prepare(query);
        if let Some(refusal) = self.guard.refused() {
            return Err(SqlError::Refused(refusal));
        }
        let mut statement = prepared.map_err(|error| self.failed(error, query))?;
        if !statement.readonly() {
            return Err(SqlError::Refused("the statement would change data".to_owned()));
        }
        if statement.column_count() == 0 {
            return Err(SqlError::Empty);
        }
        bind(&mut statement, parameters, |error| self.failed(error, query))?;
        let columns = statement.column_names().into_iter().map(str::to_owned).collect();
        Ok(SqliteStatement { reader: self, query: query.to_owned(), prepared: statement, columns })
    }

    /// Converts `error`, which occurred in `query`, into an error for the caller.
    fn failed(&self, error: Error, query: &str) -> SqlError {
        if self.file.is_another_vault() {
            return StorageError::replaced(self.path).into();
        }
        if let Some(failure) = self.source.failure() {
            return failure;
        }
        match error {
            Error::MultipleStatement => SqlError::Several,
            Error::SqlInputError { msg, offset, .. } => {
                SqlError::Query(format!("{msg}{}{}", place(query, offset), self.hint(&msg, query)))
            }
            Error::SqliteFailure(code, message) if is_of_query(code.code) => {
                let message = message.unwrap_or_else(|| code.to_string());
                SqlError::Query(format!("{message}{}", self.hint(&message, query)))
            }
            error => StorageError::from_sqlite(self.path, error).into(),
        }
    }

    /// Returns a hint that lists the existing views or columns, if the query refers to one that does not exist.
    fn hint(&self, message: &str, query: &str) -> String {
        if message.starts_with("no such table") {
            known_tables(&self.views)
        } else if message.starts_with("no such column") {
            known_columns(&self.views, query)
        } else {
            String::new()
        }
    }
}

/// Whether an error is caused by the query. Others are caused by the vault.
fn is_of_query(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Unknown
            | ErrorCode::TooBig
            | ErrorCode::TypeMismatch
            | ErrorCode::ParameterOutOfRange
            | ErrorCode::OutOfMemory
            | ErrorCode::AuthorizationForStatementDenied
    )
}

/// Describes a position in a query.
fn place(query: &str, offset: i32) -> String {
    let before = usize::try_from(offset).ok().and_then(|offset| query.get(..offset));
    before.map(position_after).unwrap_or_default()
}

fn bind(
    statement: &mut rusqlite::Statement<'_>,
    parameters: &[(&str, Cell)],
    failed: impl Fn(Error) -> SqlError,
) -> Result<(), SqlError> {
    let mut left: Vec<&str> = parameters.iter().map(|(name, _)| *name).collect();
    left.sort_unstable();
    if let Some(name) = left.windows(2).find_map(|two| (two.first() == two.last()).then(|| two.first())?) {
        return Err(SqlError::Parameter(format!("the parameter :{name} has two values")));
    }
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).unwrap_or("?").to_owned();
        let value = name.get(1..).and_then(|name| parameters.iter().find(|(known, _)| *known == name));
        let Some((known, value)) = value else {
            return Err(SqlError::Parameter(format!("the parameter {name} has no value")));
        };
        left.retain(|name| name != known);
        statement.raw_bind_parameter(index, BoundCell(value)).map_err(&failed)?;
    }
    match left.first() {
        None => Ok(()),
        Some(name) => Err(SqlError::Parameter(format!("the query has no parameter :{name}"))),
    }
}

/// A prepared query.
pub(super) struct SqliteStatement<'r> {
    reader: &'r SqliteQueryReader<'r>,
    query: String,
    prepared: rusqlite::Statement<'r>,
    columns: Vec<String>,
}

impl SqlStatement for SqliteStatement<'_> {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn rows(&mut self) -> SqlRows<'_> {
        let width = self.columns.len();
        let found = self.prepared.raw_query();
        Box::new(SqliteRows { reader: self.reader, query: &self.query, width, found, read: 0 })
    }
}

/// The number of rows after which the file is examined again.
const EXAMINED: u64 = 100;

/// The rows of a result, each with a cell for every column. The first error is the last item.
pub(super) struct SqliteRows<'q> {
    reader: &'q SqliteQueryReader<'q>,
    query: &'q str,
    width: usize,
    found: rusqlite::Rows<'q>,
    /// The number of rows that were read.
    read: u64,
}

impl Iterator for SqliteRows<'_> {
    type Item = Result<Vec<Cell>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = match self.found.next() {
            Ok(row) => row,
            Err(error) => return Some(Err(self.reader.failed(error, self.query))),
        };
        self.read += 1;
        // What was read while another vault was written into the file can be of either.
        let is_examined = row.is_none() || self.read.is_multiple_of(EXAMINED);
        if is_examined && self.reader.file.is_another_vault() {
            return Some(Err(StorageError::replaced(self.reader.path).into()));
        }
        let row = row?;
        let cells: rusqlite::Result<_> = (0..self.width).map(|index| row.get_ref(index).map(cell)).collect();
        Some(cells.map_err(|error| self.reader.failed(error, self.query)))
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(integer) => Cell::Integer(integer),
        ValueRef::Real(real) => Cell::Real(real),
        // SQLite treats a value cast to text as text, whatever its bytes are.
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

/// The pragmas that only describe the schema.
const PRAGMAS: [&str; 3] = ["table_info", "table_xinfo", "table_list"];

/// Functions with effects beyond the vault or within the process. Each is already disabled in another way.
const FUNCTIONS: [&str; 2] = ["load_extension", "fts3_tokenizer"];

/// The prefix of the functions on which computed views are built.
const OWN: &str = "runvault_";

/// An authorizer that restricts the queries of one connection, and records what it rejected.
#[derive(Clone, Default)]
struct QueryAuthorizer(Arc<Mutex<Option<String>>>);

impl QueryAuthorizer {
    /// Allows only reading on `connection` from now on.
    fn watch(&self, connection: &Connection) -> rusqlite::Result<()> {
        let guard = self.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            let Some(refusal) = refusal(&context) else { return Authorization::Allow };
            guard.0.lock().get_or_insert(refusal);
            Authorization::Deny
        }))
    }

    /// Takes the first rejection since the last call.
    fn refused(&self) -> Option<String> {
        self.0.lock().take()
    }
}

/// Returns why an action is rejected, or `None` if it is allowed.
fn refusal(context: &AuthContext<'_>) -> Option<String> {
    Some(match &context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => return None,
        AuthAction::Function { function_name } if function_name.starts_with(OWN) => {
            // These implement runvault's own views and are not available to other queries.
            context.accessor.is_none().then(|| format!("the function {function_name} is not allowed"))?
        }
        AuthAction::Function { function_name } if !is_one_of(&FUNCTIONS, function_name) => return None,
        AuthAction::Pragma { pragma_name, .. } if is_one_of(&PRAGMAS, pragma_name) => return None,
        AuthAction::Function { function_name } => format!("the function {function_name} is not allowed"),
        AuthAction::Pragma { pragma_name, .. } => {
            format!("PRAGMA {pragma_name} is not allowed, only {} are", PRAGMAS.join(", "))
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => {
            "other databases cannot be attached".to_owned()
        }
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            "transactions are not allowed, because each query sees one snapshot of the vault".to_owned()
        }
        _ => "the statement would change data".to_owned(),
    })
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
