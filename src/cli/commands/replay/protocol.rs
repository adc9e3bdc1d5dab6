//! The request and response format, one line each. `docs/replay.md` describes it.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};
use std::num::NonZeroUsize;

use runvault::artifact::{Exchange, Responder, group};
use runvault::digest::{CoreHash, Digest, DigestPrefix};
use runvault::vault::replay::{self, PlayedResponse, PlayerRequest, ReplayMiss};
use runvault::vault::resolve::DigestsRequest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::response_source::ResponseSource;

/// The permitted requests.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReplayRequestMode {
    /// Whether the recording is a run, so that there are also tool calls and requests for the next response. Otherwise there
    /// are only prompts.
    pub(crate) is_of_run: bool,
    /// Whether requests must be in recorded order.
    pub(crate) is_in_order: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayRequestLine<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    prompt: Option<String>,
    prompt_hash: Option<String>,
    occurrence: Option<NonZeroUsize>,
    responder: Option<String>,
    tool: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'l RawValue>,
    arguments_hash: Option<String>,
}

/// The id of a request, for responses to malformed requests.
#[derive(Deserialize)]
struct ReplayRequestId<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
}

/// Parses a request and its id. The id is returned as written. The first digits of the hash of a prompt are resolved among
/// the prompts in the vault, and those of the hash of arguments among the recorded calls.
pub(super) fn read<'l>(
    line: &'l [u8],
    mode: ReplayRequestMode,
    source: &dyn ResponseSource,
) -> (Option<&'l RawValue>, Result<PlayerRequest, ReplayProtocolError>) {
    // serde_json also accepts arrays as structs.
    if !line.trim_ascii_start().starts_with(b"{") {
        return (
            None,
            Err(ReplayProtocolError::malformed("a request must be a JSON object on one line".to_owned())),
        );
    }
    match serde_json::from_slice::<ReplayRequestLine<'_>>(line) {
        Ok(line) if !line.id.is_none_or(is_name) => {
            (None, Err(ReplayProtocolError::malformed("id must be a string, a number or null".to_owned())))
        }
        Ok(line) => (line.id, request(line, mode, source).map_err(ReplayProtocolError::malformed)),
        Err(error) => {
            let named = serde_json::from_slice::<ReplayRequestId<'_>>(line).ok();
            let id = named.and_then(|named| named.id).filter(|id| is_name(id));
            (id, Err(ReplayProtocolError::malformed(error.to_string())))
        }
    }
}

fn is_name(id: &RawValue) -> bool {
    id.get().starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'))
}

fn request(
    line: ReplayRequestLine<'_>,
    mode: ReplayRequestMode,
    source: &dyn ResponseSource,
) -> Result<PlayerRequest, String> {
    let prompt = match (line.prompt, line.prompt_hash) {
        (Some(_), Some(_)) => return Err("prompt and prompt_hash cannot be used together".to_owned()),
        (Some(text), None) => Some(Digest::from_content(text.as_bytes())),
        (None, Some(hash)) => {
            let prefix = hash.parse().map_err(|error| format!("prompt_hash: {error}"))?;
            let request = DigestsRequest { prefix, group: Some(group::PROMPT.to_owned()) };
            Some(request.only(source.vault()).map_err(|error| format!("prompt_hash: {error}"))?)
        }
        (None, None) => None,
    };
    let arguments = match (line.arguments, line.arguments_hash) {
        (Some(_), Some(_)) => {
            return Err("arguments and arguments_hash cannot be used together".to_owned());
        }
        (Some(json), None) => {
            Some(replay::arguments_digest(json.get()).map_err(|error| format!("arguments: {error}"))?)
        }
        (None, Some(hash)) => {
            let prefix = hash.parse().map_err(|error| format!("arguments_hash: {error}"))?;
            Some(recorded_arguments(&prefix, source).map_err(|error| format!("arguments_hash: {error}"))?)
        }
        (None, None) => None,
    };
    let responder = match line.responder.as_deref() {
        None => None,
        Some("model") => Some(Responder::Model),
        Some("tool") => Some(Responder::Tool),
        Some(_) => return Err("responder must be model or tool".to_owned()),
    };
    let request =
        PlayerRequest { prompt, occurrence: line.occurrence, responder, tool: line.tool, arguments };
    check(&request, mode).map(|()| request)
}

/// Returns the only digest of recorded arguments that begins with the prefix. A full hash need not be recorded.
fn recorded_arguments(prefix: &DigestPrefix, source: &dyn ResponseSource) -> Result<Digest, String> {
    if let Some(whole) = prefix.whole() {
        return Ok(whole);
    }
    let found: BTreeSet<Digest> =
        source.arguments().into_iter().filter(|digest| prefix.matches(digest)).collect();
    match (found.first(), found.len()) {
        (Some(only), 1) => Ok(*only),
        (None, _) => Err(format!("no recorded call has arguments whose hash begins with {prefix}")),
        (Some(_), count) => {
            Err(format!("{prefix} is ambiguous: {count} hashes begin with it; give more digits"))
        }
    }
}

/// Returns an error unless the parts of a request are consistent.
fn check(request: &PlayerRequest, mode: ReplayRequestMode) -> Result<(), String> {
    let PlayerRequest { prompt, occurrence, responder, tool, arguments } = request;
    let of_call = tool.is_some() || arguments.is_some();
    let is_of_model = prompt.is_some() || *responder == Some(Responder::Model);
    let is_of_tool = of_call || *responder == Some(Responder::Tool);
    let wrong = if prompt.is_none() && !mode.is_of_run {
        "prompt or prompt_hash is required"
    } else if occurrence.is_some() && mode.is_in_order {
        "occurrence is not allowed in a sequence"
    } else if (responder.is_some() || of_call) && !mode.is_of_run {
        "responder, tool and arguments are only allowed for runs"
    } else if is_of_model && is_of_tool {
        "the request is for both a model and a tool"
    } else if tool.is_some() && arguments.is_none() {
        "a tool call needs arguments or arguments_hash; {} means no arguments"
    } else if arguments.is_some() && tool.is_none() && responder.is_none() {
        "arguments without tool; \"responder\": \"tool\" selects tools whose name was not recorded"
    } else if occurrence.is_some() && prompt.is_none() && arguments.is_none() {
        "occurrence needs a prompt or a tool call"
    } else {
        return Ok(());
    };
    Err(wrong.to_owned())
}

/// A successful response.
#[derive(Serialize)]
pub(super) struct ReplayResponseLine<'a> {
    id: Option<&'a RawValue>,
    response: &'a str,
    core_hash: CoreHash,
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrence: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrences: Option<usize>,
    #[serde(flatten)]
    of_run: Option<RunStepMembers>,
}

/// The data of a run's step other than its texts.
#[derive(Serialize)]
struct RunStepMembers {
    responder: &'static str,
    tool: Option<String>,
    output: Option<Box<RawValue>>,
}

impl RunStepMembers {
    fn new(exchange: &Exchange) -> Self {
        let output = exchange.output.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Self { responder: exchange.responder.name(), tool: exchange.tool.clone(), output }
    }
}

impl<'a> ReplayResponseLine<'a> {
    pub(super) fn new(
        id: Option<&'a RawValue>,
        core_hash: CoreHash,
        played: PlayedResponse<'a>,
        mode: ReplayRequestMode,
    ) -> Self {
        let PlayedResponse { exchange, occurrence } = played;
        Self {
            id,
            response: &exchange.response,
            core_hash,
            index: exchange.index,
            occurrence: occurrence.map(|occurrence| occurrence.number),
            occurrences: occurrence.map(|occurrence| occurrence.of),
            of_run: mode.is_of_run.then(|| RunStepMembers::new(exchange)),
        }
    }
}

/// An error response.
#[derive(Serialize)]
pub(super) struct ReplayErrorLine<'a> {
    pub(super) id: Option<&'a RawValue>,
    pub(super) error: ReplayProtocolError,
}

/// The reason that there is no response.
#[derive(Default, Serialize)]
pub(crate) struct ReplayProtocolError {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_hash: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_hash: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expected: Vec<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<Vec<CoreHash>>,
    /// The run that recorded the error, if one is replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    core_hash: Option<CoreHash>,
    #[serde(flatten)]
    recorded: Option<RunStepMembers>,
}

impl ReplayProtocolError {
    fn malformed(message: String) -> Self {
        Self { code: "malformed", message, ..Self::default() }
    }

    pub(super) fn too_long() -> Self {
        let message =
            format!("the request has more than {MAX_BYTES} bytes; use prompt_hash for long prompts");
        Self { code: "too_long", message, ..Self::default() }
    }

    pub(super) fn failed(message: String) -> Self {
        Self { code: "failed", message, ..Self::default() }
    }

    /// Returns the error that `core_hash` recorded.
    pub(super) fn recorded(exchange: &Exchange, core_hash: CoreHash) -> Self {
        Self {
            code: "recorded_error",
            message: exchange.response.clone(),
            index: Some(exchange.index),
            core_hash: Some(core_hash),
            recorded: Some(RunStepMembers::new(exchange)),
            ..Self::default()
        }
    }

    /// Converts a miss. `elsewhere` contains other recordings in which the prompt can be looked up.
    pub(super) fn miss(miss: &ReplayMiss, elsewhere: Vec<CoreHash>) -> Self {
        let mut refusal = Self { code: code(miss), message: miss.to_string(), ..Self::default() };
        match miss {
            ReplayMiss::NotRecorded { prompt } => {
                refusal.prompt_hash = Some(*prompt);
                refusal.elsewhere = Some(elsewhere);
            }
            ReplayMiss::NoOccurrence { prompt, .. } => refusal.prompt_hash = Some(*prompt),
            ReplayMiss::CallNotRecorded { arguments, .. }
            | ReplayMiss::NoCallOccurrence { arguments, .. } => {
                refusal.arguments_hash = Some(*arguments);
            }
            ReplayMiss::OutOfOrder { index, expected, requested, .. } => {
                refusal.prompt_hash = Some(*requested);
                refusal.index = Some(*index);
                refusal.expected.clone_from(expected);
            }
            ReplayMiss::OtherTool { index, .. } => refusal.index = Some(*index),
            ReplayMiss::OtherArguments { index, expected, requested, .. } => {
                refusal.arguments_hash = Some(*requested);
                refusal.index = Some(*index);
                refusal.expected = expected.iter().copied().collect();
            }
            ReplayMiss::NoPrompt
            | ReplayMiss::NoArguments
            | ReplayMiss::Exhausted { .. }
            | ReplayMiss::RecordedError { .. } => {}
        }
        refusal
    }
}

fn code(miss: &ReplayMiss) -> &'static str {
    match miss {
        ReplayMiss::NotRecorded { .. } | ReplayMiss::CallNotRecorded { .. } => "not_recorded",
        ReplayMiss::NoOccurrence { .. } | ReplayMiss::NoCallOccurrence { .. } => "no_occurrence",
        ReplayMiss::NoPrompt | ReplayMiss::NoArguments => "malformed",
        ReplayMiss::OutOfOrder { .. } => "out_of_order",
        ReplayMiss::OtherTool { .. } => "other_tool",
        ReplayMiss::OtherArguments { .. } => "other_arguments",
        ReplayMiss::Exhausted { .. } => "exhausted",
        ReplayMiss::RecordedError { .. } => "recorded_error",
    }
}

/// Maximum bytes of a line, without its end.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineReadResult {
    /// A complete line, in the buffer without its end.
    Whole,
    /// A line that was too long and was skipped.
    TooLong,
    /// The end of the input.
    End,
}

/// Reads one line into `buffer`. The last line need not have an end.
pub(super) fn read_line(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<LineReadResult> {
    buffer.clear();
    buffer.shrink_to(USUAL_BYTES);
    let most = MAX_BYTES as u64 + 1;
    let count = Read::by_ref(input).take(most).read_until(b'\n', buffer)?;
    if buffer.pop_if(|last| *last == b'\n').is_some() {
        return Ok(LineReadResult::Whole);
    }
    if count > MAX_BYTES {
        buffer.clear();
        pass_over_line(input)?;
        return Ok(LineReadResult::TooLong);
    }
    Ok(if count == 0 { LineReadResult::End } else { LineReadResult::Whole })
}

/// Buffers larger than this are freed after a line.
const USUAL_BYTES: usize = 1 << 20;

fn pass_over_line(input: &mut impl BufRead) -> io::Result<()> {
    input.skip_until(b'\n').map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded() {
        let mut text = b"one\n\n".to_vec();
        text.extend(vec![b'x'; MAX_BYTES]);
        text.push(b'\n');
        text.extend(vec![b'x'; MAX_BYTES + 1]);
        text.extend(b"\nlast");
        let (mut input, mut buffer) = (text.as_slice(), Vec::new());
        let mut next = || read_line(&mut input, &mut buffer).map(|line| (line, buffer.len())).unwrap();
        assert_eq!(next(), (LineReadResult::Whole, 3));
        assert_eq!(next(), (LineReadResult::Whole, 0));
        assert_eq!(next(), (LineReadResult::Whole, MAX_BYTES));
        assert_eq!(next(), (LineReadResult::TooLong, 0));
        assert_eq!(next(), (LineReadResult::Whole, 4));
        assert_eq!(next(), (LineReadResult::End, 0));
    }
}
