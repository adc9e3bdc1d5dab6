//! The searchable texts of a pack: those of all files but the session, which is a separate artifact.

use super::ledger;
use super::members::SESSION;
use crate::artifact::{Field, MemberBytes, Passage, PassageCollector, words_of};
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value, pointer};

/// The field of its files, without its session.
pub(super) const FIELD: Field = Field::new("pack");

/// Returns a passage for each member of a file, so that locations are more precise than the file.
pub(super) fn extract(members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<Passage>, ReadError> {
    let mut passages = PassageCollector::default();
    for member in members.iter().filter(|member| member.name != SESSION) {
        if member.name == ledger::NAME {
            ledger_passages(member.bytes, limits, &mut passages)?;
            continue;
        }
        let value = reader::read_keeping_overflow(member.bytes, limits)?;
        if !matches!(value, Value::Object(_)) {
            passages.add_pointer(FIELD, member.name.to_owned(), words_of(&value));
        }
        for (name, part) in value.as_object().into_iter().flat_map(Object::iter) {
            let mut at = format!("{} ", member.name);
            pointer::push(&mut at, name);
            passages.add_pointer(FIELD, at, words_of(part));
        }
    }
    Ok(passages.into_vec())
}

fn ledger_passages(bytes: &[u8], limits: &Limits, passages: &mut PassageCollector) -> Result<(), ReadError> {
    let text = reader::utf8(bytes, limits)?;
    for (number, entry) in ledger::entries(text, limits) {
        passages.add_pointer(FIELD, format!("{} line {number}", ledger::NAME), words_of(&entry?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_but_the_session_are_searched() {
        let member = |name, text: &'static str| MemberBytes { name, bytes: text.as_bytes() };
        let files = [
            member("run.json", r#"{"run_id": "r", "policy": {"name": "triage", "version": "2"}}"#),
            member("policy.json", r#"["a rule"]"#),
            member("model_io.json", r#"{"interactions": [{"response_content": "said"}]}"#),
            member("ledger.jsonl", "{\"result_kind\": \"BUNDLE\"}\n\n{\"mode\": \"live\"}\n"),
        ];
        let extracted: Vec<String> = extract(&files, &Limits::default())
            .unwrap()
            .into_iter()
            .map(|passage| format!("{}: {}", passage.place, passage.text.replace('\n', ", ")))
            .collect();
        assert_eq!(
            extracted,
            [
                "run.json /run_id: r",
                "run.json /policy: name: triage, version: 2",
                "policy.json: a rule",
                "ledger.jsonl line 1: result_kind: BUNDLE",
                "ledger.jsonl line 3: mode: live",
            ]
        );
    }
}
