//! `runvault replay`

mod protocol;
mod response_source;
mod serve;

use std::io::{self, Write};
use std::num::NonZeroUsize;

use anstyle::Style;
use chrono::{DateTime, Utc};
use clap::{ArgGroup, Args as ClapArgs};
use runvault::Vault;
use runvault::artifact::Playback;
use runvault::display::{brief, escaped};
use runvault::formats;
use runvault::vault::api::Timestamp;
use runvault::vault::details::AttributeSummary;
use runvault::vault::recordings::RecordingFilter;
use runvault::vault::replay::{
    RecordedResponse, Repeat, ReplayAnswer, ReplayError, ReplayMiss, ReplayMode, ReplayRequest,
    ResponsesRequest,
};

use crate::cli::args::attribute;
use crate::cli::args::choice::{Choice, one_of};
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::{ArtifactArg, Prompt, PromptArgs};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::fit::{self, TrailingLayout};
use crate::cli::output::stdout::{self, FAINT, counted};
use crate::cli::output::{json, report, time};
use protocol::ReplayRequestMode;
use response_source::{AnyRecordingSource, SingleRecordingSource};
use serve::{ReplayServeOptions, serve};

/// Replay recorded responses
///
/// Without a prompt, the responses of models and tools are listed in recorded order. With a prompt, the response of a
/// session is printed byte for byte; the prompt is looked up by its SHA-256. With --sequential, the n-th call must be
/// the n-th prompt of the session.
///
/// --serve-stdio answers many requests in one process: the n-th request for a prompt gets its n-th recorded response.
/// In a run, a tool call gets the recorded response of the same tool with the same arguments. docs/replay.md describes
/// the protocol. The exit status is 1 if the prompt was not recorded.
#[derive(ClapArgs)]
#[command(group = ArgGroup::new("asked"), group = ArgGroup::new("call"))]
pub(crate) struct Args {
    /// A session or a run: a hash, a prefix of one, a tag, a run id, or latest; or "any": the newest session that has
    /// the prompt
    #[arg(value_name = "HASH|any", value_parser = recording, add = CandidateSource::RECORDINGS.completer())]
    recording: RecordingArg,

    #[command(flatten)]
    prompt: PromptArgs,

    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    serving: ServeArgs,
    #[command(flatten)]
    any: SessionFilterArgs,

    /// Print JSON: one document with the response and its location, one line for each listed response, or with
    /// --serve-stdio the final report on standard error
    #[arg(long)]
    json: bool,
    /// Allow control characters to be written to a terminal
    #[arg(long, hide_short_help = true)]
    force: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        match &self.recording {
            RecordingArg::One(named) => {
                if self.any.narrow() {
                    let message = "--model, --adapter, --attr, --since and --until are for \"replay any\"";
                    return Err(CommandError::Usage(message.to_owned()));
                }
                self.replay(&vault, named)
            }
            RecordingArg::Any => {
                if !self.serving.serve_stdio && !self.prompt.is_given() {
                    let message =
                        "\"replay any\" needs --prompt, --prompt-file, --prompt-hash or --serve-stdio";
                    return Err(CommandError::Usage(message.to_owned()));
                }
                if self.order.sequential || self.serving.fail_unused {
                    let message = "--sequential and --fail-unused need one session, not any";
                    return Err(CommandError::Usage(message.to_owned()));
                }
                let filter = self.any.recording_filter();
                if let Some(prompt) = self.prompt.prompt(&vault)? {
                    let request = ReplayRequest { filter, ..ReplayRequest::new(prompt.digest) };
                    return self.look_up(&vault, request, &prompt);
                }
                let mut any = AnyRecordingSource::new(&vault, filter, self.serving.repeat);
                serve(&mut any, ReplayRequestMode::default(), &self.ending())
            }
        }
    }

    fn replay(&self, vault: &Vault, named: &ArtifactArg) -> Result<Status, CommandError> {
        let located = named.locate(vault)?;
        let (core, kind) = (located.artifact.core, &located.artifact.kind);
        let capture = located.capture.capture;
        let playback = formats::named(kind).and_then(|kind| kind.info().playback);
        let is_run = playback == Some(Playback::InOrder);
        if is_run && self.prompt.is_given() {
            let message = format!(
                "{core} is {}; \"runvault replay {core:.12}\" lists its responses, --serve-stdio replays them",
                formats::noun(kind)
            );
            return Err(CommandError::No(message));
        }
        if playback.is_some() && !named.is_capture(&located) {
            report::say_which(vault, core, capture)?;
        }
        if let Some(prompt) = self.prompt.prompt(vault)? {
            let (artifact, capture_hash) = (Some(core), Some(capture));
            let request = ReplayRequest { artifact, capture_hash, ..ReplayRequest::new(prompt.digest) };
            return self.look_up(vault, request, &prompt);
        }
        if !self.serving.serve_stdio {
            let request = ResponsesRequest { capture_hash: Some(capture), ..ResponsesRequest::new(core) };
            return list(vault, &request, self.json);
        }
        let mut player = vault.player(&located)?.repeating(self.serving.repeat);
        if self.order.sequential {
            player = player.in_mode(ReplayMode::Sequential).from_call(self.order.index.unwrap_or(0));
        }
        let mode = ReplayRequestMode { is_of_run: is_run, is_in_order: self.order.sequential };
        serve(&mut SingleRecordingSource { vault, core, player }, mode, &self.ending())
    }

    fn ending(&self) -> ReplayServeOptions {
        ReplayServeOptions { fail_unused: self.serving.fail_unused, json: self.json }
    }

    /// Looks up the response to a prompt, and prints it.
    fn look_up(
        &self,
        vault: &Vault,
        request: ReplayRequest,
        prompt: &Prompt,
    ) -> Result<Status, CommandError> {
        let call = self.order.sequential.then(|| self.order.index.unwrap_or(0));
        let request = ReplayRequest { occurrence: self.order.occurrence, call, ..request };
        match vault.run(&request) {
            Ok(answer) => self.print(vault, &answer),
            Err(ReplayError::Lookup(error)) => Err(error.into()),
            Err(ReplayError::Miss { core, miss }) => {
                match (core, &*miss) {
                    (Some(core), ReplayMiss::RecordedError { exchange, .. }) => {
                        stdout::error(&format!("{core:.12}: {}", escaped(&exchange.response)));
                    }
                    (_, miss) => response_source::report(vault, miss, prompt, core)?,
                }
                Ok(Status::No)
            }
        }
    }

    fn print(&self, vault: &Vault, answer: &ReplayAnswer) -> Result<Status, CommandError> {
        let ReplayAnswer { core_hash, capture_hash, index, response, occurrence, occurrences, .. } = answer;
        let is_any = matches!(self.recording, RecordingArg::Any);
        if is_any {
            report::say_which(vault, *core_hash, *capture_hash)?;
        }
        if self.json {
            json::line(&mut stdout::raw(), answer)?;
            return Ok(Status::Done);
        }
        if is_any {
            stdout::note(&format!("{core_hash:.12}, interaction {index}"));
        }
        if *occurrences > 1 && self.order.occurrence.is_none() {
            let times = counted(*occurrences as u64, "time");
            stdout::note(&format!(
                "the prompt was recorded {times}; this is occurrence {occurrence}, --occurrence N selects another"
            ));
        }
        stdout::write_exactly(response.as_bytes(), "the response", "a pipe, or --force", self.force)?;
        Ok(Status::Done)
    }
}

/// Prints the recorded responses in recorded order. The status says whether there are any.
fn list(vault: &Vault, request: &ResponsesRequest, json: bool) -> Result<Status, CommandError> {
    let mut out = io::BufWriter::new(stdout::text());
    let answer = request.visit::<CommandError>(vault, &mut |unit, response| {
        Ok(if json { json::line(&mut out, &response) } else { print(&mut out, unit, &response) }?)
    })?;
    out.flush()?;
    if !json {
        stdout::note(&counted(answer.count, "response"));
    }
    Ok(if answer.count == 0 { Status::No } else { Status::Done })
}

/// Maximum number of characters shown of a response.
const SHOWN: usize = 200;

/// The minimum width of a response next to its location; otherwise it is put below,
const RESPONSE_WIDTH: usize = 30;

/// with this indent.
const BELOW: usize = 4;

fn print(out: &mut dyn Write, unit: &str, exchange: &RecordedResponse) -> io::Result<()> {
    let mut responder = exchange.responder.clone();
    if let Some(tool) = &exchange.tool {
        responder = format!("{responder} {}", brief(tool));
    }
    if let Some(arguments) = &exchange.arguments {
        responder = format!("{responder} {} ->", brief(arguments.as_str()));
    }
    if exchange.is_error {
        responder += " error";
    }
    let response = escaped(&exchange.response).up_to(SHOWN);
    let lead = format!("{unit} {} {FAINT}{responder}{FAINT:#}", exchange.index);
    write!(out, "{lead}")?;
    TrailingLayout { used: fit::width(&lead), below: BELOW, least: RESPONSE_WIDTH }.write(
        out,
        &response.to_string(),
        Style::new(),
    )
}

/// The recording to replay.
#[derive(Clone)]
enum RecordingArg {
    Any,
    One(ArtifactArg),
}

fn recording(text: &str) -> Result<RecordingArg, String> {
    if text == "any" { Ok(RecordingArg::Any) } else { text.parse().map(RecordingArg::One) }
}

/// Which recording of a prompt.
#[derive(ClapArgs)]
struct OrderArgs {
    /// Which recording of the prompt, from 1, if there are several
    #[arg(long, value_name = "N", requires = "asked", conflicts_with_all = ["sequential", "serve_stdio"], hide_short_help = true)]
    occurrence: Option<NonZeroUsize>,
    /// Require requests in recorded order
    #[arg(long, requires = "call")]
    sequential: bool,
    /// Index of the call, from 0
    #[arg(
        long,
        value_name = "N",
        group = "call",
        requires_all = ["sequential", "asked"],
        conflicts_with = "serve_stdio"
    )]
    index: Option<usize>,
}

/// Many requests in one process.
#[derive(ClapArgs)]
struct ServeArgs {
    /// Serve requests from standard input, one JSON object per line, until end of input
    #[arg(long, groups = ["asked", "call"])]
    serve_stdio: bool,
    /// What to do when a prompt is requested more often than it was recorded: "never" refuses it, "last" repeats the
    /// last recording
    #[arg(
        long,
        value_name = "WHICH",
        value_parser = one_of(REPEATS),
        default_value = "never",
        requires = "serve_stdio",
        conflicts_with = "sequential",
        hide_short_help = true
    )]
    repeat: Repeat,
    /// Exit with status 1 if a recording was not used
    #[arg(long, requires = "serve_stdio", hide_short_help = true)]
    fail_unused: bool,
}

/// What is repeated.
const REPEATS: &[Choice<Repeat>] =
    &[("never", Repeat::Never, "Refuse the request"), ("last", Repeat::Last, "Repeat the last recording")];

/// Which sessions are any.
#[derive(ClapArgs)]
struct SessionFilterArgs {
    /// With "any": only sessions that used this model
    #[arg(long, value_name = "ID", add = CandidateSource::Values("model_id").completer())]
    model: Option<String>,
    /// With "any": only sessions that used this adapter
    #[arg(long, value_name = "ID", add = CandidateSource::Values("adapter_id").completer(), hide_short_help = true)]
    adapter: Option<String>,
    /// With "any": only sessions with this attribute; "show" lists attributes
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute::pair, add = CandidateSource::Attributes.completer(), hide_short_help = true)]
    attr: Vec<(String, String)>,
    /// With "any": only sessions last seen at this time or later, as for "find"
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    since: Option<DateTime<Utc>>,
    /// With "any": only sessions last seen before this time
    #[arg(long, value_name = "TIME", value_parser = time::point, hide_short_help = true)]
    until: Option<DateTime<Utc>>,
}

impl SessionFilterArgs {
    /// Returns whether any of them was given.
    fn narrow(&self) -> bool {
        let attribute = self.model.is_some() || self.adapter.is_some() || !self.attr.is_empty();
        attribute || self.since.is_some() || self.until.is_some()
    }

    fn recording_filter(&self) -> RecordingFilter {
        let named = [("model_id", &self.model), ("adapter_id", &self.adapter)];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        let attributes =
            named.chain(self.attr.iter().cloned()).map(|(name, value)| AttributeSummary { name, value });
        RecordingFilter {
            attributes: attributes.collect(),
            since: self.since.map(Timestamp),
            until: self.until.map(Timestamp),
        }
    }
}
