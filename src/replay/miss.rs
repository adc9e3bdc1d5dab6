use crate::artifact::{Exchange, Responder};
use crate::digest::Digest;

/// Why there is no response to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Miss {
    /// The prompt was not asked when the recording was made.
    #[error("the prompt {prompt} was not recorded")]
    NotRecorded {
        /// The prompt that was asked.
        prompt: Digest,
    },
    /// The prompt was not asked as often.
    #[error("there is no occurrence {wanted} of the prompt {prompt}: it was recorded {}", times(*.recorded))]
    NoOccurrence {
        /// The prompt that was asked.
        prompt: Digest,
        /// Which occurrence was wanted, from 1.
        wanted: usize,
        /// How many there are.
        recorded: usize,
    },
    /// The tool was not called with these arguments when the recording was made.
    #[error("no call of {} with the arguments {arguments} was recorded{}", named(.tool.as_deref()), others(*.calls))]
    CallNotRecorded {
        /// The tool that was called.
        tool: Option<String>,
        /// The digest of the arguments.
        arguments: Digest,
        /// How many calls of the tool were recorded.
        calls: usize,
    },
    /// The tool was not called as often with these arguments.
    #[error(
        "there is no occurrence {wanted} of the call of {} with the arguments {arguments}: it was recorded {}",
        named(.tool.as_deref()), times(*.recorded)
    )]
    NoCallOccurrence {
        /// The tool that was called.
        tool: Option<String>,
        /// The digest of the arguments.
        arguments: Digest,
        /// Which occurrence was wanted, from 1.
        wanted: usize,
        /// How many there are.
        recorded: usize,
    },
    /// A lookup needs a prompt.
    #[error("there is no prompt to look up")]
    NoPrompt,
    /// A call of a tool is known by its arguments.
    #[error("the arguments of the call are not given")]
    NoArguments,
    /// The next response of a sequence answers something else.
    #[error("call {call} must ask {} of {unit} {index}, and asks {asked}", wanted(.expected))]
    OutOfOrder {
        /// The number of the call, from 0.
        call: usize,
        /// What the recording counts.
        unit: &'static str,
        /// The number of the interaction or step that comes next, from 0.
        index: usize,
        /// What was asked there; nothing if that was not recorded.
        expected: Vec<Digest>,
        /// The prompt that was asked now.
        asked: Digest,
    },
    /// The next response of a tool in a sequence is of another tool.
    #[error("call {call} must be of {} of {unit} {index}, and is of {}", named(.expected.as_deref()), named(.asked.as_deref()))]
    OtherTool {
        /// The number of the call, from 0.
        call: usize,
        /// What the recording counts.
        unit: &'static str,
        /// The number of the step that comes next, from 0.
        index: usize,
        /// Its tool, if its name was recorded.
        expected: Option<String>,
        /// The tool that was asked now.
        asked: Option<String>,
    },
    /// The next call of the tool in a sequence has other arguments.
    #[error("call {call} must have {} of {unit} {index}, and has {asked}", with(.expected.as_ref()))]
    OtherArguments {
        /// The number of the call, from 0.
        call: usize,
        /// What the recording counts.
        unit: &'static str,
        /// The number of the step that comes next, from 0.
        index: usize,
        /// The digest of its arguments, if they were recorded.
        expected: Option<Digest>,
        /// The digest of the arguments of now.
        asked: Digest,
    },
    /// A sequence has come to its end.
    #[error("the recording has no response{} left for call {call}", of(*.responder))]
    Exhausted {
        /// The number of the call, from 0.
        call: usize,
        /// Whose response was wanted, if that was said.
        responder: Option<Responder>,
    },
    /// The call failed when the recording was made. This is what was recorded of it, and it counts as played.
    #[error("{unit} {} recorded an error: {}", .exchange.index, .exchange.response)]
    RecordedError {
        /// What the recording counts.
        unit: &'static str,
        /// The call that failed, with the message of the error as its response.
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

fn of(responder: Option<Responder>) -> String {
    responder.map_or(String::new(), |responder| format!(" of a {}", responder.name()))
}

fn wanted(expected: &[Digest]) -> String {
    match expected {
        [only] => format!("the prompt {only}"),
        [first, rest @ ..] => format!("the prompt {first} or one of {} others", rest.len()),
        [] => "the unrecorded prompt".to_owned(),
    }
}
