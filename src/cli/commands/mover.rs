//! Removal of stored files, for `--move`.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use runvault::display::escaped;
use runvault::intake::{ArtifactSource, ExamineOptions, KeepReason, MoveOptions, MoveOutcome};
use runvault::storage::StorageError;
use runvault::vault::add::{DocumentOutcome, ExaminedDocument};
use runvault::{Vault, clock};

use crate::cli::args::bounds::length;
use crate::cli::args::settings;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::{stdout, time};

/// Which files are removed, and when.
#[derive(Args)]
pub(crate) struct MoveArgs {
    /// Remove each file after it is stored, unless it has changed since or a process has it open for writing
    #[arg(long = "move")]
    pub(crate) moves: bool,

    /// With --move: how long after its last write a trace that may still grow is removed. Default: the setting
    /// settle-traces, else 10m
    #[arg(long, value_name = "DURATION", requires = "moves", value_parser = length, hide_short_help = true)]
    settle_traces: Option<Duration>,
}

impl MoveArgs {
    /// Returns the mover, if files are to be removed.
    pub(crate) fn mover(&self, examine: &ExamineOptions) -> Result<Option<Mover>, CommandError> {
        if !self.moves {
            return Ok(None);
        }
        let settle = settings::SETTLE_TRACES.unless(self.settle_traces)?;
        let settle_growing = settle.unwrap_or(MoveOptions::SETTLE_GROWING);
        Ok(Some(Mover::new(MoveOptions { examine: examine.clone(), settle_growing })))
    }
}

/// Removes the files of stored documents, and reports those that it cannot remove.
pub(crate) struct Mover {
    options: MoveOptions,
    /// Results for files whose documents were not reported yet, in order.
    outcomes: VecDeque<MoveOutcome>,
    /// Files that are kept for now, by path, if they are to be retried.
    waiting: Option<BTreeMap<PathBuf, DeferredRemoval>>,
    /// Number of documents whose files were removed.
    pub(crate) moved: u64,
    /// Number of stored documents whose files remain, completely or in part.
    pub(crate) kept: u64,
    /// Number of files that could not be removed.
    pub(crate) failed: u64,
}

/// A stored document whose file is to be removed later.
struct DeferredRemoval {
    /// The report about it.
    document: ExaminedDocument,
    original: ArtifactSource,
    /// The reason that it is kept, as reported.
    why: Option<KeepReason>,
}

impl Mover {
    fn new(options: MoveOptions) -> Self {
        Self { options, outcomes: VecDeque::new(), waiting: None, moved: 0, kept: 0, failed: 0 }
    }

    /// Returns the mover, with [`Mover::retry`] enabled for files that are kept for now.
    pub(crate) fn retrying(self) -> Self {
        Self { waiting: Some(BTreeMap::new()), ..self }
    }

    /// Returns the number of files to be retried.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.as_ref().map_or(0, BTreeMap::len)
    }

    /// Returns the status: a file that could not be removed requires attention, one that was kept is a negative result.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self { failed: 1.., .. } => Status::Incomplete,
            Self { kept: 1.., .. } => Status::No,
            _ => Status::Done,
        }
    }

    /// Removes files whose documents are now in the vault. [`Mover::take`] reports the results.
    pub(crate) fn remove(&mut self, originals: &[&ArtifactSource]) {
        self.outcomes.extend(ArtifactSource::remove_all(originals, &self.options, clock::now().into()));
    }

    /// Reports the result for the files of a document, and returns whether they were removed; `None` if there was no
    /// file or it was not stored.
    pub(crate) fn take(&mut self, examined: &ExaminedDocument) -> Option<bool> {
        let is_stored = matches!(
            examined.outcome,
            DocumentOutcome::Added
                | DocumentOutcome::NewCapture
                | DocumentOutcome::Present
                | DocumentOutcome::Restored
        );
        let original = examined.original.as_ref().filter(|_| is_stored)?;
        let outcome = self.outcomes.pop_front()?;
        if let Some(waiting) = &mut self.waiting {
            let before = waiting.remove(original.path()).and_then(|before| before.why);
            if outcome.is_for_now() {
                let why = outcome.kept.first().map(|(_, why)| *why);
                let ExaminedDocument { path, path_bytes, kind, core_hash, .. } = examined.clone();
                let named = ExaminedDocument { path, path_bytes, kind, core_hash, ..Default::default() };
                let document = ExaminedDocument { outcome: DocumentOutcome::Present, ..named };
                let entry = DeferredRemoval { document, original: original.clone(), why };
                waiting.insert(original.path().to_owned(), entry);
                if why != before {
                    self.report(&outcome);
                }
                return Some(false);
            }
        }
        self.count(&outcome);
        self.report(&outcome);
        Some(outcome.is_whole())
    }

    /// Retries removing files that were kept, and returns those that were removed. Minutes may have passed since a
    /// document was stored, so its file is removed only if the vault still returns every byte of it. If that cannot be
    /// determined, it is retried later.
    pub(crate) fn retry(&mut self, vault: &Vault) -> Vec<ExaminedDocument> {
        let Some(mut waiting) = self.waiting.take() else { return Vec::new() };
        let is_known = self.forget_what_is_not_stored(&mut waiting, vault);
        if is_known.is_err() {
            self.waiting = Some(waiting);
            return Vec::new();
        }
        let originals: Vec<&ArtifactSource> = waiting.values().map(|waiting| &waiting.original).collect();
        let outcomes = ArtifactSource::remove_all(&originals, &self.options, clock::now().into());
        let (mut gone, mut left) = (Vec::new(), BTreeMap::new());
        for ((path, mut waiting), outcome) in waiting.into_iter().zip(outcomes) {
            if outcome.is_for_now() {
                let why = outcome.kept.first().map(|(_, why)| *why);
                if why != waiting.why {
                    self.report(&outcome);
                }
                waiting.why = why;
                left.insert(path, waiting);
                continue;
            }
            // Files written since then settle again, and are examined again.
            if outcome.kept.iter().any(|(_, why)| *why == KeepReason::Changed) {
                continue;
            }
            self.count(&outcome);
            self.report(&outcome);
            gone.extend(outcome.is_whole().then_some(waiting.document));
        }
        self.waiting = Some(left);
        gone
    }

    fn forget_what_is_not_stored(
        &mut self,
        waiting: &mut BTreeMap<PathBuf, DeferredRemoval>,
        vault: &Vault,
    ) -> Result<(), StorageError> {
        let mut left_out = Vec::new();
        for (path, waiting) in waiting.iter() {
            let (core, capture) = (waiting.original.core(), waiting.original.capture());
            let why = match vault.returns_capture(core, capture)? {
                Some(true) => continue,
                Some(false) => "the bytes in the vault were damaged after it was stored",
                None => "it was removed from the vault after it was stored",
            };
            left_out.push((path.clone(), why));
        }
        for (path, why) in left_out {
            waiting.remove(&path);
            self.kept += 1;
            stdout::message(&format!("kept {}: {why}", escaped(&path.to_string_lossy())));
        }
        Ok(())
    }

    fn count(&mut self, outcome: &MoveOutcome) {
        self.failed += outcome.failed.len() as u64;
        *if outcome.is_whole() { &mut self.moved } else { &mut self.kept } += 1;
    }

    fn report(&self, outcome: &MoveOutcome) {
        for (path, why) in &outcome.kept {
            stdout::message(&format!("kept {}: {}", escaped(&path.to_string_lossy()), self.reason(*why)));
        }
        for error in &outcome.failed {
            stdout::error(&format!("cannot remove {error}; its content is in the vault"));
        }
    }

    fn reason(&self, why: KeepReason) -> String {
        match why {
            KeepReason::Changed => {
                "it changed after it was read; the earlier content is in the vault".to_owned()
            }
            KeepReason::Link => "it is a link; its target is in the vault".to_owned(),
            KeepReason::Unexpected => "it is not part of the pack and is not in the vault".to_owned(),
            KeepReason::MayGrow => format!(
                "the trace may still grow; it is in the vault, and its file can be removed {} after the last write \
                 (--settle-traces)",
                time::length_of(self.options.settle_growing)
            ),
            KeepReason::InUse => {
                "a process has it open for writing; the content that was read is in the vault".to_owned()
            }
            KeepReason::Replaced => {
                "its directory was replaced by another one or by a link, which was left untouched; \
                               the content that was read is in the vault"
                    .to_owned()
            }
        }
    }
}
