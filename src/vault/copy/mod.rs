//! Copies a vault into another one, of any engine.
//!
//! Into an empty vault, the journal is adopted verbatim: every entry of the source, with the artifact whose capture it adds,
//! which is read, hashed and admitted again. What else the source's catalog has is not copied, because it follows from that;
//! at the end, both catalogs are compared. The target is marked as an incomplete copy from the first entry to the last, so
//! that it cannot be mistaken for a vault, and an interrupted copy continues with the next entry.
//!
//! Into another vault, captures that it does not have are added as from a bundle, and annotations are merged.

mod merge;
mod outcome;
mod source;
mod verbatim;

pub use outcome::{
    CopiedAnnotations, CopyAnswer, CopyError, CopyMode, CopyOptions, CopyProgress, CopyWatch, RejectedCapture,
};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::PathName;
use crate::storage::{Actor, Filter, StorageError};

/// A request to copy everything in a vault into another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyRequest {
    /// The path or URL of the other vault, which is created if it does not exist.
    #[schema(value_type = String)]
    pub to: PathBuf,
    /// Whether artifacts that were removed from the other vault before are added again.
    #[serde(default)]
    pub allow_removed: bool,
    /// Whether the paths that captures were read from are left out where captures are added. An empty vault adopts the
    /// journal as it is, with the paths that it records.
    #[serde(default)]
    pub without_source_paths: bool,
    /// The name that the other vault's journal records for entries that are made there.
    #[serde(default)]
    pub actor: Option<String>,
}

impl CopyRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Same as [`Vault::copy_to`], and [`CopyError::Store`] if the other vault cannot be opened.
    pub fn run(&self, vault: &Vault) -> Result<CopyAnswer, CopyError> {
        let target = Vault::open_for_copy(&self.to)?;
        let target = match &self.actor {
            Some(actor) => target.acting_as(Actor::new(actor)?),
            None => target,
        };
        let options = CopyOptions {
            allow_removed: self.allow_removed,
            without_source_paths: self.without_source_paths,
        };
        vault.copy_to(&target, options, CopyWatch { progress: &mut |_| {}, is_stopped: &|| false })
    }
}

impl Vault {
    /// Copies everything into another vault. An empty one adopts the journal; into another one, captures that it does not
    /// have are added, and annotations are merged.
    ///
    /// ```
    /// # use runvault::{Vault, intake::ExamineOptions, vault::copy::{CopyMode, CopyRequest}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let to = directory.path().join("other.vault");
    /// let request = CopyRequest { to, allow_removed: false, without_source_paths: false, actor: None };
    /// let copied = vault.run(&request)?;
    /// assert_eq!((copied.mode, copied.captures), (CopyMode::Verbatim, 1));
    /// assert_eq!(copied.journal_head, vault.snapshot()?.journal_head()?.chain);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`CopyError::Store`] if one of the vaults cannot be read or written. A verbatim copy also fails with
    /// [`CopyError::OtherSource`] if it was begun from another vault, [`CopyError::Rejected`] if an artifact breaks the rules
    /// of its kind, and [`CopyError::Missing`] or [`CopyError::Differs`] if the catalog is not what follows from the journal.
    /// Everything that was copied before an error stays.
    pub fn copy_to(
        &self,
        target: &Self,
        options: CopyOptions,
        watch: CopyWatch<'_>,
    ) -> Result<CopyAnswer, CopyError> {
        let (mut source, to) = (self.snapshot()?, &*target.storage);
        let copied = if to.is_incomplete()? || is_empty(target)? {
            verbatim::copy(&mut *source, target, watch)?
        } else {
            merge::copy(&mut *source, self.path(), to, options, watch)?
        };
        let head = to.snapshot()?.journal_head()?;
        let journal = (head.seq, head.chain);
        let (target, (journal_entries, journal_head)) = (PathName::from(target.path()), journal);
        Ok(CopyAnswer { target, journal_entries, journal_head, ..copied })
    }
}

fn is_empty(vault: &Vault) -> Result<bool, StorageError> {
    if !vault.is_created() {
        return Ok(true);
    }
    let snapshot = vault.snapshot()?;
    Ok(snapshot.journal_head()?.seq == 0 && snapshot.count(&Filter::default())? == 0)
}
