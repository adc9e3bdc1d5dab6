//! Reasons why a request is not answered from recordings.

use axum::http::StatusCode;
use axum::http::header::{HeaderMap, USER_AGENT};
use serde_json::{Value as Json, json};

use super::difference::{Differences, RuleFormat, RuleSuggestion, differences, suggestions};
use super::recordings::{RecordedFailure, RecordingLookup};
use super::responses::problem_document;
use crate::calls::recorded_run::AnsweredCall;
use crate::conversation::providers::is_named;
use crate::conversation::response::ResponseForm;
use crate::digest::CoreHash;
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value};

/// Maximum number of differences that are listed.
const LISTED: usize = 5;

/// The status of the answer to a call that was not recorded. Clients show the message of this one and do not ask again,
/// except those in [`STATUSES`].
const MISSED: StatusCode = StatusCode::BAD_REQUEST;

/// The statuses with which other clients do so, by the beginning of their `User-Agent`. Claude Code changes a request
/// that is answered with 400 or 422, and repeats it.
const STATUSES: [(&str, StatusCode); 1] = [("claude-cli/", StatusCode::PRECONDITION_FAILED)];

/// Returns the status of the answer to a call that was not recorded, for the client that sent these headers.
pub(super) fn missed_status(headers: &HeaderMap) -> StatusCode {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let own = STATUSES.iter().find(|(start, _)| agent.starts_with(start));
    own.map_or(MISSED, |(_, status)| *status)
}

/// The reason that there is no recorded answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordingMiss {
    /// No request of the API was recorded.
    Nothing,
    /// The recording to replay from was not made by a gateway.
    NoRecording(CoreHash),
    /// The request was recorded fewer times than it was made.
    Exhausted { recordings: usize },
    /// Another request was recorded.
    Different {
        run: CoreHash,
        step: usize,
        lines: Vec<String>,
        count: usize,
        /// Rules with which the two would be the same.
        rules: Vec<RuleSuggestion>,
    },
    /// The request was recorded, with an answer in the other form.
    OtherForm { run: CoreHash, step: usize, recorded: ResponseForm },
    /// The request was recorded with a failure that is not replayed.
    Failed(RecordedFailure),
}

/// How far a recorded request is from one that was made. A program repeats its conversation in each request, so that the
/// recording of the same turn has as many messages, although that of an earlier turn can differ in fewer values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Distance {
    messages: usize,
    differences: usize,
}

/// Returns the number of messages of a request.
fn messages(prompt: &Value<'_>) -> usize {
    let members = prompt.as_object().map(Object::iter).into_iter().flatten();
    let messages = members.filter(|(name, _)| is_named(name, |names| names.conversation));
    messages.filter_map(|(_, value)| value.as_array()).map(<[_]>::len).sum()
}

impl RecordingMiss {
    /// Compares a request, whose prompt is `requested`, with a recorded one. Returns how far they are from each other, and
    /// the reason; `None` if one of them cannot be read.
    pub(super) fn compared(
        run: CoreHash,
        recorded: &AnsweredCall,
        prompt: &str,
        lookup: &RecordingLookup,
        requested: &Value<'_>,
    ) -> Option<(Distance, Self)> {
        let step = recorded.request.step;
        let url = lookup.url_difference(&recorded.request);
        if recorded.request.prompt == lookup.digest {
            let miss = match url {
                Some(line) if recorded.form == lookup.form => {
                    Self::Different { run, step, lines: vec![line], count: 1, rules: Vec::new() }
                }
                _ => Self::OtherForm { run, step, recorded: recorded.form },
            };
            return Some((Distance::default(), miss));
        }
        let recorded_prompt = read(prompt)?;
        let messages = messages(&recorded_prompt).abs_diff(messages(requested));
        let Differences { mut lines, mut count } = differences(&recorded_prompt, requested, LISTED);
        if let Some(line) = url.filter(|_| recorded.form == lookup.form) {
            lines.insert(0, line);
            count += 1;
        }
        let distance = Distance { messages, differences: count };
        Some((distance, Self::Different { run, step, lines, count, rules: Vec::new() }))
    }

    /// Adds the rules with which a request would be the same as the recorded one with this prompt.
    pub(super) fn with_rules(
        mut self,
        recorded: &AnsweredCall,
        prompt: &str,
        lookup: &RecordingLookup,
        requested: &Value<'_>,
    ) -> Self {
        if let Self::Different { rules, .. } = &mut self
            && lookup.url_difference(&recorded.request).is_none()
            && recorded.form == lookup.form
            && let Some(prompt) = read(prompt)
        {
            *rules = suggestions(&prompt, requested);
        }
        self
    }

    /// Returns the reason as a sentence without a full stop. It names rules in their `format`.
    pub(super) fn reason(&self, format: RuleFormat) -> String {
        match self {
            Self::Nothing => "no request of this API was recorded".to_owned(),
            Self::NoRecording(core) => format!("{core} was not recorded by a gateway"),
            Self::Exhausted { recordings: 1 } => "the request was recorded only once".to_owned(),
            Self::Exhausted { recordings } => format!("the request was recorded only {recordings} times"),
            Self::Different { lines, count, rules, .. } => {
                let more = count - lines.len();
                let more = if more > 0 { format!("; and {more} more differences") } else { String::new() };
                let rules: Vec<String> = rules.iter().map(format).collect();
                let rules = rules.join(" ");
                let rules = if rules.is_empty() { rules } else { format!("; it would match with {rules}") };
                format!("{}{more}{rules}", lines.join("; "))
            }
            Self::OtherForm { recorded: ResponseForm::Stream, .. } => {
                "the request was recorded with a streamed answer, and was made without streaming".to_owned()
            }
            Self::OtherForm { recorded: ResponseForm::Whole, .. } => {
                "the request was recorded with an answer in one piece, and was made with streaming".to_owned()
            }
            Self::Failed(RecordedFailure { reason, is_complete: false, .. }) => {
                format!(
                    "the request was recorded without a complete answer, which is never replayed: {reason}"
                )
            }
            Self::Failed(RecordedFailure { reason, .. }) => {
                format!(
                    "the request was recorded with a failure, which is replayed only from a recording that is named: {reason}"
                )
            }
        }
    }

    /// Returns the problem document (RFC 9457) for the client. The member `error` is where clients of providers look for a
    /// message.
    pub(super) fn problem(&self, status: StatusCode, format: RuleFormat) -> Json {
        let mut problem = problem_document(status, "not recorded", &self.reason(format));
        let nearest = match self {
            Self::Different { run, step, .. }
            | Self::OtherForm { run, step, .. }
            | Self::Failed(RecordedFailure { run, step, .. }) => Some((run, step)),
            _ => None,
        };
        let nearest =
            nearest.map(|(run, step)| ("nearest", json!({"core_hash": run.to_string(), "step": step})));
        let mut more: Vec<(&str, Json)> = nearest.into_iter().collect();
        if let Self::Different { lines, count, rules, .. } = self {
            let rules: Vec<String> = rules.iter().map(format).collect();
            let stated = [("differences", json!(lines)), ("differences_count", json!(count))];
            more.extend(stated.into_iter().chain([("rules", json!(rules))]));
        }
        if let Some(members) = problem.as_object_mut() {
            members.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        problem
    }
}

fn read(text: &str) -> Option<Value<'_>> {
    reader::read(text.as_bytes(), &Limits::most()).ok()
}
