//! Live connections with models: the realtime API of `OpenAI`, and Gemini Live. What a client sends until the server answers
//! is a request, whose body is an object with the messages as `frames`.

use super::decoding::{
    MessageForm, RequestedMessages, encoded_media, instructions, parts, said_message, tool_names, type_of,
};
use super::provider::{Endpoint, Provider};
use super::{gemini, openai};
use crate::conversation::message::{ConversationMessage, MessagePart, MessageRole};
use crate::json::Value;
use crate::json::members::{at, word};

/// It reads the requests of live connections.
pub(super) const LIVE: Provider = Provider {
    name: "live",
    messages: MessageForm { request: requested, ..MessageForm::NONE },
    ..Provider::UNKNOWN
};

/// Returns whether the requests of an endpoint are made over live connections.
pub(crate) fn is_live(endpoint: &Endpoint) -> bool {
    [openai::REALTIME.name, gemini::LIVE.name].contains(&endpoint.name)
}

/// Returns what a request asks; `None` if it is not one of a live connection.
fn requested(body: &Value<'_>) -> Option<RequestedMessages> {
    let frames = body.get("frames")?.as_array()?;
    let mut asked = RequestedMessages::default();
    let mut audio = 0;
    for frame in frames {
        if type_of(frame) == "input_audio_buffer.append" {
            audio += word(frame, "audio").map_or(0, str::len);
        }
        asked.messages.extend(messages(frame));
        let tools = settings(frame).and_then(|settings| settings.get("tools"));
        asked.tools.extend(tool_names(tools, |tool| {
            let declared = tool.get("functionDeclarations").and_then(Value::as_array).unwrap_or_default();
            let named = declared.iter().chain([tool]).filter_map(|one| word(one, "name"));
            named.map(str::to_owned).collect()
        }));
    }
    if audio > 0 {
        let sound = encoded_media(None, "audio", &"A".repeat(audio));
        asked.messages.push(ConversationMessage::new(MessageRole::User, vec![sound]));
    }
    Some(asked)
}

/// Returns the settings in a message of a client: the member with instructions or tools, whatever its name.
fn settings<'v, 'a>(frame: &'v Value<'a>) -> Option<&'v Value<'a>> {
    let mut members = frame.as_object()?.iter().map(|(_, member)| member);
    let names = ["instructions", "systemInstruction", "tools"];
    members.find(|member| names.iter().any(|name| member.get(name).is_some()))
}

/// Returns the messages in a message of a client.
fn messages(frame: &Value<'_>) -> Vec<ConversationMessage> {
    let user = |parts| vec![ConversationMessage::new(MessageRole::User, parts)];
    if let Some(item) = frame.get("item") {
        return vec![openai::item(item)];
    }
    if let Some(settings) = settings(frame) {
        let system = at(settings, &["systemInstruction", "parts"]);
        let stated = instructions(settings.get("instructions"), |_| None);
        return stated.or_else(|| instructions(system, gemini::part)).into_iter().collect();
    }
    if let Some(turns) = at(frame, &["clientContent", "turns"]).and_then(Value::as_array) {
        let said =
            |turn: &Value<'_>| said_message(word(turn, "role"), parts(turn.get("parts"), gemini::part));
        return turns.iter().map(said).collect();
    }
    if let Some(input) = frame.get("realtimeInput") {
        let said = word(input, "text").map(MessagePart::text);
        return said.map(|said| user(vec![said])).unwrap_or_default();
    }
    let results = at(frame, &["toolResponse", "functionResponses"]).and_then(Value::as_array);
    let results: Vec<_> = results.unwrap_or_default().iter().map(gemini::result).collect();
    if results.is_empty() { Vec::new() } else { vec![ConversationMessage::new(MessageRole::Tool, results)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn what_clients_send_is_read_as_messages() {
        let body = r#"{"frames":[
            {"type":"session.update","session":{"instructions":"be brief","tools":[{"name":"read"}]}},
            {"type":"input_audio_buffer.append","audio":"AAAA"},
            {"type":"conversation.item.create","item":{"type":"message","role":"user",
                "content":[{"type":"input_text","text":"hi"}]}},
            {"setup":{"systemInstruction":{"parts":[{"text":"be kind"}]}}},
            {"clientContent":{"turns":[{"role":"user","parts":[{"text":"hello"}]}],"turnComplete":true}},
            {"toolResponse":{"functionResponses":[{"id":"1","name":"read","response":{"a":1}}]}},
            {"realtimeInput":{"text":"and?"}}]}"#;
        let body = reader::read(body.as_bytes(), &Limits::default()).unwrap();
        let asked = requested(&body).unwrap();
        assert_eq!(asked.tools, ["read"]);
        let said = asked.messages.iter().map(|message| {
            let text = message.parts[0].as_text().unwrap_or("no text");
            format!("{:?} {text}", message.role)
        });
        assert_eq!(
            said.collect::<Vec<_>>(),
            [
                "System be brief",
                "User hi",
                "System be kind",
                "User hello",
                "Tool no text",
                "User and?",
                "User no text"
            ]
        );
        assert!(requested(&reader::read(b"{}", &Limits::default()).unwrap()).is_none());
    }
}
