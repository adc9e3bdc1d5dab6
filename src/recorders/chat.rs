//! Requests and responses that a file states in a form of its own. Their messages have the form of chat completions.

use chrono::{DateTime, Utc};

use crate::calls::values::{integer, object, text};
use crate::json::{Value, compact};

/// A request and its response, as a file states them.
#[derive(Debug, Default)]
pub(super) struct Chat {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) messages: Vec<Value<'static>>,
    /// Other members of the request.
    pub(super) members: Vec<(&'static str, Value<'static>)>,
    pub(super) choices: Vec<ChatChoice>,
    pub(super) id: Option<String>,
    pub(super) response_model: Option<String>,
    pub(super) ended_at: Option<DateTime<Utc>>,
    pub(super) usage: TokenCounts,
    pub(super) is_stream: bool,
}

/// The numbers of tokens of the input and of the output, as far as a file states them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TokenCounts {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
}

impl TokenCounts {
    /// Returns the members with these names: those of the input, the output and their sum. A number that is not stated has
    /// none.
    pub(super) fn members(self, names: [&'static str; 3]) -> Option<Value<'static>> {
        let total = self.input.zip(self.output).map(|(input, output)| input.saturating_add(output));
        let stated = names.into_iter().zip([self.input, self.output, total]);
        let stated: Vec<_> = stated.filter_map(|(name, count)| Some((name, integer(count?)))).collect();
        (!stated.is_empty()).then(|| object(stated))
    }
}

/// An answer of the model.
#[derive(Debug)]
pub(super) struct ChatChoice {
    pub(super) message: Value<'static>,
    pub(super) finish_reason: String,
}

/// Returns a message.
pub(super) fn message(
    role: &str,
    content: Value<'static>,
    tool_calls: Vec<Value<'static>>,
    tool_call_id: Option<&str>,
) -> Value<'static> {
    let is_empty = matches!(&content, Value::String(text) if text.is_empty());
    let content = if is_empty && !tool_calls.is_empty() { Value::Null } else { content };
    let calls = (!tool_calls.is_empty()).then_some(("tool_calls", Value::Array(tool_calls)));
    let id = tool_call_id.map(|id| ("tool_call_id", text(id.to_owned())));
    object([("role", text(role.to_owned())), ("content", content)].into_iter().chain(calls).chain(id))
}

/// Returns a call of a tool, whose arguments are an object or its text.
pub(super) fn tool_call(id: &str, name: &str, arguments: &Value<'_>) -> Value<'static> {
    let arguments = match arguments {
        Value::String(text) => text.clone().into_owned(),
        other => compact::text(other),
    };
    let function = object([("name", text(name.to_owned())), ("arguments", text(arguments))]);
    object([("id", text(id.to_owned())), ("type", text("function")), ("function", function)])
}

/// Returns a tool that the model may call.
pub(super) fn tool(name: &str, description: Option<&str>, parameters: Option<&Value<'_>>) -> Value<'static> {
    let description = description.map(|description| ("description", text(description.to_owned())));
    let parameters = parameters.map(|parameters| ("parameters", parameters.to_owned_value()));
    let members = [("name", text(name.to_owned()))].into_iter().chain(description).chain(parameters);
    object([("type", text("function")), ("function", object(members))])
}
