//! `runvault stub`

use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::artifact::{Arguments, Exchange};
use runvault::digest::Digest;
use runvault::replay::{Mode, Player};
use serde::Serialize;
use serde_json::value::RawValue;

use super::captures;
use super::escape::{brief, escaped};
use super::exit::{Failure, Status};
use super::fit::{self, Trail};
use super::hash::Named;
use super::json;
use super::output::{self, FAINT, counted};
use super::replay::{Asked, Ending, OfRun, One, RepeatArg, serve};
use super::vault::VaultArgs;

/// List the responses that a run recorded, or play them back.
///
/// They are those of its models and tools, in their order. --serve-stdio answers requests as "replay" does: a prompt gets
/// its response, and a call of a tool that of the same tool with the same arguments. docs/replay.md describes what it reads
/// and writes.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// The run, by its core hash, the first digits of it, or @ and a tag
    #[arg(value_name = "RUN")]
    run: Named,

    /// Answer requests on standard input, one JSON object per line, until it ends
    #[arg(long)]
    serve_stdio: bool,
    /// Insist on the order of the run
    #[arg(long, requires = "serve_stdio")]
    sequential: bool,
    /// What a request gets that is asked more often than it was recorded: "never" refuses it, "last" plays the last recording again
    #[arg(
        long,
        value_name = "WHICH",
        value_enum,
        default_value_t,
        requires = "serve_stdio",
        conflicts_with = "sequential"
    )]
    repeat: RepeatArg,
    /// Exit with status 1 if any recording was not played
    #[arg(long, requires = "serve_stdio")]
    fail_unused: bool,

    /// Print one line of JSON for each response; of --serve-stdio, the report at the end, on standard error
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'l> {
    index: usize,
    #[serde(flatten)]
    of_run: OfRun<'l>,
    prompt_hashes: &'l [Digest],
    /// As JSON, in the form in which calls are compared.
    arguments: Option<&'l RawValue>,
    arguments_hash: Option<Digest>,
    response: &'l str,
    is_error: bool,
}

impl<'l> Line<'l> {
    fn of(exchange: &'l Exchange) -> Self {
        let Exchange { index, prompts, arguments, response, is_error, .. } = exchange;
        Self {
            index: *index,
            of_run: OfRun::of(exchange),
            prompt_hashes: prompts,
            arguments: arguments
                .as_ref()
                .and_then(|arguments| serde_json::from_str(arguments.as_json()).ok()),
            arguments_hash: arguments.as_ref().map(Arguments::digest),
            response,
            is_error: *is_error,
        }
    }
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let located = self.run.locate(&vault)?;
        let player = vault.player(&located)?;
        if !self.run.is_capture(&located) {
            captures::say_which(&vault, &located)?;
        }
        if self.serve_stdio {
            let (mode, asked) = if self.sequential {
                (Mode::Sequential, Asked::RunInOrder)
            } else {
                (Mode::Lookup, Asked::Run)
            };
            let player = player.in_mode(mode).repeating(self.repeat.into());
            let mut stage = One { vault: &vault, core: located.artifact.core, player };
            let ending = Ending { fail_unused: self.fail_unused, json: self.json };
            return serve(&mut stage, asked, &ending);
        }
        self.list(&player)?;
        Ok(if player.exchanges().len() == 0 { Status::No } else { Status::Done })
    }

    fn list(&self, player: &Player) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(output::text());
        for exchange in player.exchanges() {
            if self.json {
                json::line(&mut out, &Line::of(exchange))?;
            } else {
                print(&mut out, player.unit(), exchange)?;
            }
        }
        out.flush()?;
        if !self.json {
            output::note(&counted(player.exchanges().len() as u64, "response"));
        }
        Ok(())
    }
}

/// So many characters of a response are shown.
const SHOWN: usize = 200;

/// One with less room than this beside its place stands below,
const RESPONSE_WIDTH: usize = 30;

/// so far to the right.
const BELOW: usize = 4;

fn print(out: &mut dyn Write, unit: &str, exchange: &Exchange) -> io::Result<()> {
    let mut responder = exchange.responder.name().to_owned();
    if let Some(tool) = &exchange.tool {
        responder = format!("{responder} {}", brief(tool));
    }
    if let Some(arguments) = &exchange.arguments {
        responder = format!("{responder} {} ->", brief(arguments.as_json()));
    }
    if exchange.is_error {
        responder += " error";
    }
    let response = escaped(&exchange.response).up_to(SHOWN);
    let lead = format!("{unit} {} {FAINT}{responder}{FAINT:#}", exchange.index);
    write!(out, "{lead}")?;
    Trail { taken: fit::width(&lead), below: BELOW, least: RESPONSE_WIDTH }.write(
        out,
        &response.to_string(),
        Style::new(),
    )
}
