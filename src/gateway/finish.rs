//! Stores a run in the vault.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::spool::Spool;
use crate::calls::matching::MatchingRules;
use crate::calls::run::{CallOrigin, CallOutcome, RunHead, StoredCall, TooManyLabels};
use crate::calls::run_parts::{PartLimits, RunDocuments, RunPartError, RunSink};
use crate::calls::session;
use crate::digest::{CoreHash, Digest};
use crate::files::VaultIdentity;
use crate::intake::ExamineOptions;
use crate::recorders::{self, ConvertError, ConvertInput, ConvertOptions, ConvertedDocument, DocumentSort};
use crate::storage::{ErrorKind, StorageError};
use crate::vault::annotate::SetLabelsRequest;
use crate::vault::{AddError, Vault};

/// A run that was stored in the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedRun {
    /// Its id, which the run pack states.
    pub run_id: String,
    /// The name that a client gave it.
    pub name: Option<String>,
    /// The run pack; the first one if there are several.
    pub run_pack: CoreHash,
    /// The run packs, in the order of their calls: several if one would exceed the limits of documents.
    pub run_packs: Vec<CoreHash>,
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
    /// The spans of a trace cannot be read.
    #[error("the spans of a trace cannot be read: {0}")]
    Spans(#[from] ConvertError),
    /// The run would have too many labels.
    #[error("the run would have more labels together than an artifact can have, which is 100")]
    TooManyLabels,
    /// The vault refuses the run. Its file was set aside, and is not read again by itself.
    #[error("{source}; the calls of the run {run} are kept in {}", calls.display())]
    SetAside {
        /// The id of the run.
        run: String,
        /// The file with the calls.
        calls: PathBuf,
        /// Why it cannot be stored.
        source: Box<FinishError>,
    },
}

impl FinishError {
    /// Returns whether a further attempt cannot succeed.
    pub(super) fn is_permanent(&self) -> bool {
        matches!(self, Self::Uncanonical(_) | Self::Spans(_) | Self::Store(AddError::Rejected(_)))
    }
}

impl From<StorageError> for FinishError {
    fn from(error: StorageError) -> Self {
        Self::Store(error.into())
    }
}

impl From<TooManyLabels> for FinishError {
    fn from(TooManyLabels: TooManyLabels) -> Self {
        Self::TooManyLabels
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

    /// Stores what was recorded in `spool`, if the vault is still at its path. Returns `None` if there are no calls.
    /// `warn` receives what could not be done besides that.
    pub(super) fn store(
        &self,
        spool: &Spool,
        head: &RunHead,
        mut calls: Vec<StoredCall>,
        warn: &dyn Fn(&str),
    ) -> Result<Option<FinishedRun>, FinishError> {
        calls.sort_unstable_by_key(|call| call.number);
        if calls.is_empty() {
            return Ok(None);
        }
        self.check(spool)?;
        let vault = &*self.vault;
        // The same answers as those of a session that was removed are stored again.
        let options = ExamineOptions { allow_removed: true, ..ExamineOptions::default() };
        let mut sessions = Vec::new();
        for document in session::documents(CallOrigin::Gateway, head, &calls) {
            sessions.push(vault.add_document(document, &options)?.core);
        }
        let mut sink = VaultSink { vault, options, run_packs: Vec::new(), rejected: None };
        let limits = PartLimits::new(&sink.options.admit.limits);
        match (RunDocuments { origin: CallOrigin::Gateway, head, limits }).write(&mut calls, &mut sink) {
            Ok(()) => {}
            Err(RunPartError::Sink(error)) => return Err(error.into()),
            Err(RunPartError::NonCanonical) => return Err(FinishError::Uncanonical(head.id.clone())),
            Err(error @ RunPartError::Rejected(_)) => {
                return Err(sink
                    .rejected
                    .map_or_else(|| FinishError::Calls(io::Error::other(error.to_string())), Into::into));
            }
        }
        let run_packs = sink.run_packs;
        let failed =
            calls.iter().filter(|call| matches!(call.outcome, CallOutcome::Failed { .. })).count() as u64;
        let (run_id, name, calls) = (head.id.clone(), head.name.clone(), calls.len() as u64);
        let run_pack = *run_packs.first().ok_or_else(|| FinishError::Uncanonical(run_id.clone()))?;
        let finished = FinishedRun { run_id, name, run_pack, run_packs, sessions, calls, failed };
        self.label(head, &finished, warn)?;
        self.check(spool)?;
        Ok(Some(finished))
    }

    /// Stores the run that a trace in `spool` is, if the vault is still at its path.
    pub(super) fn store_trace(
        &self,
        spool: &Spool,
        rules: &MatchingRules,
        warn: &dyn Fn(&str),
    ) -> Result<StoredTrace, FinishError> {
        self.check(spool)?;
        let mut stored = StoredTrace::default();
        let (Some(head), lines) = spool.read_spans()? else { return Ok(stored) };
        let input = ConvertInput { name: head.id.clone(), bytes: lines };
        let options = ConvertOptions { rules: rules.clone(), ..ConvertOptions::default() };
        let converted = recorders::convert(vec![input], &options).pop().transpose()?;
        let Some(converted) = converted else { return Ok(stored) };
        stored.trace.clone_from(&head.id);
        for value in &converted.unmapped {
            *stored.skipped.entry(value.reason.clone()).or_default() += 1;
        }
        let (run_id, calls, failed) = (converted.run_ids.first().cloned(), converted.calls, converted.failed);
        let options = ExamineOptions { allow_removed: true, ..ExamineOptions::default() };
        let (mut sessions, mut run_packs) = (Vec::new(), Vec::new());
        for ConvertedDocument { bytes, sort, .. } in converted.into_documents() {
            match sort {
                DocumentSort::Attachment => drop(self.vault.add_attachment(bytes, &options)?),
                DocumentSort::Session => sessions.push(self.vault.add_document(bytes, &options)?.core),
                DocumentSort::RunPack => run_packs.push(self.vault.add_document(bytes, &options)?.core),
            }
        }
        let (Some(run_id), Some(run_pack)) = (run_id, run_packs.first().copied()) else { return Ok(stored) };
        let finished = FinishedRun { run_id, name: None, run_pack, run_packs, sessions, calls, failed };
        self.label(&head, &finished, warn)?;
        self.check(spool)?;
        stored.run = Some(finished);
        Ok(stored)
    }

    /// Sets the labels of a run. A session with the same answers can have other labels already, and too many together.
    fn label(&self, head: &RunHead, run: &FinishedRun, warn: &dyn Fn(&str)) -> Result<(), FinishError> {
        let labels = head.all_labels();
        if labels.is_empty() {
            return Ok(());
        }
        self.vault.run(&SetLabelsRequest { core_hashes: run.run_packs.clone(), labels: labels.clone() })?;
        for session in &run.sessions {
            match self.vault.run(&SetLabelsRequest { core_hashes: vec![*session], labels: labels.clone() }) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Invalid => {
                    warn(&format!("the session {session} has other labels already: {error}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// What became of a trace.
#[derive(Default)]
pub(super) struct StoredTrace {
    /// Its id.
    pub(super) trace: String,
    /// The run, if it has a call of a model.
    pub(super) run: Option<FinishedRun>,
    /// How many spans and events have no place in the run, by the reason for that.
    pub(super) skipped: BTreeMap<String, usize>,
}

/// Stores what a run becomes.
struct VaultSink<'v> {
    vault: &'v Vault,
    options: ExamineOptions,
    run_packs: Vec<CoreHash>,
    /// Why the last run pack was not accepted.
    rejected: Option<AddError>,
}

impl RunSink for VaultSink<'_> {
    type Error = AddError;

    fn attachment(&mut self, bytes: Vec<u8>) -> Result<(), AddError> {
        self.vault.add_attachment(bytes, &self.options).map(drop)
    }

    fn run_pack(&mut self, document: Vec<u8>, _: Digest) -> Result<bool, AddError> {
        match self.vault.add_document(document, &self.options) {
            Ok(put) => {
                self.run_packs.push(put.core);
                Ok(true)
            }
            Err(error @ AddError::Rejected(_)) => {
                self.rejected = Some(error);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
