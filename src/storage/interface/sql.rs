//! SQL queries of a vault.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::Snapshot;
use crate::artifact::{ArtifactView, Cell, Column, TableRow};
use crate::digest::CoreHash;
use crate::files::FileWriteError;
use crate::storage::{ArtifactRecord, StorageError};

/// SQL queries by an engine that has [`Capability::Sql`](super::Capability::Sql).
pub trait SqlQueries: Send + Sync {
    /// Creates a reader of the current state. Queries can use the views of the engine, those of `of_kinds`, and the
    /// computed ones.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn reader(
        &self,
        of_kinds: &[KindView],
        computed: Vec<ComputedView>,
    ) -> Result<Box<dyn SqlReader + '_>, SqlError>;
}

/// A reader that answers SQL queries about the vault in its state when the reader was created. It cannot write.
pub trait SqlReader {
    /// Returns the views that queries can use.
    fn views(&self) -> &[SqlView];

    /// Calls `callback` once, while a query runs, if queries read the same artifacts repeatedly: those that join contents
    /// do, and can read them once with `WITH … AS MATERIALIZED`.
    fn on_rereading(&self, callback: Box<dyn FnOnce() + Send>);

    /// Prepares a query, with a value for each of its parameters: `:name` has that of `name`.
    ///
    /// # Errors
    /// Returns a [`SqlError`], except for errors that only occur when the query runs.
    fn prepare(
        &self,
        query: &str,
        parameters: &[(&str, Cell)],
    ) -> Result<Box<dyn SqlStatement + '_>, SqlError>;

    /// Returns the path of the vault, whose files must not be overwritten.
    fn vault_path(&self) -> &Path;
}

/// A function that is called after each row of a table that is written, with the number of its rows so far, and that can
/// interrupt the writing.
pub type RowProgress<'w> = dyn FnMut(&'static str, u64) -> ControlFlow<()> + 'w;

/// A table that is written for other programs.
#[derive(Clone, Debug)]
pub struct SavedTable {
    /// The name.
    pub name: &'static str,
    /// A description of a row.
    pub about: &'static str,
    /// Its columns, in order. At most one is a key.
    pub columns: Vec<Column>,
    /// Whether the first column is the number of the row, from 1. The query has no such column.
    pub is_numbered: bool,
    /// The query for the rows, which have a cell for every other column.
    pub query: String,
}

/// A prepared query.
pub trait SqlStatement {
    /// Returns the names of the result's columns, as the query defines them: two may be the same.
    fn columns(&self) -> &[String];

    /// Runs the query. Rows are computed one by one, as they are requested, each with a cell for every column. The first
    /// error is the last item.
    fn rows(&mut self) -> SqlRows<'_>;
}

/// The rows of a result.
pub type SqlRows<'q> = Box<dyn Iterator<Item = Result<Vec<Cell>, SqlError>> + 'q>;

/// A view that queries can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlView {
    /// The name.
    pub name: &'static str,
    /// A description of a row.
    pub about: &'static str,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// Whether it is stored in the vault's file, where any program that reads SQLite can use it.
    pub is_plain: bool,
}

/// The view of the artifacts of a kind. Its columns contain attributes: of several values the first text, and the largest
/// number or time.
#[derive(Clone, Copy, Debug)]
pub struct KindView {
    /// The name.
    pub name: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Its description and its own columns.
    pub view: ArtifactView,
}

/// A view whose rows are computed, for one artifact at a time.
///
/// It has the columns `artifact` and `core_hash`, followed by its own.
pub struct ComputedView {
    /// The name.
    pub name: &'static str,
    /// A description of a row.
    pub about: &'static str,
    /// The kind of the artifacts that have rows; `None` for all kinds.
    pub kind: Option<&'static str>,
    /// The view to whose rows the rows of this one belong; `None` if an artifact has one row here.
    pub parent: Option<&'static str>,
    /// Its own columns.
    pub columns: Vec<Column>,
    /// The function for the rows of an artifact, each with a cell for every column of its own.
    pub rows: RowGenerator,
}

/// A function that computes the rows of an artifact. It is also given artifacts whose rows are probably needed next, to read
/// what they are computed from together.
pub type RowGenerator = Box<
    dyn Fn(&dyn Snapshot, &ArtifactRecord, &[ArtifactRecord]) -> Result<Vec<TableRow>, SqlError>
        + Send
        + Sync,
>;

/// A completed export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveSummary {
    /// Its size in bytes.
    pub bytes: u64,
    /// The number of rows of each table, by name, in the order of the tables.
    pub rows: Vec<(&'static str, u64)>,
}

/// An error that prevents answering an SQL query, or answering it completely.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// It is not valid SQL, or refers to something that does not exist.
    #[error("{0}")]
    Query(String),
    /// It does more than reading.
    #[error("{0}; a query can only read: SELECT, VALUES, WITH … SELECT, or EXPLAIN of them")]
    Refused(String),
    /// It contains several statements.
    #[error("the query has more than one statement; run them one at a time")]
    Several,
    /// It contains no statement.
    #[error("the query has no statement")]
    Empty,
    /// A parameter has no value, or a value has no parameter.
    #[error("{0}")]
    Parameter(String),
    /// This program cannot interpret a document in the vault, though its bytes are intact.
    #[error("the document of {core} cannot be read by this version of runvault: {message}")]
    Unreadable {
        /// The artifact.
        core: CoreHash,
        /// The cause.
        message: String,
    },
    /// The file to be written already exists.
    #[error("cannot write {}: it already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written there.
    #[error("cannot write {}: {reason}", path.display())]
    Place {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// This build cannot do it.
    #[error("{0}")]
    Unsupported(String),
    /// The caller interrupted it, and nothing was written.
    #[error("interrupted")]
    Interrupted,
    /// A store error.
    #[error(transparent)]
    Store(#[from] StorageError),
}

impl From<FileWriteError> for SqlError {
    fn from(error: FileWriteError) -> Self {
        match error {
            FileWriteError::Exists { path } => Self::Exists { path },
            FileWriteError::Refused { path, reason } => Self::Place { path, reason },
            FileWriteError::Io { path, source } => StorageError::io(&path, source).into(),
        }
    }
}
