//! What a vault has, for people who ask in SQL.
//!
//! The store answers queries and knows the views in the vault's file. Here are the views that it cannot know: the tables
//! that kinds declare, what artifacts mention, and how they are linked. `docs/sql.md` is written for who asks.

use std::sync::{Mutex, PoisonError};

use crate::artifact::ColumnSort::{Any, Hash, Number, Text};
use crate::artifact::{Cell, Cells, Column, Kind, Place, Table};
use crate::canonical::reader::Limits;
use crate::kinds;
use crate::query::{Direction, Link, LinkTarget, Linker, Origin};
use crate::store::{ArtifactRow, Computed, MentionRow, Snapshot, Store, StoredMember};

pub use crate::store::{Reader, Rows, Saved, SqlError, Statement, View};

/// Begins to answer questions about what is in `store` now.
pub(crate) fn reader(store: &Store) -> Result<Reader<'_>, SqlError> {
    store.reader(computed())
}

/// All views that queries can name: those in the vault's file first.
#[must_use]
pub fn views() -> Vec<View> {
    View::plain().into_iter().chain(computed().iter().map(View::from)).collect()
}

fn computed() -> Vec<Computed> {
    let tables =
        kinds::ALL.into_iter().flat_map(|kind| kind.tables().iter().map(move |table| of_kind(kind, table)));
    tables.chain([mentions(), links()]).collect()
}

fn of_kind(kind: Kind, table: &'static Table) -> Computed {
    Computed {
        name: table.name,
        about: table.about,
        kind: Some(kind.name()),
        columns: table.columns,
        rows: Box::new(|snapshot, artifact| contents(snapshot, artifact, table)),
    }
}

/// What the preferred capture of an artifact contains. All captures agree on what is hashed.
fn contents(snapshot: &Snapshot<'_>, artifact: &ArtifactRow, table: &Table) -> Result<Vec<Cells>, SqlError> {
    let Some(capture) = snapshot.preferred_capture(artifact.id)? else { return Ok(Vec::new()) };
    let members = snapshot.members(artifact.core, capture.capture)?;
    (table.rows)(&StoredMember::borrowed(&members), &Limits::most())
        .map_err(|error| SqlError::Unreadable { core: artifact.core, message: error.to_string() })
}

const MENTIONS: &[Column] = &[
    Column::new("role", Text, "in which role, such as `prompt`"),
    Column::new("unit", Text, "what the place counts, such as `interaction`; empty where it is a pointer"),
    Column::new("place", Any, "where: a number from 0, or a JSON Pointer"),
    Column::new("digest", Hash, "the digest"),
];

fn mentions() -> Computed {
    Computed {
        name: "mentions",
        about: "a digest that an artifact states or implies",
        kind: None,
        columns: MENTIONS,
        rows: Box::new(|snapshot, artifact| {
            Ok(snapshot.mentions(artifact.id)?.into_iter().map(mention_row).collect())
        }),
    }
}

fn mention_row(mention: MentionRow) -> Cells {
    let place = match mention.place {
        Place::Index(index) => Cell::Integer(i64::from(index)),
        Place::Pointer(pointer) => Cell::Text(pointer),
    };
    vec![Cell::Text(mention.role), Cell::Text(mention.unit), place, Cell::Text(mention.digest.to_string())]
}

const LINKS: &[Column] = &[
    Column::new("relation", Text, "how, such as `replays`"),
    Column::new("target", Hash, "the core hash of the other; if it is not in the vault, the digest or name"),
    Column::new("target_artifact", Number, "the number of the other; NULL if it is not in the vault"),
    Column::new("target_kind", Text, "the kind of the other; NULL if it is not in the vault"),
    Column::new("origin", Text, "`derived` from what artifacts say, or `stated` by a person"),
    Column::new("because", Text, "what makes a derived link; the note on a stated one"),
];

fn links() -> Computed {
    // Who asks for all links comes to artifacts that have nearly everything in common.
    let linker = Mutex::new(Linker::default());
    Computed {
        name: "links",
        about: "a link of an artifact to another one; `artifact` relates to `target`",
        kind: None,
        columns: LINKS,
        rows: Box::new(move |snapshot, artifact| {
            let mut linker = linker.lock().unwrap_or_else(PoisonError::into_inner);
            let links = linker.links(snapshot, artifact)?.into_iter();
            // Every link goes out of one artifact, so each is a row once.
            Ok(links.filter(|link| link.direction == Direction::Out).map(link_row).collect())
        }),
    }
}

fn link_row(link: Link) -> Cells {
    let [target, number, kind] = match link.target {
        LinkTarget::Artifact(other) => {
            [Cell::Text(other.core.to_string()), Cell::Integer(other.id.number()), Cell::Text(other.kind)]
        }
        LinkTarget::MissingDigest(digest) => [Cell::Text(digest.to_string()), Cell::Null, Cell::Null],
        LinkTarget::MissingName(name) => [Cell::Text(name), Cell::Null, Cell::Null],
    };
    let (origin, because) = match link.origin {
        Origin::Derived(because) => ("derived", Cell::Text(because)),
        Origin::Stated(note) => ("stated", note.as_deref().into()),
    };
    vec![Cell::Text(link.relation), target, number, kind, Cell::Text(origin.to_owned()), because]
}
