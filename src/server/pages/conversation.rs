//! The calls of a conversation, each with its new messages and its answers.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::message::CallContext;
use super::parts::{self, duration};
use super::selection::TranscriptSelection;
use super::timeline::{self, TimelineItem};
use crate::display::{self, counted};
use crate::server::address;
use crate::server::frame::{line, number};
use crate::vault::view::{
    Conversation, ConversationCall, ConversationMessage, ConversationThread, MessagePart, ViewAnswer,
};

/// Maximum number of characters of each text; more if a single call is requested.
const TEXT: usize = 20_000;
const FULL_TEXT: usize = 200_000;

/// Number of colors that threads are distinguished by.
const COLORS: u64 = 5;

/// Maximum number of steps between two calls that have places of their own on the page.
const PLACES: usize = 100;

/// Returns the timeline and the calls.
pub(super) fn calls(
    selection: TranscriptSelection,
    answer: &ViewAnswer,
    conversation: &Conversation,
) -> Markup {
    let section = CallsSection { selection, answer, page: selection.address(answer.artifact.core_hash) };
    let Conversation { calls, threads } = conversation;
    // A filter leaves out steps between two calls that belong to neither.
    let is_all = selection.only.is_none();
    let next = |at: usize| calls.get(at + 1).map(|call| call.step).or(answer.next).filter(|_| is_all);
    let previous = |at: usize, thread: u64| calls.get(..at)?.iter().rfind(|call| call.thread == thread);
    let before = |at: usize| at.checked_sub(1).and_then(|at| calls.get(at));
    html! {
        (timeline::drawing(&parts::page_noun(answer), &items(calls)))
        div.calls {
            @for (at, call) in calls.iter().enumerate() {
                @if before(at).map_or(call.thread != 0, |before| before.thread != call.thread) {
                    (thread_heading(call.thread, threads))
                }
                (section.call(call, previous(at, call.thread), next(at)))
            }
        }
        @if calls.is_empty() { p.faint { "None." } }
    }
}

/// Describes a thread above a call of it.
fn thread_heading(thread: u64, threads: &[ConversationThread]) -> Markup {
    let known = usize::try_from(thread).ok().and_then(|at| threads.get(at));
    html! {
        p.thread {
            "Thread " (thread)
            @if let Some(parent) = known.and_then(|thread| thread.parent) {
                span.faint { ", which branches off from thread " (parent) }
            }
        }
    }
}

struct CallsSection<'s> {
    selection: TranscriptSelection,
    answer: &'s ViewAnswer,
    /// The address of the page.
    page: String,
}

impl CallsSection<'_> {
    /// Returns a call. `previous` is the one before it in its thread, `next` the step of the one after it.
    fn call(
        &self,
        call: &ConversationCall,
        previous: Option<&ConversationCall>,
        next: Option<u64>,
    ) -> Markup {
        let core = self.answer.artifact.core_hash;
        let is_complete = self.selection.is_complete();
        let alone = (!is_complete).then(|| self.selection.alone(call.step).address(core));
        let context = CallContext {
            step: call.step,
            page: &self.page,
            alone: alone.as_deref(),
            max_text: if is_complete { FULL_TEXT } else { TEXT },
        };
        let id = format!("step-{}", call.step);
        let class = format!(
            "call thread-{}{}",
            call.thread % COLORS,
            if call.error.is_some() { " failed" } else { "" }
        );
        let raw = TranscriptSelection { raw: true, ..self.selection }.step_address(core, call.step);
        html! {
            article class=(class) id=(id) aria-label=(format!("Call {}", call.step)) {
                p.measures {
                    (context.permalink(&id, "call")) " "
                    strong { (line(&call.model)) } " "
                    (measures(call)) " "
                    a.raw href=(raw) { "step " (call.step) }
                    @if let Some(prompt) = call.prompt_hash {
                        a.raw href=(address::prompt(prompt)) title="answers to the same prompt" { "all answers" }
                    }
                }
                (offered(call, previous))
                @for (number, message) in call.messages.iter().enumerate() { (context.message(number, message)) }
                // Steps between this call and the next one, such as that with the answer.
                @for step in (call.step + 1..next.unwrap_or(call.step + 2)).take(PLACES) { span id=(format!("step-{step}")) {} }
                @for (number, message) in call.answers.iter().enumerate() {
                    (context.message(call.messages.len() + number, message))
                }
                @if let Some(error) = &call.error { (context.error(error)) }
            }
        }
    }
}

/// Returns what is known of a call beside what was said.
fn measures(call: &ConversationCall) -> Markup {
    html! {
        span.faint { (line(&call.provider)) " " (line(&call.endpoint)) } " "
        @if let Some(time) = call.requested_at { (clock_time(time.0)) " " }
        @if let Some(took) = call.duration_ms { span.faint { (duration(took)) } " " }
        @if let Some(tokens) = call.tokens_in { span.faint { (number(tokens)) " tokens in" } " " }
        @if let Some(tokens) = call.tokens_out { span.faint { (number(tokens)) " out" } " " }
        @if let Some(reason) = &call.finish_reason { span.tag title="finish reason" { (line(reason)) } " " }
        @if call.error.is_some() { span.bad { "failed" } }
    }
}

/// Returns the time of day, with the exact time as a tooltip.
fn clock_time(at: DateTime<Utc>) -> Markup {
    html! { time.faint datetime=(at.to_rfc3339()) title=(display::time(at)) { (at.format("%H:%M:%S")) } }
}

/// Returns the tools and the parameters of a request, if they are others than those of the one before it.
fn offered(call: &ConversationCall, previous: Option<&ConversationCall>) -> Markup {
    let ConversationCall { tools, parameters, .. } = call;
    let is_same = previous.is_some_and(|before| before.tools == *tools && before.parameters == *parameters);
    if is_same || tools.is_empty() && parameters.is_empty() {
        return html! {};
    }
    let counts = [(tools.len(), "tool"), (parameters.len(), "parameter")].into_iter();
    let counts = counts.filter(|(count, _)| *count > 0).map(|(count, noun)| counted(count as u64, noun));
    let counts = counts.collect::<Vec<_>>().join(", ");
    html! {
        details.offered {
            summary { (counts) }
            @if !tools.is_empty() { p { @for tool in tools { span.tag { (line(tool)) } " " } } }
            @if !parameters.is_empty() {
                dl { @for (name, value) in parameters { div { dt { (line(name)) } dd { code { (line(value)) } } } } }
            }
        }
    }
}

/// Returns what the timeline shows: the calls, and the times in which their tools were called.
fn items(calls: &[ConversationCall]) -> Vec<TimelineItem> {
    let mut items = Vec::new();
    // The end of the last call of each thread, with the names of its tools, if it asked for some.
    let mut waiting: HashMap<u64, (i64, TimelineItem)> = HashMap::new();
    for call in calls {
        let begin = call.requested_at.map(|time| time.0.timestamp_millis());
        if let (Some((end, item)), Some(begin)) = (waiting.remove(&call.thread), begin) {
            let length = u64::try_from(begin.saturating_sub(end)).unwrap_or(0);
            items.push(TimelineItem { length, ..item });
        }
        let length = call.duration_ms.unwrap_or(0);
        let address = format!("#step-{}", call.step);
        let (names, failed) = tools(&call.answers);
        if let (Some(begin), false) = (begin, names.is_empty()) {
            let end = begin.saturating_add(i64::try_from(length).unwrap_or(i64::MAX));
            let label = format!("{}, until the next request", names.join(", "));
            let item = TimelineItem {
                class: "tool",
                failed,
                begin: Some(end),
                length: 0,
                label,
                address: address.clone(),
            };
            waiting.insert(call.thread, (end, item));
        }
        let mut label = format!("{} {}", call.step, call.model);
        label.extend(call.duration_ms.map(|took| format!(", {}", duration(took))));
        let failed = call.error.is_some();
        label.push_str(if failed { ", failed" } else { "" });
        items.push(TimelineItem { class: "model", failed, begin, length, label, address });
    }
    items
}

/// Returns the names of the tools that answers call, and whether a call failed.
fn tools(answers: &[ConversationMessage]) -> (Vec<&str>, bool) {
    let calls = answers.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        MessagePart::ToolCall(call) => Some(call),
        _ => None,
    });
    let mut names = Vec::new();
    let mut failed = false;
    for call in calls {
        names.push(call.name.as_str());
        failed |= call.result.as_ref().is_some_and(|result| result.is_error);
    }
    (names, failed)
}
