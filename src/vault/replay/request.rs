//! Requests to a player of recorded responses, the responses, and the reasons why there is none.

use std::num::NonZeroUsize;

use crate::artifact::{Arguments, Exchange, Responder};
use crate::digest::Digest;
use crate::json::reader::{self, Limits, ReadError};

/// The order in which recorded responses are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayMode {
    /// In any order: a response is found by its request. A repeated request gets its next recording.
    Lookup,
    /// In recorded order, each response once.
    Sequential,
}

/// The policy of lookups for requests that are repeated more often than they were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeat {
    /// Return a miss.
    #[default]
    Never,
    /// Repeat the last recorded response.
    Last,
}

/// A request to a player: a prompt, a call of a tool, or the next response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayerRequest {
    /// The SHA-256 of the prompt.
    pub prompt: Option<Digest>,
    /// The occurrence of the request, from 1; for lookups only. If `None`, the first unused one.
    pub occurrence: Option<NonZeroUsize>,
    /// The responder, if the request has neither a prompt nor a call; any if `None`.
    pub responder: Option<Responder>,
    /// The name of the called tool; `None` for tools whose name was not recorded.
    pub tool: Option<String>,
    /// The SHA-256 of the arguments of the call, as by [`Arguments::digest`].
    pub arguments: Option<Digest>,
}

impl PlayerRequest {
    /// Creates a request for the response to a prompt with this digest.
    #[must_use]
    pub fn prompt(digest: Digest) -> Self {
        Self { prompt: Some(digest), ..Self::default() }
    }

    /// Creates a request for the response to a call of `tool` with `arguments`, which are JSON.
    ///
    /// ```
    /// use runvault::vault::replay::PlayerRequest;
    ///
    /// # fn main() -> Result<(), runvault::json::reader::ReadError> {
    /// let request = PlayerRequest::call("weather", r#"{"days": 3, "city": "Paris"}"#)?;
    /// assert_eq!(request, PlayerRequest::call("weather", r#"{"city":"Paris","days":3}"#)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns a [`ReadError`] if `arguments` are not JSON, or have duplicate keys or numbers without a canonical form.
    pub fn call(tool: impl Into<String>, arguments: &str) -> Result<Self, ReadError> {
        let arguments = Some(arguments_digest(arguments)?);
        Ok(Self { tool: Some(tool.into()), arguments, ..Self::default() })
    }
}

/// Returns the digest by which calls with these arguments are looked up. `json` contains the arguments as JSON.
///
/// # Errors
/// Returns a [`ReadError`] if it is not JSON, or has duplicate keys or numbers without a canonical form.
pub fn arguments_digest(json: &str) -> Result<Digest, ReadError> {
    let value = reader::read(json.as_bytes(), &Limits::default())?;
    let arguments = Arguments::from_value(&value).ok_or_else(|| {
        ReadError::at(json.as_bytes(), 0, reader::Defect::Number, "a number has no canonical form")
    })?;
    Ok(arguments.digest())
}

/// A played response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayedResponse<'p> {
    /// The recorded exchange.
    pub exchange: &'p Exchange,
    /// The occurrence of the request; `None` if the next response was requested.
    pub occurrence: Option<Occurrence>,
}

/// An occurrence of a prompt or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its number, from 1.
    pub number: usize,
    /// The total number of occurrences.
    pub of: usize,
}

/// The reason that there is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayMiss {
    /// The prompt was not recorded.
    #[error("the prompt {prompt} was not recorded")]
    NotRecorded {
        /// The requested prompt.
        prompt: Digest,
    },
    /// The prompt was recorded fewer times.
    #[error("there is no occurrence {occurrence} of the prompt {prompt}: it was recorded {}", times(*.recorded))]
    NoOccurrence {
        /// The requested prompt.
        prompt: Digest,
        /// The requested occurrence, from 1.
        occurrence: usize,
        /// The number of occurrences.
        recorded: usize,
    },
    /// No call of the tool with these arguments was recorded.
    #[error("no call of {} with the arguments {arguments} was recorded{}", tool_text(.tool.as_deref()), other_calls(*.calls))]
    CallNotRecorded {
        /// The called tool.
        tool: Option<String>,
        /// The digest of the arguments.
        arguments: Digest,
        /// Number of recorded calls of the tool.
        calls: usize,
    },
    /// The call with these arguments was recorded fewer times.
    #[error(
        "there is no occurrence {occurrence} of the call of {} with the arguments {arguments}: it was recorded {}",
        tool_text(.tool.as_deref()), times(*.recorded)
    )]
    NoCallOccurrence {
        /// The called tool.
        tool: Option<String>,
        /// The digest of the arguments.
        arguments: Digest,
        /// The requested occurrence, from 1.
        occurrence: usize,
        /// The number of occurrences.
        recorded: usize,
    },
    /// A lookup requires a prompt.
    #[error("there is no prompt to look up")]
    NoPrompt,
    /// A call of a tool requires its arguments.
    #[error("the arguments of the call are missing")]
    NoArguments,
    /// The next response of the sequence answers another prompt.
    #[error("call {call}: expected {} of {unit} {index}, got {requested}", describe_expected(.expected))]
    OutOfOrder {
        /// The number of the call, from 0.
        call: usize,
        /// The unit of the recording.
        unit: &'static str,
        /// The number of the next interaction or step, from 0.
        index: usize,
        /// The recorded prompts; empty if they were not recorded.
        expected: Vec<Digest>,
        /// The requested prompt.
        requested: Digest,
    },
    /// The next tool response of the sequence is that of another tool.
    #[error("call {call}: expected {} of {unit} {index}, got {}", tool_text(.expected.as_deref()), tool_text(.requested.as_deref()))]
    OtherTool {
        /// The number of the call, from 0.
        call: usize,
        /// The unit of the recording.
        unit: &'static str,
        /// The number of the next step, from 0.
        index: usize,
        /// The recorded tool, if its name was recorded.
        expected: Option<String>,
        /// The requested tool.
        requested: Option<String>,
    },
    /// The next call of the tool in the sequence has other arguments.
    #[error("call {call}: expected {} of {unit} {index}, got {requested}", arguments_text(.expected.as_ref()))]
    OtherArguments {
        /// The number of the call, from 0.
        call: usize,
        /// The unit of the recording.
        unit: &'static str,
        /// The number of the next step, from 0.
        index: usize,
        /// The digest of the recorded arguments, if they were recorded.
        expected: Option<Digest>,
        /// The digest of the requested arguments.
        requested: Digest,
    },
    /// The sequence has no more responses.
    #[error("the recording has no response{} left for call {call}", responder_clause(*.responder))]
    Exhausted {
        /// The number of the call, from 0.
        call: usize,
        /// The requested responder, if any.
        responder: Option<Responder>,
    },
    /// The recorded call failed. This contains its recording, which counts as played.
    #[error("{unit} {} recorded an error: {}", .exchange.index, .exchange.response)]
    RecordedError {
        /// The unit of the recording.
        unit: &'static str,
        /// The failed call, with the error message as its response.
        exchange: Box<Exchange>,
    },
}

pub(super) fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn tool_text(tool: Option<&str>) -> String {
    tool.map_or_else(|| "a tool without a name".to_owned(), |tool| format!("the tool {tool:?}"))
}

fn other_calls(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "; another call of it was".to_owned(),
        count => format!("; {count} other calls of it were"),
    }
}

fn arguments_text(arguments: Option<&Digest>) -> String {
    arguments
        .map_or_else(|| "the unrecorded arguments".to_owned(), |digest| format!("the arguments {digest}"))
}

fn responder_clause(responder: Option<Responder>) -> String {
    responder.map_or(String::new(), |responder| format!(" of a {}", responder.name()))
}

fn describe_expected(expected: &[Digest]) -> String {
    match expected {
        [only] => format!("the prompt {only}"),
        [first, rest @ ..] => format!("the prompt {first} or one of {} others", rest.len()),
        [] => "the unrecorded prompt".to_owned(),
    }
}
