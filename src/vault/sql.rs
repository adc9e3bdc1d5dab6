//! SQL access to the contents of a vault.
//!
//! The store executes queries and defines the views in the vault's file. This module adds the computed views: the
//! tables that kinds declare, mentions, and links. `docs/sql.md` is the user documentation.

use std::sync::{Mutex, PoisonError};

use crate::artifact::ColumnType::{Any, Hash, Number, Text};
use crate::artifact::{Cell, Cells, Column, Kind, Place, Table};
use crate::formats;
use crate::json::reader::Limits;
use crate::storage::{ArtifactRecord, Computed, Mention, Snapshot, Store, StoredMember};
use crate::vault::query::{Direction, Link, LinkTarget, Linker, Origin};

pub use crate::storage::{Reader, Rows, Saved, SqlError, Statement, View};

/// Creates a reader of the current contents of `store`.
pub(crate) fn reader(store: &Store) -> Result<Reader<'_>, SqlError> {
    store.reader(computed())
}

/// Returns all views that queries can use: those in the vault's file first.
#[must_use]
pub fn views() -> Vec<View> {
    View::plain().into_iter().chain(computed().iter().map(View::from)).collect()
}

fn computed() -> Vec<Computed> {
    let tables = formats::ALL
        .into_iter()
        .flat_map(|kind| kind.tables().iter().map(move |table| for_kind(kind, table)));
    tables.chain([mentions(), links()]).collect()
}

fn for_kind(kind: Kind, table: &'static Table) -> Computed {
    Computed {
        name: table.name,
        about: table.about,
        kind: Some(kind.name()),
        columns: table.columns,
        rows: Box::new(|snapshot, artifact| contents(snapshot, artifact, table)),
    }
}

/// Returns the contents of an artifact's preferred capture. All captures agree on the hashed part.
fn contents(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    table: &Table,
) -> Result<Vec<Cells>, SqlError> {
    let Some(capture) = snapshot.preferred_capture(artifact.core)? else { return Ok(Vec::new()) };
    let members = snapshot.read_members(artifact.core, capture.capture)?;
    (table.rows)(&StoredMember::borrowed(&members), &Limits::most())
        .map_err(|error| SqlError::Unreadable { core: artifact.core, message: error.to_string() })
}

const MENTIONS: &[Column] = &[
    Column::new("role", Text, "the role, such as `prompt`"),
    Column::new("unit", Text, "the unit of the place, such as `interaction`; empty if it is a pointer"),
    Column::new("place", Any, "the place: a number from 0, or a JSON Pointer"),
    Column::new("digest", Hash, "the digest"),
];

fn mentions() -> Computed {
    Computed {
        name: "mentions",
        about: "a digest that an artifact states or implies",
        kind: None,
        columns: MENTIONS,
        rows: Box::new(|snapshot, artifact| {
            let mut mentions = snapshot.mentions(&[artifact.core], None)?.pop().unwrap_or_default();
            mentions.sort();
            Ok(mentions.into_iter().map(mention_row).collect())
        }),
    }
}

fn mention_row(mention: Mention) -> Cells {
    let place = match mention.place {
        Place::Index(index) => Cell::Integer(i64::from(index)),
        Place::Pointer(pointer) => Cell::Text(pointer),
    };
    vec![Cell::Text(mention.role), Cell::Text(mention.unit), place, Cell::Text(mention.digest.to_string())]
}

const LINKS: &[Column] = &[
    Column::new("relation", Text, "the relation, such as `replays`"),
    Column::new(
        "target",
        Hash,
        "the core hash of the other artifact; if it is not in the vault, the digest or name",
    ),
    Column::new(
        "target_artifact",
        Number,
        "the number of the other artifact; NULL if it is not in the vault",
    ),
    Column::new("target_kind", Text, "the kind of the other artifact; NULL if it is not in the vault"),
    Column::new("origin", Text, "`derived` from artifacts, or `stated` manually"),
    Column::new("because", Text, "the reason for a derived link; the note of a manual one"),
];

fn links() -> Computed {
    // A query for all links visits artifacts with nearly everything in common, so the linker's cache is shared.
    let linker = Mutex::new(Linker::default());
    Computed {
        name: "links",
        about: "a link between two artifacts, from `artifact` to `target`",
        kind: None,
        columns: LINKS,
        rows: Box::new(move |snapshot, artifact| {
            let mut linker = linker.lock().unwrap_or_else(PoisonError::into_inner);
            let links = linker.links(snapshot, artifact)?.into_iter();
            // Every link has one source artifact, so it is listed once.
            Ok(links.filter(|link| link.direction == Direction::Out).map(link_row).collect())
        }),
    }
}

fn link_row(link: Link) -> Cells {
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
        Origin::Derived(because) => ("derived", Cell::Text(because)),
        Origin::Stated(note) => ("stated", note.as_deref().into()),
    };
    vec![Cell::Text(link.relation), target, number, kind, Cell::Text(origin.to_owned()), because]
}
