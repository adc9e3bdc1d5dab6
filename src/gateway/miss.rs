//! Why a request was not answered from recordings.

use serde_json::{Value as Json, json};

use super::difference::differences;
use super::recordings::RecordingLookup;
use crate::calls::call::ResponseForm;
use crate::calls::recorded_run::{AnsweredCall, UnansweredCall};
use crate::digest::CoreHash;
use crate::json::reader::{self, Limits};

/// Maximum number of differences that are listed.
const LISTED: usize = 5;

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
    Different { run: CoreHash, step: usize, lines: Vec<String>, count: usize },
    /// The request was recorded, with an answer in the other form.
    OtherForm { run: CoreHash, step: usize, recorded: ResponseForm },
    /// The request was recorded without a complete answer.
    Unanswered { run: CoreHash, step: usize, reason: String },
}

impl RecordingMiss {
    /// Compares a request with a recorded one. Returns how many values differ, and the reason; `None` if one of them cannot
    /// be read.
    pub(super) fn compared(
        run: CoreHash,
        recorded: &AnsweredCall,
        lookup: &RecordingLookup,
    ) -> Option<(usize, Self)> {
        let step = recorded.step;
        let url = lookup.url_difference(recorded);
        if recorded.prompt == lookup.prompt {
            return Some((
                0,
                match url {
                    Some(line) if recorded.form == lookup.form => {
                        Self::Different { run, step, lines: vec![line], count: 1 }
                    }
                    _ => Self::OtherForm { run, step, recorded: recorded.form },
                },
            ));
        }
        let read = |text| reader::read(str::as_bytes(text), &Limits::most()).ok();
        let (one, other) = (read(&recorded.prompt)?, read(&lookup.prompt)?);
        let (mut lines, mut count) = differences(&one, &other, LISTED);
        if let Some(line) = url.filter(|_| recorded.form == lookup.form) {
            lines.insert(0, line);
            count += 1;
        }
        Some((count, Self::Different { run, step, lines, count }))
    }

    /// Returns the reason for a request that was recorded without a complete answer.
    pub(super) fn unanswered(run: CoreHash, unanswered: &UnansweredCall) -> Self {
        let UnansweredCall { step, reason, .. } = unanswered;
        Self::Unanswered { run, step: *step, reason: reason.clone() }
    }

    /// Returns the reason as a sentence without a full stop.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Nothing => "no request of this API was recorded".to_owned(),
            Self::NoRecording(core) => format!("{core} was not recorded by a gateway"),
            Self::Exhausted { recordings: 1 } => "the request was recorded only once".to_owned(),
            Self::Exhausted { recordings } => format!("the request was recorded only {recordings} times"),
            Self::Different { lines, count, .. } => {
                let more = count - lines.len();
                let more = if more > 0 { format!("; and {more} more differences") } else { String::new() };
                format!("{}{more}", lines.join("; "))
            }
            Self::OtherForm { recorded: ResponseForm::Stream, .. } => {
                "the request was recorded with a streamed answer, and was made without streaming".to_owned()
            }
            Self::OtherForm { recorded: ResponseForm::Whole, .. } => {
                "the request was recorded with an answer in one piece, and was made with streaming".to_owned()
            }
            Self::Unanswered { reason, .. } => {
                format!(
                    "the request was recorded without a complete answer, which is never replayed: {reason}"
                )
            }
        }
    }

    /// Returns the problem document (RFC 9457) for the client. The member `error` is where clients of providers look for a
    /// message.
    pub(super) fn problem(&self) -> Json {
        let reason = self.reason();
        let mut problem = json!({
            "type": "about:blank",
            "title": "not recorded",
            "status": 404,
            "detail": reason,
            "error": {"message": format!("not recorded: {reason}"), "type": "not_recorded"},
        });
        let nearest = match self {
            Self::Different { run, step, .. }
            | Self::OtherForm { run, step, .. }
            | Self::Unanswered { run, step, .. } => Some((run, step)),
            _ => None,
        };
        if let (Some((run, step)), Some(members)) = (nearest, problem.as_object_mut()) {
            members.insert("nearest".to_owned(), json!({"core_hash": run.to_string(), "step": step}));
        }
        if let (Self::Different { lines, count, .. }, Some(members)) = (self, problem.as_object_mut()) {
            members.insert("differences".to_owned(), json!(lines));
            members.insert("differences_count".to_owned(), json!(count));
        }
        problem
    }
}
