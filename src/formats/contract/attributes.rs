//! The attributes of contracts, their SQL view, and the tables of their effects and of the refs that these target.

use super::read::{self, ContractMembers};
use crate::artifact::ColumnType::{Json, Number, Text};
use crate::artifact::{ArtifactView, AttributeInfo, Cell, Column, MemberBytes, Table, TableRow};
use crate::json::Value;
use crate::json::reader::ReadError;

pub(super) const EFFECTS: AttributeInfo = AttributeInfo::count("effects", "the number of declared effects");
pub(super) const IO_REFS: AttributeInfo = AttributeInfo::count("io_refs", "the number of declared refs");

pub(super) const ATTRIBUTES: [AttributeInfo; 7] = [
    AttributeInfo::text("effect", "the name of an effect"),
    EFFECTS,
    AttributeInfo::text("io_ref", "the name of a ref"),
    AttributeInfo::text("io_ref_kind", "the name and the kind of a ref"),
    AttributeInfo::text("io_ref_mode", "the name and the mode of a ref"),
    IO_REFS,
    AttributeInfo::text("target", "the ref that an effect targets"),
];

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "an IO contract",
    named_by: None,
    columns: &[EFFECTS.column(), IO_REFS.column(), AttributeInfo::CREATED_AT.column()],
};

pub(super) const EFFECTS_TABLE: Table = Table {
    name: "effects",
    about: "an effect that a contract declares",
    columns: &[
        Column::new("i", Number, "index in the contract, from 0"),
        Column::new("name", Text, "its name"),
        Column::new("target", Text, "the ref that it targets"),
        Column::new("mode", Text, "the mode of that ref: `read`, `write` or `mutate`").facet(),
        Column::new("idempotency", Text, "`keyed`, `reentrant` or `non-idempotent`").facet(),
        Column::new("key_fields", Json, "the list of its key fields"),
        Column::new("evidence", Text, "how its completion is proved: `hash`, `status` or `range`").facet(),
        Column::new("evidence_path", Text, "where a hash is found"),
        Column::new("evidence_metric", Text, "the name of a status or range"),
        Column::new("rollback", Text, "the effect that rolls it back"),
        Column::new("effect", Json, "the whole effect").searched(),
    ],
    rows: effects,
};

pub(super) const IO_REFS_TABLE: Table = Table {
    name: "io_refs",
    about: "a resource that a contract allows to be read or changed",
    columns: &[
        Column::new("i", Number, "index in the contract, from 0"),
        Column::new("ref", Text, "its name").searched(),
        Column::new("kind", Text, "what it is, such as `artifact` or `service`").facet(),
        Column::new("mode", Text, "`read`, `write` or `mutate`").facet(),
        Column::new("required", Number, "1 if it is required, else 0").facet(),
        Column::new("schema", Json, "the schema, or the name of one"),
    ],
    rows: io_refs,
};

fn effects(members: &[MemberBytes<'_>]) -> Result<Vec<TableRow>, ReadError> {
    rows(members, |view| {
        let effects = view.effects.iter().enumerate();
        effects.map(|(index, effect)| effect_row(index, effect, view)).collect()
    })
}

fn io_refs(members: &[MemberBytes<'_>]) -> Result<Vec<TableRow>, ReadError> {
    rows(members, |view| {
        view.io_refs.iter().enumerate().map(|(index, io_ref)| ref_row(index, io_ref)).collect()
    })
}

fn rows(
    members: &[MemberBytes<'_>],
    of: impl Fn(&ContractMembers<'_>) -> Vec<TableRow>,
) -> Result<Vec<TableRow>, ReadError> {
    let mut rows = Vec::new();
    for member in members {
        let root = read::read_admitted(member.bytes)?;
        rows.extend(ContractMembers::from_root(&root).map(|view| of(&view)).unwrap_or_default());
    }
    Ok(rows)
}

fn effect_row(index: usize, effect: &Value<'_>, view: &ContractMembers<'_>) -> TableRow {
    let member = |name: &str| effect.get(name).unwrap_or(&Value::Null);
    let target = member("target").as_str().and_then(|name| view.declared.get(name));
    vec![
        Cell::index(index),
        Cell::text_of(effect, "name"),
        Cell::text_of(effect, "target"),
        target.map_or(Cell::Null, |io_ref| Cell::text_of(io_ref, "mode")),
        Cell::text_of(member("idempotency"), "type"),
        Cell::json_of(member("idempotency"), "key_fields"),
        Cell::text_of(member("evidence"), "type"),
        Cell::text_of(member("evidence"), "path"),
        Cell::text_of(member("evidence"), "metric"),
        Cell::text_of(effect, "rollback"),
        Cell::json(effect),
    ]
}

fn ref_row(index: usize, io_ref: &Value<'_>) -> TableRow {
    let required = match io_ref.get("required") {
        Some(Value::Bool(required)) => Cell::Integer(i64::from(*required)),
        _ => Cell::Null,
    };
    vec![
        Cell::index(index),
        Cell::text_of(io_ref, "ref"),
        Cell::text_of(io_ref, "kind"),
        Cell::text_of(io_ref, "mode"),
        required,
        Cell::json_of(io_ref, "schema"),
    ]
}
