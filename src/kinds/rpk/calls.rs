//! What steps say of the call that they belong to: whose it is, what it asks, and by which ids its steps are known.

use super::provider_shapes::Carries;
use super::{TOOL_PLACES, at, texts};
use crate::artifact::{Arguments, Responder};
use crate::canonical::{Object, Value};
use crate::digest::Digest;

/// Members of a tool's request that hold its arguments, the first that is there.
const ARGUMENT_MEMBERS: [&str; 4] = ["arguments", "parameters", "params", "input"];

/// Members of a tool's request that say which call it is, not with what.
const IDENTITY_MEMBERS: [&str; 6] = ["tool", "tool_name", "call_id", "request_id", "correlation_id", "type"];

/// Where steps carry the URL of an HTTP request.
pub(super) const URLS: &[&[&str]] = &[&["input", "url"], &["metadata", "url"]];

/// Where steps carry the id of one call.
const CALL_IDS: &[&[&str]] = &[
    &["input", "call_id"],
    &["metadata", "call_id"],
    &["input", "tool_call_id"],
    &["metadata", "tool_call_id"],
    &["input", "tool_use_id"],
    &["metadata", "tool_use_id"],
];

/// What a step says of its call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) responder: Responder,
    pub(super) prompts: Vec<Digest>,
    /// The name of the tool.
    pub(super) tool: Option<String>,
    /// All names of the tool, the address that it calls, or the model.
    pub(super) names: Vec<String>,
    pub(super) arguments: Option<Arguments>,
    pub(super) ids: Ids,
    /// A number by which whoever keeps calls knows them.
    pub(super) number: usize,
}

impl Call {
    /// The call that a request of a model or a tool makes.
    pub(super) fn of_request(responder: Responder, step: &Value<'_>) -> Self {
        Self {
            responder,
            prompts: prompts(step),
            tool: tool(responder, step),
            names: names(responder, step),
            arguments: step.get("input").filter(|_| responder == Responder::Tool).and_then(asked_with),
            ids: Ids::of(responder, step),
            number: 0,
        }
    }

    /// The call that a response answers, as far as the response says.
    pub(super) fn of_response(responder: Responder, step: &Value<'_>) -> Self {
        let input = step.get("input").and_then(Value::as_object).filter(|_| responder == Responder::Tool);
        let arguments = input.and_then(stated_arguments);
        let (tool, names) = (tool(responder, step), names(responder, step));
        let (prompts, ids) = (Vec::new(), Ids::of(responder, step));
        Self { responder, prompts, tool, names, arguments, ids, number: 0 }
    }

    /// A call of which nothing is known but whose it is and the name of the tool.
    pub(super) fn unrequested(responder: Responder, tool: Option<&str>) -> Self {
        let tool = tool.map(str::to_owned);
        let (prompts, names, ids) = (Vec::new(), Vec::new(), Ids::default());
        Self { responder, prompts, tool, names, arguments: None, ids, number: 0 }
    }

    /// The same call with what else `response` says of it.
    pub(super) fn answered(self, response: Self) -> Self {
        let tool = self.tool.or(response.tool);
        Self { tool, arguments: self.arguments.or(response.arguments), ..self }
    }

    /// Whether both are of one responder, as far as they name it.
    pub(super) fn is_compatible(&self, other: &Self) -> bool {
        let share_name = || self.names.iter().any(|name| other.names.contains(name));
        self.responder == other.responder && (self.names.is_empty() || other.names.is_empty() || share_name())
    }

    /// Whether both ask the same of the same.
    pub(super) fn asks_the_same(&self, other: &Self) -> bool {
        let asked = |call: &Self| (call.prompts.clone(), call.names.clone(), call.arguments.clone());
        asked(self) == asked(other)
    }
}

/// The texts of prompts that a step carries.
pub(super) fn prompts(step: &Value<'_>) -> Vec<Digest> {
    texts::carried(step, Carries::Prompts).into_iter().map(|text| Digest::of(text.as_bytes())).collect()
}

/// The names that a step gives the tool that it is about.
pub(super) fn tools<'v>(step: &'v Value<'_>) -> impl Iterator<Item = &'v str> {
    // Where the API does not repeat the name of the tool, the listener puts the type of the item.
    let is_type = |name: &str| {
        texts_at(step, &[&["metadata", "event_type"], &["input", "type"]]).any(|item_type| item_type == name)
    };
    texts_at(step, TOOL_PLACES).filter(move |name| !is_type(name))
}

fn tool(responder: Responder, step: &Value<'_>) -> Option<String> {
    tools(step).next().filter(|_| responder == Responder::Tool).map(str::to_owned)
}

pub(super) fn texts_at<'v>(step: &'v Value<'_>, places: &[&[&str]]) -> impl Iterator<Item = &'v str> {
    places.iter().filter_map(|names| at(step, names).and_then(Value::as_filled_str))
}

fn names(responder: Responder, step: &Value<'_>) -> Vec<String> {
    if responder == Responder::Model {
        let models = texts_at(step, &[&["input", "model"], &["metadata", "model"]]);
        return models.map(str::to_owned).collect();
    }
    let mut names: Vec<String> = tools(step).map(str::to_owned).collect();
    if names.is_empty() {
        names.extend(texts_at(step, URLS).map(str::to_owned));
    }
    names
}

/// The arguments in the input of a tool's request: the member that holds them, else all that does not name the call.
fn asked_with(input: &Value<'_>) -> Option<Arguments> {
    let Some(object) = input.as_object() else { return Arguments::from_value(input) };
    if let Some(arguments) = stated_arguments(object) {
        return Some(arguments);
    }
    // `name` is that of the tool unless another member is.
    let names_tool = !object.contains("tool") && !object.contains("tool_name");
    let is_identity = |name: &str| IDENTITY_MEMBERS.contains(&name) || names_tool && name == "name";
    let rest = object.iter().filter(|(name, _)| !is_identity(name));
    let rest = rest.map(|(name, value)| (name.to_owned().into(), value.clone()));
    Arguments::from_value(&Value::Object(Object::from_members(rest.collect())))
}

/// The arguments that an input holds in a member of their own.
fn stated_arguments(input: &Object<'_>) -> Option<Arguments> {
    let of_python = |name: &&str| input.contains(name);
    if ["args", "kwargs"].iter().any(of_python) {
        let members = input.iter().filter(|(name, _)| matches!(*name, "args" | "kwargs"));
        let members = members.map(|(name, value)| (name.to_owned().into(), value.clone()));
        return Arguments::from_value(&Value::Object(Object::from_members(members.collect())));
    }
    let held = ARGUMENT_MEMBERS.iter().find_map(|name| input.get(name));
    held.and_then(Arguments::from_value)
}

/// By which the steps of one call are known to belong together.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    /// Of this one call.
    pub(super) call: Option<String>,
    /// Of the request and its response.
    pub(super) request: Vec<String>,
}

impl Ids {
    pub(super) fn of(responder: Responder, step: &Value<'_>) -> Self {
        const PLACES: [&[&str]; 3] =
            [&["metadata", "request_id"], &["metadata", "correlation_id"], &["input", "request_id"]];
        let call = texts_at(step, CALL_IDS).next().map(str::to_owned);
        // The listener takes calls of tools out of requests to models, whose ids these are.
        let is_of_model = responder == Responder::Tool && at(step, &["metadata", "derived_from"]).is_some();
        let ids = texts_at(step, &PLACES).filter(|id| !is_of_model && !is_numbered_event(id));
        Self { call, request: ids.map(str::to_owned).collect() }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.call.is_none() && self.request.is_empty()
    }

    /// Whether both have the id of one call.
    pub(super) fn are_of_one_call(&self, other: &Self) -> bool {
        self.call.is_some() && self.call == other.call
    }

    /// Whether both have an id of one request.
    pub(super) fn are_of_one_request(&self, other: &Self) -> bool {
        self.request.iter().any(|id| other.request.contains(id))
    }
}

/// The listener gives events that have no id one of their own, such as `codex-event-000001`. It ties nothing together.
fn is_numbered_event(id: &str) -> bool {
    let number = id.rsplit_once("-event-").map_or("", |(_, number)| number);
    number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether an `error.event` is the listener's own, and so about no call.
pub(super) fn is_of_listener(error: &Value<'_>) -> bool {
    texts_at(error, &[&["input", "source"]]).next() == Some("listener")
        || texts_at(error, &[&["metadata", "event_type"]]).any(|event| event.starts_with("listener."))
}

/// Whether an `error.event` says that a policy forbade a call, which was not made then.
pub(super) fn is_of_policy(error: &Value<'_>) -> bool {
    texts_at(error, &[&["metadata", "kind"]]).next() == Some("policy")
}
