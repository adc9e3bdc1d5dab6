//! `runvault replay`

mod arguments;
mod lines;
mod list;
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

use arguments::{AnyArgs, OrderArgs, Recording, ServeArgs, recording};
use protocol::Asked;
use response_source::{Any, One, ReplayError, ResponseSource};
use serve::{Ending, serve};

/// Replay recorded responses.
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
    /// A session or a run, by its core hash, the first digits of it, or @ and a tag; or "any": the newest session that
    /// has the prompt
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

    /// Print JSON: one document with the response and its location, one line for each listed response, or with
    /// --serve-stdio the final report on standard error
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
                self.replay(&vault, named)
            }
            Recording::Any => {
                if !self.serving.serve_stdio && !self.prompt.is_given() {
                    let message =
                        "\"replay any\" needs --prompt, --prompt-file, --prompt-hash or --serve-stdio";
                    return Err(Failure::Usage(message.to_owned()));
                }
                if self.order.sequential || self.serving.fail_unused {
                    let message = "--sequential and --fail-unused need one session, not any";
                    return Err(Failure::Usage(message.to_owned()));
                }
                let repeat = self.serving.repeat.into();
                self.play(&vault, &mut Any::new(&vault, self.any.wanted(), repeat), None)
            }
        }
    }

    fn replay(&self, vault: &Vault, named: &Named) -> Result<Status, Failure> {
        let located = named.locate(vault)?;
        let (core, kind) = (located.artifact.core, &located.artifact.kind);
        let is_run = formats::named(kind).and_then(Kind::playback) == Some(Playback::InOrder);
        if is_run && self.prompt.is_given() {
            let message = format!(
                "{core} is {}; \"runvault replay {core:.12}\" lists its responses, --serve-stdio replays them",
                formats::noun(kind)
            );
            return Err(Failure::No(message));
        }
        let mut player = vault.player(&located)?;
        if !named.is_capture(&located) {
            captures::say_which(vault, &located)?;
        }
        if !self.serving.serve_stdio && !self.prompt.is_given() {
            return list::list(&player, self.json);
        }
        player = player.repeating(self.serving.repeat.into());
        if self.order.sequential {
            player = player.in_mode(Mode::Sequential).from_call(self.order.index.unwrap_or(0));
        }
        let mut stage = One { vault, core, player };
        if is_run {
            let asked = if self.order.sequential { Asked::RunInOrder } else { Asked::Run };
            return serve(&mut stage, asked, &self.ending());
        }
        self.play(vault, &mut stage, Some(core))
    }

    fn ending(&self) -> Ending {
        Ending { fail_unused: self.serving.fail_unused, json: self.json }
    }

    fn play(
        &self,
        vault: &Vault,
        stage: &mut dyn ResponseSource,
        tried: Option<CoreHash>,
    ) -> Result<Status, Failure> {
        let asked = if self.order.sequential { Asked::PromptsInOrder } else { Asked::Prompts };
        let Some(prompt) = self.prompt.prompt(vault)? else {
            return serve(stage, asked, &self.ending());
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
