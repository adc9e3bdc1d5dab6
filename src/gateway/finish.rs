//! Stores a run in the vault.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::spool::Spool;
use crate::calls::call::{CallOutcome, CallRecord};
use crate::calls::head::RunHead;
use crate::calls::origin::CallOrigin;
use crate::calls::recorded_run;
use crate::calls::session;
use crate::digest::CoreHash;
use crate::files::VaultIdentity;
use crate::intake::ExamineOptions;
use crate::storage::StorageError;
use crate::vault::annotate::SetLabelsRequest;
use crate::vault::{AddError, Vault};

/// A run that was stored in the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedRun {
    /// Its id, which the run pack states.
    pub run_id: String,
    /// The name that a client gave it.
    pub name: Option<String>,
    /// The run pack.
    pub run_pack: CoreHash,
    /// The sessions: none if no call was answered with success, several if one would exceed the limits of the format.
    pub sessions: Vec<CoreHash>,
    /// Number of calls, including those that failed.
    pub calls: u64,
    /// Number of calls without a complete answer.
    pub failed: u64,
}

/// The reason that a run was not stored. Its calls remain on disk.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// A file with the calls of a run cannot be read or written.
    #[error("the calls of a run cannot be read or written: {0}")]
    Calls(#[from] io::Error),
    /// The vault refused what was made of a run, or cannot be written.
    #[error("the run cannot be stored: {0}")]
    Store(#[from] AddError),
    /// The file of the vault was removed or replaced while the gateway ran.
    #[error("{} was removed or replaced, so the run would be lost; its calls remain in {}", vault.display(), calls.display())]
    VaultReplaced {
        /// The file of the vault.
        vault: PathBuf,
        /// The file with the calls.
        calls: PathBuf,
    },
    /// The recorded run has no canonical form.
    #[error("the run {0} cannot be stored: what was recorded has no canonical form")]
    Uncanonical(String),
}

impl From<StorageError> for FinishError {
    fn from(error: StorageError) -> Self {
        Self::Store(error.into())
    }
}

/// The vault in which runs are stored, and its file.
pub(super) struct RunDestination {
    vault: Arc<Vault>,
    /// It is known once the vault is created, which the first run that is stored can do.
    identity: OnceLock<VaultIdentity>,
}

impl RunDestination {
    pub(super) fn new(vault: Arc<Vault>) -> Self {
        let destination = Self { vault, identity: OnceLock::new() };
        destination.is_reachable();
        destination
    }

    /// Returns whether the vault is still at its path.
    fn is_reachable(&self) -> bool {
        if self.vault.is_created() || self.identity.get().is_some() {
            return self.identity.get_or_init(|| VaultIdentity::new(self.vault.path())).is_unchanged();
        }
        true
    }

    /// Returns an error if the vault is not at its path any more.
    fn check(&self, calls: &Spool) -> Result<(), FinishError> {
        if self.is_reachable() {
            return Ok(());
        }
        let (vault, calls) = (self.vault.path().to_owned(), calls.path().to_owned());
        Err(FinishError::VaultReplaced { vault, calls })
    }
}

/// Stores what was recorded in `spool`, if the vault is still at its path. Returns `None` if there are no calls.
///
/// The spool contains a refused call only if the process that recorded it did not refuse it.
pub(super) fn store(
    destination: &RunDestination,
    (spool, head, calls): (&Spool, &RunHead, &mut Vec<CallRecord>),
    is_refused: impl Fn(&CallRecord) -> bool,
) -> Result<Option<FinishedRun>, FinishError> {
    calls.retain(|call| !is_refused(call));
    calls.sort_unstable_by_key(|call| call.number);
    if calls.is_empty() {
        return Ok(None);
    }
    destination.check(spool)?;
    let vault = &destination.vault;
    let pack = recorded_run::document(CallOrigin::Gateway, head, calls)
        .map_err(|_| FinishError::Uncanonical(head.id.clone()))?;
    let options = ExamineOptions::default();
    let mut sessions = Vec::new();
    for document in session::documents(CallOrigin::Gateway, head, calls) {
        sessions.push(vault.add_document(document, &options)?.core);
    }
    let run_pack = vault.add_document(pack, &options)?.core;
    let labels = head.all_labels();
    if !labels.is_empty() {
        let core_hashes = sessions.iter().copied().chain([run_pack]).collect();
        vault.run(&SetLabelsRequest { core_hashes, labels })?;
    }
    let failed =
        calls.iter().filter(|call| matches!(call.outcome, CallOutcome::Failed { .. })).count() as u64;
    destination.check(spool)?;
    let calls = calls.len() as u64;
    let (run_id, name) = (head.id.clone(), head.name.clone());
    Ok(Some(FinishedRun { run_id, name, run_pack, sessions, calls, failed }))
}
