//! Reading of query results.

use std::cell::{Cell as Shared, RefCell};
use std::collections::BTreeSet;
use std::collections::vec_deque::{IntoIter, VecDeque};
use std::path::{Path, PathBuf};

use postgres::error::{ErrorPosition, SqlState};

use super::cells::{CellParameter, cells, is_decoded};
use super::contents::{CellColumn, InlineTable, fill, table_of_contents};
use super::query::PostgresQuery;
use crate::artifact::Cell;
use crate::storage::interface::{
    ComputedView, KindView, SqlError, SqlReader, SqlRows, SqlStatement, SqlView as Described,
};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::postgres::vault::PostgresStorage;
use crate::storage::views::{is_named, known_columns, known_tables, position_after, query_of_kind};

/// Number of rows that are fetched at once.
const STEP: usize = 1_000;

/// A reader. Its transaction can only read, except that it fills its temporary tables.
pub(super) struct PostgresSqlReader<'s> {
    view: PostgresSnapshot<'s>,
    views: Vec<Described>,
    computed: Vec<ComputedView>,
    /// The names and the queries of the views of kinds, if they are not temporary views.
    of_kinds: Option<Vec<(&'static str, String)>>,
    /// The tables that are filled.
    filled: RefCell<BTreeSet<&'static str>>,
    /// The number of cursors so far.
    cursors: Shared<u64>,
    name: PathBuf,
}

impl<'s> PostgresSqlReader<'s> {
    pub(super) fn begin(
        storage: &'s PostgresStorage,
        of_kinds: &[KindView],
        computed: Vec<ComputedView>,
    ) -> PostgresResult<Self> {
        let mut views = Described::plain();
        views.extend(of_kinds.iter().map(Described::from));
        views.extend(computed.iter().map(Described::from));
        let session = DatabaseTransaction::to_query(&storage.server)?;
        let of_kinds: Vec<_> =
            of_kinds.iter().map(|of_kind| (of_kind.name, query_of_kind(of_kind, ""))).collect();
        let creates = may_create(&session)?;
        let mut statements = Vec::new();
        if creates {
            let view =
                |(name, query): &(&str, String)| format!("CREATE TEMPORARY VIEW \"{name}\" AS {query}");
            statements.extend(of_kinds.iter().map(view));
            statements.extend(computed.iter().map(table_of_contents));
        }
        // Nothing can be created after this. Temporary tables can be filled.
        statements.push("SET TRANSACTION READ ONLY".to_owned());
        session.batch(&statements.join("; "))?;
        let view = PostgresSnapshot { session, names: &storage.names };
        let (filled, cursors) = (RefCell::default(), Shared::default());
        let of_kinds = (!creates).then_some(of_kinds);
        Ok(Self { view, views, computed, of_kinds, filled, cursors, name: storage.address().into() })
    }

    /// Fills the tables that a query names.
    fn fill_for(&self, query: &str) -> Result<(), SqlError> {
        for computed in self.computed.iter().filter(|computed| is_named(computed.name, query)) {
            if !self.filled.borrow().contains(computed.name) {
                fill(&self.view, computed)?;
                self.filled.borrow_mut().insert(computed.name);
            }
        }
        Ok(())
    }

    /// Adds the views and tables that a query names to it, if they cannot be created, and returns the parameters with the
    /// rows of the tables.
    fn define_for(
        &self,
        of_kinds: &[(&'static str, String)],
        query: &mut PostgresQuery,
        text: &str,
    ) -> Result<Vec<CellColumn>, SqlError> {
        let named = of_kinds.iter().filter(|(name, _)| is_named(name, text));
        let mut definitions: Vec<String> =
            named.map(|(name, query)| format!("\"{name}\" AS ({query})")).collect();
        let mut parameters = Vec::new();
        for computed in self.computed.iter().filter(|computed| is_named(computed.name, text)) {
            let table = InlineTable::read(&self.view, computed, query.values.len() + parameters.len() + 1)?;
            definitions.push(table.definition);
            parameters.extend(table.columns);
        }
        query.define(&definitions);
        Ok(parameters)
    }

    /// Runs statements. If they fail, the transaction continues as if they had not been run.
    fn attempt<T>(
        &self,
        run: impl FnOnce(&DatabaseTransaction<'s>) -> PostgresResult<T>,
    ) -> PostgresResult<T> {
        let session = &self.view.session;
        session.batch("SAVEPOINT runvault_attempt")?;
        let outcome = run(session);
        let end = if outcome.is_ok() { "RELEASE" } else { "ROLLBACK TO" };
        session.batch(&format!("{end} SAVEPOINT runvault_attempt")).and(outcome)
    }

    fn statement(
        &self,
        text: &str,
        parameters: &[(&str, Cell)],
    ) -> Result<PostgresSqlStatement<'_>, SqlError> {
        let mut query = PostgresQuery::new(text, parameters)?;
        let contents = match &self.of_kinds {
            Some(of_kinds) => self.define_for(of_kinds, &mut query, text)?,
            None => Vec::new(),
        };
        let is_unchanged = parameters.is_empty() && self.of_kinds.is_none();
        let described = self.attempt(|session| session.describe(&query.sql));
        let described = described.map_err(|failure| self.failed(failure, text, is_unchanged))?;
        if described.is_empty() {
            return Err(SqlError::Refused("the statement returns no columns".to_owned()));
        }
        if self.of_kinds.is_none() {
            self.fill_for(text)?;
        }
        if !described.iter().all(|(_, of)| is_decoded(of)) {
            query.sql = with_texts(&query.sql, described.iter().map(|(_, of)| is_decoded(of)));
        }
        let columns = described.into_iter().map(|(name, _)| name).collect();
        Ok(PostgresSqlStatement { reader: self, text: text.to_owned(), query, contents, columns })
    }

    /// Converts a failure of a query.
    fn failed(&self, failure: PostgresError, text: &str, is_unchanged: bool) -> SqlError {
        let Some(error) = failure.reported() else {
            return failure.at(self.view.session.server().name()).into();
        };
        let (code, message) = (error.code(), error.message());
        if *code == SqlState::READ_ONLY_SQL_TRANSACTION || message.contains("data-modifying") {
            return SqlError::Refused("the statement would change data".to_owned());
        }
        if message.contains("multiple commands") {
            return SqlError::Several;
        }
        let is_of_query =
            ["0A", "21", "22", "2F", "42", "54"].contains(&code.code().get(..2).unwrap_or_default());
        if !is_of_query {
            return failure.at(self.view.session.server().name()).into();
        }
        let position = match error.position() {
            Some(ErrorPosition::Original(position)) if is_unchanged => place(text, *position),
            _ => String::new(),
        };
        let hint = match code {
            code if *code == SqlState::UNDEFINED_TABLE => known_tables(&self.views),
            code if *code == SqlState::UNDEFINED_COLUMN => known_columns(&self.views, text),
            _ => error.hint().map(|hint| format!("; {hint}")).unwrap_or_default(),
        };
        SqlError::Query(format!("{message}{position}{hint}"))
    }
}

/// Returns whether temporary tables can be created: the role may, and the server is no standby.
fn may_create(session: &DatabaseTransaction<'_>) -> PostgresResult<bool> {
    let sql = "SELECT current_setting('transaction_read_only') = 'off'
                  AND has_database_privilege(current_database(), 'TEMPORARY')";
    let row = session.row(sql, &[])?;
    row.map_or(Ok(false), |row| Ok(row.flag(0)?))
}

/// Describes a position in a query, counted in characters from 1.
fn place(query: &str, position: u32) -> String {
    let before: String =
        query.chars().take(usize::try_from(position).unwrap_or(usize::MAX).saturating_sub(1)).collect();
    position_after(&before)
}

/// Returns a query for the same rows, with texts in the columns whose types are not decoded.
fn with_texts(query: &str, are_decoded: impl Iterator<Item = bool>) -> String {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (number, is_decoded) in are_decoded.enumerate() {
        names.push(format!("c{number}"));
        values.push(format!("q.c{number}{}", if is_decoded { "" } else { "::text" }));
    }
    let query = query.trim_end().trim_end_matches(';');
    // A comment at the end of the query ends with its line.
    format!("SELECT {} FROM ({query}\n) AS q ({})", values.join(", "), names.join(", "))
}

impl SqlReader for PostgresSqlReader<'_> {
    fn views(&self) -> &[Described] {
        &self.views
    }

    /// Contents are read once, however often a query reads them.
    fn on_rereading(&self, _: Box<dyn FnOnce() + Send>) {}

    fn prepare(
        &self,
        query: &str,
        parameters: &[(&str, Cell)],
    ) -> Result<Box<dyn SqlStatement + '_>, SqlError> {
        Ok(Box::new(self.statement(query, parameters)?))
    }

    fn vault_path(&self) -> &Path {
        &self.name
    }
}

/// A prepared query.
struct PostgresSqlStatement<'r> {
    reader: &'r PostgresSqlReader<'r>,
    /// The query as it was given.
    text: String,
    query: PostgresQuery,
    /// The rows of tables of contents, after the parameters of the query.
    contents: Vec<CellColumn>,
    columns: Vec<String>,
}

impl PostgresSqlStatement<'_> {
    fn failed(&self, failure: PostgresError) -> SqlError {
        self.reader.failed(failure, &self.text, false)
    }

    fn run(&self, sql: &str) -> PostgresResult<VecDeque<Vec<Cell>>> {
        let values = self.query.values.iter().map(CellParameter::typed);
        let parameters: Vec<_> = values.chain(self.contents.iter().map(CellColumn::typed)).collect();
        let rows = self.reader.attempt(|session| session.query(sql, &parameters))?;
        rows.iter().map(cells).collect()
    }

    /// Opens a cursor, and returns its name.
    fn open(&self) -> Result<String, SqlError> {
        let number = self.reader.cursors.get();
        self.reader.cursors.set(number + 1);
        let name = format!("runvault_{number}");
        let sql = format!("DECLARE {name} NO SCROLL CURSOR FOR {}", self.query.sql);
        self.run(&sql).map_err(|failure| self.failed(failure))?;
        Ok(name)
    }
}

impl SqlStatement for PostgresSqlStatement<'_> {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn rows(&mut self) -> SqlRows<'_> {
        if self.query.is_explanation {
            let explained = self.run(&self.query.sql).map_err(|failure| self.failed(failure));
            return match explained {
                Ok(rows) => Box::new(rows.into_iter().map(Ok)),
                Err(error) => Box::new(std::iter::once(Err(error))),
            };
        }
        match self.open() {
            Ok(cursor) => Box::new(PostgresSqlRows {
                statement: self,
                cursor: Some(cursor),
                fetched: VecDeque::new().into_iter(),
            }),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}

/// The rows of a cursor, fetched a number at a time. The first error is the last item.
struct PostgresSqlRows<'q> {
    statement: &'q PostgresSqlStatement<'q>,
    /// The cursor, until its last row is fetched.
    cursor: Option<String>,
    fetched: IntoIter<Vec<Cell>>,
}

impl PostgresSqlRows<'_> {
    fn fetch(&mut self) -> Result<(), SqlError> {
        let Some(cursor) = &self.cursor else { return Ok(()) };
        let session = &self.statement.reader.view.session;
        let rows =
            self.statement.reader.attempt(|_| session.query(&format!("FETCH {STEP} FROM {cursor}"), &[]));
        let rows = rows.and_then(|rows| rows.iter().map(cells).collect::<PostgresResult<VecDeque<_>>>());
        let is_end = rows.as_ref().map_or(true, |rows| rows.len() < STEP);
        if is_end {
            self.close();
        }
        self.fetched = rows.map_err(|failure| self.statement.failed(failure))?.into_iter();
        Ok(())
    }

    fn close(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            // If this fails, it stays open until the transaction ends.
            let _ = self.statement.reader.attempt(|session| session.batch(&format!("CLOSE {cursor}")));
        }
    }
}

impl Iterator for PostgresSqlRows<'_> {
    type Item = Result<Vec<Cell>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.fetched.next() {
            return Some(Ok(row));
        }
        match self.fetch() {
            Ok(()) => self.fetched.next().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Drop for PostgresSqlRows<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
