//! The tables, and the statements about them, that vaults in files and in PostgreSQL share.
//!
//! A statement is text with the parameters `?1`, `?2` and so on. What the two databases write differently is in [`Dialect`].

mod annotations;
mod artifacts;
mod captures;
mod dialect;
mod inspection;
mod names;
mod statistics;
mod stored;
mod table;
mod tombstones;
mod value;

use std::collections::HashMap;
use std::hash::Hash;

use crate::digest::{CoreHash, Digest};

pub(in crate::storage) use annotations::{
    AnnotationChanges, annotations, label_keys, label_values, manual_links, tagged, values_of_label,
};
pub(in crate::storage) use artifacts::{artifacts, attributes, attributes_named, resolve};
pub(in crate::storage) use captures::{captures, captures_with, preferred_captures};
pub(in crate::storage) use dialect::Dialect;
#[cfg(feature = "postgres")]
pub(in crate::storage) use inspection::blobs_without_captures;
pub(in crate::storage) use inspection::{
    Question, QuestionSubject, SqlInspection, artifacts_between, ask, captures_sealed_for, journaled_rows_of,
    stored_kinds, take_journaled, undeleted_artifacts, unreferenced_blobs,
};
pub(in crate::storage) use names::{has_namesake, missing_names, named, names, shared_names};
#[cfg(feature = "postgres")]
pub(in crate::storage) use names::{has_namesake_condition, is_original};
pub(in crate::storage) use statistics::statistics;
pub(in crate::storage) use stored::{
    DerivedTable, captured, captured_rows, derived_row, derived_rows, differently_derived, journaled_row,
    journaled_rows,
};
pub(in crate::storage) use table::SqlTable;
#[cfg(feature = "postgres")]
pub(in crate::storage) use table::SqlType;
pub(in crate::storage) use tombstones::{
    TOMBSTONE, put_tombstones, readmit, removed_artifacts, tombstone, tombstones_beginning, tombstones_with,
};
pub(in crate::storage) use value::{DamagedValue, SqlParameter, SqlRow, SqlValue};

/// A transaction that runs statements.
pub(in crate::storage) trait SqlSession {
    /// An error of a statement or about what it returns.
    type Error: From<DamagedValue>;

    /// What the database writes differently.
    const DIALECT: Dialect;

    /// Returns the rows of a query.
    fn rows(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> Result<Vec<SqlRow>, Self::Error>;

    /// Runs a statement that returns no rows.
    fn execute(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> Result<(), Self::Error>;

    /// Inserts rows, each with a value for every column. Rows whose key is in the table already are left out.
    fn insert(&self, table: &SqlTable, rows: Vec<Vec<SqlValue>>) -> Result<(), Self::Error>;

    /// Deletes the rows with these keys. Each begins with the values of the columns of the key; others are ignored.
    fn delete(&self, table: &SqlTable, keys: &[Vec<SqlValue>]) -> Result<(), Self::Error>;
}

/// Returns what `read` makes of each row of a query.
fn read_rows<S: SqlSession, T>(
    session: &S,
    sql: &str,
    parameters: &[SqlParameter<'_>],
    read: impl Fn(&SqlRow) -> Result<T, DamagedValue>,
) -> Result<Vec<T>, S::Error> {
    Ok(session.rows(sql, parameters)?.iter().map(read).collect::<Result<_, _>>()?)
}

/// Returns what `read` makes of the rows of each artifact, whose core hash is the first column of a query. The first parameter
/// has the artifacts.
fn read_rows_of<S: SqlSession, T: Clone>(
    session: &S,
    sql: &str,
    (of, others): (&[CoreHash], &[SqlParameter<'_>]),
    read: impl Fn(&SqlRow) -> Result<T, DamagedValue>,
) -> Result<Vec<Vec<T>>, S::Error> {
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
) -> Result<HashMap<CoreHash, i64>, S::Error> {
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
