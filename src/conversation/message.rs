//! Messages of a conversation, whatever the API of the provider.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::Digest;
use crate::json::{Value, compact};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageRole {
    /// Instructions of the developer of the agent.
    System,
    /// The person or the agent that asks.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConversationMessage {
    /// Who says it.
    pub role: MessageRole,
    /// What it consists of, in reading order.
    pub parts: Vec<MessagePart>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum MessagePart {
    /// Text.
    Text {
        /// The text, which is Markdown as a rule.
        text: String,
    },
    /// What the model thought before it answered, as far as the API states it.
    Thinking {
        /// The text; empty if the API states it encrypted.
        text: String,
    },
    /// An image, a document, a sound or a video.
    Media(MessageMedia),
    /// A call of a tool.
    ToolCall(MessageToolCall),
    /// The result of a call of a tool that the conversation does not have.
    ToolResult(MessageToolResult),
    /// The statement of the model that it does not answer.
    Refusal {
        /// The text.
        text: String,
    },
    /// The embeddings of texts.
    Embeddings {
        /// Number of vectors.
        count: u64,
        /// Number of numbers of each.
        dimensions: u64,
    },
    /// What is recorded as its digest alone.
    Unrecorded {
        /// The SHA-256 of its bytes.
        digest: Digest,
    },
    /// A part of another type, as it was sent.
    Other {
        /// The JSON of the part, without white space, or a text that is not JSON.
        value: String,
    },
}

/// A file in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageMedia {
    /// The media type, or its first part, such as `image`.
    pub media_type: String,
    /// The name of the file, if stated.
    pub name: Option<String>,
    /// Where it is, if the message does not contain it: an address or an id.
    pub location: Option<String>,
    /// The size in bytes, if the message contains it.
    pub size: Option<u64>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageToolCall {
    /// The id by which the result names the call, if the API has one.
    pub id: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// The arguments: JSON without white space if they are JSON.
    pub arguments: String,
    /// What the tool returned, if a later request of the thread has it. It is not among the messages of that request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<MessageToolResult>,
}

/// The result of a call of a tool.
///
/// It belongs to the call with its id, or to the first one without a result where there are no ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageToolResult {
    /// The id of the call, if the API has one.
    pub id: Option<String>,
    /// The name of the tool, if the result states it.
    pub name: Option<String>,
    /// What the tool returned.
    #[schema(no_recursion)]
    pub parts: Vec<MessagePart>,
    /// Whether it is stated to be an error.
    pub is_error: bool,
}

impl MessageToolResult {
    fn clear_ids(&mut self) {
        self.id = None;
        self.parts.iter_mut().for_each(MessagePart::clear_ids);
    }
}

impl ConversationMessage {
    /// Creates a message.
    pub(crate) fn new(role: MessageRole, parts: Vec<MessagePart>) -> Self {
        Self { role, parts }
    }

    /// Returns the number by which a message that is repeated is recognized.
    pub(super) fn key(&self) -> i64 {
        self.repetition_digest().key()
    }

    /// Returns the digest that a message shares with its repetitions. A client may repeat an answer without what the model
    /// thought, in other parts, and with its own ids.
    pub(crate) fn repetition_digest(&self) -> Digest {
        let mut text = format!("{:?}", self.role);
        self.parts.iter().for_each(|part| part.add_key(&mut text));
        Digest::from_content(text.trim_end().as_bytes())
    }

    /// Returns the digest of everything that is said, which does not include the ids of calls of tools.
    pub(crate) fn content_digest(&self) -> Digest {
        let mut message = self.clone();
        message.parts.iter_mut().for_each(MessagePart::clear_ids);
        Digest::from_content(format!("{message:?}").as_bytes())
    }
}

impl MessagePart {
    /// Creates a text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Creates a part of a type that is not known.
    pub(crate) fn other(value: &Value<'_>) -> Self {
        Self::Other { value: compact::text(value) }
    }

    /// Returns the text that it says, if it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } | Self::Refusal { text } => Some(text),
            _ => None,
        }
    }

    fn clear_ids(&mut self) {
        match self {
            Self::ToolCall(MessageToolCall { id, result, .. }) => {
                *id = None;
                result.iter_mut().for_each(MessageToolResult::clear_ids);
            }
            Self::ToolResult(result) => result.clear_ids(),
            _ => {}
        }
    }

    fn add_key(&self, key: &mut String) {
        match self {
            Self::Text { text } | Self::Refusal { text } => key.push_str(text),
            Self::Thinking { .. } => {}
            Self::ToolCall(MessageToolCall { name, arguments, .. }) => {
                key.extend(["\u{1}", name, "\u{1}", arguments]);
            }
            Self::ToolResult(MessageToolResult { parts, is_error, .. }) => {
                key.push_str(if *is_error { "\u{2}" } else { "\u{3}" });
                for part in parts {
                    part.add_key(key);
                }
            }
            other => {
                // Writing to a string cannot fail.
                let _ = std::fmt::Write::write_fmt(key, format_args!("\u{4}{other:?}"));
            }
        }
    }
}
