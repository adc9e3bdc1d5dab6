//! The SQL table of the interactions of a session.

use super::root::interactions;
use crate::artifact::ColumnType::{Hash, Json, Number, Text};
use crate::artifact::{Cell, Column, MemberBytes, Table, TableRow};
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value};

pub(super) const INTERACTIONS: Table = Table {
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
