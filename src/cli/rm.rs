//! `runvault rm`

use std::io::Write;
use std::path::Path;

use clap::Args as ClapArgs;
use runvault::store::{Erasure, Removed};
use runvault::{RemoveError, RemoveOptions};

use super::exit::{Failure, Status};
use super::hash::Named;
use super::output::{self, HASH, counted};
use super::vault::VaultArgs;
use super::{json, links};

/// Remove artifacts for good.
///
/// An artifact goes with all its captures, its tags, its note and its stated links. What other artifacts share with it stays: the
/// session of a pack is an artifact of its own. The journal keeps a tombstone that says what was removed, when, by whom
/// and why. All given artifacts are removed, or none.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Core hashes, first digits of them, @tags, or latest
    #[arg(required = true, value_name = "HASH")]
    hashes: Vec<Named>,

    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,

    /// Remove even what others link to; never what is pinned
    #[arg(long)]
    force: bool,

    /// Why, in a sentence; the tombstone says so
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, arguments: &VaultArgs) -> Result<Status, Failure> {
        let vault = arguments.open()?;
        let mut artifacts = Vec::new();
        for named in &self.hashes {
            artifacts.push(named.locate_artifact(&vault)?.artifact);
        }
        let options = RemoveOptions {
            reason: self.reason.clone(),
            ignores_links: self.force,
            is_rehearsal: self.dry_run,
        };
        let removal = vault.remove(&artifacts, &options).map_err(refusal)?;
        for removed in &removal.removed {
            if self.json {
                json::removed(&mut output::raw(), removed)?;
            } else {
                print(removed, self.dry_run)?;
            }
        }
        if let Some(erasure) = removal.erasure {
            warn_of_traces(erasure, vault.path());
        }
        Ok(Status::Done)
    }
}

fn print(removed: &Removed, is_rehearsal: bool) -> Result<(), Failure> {
    let Removed { artifact, captures } = removed;
    let done = if is_rehearsal { "would remove" } else { "removed" };
    let (captures, size) = (counted(captures.len() as u64, "capture"), output::size(removed.size()));
    let kind = super::escape::escaped(&artifact.kind).to_string();
    writeln!(output::text(), "{done} {kind:<8} {HASH}{:.12}{HASH:#} {captures}, {size}", artifact.core)?;
    Ok(())
}

/// Lists what is in the way of a removal.
pub(crate) fn refusal(error: RemoveError) -> Failure {
    let message = error.to_string();
    match error {
        RemoveError::Store(error) => error.into(),
        RemoveError::Pinned { pins } => {
            let line = |pin: &runvault::store::PinRow| {
                let note = pin.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
                format!("{} {}{note}", pin.kind, pin.core)
            };
            Failure::Refused { message, because: pins.iter().map(line).collect() }
        }
        RemoveError::Linked { held } => {
            let mut because = Vec::new();
            for (artifact, links) in held {
                because.push(format!("{} {}", artifact.kind, artifact.core));
                because.extend(links.iter().map(|link| {
                    let target = links::plain_target(&link.target);
                    format!("  <- {} {target} {}", link.relation, links::because(&link.origin))
                }));
            }
            Failure::Refused { message, because }
        }
    }
}

/// Says where there may still be something of what was removed.
pub(crate) fn warn_of_traces(erasure: Erasure, vault: &Path) {
    if !erasure.is_log_empty {
        warn_of_log(vault);
    }
    if !erasure.is_rewritten {
        output::note(
            "the vault is too large to be written anew now; \"runvault gc\" does it, so that no copy of a part is left",
        );
    }
    warn_of_copies(vault);
}

/// Says that removed bytes are still in the write-ahead log.
pub(crate) fn warn_of_log(vault: &Path) {
    output::warning(&format!(
        "others read the vault, so what was removed is still in {}-wal; \"runvault gc\" empties it when they are done",
        vault.display()
    ));
}

/// Names the copies of the vault that were kept when its schema changed: they have what was removed.
fn warn_of_copies(vault: &Path) {
    for version in 1..=runvault::store::SCHEMA_VERSION {
        let mut copy = vault.as_os_str().to_owned();
        copy.push(format!(".schema-{version}"));
        let copy = Path::new(&copy);
        if copy.exists() {
            output::warning(&format!(
                "{} was kept before an upgrade and has what was removed; delete it",
                copy.display()
            ));
        }
    }
}
