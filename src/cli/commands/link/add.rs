//! `runvault link add`

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::storage::{MAX_RELATION_BYTES, is_relation};
use runvault::vault::annotate::AddLinkRequest;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::change;
use crate::cli::output::exit::{CommandError, Status};

/// Add a link between two artifacts manually
///
/// For relations that no artifact states itself, such as a contract that governs a run. Manual links are stored
/// separately from derived ones and are recorded in the journal.
#[derive(ClapArgs)]
#[command(alias = "set")]
pub(crate) struct Args {
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
    from: ArtifactArg,

    /// The relation: a derived one such as governs, or a name of your own in lowercase letters, digits and hyphens
    #[arg(value_parser = relation)]
    pub(crate) relation: String,

    /// The artifact where the link ends: a hash, a prefix of one, a tag, a run id, or latest
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

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let (source, target) = self.ends.locate(&vault)?;
        let relation = self.ends.relation.clone();
        let answer = vault.run(&AddLinkRequest { source, relation, target, note: self.note.clone() })?;
        change::print(self.json, &answer, if answer.changed { "linked" } else { "already linked" })
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
