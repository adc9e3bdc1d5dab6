//! Export of a conversation as a trajectory.

use std::collections::BTreeMap;
use std::path::Path;

use runvault::Vault;
use runvault::recorders::{TrajectoryHead, trajectory};
use runvault::vault::show::ShowRequest;
use runvault::vault::view::ViewRequest;

use super::Args;
use crate::cli::output::disk;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, counted};

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
