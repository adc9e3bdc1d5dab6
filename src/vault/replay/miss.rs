use crate::artifact::{Exchange, Responder};
use crate::digest::Digest;

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
    #[error("no call of {} with the arguments {arguments} was recorded{}", named(.tool.as_deref()), others(*.calls))]
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
        named(.tool.as_deref()), times(*.recorded)
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
    #[error("call {call}: expected {} of {unit} {index}, got {}", named(.expected.as_deref()), named(.requested.as_deref()))]
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
    #[error("call {call}: expected {} of {unit} {index}, got {requested}", with(.expected.as_ref()))]
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

fn named(tool: Option<&str>) -> String {
    tool.map_or_else(|| "a tool without a name".to_owned(), |tool| format!("the tool {tool:?}"))
}

fn others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "; another call of it was".to_owned(),
        count => format!("; {count} other calls of it were"),
    }
}

fn with(arguments: Option<&Digest>) -> String {
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
