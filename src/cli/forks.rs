//! `runvault forks`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::query::{self, Fork};
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::json;
use super::output::{self, BAD, FAINT, HASH, counted};
use super::vault::VaultArgs;

/// List traces that share a header and then disagree.
///
/// They are two histories of one run. Exit status 0 if there are none, 1 if there are.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one line of JSON for each pair
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    header: Digest,
    record: usize,
    traces: Vec<JsonTrace>,
}

#[derive(Serialize)]
struct JsonTrace {
    core_hash: CoreHash,
    record_hash: Digest,
    says: Option<String>,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let forks = query::forks(&vault.snapshot()?)?;
        let mut out = io::BufWriter::new(output::text());
        for fork in &forks {
            let line = Line::of(&vault, fork)?;
            if self.json {
                json::line(&mut out, &line)?;
            } else {
                print(&mut out, &line)?;
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
    fn of(vault: &Vault, fork: &Fork) -> Result<Self, Failure> {
        let traces = fork.traces.iter().map(|(artifact, record_hash)| {
            let says = vault.quote(artifact, fork.index)?;
            Ok(JsonTrace { core_hash: artifact.core, record_hash: *record_hash, says })
        });
        let traces = traces.collect::<Result<_, Failure>>()?;
        Ok(Self { header: fork.header, record: fork.index, traces })
    }
}

/// So many characters of a record are shown.
const SHOWN: usize = 400;

fn print(out: &mut dyn Write, line: &Line) -> io::Result<()> {
    writeln!(out, "header {HASH}{:.12}{HASH:#}, {BAD}record {} differs{BAD:#}", line.header, line.record)?;
    for trace in &line.traces {
        let says = escaped(trace.says.as_deref().unwrap_or_default()).up_to(SHOWN);
        let who = format!("  trace {HASH}{:.12}{HASH:#}", trace.core_hash);
        output::line(out, &format!("{who} {FAINT}says{FAINT:#} {says}"))?;
    }
    Ok(())
}
