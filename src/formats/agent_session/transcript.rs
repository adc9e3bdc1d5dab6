//! Agent sessions as transcripts, the records by which they are compared, their searchable texts, and the calls of tools for
//! audits.

use std::borrow::Cow;
use std::collections::HashMap;

use super::attributes::RECORD;
use super::calls::AgentCalls;
use super::form::SessionRecord;
use super::record::{RecordUnit, visit_admitted};
use crate::artifact::{
    BodyContent, BodyRole, CallNames, EventVisitor, Field, Part, PartKind, Passage, PassageCollector,
    RunCall, RunCallResult, RunEvent, StepClass, StepVisitor, TranscriptStep, differ, same_place, words_of,
};
use crate::conversation::message::{
    ConversationMessage, MessagePart, MessageRole, MessageToolCall, MessageToolResult,
};
use crate::digest::Digest;
use crate::json::canonical::c14n_v1;
use crate::json::compact;
use crate::json::members::text;
use crate::json::pointer::Token;
use crate::json::reader::{self, Limits, ReadError};

/// Calls `visit` with each record.
pub(super) fn visit(document: &[u8], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
    visit_admitted(document, &mut |dialect, unit| visit(describe(&unit, &(dialect.read)(unit.value))))
}

fn describe<'u>(unit: &RecordUnit<'u>, record: &SessionRecord<'_>) -> TranscriptStep<'u> {
    let class = match (&record.answer, &record.error) {
        (_, Some(_)) => StepClass::Error,
        (Some(_), _) => StepClass::Model,
        (None, None) if has_results(record) => StepClass::Tool,
        (None, None) if !record.asked.is_empty() => StepClass::Model,
        _ => StepClass::Control,
    };
    let record_type = record.record_type.clone().into_owned();
    let mut step = TranscriptStep::new(unit.index, record_type, class, BodyContent::Json(unit.value));
    step.time = record.time;
    step.digest = unit.bytes.map(Digest::from_content);
    if let Some([input, output]) = record.tokens {
        (step.tokens_in, step.tokens_out) = (input, output);
    }
    for message in &record.asked {
        let role = if message.role == MessageRole::System { BodyRole::Context } else { BodyRole::Prompt };
        push_parts(&message.parts, role, &mut step);
    }
    if let Some(answer) = &record.answer {
        push_parts(&answer.parts, BodyRole::Response, &mut step);
    }
    if let Some(error) = &record.error {
        step.failed = true;
        step.push(BodyRole::Error, BodyContent::Text(Cow::Owned(error.clone().into_owned())));
    }
    step
}

fn has_results(record: &SessionRecord<'_>) -> bool {
    let mut parts = record.asked.iter().flat_map(|message| &message.parts);
    parts.any(|part| matches!(part, MessagePart::ToolResult(_)))
}

fn push_parts(parts: &[MessagePart], role: BodyRole, step: &mut TranscriptStep<'_>) {
    let owned = |text: &str| BodyContent::Text(Cow::Owned(text.to_owned()));
    for part in parts {
        match part {
            MessagePart::Text { text } | MessagePart::Refusal { text } => step.push(role, owned(text)),
            MessagePart::Thinking { text } if !text.is_empty() => {
                step.push_named(BodyRole::Details, "thinking", owned(text));
            }
            MessagePart::ToolCall(call) => {
                step.title.get_or_insert_with(|| Cow::Owned(call.name.clone()));
                step.push(BodyRole::Arguments, owned(&call.arguments));
            }
            MessagePart::ToolResult(result) => {
                step.failed |= result.is_error;
                let role = if result.is_error { BodyRole::Error } else { BodyRole::Result };
                for text in texts_of(result) {
                    step.push(role, owned(text));
                }
            }
            MessagePart::Other { value } => step.push(BodyRole::Details, owned(value)),
            _ => {}
        }
    }
}

/// Returns the texts and values in a result of a tool.
fn texts_of(result: &MessageToolResult) -> impl Iterator<Item = &str> {
    result.parts.iter().filter_map(|part| match part {
        MessagePart::Other { value } => Some(value.as_str()),
        part => part.as_text(),
    })
}

/// Members of records that differ between any two sessions.
const EPHEMERAL: [&str; 11] = [
    "uuid",
    "parentUuid",
    "leafUuid",
    "sessionId",
    "requestId",
    "timestamp",
    "id",
    "parentId",
    "messageId",
    "promptId",
    "ordinal",
];

static RECORD_PART: PartKind = PartKind {
    is_ephemeral: |at| match at {
        [Token::Name(name)] => EPHEMERAL.contains(name),
        [Token::Name("message"), Token::Name(name)] => ["id", "usage"].contains(name),
        _ => false,
    },
    canonical: |value| c14n_v1::to_vec(value).ok(),
    describe: |_, _, names| differ(names),
};

pub(super) fn parts(document: &[u8]) -> Result<Vec<Part<'_>>, ReadError> {
    let mut parts = Vec::new();
    visit_admitted(document, &mut |dialect, unit| {
        let record = (dialect.read)(unit.value);
        let title = describe(&unit, &record).title.unwrap_or_default();
        let keys = [same_place(&[&record.record_type, &title]), same_place(&[&record.record_type])];
        let value = unit.value.to_owned_value();
        parts.push(Part::new(format!("record {}", unit.index), keys, value, &RECORD_PART));
    })?;
    Ok(parts)
}

pub(super) fn passages(document: &[u8]) -> Result<Vec<Passage>, ReadError> {
    let mut passages = PassageCollector::default();
    visit_admitted(document, &mut |dialect, unit| {
        let record = (dialect.read)(unit.value);
        for message in &record.asked {
            let field = if message.role == MessageRole::Assistant { Field::RESPONSE } else { Field::PROMPT };
            add_passages(&message.parts, field, unit.index, &mut passages);
        }
        if let Some(answer) = &record.answer {
            add_passages(&answer.parts, Field::RESPONSE, unit.index, &mut passages);
        }
        if let Some(error) = &record.error {
            passages.add_at(Field::OUTPUT, RECORD.unit, unit.index, error.as_ref());
        }
    })?;
    Ok(passages.into_vec())
}

fn add_passages(parts: &[MessagePart], field: Field, index: usize, passages: &mut PassageCollector) {
    for part in parts {
        match part {
            MessagePart::Text { text } | MessagePart::Refusal { text } | MessagePart::Thinking { text } => {
                passages.add_at(field, RECORD.unit, index, text.as_str());
            }
            MessagePart::ToolCall(MessageToolCall { name, arguments, .. }) => {
                let read = reader::read(arguments.as_bytes(), &Limits::most());
                let words = read.map_or_else(|_| arguments.clone(), |value| words_of(&value));
                passages.add_at(Field::TOOL, RECORD.unit, index, format!("{name}\n{words}"));
            }
            MessagePart::ToolResult(result) => {
                for text in texts_of(result) {
                    passages.add_at(Field::OUTPUT, RECORD.unit, index, text);
                }
            }
            _ => {}
        }
    }
}

/// Calls `visit` with each call of a tool, for audits.
pub(super) fn run_events(document: &[u8], visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
    let mut calls = AgentCalls::default();
    visit_admitted(document, &mut |dialect, unit| calls.add(unit.index, &mut (dialect.read)(unit.value)))?;
    calls.end();
    let mut results: HashMap<&str, (usize, &MessageToolResult)> = HashMap::new();
    for call in calls.iter() {
        let asked = call.asked.iter().flat_map(|message: &ConversationMessage| &message.parts);
        for part in asked.chain(&call.parts) {
            if let MessagePart::ToolResult(result @ MessageToolResult { id: Some(id), .. }) = part {
                results.entry(id).or_insert((call.record, result));
            }
        }
    }
    for call in calls.iter() {
        for part in &call.parts {
            if let MessagePart::ToolCall(tool) = part {
                let result = tool.id.as_deref().and_then(|id| results.get(id));
                visit_call(call.record, tool, result.copied(), visit);
            }
        }
    }
    Ok(())
}

fn visit_call(
    record: usize,
    tool: &MessageToolCall,
    result: Option<(usize, &MessageToolResult)>,
    visit: &mut EventVisitor<'_>,
) {
    let arguments = reader::read(tool.arguments.as_bytes(), &Limits::most()).ok();
    let said = result.map(|(_, result)| text(texts_of(result).collect::<Vec<_>>().join("\n")));
    let place = |record: usize| format!("{} {record}", RECORD.unit);
    let answer = match (result, &said) {
        (Some((at, result)), Some(value)) if result.is_error => RunCallResult::Discounted {
            place: place(at),
            value: Some(value),
            why: "the result is an error".to_owned(),
        },
        (Some((at, _)), Some(value)) => RunCallResult::Result { place: place(at), value },
        _ => RunCallResult::None,
    };
    visit(RunEvent::Call(Box::new(RunCall {
        place: place(record),
        names: CallNames { tools: vec![tool.name.as_str()], ..CallNames::default() },
        began: record,
        ended: result.map_or(record, |(at, _)| at),
        attempt_at: format!("{} {}", tool.name, arguments.as_ref().map(compact::text).unwrap_or_default()),
        arguments: arguments.as_ref().map(Cow::Borrowed),
        envelope: Vec::new(),
        is_part: false,
        answer,
    })));
}
