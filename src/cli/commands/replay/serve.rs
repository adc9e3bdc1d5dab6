//! The request loop.

use std::io::{self, Write};

use runvault::artifact::{Arguments, Exchange};
use runvault::digest::Digest;
use runvault::display::brief;
use runvault::vault::replay::Occurrence;
use serde::Serialize;

use super::protocol::{
    self, LineReadResult, ReplayErrorLine, ReplayProtocolError, ReplayRequestMode, ReplayResponseLine,
};
use super::response_source::{PlaybackError, ResponseSource};
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, counted};

/// Options for the end of the request loop.
pub(crate) struct ReplayServeOptions {
    /// Whether unused recordings are a failure.
    pub(crate) fail_unused: bool,
    /// Whether the report is JSON.
    pub(crate) json: bool,
}

/// Answers the requests on standard input, each as soon as it arrives, and then reports unused recordings.
pub(crate) fn serve(
    stage: &mut dyn ResponseSource,
    mode: ReplayRequestMode,
    ending: &ReplayServeOptions,
) -> Result<Status, CommandError> {
    let mut input = io::stdin().lock();
    let mut out = stdout::raw();
    let (mut line, mut requests, mut refused) = (Vec::new(), 0, 0);
    loop {
        let answered = match protocol::read_line(&mut input, &mut line).map_err(cannot_read)? {
            LineReadResult::End => break,
            LineReadResult::TooLong => {
                json::line(&mut out, &ReplayErrorLine { id: None, error: ReplayProtocolError::too_long() })?;
                false
            }
            LineReadResult::Whole => answer(stage, mode, &line, &mut out)?,
        };
        out.flush()?;
        requests += 1;
        refused += u64::from(!answered);
    }
    report(stage, requests, refused, ending)
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn cannot_read(error: io::Error) -> CommandError {
    CommandError::CouldNotRun(format!("cannot read standard input: {error}"))
}

/// Writes the response to one request. Returns whether a recording was played.
fn answer(
    stage: &mut dyn ResponseSource,
    mode: ReplayRequestMode,
    line: &[u8],
    out: &mut dyn Write,
) -> Result<bool, CommandError> {
    let (id, request) = protocol::read(line, mode, stage);
    let error = match request {
        Err(refusal) => refusal,
        Ok(request) => match stage.play(&request) {
            Ok((core, played)) => {
                json::line(out, &ReplayResponseLine::new(id, core, played, mode))?;
                return Ok(true);
            }
            Err(PlaybackError::Failed(error)) => ReplayProtocolError::failed(hints::with_hint(&error)),
            // The request was recorded and is now replayed.
            Err(PlaybackError::Recorded(core, exchange)) => {
                json::line(
                    out,
                    &ReplayErrorLine { id, error: ReplayProtocolError::recorded(&exchange, core) },
                )?;
                return Ok(true);
            }
            Err(PlaybackError::Miss(miss)) => {
                let elsewhere = request.prompt.map(|prompt| stage.elsewhere(prompt));
                ReplayProtocolError::miss(&miss, elsewhere.unwrap_or_default())
            }
        },
    };
    json::line(out, &ReplayErrorLine { id, error })?;
    Ok(false)
}

#[derive(Serialize)]
struct ReplayReport<'r> {
    requests: u64,
    refused: u64,
    recordings: Option<usize>,
    unused: Option<Vec<JsonUnusedExchange<'r>>>,
}

#[derive(Serialize)]
struct JsonUnusedExchange<'r> {
    index: usize,
    responder: &'static str,
    tool: Option<&'r str>,
    prompt_hashes: &'r [Digest],
    arguments_hash: Option<Digest>,
    occurrence: usize,
    occurrences: usize,
}

/// Maximum number of unused recordings listed; `--json` lists all.
const LISTED: usize = 20;

fn report(
    stage: &dyn ResponseSource,
    requests: u64,
    refused: u64,
    ending: &ReplayServeOptions,
) -> Result<Status, CommandError> {
    let unused = stage.unused();
    let (recordings, unused) = unused.map_or((None, Vec::new()), |(count, unused)| (Some(count), unused));
    if ending.json {
        let listed = recordings
            .map(|_| unused.iter().map(|exchange| JsonUnusedExchange::new(stage, exchange)).collect());
        let mut text = Vec::new();
        json::line(&mut text, &ReplayReport { requests, refused, recordings, unused: listed })?;
        stdout::message(String::from_utf8_lossy(&text).trim_end());
    } else {
        let left = recordings
            .map(|count| format!("; {} of {} unused", unused.len(), counted(count as u64, "recording")));
        let left = left.unwrap_or_default();
        stdout::note(&format!("{}, {refused} refused{left}", counted(requests, "request")));
        for exchange in unused.iter().take(LISTED) {
            stdout::note(&format!("  {} {}{}", stage.unit(), exchange.index, request_text(stage, exchange)));
        }
        if let more @ 1.. = unused.len().saturating_sub(LISTED) {
            stdout::note(&format!("  and {more} more; --json lists them"));
        }
    }
    Ok(if ending.fail_unused && !unused.is_empty() { Status::No } else { Status::Done })
}

impl<'r> JsonUnusedExchange<'r> {
    fn new(stage: &dyn ResponseSource, exchange: &'r Exchange) -> Self {
        let Occurrence { number, of } = stage.occurrence(exchange).unwrap_or(Occurrence { number: 1, of: 1 });
        Self {
            index: exchange.index,
            responder: exchange.responder.name(),
            tool: exchange.tool.as_deref(),
            prompt_hashes: &exchange.prompts,
            arguments_hash: exchange.arguments.as_ref().map(Arguments::digest),
            occurrence: number,
            occurrences: of,
        }
    }
}

/// Formats the request of a recorded exchange.
fn request_text(stage: &dyn ResponseSource, exchange: &Exchange) -> String {
    let text = match (&exchange.tool, exchange.prompts.as_slice()) {
        (Some(tool), _) => format!(", tool {}", brief(tool)),
        (None, [only]) => format!(", prompt {only}"),
        (None, [.., last]) => format!(", prompt {last} and others"),
        (None, []) => format!(", {}", exchange.responder.name()),
    };
    match stage.occurrence(exchange) {
        Some(Occurrence { number, of }) => format!("{text} (occurrence {number} of {of})"),
        None => text,
    }
}
