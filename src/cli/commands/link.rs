//! `runvault link`

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::storage::{MAX_RELATION_BYTES, is_relation};
use runvault::vault::annotate::{AddLinkRequest, RemoveLinkRequest};

use super::links as list;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;

super::verbs! {
    /// Add, remove or list links between artifacts
    ///
    /// Most links are derived from what artifacts state; the others are added manually. "runvault links" is the same
    /// as "runvault link list".
    Add(AddLinkArgs), Remove(RemoveLinkArgs), List(list::Args)
}

/// Add a link between two artifacts manually
///
/// For relations that no artifact states itself, such as a contract that governs a run. Manual links are stored
/// separately from derived ones and are recorded in the journal.
#[derive(ClapArgs)]
#[command(alias = "set")]
struct AddLinkArgs {
    #[command(flatten)]
    ends: LinkArgs,

    /// The reason
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// A link as arguments.
#[derive(ClapArgs)]
pub(crate) struct LinkArgs {
    /// The artifact where the link starts: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    from: ArtifactArg,

    /// The relation: a derived one such as governs, or a name of your own in lowercase letters, digits and hyphens
    #[arg(value_parser = relation)]
    pub(crate) relation: String,

    /// The artifact where the link ends: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    to: ArtifactArg,
}

impl LinkArgs {
    /// Looks up both artifacts, which must be in the vault.
    pub(crate) fn locate(&self, vault: &runvault::Vault) -> Result<(CoreHash, CoreHash), CommandError> {
        let (source, target) = (self.from.locate(vault)?.artifact.core, self.to.locate(vault)?.artifact.core);
        if source == target {
            return Err(CommandError::Usage("an artifact cannot be linked to itself".to_owned()));
        }
        Ok((source, target))
    }
}

impl AddLinkArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let (source, target) = self.ends.locate(&vault)?;
        let relation = self.ends.relation.clone();
        let answer = vault.run(&AddLinkRequest { source, relation, target, note: self.note.clone() })?;
        json::print_change(self.json, &answer, if answer.changed { "linked" } else { "already linked" })
    }
}

fn relation(text: &str) -> Result<String, String> {
    if is_relation(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a relation begins with a letter and has at most {MAX_RELATION_BYTES} characters of a-z, 0-9 and -"
    ))
}

/// Remove a manually added link
///
/// Derived links follow from the content of artifacts and cannot be removed.
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
struct RemoveLinkArgs {
    #[command(flatten)]
    ends: LinkArgs,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl RemoveLinkArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let (source, target) = self.ends.locate(&vault)?;
        let relation = &self.ends.relation;
        let answer = vault.run(&RemoveLinkRequest { source, relation: relation.clone(), target })?;
        json::print_removal(self.json, answer, "unlinked", || {
            CommandError::No(format!(
                "there is no manual link {source:.12} {relation} {target:.12}; \"runvault links\" lists links"
            ))
        })
    }
}
