//! `runvault rm`

use std::io::Write;
use std::path::Path;

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::display::escaped;
use runvault::vault::api::{ArtifactName, PathName};
use runvault::vault::remove::{
    CopyOrigin, ErasureSummary, KeptFile, Remnant, RemoveAnswer, RemoveRequest, Removed, VaultCopy,
};
use runvault::vault::{ContainedArtifact, PinnedArtifact};
use runvault::{ReferencedArtifact, RemoveError, Vault, formats};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, HASH, counted};
use crate::cli::output::{json, links};

/// Remove artifacts
///
/// An artifact is removed with all its captures, tags, notes and manual links. If other artifacts contain its bytes, as
/// a pack contains its session, nothing is removed and they are listed; --with-containers removes them too. Members of
/// a pack that other artifacts also contain are kept and listed. The vault keeps a tombstone that records what was
/// removed, when, by whom and why, and that prevents the artifact from being added again. Either all given artifacts
/// are removed, or none. The output says if removed bytes remain in the vault file until "gc" runs.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    /// The artifacts: hashes, prefixes of them, tags, run ids, or latest
    #[arg(required = true, value_name = "HASH", add = CandidateSource::ARTIFACTS.completer())]
    hashes: Vec<ArtifactArg>,

    /// Print what would be removed without removing anything
    #[arg(long)]
    dry_run: bool,

    /// Remove artifacts even if they are still referenced, but never if they are pinned
    #[arg(long, hide_short_help = true)]
    force: bool,

    /// Also remove the artifacts that contain the bytes, such as the packs of a session
    #[arg(long)]
    with_containers: bool,

    /// The reason, recorded in the tombstone
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, arguments: &VaultArgs) -> Result<Status, CommandError> {
        let vault = arguments.open()?;
        let mut artifacts = Vec::new();
        for named in &self.hashes {
            artifacts.push(named.locate_artifact(&vault)?.artifact.core);
        }
        let request = RemoveRequest {
            artifacts,
            reason: self.reason.clone(),
            ignore_links: self.force,
            with_containers: self.with_containers,
            dry_run: self.dry_run,
        };
        let RemoveAnswer { removed, erasure } = vault.run(&request).map_err(refusal)?;
        // Reclaiming space does not remove what a database server keeps; a warning says so.
        let is_reclaimable = |erasure: &ErasureSummary| !erasure.remnants.contains(&Remnant::Database);
        let until_gc = erasure.as_ref().is_some_and(is_reclaimable);
        for removed in &removed {
            if self.json { json::line(&mut stdout::raw(), removed)? } else { print(removed, until_gc)? }
        }
        if let Some(erasure) = &erasure {
            warn_of_remnants(erasure, &vault);
        }
        Ok(Status::Done)
    }
}

/// Prints what was removed, or would be. `until_gc` is whether reclaiming space removes what is left.
fn print(removed: &Removed, until_gc: bool) -> Result<(), CommandError> {
    let Removed { core_hash, kind, captures, size, shared, erased } = removed;
    let done = if erased.is_some() { "removed" } else { "would remove" };
    let left = if *erased == Some(false) && until_gc { "; still in the file until gc" } else { "" };
    let (captures, size) = (counted(captures.len() as u64, "capture"), stdout::size(*size));
    let mut out = stdout::text();
    writeln!(out, "{done} {} {captures}, {size}{left}", named(kind, *core_hash))?;
    for KeptFile { file, dependents, count, .. } in shared {
        let format_dependent = |dependent: &ArtifactName| named(&dependent.kind, dependent.core_hash);
        let mut names: Vec<String> = dependents.iter().map(format_dependent).collect();
        let more = count.saturating_sub(dependents.len() as u64);
        names.extend((more > 0).then(|| format!("{more} more")));
        writeln!(out, "  {} is kept, it is also in {}", escaped(file), names.join(", "))?;
    }
    Ok(())
}

/// Formats an artifact for lists.
fn named(kind: &str, core: CoreHash) -> String {
    let kind = escaped(formats::bare_noun(kind)).to_string();
    format!("{kind:<11} {HASH}{core:.12}{HASH:#}")
}

/// The maximum number of artifacts, and of containers of each, that a refusal lists; the rest are counted.
const LISTED: usize = 20;

/// Lists the reasons that a removal is refused.
pub(crate) fn refusal(error: RemoveError) -> CommandError {
    let message = error.to_string();
    match error {
        RemoveError::Store(error) => error.into(),
        RemoveError::KeepsNothing => CommandError::Usage(message),
        RemoveError::Pinned { pins } => {
            let line = |pinned: &PinnedArtifact| {
                let PinnedArtifact { artifact, pin } = pinned;
                let note = pin.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
                format!("{} {}{note}", formats::bare_noun(&artifact.kind), artifact.core)
            };
            let message = format!("{message}; \"runvault pin remove\" allows removal");
            CommandError::Refused { message, because: pins.iter().map(line).collect() }
        }
        RemoveError::Contained { contained } => {
            let mut because = Vec::new();
            for ContainedArtifact { artifact, containers } in contained.iter().take(LISTED) {
                because.push(format!("{} {}", formats::bare_noun(&artifact.kind), artifact.core));
                let listed = containers.iter().take(LISTED);
                because.extend(
                    listed.map(|row| format!("  in {} {:.12}", formats::bare_noun(&row.kind), row.core)),
                );
                let more = containers.len().saturating_sub(LISTED);
                because.extend((more > 0).then(|| format!("  and in {more} more")));
            }
            let more = contained.len().saturating_sub(LISTED);
            because.extend((more > 0).then(|| format!("and {more} more artifacts")));
            let message = format!("{message}; --with-containers also removes those");
            CommandError::Refused { message, because }
        }
        RemoveError::Linked { held } => {
            let mut because = Vec::new();
            for ReferencedArtifact { artifact, links, more } in held.iter().take(LISTED) {
                because.push(format!("{} {}", formats::bare_noun(&artifact.kind), artifact.core));
                because.extend(links.iter().map(|link| {
                    format!("  <- {} {} {}", link.relation, link.target, links::origin_text(&link.origin))
                }));
                because.extend((*more > 0).then(|| format!("  and {more} more")));
            }
            let more = held.len().saturating_sub(LISTED);
            because.extend((more > 0).then(|| format!("and {more} more artifacts")));
            let message = format!("{message}; --force removes them anyway");
            CommandError::Refused { message, because }
        }
    }
}

/// Warns of locations where removed bytes remain or may remain.
pub(crate) fn warn_of_remnants(erasure: &ErasureSummary, vault: &Vault) {
    for remnant in &erasure.remnants {
        match remnant {
            Remnant::LargeFile { limit } => {
                let size = stdout::size(*limit);
                until_gc(&format!("vaults larger than {size} are not rewritten after every removal"));
            }
            Remnant::File { reason } => {
                until_gc(&format!("the file could not be rewritten: {reason}"));
            }
            Remnant::Dictionaries { kinds } => {
                let kinds = kinds.join(", ");
                until_gc(&format!(
                    "the compression dictionary of {kinds} may contain parts of removed artifacts"
                ));
            }
            Remnant::Log => warn_of_log(vault.path()),
            Remnant::Database => stdout::warning(
                "removed bytes may still be in the files of the database server: in dead rows until they are vacuumed, in \
                 its write-ahead log, in replicas and in backups",
            ),
            Remnant::Objects => stdout::warning(
                "removed bytes are still in object storage: \"runvault gc\" deletes them when a day has passed and nothing \
                 else is in the same object; versions of objects that the storage keeps are not deleted",
            ),
        }
    }
    erasure.copies.iter().for_each(warn_of_copy);
}

fn until_gc(why: &str) {
    stdout::warning(&format!("removed bytes are still in the file until \"runvault gc\": {why}"));
}

/// Warns that removed bytes remain in the write-ahead log.
pub(crate) fn warn_of_log(vault: &Path) {
    stdout::warning(&format!(
        "removed bytes are still in {}-wal until \"runvault gc\", because other processes are reading the vault",
        vault.display()
    ));
}

/// Warns of a copy beside the vault.
fn warn_of_copy(VaultCopy { file: PathName { path, .. }, of }: &VaultCopy) {
    stdout::warning(&match of {
        CopyOrigin::Log => format!(
            "{path} is a copy of a damaged write-ahead log and may contain removed data; delete it after \"runvault fsck \
             --repair\""
        ),
    });
}
