//! Requests and answers as they are written, one line each. `docs/replay.md` describes them.

use std::num::NonZeroUsize;

use runvault::artifact::{Exchange, Responder};
use runvault::digest::{CoreHash, Digest};
use runvault::replay::{Miss, Played, Request};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::lines::MAX_BYTES;

/// What may be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Prompts, in any order.
    Prompts,
    /// Prompts, in the order of the recording.
    PromptsInOrder,
    /// Whatever comes next.
    Anything,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    prompt: Option<String>,
    prompt_hash: Option<String>,
    occurrence: Option<NonZeroUsize>,
    responder: Option<String>,
    tool: Option<String>,
}

/// A request without anything but its name, for answers to what is wrong otherwise.
#[derive(Deserialize)]
struct Named<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
}

/// Reads a request and its name. The name is given back as it is written.
pub(super) fn read(line: &[u8], asked: Asked) -> (Option<&RawValue>, Result<Request, Refusal>) {
    // The crate takes lists for objects as well.
    if !line.trim_ascii_start().starts_with(b"{") {
        return (None, Err(Refusal::malformed("a request is a JSON object on one line".to_owned())));
    }
    match serde_json::from_slice::<Line<'_>>(line) {
        Ok(line) if !line.id.is_none_or(is_name) => {
            (None, Err(Refusal::malformed("id must be a string, a number or null".to_owned())))
        }
        Ok(line) => (line.id, request(line, asked).map_err(Refusal::malformed)),
        Err(error) => {
            let named = serde_json::from_slice::<Named<'_>>(line).ok();
            let id = named.and_then(|named| named.id).filter(|id| is_name(id));
            (id, Err(Refusal::malformed(error.to_string())))
        }
    }
}

fn is_name(id: &RawValue) -> bool {
    id.get().starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'))
}

fn request(line: Line<'_>, asked: Asked) -> Result<Request, String> {
    let prompt = match (line.prompt, line.prompt_hash) {
        (Some(_), Some(_)) => return Err("it has a prompt and a prompt_hash; one is enough".to_owned()),
        (Some(text), None) => Some(Digest::of(text.as_bytes())),
        (None, Some(hash)) => Some(hash.parse().map_err(|error| format!("prompt_hash: {error}"))?),
        (None, None) => None,
    };
    if prompt.is_none() && asked != Asked::Anything {
        return Err("it has neither a prompt nor a prompt_hash".to_owned());
    }
    if line.occurrence.is_some() && asked != Asked::Prompts {
        return Err("occurrence has no meaning in a sequence".to_owned());
    }
    let responder = match line.responder.as_deref() {
        None => None,
        Some("model") => Some(Responder::Model),
        Some("tool") => Some(Responder::Tool),
        Some(_) => return Err("responder must be model or tool".to_owned()),
    };
    if (responder.is_some() || line.tool.is_some()) && asked != Asked::Anything {
        return Err("responder and tool have a meaning for runs only".to_owned());
    }
    let is_of_model = prompt.is_some() || responder == Some(Responder::Model);
    let is_of_tool = line.tool.is_some() || responder == Some(Responder::Tool);
    if is_of_model && is_of_tool {
        return Err("it is meant for a model and for a tool".to_owned());
    }
    Ok(Request { prompt, occurrence: line.occurrence, responder, tool: line.tool })
}

/// An answer that gives a response.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    id: Option<&'a RawValue>,
    response: &'a str,
    core_hash: CoreHash,
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrence: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrences: Option<usize>,
    #[serde(flatten)]
    of_run: Option<OfRun<'a>>,
}

/// What is known of the steps of runs beside their texts.
#[derive(Serialize)]
pub(crate) struct OfRun<'a> {
    responder: &'static str,
    tool: Option<&'a str>,
    output: Option<&'a RawValue>,
}

impl<'a> OfRun<'a> {
    pub(crate) fn of(exchange: &'a Exchange) -> Self {
        let output = exchange.output.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Self { responder: exchange.responder.name(), tool: exchange.tool.as_deref(), output }
    }
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        id: Option<&'a RawValue>,
        core_hash: CoreHash,
        played: Played<'a>,
        asked: Asked,
    ) -> Self {
        let Played { exchange, occurrence, occurrences } = played;
        let of_lookup = |count: usize| (asked == Asked::Prompts).then_some(count);
        Self {
            id,
            response: &exchange.response,
            core_hash,
            index: exchange.index,
            occurrence: of_lookup(occurrence),
            occurrences: of_lookup(occurrences),
            of_run: (asked == Asked::Anything).then(|| OfRun::of(exchange)),
        }
    }
}

/// An answer that gives none.
#[derive(Serialize)]
pub(super) struct Refused<'a> {
    pub(super) id: Option<&'a RawValue>,
    pub(super) error: Refusal,
}

/// Why there is no response.
#[derive(Default, Serialize)]
pub(crate) struct Refusal {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_hash: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expected: Vec<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<Vec<CoreHash>>,
}

impl Refusal {
    fn malformed(message: String) -> Self {
        Self { code: "malformed", message, ..Self::default() }
    }

    pub(super) fn too_long() -> Self {
        let message =
            format!("a request may have {MAX_BYTES} bytes, this one has more; prompt_hash is shorter");
        Self { code: "too_long", message, ..Self::default() }
    }

    pub(super) fn failed(message: String) -> Self {
        Self { code: "failed", message, ..Self::default() }
    }

    /// `elsewhere` are other recordings in which the prompt can be looked up.
    pub(super) fn miss(miss: &Miss, elsewhere: Vec<CoreHash>) -> Self {
        let code = match miss {
            Miss::NotRecorded { .. } => "not_recorded",
            Miss::NoOccurrence { .. } => "no_occurrence",
            Miss::NoPrompt => "malformed",
            Miss::OutOfOrder { .. } => "out_of_order",
            Miss::OtherTool { .. } => "other_tool",
            Miss::Exhausted { .. } => "exhausted",
        };
        let mut refusal = Self { code, message: miss.to_string(), ..Self::default() };
        match miss {
            Miss::NotRecorded { prompt } => {
                refusal.prompt_hash = Some(*prompt);
                refusal.elsewhere = Some(elsewhere);
            }
            Miss::NoOccurrence { prompt, .. } => refusal.prompt_hash = Some(*prompt),
            Miss::OutOfOrder { index, expected, asked, .. } => {
                refusal.prompt_hash = Some(*asked);
                refusal.index = Some(*index);
                refusal.expected.clone_from(expected);
            }
            Miss::OtherTool { index, .. } => refusal.index = Some(*index),
            Miss::NoPrompt | Miss::Exhausted { .. } => {}
        }
        refusal
    }
}
