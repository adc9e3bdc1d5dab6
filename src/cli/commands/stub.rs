//! `runvault stub`

use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::artifact::{Arguments, Exchange};
use runvault::digest::Digest;
use runvault::vault::replay::{Mode, Player};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::captures;
use crate::cli::commands::replay::{Asked, Ending, OfRun, One, RepeatArg, serve};
use crate::cli::output::escape::{brief, escaped};
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::fit::{self, Trail};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, FAINT, counted};

/// List or replay the responses recorded in a run.
///
/// Responses of models and tools are listed in recorded order. --serve-stdio serves requests as "replay" does: a prompt
/// gets its response, and a tool call the recorded response of the same tool with the same arguments. docs/replay.md
/// describes the protocol.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    /// A run, by its core hash, a prefix of it or @tag
    #[arg(value_name = "RUN")]
    run: Named,

    /// Serve requests from standard input, one JSON object per line, until end of input
    #[arg(long)]
    serve_stdio: bool,
    /// Require requests in recorded order
    #[arg(long, requires = "serve_stdio")]
    sequential: bool,
    /// What to do when a request comes more often than it was recorded: "never" refuses it, "last" repeats the last
    /// recording
    #[arg(
        long,
        value_name = "WHICH",
        value_enum,
        default_value_t,
        requires = "serve_stdio",
        conflicts_with = "sequential"
    )]
    repeat: RepeatArg,
    /// Exit with status 1 if a recording was not used
    #[arg(long, requires = "serve_stdio")]
    fail_unused: bool,

    /// Print one line of JSON for each response; with --serve-stdio, print the final report on standard error
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'l> {
    index: usize,
    #[serde(flatten)]
    of_run: OfRun<'l>,
    prompt_hashes: &'l [Digest],
    /// The arguments as JSON, in the form in which calls are compared.
    arguments: Option<&'l RawValue>,
    arguments_hash: Option<Digest>,
    response: &'l str,
    is_error: bool,
}

impl<'l> Line<'l> {
    fn new(exchange: &'l Exchange) -> Self {
        let Exchange { index, prompts, arguments, response, is_error, .. } = exchange;
        Self {
            index: *index,
            of_run: OfRun::new(exchange),
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
        let mut out = io::BufWriter::new(stdout::text());
        for exchange in player.exchanges() {
            if self.json {
                json::line(&mut out, &Line::new(exchange))?;
            } else {
                print(&mut out, player.unit(), exchange)?;
            }
        }
        out.flush()?;
        if !self.json {
            stdout::note(&counted(player.exchanges().len() as u64, "response"));
        }
        Ok(())
    }
}

/// Maximum number of characters shown of a response.
const SHOWN: usize = 200;

/// The minimum width of a response next to its location; otherwise it is put below,
const RESPONSE_WIDTH: usize = 30;

/// with this indent.
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
