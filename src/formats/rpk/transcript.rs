//! The transcript of a run: its steps with their prompts, responses, calls and errors.

use std::borrow::Cow;

use super::arguments::arguments;
use super::calls::{URLS, is_of_policy, tools};
use super::members::{at, texts_at};
use super::provider_shapes::StepTextRole;
use super::request_matcher::RequestMatcher;
use super::{exchanges, metrics, requests, texts};
use crate::artifact::{BodyContent, BodyRole, StepClass, StepVisitor, TranscriptStep};
use crate::digest::Digest;
use crate::json::Value;

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
const MODELS: &[&[&str]] = &[&["input", "model"], &["metadata", "model"], &["output", "output", "model"]];

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
        StepClass::Tool => tools(step).next().or_else(|| texts_at(step, &[&["input", "command"]]).next()),
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
    described.push(role, BodyContent::from_value(inner));
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
