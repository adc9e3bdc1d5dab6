//! The call that a step belongs to: its responder, its request, and the ids that connect its steps.

use super::envelope::{at, step_type, texts_at};
use super::texts::StepTextRole;
use super::{requests, texts};
use crate::artifact::{Arguments, Responder};
use crate::conversation::providers::mcp;
use crate::digest::Digest;
use crate::json::{Object, Value};

/// Members of a tool request that contain its arguments, of which the first that is present is used.
const ARGUMENT_MEMBERS: [&str; 4] = ["arguments", "parameters", "params", "input"];

/// Members of a tool request that identify the call and are not arguments.
const IDENTITY_MEMBERS: [&str; 6] = ["tool", "tool_name", "call_id", "request_id", "correlation_id", "type"];

/// The locations of tool names in steps.
pub(super) const TOOL_PLACES: &[&[&str]] =
    &[&["input", "tool"], &["metadata", "tool"], &["input", "tool_name"], &["input", "name"]];

/// The locations of the URL of an HTTP request in steps.
pub(super) const URLS: &[&[&str]] = &[&["input", "url"], &["metadata", "url"]];

/// The location of the request that was made to a server of tools.
pub(super) const PROTOCOL_REQUESTS: &[&[&str]] = &[&["input", "endpoint"]];

/// The locations of call ids in steps.
const CALL_IDS: &[&[&str]] = &[
    &["input", "call_id"],
    &["metadata", "call_id"],
    &["input", "tool_call_id"],
    &["metadata", "tool_call_id"],
    &["input", "tool_use_id"],
    &["metadata", "tool_use_id"],
];

/// The description of a call in a step.
#[derive(Debug)]
pub(super) struct StepCall {
    pub(super) responder: Responder,
    pub(super) prompts: Vec<Digest>,
    /// The name of the tool.
    pub(super) tool: Option<String>,
    /// All names of the tool, the address that it calls, or the model.
    pub(super) names: Vec<String>,
    pub(super) arguments: Option<Arguments>,
    pub(super) ids: CallIds,
    /// A number assigned by the collection that contains the call.
    pub(super) number: usize,
}

impl StepCall {
    /// Creates the call made by a request to a model or a tool.
    pub(super) fn from_request(responder: Responder, step: &Value<'_>) -> Self {
        Self {
            responder,
            prompts: prompts(step),
            tool: tool(responder, step),
            names: names(responder, step),
            arguments: step.get("input").filter(|_| responder == Responder::Tool).and_then(tool_arguments),
            ids: CallIds::from_step(responder, step),
            number: 0,
        }
    }

    /// Creates the call that a response answers, as far as the response describes it.
    pub(super) fn from_response(responder: Responder, step: &Value<'_>) -> Self {
        let input = step.get("input").and_then(Value::as_object).filter(|_| responder == Responder::Tool);
        let arguments = input.and_then(explicit_arguments);
        let (tool, names) = (tool(responder, step), names(responder, step));
        let (prompts, ids) = (Vec::new(), CallIds::from_step(responder, step));
        Self { responder, prompts, tool, names, arguments, ids, number: 0 }
    }

    /// Creates a call of which only the responder and the tool name are known.
    pub(super) fn unrequested(responder: Responder, tool: Option<&str>) -> Self {
        let tool = tool.map(str::to_owned);
        let (prompts, names, ids) = (Vec::new(), Vec::new(), CallIds::default());
        Self { responder, prompts, tool, names, arguments: None, ids, number: usize::MAX }
    }

    /// Returns the call completed with the data in `response`.
    pub(super) fn answered(self, response: Self) -> Self {
        let tool = self.tool.or(response.tool);
        Self { tool, arguments: self.arguments.or(response.arguments), ..self }
    }

    /// Returns whether both have the same responder, as far as they name it.
    pub(super) fn is_compatible(&self, other: &Self) -> bool {
        let share_name = || self.names.iter().any(|name| other.names.contains(name));
        self.responder == other.responder && (self.names.is_empty() || other.names.is_empty() || share_name())
    }

    /// Returns whether both make the same request to the same responder.
    pub(super) fn asks_the_same(&self, other: &Self) -> bool {
        let request_key = |call: &Self| (call.prompts.clone(), call.names.clone(), call.arguments.clone());
        request_key(self) == request_key(other)
    }
}

/// Returns the digests of the prompts in a step.
pub(super) fn prompts(step: &Value<'_>) -> Vec<Digest> {
    let texts = texts::carried(step, StepTextRole::Prompts).into_iter();
    let digests = texts.map(|text| Digest::from_content(text.as_bytes()));
    requests::prompt_hash(step).into_iter().chain(digests).collect()
}

/// Returns the tool names in a step.
pub(super) fn tools<'v>(step: &'v Value<'_>) -> impl Iterator<Item = &'v str> {
    // If the API does not repeat the tool's name, the listener records the type of the item instead.
    let is_type = |name: &str| {
        texts_at(step, &[&["metadata", "event_type"], &["input", "type"]]).any(|item_type| item_type == name)
    };
    texts_at(step, TOOL_PLACES).filter(move |name| !is_type(name))
}

fn tool(responder: Responder, step: &Value<'_>) -> Option<String> {
    tools(step).next().filter(|_| responder == Responder::Tool).map(str::to_owned)
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

/// Returns the arguments in the input of a tool request: the member that contains them, else all members that do not
/// identify the call.
fn tool_arguments(input: &Value<'_>) -> Option<Arguments> {
    let Some(object) = input.as_object() else { return Arguments::from_value(input) };
    if let Some(arguments) = explicit_arguments(object) {
        return Some(arguments);
    }
    // `name` is the tool's name unless another member is.
    let names_tool = !object.contains("tool") && !object.contains("tool_name");
    let is_identity = |name: &str| IDENTITY_MEMBERS.contains(&name) || names_tool && name == "name";
    let rest = object.iter().filter(|(name, _)| !is_identity(name));
    let rest = rest.map(|(name, value)| (name.to_owned().into(), value.clone()));
    Arguments::from_value(&Value::Object(Object::from_members(rest.collect())))
}

/// Returns the arguments that an input contains in a separate member.
fn explicit_arguments(input: &Object<'_>) -> Option<Arguments> {
    let of_python = |name: &&str| input.contains(name);
    if ["args", "kwargs"].iter().any(of_python) {
        let members = input.iter().filter(|(name, _)| matches!(*name, "args" | "kwargs"));
        let members = members.map(|(name, value)| (name.to_owned().into(), value.clone()));
        return Arguments::from_value(&Value::Object(Object::from_members(members.collect())));
    }
    let held = ARGUMENT_MEMBERS.iter().find_map(|name| input.get(name));
    held.and_then(Arguments::from_value)
}

/// Returns whether a step of a tool is one of the protocol in which a server of tools is asked, and calls none: such a one
/// states the request, and no tool.
pub(super) fn is_of_protocol(step: &Value<'_>) -> bool {
    let asked = texts_at(step, PROTOCOL_REQUESTS).next();
    step_type(step).starts_with("tool.") && asked.is_some_and(|asked| asked != mcp::CALL)
}

/// The ids that connect the steps of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct CallIds {
    /// The id of the call.
    pub(super) call: Option<String>,
    /// The ids of the request and its response.
    pub(super) request: Vec<String>,
}

impl CallIds {
    pub(super) fn from_step(responder: Responder, step: &Value<'_>) -> Self {
        const PLACES: [&[&str]; 3] =
            [&["metadata", "request_id"], &["metadata", "correlation_id"], &["input", "request_id"]];
        let call = texts_at(step, CALL_IDS).next().map(str::to_owned);
        // The listener derives tool calls from model requests, and these ids belong to the requests.
        let is_of_model = responder == Responder::Tool && at(step, &["metadata", "derived_from"]).is_some();
        let ids = texts_at(step, &PLACES).filter(|id| !is_of_model && !is_numbered_event(id));
        Self { call, request: ids.map(str::to_owned).collect() }
    }

    /// Returns whether there are no ids.
    pub(super) fn is_empty(&self) -> bool {
        self.call.is_none() && self.request.is_empty()
    }

    /// Returns whether both have the same call id.
    pub(super) fn are_of_one_call(&self, other: &Self) -> bool {
        self.call.is_some() && self.call == other.call
    }

    /// Returns whether both have a request id in common.
    pub(super) fn are_of_one_request(&self, other: &Self) -> bool {
        self.request.iter().any(|id| other.request.contains(id))
    }
}

/// Returns whether an id is one that the listener generates for events without an id, such as `codex-event-000001`. It
/// connects no steps.
fn is_numbered_event(id: &str) -> bool {
    let number = id.rsplit_once("-event-").map_or("", |(_, number)| number);
    number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether an `error.event` is about the listener itself and not about a call.
pub(super) fn is_of_listener(error: &Value<'_>) -> bool {
    texts_at(error, &[&["input", "source"]]).next() == Some("listener")
        || texts_at(error, &[&["metadata", "event_type"]]).any(|event| event.starts_with("listener."))
}

/// Returns whether an `error.event` states that a policy denied a call, which was then not made.
pub(super) fn is_of_policy(error: &Value<'_>) -> bool {
    texts_at(error, &[&["metadata", "kind"]]).next() == Some("policy")
}
