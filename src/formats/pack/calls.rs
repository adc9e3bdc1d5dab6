//! The calls recorded in a pack, for audits: `runner.json` and `evidence.json`.

use std::borrow::Cow;

use crate::artifact::{CallNames, EventVisitor, MemberBytes, RunCall, RunCallResult, RunEvent};
use crate::formats::runner::RUNNER_CORE;
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value};

/// Whether the member of this name is a result.
type ResultMemberTest = fn(&str) -> bool;

/// The files with results, in their order, and which members of each are results: the others are requests or
/// configuration.
const RESULTS: [(&str, ResultMemberTest); 2] = [
    ("runner.json", |name| !RUNNER_CORE.contains(&name) || matches!(name, "exit" | "warnings")),
    ("evidence.json", |name| !matches!(name, "proposal_id" | "proposal_hash")),
];

/// The lists of `evidence.json` whose elements may name the target of a call.
const ACTIONS: [&str; 2] = ["action_results", "test_results"];

/// Calls `visit` with the run, which is a statement, and the results of the runner. Actions that name their tool or
/// target are calls of their own.
pub(super) fn visit(members: &[MemberBytes<'_>], visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
    let read = |name: &str| {
        let member = members.iter().find(|member| member.name == name);
        member.map(|member| reader::read_keeping_overflow(member.bytes, &Limits::most())).transpose()
    };
    read("run.json")?.iter().for_each(|value| visit(RunEvent::Statement { at: 0, value }));
    for (name, is_result) in RESULTS {
        let Some(file) = read(name)? else { continue };
        let results = only(&file, is_result);
        visit(RunEvent::Statement { at: 0, value: &results });
        visit(RunEvent::Call(Box::new(whole(name, &results))));
        for list in ACTIONS {
            let actions = results.get(list).and_then(Value::as_array).unwrap_or_default();
            for (index, action) in actions.iter().enumerate() {
                let place = format!("{name} /{list}/{index}");
                visit(RunEvent::Call(Box::new(RunCall {
                    began: index,
                    ended: index,
                    ..part(place, action)
                })));
            }
        }
    }
    Ok(())
}

fn whole<'v, 'd>(name: &str, value: &'v Value<'d>) -> RunCall<'v, 'd> {
    RunCall {
        place: name.to_owned(),
        names: CallNames::default(),
        began: 0,
        ended: 0,
        arguments: None,
        envelope: Vec::new(),
        attempt_at: String::new(),
        is_part: false,
        answer: RunCallResult::Result { place: name.to_owned(), value },
    }
}

fn part<'v, 'd>(place: String, value: &'v Value<'d>) -> RunCall<'v, 'd> {
    RunCall {
        names: names(value),
        began: 0,
        ended: 0,
        arguments: value.get("arguments").map(Cow::Borrowed),
        envelope: vec![value],
        attempt_at: place.clone(),
        is_part: true,
        answer: RunCallResult::Result { place: place.clone(), value },
        place,
    }
}

fn names<'v>(action: &'v Value<'_>) -> CallNames<'v> {
    let text = |name: &str| action.get(name).and_then(Value::as_non_empty_str);
    CallNames {
        tools: text("tool").into_iter().collect(),
        url: text("url"),
        io_ref: text("io_ref"),
        labels: ["effect", "target", "action"].into_iter().filter_map(text).collect(),
        mode: text("mode"),
    }
}

/// Returns the object `value` with only the members whose names satisfy `is_selected`.
fn only<'v>(value: &'v Value<'_>, is_selected: fn(&str) -> bool) -> Value<'v> {
    let members = value.as_object().into_iter().flat_map(Object::iter);
    let members = members.filter(|(name, _)| is_selected(name));
    let members = members.map(|(name, value)| (Cow::Borrowed(name), value.clone()));
    Value::Object(Object::from_members(members.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;

    #[test]
    fn what_was_asked_for_or_configured_is_no_result() {
        let member = |name, text: &'static str| MemberBytes { name, bytes: text.as_bytes() };
        let files = [
            member(
                "evidence.json",
                r#"{"proposal_hash": "h", "status": "ok", "action_results": [{"tool": "t", "x": 1}, {}]}"#,
            ),
            member("run.json", r#"{"run_id": "r"}"#),
            member("runner.json", r#"{"limits": {"timeout_ms": 5}, "exit": {"code": 0}, "timing": {}}"#),
            member("bundle.json", r#"{"status": "complete"}"#),
        ];
        let mut seen = Vec::new();
        visit(&files, &mut |event| {
            let RunEvent::Call(call) = event else { return };
            let RunCallResult::Result { value, .. } = &call.answer else { return };
            seen.push(format!("{} {:?} {}", call.place, call.names.tools, compact::text(value)));
        })
        .unwrap();
        assert_eq!(
            seen,
            [
                r#"runner.json [] {"exit":{"code":0},"timing":{}}"#,
                r#"evidence.json [] {"status":"ok","action_results":[{"tool":"t","x":1},{}]}"#,
                r#"evidence.json /action_results/0 ["t"] {"tool":"t","x":1}"#,
                "evidence.json /action_results/1 [] {}",
            ]
        );
    }
}
