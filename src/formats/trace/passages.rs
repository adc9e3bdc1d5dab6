//! The searchable texts of a trace: the names, arguments and results of its steps.

use super::lines::records;
use super::roles::RECORD;
use crate::artifact::{Field, Passage, PassageCollector, words_of};
use crate::json::reader::{Limits, ReadError};

/// Members of results that are searched. The format defines no inputs; engines add them under these names.
const MEMBERS: &[(&str, Field)] = &[
    ("step", Field::STEP),
    ("tool", Field::TOOL),
    ("input", Field::TOOL),
    ("arguments", Field::TOOL),
    ("output", Field::OUTPUT),
    ("errors", Field::OUTPUT),
];

pub(super) fn extract(document: &[u8], limits: &Limits) -> Result<Vec<Passage>, ReadError> {
    let mut passages = PassageCollector::default();
    for (index, record) in records(document, limits).enumerate() {
        let (_, record) = record?;
        let Some(result) = record.get("result") else { continue };
        for (member, field) in MEMBERS {
            let text = result.get(member).map(words_of).unwrap_or_default();
            passages.add_at(*field, RECORD.unit, index, text);
        }
    }
    Ok(passages.into_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_searched_by_their_results() {
        let trace = concat!(
            r#"{"type": "header", "trace_id": "t"}"#,
            "\n",
            r#"{"type": "step", "result": {"step": "Fetch", "tool": "http", "output": {"body": "hello"}, "errors": []}}"#,
            "\n",
            r#"{"type": "step", "result": {"step": "Fail", "output": null, "errors": [{"code": "E1", "message": "no"}]}}"#,
            "\n"
        );
        let extracted: Vec<String> = extract(trace.as_bytes(), &Limits::default())
            .unwrap()
            .into_iter()
            .map(|Passage { field, unit, place, text }| format!("{unit} {place} {}: {text}", field.name()))
            .collect();
        assert_eq!(
            extracted,
            [
                "record 1 step: Fetch",
                "record 1 tool: http",
                "record 1 output: body: hello",
                "record 2 step: Fail",
                "record 2 output: code: E1\nmessage: no",
            ]
        );
    }
}
