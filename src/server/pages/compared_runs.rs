//! More than two runs: a row for each prompt, a column for each run.

use maud::{Markup, html};

use super::compared_messages::{self, MarkedTexts};
use super::message::{FoldLimit, preview, sized};
use super::parts;
use super::selection::TranscriptSelection;
use crate::digest::CoreHash;
use crate::server::address;
use crate::server::frame::{block, line, number};
use crate::vault::diff::{ComparedContent, ComparedPrompt, compare_prompts};
use crate::vault::view::{Conversation, ConversationCall, ConversationMessage, MessageRole, ViewAnswer};

/// Number of rows of a page.
const ROWS: usize = 100;

const LONG: FoldLimit = FoldLimit { characters: 400, lines: 10 };

/// Returns the rows of a page, and the first one of the next page.
pub(super) fn table(runs: &[ViewAnswer], from: usize) -> (Markup, Option<usize>) {
    let empty = Conversation::default();
    let conversations: Vec<&Conversation> =
        runs.iter().map(|run| run.conversation.as_ref().unwrap_or(&empty)).collect();
    let rows = compare_prompts(&conversations);
    let cores: Vec<CoreHash> = runs.iter().map(|run| run.artifact.core_hash).collect();
    let shown = html! {
        p.faint { (number(rows.len() as u64)) " prompts. What differs from the first run is marked." }
        div.scroll tabindex="0" role="region" aria-label="Answers" {
            table.runs {
                thead {
                    tr {
                        th scope="col" { "Prompt" }
                        @for run in runs { th scope="col" { (heading(run, cores.first().copied())) } }
                    }
                }
                tbody { @for row in rows.iter().skip(from).take(ROWS) { (shown_row(row, &cores)) } }
            }
        }
    };
    let next = from.saturating_add(ROWS);
    (shown, (next < rows.len()).then_some(next))
}

/// Names a run, and leads to its comparison with the first one.
fn heading(run: &ViewAnswer, first: Option<CoreHash>) -> Markup {
    let core = run.artifact.core_hash;
    html! {
        (parts::run_of_view(run))
        @if run.conversation.is_none() { p.caution { "It has no conversation." } }
        @if let Some(first) = first.filter(|first| *first != core) {
            p { a href=(address::diff(first, Some(core))) { "Differences from the first" } }
        }
    }
}

fn shown_row(row: &ComparedPrompt<'_>, cores: &[CoreHash]) -> Markup {
    let asked = row.calls.iter().flatten().next().map(|call| prompt(call)).unwrap_or_default();
    let first = row.calls.first().copied().flatten();
    let first_answer = first.map(answer);
    html! {
        tr {
            th scope="row" { @if asked.is_empty() { "Results of tools" } @else { (folded(&asked, &html! { (block(&asked)) })) } }
            @for (column, (call, core)) in row.calls.iter().zip(cores).enumerate() {
                td {
                    @match call {
                        Some(call) => {
                            @let own = prompt(call);
                            @if own != asked { p.faint { "Asked: " (line(&own)) } }
                            (cell(call, first_answer.as_deref().filter(|_| column > 0)))
                            a.permalink href=(TranscriptSelection::default().step_address(*core, call.step)) { "step " (call.step) }
                        },
                        None => span.faint { "–" },
                    }
                }
            }
        }
    }
}

/// Returns the answer of a call, with the words marked that the first run does not have.
fn cell(call: &ConversationCall, first: Option<&str>) -> Markup {
    let text = answer(call);
    let marked = first.map(|first| MarkedTexts::new(Some(first), Some(&text)).other);
    html! {
        @if first == Some(&text) { span.tag { "same" } " " }
        div class=(if call.error.is_some() { "answer bad" } else { "answer" }) {
            (folded(&text, &marked.unwrap_or_else(|| html! { (block(&text)) })))
        }
    }
}

/// Returns a text, folded if it is long.
fn folded(text: &str, content: &Markup) -> Markup {
    html! {
        @if LONG.is_reached(text) {
            details.long {
                summary { span.preview { (line(&preview(text))) "…" } " " (sized(text)) }
                div.literal { (content) }
            }
        } @else { div.literal { (content) } }
    }
}

/// Returns what is new in a request, except instructions, unless there is nothing else.
fn prompt(call: &ConversationCall) -> String {
    let of = |is_in: fn(&&ConversationMessage) -> bool| {
        text(call.messages.iter().filter(is_in).map(ComparedContent::Message))
    };
    let asked = of(|message| message.role != MessageRole::System);
    if asked.is_empty() { of(|_| true) } else { asked }
}

fn answer(call: &ConversationCall) -> String {
    let said = call.answers.iter().map(ComparedContent::Message);
    text(said.chain(call.error.as_deref().map(ComparedContent::Error)))
}

fn text<'c>(contents: impl Iterator<Item = ComparedContent<'c>>) -> String {
    let texts: Vec<String> = contents
        .flat_map(compared_messages::texts)
        .map(|text| if text.noun.is_empty() { text.text } else { format!("{}: {}", text.noun, text.text) })
        .collect();
    texts.join("\n\n")
}
