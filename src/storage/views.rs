//! The views that SQL queries can use: descriptions of those that `migrations/` creates, and of those of kinds.

use crate::artifact::ColumnType::{Hash, Json, Number, Text, Time};
use crate::artifact::{Column, ColumnType};
use crate::storage::interface::{ComputedView, KindView, SqlView};

impl SqlView {
    /// Returns the views that are stored in the vault's file.
    #[must_use]
    pub fn plain() -> Vec<Self> {
        let view = |(name, about, columns): &(&'static str, &'static str, &[Column])| Self {
            name,
            about,
            columns: columns.to_vec(),
            is_plain: true,
        };
        PLAIN.iter().map(view).collect()
    }
}

impl From<&KindView> for SqlView {
    fn from(of_kind: &KindView) -> Self {
        let common = [ARTIFACT.key(), CORE_HASH, ADDED_AT, SEEN_AT];
        let columns = common.iter().chain(of_kind.view.columns).copied().collect();
        Self { name: of_kind.name, about: of_kind.view.about, columns, is_plain: false }
    }
}

impl From<&ComputedView> for SqlView {
    fn from(computed: &ComputedView) -> Self {
        let artifact =
            computed.parent.map_or(ARTIFACT.key(), |parent| ARTIFACT.referring_to(parent, ARTIFACT.name));
        let columns = [artifact, CORE_HASH].iter().chain(&computed.columns).copied().collect();
        Self { name: computed.name, about: computed.about, columns, is_plain: false }
    }
}

/// Returns the query of the view of the artifacts of a kind. `schema` is what their names begin with if it is not the one that is searched.
pub(in crate::storage) fn query_of_kind(of_kind: &KindView, schema: &str) -> String {
    let columns = of_kind.view.columns.iter().map(|column| {
        let (name, value) = (column.name, attribute_value(*column));
        format!(
            ", (SELECT {value} FROM {schema}attributes t WHERE t.artifact = a.artifact AND t.name = '{name}') AS \"{name}\""
        )
    });
    format!(
        "SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at{}
           FROM {schema}artifacts a WHERE a.kind = '{}'",
        columns.collect::<String>(),
        of_kind.kind
    )
}

/// Describes the position in a query after `before`.
pub(in crate::storage) fn position_after(before: &str) -> String {
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
    format!(" (line {line}, column {column})")
}

/// Returns whether `name` is that of a view that is stored in the vault's file.
pub(in crate::storage) fn is_plain(name: &str) -> bool {
    PLAIN.iter().any(|(view, ..)| *view == name)
}

/// Returns what to add to the message of an engine if a query refers to a table that does not exist.
pub(in crate::storage) fn known_tables(views: &[SqlView]) -> String {
    let names: Vec<&str> = views.iter().map(|view| view.name).collect();
    format!("; tables: {}", names.join(", "))
}

/// Returns what to add to the message of an engine if a query refers to a column that does not exist: those of the views
/// that it names.
pub(in crate::storage) fn known_columns(views: &[SqlView], query: &str) -> String {
    let columns = views.iter().filter(|view| is_named(view.name, query)).map(|view| {
        let names: Vec<&str> = view.columns.iter().map(|column| column.name).collect();
        format!("; {} has {}", view.name, names.join(", "))
    });
    columns.collect()
}

/// Returns whether a word of a query is the name of a view.
pub(in crate::storage) fn is_named(view: &str, query: &str) -> bool {
    query.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word.eq_ignore_ascii_case(view))
}

/// Returns the expression for the value in a column of one of the attributes `t`. Decimal numbers are stored in millionths.
fn attribute_value(column: Column) -> &'static str {
    match column.sort {
        Number => "max(t.number)",
        ColumnType::Real => "max(t.number) / CAST(1000000 AS double precision)",
        Time => "max(t.value)",
        Text | Hash | Json | ColumnType::Any => "min(t.value)",
    }
}

const ARTIFACT: Column = Column::new("artifact", Number, "the number of the artifact in this vault")
    .referring_to(ARTIFACTS, "artifact");
const CORE_HASH: Column = Column::new("core_hash", Hash, "its core hash");
const ADDED_AT: Column = Column::new("added_at", Time, "when its first capture was added");
const SEEN_AT: Column = Column::new("seen_at", Time, "when one of its captures was last added or seen again");

/// The view of all artifacts, which the others refer to.
const ARTIFACTS: &str = "artifacts";

const PLAIN: &[(&str, &str, &[Column])] = &[
    (
        ARTIFACTS,
        "an artifact of any kind",
        &[
            Column { references: None, ..ARTIFACT }.key(),
            CORE_HASH,
            Column::new("kind", Text, "the name of its kind").facet(),
            ADDED_AT,
            SEEN_AT,
            Column::new("captures", Number, "the number of captures"),
        ],
    ),
    (
        "captures",
        "one exact byte form of an artifact",
        &[
            ARTIFACT,
            Column::new("capture_hash", Hash, "its hash"),
            Column::new("size", Number, "its size in bytes"),
            Column::new("added_at", Time, "when it was added"),
            Column::new("seen_at", Time, "when it was last added or seen again"),
            Column::new(
                "source_path",
                Text,
                "the path that it was read from when it was first added, if recorded",
            ),
            Column::new("signature", Text, "`verified`, `wrong`, `unchecked`, or `unsigned` if it has none")
                .facet(),
            Column::new("key_id", Text, "the key of the signature"),
            Column::new("warnings", Json, "the list of the violations with which it was admitted"),
        ],
    ),
    (
        "attributes",
        "a named string of an artifact; a name may have several values",
        &[
            ARTIFACT,
            Column::new("name", Text, "the name, such as `model_id`").facet(),
            Column::new("value", Text, "the value"),
            Column::new("number", Number, "the number by which the value is ordered; NULL for text"),
        ],
    ),
    (
        "tags",
        "a tag of an artifact",
        &[
            ARTIFACT,
            Column::new("name", Text, "the name, without @"),
            Column::new("tagged_at", Time, "when it was set"),
        ],
    ),
    (
        "notes",
        "a note on an artifact",
        &[
            ARTIFACT,
            Column::new("note", Text, "the text").searched(),
            Column::new("noted_at", Time, "when it was set"),
        ],
    ),
    (
        "labels",
        "a label of an artifact; many artifacts may have the same one",
        &[
            ARTIFACT,
            Column::new("key", Text, "the key, such as `commit`; an artifact has one value of each").facet(),
            Column::new("value", Text, "the value").facet(),
            Column::new("labeled_at", Time, "when the artifact got it"),
        ],
    ),
    (
        "pins",
        "a pinned artifact, which cannot be removed",
        &[
            ARTIFACT,
            Column::new("note", Text, "the reason, if one was given"),
            Column::new("pinned_at", Time, "when it was set"),
        ],
    ),
    (
        "stated_links",
        "a manually added link",
        &[
            Column::new("artifact", Number, "the artifact where the link starts")
                .referring_to(ARTIFACTS, "artifact"),
            Column::new("relation", Text, "the relation, such as `governs`").facet(),
            Column::new("target", Number, "the artifact where the link ends")
                .referring_to(ARTIFACTS, "artifact"),
            Column::new("note", Text, "the note on it"),
            Column::new("stated_at", Time, "when it was added"),
        ],
    ),
    (
        "tombstones",
        "a removed artifact or capture that was not added again",
        &[
            Column::new("hash", Hash, "the removed core hash or capture hash"),
            Column::new("core_hash", Hash, "the core hash of the artifact"),
            Column::new("kind", Text, "its kind").facet(),
            Column::new("removed_at", Time, "when it was removed"),
            Column::new("actor", Text, "the actor").facet(),
            Column::new("reason", Text, "the reason, if one was given"),
            Column::new("seq", Number, "the number of the journal entry")
                .referring_to("journal_entries", "seq"),
        ],
    ),
    (
        "journal_entries",
        "a change to the vault",
        &[
            Column::new("seq", Number, "its number: 1, 2, 3, and so on").key(),
            Column::new("entry", Json, "the change, as an object in RFC 8785 form"),
            Column::new("chain", Hash, "the digest of the chain up to here"),
        ],
    ),
];
