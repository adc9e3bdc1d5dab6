//! `runvault link`

use clap::Args as ClapArgs;
use runvault::store::{MAX_RELATION_BYTES, StatedLink, is_relation};

use super::exit::{Failure, Status};
use super::hash::Named;
use super::output;
use super::vault::VaultArgs;

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
    from: Named,

    /// How: a derived relation such as governs, or one of your own in lowercase letters, digits and dashes
    #[arg(value_parser = relation)]
    pub(crate) relation: String,

    /// The hash of the other artifact
    to: Named,
}

impl Ends {
    /// Both artifacts, which must be in the vault.
    pub(crate) fn locate(
        &self,
        vault: &runvault::Vault,
    ) -> Result<(runvault::store::ArtifactRow, runvault::store::ArtifactRow), Failure> {
        let (source, target) = (self.from.locate(vault)?.artifact, self.to.locate(vault)?.artifact);
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
