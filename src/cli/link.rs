//! `runvault link`

use clap::Args as ClapArgs;
use runvault::digest::DigestPrefix;
use runvault::store::{MAX_RELATION_BYTES, StatedLink, is_relation};

use super::exit::{Failure, Status};
use super::vault::VaultArgs;
use super::{hash, output};

/// State a link between two artifacts.
///
/// For what no artifact says itself, such as a contract that governs a run. Stated links are kept apart from derived
/// ones and are recorded in the journal.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    ends: Ends,

    /// Why, in a sentence
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// A link as arguments.
#[derive(ClapArgs)]
pub(crate) struct Ends {
    /// The hash of the artifact that relates to the other
    #[arg(value_parser = hash::prefix)]
    from: DigestPrefix,

    /// How: a derived relation such as governs, or one of your own in lowercase letters, digits and dashes
    #[arg(value_parser = relation)]
    pub(crate) relation: String,

    /// The hash of the other artifact
    #[arg(value_parser = hash::prefix)]
    to: DigestPrefix,
}

impl Ends {
    /// Both artifacts, which must be in the vault.
    pub(crate) fn locate(
        &self,
        vault: &runvault::Vault,
    ) -> Result<(runvault::store::ArtifactRow, runvault::store::ArtifactRow), Failure> {
        let (source, target) = (vault.locate(&self.from)?.artifact, vault.locate(&self.to)?.artifact);
        if source.id == target.id {
            return Err(Failure::Usage("an artifact cannot be linked to itself".to_owned()));
        }
        Ok((source, target))
    }
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let (source, target) = self.ends.locate(&vault)?;
        let link = StatedLink { source: &source, relation: &self.ends.relation, target: &target };
        let new = vault.state_link(link, self.note.as_deref())?;
        output::note(if new { "linked" } else { "was linked before" });
        Ok(Status::Done)
    }
}

fn relation(text: &str) -> Result<String, String> {
    if is_relation(text) {
        return Ok(text.to_owned());
    }
    Err(format!("a relation begins with a letter and has at most {MAX_RELATION_BYTES} of a-z, 0-9 and -"))
}
