//! `runvault stub`

use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::artifact::Exchange;
use runvault::digest::Digest;
use runvault::replay::{Mode, Player};
use serde::Serialize;

use super::escape::{brief, escaped};
use super::exit::{Failure, Status};
use super::fit::{self, Trail};
use super::hash::Named;
use super::json;
use super::output::{self, FAINT, counted};
use super::replay::{Asked, Ending, OfRun, One, serve};
use super::vault::VaultArgs;

/// List the responses that a run recorded, or play them back.
///
/// They are those of its models and tools, in their order. --serve-stdio answers requests as "replay" does;
/// docs/replay.md describes what it reads and writes.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The run, by its core hash, the first digits of it, or @ and a tag
    #[arg(value_name = "RUN")]
    run: Named,

    /// Answer requests on standard input, one JSON object per line, until it ends
    #[arg(long)]
    serve_stdio: bool,
    /// Exit with status 1 if anything was recorded that nobody asked for
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
    response: &'l str,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let located = self.run.locate(&vault)?;
        let player = vault.player(&located)?.in_mode(Mode::Sequential);
        if self.serve_stdio {
            let mut stage = One { vault: &vault, core: located.artifact.core, player };
            let ending = Ending { fail_unused: self.fail_unused, json: self.json };
            return serve(&mut stage, Asked::Anything, &ending);
        }
        self.list(&player)?;
        Ok(if player.exchanges().len() == 0 { Status::No } else { Status::Done })
    }

    fn list(&self, player: &Player) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(output::text());
        for exchange in player.exchanges() {
            let Exchange { index, prompts, response, .. } = exchange;
            if self.json {
                let of_run = OfRun::of(exchange);
                json::line(&mut out, &Line { index: *index, of_run, prompt_hashes: prompts, response })?;
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
    let responder = match &exchange.tool {
        Some(tool) => format!("{} {}", exchange.responder.name(), brief(tool)),
        None => exchange.responder.name().to_owned(),
    };
    let response = escaped(&exchange.response).up_to(SHOWN);
    let lead = format!("{unit} {} {FAINT}{responder}{FAINT:#}", exchange.index);
    write!(out, "{lead}")?;
    Trail { taken: fit::width(&lead), below: BELOW, least: RESPONSE_WIDTH }.write(
        out,
        &response.to_string(),
        Style::new(),
    )
}
