//! The chat completions of `OpenAI`.

use std::borrow::Cow;

use crate::calls::values::{integer, object, text};
use crate::json::{Object, Value, compact};
use crate::recorders::chat::{Chat, ChatChoice};
use crate::recorders::exchange::{ImportedRequest, ImportedResponse};
use crate::recorders::target::ApiTarget;

/// Returns the request.
pub(super) fn request(chat: &Chat, target: ApiTarget) -> ImportedRequest {
    let stream = chat.is_stream.then_some(("stream", Value::Bool(true)));
    let members = [("model", text(chat.model.clone())), ("messages", Value::Array(chat.messages.clone()))];
    let body = object(members.into_iter().chain(chat.members.clone()).chain(stream));
    ImportedRequest::Json { target, body }
}

/// Returns the request for the embeddings of texts. The error says why there is none.
pub(super) fn embedding(chat: &Chat, target: ApiTarget) -> Result<ImportedRequest, String> {
    let texts: Option<Vec<_>> = chat
        .messages
        .iter()
        .map(|message| message.get("content").filter(|content| content.as_str().is_some()).cloned())
        .collect();
    let texts = texts.ok_or("the span does not contain the texts that were embedded")?;
    let input = match <[_; 1]>::try_from(texts) {
        Ok([only]) => only,
        Err(texts) => Value::Array(texts),
    };
    let members = chat.members.iter().map(|(name, value)| match value {
        Value::Array(formats) if *name == "encoding_format" => {
            (*name, formats.first().cloned().unwrap_or(Value::Null))
        }
        other => (*name, other.clone()),
    });
    let members = [("model", text(chat.model.clone())), ("input", input)].into_iter().chain(members);
    Ok(ImportedRequest::Json { target, body: object(members) })
}

/// Returns the response.
pub(super) fn reply(chat: &Chat) -> ImportedResponse {
    if !chat.is_stream {
        let whole = |choice: &ChatChoice| (in_one_text(&choice.message), text(choice.finish_reason.clone()));
        return ImportedResponse::json(200, &completion(chat, "chat.completion", "message", true, whole));
    }
    let (kind, name) = ("chat.completion.chunk", "delta");
    let deltas =
        completion(chat, kind, name, false, |choice| (as_delta(&in_one_text(&choice.message)), Value::Null));
    // Clients that do not ask for it ignore the usage; one of them reads no chunk without a choice.
    let ends = completion(chat, kind, name, true, |choice| (object([]), text(choice.finish_reason.clone())));
    let [deltas, ends] = [deltas, ends].map(|chunk| compact::text(&chunk));
    ImportedResponse::stream(format!("data: {deltas}\n\ndata: {ends}\n\ndata: [DONE]\n\n"))
}

fn completion(
    chat: &Chat,
    kind: &'static str,
    name: &'static str,
    is_end: bool,
    content: impl Fn(&ChatChoice) -> (Value<'static>, Value<'static>),
) -> Value<'static> {
    let choices = chat.choices.iter().enumerate().map(|(index, choice)| {
        let (content, finish_reason) = content(choice);
        object([("index", integer(index as u64)), (name, content), ("finish_reason", finish_reason)])
    });
    let created = chat.ended_at.and_then(|at| u64::try_from(at.timestamp()).ok()).unwrap_or(0);
    let members = [
        ("id", text(chat.id.clone().unwrap_or_else(|| "imported".to_owned()))),
        ("object", text(kind)),
        ("created", integer(created)),
        ("model", text(chat.response_model.as_ref().unwrap_or(&chat.model).clone())),
        ("choices", Value::Array(choices.collect())),
    ];
    let usage = chat.usage.members(["prompt_tokens", "completion_tokens", "total_tokens"]);
    object(members.into_iter().chain(usage.filter(|_| is_end).map(|usage| ("usage", usage))))
}

/// Returns an answer whose texts are one: answers of this API have no list of them.
fn in_one_text(message: &Value<'static>) -> Value<'static> {
    let Value::Object(members) = message else { return message.clone() };
    let members = members.iter().map(|(name, value)| {
        let parts = value.as_array().filter(|_| name == "content");
        let one = parts.and_then(|parts| parts.iter().map(|part| part.get("text")?.as_str()).collect());
        let one: Option<String> = one;
        (Cow::Owned(name.to_owned()), one.map_or_else(|| value.to_owned_value(), text))
    });
    Value::Object(Object::from_members(members.collect()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorders::chat::{TokenCounts, message, tool_call};
    use crate::recorders::forms::formed;

    fn chat(is_stream: bool) -> Chat {
        let calls = vec![tool_call("c", "weather", &object([("city", text("Paris"))]))];
        let answer = message("assistant", text(""), calls, None);
        Chat {
            provider: "OpenAI".to_owned(),
            model: "m".to_owned(),
            messages: vec![message("user", text("hi"), Vec::new(), None)],
            choices: vec![ChatChoice { message: answer, finish_reason: "tool_calls".to_owned() }],
            is_stream,
            usage: TokenCounts { input: Some(1), output: Some(2) },
            ..Chat::default()
        }
    }

    fn body(reply: ImportedResponse) -> String {
        let ImportedResponse::Answer { body, .. } = reply else { panic!("{reply:?}") };
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn answers_have_the_form_of_chat_completions() {
        let call = r#"{"id":"c","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}"#;
        assert_eq!(
            body(formed(&chat(false)).reply),
            format!(
                "{{\"id\":\"imported\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"m\",\"choices\":[{{\"index\":0,\
                 \"message\":{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{call}]}},\"finish_reason\":\"tool_calls\"}}],\
                 \"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}}}"
            )
        );
        let stream = body(formed(&chat(true)).reply);
        assert!(
            stream.contains("\"tool_calls\":[{\"index\":0,\"id\":\"c\"") && stream.ends_with("[DONE]\n\n"),
            "{stream}"
        );
        let ImportedRequest::Json { target, body } = formed(&chat(true)).request else { panic!() };
        assert_eq!((target.provider.as_str(), target.endpoint.name), ("openai", "chat.completions"));
        assert_eq!(
            compact::text(&body),
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}"#
        );
    }
}
