//! Export of the calls of run packs to the formats of other programs, and of a conversation as a trajectory.

use std::collections::BTreeMap;
use std::path::Path;

use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::recorders::{self, CallExportError, ExportFormat, TrajectoryHead, trajectory};
use runvault::vault::show::ShowRequest;
use runvault::vault::view::ViewRequest;

use super::Args;
use crate::cli::output::disk;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, counted};

/// The relation of a run pack to the session that has its prompts and responses.
const REPLAYS: &str = "replays";

/// The relation of a part of a run to the part before it.
const CONTINUES: &str = "continues";

impl Args {
    /// Writes the calls of the selected run packs.
    pub(super) fn write_calls(&self, vault: &Vault, format: ExportFormat) -> Result<Status, CommandError> {
        let Some(output) = &self.output else { return Err(CommandError::Usage("give -o FILE".to_owned())) };
        let packs = self.packs(vault)?;
        let attachment = |digest: Digest| vault.get(&digest.into()).ok();
        let write = |out: &mut dyn std::io::Write| match recorders::write(format, &packs, &attachment, out) {
            Ok(calls) => Ok(calls),
            Err(CallExportError::Io(error)) => Err(CommandError::from(error)),
            Err(error) => Err(CommandError::No(error.to_string())),
        };
        let calls = if output == Path::new("-") {
            write(&mut stdout::raw())?
        } else {
            disk::write_with(output, &self.mode.options(self.force, vault.path()), write)?
        };
        let runs = counted(packs.len() as u64, "run");
        stdout::note(&format!("exported {} of {runs}", counted(calls, "call")));
        Ok(Status::Done)
    }

    /// Returns the run packs that are selected, or whose sessions are. What conditions select besides is left out.
    fn packs(&self, vault: &Vault) -> Result<Vec<Vec<u8>>, CommandError> {
        let mut selected = super::selected(vault, &self.selection(vault)?)?;
        let is_named = !self.hashes.is_empty();
        if !is_named {
            // They are in the order in which they were seen, like their calls.
            selected.reverse();
        }
        let mut packs: Vec<(CoreHash, Vec<u8>)> = Vec::new();
        let mut others = 0;
        for core in &selected {
            match pack_of(vault, *core, &selected) {
                Ok((pack, _)) if packs.iter().any(|(other, _)| *other == pack) => {}
                Ok(found) => packs.push(found),
                Err(CommandError::No(_)) if !is_named => others += 1,
                Err(failure) => return Err(failure),
            }
        }
        if packs.is_empty() {
            return Err(CommandError::No(format!("nothing to export: {}", CallExportError::NoCalls)));
        }
        if others > 0 {
            let are = if others == 1 { "artifact has" } else { "artifacts have" };
            stdout::note(&format!("{others} selected {are} no recorded calls, or those of several runs"));
        }
        let mut documents = Vec::new();
        for (core, document) in &packs {
            documents.push(document.clone());
            for (part, document) in following(vault, *core)? {
                if packs.iter().all(|(other, _)| *other != part) {
                    documents.push(document);
                }
            }
        }
        Ok(documents)
    }
}

/// Returns the run packs with the parts of a run after one of them, in their order.
fn following(vault: &Vault, core: CoreHash) -> Result<Vec<(CoreHash, Vec<u8>)>, CommandError> {
    let mut parts: Vec<(CoreHash, Vec<u8>)> = Vec::new();
    loop {
        let last = parts.last().map_or(core, |(part, _)| *part);
        let is_known = |other: &CoreHash| *other == core || parts.iter().any(|(part, _)| part == other);
        let next = vault.linked_by(last, CONTINUES)?.into_iter().find(|other| !is_known(other));
        let Some(next) = next else { return Ok(parts) };
        let document = vault.get(&next.0.into())?;
        parts.push((next, document));
    }
}

/// Returns the run pack with the calls of an artifact: itself, or the only one that has the calls of a session, or the only
/// one of those that is selected.
fn pack_of(
    vault: &Vault,
    core: CoreHash,
    selected: &[CoreHash],
) -> Result<(CoreHash, Vec<u8>), CommandError> {
    let document = vault.get(&core.0.into())?;
    if recorders::has_calls(&document) {
        return Ok((core, document));
    }
    let mut packs = Vec::new();
    for other in vault.linked_by(core, REPLAYS)? {
        let document = vault.get(&other.0.into())?;
        if recorders::has_calls(&document) {
            packs.push((other, document));
        }
    }
    if packs.len() > 1 && packs.iter().any(|(pack, _)| selected.contains(pack)) {
        packs.retain(|(pack, _)| selected.contains(pack));
    }
    // Of the parts of a run, the others follow the first.
    let mut continued = Vec::new();
    for (pack, _) in &packs {
        continued.extend(following(vault, *pack)?.into_iter().map(|(part, _)| part));
    }
    packs.retain(|(pack, _)| !continued.contains(pack));
    <[_; 1]>::try_from(packs).map(|[pack]| pack).map_err(|packs| not_one(core, &packs))
}

fn not_one(core: CoreHash, packs: &[(CoreHash, Vec<u8>)]) -> CommandError {
    if packs.is_empty() {
        let of = "a run pack of recorded or imported calls";
        return CommandError::No(format!("{core:.12} is neither {of} nor the session of one"));
    }
    let hashes: Vec<String> = packs.iter().map(|(pack, _)| format!("{pack:.12}")).collect();
    let (count, hashes) = (hashes.len(), hashes.join(", "));
    CommandError::No(format!(
        "{core:.12}: it is the session of {count} run packs; name one of them: {hashes}"
    ))
}

impl Args {
    /// Writes the conversation of the artifact that is named.
    pub(super) fn write_trajectory(&self, vault: &Vault) -> Result<Status, CommandError> {
        let Some(output) = &self.output else { return Err(CommandError::Usage("give -o FILE".to_owned())) };
        let [named] = &self.hashes[..] else {
            return Err(CommandError::Usage("a trajectory is of one artifact; name it".to_owned()));
        };
        let artifact = named.locate(vault)?.artifact;
        let request = ViewRequest { conversation: true, limit: None, ..ViewRequest::new(artifact.core) };
        let conversation = vault.run(&request)?.conversation.unwrap_or_default();
        let head = head(vault, artifact.core)?;
        let Some((document, others)) = trajectory(&conversation, &head) else {
            let core = artifact.core;
            return Err(CommandError::No(format!("nothing to export: {core:.12} has no calls of models")));
        };
        if output == Path::new("-") {
            std::io::Write::write_all(&mut stdout::raw(), document.as_bytes())?;
        } else {
            let options = self.mode.options(self.force, vault.path());
            disk::write_with(output, &options, |out| Ok(out.write_all(document.as_bytes())?))?;
        }
        let calls = conversation.calls.len() as u64 - others;
        let left_out = if others > 0 {
            format!(", without {} in other threads", counted(others, "call"))
        } else {
            String::new()
        };
        stdout::note(&format!("exported {}{left_out}", counted(calls, "call")));
        Ok(Status::Done)
    }
}

/// Returns what a trajectory states of an artifact: the agent of an agent session, or that of the labels of a run.
fn head(vault: &Vault, core: runvault::digest::CoreHash) -> Result<TrajectoryHead, CommandError> {
    let shown = vault.run(&ShowRequest { artifact: core })?;
    let attributes: BTreeMap<&str, &str> = shown
        .attributes
        .iter()
        .map(|attribute| (attribute.name.as_str(), attribute.value.as_str()))
        .collect();
    let runtime = attributes.get("runtime").and_then(|runtime| runtime.rsplit_once(' '));
    let label = |name: &str| shown.labels.get(name).cloned();
    let program = label("program");
    let stated = runtime.filter(|_| program.is_none());
    Ok(TrajectoryHead {
        session_id: attributes.get("run_id").map_or_else(|| core.to_string(), |id| (*id).to_owned()),
        version: label("program-version").or(stated.map(|(_, version)| version.to_owned())),
        agent: program.or(stated.map(|(name, _)| name.to_owned())),
    })
}
