//! The searchable texts of a contract: its refs, its effects and its other members.

use super::read;
use crate::artifact::{Field, Passage, PassageCollector, words_of};
use crate::json::reader::{Limits, ReadError};
use crate::json::{Object, Value, pointer};

/// The field of its refs and effects.
pub(super) const FIELD: Field = Field::new("contract");

pub(super) fn extract(document: &[u8], limits: &Limits) -> Result<Vec<Passage>, ReadError> {
    let root = read::read(document, limits, false)?;
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
        let extracted: Vec<String> = extract(contract.as_bytes(), &Limits::default())
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
