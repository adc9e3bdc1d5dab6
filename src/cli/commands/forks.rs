//! `runvault forks`

use std::collections::HashMap;
use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::storage::ArtifactRecord;
use runvault::vault::query::{self, Fork, Shared};
use serde::Serialize;

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::escape::{brief, escaped};
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, BAD, FAINT, HASH, counted};

/// List traces and run packs of one run that diverge.
///
/// Traces that share a header, or run packs that share the id of their run, and then have different records or steps are
/// two histories of one run. Exit status 0 if there are none, 1 if there are.
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

/// A fork, in machine-readable form.
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
        let forks = query::forks(&*vault.snapshot()?)?;
        let mut out = io::BufWriter::new(stdout::text());
        let limit = self.limit.unwrap_or(if self.json { u64::MAX } else { LISTED });
        let mut quotes = Quotes { vault: &vault, known: HashMap::new(), bytes: 0 };
        let (mut listed, mut all) = (0, forks.iter());
        while let Some(fork) = all.next().filter(|_| listed < limit) {
            listed += 1;
            let [one, other] = fork.sides.each_ref().map(|(side, _)| side);
            let says = [quotes.quote(one, fork.index)?, quotes.quote(other, fork.index)?];
            if self.json {
                json::line(&mut out, &Line::new(&fork, says))?;
            } else {
                print(&mut out, &fork, &says)?;
            }
        }
        out.flush()?;
        let more = if listed < limit { 0 } else { forks.count().saturating_sub(listed) };
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

/// A cache of records and steps. Pairs of one artifact mostly differ in the same one.
struct Quotes<'v> {
    vault: &'v Vault,
    known: HashMap<(CoreHash, usize), Option<String>>,
    bytes: usize,
}

impl Quotes<'_> {
    /// The maximum number of bytes in the cache.
    const KEPT: usize = 16 << 20;

    fn quote(&mut self, artifact: &ArtifactRecord, index: usize) -> Result<Option<String>, Failure> {
        let key = (artifact.core, index);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let text = self.vault.quote(artifact, index)?;
        let size = size_of_val(&key) + text.as_ref().map_or(0, String::len);
        if self.bytes + size > Self::KEPT {
            (self.known, self.bytes) = (HashMap::new(), 0);
        }
        self.bytes += size;
        self.known.insert(key, text.clone());
        Ok(text)
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

/// Maximum number of characters shown of a record.
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
        stdout::line(out, &format!("{who} {FAINT}says{FAINT:#} {says}"))?;
    }
    Ok(())
}
