//! The messages of two conversations side by side.

use maud::{Markup, html};

use super::marked::{self, MarkedTexts, MessageText};
use super::message::{CallContext, author};
use super::selection::TranscriptSelection;
use crate::digest::CoreHash;
use crate::display::counted;
use crate::server::text::number;
use crate::vault::diff::{ChangeType, ComparedContent, ComparedMessage, MessageComparison};

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
        let texts =
            |message: Option<ComparedMessage<'_>>| message.map(|message| marked::texts(message.content));
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
