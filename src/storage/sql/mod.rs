//! The tables, and the statements about them, that vaults in files and in PostgreSQL share.
//!
//! A statement is text with the parameters `?1`, `?2` and so on. What the two databases write differently is in [`Dialect`].

mod annotations;
mod artifacts;
mod captures;
mod dialect;
mod find;
mod inspection;
mod journal;
mod reindex;
mod repair;
mod restored;
mod statistics;
mod stored;
mod value;

use std::collections::HashMap;
use std::hash::Hash;

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};

pub(in crate::storage) use annotations::{AnnotationChanges, annotations};
#[cfg(feature = "postgres")]
pub(in crate::storage) use artifacts::artifacts;
pub(in crate::storage) use artifacts::attributes_named;
#[cfg(feature = "postgres")]
pub(in crate::storage) use artifacts::{has_namesake_condition, is_original};
#[cfg(feature = "postgres")]
pub(in crate::storage) use captures::captures_with;
pub(in crate::storage) use captures::{capture_hashes, captured_as, captures, captures_between, warnings};
pub(in crate::storage) use dialect::Dialect;
pub(in crate::storage) use find::{
    ConditionRows, ContainedArtifacts, FindSnapshot, NumberedArtifact, RequiredMention,
};
#[cfg(feature = "postgres")]
pub(in crate::storage) use find::{PAGE_COLUMNS, SortExpression, matching, page_artifact};
#[cfg(feature = "postgres")]
pub(in crate::storage) use inspection::blobs_without_captures;
pub(in crate::storage) use inspection::{
    Question, QuestionSubject, SqlInspection, ask, journaled_rows_of, take_journaled, undeleted_artifacts,
    wrong_creation_times,
};
pub(in crate::storage) use journal::{TOMBSTONE, put_tombstones, readmit, tombstone, tombstones_with};
pub(in crate::storage) use reindex::{finish_reindex, reindex};
pub(in crate::storage) use repair::{SqlRepairs, rebuild, repair, replay};
pub(in crate::storage) use restored::UNUSED_VALUE;
pub(in crate::storage) use stored::{
    DerivedTable, captured, captured_rows, derived_row, derived_rows, differently_derived, journaled_row,
    journaled_rows, seal,
};
#[cfg(feature = "postgres")]
pub(in crate::storage) use value::SqlType;
pub(in crate::storage) use value::{
    ARTIFACT, DamagedValue, SqlParameter, SqlRow, SqlTable, SqlValue, StatementParameters, ceil_millis,
};

/// A result of a statement.
type SqlResult<T, S> = Result<T, <S as SqlSession>::Error>;

/// A transaction that runs statements.
pub(in crate::storage) trait SqlSession {
    /// An error of a statement or about what it returns.
    type Error: From<DamagedValue>;

    /// What the database writes differently.
    const DIALECT: Dialect;

    /// Returns the rows of a query.
    fn rows(&self, sql: &str, parameters: &[SqlParameter]) -> Result<Vec<SqlRow>, Self::Error>;

    /// Calls `take` with each row of a query as they arrive, without keeping them. `take` must not use the session.
    fn each(
        &self,
        sql: &str,
        parameters: &[SqlParameter],
        take: &mut dyn FnMut(SqlRow) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Runs a statement that returns no rows, and returns the number of rows that it changed.
    fn execute(&self, sql: &str, parameters: &[SqlParameter]) -> Result<u64, Self::Error>;

    /// Inserts rows, each with a value for every column. Rows whose key is in the table already are left out.
    fn insert(&self, table: &SqlTable, rows: Vec<Vec<SqlValue>>) -> Result<(), Self::Error>;

    /// Deletes the rows with these keys. Each begins with the values of the columns of the key; others are ignored.
    fn delete(&self, table: &SqlTable, keys: &[Vec<SqlValue>]) -> Result<(), Self::Error>;
}

/// A snapshot of a vault in a database. What both databases are asked with the same statements follows from it; engines
/// implement the other traits of a [`Snapshot`](crate::storage::Snapshot) with structures of their own.
pub(in crate::storage) trait SqlSnapshot {
    type Session: SqlSession;

    /// Returns the transaction.
    fn session(&self) -> &Self::Session;

    /// Returns the answer, or the error with the name of the vault.
    fn answer<T>(&self, outcome: SqlResult<T, Self::Session>) -> crate::storage::Result<T>;

    /// Returns the bytes of a blob that belongs to a capture, hashed again.
    fn bytes(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> crate::storage::Result<Vec<u8>>;

    /// Checks that the texts of journal entries are read as the schema says.
    fn expect_journal_texts(&self) -> crate::storage::Result<()> {
        Ok(())
    }

    /// Returns what `read` makes of each row of a query.
    fn read_rows<T>(
        &self,
        sql: &str,
        parameters: &[SqlParameter],
        read: impl Fn(&SqlRow) -> Result<T, DamagedValue>,
    ) -> crate::storage::Result<Vec<T>> {
        self.answer(read_rows(self.session(), sql, parameters, read))
    }
}

/// Returns what `read` makes of each row of a query.
fn read_rows<S: SqlSession, T>(
    session: &S,
    sql: &str,
    parameters: &[SqlParameter],
    read: impl Fn(&SqlRow) -> Result<T, DamagedValue>,
) -> SqlResult<Vec<T>, S> {
    Ok(session.rows(sql, parameters)?.iter().map(read).collect::<Result<_, _>>()?)
}

/// Returns what `read` makes of the rows of each artifact, whose core hash is the first column of a query. The first parameter
/// has the artifacts.
fn read_rows_of<S: SqlSession, T: Clone>(
    session: &S,
    sql: &str,
    of: &[CoreHash],
    others: &[SqlParameter],
    read: impl Fn(&SqlRow) -> Result<T, DamagedValue>,
) -> SqlResult<Vec<Vec<T>>, S> {
    let mut found: HashMap<CoreHash, Vec<T>> = HashMap::new();
    for row in session.rows(sql, &[&[of.into()], others].concat())? {
        found.entry(row.core(0)?).or_default().push(read(&row)?);
    }
    Ok(in_order(of, &found))
}

/// Returns the numbers of those artifacts that are stored.
fn artifact_numbers<S: SqlSession>(
    session: &S,
    of: impl IntoIterator<Item = CoreHash>,
) -> SqlResult<HashMap<CoreHash, i64>, S> {
    let of: Vec<CoreHash> = of.into_iter().collect();
    let sql = format!("SELECT a.core, a.id FROM {}", S::DIALECT.artifacts("?1"));
    let numbers =
        read_rows(session, &sql, &[of.as_slice().into()], |row| Ok((row.core(0)?, row.integer(1)?)));
    Ok(numbers?.into_iter().collect())
}

/// Returns the key of a text, by which PostgreSQL finds it. Keys are not unique: also compare the text.
pub(in crate::storage) fn text_key(text: &str) -> i64 {
    Digest::from_content(text.as_bytes()).key()
}

/// Returns what was found for each key, in the order of the keys.
pub(in crate::storage) fn in_order<K: Eq + Hash, T: Clone + Default>(
    keys: &[K],
    found: &HashMap<K, T>,
) -> Vec<T> {
    keys.iter().map(|key| found.get(key).cloned().unwrap_or_default()).collect()
}
