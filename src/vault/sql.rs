//! SQL access to the contents of a vault.
//!
//! The store executes queries and defines the views in the vault's file. This module adds the computed views: the
//! tables that kinds declare, mentions, and links. `docs/sql.md` is the user documentation.

mod datasette;
#[cfg(feature = "parquet")]
mod parquet;

use std::collections::BTreeMap;
use std::path::Path;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::PathName;
use super::query::{Direction, Link, LinkOrigin, LinkTarget, Linker};
use crate::artifact::ColumnType::{Any, Hash, Json, Number, Real, Text, Time};
use crate::artifact::{ArtifactLocation, Cell, Column, Kind, Table, TableRow};
use crate::formats;
use crate::storage::{
    ArtifactRecord, Capability, ComputedView, KindView, MentionRecord, SavedTable, Snapshot, SqlQueries,
    SqlReader, SqlStatement, StoredMember,
};

pub use crate::storage::{RowProgress, SaveSummary, SqlError, SqlRows as Rows, SqlView};
pub use datasette::{METADATA, SaveForm, SaveOptions, save};

/// A reader that answers SQL queries about the vault in its state when the reader was created. It cannot write.
pub type VaultSqlReader<'s> = dyn SqlReader + 's;

/// A prepared query.
pub type VaultSqlStatement<'r> = dyn SqlStatement + 'r;

/// Creates a reader of the current contents of a vault.
pub(super) fn reader(queries: &dyn SqlQueries) -> Result<Box<VaultSqlReader<'_>>, SqlError> {
    queries.reader(&of_kinds(), computed_views())
}

impl Vault {
    /// Returns an SQL reader of a snapshot of the vault. [`views`] lists the available views.
    ///
    /// ```
    /// # use runvault::{Vault, artifact::Cell, intake::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let reader = vault.sql()?;
    /// let model = ("model", Cell::Text("triage-large-2".to_owned()));
    /// let mut responses = reader.prepare(
    ///     "SELECT i.response_content FROM sessions s JOIN interactions i USING (artifact)
    ///       WHERE s.model_id = :model AND i.i = 1",
    ///     &[model],
    /// )?;
    /// for row in responses.rows() {
    ///     assert_eq!(row?, [Cell::Text("bug".to_owned())]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A store error: the vault cannot be read or written.
    pub fn sql(&self) -> Result<Box<VaultSqlReader<'_>>, SqlError> {
        self.storage.expect(Capability::Sql)?;
        reader(self.storage.sql()?)
    }
}

/// Returns all views that queries can use: those in the vault's file first.
#[must_use]
pub fn views() -> Vec<SqlView> {
    let of_kinds: Vec<SqlView> = of_kinds().iter().map(SqlView::from).collect();
    SqlView::plain().into_iter().chain(of_kinds).chain(computed_views().iter().map(SqlView::from)).collect()
}

/// Returns the views of the artifacts of each kind.
fn of_kinds() -> Vec<KindView> {
    let of_kind = |kind: Kind| KindView { name: kind.plural(), kind: kind.name(), view: kind.info().view };
    formats::ALL.into_iter().map(of_kind).collect()
}

/// Returns the views of the contents of artifacts.
fn computed_views() -> Vec<ComputedView> {
    let tables = formats::ALL
        .into_iter()
        .flat_map(|kind| kind.info().tables.iter().map(move |table| for_kind(kind, table)));
    tables.chain([mentions_view(), links_view()]).collect()
}

fn for_kind(kind: Kind, table: &'static Table) -> ComputedView {
    ComputedView {
        name: table.name,
        about: table.about,
        kind: Some(kind.name()),
        parent: Some(kind.plural()),
        columns: table.columns.to_vec(),
        rows: Box::new(|snapshot, artifact, _| contents(snapshot, artifact, table)),
    }
}

/// Returns the contents of an artifact's preferred capture. All captures agree on the hashed part.
fn contents(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    table: &Table,
) -> Result<Vec<TableRow>, SqlError> {
    let Some(capture) = snapshot.preferred_capture(artifact.core)? else { return Ok(Vec::new()) };
    let members = snapshot.read_members(artifact.core, capture.capture)?;
    (table.rows)(&StoredMember::borrowed(&members))
        .map_err(|error| SqlError::Unreadable { core: artifact.core, message: error.to_string() })
}

const MENTIONS: &[Column] = &[
    Column::new("role", Text, "the role, such as `prompt`").facet(),
    Column::new("unit", Text, "the unit of the place, such as `interaction`; empty if it is a pointer"),
    Column::new("place", Any, "the place: a number from 0, or a JSON Pointer"),
    Column::new("digest", Hash, "the digest"),
];

fn mentions_view() -> ComputedView {
    ComputedView {
        name: "mentions",
        about: "a digest that an artifact states or implies",
        kind: None,
        parent: Some(ARTIFACTS),
        columns: MENTIONS.to_vec(),
        rows: Box::new(|snapshot, artifact, _| {
            let mut mentions = snapshot.mentions(&[artifact.core], None)?.pop().unwrap_or_default();
            mentions.sort_unstable();
            Ok(mentions.into_iter().map(mention_row).collect())
        }),
    }
}

fn mention_row(mention: MentionRecord) -> TableRow {
    let place = match mention.place {
        ArtifactLocation::Index(index) => Cell::Integer(i64::from(index)),
        ArtifactLocation::Pointer(pointer) => Cell::Text(pointer),
    };
    vec![
        Cell::Text(mention.role.to_string()),
        Cell::Text(mention.unit.to_string()),
        place,
        Cell::Text(mention.digest.to_string()),
    ]
}

const LINKS: &[Column] = &[
    Column::new("relation", Text, "the relation, such as `replays`").facet(),
    Column::new(
        "target",
        Hash,
        "the core hash of the other artifact; if it is not in the vault, the digest or name",
    ),
    Column::new(
        "target_artifact",
        Number,
        "the number of the other artifact; NULL if it is not in the vault",
    )
    .referring_to(ARTIFACTS, "artifact"),
    Column::new("target_kind", Text, "the kind of the other artifact; NULL if it is not in the vault")
        .facet(),
    Column::new("origin", Text, "`derived` from artifacts, or `stated` manually").facet(),
    Column::new("because", Text, "the reason for a derived link; the note of a manual one"),
];

fn links_view() -> ComputedView {
    // A query for all links visits artifacts with nearly everything in common, so the linker's cache is shared.
    let linker = Mutex::new(Linker::default());
    ComputedView {
        name: "links",
        about: "a link between two artifacts, from `artifact` to `target`",
        kind: None,
        parent: Some(ARTIFACTS),
        columns: LINKS.to_vec(),
        rows: Box::new(move |snapshot, artifact, next| {
            let mut linker = linker.lock();
            let next = next.iter().map(|artifact| artifact.core);
            let links = linker.links(snapshot, artifact, next)?.into_iter();
            // Every link has one source artifact, so it is listed once.
            Ok(links.filter(|link| link.direction == Direction::Out).map(link_row).collect())
        }),
    }
}

fn link_row(link: Link) -> TableRow {
    let [target, number, kind] = match link.target {
        LinkTarget::Artifact(other) => [
            Cell::Text(other.core.to_string()),
            Cell::Integer(other.addition.cast_signed()),
            Cell::Text(other.kind),
        ],
        LinkTarget::MissingDigest(digest) => [Cell::Text(digest.to_string()), Cell::Null, Cell::Null],
        LinkTarget::MissingName(name) => [Cell::Text(name), Cell::Null, Cell::Null],
    };
    let (origin, because) = match link.origin {
        LinkOrigin::Derived(because) => ("derived", Cell::Text(because)),
        LinkOrigin::Manual(note) => ("stated", note.as_deref().into()),
    };
    vec![Cell::Text(link.relation), target, number, kind, Cell::Text(origin.to_owned()), because]
}

/// The name of the column with the number of a row, in tables without another key.
pub const ROW_ID: &str = "row_id";
/// The name of the column with what an artifact is called.
pub const TITLE: &str = "title";

/// The view of all artifacts.
const ARTIFACTS: &str = "artifacts";

/// Maximum number of characters of a title.
const MAX_TITLE: usize = 80;
/// Number of digits of a hash in a title.
const DIGITS: usize = 12;

/// Returns the tables of these views. They have the same names and columns, and a key. Columns that people read come
/// first; hashes and JSON are last.
#[must_use]
pub fn saved_tables(views: &[SqlView]) -> Vec<SavedTable> {
    views.iter().map(saved_table).collect()
}

fn saved_table(view: &SqlView) -> SavedTable {
    let title = title_expression(view.name);
    let is_numbered = !view.columns.iter().any(|column| column.is_key);
    let mut columns: Vec<Column> = view.columns.iter().copied().map(with_one_type).collect();
    if title.is_some() {
        columns
            .push(Column::new(TITLE, Text, "its kind, and its id or the start of its core hash").searched());
    }
    columns.sort_by_key(column_rank);
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
fn with_one_type(column: Column) -> Column {
    if column.sort == Any { Column { sort: Text, ..column } } else { column }
}

fn is_any(view: &SqlView, column: &Column) -> bool {
    view.columns.iter().any(|of_view| of_view.name == column.name && of_view.sort == Any)
}

/// Returns the position of a column among the others: equal ones stay in their order.
fn column_rank(column: &Column) -> usize {
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
fn title_expression(view: &str) -> Option<String> {
    if let Some(kind) = formats::ALL.into_iter().find(|kind| kind.plural() == view) {
        return Some(name_expression(
            kind,
            kind.info().view.named_by.map(|column| format!("v.\"{column}\"")),
        ));
    }
    let cases = formats::ALL.into_iter().map(|kind| {
        let name = kind.info().view.named_by.map(|column| {
            let kinds = kind.plural();
            format!("(SELECT k.\"{column}\" FROM \"{kinds}\" k WHERE k.artifact = v.artifact)")
        });
        format!(" WHEN '{}' THEN {}", kind.name(), name_expression(kind, name))
    });
    (view == ARTIFACTS).then(|| format!("CASE v.kind{} ELSE v.kind END", cases.collect::<String>()))
}

/// Returns the expression for the noun of a kind, and a name or the start of the hash.
fn name_expression(kind: Kind, name: Option<String>) -> String {
    let digits = crate::digest::PREFIX.len() + 1;
    let hash = format!("substr(v.core_hash, {digits}, {DIGITS})");
    let name = name.map_or(hash.clone(), |name| format!("coalesce(nullif({name}, ''), {hash})"));
    format!("substr('{} ' || {name}, 1, {MAX_TITLE})", kind.noun())
}

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
