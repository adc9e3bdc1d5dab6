//! `runvault forks`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::digest::{CoreHash, Digest};
use runvault::query::{self, Fork, Shared};
use serde::Serialize;

use super::escape::{brief, escaped};
use super::exit::{Failure, Status};
use super::json;
use super::output::{self, BAD, FAINT, HASH, counted};
use super::vault::VaultArgs;

/// List traces and run packs of one run that disagree.
///
/// Traces that share a header, or run packs that share the id of their run, and then have different records or steps are
/// two histories of one run. Exit status 0 if there are none, 1 if there are.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one line of JSON for each pair
    #[arg(long)]
    json: bool,
}

/// A fork, as programs read it.
#[derive(Serialize)]
#[serde(untagged)]
enum Line {
    Traces { header: Digest, record: usize, traces: Vec<JsonTrace> },
    Runs { run_id: String, step: usize, runs: Vec<JsonRun> },
}

#[derive(Serialize)]
struct JsonTrace {
    core_hash: CoreHash,
    record_hash: Digest,
    says: Option<String>,
}

#[derive(Serialize)]
struct JsonRun {
    core_hash: CoreHash,
    step_hash: Digest,
    says: Option<String>,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let forks = query::forks(&vault.snapshot()?)?;
        let mut out = io::BufWriter::new(output::text());
        for fork in &forks {
            let [one, other] = fork.sides.each_ref().map(|(side, _)| vault.quote(side, fork.index));
            let says = [one?, other?];
            if self.json {
                json::line(&mut out, &Line::new(fork, says))?;
            } else {
                print(&mut out, fork, &says)?;
            }
        }
        out.flush()?;
        if !self.json {
            output::note(&counted(forks.len() as u64, "fork"));
        }
        Ok(if forks.is_empty() { Status::Done } else { Status::No })
    }
}

impl Line {
    fn new(fork: &Fork, says: [Option<String>; 2]) -> Self {
        let Fork { shared, index, sides } = fork;
        let sides = sides.iter().map(|(side, hash)| (side.core, *hash)).zip(says);
        match shared {
            Shared::Header(header) => {
                let traces = sides
                    .map(|((core_hash, record_hash), says)| JsonTrace { core_hash, record_hash, says })
                    .collect();
                Self::Traces { header: *header, record: *index, traces }
            }
            Shared::RunId(run_id) => {
                let runs = sides
                    .map(|((core_hash, step_hash), says)| JsonRun { core_hash, step_hash, says })
                    .collect();
                Self::Runs { run_id: run_id.clone(), step: *index, runs }
            }
        }
    }
}

/// So many characters of a record are shown.
const SHOWN: usize = 400;

fn print(out: &mut dyn Write, fork: &Fork, says: &[Option<String>; 2]) -> io::Result<()> {
    let shared = match &fork.shared {
        Shared::Header(header) => format!("header {HASH}{header:.12}{HASH:#}"),
        Shared::RunId(id) => format!("run id {}", brief(id)),
    };
    writeln!(out, "{shared}, {BAD}{} {} differs{BAD:#}", fork.shared.unit(), fork.index)?;
    for ((side, _), says) in fork.sides.iter().zip(says) {
        let says = escaped(says.as_deref().unwrap_or_default()).up_to(SHOWN);
        let who = format!("  {:<5} {HASH}{:.12}{HASH:#}", side.kind, side.core);
        output::line(out, &format!("{who} {FAINT}says{FAINT:#} {says}"))?;
    }
    Ok(())
}
