//! Reports forks of added runs: different histories of a run that is already in the vault.

use std::collections::HashSet;

use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::vault::add::{Examined, Outcome};
use runvault::vault::query::{self, Fork, Shared};

use crate::cli::output::escape::brief;
use crate::cli::output::exit::Failure;
use crate::cli::output::stdout::{self, HASH};

/// Maximum number of forks reported.
const LISTED: usize = 10;

/// Maximum number of pairs of artifacts compared: enough for the runs of a day, at a small cost.
const COMPARED: usize = 10_000;

/// The runs that were added.
#[derive(Default)]
pub(crate) struct ForkNotes {
    added: Vec<CoreHash>,
}

impl ForkNotes {
    /// Records a document if it is a new run.
    pub(crate) fn see(&mut self, examined: &Examined) {
        if let (Outcome::Added, Some(kind), Some(core)) = (examined.outcome, examined.kind, examined.core)
            && kind.is_run()
        {
            self.added.push(core);
        }
    }

    /// Reports which of them fork from another artifact.
    pub(crate) fn report(&self, vault: &Vault) -> Result<(), Failure> {
        // If nothing was stored, the vault may not exist.
        if self.added.is_empty() {
            return Ok(());
        }
        let snapshot = vault.snapshot()?;
        let (mut told, mut left) = (HashSet::new(), COMPARED);
        for core in &self.added {
            let Some(artifact) = snapshot.artifact(*core)? else { continue };
            let (forks, compared) = query::forks_of(&*snapshot, &artifact, left)?;
            left -= compared;
            for fork in forks {
                let mut pair = fork.sides.each_ref().map(|(side, _)| side.core);
                pair.sort_unstable();
                if !told.insert(pair) {
                    continue;
                }
                if told.len() > LISTED {
                    stdout::note("there are more forks; \"runvault forks\" lists them");
                    return Ok(());
                }
                stdout::note(&text(&fork));
            }
            if left == 0 {
                stdout::note("not every run was checked for forks; \"runvault forks\" checks all");
                return Ok(());
            }
        }
        Ok(())
    }
}

fn text(fork: &Fork) -> String {
    let Fork { shared, index, sides: [(one, _), (other, _)] } = fork;
    let shared_text = match shared {
        Shared::Header(header) => format!("same header {header:.12}"),
        Shared::RunId(id) => format!("same run id {}", brief(id)),
    };
    format!(
        "{} {HASH}{:.12}{HASH:#} forks {} {HASH}{:.12}{HASH:#}: {shared_text}, first difference at {} {index}",
        one.kind,
        one.core,
        other.kind,
        other.core,
        shared.unit()
    )
}
