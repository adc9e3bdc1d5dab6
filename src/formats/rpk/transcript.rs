//! Runs as transcripts, the parts by which they are compared, and their searchable texts. Steps of recorded calls of models
//! are compared by what was asked and what was answered, without what differs in every answer.

use std::borrow::Cow;

use super::attributes::STEP;
use super::calls::{PROTOCOL_REQUESTS, URLS, is_of_policy, is_of_protocol, tools};
use super::envelope::{at, canonical_members, step_type, texts_at};
use super::messages::{answered, asked, recorded_response};
use super::pending_requests::RequestMatcher;
use super::run_events::arguments;
use super::texts::{self, StepTextRole};
use super::{exchanges, metrics, requests};
use crate::artifact::{
    BodyContent, BodyRole, Field, Part, PartKind, Passage, PassageCollector, StepClass, StepVisitor,
    TranscriptStep, differ, same_place, words_of,
};
use crate::conversation::comparison::{GeneratedValues, RECORDED, add_answer};
use crate::conversation::message::{ConversationMessage, MessagePart, MessageToolCall, MessageToolResult};
use crate::conversation::providers::mcp;
use crate::conversation::reader::AnsweredMessages;
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::replaykit::{self, VOLATILE_NAMES, VolatilePolicy};
use crate::json::pointer::Token;
use crate::json::reader::{self, Limits, ReadError};

/// The classes of the step types.
const CLASSES: [(&str, StepClass); 8] = [
    ("agent.command", StepClass::Tool),
    ("prompt.render", StepClass::Model),
    ("model.request", StepClass::Model),
    ("model.response", StepClass::Model),
    ("tool.request", StepClass::Tool),
    ("tool.response", StepClass::Tool),
    ("error.event", StepClass::Error),
    ("output.final", StepClass::Output),
];

/// The locations of what an error is about.
const SUBJECTS: &[&[&str]] = &[
    &["input", "tool"],
    &["input", "target"],
    &["metadata", "tool"],
    &["input", "url"],
    &["output", "error_type"],
    &["input", "source"],
];

/// The locations of models.
pub(super) const MODELS: &[&[&str]] =
    &[&["input", "model"], &["metadata", "model"], &["output", "output", "model"]];

/// Calls `visit` with each step.
pub(super) fn visit(steps: &[Value<'_>], visit: &mut StepVisitor<'_>) {
    let mut matcher = RequestMatcher::default();
    for (index, step) in steps.iter().enumerate() {
        visit(TranscriptStep { answers: matcher.follow(index, step), ..describe(index, step) });
    }
}

fn describe<'v>(index: usize, step: &'v Value<'v>) -> TranscriptStep<'v> {
    let step_type = step.get("type").and_then(Value::as_str).unwrap_or_default();
    let class = CLASSES.iter().find(|(name, _)| *name == step_type);
    let class = class.map_or(StepClass::Control, |(_, class)| *class);
    let mut described = TranscriptStep::new(index, step_type, class, BodyContent::Json(step));
    described.title = title(class, step);
    described.time = metrics::time(step);
    described.took(metrics::duration(step));
    described.used(metrics::tokens(step));
    described.status = status(step);
    described.failed = metrics::is_error(step);
    described.digest = step.get("hash").and_then(Value::as_str).and_then(Digest::parse_prefixed);
    match step_type {
        "prompt.render" => {
            member(step, "input", BodyRole::Arguments, &mut described);
            prompts(step, "output", &mut described);
        }
        "model.request" => prompts(step, "input", &mut described),
        "model.response" | "output.final" => responses(step, &mut described),
        "tool.request" => call(step, &mut described),
        "tool.response" => result(step, &mut described),
        "error.event" => error(step, &mut described),
        _ => {
            member(step, "input", BodyRole::Arguments, &mut described);
            member(step, "output", BodyRole::Result, &mut described);
        }
    }
    described
}

fn title<'v>(class: StepClass, step: &'v Value<'_>) -> Option<Cow<'v, str>> {
    let named = match class {
        StepClass::Model => texts_at(step, MODELS).next(),
        StepClass::Tool => {
            let unnamed =
                || texts_at(step, &[&["input", "command"]]).chain(texts_at(step, PROTOCOL_REQUESTS));
            tools(step).next().or_else(|| unnamed().next())
        }
        StepClass::Error => texts_at(step, SUBJECTS).next(),
        _ => None,
    };
    named.map(Cow::Borrowed).or_else(|| address(step).filter(|_| class == StepClass::Tool))
}

/// Returns the method and the address of an HTTP request.
fn address<'v>(step: &'v Value<'_>) -> Option<Cow<'v, str>> {
    let url = texts_at(step, URLS).next()?;
    let method = texts_at(step, &[&["input", "method"], &["metadata", "method"]]).next();
    Some(method.map_or(Cow::Borrowed(url), |method| Cow::Owned(format!("{method} {url}"))))
}

/// Returns the status code of a response, or that a policy denied the call.
fn status<'v>(step: &'v Value<'_>) -> Option<Cow<'v, str>> {
    if is_of_policy(step) {
        return Some(Cow::Borrowed("denied by policy"));
    }
    let code = at(step, &["output", "status_code"]).and_then(Value::as_number);
    code.map(|code| Cow::Owned(code.literal().to_owned()))
}

/// Adds the prompts of a request: the last one, after the texts that precede it in the request. If they are in no known
/// shape, adds the whole member.
fn prompts<'v>(step: &'v Value<'v>, whole: &str, described: &mut TranscriptStep<'v>) {
    let texts = texts::carried(step, StepTextRole::Prompts);
    let Some((last, before)) = texts.split_last() else {
        if whole == "input"
            && let Some(asked) = requests::asked(step)
        {
            return value(asked, BodyRole::Prompt, described);
        }
        return member(step, whole, BodyRole::Prompt, described);
    };
    for text in before {
        described.push(BodyRole::Context, BodyContent::Text(Cow::Borrowed(text)));
    }
    described.push(BodyRole::Prompt, BodyContent::Text(Cow::Borrowed(last)));
}

fn responses<'v>(step: &'v Value<'v>, described: &mut TranscriptStep<'v>) {
    if described.failed
        && let Some(message) = exchanges::message(step)
    {
        described.push(BodyRole::Error, BodyContent::Text(Cow::Borrowed(message)));
    }
    // Texts in parts may be those of the assembled one.
    let texts = match exchanges::response(step) {
        Some(only) => vec![only],
        None => texts::carried(step, StepTextRole::Responses),
    };
    for text in &texts {
        described.push(BodyRole::Response, BodyContent::Text(Cow::Borrowed(text)));
    }
    if texts.is_empty() {
        member(step, "output", BodyRole::Response, described);
    }
}

fn call<'v>(step: &'v Value<'v>, described: &mut TranscriptStep<'v>) {
    let Some(input) = step.get("input") else { return };
    if is_of_protocol(step) && input.get("arguments").is_none() {
        return;
    }
    match arguments(input) {
        Some(Cow::Borrowed(value)) => described.push(BodyRole::Arguments, BodyContent::from_value(value)),
        Some(Cow::Owned(value)) => described.push(BodyRole::Arguments, BodyContent::OwnedJson(value)),
        // Several positional arguments, or none.
        None if input.get("args").is_some() || input.get("kwargs").is_some() => {
            described.push(BodyRole::Arguments, BodyContent::Json(input));
        }
        None => {}
    }
}

/// Adds the output of a tool, without the member in which recorders wrap it.
fn result<'v>(step: &'v Value<'v>, described: &mut TranscriptStep<'v>) {
    let Some(output) = step.get("output").filter(|output| !output.is_null()) else { return };
    let members = output.as_object().map(|object| object.iter().collect::<Vec<_>>()).unwrap_or_default();
    let inner = match members.as_slice() {
        [("result", inner)] => inner,
        _ => output,
    };
    let role = if described.failed { BodyRole::Error } else { BodyRole::Result };
    let Some(body) = at(output, &["output"]).filter(|_| output.get("content").is_some()) else {
        return described.push(role, BodyContent::from_value(inner));
    };
    // The body of a recorded response, of which the text is what a model gets.
    let message = exchanges::message(step).filter(|_| described.failed);
    let result = body.get("result").unwrap_or(body);
    let description = || mcp::description(result).filter(|_| is_of_protocol(step)).map(Cow::Owned);
    let text = message.or_else(|| exchanges::response(step)).map(Cow::Borrowed).or_else(description);
    described.push(role, text.map_or_else(|| BodyContent::from_value(result), BodyContent::Text));
}

fn error<'v>(step: &'v Value<'v>, described: &mut TranscriptStep<'v>) {
    let message = exchanges::message(step);
    if let Some(message) = message {
        described.push(BodyRole::Error, BodyContent::Text(Cow::Borrowed(message)));
    }
    let is_whole = |output: &Value<'_>| {
        output.as_str().is_some() || output.as_object().is_some_and(|object| object.iter().len() < 2)
    };
    match step.get("output") {
        Some(output) if message.is_some() && is_whole(output) => {}
        _ => {
            let role = if message.is_some() { BodyRole::Details } else { BodyRole::Error };
            member(step, "output", role, described);
        }
    }
}

/// Adds a member of the step, if it is not `null` or empty.
fn member<'v>(step: &'v Value<'v>, name: &str, role: BodyRole, described: &mut TranscriptStep<'v>) {
    if let Some(member) = step.get(name) {
        value(member, role, described);
    }
}

fn value<'v>(value: &'v Value<'v>, role: BodyRole, described: &mut TranscriptStep<'v>) {
    let is_empty = match value {
        Value::Null => true,
        Value::Object(object) => object.iter().len() == 0,
        Value::Array(elements) => elements.is_empty(),
        _ => false,
    };
    if !is_empty {
        described.push(role, BodyContent::from_value(value));
    }
}

static RUN: PartKind = PartKind {
    is_ephemeral: |at| {
        let names: Vec<&str> = at.iter().filter_map(name_of).collect();
        let given_anew = match names.as_slice() {
            [root] => !["version", "metadata", "payload"].contains(root),
            ["metadata", member] => ["run_id", "created_at", "source_run_id"].contains(member),
            ["payload", "run", member] => OF_ONE_RUN.contains(member),
            _ => false,
        };
        given_anew || is_volatile(at)
    },
    canonical,
    describe: |_, _, names| differ(names),
};

/// Members that differ between any two runs.
const OF_ONE_RUN: [&str; 6] =
    ["id", "timestamp", "source_run_id", "listener_session_id", "listener_process", "listener_bind"];

/// The compared part is the one that step hashes cover.
static STEP_PART: PartKind = PartKind {
    is_ephemeral: |at| {
        let covered = |name: &&str| ["type", "input", "output", "metadata"].contains(name);
        let is_recorded = matches!(at, [Token::Name("output"), Token::Name(RECORDED), ..]);
        !at.first().and_then(name_of).as_ref().is_none_or(covered) || is_volatile(at) || is_recorded
    },
    canonical,
    describe: |one, _, names| {
        let step_type = one.get("type").and_then(Value::as_str).unwrap_or_default().replace('.', " ");
        match names {
            [] => format!("{step_type} differs"),
            names => format!("{step_type} differs ({})", names.join(", ")),
        }
    },
};

static ENVIRONMENT: PartKind = PartKind {
    is_ephemeral: is_volatile,
    canonical,
    describe: |_, _, _| "the environment differs".to_owned(),
};

fn name_of<'v>(token: &Token<'v>) -> Option<&'v str> {
    match token {
        Token::Name(name) => Some(name),
        Token::Index(_) => None,
    }
}

fn is_volatile(at: &[Token<'_>]) -> bool {
    at.last().and_then(name_of).is_some_and(|name| VOLATILE_NAMES.contains(&name.to_lowercase().as_str()))
}

fn canonical(value: &Value<'_>) -> Option<Vec<u8>> {
    replaykit::object(&[("", value)], VolatilePolicy::Include).ok()
}

pub(super) fn parts(document: &[u8]) -> Result<Vec<Part<'_>>, ReadError> {
    let mut root = requests::read_restored(document)?;
    let are_recorded_calls = requests::stores_bodies_once(&root);
    let steps = root.take(&["payload", "run", "steps"]);
    let environment = ["environment_fingerprint", "runtime_versions"]
        .map(|name| (name, root.take(&["payload", "run", name])));
    let circumstance = |word: &str, value, sort| {
        let keys = [same_place(&[word]); 2];
        Part { is_circumstance: true, ..Part::new(word.replace('_', " "), keys, value, sort) }
    };
    let mut parts = vec![circumstance("run", root, &RUN)];
    let Some(Value::Array(mut steps)) = steps else { return Ok(parts) };
    if are_recorded_calls {
        compare_messages(&mut steps);
    }
    for (index, step) in steps.into_iter().enumerate() {
        let step_type = step.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let request = canonical_members(&step, &["type", "input"], VolatilePolicy::Omit).and_then(Result::ok);
        let of_its_type = same_place(&["step", &step_type]);
        let keys = [request.map_or(of_its_type, |request| Digest::from_content(&request)), of_its_type];
        parts.push(Part::new(format!("step {index}"), keys, step, &STEP_PART));
    }
    let environment = environment.into_iter();
    parts.extend(
        environment.map(|(name, value)| circumstance(name, value.unwrap_or(Value::Null), &ENVIRONMENT)),
    );
    Ok(parts)
}

/// Members of steps that are searched, by step type.
const MEMBERS: &[(&str, &str, Field)] = &[
    ("agent.command", "input", Field::STEP),
    ("agent.command", "output", Field::OUTPUT),
    ("tool.request", "input", Field::TOOL),
    ("tool.response", "output", Field::OUTPUT),
    ("error.event", "input", Field::OUTPUT),
    ("error.event", "output", Field::OUTPUT),
];

/// Members that contain prompts or responses, by step type. If none are found in the known shapes, all of their words
/// are searched.
const CARRIERS: &[(&str, &str, Field)] = &[
    ("prompt.render", "output", Field::PROMPT),
    ("model.request", "input", Field::PROMPT),
    ("model.response", "output", Field::RESPONSE),
    ("output.final", "output", Field::RESPONSE),
];

pub(super) fn passages(steps: &[Value<'_>]) -> Vec<Passage> {
    let mut passages = PassageCollector::default();
    for (index, step) in steps.iter().enumerate() {
        let mut add = |field, text: String| passages.add_at(field, STEP.unit, index, text);
        add(Field::STEP, name(step));
        let carried = [(Field::PROMPT, StepTextRole::Prompts), (Field::RESPONSE, StepTextRole::Responses)]
            .map(|(field, carries)| (field, texts::carried(step, carries)));
        let has_carried = carried.iter().any(|(_, texts)| !texts.is_empty());
        for (field, text) in
            carried.into_iter().flat_map(|(field, texts)| texts.into_iter().map(move |text| (field, text)))
        {
            add(field, text.to_owned());
        }
        for part in tool_parts(step) {
            match part {
                MessagePart::ToolCall(MessageToolCall { name, arguments, .. }) => {
                    add(Field::TOOL, format!("{name}\n{}", words_of_json(&arguments)));
                }
                MessagePart::ToolResult(MessageToolResult { parts, .. }) => {
                    parts
                        .iter()
                        .filter_map(MessagePart::as_text)
                        .for_each(|text| add(Field::OUTPUT, words_of_json(text)));
                }
                _ => {}
            }
        }
        let step_type = step.get("type").and_then(Value::as_str).unwrap_or_default();
        let carriers = CARRIERS.iter().filter(|_| !has_carried);
        for (_, member, field) in MEMBERS.iter().chain(carriers).filter(|(name, ..)| *name == step_type) {
            let words = if *member == "input" { requests::asked(step) } else { step.get(member) };
            add(*field, words.map(words_of).unwrap_or_default());
        }
    }
    passages.into_vec()
}

/// Returns the calls of tools in an answer, or the results in a request that states only its new messages.
fn tool_parts(step: &Value<'_>) -> impl Iterator<Item = MessagePart> {
    let request = requests::prompt_hash(step).and_then(|_| asked(step)).map(|request| request.messages);
    let answer = answered(step).map(|answer| answer.messages);
    let parts = |messages: Option<Vec<ConversationMessage>>| {
        messages.into_iter().flatten().flat_map(|message| message.parts)
    };
    let results = parts(request).filter(|part| matches!(part, MessagePart::ToolResult(_)));
    results.chain(parts(answer).filter(|part| matches!(part, MessagePart::ToolCall(_))))
}

/// Returns the words of a text, which may be JSON.
fn words_of_json(text: &str) -> String {
    reader::read(text.as_bytes(), &Limits::most()).map_or_else(|_| text.to_owned(), |value| words_of(&value))
}

/// Returns the name and description of a step.
fn name(step: &Value<'_>) -> String {
    let id = step.get("id").and_then(Value::as_str).unwrap_or_default();
    let metadata = step.get("metadata").map(words_of).unwrap_or_default();
    format!("{id}\n{metadata}").trim().to_owned()
}

/// Members of an output that state what was sent and how long it is.
const SENT: [&str; 4] = ["content", "output", "assembled_text", "usage"];

/// Puts the steps of recorded calls, whose requests are complete, into the form.
pub(super) fn compare_messages(steps: &mut [Value<'_>]) {
    let mut generated = GeneratedValues::default();
    for step in steps {
        match step_type(step) {
            "model.request" => compare_request(step, &generated),
            "model.response" => compare_answer(step, &mut generated),
            _ => {}
        }
    }
}

fn compare_request(step: &mut Value<'_>, generated: &GeneratedValues) {
    let prompt = at(step, &["input", "prompt"]).and_then(Value::as_str);
    let prompt = prompt.and_then(|text| reader::read(text.as_bytes(), &Limits::most()).ok());
    let prompt = prompt.map(|prompt| generated.replace_in(prompt.to_owned_value()));
    if let Some(payload) = step.at_pointer_mut("/input/payload") {
        *payload = generated.replace_in(std::mem::replace(payload, Value::Null));
    }
    if let (Some(prompt), Some(stated)) = (prompt, step.at_pointer_mut("/input/prompt")) {
        *stated = prompt;
    }
}

fn compare_answer(step: &mut Value<'_>, generated: &mut GeneratedValues) {
    let Some(response) = step.get("output").and_then(recorded_response) else { return };
    generated.add(&response);
    let Some(answer) = answered(step).and_then(AnsweredMessages::comparable) else { return };
    let Some(Value::Object(output)) = step.at_pointer_mut("/output") else { return };
    add_answer(output, answer, |name| SENT.contains(&name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_searched_by_what_they_asked_answered_called_and_are_called() {
        let steps = r#"[
            {"id": "one", "type": "model.request", "input": {"prompt": "asked", "model": "m"}, "output": "sent",
             "metadata": {"provider": "p"}},
            {"id": "two", "type": "model.response", "input": {}, "output": {"content": "answered"}, "metadata": {}},
            {"id": "three", "type": "model.response", "input": {}, "output": {"other": {"place": "told"}}, "metadata": {}},
            {"id": "", "type": "tool.request", "input": {"tool": "weather", "args": {"city": "Paris"}}, "output": null,
             "metadata": {}},
            {"id": "", "type": "tool.response", "input": {"tool": "weather"}, "output": {"sky": "clear"}, "metadata": {}},
            {"id": "", "type": "error.event", "input": null, "output": {"message": "failed"}, "metadata": {}}]"#;
        let value = reader::read(steps.as_bytes(), &Limits::default()).unwrap();
        let extracted: Vec<String> = passages(value.as_array().unwrap())
            .into_iter()
            .map(|Passage { field, unit, place, text }| format!("{unit} {place} {}: {text}", field.name()))
            .collect();
        assert_eq!(
            extracted,
            [
                "step 0 step: one\nprovider: p",
                "step 0 prompt: asked",
                "step 1 step: two",
                "step 1 response: answered",
                "step 2 step: three",
                "step 2 response: place: told",
                "step 3 tool: tool: weather\ncity: Paris",
                "step 4 output: sky: clear",
                "step 5 output: message: failed",
            ]
        );
    }
}
