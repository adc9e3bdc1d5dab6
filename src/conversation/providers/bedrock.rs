//! Bedrock of Amazon: Converse, and the forms of models that are invoked.

use super::decoding::{
    AnswerDecoder, MessageForm, RequestedMessages, blocks, encoded_media, inner, instructions, parameters,
    parts, said_message, tool_call, tool_names,
};
use super::provider::{AnswerForm, MemberRoles, Provider};
use crate::conversation::message::{MessagePart, MessageToolResult};
use crate::json::Value;
use crate::json::members::{at, word};

pub(super) const BEDROCK: Provider = Provider {
    name: "bedrock",
    hosts: &["bedrock-runtime", "bedrock-agent-runtime"],
    paths: &["/converse", "/converse-stream", "/invoke", "/invoke-with-response-stream"],
    names: MemberRoles {
        end_reasons: &["stopReason"],
        generated: &["toolUseId", "signature"],
        ..MemberRoles::NONE
    },
    answers: AnswerForm {
        texts: &[&["output", "message", "content"], &["generated_text"], &["results", "0", "outputText"]],
        ..AnswerForm::NONE
    },
    messages: MessageForm { request: requested, answer: answered },
    ..Provider::UNKNOWN
};

/// Returns what a request of Converse asks: the blocks of its messages state no type.
fn requested(body: &Value<'_>) -> Option<RequestedMessages> {
    let listed = body.get("messages").and_then(Value::as_array)?;
    let mut blocks = blocks(listed).peekable();
    let is_block = |block: &Value<'_>| block.get("type").is_none() && block.as_object().is_some();
    if blocks.peek().is_none() || !blocks.all(is_block) {
        return None;
    }
    let system = instructions(body.get("system"), part);
    let messages = listed.iter().map(|one| said_message(word(one, "role"), parts(one.get("content"), part)));
    let named = |tool: &Value<'_>| {
        at(tool, &["toolSpec", "name"]).and_then(Value::as_str).map(str::to_owned).into_iter().collect()
    };
    Some(RequestedMessages {
        messages: system.into_iter().chain(messages).collect(),
        tools: tool_names(at(body, &["toolConfig", "tools"]), named),
        parameters: parameters(body, &["messages", "system", "toolConfig", "modelId"]),
        previous_answer: None,
    })
}

/// Returns a block of a message.
fn part(block: &Value<'_>) -> Option<MessagePart> {
    if let Some(text) = word(block, "text") {
        return Some(MessagePart::text(text));
    }
    if let Some(thought) = block.get("reasoningContent") {
        let text = at(thought, &["reasoningText", "text"]).and_then(Value::as_str).unwrap_or_default();
        return Some(MessagePart::Thinking { text: text.to_owned() });
    }
    if let Some(call) = block.get("toolUse") {
        return Some(tool_call(word(call, "toolUseId"), word(call, "name"), call.get("input")));
    }
    if let Some(result) = block.get("toolResult") {
        return Some(MessagePart::ToolResult(MessageToolResult {
            id: word(result, "toolUseId").map(str::to_owned),
            name: None,
            parts: parts(result.get("content"), |part_of| match part_of.get("json") {
                Some(value) => Some(MessagePart::other(value)),
                None => part(part_of),
            }),
            is_error: word(result, "status") == Some("error"),
        }));
    }
    let (kind, media) =
        ["image", "document", "video"].iter().find_map(|kind| Some((*kind, block.get(kind)?)))?;
    let data = inner(media, "source", "bytes").unwrap_or_default();
    Some(encoded_media(word(media, "format"), kind, data))
}

/// Reads an answer of Converse in one piece.
fn answered(decoder: &mut AnswerDecoder, document: &Value<'_>) -> bool {
    let Some(said) = at(document, &["output", "message"]) else { return false };
    for part in parts(said.get("content"), part) {
        decoder.part(0, part);
    }
    decoder.finished(word(document, "stopReason"));
    true
}

#[cfg(test)]
mod tests {
    use crate::conversation::assembled::testing::texts;

    #[test]
    fn answers_are_read() {
        for body in [
            r#"{"output":{"message":{"role":"assistant","content":[{"text":"a"},{"text":"b"}]}}}"#,
            r#"{"generated_text":"ab"}"#,
            r#"{"results":[{"outputText":"ab"}]}"#,
        ] {
            assert_eq!(texts(body), ["ab"], "{body}");
        }
    }
}
