//! Storing of examined documents in batches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use super::continuation_joiner::FirstPart;
use super::examination::{Examination, ExaminationResult, ExaminedItem, ends_directory, unreadable};
use super::report::{AddReporter, DocumentOutcome, outcome_of};
use crate::artifact::Admitted;
use crate::clock;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::formats;
use crate::intake::{ArtifactSource, Predecessor};
use crate::storage::{
    self, Annotation, BUSY_TIMEOUT, ErrorKind, Filter, MAX_NOTE_BYTES, Order, Page, PayloadDefect, Prepared,
    PutOptions, PutOutcome, PutResult, RemovedPolicy, Result, Snapshot, SourcePath, Storage, StorageError,
    TimeBasis, Transaction, check_labels, is_note,
};
use crate::validation::Report;
use crate::vault::fsck;

/// Annotations for all artifacts of an addition, whether they are new or were stored before. What is embedded in an
/// artifact, such as the session of a pack, does not get them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommonAnnotations {
    /// The labels, by key. They replace the values of the same keys.
    pub labels: BTreeMap<String, String>,
    /// The note. It replaces any other.
    pub note: Option<String>,
}

impl CommonAnnotations {
    /// No annotations.
    pub(crate) const NONE: Self = Self { labels: BTreeMap::new(), note: None };

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.note.is_none()
    }

    /// Checks that the labels and the note are valid.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if a label or the note is not
    /// valid.
    pub fn check(&self) -> Result<()> {
        check_labels(&self.labels)?;
        if self.note.as_ref().is_some_and(|note| !is_note(note)) {
            let message = format!("a note must not be blank, and has at most {MAX_NOTE_BYTES} bytes");
            return Err(StorageError::invalid(message));
        }
        Ok(())
    }

    /// Sets them on artifacts at the time `at`, in one transaction. Those that were removed in the meantime are skipped.
    pub(super) fn set(&self, storage: &dyn Storage, of: &[CoreHash], at: DateTime<Utc>) -> Result<()> {
        if self.is_empty() || of.is_empty() {
            return Ok(());
        }
        let mut change = storage.transaction(at, BUSY_TIMEOUT)?;
        let stored = change.snapshot().stored_artifacts(of)?;
        let cores: Vec<CoreHash> = stored.into_iter().map(|artifact| artifact.core).collect();
        if self.annotate(&mut *change, &cores)? {
            change.commit()?;
        }
        Ok(())
    }

    fn annotate(&self, change: &mut dyn Transaction, cores: &[CoreHash]) -> Result<bool> {
        let mut is_changed = change.annotate(&Annotation::SetLabels { cores, labels: &self.labels })?;
        if let Some(text) = self.note.as_deref() {
            for core in cores.iter().copied() {
                is_changed |= change.annotate(&Annotation::SetNote { core, text: Some(text) })?;
            }
        }
        Ok(is_changed)
    }
}

/// The source paths that an addition records with new captures.
#[derive(Clone, Copy)]
pub(in crate::vault) enum SourcePaths<'a> {
    /// None.
    LeftOut,
    /// Those of the inputs. What is embedded in an artifact, or stored with it, has the path of that artifact.
    OfInputs,
    /// Those that were recorded elsewhere.
    Of(&'a HashMap<(CoreHash, CaptureHash), SourcePath>),
    /// Those that were recorded elsewhere, which are taken out when they are set.
    Once(&'a Mutex<HashMap<(CoreHash, CaptureHash), SourcePath>>),
}

impl SourcePaths<'_> {
    /// Sets the paths of an artifact that was read from `path`.
    pub(super) fn set(self, path: &OsStr, prepared: &mut Prepared) {
        match self {
            Self::LeftOut => {}
            Self::OfInputs => {
                let path = SourcePath::new(path);
                prepared.set_source_paths(&|_| path.clone());
            }
            Self::Of(paths) => {
                let key = |admitted: &Admitted| (admitted.core(), admitted.capture());
                prepared.set_source_paths(&|admitted| paths.get(&key(admitted)).cloned());
            }
            Self::Once(paths) => {
                let key = |admitted: &Admitted| (admitted.core(), admitted.capture());
                let take = |admitted: &Admitted| paths.lock().remove(&key(admitted));
                prepared.set_source_paths(&take);
            }
        }
    }
}

/// A batch is stored when it reaches this number of documents or bytes. A commit costs about as much as storing some
/// hundred artifacts.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: u64 = 16 << 20;

/// Vaults with this many artifacts use batches of more documents: each commit writes most pages of the digest indexes.
const LARGE_VAULT: u64 = 50_000;
const LARGE_VAULT_BATCHES: usize = 4;

/// How long to wait for other writers if the only change is that artifacts were seen again.
const SEEN_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The annotations and paths recorded with all artifacts of an addition.
#[derive(Clone, Copy)]
pub(in crate::vault) struct Recorded<'a> {
    pub(in crate::vault) annotations: &'a CommonAnnotations,
    pub(in crate::vault) source_paths: SourcePaths<'a>,
}

/// The outcome for an admitted artifact, or why it was refused.
type Admission = std::result::Result<DocumentOutcome, Report>;

/// The reason for stopping before the end of the inputs.
pub(super) enum AddInterruption {
    /// At a failed document, as requested.
    Stopped,
    Failed(StorageError),
}

impl From<StorageError> for AddInterruption {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

/// Returns whether adding stopped at a failed document.
pub(super) fn is_stopped(outcome: std::result::Result<(), AddInterruption>) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(false),
        Err(AddInterruption::Stopped) => Ok(true),
        Err(AddInterruption::Failed(error)) => Err(error),
    }
}

/// Documents to be stored together, with those between them that are not to be stored, so that the monitor receives all
/// of them in order and none too early.
pub(super) struct AddBatch<'s> {
    pub(super) storage: &'s dyn Storage,
    recorded: Recorded<'s>,
    policy: RemovedPolicy,
    /// One time for a whole `add`, so that the order within it is not recorded.
    at: DateTime<Utc>,
    waiting: Vec<(usize, ExaminedItem<Prepared>)>,
    /// The total size of the artifacts and reports in bytes.
    bytes: u64,
    /// The multiple of the usual number of documents, once there are as many.
    times: Option<usize>,
    /// The number of documents that were not stored because an earlier one was rejected.
    pub(super) dropped: u64,
    /// How long to wait for other writers to record artifacts as seen again; zero after the first timeout.
    seen_busy_timeout: Duration,
}

impl<'s> AddBatch<'s> {
    /// Creates an empty batch.
    pub(super) fn new(storage: &'s dyn Storage, recorded: Recorded<'s>, policy: RemovedPolicy) -> Self {
        Self {
            storage,
            recorded,
            policy,
            at: clock::now(),
            waiting: Vec::new(),
            bytes: 0,
            times: None,
            dropped: 0,
            seen_busy_timeout: SEEN_BUSY_TIMEOUT,
        }
    }

    /// Returns the document that ends at `predecessor`, if it is about to be stored.
    pub(super) fn beginning(&self, predecessor: &Predecessor) -> Option<FirstPart> {
        let core = CoreHash(predecessor.after);
        self.waiting.iter().rev().find_map(|(_, item)| match item {
            Ok(Examination { verdict: ExaminationResult::Admitted(prepared), .. }) => {
                let admitted = prepared.admitted();
                let is_it = admitted.core() == core && admitted.kind() == predecessor.kind;
                let only = admitted.members().first().filter(|_| is_it)?;
                Some(FirstPart::new(core, only.bytes().to_vec()))
            }
            _ => None,
        })
    }

    pub(super) fn push(
        &mut self,
        number: usize,
        mut item: ExaminedItem<Prepared>,
        reporter: &mut AddReporter<'_>,
    ) -> std::result::Result<(), AddInterruption> {
        if let Ok(Examination { path, verdict: ExaminationResult::Admitted(prepared), .. }) = &mut item {
            self.recorded.source_paths.set(path, prepared);
        }
        self.bytes += match &item {
            Ok(Examination { verdict: ExaminationResult::Admitted(prepared), .. }) => {
                size_with_attachments(prepared)
            }
            Ok(Examination { verdict: ExaminationResult::Rejected(rejection), .. }) => {
                rejection.report.bytes() as u64
            }
            _ => 0,
        };
        self.waiting.push((number, item));
        if self.is_full()? {
            self.store(reporter)?;
        }
        Ok(())
    }

    /// Returns whether the batch is to be stored before more is added to it.
    fn is_full(&mut self) -> Result<bool> {
        if self.bytes >= BATCH_BYTES {
            return Ok(true);
        }
        if self.waiting.len() < BATCH_DOCUMENTS {
            return Ok(false);
        }
        let times = match self.times {
            Some(times) => times,
            None if last_addition(self.storage)? < LARGE_VAULT => 1,
            None => LARGE_VAULT_BATCHES,
        };
        self.times = Some(times);
        Ok(self.waiting.len() >= BATCH_DOCUMENTS * times)
    }

    /// Stores the waiting artifacts, and returns the outcome for each. Whether all of them already exist is determined
    /// without the write lock, so that it can be reported even if another process holds the lock for a long time. What is
    /// not stored now is read back, or everything if `reads_all_back`.
    fn put(&mut self, accepts_unrecorded: bool, reads_all_back: bool) -> Result<Vec<Admission>> {
        let prepared: Vec<&Prepared> =
            self.waiting.iter().filter_map(|(_, item)| prepared_of(item)).collect();
        let are_present = self.are_present(&prepared)?;
        let busy_timeout = if are_present { self.seen_busy_timeout } else { storage::BUSY_TIMEOUT };
        match self.storage.put(&prepared, &PutOptions { policy: self.policy, at: self.at, busy_timeout }) {
            Err(error) if error.kind() == ErrorKind::Busy && are_present && accepts_unrecorded => {
                self.seen_busy_timeout = Duration::ZERO;
                Ok(prepared.iter().map(|_| Ok(DocumentOutcome::PresentUnrecorded)).collect())
            }
            stored => {
                let mut stored = stored?;
                let defects = read_back_stored(self.storage, &prepared, &mut stored, reads_all_back)?;
                let of = |(put, defect): (PutResult, Option<StorageError>)| match defect {
                    Some(defect) => Err(unreadable(&defect)),
                    None => outcome_of(put),
                };
                Ok(stored.into_iter().zip(defects).map(of).collect())
            }
        }
    }

    /// Returns whether adding these artifacts would change only when they were last seen.
    fn are_present(&self, artifacts: &[&Prepared]) -> Result<bool> {
        if !self.storage.is_created() {
            return Ok(false);
        }
        let snapshot = self.storage.snapshot()?;
        for artifact in artifacts {
            if snapshot.captures_with(&artifact.targets())?.contains(&None) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Annotates the stored artifacts among the waiting ones.
    fn annotate(&self, admissions: &[Admission]) -> Result<()> {
        let admitted = self.waiting.iter().filter_map(|(_, item)| prepared_of(item)).zip(admissions);
        let stored = admitted.filter(|(_, admission)| admission.is_ok());
        let cores: Vec<CoreHash> = stored.map(|(prepared, _)| prepared.admitted().core()).collect();
        self.recorded.annotations.set(self.storage, &cores, self.at)
    }

    pub(super) fn store(
        &mut self,
        reporter: &mut AddReporter<'_>,
    ) -> std::result::Result<(), AddInterruption> {
        let monitor = &*reporter.monitor;
        let admissions = self
            .put(monitor.accepts_unrecorded(), monitor.removes_originals())
            .map_err(AddInterruption::Failed)?;
        self.annotate(&admissions).map_err(AddInterruption::Failed)?;
        // Rejected items are not in the vault, nor is anything after a rejection that ends the run.
        let admitted = self.waiting.iter().filter(|(_, item)| prepared_of(item).is_some()).zip(&admissions);
        // Originals are not removed either before their artifact is recorded as seen again, so that they can be added
        // again.
        let is_kept = |outcome: &DocumentOutcome| *outcome != DocumentOutcome::PresentUnrecorded;
        let kept = admitted.filter(|(_, admission)| admission.as_ref().is_ok_and(is_kept));
        let originals: Vec<&ArtifactSource> =
            kept.filter_map(|((_, item), _)| item.as_ref().ok()?.original.as_ref()).collect();
        reporter.monitor.stored(&originals);
        let mut admissions = admissions.into_iter();
        self.bytes = 0;
        let mut waiting = self.waiting.drain(..);
        while let Some((number, item)) = waiting.next() {
            let admission = prepared_of(&item).and_then(|_| admissions.next());
            let is_refused = matches!(admission, Some(Err(_)));
            reporter.report(number, item, || admission.unwrap_or(Ok(DocumentOutcome::Present)));
            if is_refused && reporter.monitor.stops_at_bad() {
                let documents = waiting.filter(|(_, item)| !ends_directory(item));
                self.dropped = documents.count() as u64;
                return Err(AddInterruption::Stopped);
            }
        }
        Ok(())
    }
}

/// Reads back artifacts that were stored with bytes which the vault had before, or all of them, and restores those whose
/// bytes are damaged. Returns, for each, why the vault does not return it.
pub(super) fn read_back_stored(
    storage: &dyn Storage,
    prepared: &[&Prepared],
    stored: &mut [PutResult],
    all: bool,
) -> Result<Vec<Option<StorageError>>> {
    let is_read = |put: &PutResult| !put.outcome.is_refused() && (all || put.reuses_bytes);
    let read: Vec<&Prepared> =
        prepared.iter().zip(&*stored).filter(|(_, put)| is_read(put)).map(|(one, _)| *one).collect();
    let mut states = read_back(storage, &read)?.into_iter();
    let mut defects = Vec::new();
    for put in stored {
        let state = if is_read(put) { states.next() } else { None };
        if matches!(state, Some(ReadBack::Restored)) && put.outcome == PutOutcome::Present {
            put.outcome = PutOutcome::Restored;
        }
        defects.push(match state {
            Some(ReadBack::Damaged(error)) => Some(error),
            _ => None,
        });
    }
    Ok(defects)
}

/// Returns the artifact to be stored, if the item is one.
fn prepared_of(item: &ExaminedItem<Prepared>) -> Option<&Prepared> {
    match item {
        Ok(Examination { verdict: ExaminationResult::Admitted(prepared), .. }) => Some(prepared),
        _ => None,
    }
}

/// Returns the size in bytes of an artifact and of the files beside it that are stored with it. Other embedded artifacts
/// consist of its own files.
fn size_with_attachments(prepared: &Prepared) -> u64 {
    let embedded = prepared.embedded().iter().map(Prepared::admitted);
    let attachments = embedded.filter(|embedded| embedded.kind().info().takes_any_bytes);
    prepared.admitted().size() + attachments.map(Admitted::size).sum::<u64>()
}

/// Returns the position of the last artifact in the order of additions, which is approximately the number of artifacts.
fn last_addition(storage: &dyn Storage) -> Result<u64> {
    if !storage.is_created() {
        return Ok(0);
    }
    let newest = Order::Newest(TimeBasis::FirstSeen);
    let last = storage.snapshot()?.find(&Filter::default(), newest, &Page::first(1))?.items.pop();
    Ok(last.map_or(0, |hit| hit.artifact.addition))
}

/// What was found when an artifact was read back.
pub(super) enum ReadBack {
    /// The vault returns exactly the bytes that were added.
    Intact,
    /// It did not, and does now.
    Restored,
    /// It does not, for this reason, and what was added could not restore it.
    Damaged(StorageError),
}

/// Reads artifacts back that were added, with those embedded in them, and compares every byte. Those that differ are
/// restored.
///
/// # Errors
/// Returns an error if the vault cannot be read or written for a reason other than damage.
pub(super) fn read_back(storage: &dyn Storage, artifacts: &[&Prepared]) -> Result<Vec<ReadBack>> {
    // A vault that is created when something is stored need not exist yet.
    if artifacts.is_empty() {
        return Ok(Vec::new());
    }
    let found = defects(storage, artifacts)?;
    let damaged: Vec<&Prepared> =
        artifacts.iter().zip(&found).filter(|(_, defect)| defect.is_some()).map(|(one, _)| *one).collect();
    if damaged.is_empty() {
        return Ok(found.iter().map(|_| ReadBack::Intact).collect());
    }
    match restore(storage, &damaged) {
        // What could be restored is found below.
        Err(error) if error.is_of_damage() || error.kind() == ErrorKind::Unsupported => {}
        restored => restored?,
    }
    let mut remaining = defects(storage, &damaged)?.into_iter();
    let state = |before: Option<StorageError>| match before {
        None => ReadBack::Intact,
        Some(_) => remaining.next().flatten().map_or(ReadBack::Restored, ReadBack::Damaged),
    };
    Ok(found.into_iter().map(state).collect())
}

/// Returns, for each artifact, why the vault does not return it as it was added.
fn defects(storage: &dyn Storage, artifacts: &[&Prepared]) -> Result<Vec<Option<StorageError>>> {
    let snapshot = storage.snapshot()?;
    artifacts.iter().map(|artifact| defect(&*snapshot, artifact)).collect()
}

/// Returns why the vault does not return an artifact, or one embedded in it, as it was added; `None` if it does.
fn defect(snapshot: &dyn Snapshot, artifact: &Prepared) -> Result<Option<StorageError>> {
    for part in artifact.parts() {
        if let Some(defect) = own_defect(snapshot, part)? {
            return Ok(Some(defect));
        }
    }
    Ok(None)
}

fn own_defect(snapshot: &dyn Snapshot, artifact: &Prepared) -> Result<Option<StorageError>> {
    let admitted = artifact.admitted();
    let (core, capture) = (admitted.core(), admitted.capture());
    let stored = match snapshot.read_members(core, capture) {
        Err(error) if error.is_of_damage() => return Ok(Some(error)),
        stored => stored?,
    };
    // The hash of the capture binds the names.
    let mut stored: Vec<&[u8]> = stored.iter().map(|member| &member.bytes[..]).collect();
    let mut added: Vec<&[u8]> = admitted.members().iter().map(crate::artifact::Member::bytes).collect();
    stored.sort_unstable();
    added.sort_unstable();
    Ok((stored != added).then(|| StorageError::damaged(core, capture, PayloadDefect::NotItsOwn)))
}

/// Restores what the vault has of artifacts: first the bytes, then the rows if an artifact still cannot be read.
fn restore(storage: &dyn Storage, artifacts: &[&Prepared]) -> Result<()> {
    if storage.check_pages()?.is_some() {
        return Ok(());
    }
    let steps = storage.repairs()?;
    let parts: Vec<&Prepared> = artifacts.iter().flat_map(|artifact| artifact.parts()).collect();
    let members = parts.iter().flat_map(|part| part.admitted().stored());
    let files: BTreeMap<BlobHash, &[u8]> = members.map(|member| (member.blob(), member.bytes())).collect();
    fsck::restore_bytes(storage, &files.keys().copied().collect(), &mut |missing, restore| {
        missing
            .iter()
            .filter_map(|blob| Some((blob, files.get(blob)?)))
            .try_for_each(|(blob, bytes)| restore(*blob, bytes))
    })?;
    if defects(storage, artifacts)?.iter().any(Option::is_some) {
        steps.rebuild(&formats::ALL)?;
    }
    let cores: BTreeSet<CoreHash> = parts.iter().map(|part| part.admitted().core()).collect();
    fsck::reindex_artifacts(storage, &cores)
}
