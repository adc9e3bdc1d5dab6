//! Messages as texts, with the words marked that differ from those of another one.

use maud::{Markup, html};

use crate::display::{counted, size};
use crate::json::pretty::TruncatedText;
use crate::json::reader::{self, Limits};
use crate::server::text::{block, excerpt};
use crate::vault::diff::{ComparedContent, TextDiffSpan, words};
use crate::vault::view::{MessagePart, MessageToolCall, MessageToolResult};

/// Maximum number of bytes of two texts that are compared by words.
const WORDS: usize = 20_000;

/// Maximum number of characters of JSON that is written with a line for each value.
const JSON: u64 = 100_000;

/// Two texts with the words marked that differ.
pub(super) struct MarkedTexts {
    pub(super) one: Markup,
    pub(super) other: Markup,
}

impl MarkedTexts {
    /// Marks the words of which only one text consists, or the texts if only one is given or they are long.
    pub(super) fn new(one: Option<&str>, other: Option<&str>) -> Self {
        if let (Some(one), Some(other)) = (one, other)
            && (one == other || one.len() + other.len() <= WORDS)
        {
            let spans = words(one, other);
            return Self { one: by_words(&spans, true), other: by_words(&spans, false) };
        }
        Self { one: whole(one, true), other: whole(other, false) }
    }
}

/// Returns one of two texts with the words marked that the other one does not have.
fn by_words(spans: &[TextDiffSpan<'_>], is_old: bool) -> Markup {
    html! {
        @for span in spans {
            @match span {
                TextDiffSpan::Same(text) => (excerpt(text)),
                TextDiffSpan::Removed(text) if is_old => (changed(text, true)),
                TextDiffSpan::Added(text) if !is_old => (changed(text, false)),
                TextDiffSpan::Removed(_) | TextDiffSpan::Added(_) => {},
            }
        }
    }
}

fn whole(text: Option<&str>, is_old: bool) -> Markup {
    html! { @if let Some(text) = text { (changed(text, is_old)) } @else { span.faint { "–" } } }
}

fn changed(text: &str, is_old: bool) -> Markup {
    html! { @if is_old { del { (block(text)) } } @else { ins { (block(text)) } } }
}

/// A part of a message as text.
pub(super) struct MessageText {
    /// What it is, in our own word; empty if it is what the message says.
    pub(super) noun: &'static str,
    pub(super) text: String,
}

/// Returns the parts of a message, and of the results of its calls of tools, as texts.
pub(super) fn texts(content: ComparedContent<'_>) -> Vec<MessageText> {
    let mut texts = Vec::new();
    match content {
        ComparedContent::Message(message) => add_parts(&message.parts, &mut texts),
        ComparedContent::Error(error) => texts.push(MessageText::new("Error", readable(error))),
    }
    texts
}

impl MessageText {
    fn new(noun: &'static str, text: String) -> Self {
        Self { noun, text }
    }
}

fn add_parts(parts: &[MessagePart], texts: &mut Vec<MessageText>) {
    for part in parts {
        texts.push(match part {
            MessagePart::Text { text } => MessageText::new("", text.clone()),
            MessagePart::Thinking { text } => MessageText::new("Thinking", text.clone()),
            MessagePart::Refusal { text } => MessageText::new("Refusal", text.clone()),
            MessagePart::Media(media) => {
                let stated = [Some(&media.media_type), media.name.as_ref(), media.location.as_ref()];
                let mut words: Vec<String> = stated.into_iter().flatten().cloned().collect();
                words.extend(media.size.map(size));
                MessageText::new("File", words.join(" "))
            }
            MessagePart::ToolCall(MessageToolCall { name, arguments, result, .. }) => {
                texts.push(MessageText::new("Tool", format!("{name} {}", readable(arguments))));
                if let Some(result) = result {
                    add_result(result, texts);
                }
                continue;
            }
            MessagePart::ToolResult(result) => {
                add_result(result, texts);
                continue;
            }
            MessagePart::Embeddings { count, dimensions } => {
                let text = format!("{} of {}", counted(*count, "vector"), counted(*dimensions, "number"));
                MessageText::new("Embeddings", text)
            }
            MessagePart::Unrecorded { digest } => MessageText::new("Not recorded", digest.to_string()),
            MessagePart::Other { value } => MessageText::new("Other", readable(value)),
        });
    }
}

fn add_result(result: &MessageToolResult, texts: &mut Vec<MessageText>) {
    let first = texts.len();
    add_parts(&result.parts, texts);
    if texts.len() == first {
        texts.push(MessageText::new("", String::new()));
    }
    for text in texts.iter_mut().skip(first).filter(|text| text.noun.is_empty()) {
        text.noun = if result.is_error { "Failed result" } else { "Result" };
        text.text = readable(&text.text);
    }
}

/// Returns a text with a line for each value if it is JSON, unless it is long.
fn readable(text: &str) -> String {
    let value =
        text.trim_start().starts_with(['{', '[']).then(|| reader::read(text.as_bytes(), &Limits::most()));
    let pretty = value.and_then(Result::ok).map(|value| TruncatedText::from_value(&value, JSON));
    pretty.filter(|pretty| pretty.omitted == 0).map_or_else(|| text.to_owned(), |pretty| pretty.text)
}
