//! The attributes of sessions, the roles of their digests, their SQL view, and the table of their interactions.

use super::session::interactions;
use crate::artifact::ColumnType::{Hash, Json, Number, Text};
use crate::artifact::{ArtifactView, AttributeInfo, Cell, Column, MemberBytes, Role, Table, TableRow, group};
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value};

const ADAPTER_ID: AttributeInfo = AttributeInfo::text("adapter_id", "the adapter that recorded it");
pub(super) const MODE: AttributeInfo = AttributeInfo::text("mode", "`record` or `replay`");
/// The number of interactions.
pub const INTERACTIONS: AttributeInfo = AttributeInfo::count("interactions", "the number of interactions");

pub(super) const ATTRIBUTES: [AttributeInfo; 11] = [
    ADAPTER_ID,
    AttributeInfo::CREATED_AT,
    AttributeInfo::DURATION_MS,
    AttributeInfo::FINISHED_AT,
    INTERACTIONS,
    AttributeInfo::LATENCY_MS,
    MODE,
    AttributeInfo::MODEL_ID,
    AttributeInfo::TOKENS,
    AttributeInfo::TOKENS_INPUT,
    AttributeInfo::TOKENS_OUTPUT,
];

pub(super) const PROMPT: Role =
    Role { name: "prompt", group: group::PROMPT, unit: "interaction", relation: None };
pub(super) const RESPONSE: Role =
    Role { name: "response", group: group::RESPONSE, unit: "interaction", relation: None };

/// The locations of digests that are indexed as prompts and responses.
pub(super) const INDEXED: [&str; 2] = ["/interactions/*/prompt_hash", "/interactions/*/response_hash"];

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a recorded model session",
    named_by: None,
    columns: &[
        ADAPTER_ID.column().facet(),
        AttributeInfo::MODEL_ID.column().facet(),
        MODE.column().facet(),
        INTERACTIONS.column(),
        AttributeInfo::CREATED_AT.column(),
        AttributeInfo::FINISHED_AT.column(),
        AttributeInfo::DURATION_MS.column(),
        AttributeInfo::LATENCY_MS.column(),
        AttributeInfo::TOKENS_INPUT.column(),
        AttributeInfo::TOKENS_OUTPUT.column(),
        AttributeInfo::TOKENS.column(),
    ],
};

pub(super) const INTERACTIONS_TABLE: Table = Table {
    name: "interactions",
    about: "a prompt and its response in a session",
    columns: &[
        Column::new("i", Number, "index in the session, from 0"),
        Column::new("prompt_hash", Hash, "the SHA-256 of the prompt, which is not recorded itself"),
        Column::new("response_hash", Hash, "the SHA-256 of the response"),
        Column::new("response_content", Text, "the response").searched(),
        Column::new("extra", Json, "other recorded data, which is not hashed; NULL if there is none"),
    ],
    rows,
};

/// The members of an interaction with columns of their own.
const HASHED: [&str; 4] = ["i", "prompt_hash", "response_hash", "response_content"];

fn rows(members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<TableRow>, ReadError> {
    let mut rows = Vec::new();
    for member in members {
        let root = reader::read_keeping_overflow(member.bytes, limits)?;
        rows.extend(
            interactions(&root).iter().enumerate().map(|(index, interaction)| row(index, interaction)),
        );
    }
    Ok(rows)
}

fn row(index: usize, interaction: &Value<'_>) -> TableRow {
    vec![
        Cell::index(index),
        Cell::hash_of(interaction, "prompt_hash"),
        Cell::hash_of(interaction, "response_hash"),
        Cell::text_of(interaction, "response_content"),
        extra(interaction),
    ]
}

fn extra(interaction: &Value<'_>) -> Cell {
    let members = interaction.as_object().into_iter().flat_map(Object::iter);
    let extra = members.filter(|(name, _)| !HASHED.contains(name));
    let extra: Vec<_> = extra.map(|(name, value)| (name.to_owned().into(), value.clone())).collect();
    if extra.is_empty() { Cell::Null } else { Cell::json(&Value::Object(Object::from_members(extra))) }
}
