//! `runvault replay`

mod arguments;
mod lines;
mod miss;
mod protocol;
mod response_source;
mod serve;

use clap::{ArgGroup, Args as ClapArgs};
use runvault::Vault;
use runvault::artifact::{Exchange, Kind, Playback};
use runvault::digest::{CoreHash, Digest};
use runvault::formats;
use runvault::vault::replay::{Mode, Occurrence, Played, Request};
use serde::Serialize;

use crate::cli::args::hash::Named;
use crate::cli::args::prompt::{Prompt, PromptArgs};
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::captures;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, counted};

pub(crate) use arguments::RepeatArg;
use arguments::{AnyArgs, OrderArgs, Recording, ServeArgs, recording};
pub(crate) use protocol::{Asked, OfRun};
pub(crate) use response_source::One;
use response_source::{Any, ReplayError, ResponseSource};
pub(crate) use serve::{Ending, serve};

/// Print the recorded response to a prompt, byte for byte.
///
/// A prompt is looked up by its SHA-256. With --sequential, the n-th call must be the n-th prompt of the session.
/// --serve-stdio answers many requests in one process: the n-th request for a prompt gets its n-th recorded response.
/// docs/replay.md describes the protocol. The exit status is 1 if the prompt was not recorded.
#[derive(ClapArgs)]
#[command(group = ArgGroup::new("asked").required(true), group = ArgGroup::new("call"))]
pub(crate) struct Args {
    /// The session, by its `ModelIOHash`, the first digits of it, or @ and a tag; or "any": the newest session that has the prompt
    #[arg(value_name = "HASH|any", value_parser = recording)]
    recording: Recording,

    #[command(flatten)]
    prompt: PromptArgs,

    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    serving: ServeArgs,
    #[command(flatten)]
    any: AnyArgs,

    /// Print one JSON document with the response and its location; with --serve-stdio, print the final report on
    /// standard error
    #[arg(long)]
    json: bool,
    /// Allow control characters to be written to a terminal
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        match &self.recording {
            Recording::One(named) => {
                if self.any.narrow() {
                    let message = "--model, --adapter, --attr, --since and --until are for \"replay any\"";
                    return Err(Failure::Usage(message.to_owned()));
                }
                let mut stage = self.one(&vault, named)?;
                let tried = Some(stage.core);
                self.play(&vault, &mut stage, tried)
            }
            Recording::Any => {
                if self.order.sequential || self.serving.fail_unused {
                    let message = "--sequential and --fail-unused need one session, not any";
                    return Err(Failure::Usage(message.to_owned()));
                }
                let repeat = self.serving.repeat.into();
                self.play(&vault, &mut Any::new(&vault, self.any.wanted(), repeat), None)
            }
        }
    }

    fn one<'v>(&self, vault: &'v Vault, named: &Named) -> Result<One<'v>, Failure> {
        let located = named.locate(vault)?;
        let (core, kind) = (located.artifact.core, &located.artifact.kind);
        if formats::named(kind).and_then(Kind::playback) == Some(Playback::InOrder) {
            let message =
                format!("{core} is of kind {kind}; \"runvault stub {core:.12}\" replays its responses");
            return Err(Failure::No(message));
        }
        if !named.is_capture(&located) {
            captures::say_which(vault, &located)?;
        }
        let mut player = vault.player(&located)?.repeating(self.serving.repeat.into());
        if self.order.sequential {
            player = player.in_mode(Mode::Sequential).from_call(self.order.index.unwrap_or(0));
        }
        Ok(One { vault, core, player })
    }

    fn play(
        &self,
        vault: &Vault,
        stage: &mut dyn ResponseSource,
        tried: Option<CoreHash>,
    ) -> Result<Status, Failure> {
        let asked = if self.order.sequential { Asked::PromptsInOrder } else { Asked::Prompts };
        let Some(prompt) = self.prompt.prompt(vault)? else {
            let ending = Ending { fail_unused: self.serving.fail_unused, json: self.json };
            return serve(stage, asked, &ending);
        };
        let request = Request { occurrence: self.order.occurrence, ..Request::prompt(prompt.digest) };
        match stage.play(&request) {
            Ok((core, played)) => self.print(core, &prompt, played),
            Err(ReplayError::Failed(error)) => Err(error.into()),
            Err(ReplayError::Recorded(core, exchange)) => {
                stdout::error(&format!("{core:.12}: {}", escaped(&exchange.response)));
                Ok(Status::No)
            }
            Err(ReplayError::Miss(missed)) => {
                miss::report(vault, &missed, &prompt, tried)?;
                Ok(Status::No)
            }
        }
    }

    fn print(&self, core: CoreHash, prompt: &Prompt, played: Played<'_>) -> Result<Status, Failure> {
        let Played { exchange, occurrence } = played;
        let Occurrence { number, of } = occurrence.unwrap_or(Occurrence { number: 1, of: 1 });
        if self.json {
            let document = Document::new(core, prompt.digest, played);
            json::line(&mut stdout::raw(), &document)?;
            return Ok(Status::Done);
        }
        if matches!(self.recording, Recording::Any) {
            stdout::note(&format!("{core:.12}, interaction {}", exchange.index));
        }
        if of > 1 && self.order.occurrence.is_none() {
            let times = counted(of as u64, "time");
            stdout::note(&format!(
                "the prompt was recorded {times}; this is occurrence {number}, --occurrence N selects another"
            ));
        }
        let Exchange { response, .. } = exchange;
        stdout::write_exactly(response.as_bytes(), "the response", "a pipe, or --force", self.force)?;
        Ok(Status::Done)
    }
}

#[derive(Serialize)]
struct Document<'d> {
    core_hash: CoreHash,
    index: usize,
    prompt_hash: Digest,
    response_hash: Digest,
    response: &'d str,
    occurrence: usize,
    occurrences: usize,
}

impl<'d> Document<'d> {
    fn new(core_hash: CoreHash, prompt_hash: Digest, played: Played<'d>) -> Self {
        let Played { exchange: Exchange { index, response, .. }, occurrence } = played;
        let Occurrence { number: occurrence, of: occurrences } =
            occurrence.unwrap_or(Occurrence { number: 1, of: 1 });
        let response_hash = Digest::from_content(response.as_bytes());
        Self { core_hash, index: *index, prompt_hash, response_hash, response, occurrence, occurrences }
    }
}
