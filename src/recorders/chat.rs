//! Requests and responses that a file states in a form of its own, in the form of the chat completions of `OpenAI`.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::exchange::{Reply, Request};
use super::target::Target;
use crate::calls::values::{integer, object, text};
use crate::json::{Object, Value, compact};

/// The names by which files call `OpenAI`.
const OPENAI: &[&str] = &["openai", "azure", "azure.ai.openai", "az.ai.openai", "openai-api"];

/// What a file states of a request and its response.
#[derive(Debug, Default)]
pub(super) struct Chat {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) messages: Vec<Value<'static>>,
    /// Other members of the request.
    pub(super) members: Vec<(&'static str, Value<'static>)>,
    pub(super) choices: Vec<Choice>,
    pub(super) id: Option<String>,
    pub(super) response_model: Option<String>,
    pub(super) ended_at: Option<DateTime<Utc>>,
    /// Tokens of the input and of the output.
    pub(super) usage: Option<(u64, u64)>,
    pub(super) is_stream: bool,
}

/// An answer of the model.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) message: Value<'static>,
    pub(super) finish_reason: String,
}

impl Chat {
    /// Returns the request.
    pub(super) fn request(&self) -> Request {
        let provider = self.provider.to_ascii_lowercase();
        let known = Target::known("openai", "/v1/chat/completions");
        let target = known.filter(|_| OPENAI.contains(&provider.as_str()));
        let stream = self.is_stream.then_some(("stream", Value::Bool(true)));
        let members =
            [("model", text(self.model.clone())), ("messages", Value::Array(self.messages.clone()))];
        let body = object(members.into_iter().chain(self.members.clone()).chain(stream));
        Request::Json { target: target.unwrap_or_else(|| Target::chat_of(&provider)), body }
    }

    /// Returns the response.
    pub(super) fn reply(&self) -> Reply {
        if !self.is_stream {
            return Reply::json(
                200,
                &self.completion("chat.completion", "message", |_, choice| {
                    (choice.message.clone(), text(choice.finish_reason.clone()))
                }),
            );
        }
        let deltas = self.completion("chat.completion.chunk", "delta", |_, choice| {
            (as_delta(&choice.message), Value::Null)
        });
        let ends = self.completion("chat.completion.chunk", "delta", |_, choice| {
            (object([]), text(choice.finish_reason.clone()))
        });
        let body =
            format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", compact::text(&deltas), compact::text(&ends));
        let content_type = Some("text/event-stream".to_owned());
        Reply::Answer { status: 200, content_type, retry_after: None, body: body.into_bytes() }
    }

    fn completion(
        &self,
        kind: &'static str,
        name: &'static str,
        content: impl Fn(usize, &Choice) -> (Value<'static>, Value<'static>),
    ) -> Value<'static> {
        let choices = self.choices.iter().enumerate().map(|(index, choice)| {
            let (content, finish_reason) = content(index, choice);
            object([("index", integer(index as u64)), (name, content), ("finish_reason", finish_reason)])
        });
        let created = self.ended_at.and_then(|at| u64::try_from(at.timestamp()).ok()).unwrap_or(0);
        let model = self.response_model.as_ref().unwrap_or(&self.model);
        let members = [
            ("id", text(self.id.clone().unwrap_or_else(|| "imported".to_owned()))),
            ("object", text(kind)),
            ("created", integer(created)),
            ("model", text(model.clone())),
            ("choices", Value::Array(choices.collect())),
        ];
        let usage = self.usage.filter(|_| kind == "chat.completion").map(|(asked, answered)| {
            let total = asked.saturating_add(answered);
            let tokens = [("prompt_tokens", asked), ("completion_tokens", answered), ("total_tokens", total)];
            ("usage", object(tokens.map(|(name, count)| (name, integer(count)))))
        });
        object(members.into_iter().chain(usage))
    }
}

/// Returns a message as the only part of a stream: tool calls are numbered there.
fn as_delta(message: &Value<'static>) -> Value<'static> {
    let Value::Object(members) = message else { return message.clone() };
    let members = members.iter().map(|(name, value)| {
        let value = match value {
            Value::Array(calls) if name == "tool_calls" => {
                let calls = calls.iter().enumerate().map(|(index, call)| {
                    let index = (Cow::Borrowed("index"), integer(index as u64));
                    let rest = call.as_object().into_iter().flat_map(Object::iter);
                    let rest =
                        rest.map(|(name, value)| (Cow::Owned(name.to_owned()), value.to_owned_value()));
                    Value::Object(Object::from_members([index].into_iter().chain(rest).collect()))
                });
                Value::Array(calls.collect())
            }
            other => other.to_owned_value(),
        };
        (Cow::Owned(name.to_owned()), value)
    });
    Value::Object(Object::from_members(members.collect()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(is_stream: bool) -> Chat {
        let calls = vec![tool_call("c", "weather", &object([("city", text("Paris"))]))];
        let answer = message("assistant", text(""), calls, None);
        Chat {
            provider: "OpenAI".to_owned(),
            model: "m".to_owned(),
            messages: vec![message("user", text("hi"), Vec::new(), None)],
            choices: vec![Choice { message: answer, finish_reason: "tool_calls".to_owned() }],
            is_stream,
            usage: Some((1, 2)),
            ..Chat::default()
        }
    }

    fn body(reply: Reply) -> String {
        let Reply::Answer { body, .. } = reply else { panic!("{reply:?}") };
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn answers_have_the_form_of_chat_completions() {
        let call = r#"{"id":"c","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}"#;
        assert_eq!(
            body(chat(false).reply()),
            format!(
                "{{\"id\":\"imported\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"m\",\"choices\":[{{\"index\":0,\
                 \"message\":{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{call}]}},\"finish_reason\":\"tool_calls\"}}],\
                 \"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}}}"
            )
        );
        let stream = body(chat(true).reply());
        assert!(
            stream.contains("\"tool_calls\":[{\"index\":0,\"id\":\"c\"") && stream.ends_with("[DONE]\n\n"),
            "{stream}"
        );
        let Request::Json { target, body } = chat(true).request() else { panic!() };
        assert_eq!((target.provider.as_str(), target.endpoint.name), ("openai", "chat.completions"));
        assert_eq!(
            compact::text(&body),
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#
        );
    }
}
