//! Differences between conversations: of two by message, of several by prompt.

use super::{ChangeType, PartDigests, PartEdit, align_parts};
use crate::artifact::same_place;
use crate::conversation::message::{ConversationMessage, MessageRole};
use crate::conversation::reader::{Conversation, ConversationCall};
use crate::digest::Digest;

/// A message of a compared conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedMessage<'c> {
    /// The number of the step with the request of its call.
    pub step: u64,
    /// Its number among the messages of its call, in which answers follow those of the request, from 0.
    pub number: usize,
    /// What it says.
    pub content: ComparedContent<'c>,
}

/// What a message of a compared conversation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedContent<'c> {
    /// A message.
    Message(&'c ConversationMessage),
    /// Why there is no answer, or only its beginning.
    Error(&'c str),
}

/// A message of two conversations, or of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageComparison<'c> {
    /// The type of the difference; `None` if both say the same.
    pub change: Option<ChangeType>,
    /// The message of the first conversation.
    pub one: Option<ComparedMessage<'c>>,
    /// The message of the second conversation.
    pub other: Option<ComparedMessage<'c>>,
}

/// The calls of several conversations that ask the same, or are at the same place among calls that do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedPrompt<'c> {
    /// The call of each conversation, if it has one.
    pub calls: Vec<Option<&'c ConversationCall>>,
}

/// Aligns the messages of two conversations, in the order of both. Ids of calls of tools are not compared.
#[must_use]
pub fn compare_messages<'c>(one: &'c Conversation, other: &'c Conversation) -> Vec<MessageComparison<'c>> {
    let (one, other) = (messages(one), messages(other));
    let digests = |messages: &[ComparedMessage<'_>]| -> Vec<PartDigests> {
        messages.iter().map(|message| message.content.digests()).collect()
    };
    let edits = align_parts(&digests(&one), &digests(&other)).into_iter();
    let comparison = |edit| {
        let (change, index, place) = match edit {
            PartEdit::Same(index, place) => (None, Some(index), Some(place)),
            PartEdit::Changed(index, place) => (Some(ChangeType::Changed), Some(index), Some(place)),
            PartEdit::Moved(index, place) => (Some(ChangeType::Moved), Some(index), Some(place)),
            PartEdit::Removed(index) => (Some(ChangeType::Removed), Some(index), None),
            PartEdit::Inserted(place) => (Some(ChangeType::Inserted), None, Some(place)),
        };
        let message = |messages: &[ComparedMessage<'c>], at: Option<usize>| messages.get(at?).copied();
        MessageComparison { change, one: message(&one, index), other: message(&other, place) }
    };
    edits.map(comparison).collect()
}

fn messages<'c>(conversation: &'c Conversation) -> Vec<ComparedMessage<'c>> {
    let of_call = |call: &'c ConversationCall| {
        let said = call.messages.iter().chain(&call.answers).map(ComparedContent::Message);
        let contents = said.chain(call.error.as_deref().map(ComparedContent::Error)).enumerate();
        let step = call.step;
        contents.map(move |(number, content)| ComparedMessage { step, number, content })
    };
    conversation.calls.iter().flat_map(of_call).collect()
}

impl ComparedContent<'_> {
    /// Returns the digests by which it is aligned: that of all that it says, that of what is repeated in later requests, and
    /// that of who says it. An error is in the place of an answer.
    fn digests(&self) -> PartDigests {
        let role = |role: MessageRole| same_place(&["message", &format!("{role:?}")]);
        match self {
            Self::Message(message) => PartDigests {
                identity: message.content_digest(),
                keys: [message.repetition_digest(), role(message.role)],
            },
            Self::Error(text) => {
                let identity = same_place(&["error", text]);
                PartDigests { identity, keys: [identity, role(MessageRole::Assistant)] }
            }
        }
    }
}

/// Aligns the calls of conversations by what is new in their requests, in the order of the conversations.
#[must_use]
pub fn compare_prompts<'c>(conversations: &[&'c Conversation]) -> Vec<ComparedPrompt<'c>> {
    let mut rows: Vec<PromptRow<'c>> = Vec::new();
    for (column, conversation) in conversations.iter().enumerate() {
        let new = |call: &'c ConversationCall| {
            let mut calls = vec![None; conversations.len()];
            if let Some(cell) = calls.get_mut(column) {
                *cell = Some(call);
            }
            PromptRow { digests: prompt_digests(call), calls }
        };
        rows = merge(rows, conversation.calls.iter().map(new).collect());
    }
    rows.into_iter().map(|row| ComparedPrompt { calls: row.calls }).collect()
}

/// The calls of a row, and the digests of the first of them.
struct PromptRow<'c> {
    digests: PartDigests,
    calls: Vec<Option<&'c ConversationCall>>,
}

/// Adds the rows of a conversation to those of the conversations before it.
fn merge<'c>(rows: Vec<PromptRow<'c>>, others: Vec<PromptRow<'c>>) -> Vec<PromptRow<'c>> {
    let digests = |rows: &[PromptRow<'_>]| rows.iter().map(|row| row.digests).collect::<Vec<_>>();
    let edits = align_parts(&digests(&rows), &digests(&others));
    // Each row is taken once.
    let mut rows: Vec<Option<PromptRow<'c>>> = rows.into_iter().map(Some).collect();
    let mut others: Vec<Option<PromptRow<'c>>> = others.into_iter().map(Some).collect();
    let merged = edits.into_iter().filter_map(|edit| match edit {
        PartEdit::Same(row, other) | PartEdit::Changed(row, other) | PartEdit::Moved(row, other) => {
            let (row, other) = (rows.get_mut(row)?.take()?, others.get_mut(other)?.take()?);
            let calls = row.calls.into_iter().zip(other.calls).map(|(one, other)| one.or(other)).collect();
            Some(PromptRow { digests: row.digests, calls })
        }
        PartEdit::Removed(row) => rows.get_mut(row)?.take(),
        PartEdit::Inserted(other) => others.get_mut(other)?.take(),
    });
    merged.collect()
}

/// Returns the digests by which a call is aligned: that of its new messages, that of those that are no instructions, and that of
/// whether there are any, because a call that only returns the results of tools has none.
fn prompt_digests(call: &ConversationCall) -> PartDigests {
    let digest = |is_in: fn(&ConversationMessage) -> bool| -> Digest {
        let messages = call.messages.iter().filter(|message| is_in(message));
        let digests: Vec<String> = messages.map(|message| message.repetition_digest().to_string()).collect();
        Digest::from_content(digests.join(" ").as_bytes())
    };
    let is_continuation = call.messages.is_empty();
    PartDigests {
        identity: digest(|_| true),
        keys: [
            digest(|message| message.role != MessageRole::System),
            same_place(&["prompt", &is_continuation.to_string()]),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{MessagePart, MessageToolCall, MessageToolResult};

    fn said(role: MessageRole, text: &str) -> ConversationMessage {
        ConversationMessage::new(role, vec![MessagePart::text(text)])
    }

    /// Returns a conversation of calls, each with what was asked, unless it is empty, and what was answered.
    fn conversation(calls: &[(&str, &str)]) -> Conversation {
        let call = |(step, (asked, answered)): (usize, &(&str, &str))| ConversationCall {
            step: step as u64,
            thread: 0,
            provider: "openai".to_owned(),
            endpoint: "chat".to_owned(),
            model: "m".to_owned(),
            answer_id: None,
            prompt_hash: None,
            requested_at: None,
            duration_ms: None,
            repeated: 0,
            messages: (!asked.is_empty()).then(|| said(MessageRole::User, asked)).into_iter().collect(),
            answers: vec![said(MessageRole::Assistant, answered)],
            tools: Vec::new(),
            parameters: std::collections::BTreeMap::new(),
            tokens_in: None,
            tokens_out: None,
            finish_reason: None,
            error: None,
        };
        Conversation { calls: calls.iter().enumerate().map(call).collect(), threads: Vec::new() }
    }

    fn call_of_tool(id: &str, result: Option<&str>) -> MessagePart {
        let result = result.map(|text| MessageToolResult {
            id: Some(id.to_owned()),
            name: None,
            parts: vec![MessagePart::text(text)],
            is_error: false,
        });
        let (name, arguments) = ("t".to_owned(), "{}".to_owned());
        MessagePart::ToolCall(MessageToolCall { id: Some(id.to_owned()), name, arguments, result })
    }

    fn changes(one: &Conversation, other: &Conversation) -> Vec<Option<ChangeType>> {
        compare_messages(one, other).into_iter().map(|row| row.change).collect()
    }

    #[test]
    fn messages_are_aligned_around_those_that_differ() {
        let one = conversation(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let other = conversation(&[("a", "1"), ("b", "two"), ("x", "y"), ("c", "3")]);
        let (same, changed, inserted) = (None, Some(ChangeType::Changed), Some(ChangeType::Inserted));
        assert_eq!(changes(&one, &one), [same; 6]);
        assert_eq!(changes(&one, &other), [same, same, same, changed, inserted, inserted, same, same]);
        let rows = compare_messages(&one, &other);
        let place = |message: Option<ComparedMessage<'_>>| message.map(|one| (one.step, one.number));
        assert_eq!((place(rows[3].one), place(rows[3].other)), (Some((1, 1)), Some((1, 1))));
        assert_eq!((place(rows[4].one), place(rows[4].other)), (None, Some((2, 0))));
    }

    #[test]
    fn results_and_thoughts_of_a_message_are_compared_and_ids_are_not() {
        let with = |part: MessagePart| {
            let mut conversation = conversation(&[("a", "1")]);
            conversation.calls[0].answers[0].parts.push(part);
            conversation
        };
        let one = with(call_of_tool("id-1", Some("x")));
        assert_eq!(changes(&one, &with(call_of_tool("id-2", Some("x")))), [None, None]);
        for other in [
            call_of_tool("id-1", Some("y")),
            call_of_tool("id-1", None),
            MessagePart::Thinking { text: "t".to_owned() },
        ] {
            assert_eq!(changes(&one, &with(other)), [None, Some(ChangeType::Changed)]);
        }
    }

    #[test]
    fn an_error_is_in_the_place_of_the_answer() {
        let one = conversation(&[("a", "1"), ("b", "2")]);
        let mut other = one.clone();
        other.calls[0].answers.clear();
        other.calls[0].error = Some("slow down".to_owned());
        assert_eq!(changes(&one, &other), [None, Some(ChangeType::Changed), None, None]);
        assert_eq!(
            compare_messages(&one, &other)[1].other.unwrap().content,
            ComparedContent::Error("slow down")
        );
    }

    #[test]
    fn calls_are_aligned_by_prompt_and_then_by_order() {
        let one = conversation(&[("a", "1"), ("", "2"), ("b", "3")]);
        let other = conversation(&[("a", "1"), ("", "2"), ("", "2"), ("x", "y"), ("b", "3")]);
        let third = conversation(&[("a", "1"), ("z", "4")]);
        let rows = compare_prompts(&[&one, &other, &third]);
        let steps: Vec<Vec<Option<u64>>> = rows
            .iter()
            .map(|row| row.calls.iter().map(|call| call.map(|call| call.step)).collect())
            .collect();
        let expected = [
            [Some(0), Some(0), Some(0)],
            [Some(1), Some(1), None],
            [None, Some(2), None],
            [None, Some(3), None],
            [Some(2), Some(4), Some(1)],
        ];
        assert_eq!(steps, expected);
        assert!(compare_prompts(&[]).is_empty());
    }
}
