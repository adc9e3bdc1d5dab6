//! The steps of a trace, for audits. Records are read one at a time.

use std::borrow::Cow;

use super::attributes::RECORD;
use super::record::records;
use crate::artifact::{CallNames, EventVisitor, RunCall, RunCallResult, RunEvent};
use crate::json::reader::ReadError;
use crate::json::{Value, compact};

/// Calls `visit` with the header, which is a statement of the recorder, and every step as a call. The format defines no
/// targets; engines add `tool`, `url`, `io_ref`, `effect` and `target` to results, and the `arguments` or the `input`
/// of the call.
pub(super) fn visit(document: &[u8], visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
    for (index, record) in records(document).enumerate() {
        let (_, record) = record?;
        match (record.get("type").and_then(Value::as_str), record.get("result")) {
            (Some("step"), Some(result)) => {
                let call = call(index, result);
                if let RunCallResult::Result { value, .. } = &call.answer {
                    visit(RunEvent::Statement { at: index, value });
                }
                visit(RunEvent::Call(Box::new(call)));
            }
            _ => visit(RunEvent::Statement { at: index, value: &record }),
        }
    }
    Ok(())
}

fn call<'v, 'd>(index: usize, result: &'v Value<'d>) -> RunCall<'v, 'd> {
    let text = |name: &str| result.get(name).and_then(Value::as_non_empty_str);
    let place = format!("{} {index}", RECORD.unit);
    let arguments = ["arguments", "input"].into_iter().find_map(|name| result.get(name));
    let tool = text("tool");
    let attempt_at = match (tool, arguments) {
        (None, None) => String::new(),
        (tool, arguments) => {
            format!("{} {}", tool.unwrap_or_default(), arguments.map(compact::text).unwrap_or_default())
        }
    };
    RunCall {
        place: place.clone(),
        names: CallNames {
            tools: tool.into_iter().collect(),
            url: text("url"),
            io_ref: text("io_ref"),
            labels: ["effect", "target", "step"].into_iter().filter_map(text).collect(),
            mode: text("mode"),
        },
        began: index,
        ended: index,
        arguments: arguments.map(Cow::Borrowed),
        envelope: vec![result],
        attempt_at,
        is_part: false,
        answer: answer(place, text("status"), result.get("output")),
    }
}

fn answer<'v, 'd>(
    place: String,
    status: Option<&str>,
    output: Option<&'v Value<'d>>,
) -> RunCallResult<'v, 'd> {
    match (status, output.filter(|output| !output.is_null())) {
        (Some("success"), Some(value)) => RunCallResult::Result { place, value },
        (Some("success") | None, None) => RunCallResult::None,
        (status, value) => {
            let why = format!("the step is {}", status.unwrap_or("without a status"));
            RunCallResult::Discounted { place, value, why }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_succeeded_have_results() {
        let trace = concat!(
            r#"{"type": "header", "trace_id": "t"}"#,
            "\n",
            r#"{"type": "step", "result": {"step": "Fetch", "tool": "http", "status": "success", "output": {"a": 1}}}"#,
            "\n",
            r#"{"type": "step", "result": {"step": "Fail", "status": "failed", "output": null, "errors": []}}"#,
            "\n",
            r#"{"type": "control", "action": "stop"}"#,
            "\n"
        );
        let mut seen = Vec::new();
        visit(trace.as_bytes(), &mut |event| {
            seen.push(match event {
                RunEvent::Statement { value, .. } => format!("states {}", compact::text(value)),
                RunEvent::Call(call) => {
                    format!("{:?} {:?} {:?}", call.names.tools, call.names.labels, call.answer)
                }
            });
        })
        .unwrap();
        assert_eq!(seen[0], r#"states {"type":"header","trace_id":"t"}"#);
        assert_eq!(seen[1], r#"states {"a":1}"#);
        assert!(seen[2].starts_with(r#"["http"] ["Fetch"] Result { place: "record 1""#), "{}", seen[2]);
        let failed =
            r#"[] ["Fail"] Discounted { place: "record 2", value: None, why: "the step is failed" }"#;
        assert_eq!(seen[3], failed);
        assert_eq!(seen[4], r#"states {"type":"control","action":"stop"}"#);
        assert!(visit(b"{", &mut |_| ()).is_err());
    }
}
