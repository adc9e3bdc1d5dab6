//! Contracts as transcripts: effects and refs are steps. The parts by which they are compared, and their searchable texts.

use std::borrow::Cow;

use super::read::{self, ContractMembers};
use crate::artifact::{
    BodyContent, BodyRole, Field, Part, PartKind, Passage, PassageCollector, StepClass, StepVisitor,
    TranscriptStep, differ, same_place, words_of,
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
