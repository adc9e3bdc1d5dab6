use crate::artifact::Responder;
use crate::digest::Digest;

/// Why there is no response to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Miss {
    /// Nobody asked this when the recording was made.
    #[error("the prompt {prompt} was not recorded")]
    NotRecorded {
        /// The prompt that was asked.
        prompt: Digest,
    },
    /// It was not asked as often.
    #[error("there is no occurrence {wanted} of the prompt {prompt}: it was recorded {}", times(*.recorded))]
    NoOccurrence {
        /// The prompt that was asked.
        prompt: Digest,
        /// Which occurrence was wanted, from 1.
        wanted: usize,
        /// How many there are.
        recorded: usize,
    },
    /// A lookup needs a prompt.
    #[error("there is no prompt to look up")]
    NoPrompt,
    /// The next response of a sequence answers something else.
    #[error("call {call} must ask {} of {unit} {index}, and asks {asked}", wanted(.expected))]
    OutOfOrder {
        /// The number of the call, from 0.
        call: usize,
        /// What the recording counts.
        unit: &'static str,
        /// The number of the interaction or step that comes next, from 0.
        index: usize,
        /// What was asked there.
        expected: Vec<Digest>,
        /// The prompt that was asked now.
        asked: Digest,
    },
    /// The next response of a tool in a sequence is of another tool.
    #[error("call {call} must be of the tool {expected:?} of {unit} {index}, and is of {asked:?}")]
    OtherTool {
        /// The number of the call, from 0.
        call: usize,
        /// What the recording counts.
        unit: &'static str,
        /// The number of the step that comes next, from 0.
        index: usize,
        /// Its tool.
        expected: String,
        /// The tool that was asked now.
        asked: String,
    },
    /// A sequence has come to its end.
    #[error("the recording has no response{} left for call {call}", of(*.responder))]
    Exhausted {
        /// The number of the call, from 0.
        call: usize,
        /// Whose response was wanted, if that was said.
        responder: Option<Responder>,
    },
}

pub(super) fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn of(responder: Option<Responder>) -> String {
    responder.map_or(String::new(), |responder| format!(" of a {}", responder.name()))
}

fn wanted(expected: &[Digest]) -> String {
    match expected {
        [only] => format!("the prompt {only}"),
        [first, rest @ ..] => format!("the prompt {first} or one of {} others", rest.len()),
        [] => "nothing".to_owned(),
    }
}
