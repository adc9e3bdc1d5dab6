//! The messages of two conversations side by side, with the words marked that differ.

use maud::{Markup, html};

use super::message::{CallContext, author};
use super::selection::TranscriptSelection;
use crate::digest::CoreHash;
use crate::display::{counted, size};
use crate::json::pretty::TruncatedText;
use crate::json::reader::{self, Limits};
use crate::server::frame::{block, excerpt, number};
use crate::vault::diff::{
    ChangeType, ComparedContent, ComparedMessage, MessageComparison, TextDiffSpan, words,
};
use crate::vault::view::{MessagePart, MessageToolCall, MessageToolResult};

/// Maximum number of messages that differ on a page, and of those in a row that are the same.
const DIFFERENT: usize = 100;
const SAME: usize = 100;

/// Maximum number of characters of each text that is the same.
const TEXT: usize = 4_000;

/// The messages of two conversations, from one of them on.
pub(super) struct ComparedMessages<'c> {
    pub(super) one: CoreHash,
    pub(super) other: CoreHash,
    pub(super) rows: &'c [MessageComparison<'c>],
    /// The first row of the page.
    pub(super) from: usize,
}

/// Rows that follow each other and are on one page.
enum Stretch {
    Same(std::ops::Range<usize>),
    Different(usize),
}

impl ComparedMessages<'_> {
    /// Returns the number of the first row that differs, and its anchor is `message-` with this number.
    pub(super) fn first(&self) -> Option<usize> {
        self.rows.iter().position(|row| row.change.is_some())
    }

    /// Counts the messages by how they differ.
    pub(super) fn counts(&self) -> Markup {
        let count = |change| self.rows.iter().filter(|row| row.change == change).count() as u64;
        let different = [
            (ChangeType::Changed, "changed"),
            (ChangeType::Moved, "moved"),
            (ChangeType::Removed, "only in one"),
            (ChangeType::Inserted, "only in the other"),
        ];
        html! {
            (counted(count(None), "message")) " the same"
            @for (change, name) in different {
                @let count = count(Some(change));
                @if count > 0 { ", " (number(count)) " " (name) }
            }
            "."
        }
    }

    /// Returns the rows of the page, and the first one of the next page.
    pub(super) fn shown(&self) -> (Markup, Option<usize>) {
        let (stretches, next) = self.stretches();
        let shown = html! {
            @for stretch in &stretches {
                @match stretch {
                    Stretch::Same(rows) => (self.same(self.rows.get(rows.clone()).unwrap_or_default())),
                    Stretch::Different(at) => @if let Some(row) = self.rows.get(*at) { (self.different(*at, row)) },
                }
            }
        };
        (shown, next)
    }

    fn stretches(&self) -> (Vec<Stretch>, Option<usize>) {
        let mut stretches = Vec::new();
        let mut different = 0;
        for (at, row) in self.rows.iter().enumerate().skip(self.from) {
            match (row.change, stretches.last_mut()) {
                (Some(_), _) if different == DIFFERENT => return (stretches, Some(at)),
                (Some(_), _) => {
                    different += 1;
                    stretches.push(Stretch::Different(at));
                }
                (None, Some(Stretch::Same(rows))) => rows.end = at + 1,
                (None, _) => stretches.push(Stretch::Same(at..at + 1)),
            }
        }
        (stretches, None)
    }

    /// Returns messages that are the same, folded.
    fn same(&self, rows: &[MessageComparison<'_>]) -> Markup {
        let count = rows.len() as u64;
        let more = rows.get(SAME).and_then(|row| row.one);
        html! {
            details.same {
                summary { (counted(count, "message")) @if count == 1 { " is the same" } @else { " are the same" } }
                @for message in rows.iter().take(SAME).filter_map(|row| row.one) { (self.same_message(&message)) }
                @if let Some(more) = more {
                    p { a href=(address(self.one, &more)) { (counted(count - SAME as u64, "more message")) } }
                }
            }
        }
    }

    fn same_message(&self, message: &ComparedMessage<'_>) -> Markup {
        let address = address(self.one, message);
        let page = address.split('#').next().unwrap_or_default();
        let context = CallContext { step: message.step, page, alone: None, max_text: TEXT };
        match message.content {
            ComparedContent::Message(said) => context.message(message.number, said),
            ComparedContent::Error(text) => context.error(text),
        }
    }

    /// Returns a message that differs, which has this number among the rows.
    fn different(&self, at: usize, row: &MessageComparison<'_>) -> Markup {
        let texts = |message: Option<ComparedMessage<'_>>| message.map(|message| texts(message.content));
        let (one, other) = (texts(row.one), texts(row.other));
        let pairs = MarkedPair::new(one.as_deref().unwrap_or_default(), other.as_deref().unwrap_or_default());
        let class = if Some(at) == self.first() { "change first" } else { "change" };
        html! {
            article class=(class) id=(format!("message-{at}")) {
                h3 { span.tag { (name(row.change)) } }
                div.body {
                    div.sides {
                        (side("One", self.one, row.one, &pairs.one))
                        (side("Other", self.other, row.other, &pairs.other))
                    }
                }
            }
        }
    }
}

fn name(change: Option<ChangeType>) -> &'static str {
    match change {
        Some(ChangeType::Moved) => "in another place",
        Some(ChangeType::Removed) => "only in one",
        Some(ChangeType::Inserted) => "only in the other",
        _ => "different",
    }
}

/// A text of a message with the words marked that differ.
struct MarkedText<'t> {
    part: &'t MessageText,
    marked: Markup,
}

/// The texts of two messages, each in its order.
struct MarkedPair<'t> {
    one: Vec<MarkedText<'t>>,
    other: Vec<MarkedText<'t>>,
}

impl<'t> MarkedPair<'t> {
    /// Compares the texts of the first message with those of the second: each with the one that is as many-th of its noun.
    fn new(one: &'t [MessageText], other: &'t [MessageText]) -> Self {
        let counterpart = |of: &[MessageText], in_texts: &'t [MessageText], at: usize| {
            let noun = of.get(at)?.noun;
            let before = of.iter().take(at).filter(|text| text.noun == noun).count();
            in_texts.iter().filter(|text| text.noun == noun).nth(before)
        };
        let text = |part: Option<&'t MessageText>| part.map(|part| part.text.as_str());
        let marked_one = one.iter().enumerate().map(|(at, part)| {
            let marked = MarkedTexts::new(Some(&part.text), text(counterpart(one, other, at))).one;
            MarkedText { part, marked }
        });
        let marked_other = other.iter().enumerate().map(|(at, part)| {
            let marked = MarkedTexts::new(text(counterpart(other, one, at)), Some(&part.text)).other;
            MarkedText { part, marked }
        });
        Self { one: marked_one.collect(), other: marked_other.collect() }
    }
}

/// Returns the message of one of the conversations.
fn side(
    label: &str,
    core: CoreHash,
    message: Option<ComparedMessage<'_>>,
    texts: &[MarkedText<'_>],
) -> Markup {
    let Some(message) = message else {
        return html! { div { p.role { span.author { (label) } } p.faint { "It does not have this message." } } };
    };
    let (class, author) = match message.content {
        ComparedContent::Message(said) => author(said.role),
        ComparedContent::Error(_) => ("error", "Error"),
    };
    html! {
        div class=(format!("message {class}")) {
            p.role {
                span.author { (label) ": " (author) }
                a.permalink href=(address(core, &message)) { "step " (message.step) }
            }
            @for MarkedText { part, marked } in texts {
                @if !part.noun.is_empty() && part.noun != author {
                    p.role { span.author { (part.noun) } }
                }
                @if part.text.is_empty() { p.faint { "Empty" } } @else { pre { (marked) } }
            }
            @if texts.is_empty() { p.faint { "Empty" } }
        }
    }
}

/// Returns the address of a message on the page of its run.
fn address(core: CoreHash, message: &ComparedMessage<'_>) -> String {
    let step = TranscriptSelection::default().step_address(core, message.step);
    match message.content {
        ComparedContent::Message(_) => format!("{step}-{}", message.number),
        ComparedContent::Error(_) => step,
    }
}

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
