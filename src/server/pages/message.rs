//! A message of a conversation: texts, thoughts, files, and calls of tools with their results.

use maud::{Markup, html};

use super::json_tree;
use crate::display::{counted, size};
use crate::server::frame::{block, line};
use crate::server::markdown::markdown;
use crate::vault::view::{
    ConversationMessage, MessageMedia, MessagePart, MessageRole, MessageToolCall, MessageToolResult,
};

/// JSON may be this many times as long as other texts.
const JSON: usize = 5;

/// Maximum number of characters of the beginning of a folded text.
const PREVIEW: usize = 110;

/// What the messages of a call have in common.
pub(super) struct CallContext<'c> {
    /// The number of the step with the request.
    pub(super) step: u64,
    /// The address of the page.
    pub(super) page: &'c str,
    /// The address of the page with this call alone and longer texts, if there is one.
    pub(super) alone: Option<&'c str>,
    /// Maximum number of characters of each text.
    pub(super) max_text: usize,
}

/// The form of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextForm {
    Markdown,
    /// JSON, or any other text.
    Data,
}

/// The number of characters and of lines from which on a text is folded.
#[derive(Clone, Copy)]
pub(super) struct FoldLimit {
    pub(super) characters: usize,
    pub(super) lines: usize,
}

impl FoldLimit {
    /// A text that its beginning in one line would show completely is not folded.
    const ONE_LINE: Self = Self { characters: PREVIEW, lines: 1 };
    const NEVER: Self = Self { characters: usize::MAX, lines: usize::MAX };
    const RESULT: Self = Self { characters: 1_500, lines: 25 };

    fn for_role(role: MessageRole) -> Self {
        match role {
            MessageRole::System => Self::ONE_LINE,
            MessageRole::User => Self { characters: 2_500, lines: 40 },
            MessageRole::Assistant => Self { characters: 8_000, lines: 150 },
            MessageRole::Tool => Self::RESULT,
        }
    }

    pub(super) fn is_reached(self, text: &str) -> bool {
        text.chars().nth(self.characters).is_some() || text.lines().nth(self.lines).is_some()
    }
}

impl CallContext<'_> {
    /// Returns a message, which has this number in its call.
    pub(super) fn message(&self, number: usize, message: &ConversationMessage) -> Markup {
        let id = format!("step-{}-{number}", self.step);
        let (class, name) = author(message.role);
        let limit = FoldLimit::for_role(message.role);
        html! {
            div class=(format!("message {class}")) id=(id) {
                p.role { span.author { (name) } (self.permalink(&id, "message")) }
                @for (index, part) in message.parts.iter().enumerate() {
                    (self.part(part, &format!("{id}-{index}"), limit))
                }
                @if message.parts.is_empty() { p.faint { "Empty" } }
            }
        }
    }

    /// Returns the link by which a part of the page can be referred to.
    pub(super) fn permalink(&self, id: &str, noun: &str) -> Markup {
        html! { a.permalink href=(format!("{}#{id}", self.page)) aria-label=(format!("Link to this {noun}")) { "#" } }
    }

    /// Returns a part of a message, which has this id if it can be referred to.
    fn part(&self, part: &MessagePart, id: &str, limit: FoldLimit) -> Markup {
        match part {
            MessagePart::Text { text } => self.text(text, TextForm::Markdown, limit),
            MessagePart::Thinking { text } if text.is_empty() => {
                html! { p.faint { "Thinking, which the provider does not state" } }
            }
            MessagePart::Thinking { text } => html! {
                details.thinking {
                    summary { span.author { "Thinking" } " " (sized(text)) }
                    (self.text(text, TextForm::Markdown, FoldLimit::NEVER))
                }
            },
            MessagePart::Refusal { text } => html! {
                div.refusal {
                    p.role { span.author.bad { "Refusal" } }
                    (self.text(text, TextForm::Markdown, limit))
                }
            },
            MessagePart::Media(media) => shown_media(media),
            MessagePart::ToolCall(call) => self.tool_call(call, id),
            MessagePart::ToolResult(result) => self.tool_result(result),
            MessagePart::Embeddings { count, dimensions } => html! {
                p.faint { (counted(*count, "vector")) " of " (counted(*dimensions, "number")) }
            },
            MessagePart::Unrecorded { digest } => {
                html! { p.faint { "Not recorded: " code { (digest.to_string()) } } }
            }
            MessagePart::Other { value } => self.text(value, TextForm::Data, limit),
        }
    }

    fn tool_call(&self, call: &MessageToolCall, id: &str) -> Markup {
        let failed = call.result.as_ref().is_some_and(|result| result.is_error);
        html! {
            div class=(if failed { "tool-call failed" } else { "tool-call" }) id=(id) {
                p.role {
                    span.author { "Tool" } " " strong { (line(&call.name)) }
                    @if failed { " " span.bad { "failed" } }
                    (self.permalink(id, "tool call"))
                }
                @if matches!(call.arguments.trim(), "" | "{}") { p.faint { "No arguments" } }
                @else { (self.text(&call.arguments, TextForm::Data, FoldLimit::RESULT)) }
                @match &call.result {
                    Some(result) => (self.tool_result(result)),
                    None => p.faint { "No later request has its result." },
                }
            }
        }
    }

    fn tool_result(&self, result: &MessageToolResult) -> Markup {
        let MessageToolResult { name, parts, is_error, .. } = result;
        html! {
            div class=(if *is_error { "result failed" } else { "result" }) {
                p.role {
                    @if *is_error { span.author.bad { "Error" } } @else { span.author { "Result" } }
                    @if let Some(name) = name { " " (line(name)) }
                }
                @for part in parts {
                    @match part {
                        MessagePart::Text { text } => (self.text(text, TextForm::Data, FoldLimit::RESULT)),
                        part => (self.part(part, "", FoldLimit::RESULT)),
                    }
                }
                @if parts.is_empty() { p.faint { "Empty" } }
            }
        }
    }

    /// Returns why there is no answer, or only its beginning.
    pub(super) fn error(&self, text: &str) -> Markup {
        html! {
            div.message.error {
                p.role { span.author.bad { "Error" } }
                (self.text(text, TextForm::Data, FoldLimit::RESULT))
            }
        }
    }

    /// Returns a text; folded, with its size, if it is long.
    fn text(&self, text: &str, form: TextForm, limit: FoldLimit) -> Markup {
        let tree = if form == TextForm::Data && text.len() <= self.max_text.saturating_mul(JSON) {
            json_tree::tree(text)
        } else {
            None
        };
        let is_folded = limit.is_reached(text);
        let content = tree.unwrap_or_else(|| self.beginning(text, form));
        html! {
            @if is_folded {
                details.long {
                    summary { span.preview { (line(&preview(text))) } " " (sized(text)) }
                    (content)
                }
            } @else { (content) }
        }
    }

    /// Returns the beginning of a text, and how much more there is.
    fn beginning(&self, text: &str, form: TextForm) -> Markup {
        let end = text.char_indices().nth(self.max_text).map_or(text.len(), |(at, _)| at);
        let (shown, omitted) = text.split_at_checked(end).unwrap_or((text, ""));
        html! {
            @match form {
                TextForm::Markdown => div.markdown { (markdown(shown)) },
                TextForm::Data => pre { (block(shown)) },
            }
            @if !omitted.is_empty() {
                p.faint {
                    (counted(omitted.chars().count() as u64, "more character"))
                    @match self.alone {
                        Some(address) => { ": " a href=(address) { "this call alone" } },
                        None => " in the bytes of the artifact",
                    }
                }
            }
        }
    }
}

/// Returns the class of an author in the style sheet, and its name.
pub(super) fn author(role: MessageRole) -> (&'static str, &'static str) {
    match role {
        MessageRole::System => ("system", "System"),
        MessageRole::User => ("user", "User"),
        MessageRole::Assistant => ("assistant", "Assistant"),
        MessageRole::Tool => ("results", "Tool"),
    }
}

/// Returns the size of a text.
pub(super) fn sized(text: &str) -> Markup {
    html! { span.faint { (size(text.len() as u64)) } }
}

/// Returns the beginning of a text in one line.
pub(super) fn preview(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(PREVIEW / 2).collect();
    words.join(" ").chars().take(PREVIEW).collect()
}

/// Describes a file.
fn shown_media(media: &MessageMedia) -> Markup {
    let MessageMedia { media_type, name, location, size: bytes } = media;
    html! {
        p.media {
            span.tag { (line(media_type)) }
            @for text in name.iter().chain(location) { " " (line(text)) }
            @if let Some(bytes) = bytes { " " span.faint { (size(*bytes)) } }
        }
    }
}
