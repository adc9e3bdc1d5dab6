//! `runvault forks`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::display::{brief, escaped};
use runvault::formats;
use runvault::vault::forks::{ForkSummary, ForkedRun, ForkedTrace, ForksRequest};

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, BAD, FAINT, HASH, counted};

/// List traces and run packs of one run that diverge
///
/// Traces that share a header, or run packs that share the id of their run, and then have different records or steps are
/// two histories of one run. So are traces with other ids and equal inputs: their format demands equal records. Exit status
/// 0 if there are none, 1 if there are.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Maximum number of pairs. Default: 1000, with --json unlimited
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Print one line of JSON for each pair
    #[arg(long)]
    json: bool,
}

/// The default maximum number of pairs in text output.
const LISTED: u64 = 1_000;

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let mut out = io::BufWriter::new(stdout::text());
        let limit = self.limit.or((!self.json).then_some(LISTED));
        let mut listed = 0;
        let answer = ForksRequest { limit, after: None }.visit::<CommandError>(&vault, &mut |fork| {
            listed += 1;
            Ok(if self.json { json::line(&mut out, &fork) } else { print(&mut out, &fork) }?)
        })?;
        out.flush()?;
        let more = answer.next.map_or(0, |_| answer.count.saturating_sub(listed));
        match (self.json, more) {
            (false, 0) => stdout::note(&counted(listed, "fork")),
            (true, 0) => {}
            (_, more) => {
                let limit = listed.saturating_add(more);
                stdout::note(&format!(
                    "{} and {more} more; --limit {limit} lists them",
                    counted(listed, "fork")
                ));
            }
        }
        Ok(if listed == 0 { Status::Done } else { Status::No })
    }
}

/// Maximum number of characters shown of a record.
const SHOWN: usize = 400;

fn print(out: &mut dyn Write, fork: &ForkSummary) -> io::Result<()> {
    match fork {
        ForkSummary::Traces { header, record, traces } => {
            writeln!(out, "header {HASH}{header:.12}{HASH:#}, {BAD}record {record} differs{BAD:#}")?;
            traces.iter().try_for_each(|ForkedTrace { core_hash, kind, says, .. }| {
                print_side(out, kind, *core_hash, says.as_deref())
            })
        }
        ForkSummary::Inputs { inputs, record, traces } => {
            writeln!(out, "equal inputs {HASH}{inputs:.12}{HASH:#}, {BAD}record {record} differs{BAD:#}")?;
            traces.iter().try_for_each(|ForkedTrace { core_hash, kind, says, .. }| {
                print_side(out, kind, *core_hash, says.as_deref())
            })
        }
        ForkSummary::Runs { run_id, step, runs } => {
            writeln!(out, "run id {}, {BAD}step {step} differs{BAD:#}", brief(run_id))?;
            runs.iter().try_for_each(|ForkedRun { core_hash, kind, says, .. }| {
                print_side(out, kind, *core_hash, says.as_deref())
            })
        }
    }
}

fn print_side(out: &mut dyn Write, kind: &str, core: CoreHash, says: Option<&str>) -> io::Result<()> {
    let says = escaped(says.unwrap_or_default()).up_to(SHOWN);
    let kind = formats::bare_noun(kind);
    stdout::line(out, &format!("  {kind:<5} {HASH}{core:.12}{HASH:#} {FAINT}says{FAINT:#} {says}"))
}
