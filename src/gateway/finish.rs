//! Stores a run in the vault.

use std::io;

use serde::{Deserialize, Serialize};

use super::spool::Spool;
use crate::calls::call::{CallOutcome, CallRecord};
use crate::calls::head::RunHead;
use crate::calls::origin::CallOrigin;
use crate::calls::recorded_run;
use crate::calls::session;
use crate::digest::CoreHash;
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
    /// The recorded run has no canonical form.
    #[error("the run {0} cannot be stored: what was recorded has no canonical form")]
    Uncanonical(String),
}

impl From<StorageError> for FinishError {
    fn from(error: StorageError) -> Self {
        Self::Store(error.into())
    }
}

/// Stores what was recorded, and then removes its file.
///
/// The spool contains a refused call only if the process that recorded it did not refuse it.
pub(super) fn store(
    vault: &Vault,
    (spool, head, mut calls): (Spool, RunHead, Vec<CallRecord>),
    is_refused: impl Fn(&CallRecord) -> bool,
) -> Result<Option<FinishedRun>, FinishError> {
    calls.retain(|call| !is_refused(call));
    calls.sort_unstable_by_key(|call| call.number);
    if calls.is_empty() {
        spool.remove()?;
        return Ok(None);
    }
    let pack = recorded_run::document(CallOrigin::Gateway, &head, &calls)
        .map_err(|_| FinishError::Uncanonical(head.id.clone()))?;
    let options = ExamineOptions::default();
    let mut sessions = Vec::new();
    for document in session::documents(CallOrigin::Gateway, &head, &calls) {
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
    spool.remove()?;
    let calls = calls.len() as u64;
    Ok(Some(FinishedRun { run_id: head.id, name: head.name, run_pack, sessions, calls, failed }))
}
