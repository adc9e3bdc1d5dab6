//! Contracts as transcripts: effects and refs are steps. The parts by which they are compared, their searchable texts, their
//! attributes, their SQL view and their tables.

use std::borrow::Cow;

use super::read::{self, ContractMembers};
use crate::artifact::ColumnType::{Json, Number, Text};
use crate::artifact::{
    ArtifactView, AttributeInfo, BodyContent, BodyRole, Cell, Column, Field, MemberBytes, Part, PartKind,
    Passage, PassageCollector, StepClass, StepVisitor, Table, TableRow, TranscriptStep, differ, same_place,
    words_of,
};
use crate::json::canonical::rfc8785;
use crate::json::reader::ReadError;
use crate::json::{Object, Value, pointer};

/// The type of the steps that are effects. Their numbers are those of the effects.
const EFFECT: &str = "effect";
/// The type of the steps that are refs.
pub(super) const IO_REF: &str = "io_ref";

/// Calls `visit` with each effect and each ref.
pub(super) fn visit(document: &[u8], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
    let root = read::read_admitted(document)?;
    let Some(view) = ContractMembers::from_root(&root) else { return Ok(()) };
    let terms = view.effects.iter().map(|effect| (EFFECT, "name", effect));
    let terms = terms.chain(view.io_refs.iter().map(|io_ref| (IO_REF, "ref", io_ref)));
    for (index, (step_type, name, term)) in terms.enumerate() {
        let mut step = TranscriptStep::new(index, step_type, StepClass::Term, BodyContent::Json(term));
        let text = |name: &str| term.get(name).and_then(Value::as_non_empty_str);
        step.title = text(name).map(Cow::Borrowed);
        let target = text("target").and_then(|target| view.declared.get(target));
        let mode = target.and_then(|io_ref| io_ref.get("mode")).and_then(Value::as_str).or(text("mode"));
        step.status = mode.map(Cow::Borrowed);
        step.push(BodyRole::Details, BodyContent::Json(term));
        visit(step);
    }
    Ok(())
}

static TERM: PartKind = PartKind { is_ephemeral: |_| false, canonical, describe };

/// The members that are not hashed.
static REMARKS: PartKind = PartKind { is_ephemeral: |at| !at.is_empty(), canonical, describe };

fn describe(_: &Value<'_>, _: &Value<'_>, names: &[&str]) -> String {
    differ(names)
}

fn canonical(value: &Value<'_>) -> Option<Vec<u8>> {
    rfc8785::to_vec(value).ok()
}

pub(super) fn parts(document: &[u8]) -> Result<Vec<Part<'_>>, ReadError> {
    let mut root = read::read_admitted(document)?;
    let lists = [("effects", "effect", "name"), ("io_refs", "ref", "ref")];
    let mut parts = Vec::new();
    for (list, word, name) in lists {
        let Some(Value::Array(terms)) = root.take(&[list]) else { continue };
        for term in terms {
            let name = term.get(name).and_then(Value::as_str).unwrap_or_default();
            let (label, key) = (format!("{word} {name}"), same_place(&[word, name]));
            parts.push(Part::new(label, [key; 2], term, &TERM));
        }
    }
    parts.push(Part::new("remarks".to_owned(), [same_place(&["remarks"]); 2], root, &REMARKS));
    Ok(parts)
}

/// The field of its refs and effects.
pub(super) const FIELD: Field = Field::new("contract");

pub(super) fn passages(document: &[u8]) -> Result<Vec<Passage>, ReadError> {
    let root = read::read_admitted(document)?;
    let mut passages = PassageCollector::default();
    for (name, member) in root.as_object().into_iter().flat_map(Object::iter) {
        let mut at = String::new();
        pointer::push(&mut at, name);
        match member {
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    let mut at = at.clone();
                    pointer::push_index(&mut at, index);
                    passages.add_pointer(FIELD, at, words_of(element));
                }
            }
            other => passages.add_pointer(FIELD, at, words_of(other)),
        }
    }
    Ok(passages.into_vec())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_effects_and_remarks_are_passages_of_their_own() {
        let contract = "description: what the agent may do\nio_refs:\n  - ref: service:tracker\n    kind: service\n\
                        effects:\n  - name: label-ticket\n    evidence: {type: status, metric: label_status}\n";
        let extracted: Vec<String> = passages(contract.as_bytes())
            .unwrap()
            .into_iter()
            .map(|passage| format!("{} {}", passage.place, passage.text.replace('\n', ", ")))
            .collect();
        assert_eq!(
            extracted,
            [
                "/description what the agent may do",
                "/io_refs/0 ref: service:tracker, kind: service",
                "/effects/0 name: label-ticket, type: status, metric: label_status",
            ]
        );
    }
}
