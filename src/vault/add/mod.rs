//! The implementation of `add` and `verify`: find, examine, store, report.

mod annotations;
mod answer;
mod document;
mod examination;
mod joining;
mod source_paths;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::artifact::{Admitted, Kind, Signature};
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::intake::pipeline::{self, PipelineEvent};
use crate::intake::{
    self, ArtifactSource, DocumentVerdict, ExamineOptions, InputLocation, Predecessor, Rejection, SourceError,
};
use crate::secrets::SecretMatch;
use crate::storage::{
    self, ErrorKind, Filter, KindConflict, Order, Page, Prepared, PutOptions, PutOutcome, PutResult,
    RemovedPolicy, Result, Snapshot, Storage, StorageError, TimeBasis, Tombstone,
};
use crate::validation::{Findings, Report, RuleInfo, Severity, Violation};

pub use annotations::CommonAnnotations;
pub use answer::{AddOutcome, AddedDocument};
pub use document::AddError;

use examination::{ContinuingDocument, Examination, ExaminationResult, ExaminedItem};
use joining::{ContinuationJoiner, DocumentSink, FirstPart};
pub(in crate::vault) use source_paths::SourcePaths;

/// The rule that a removed artifact is not added again.
pub const REMOVED: RuleInfo = RuleInfo {
    id: "REMOVED",
    severity: Severity::Error,
    summary: "An artifact that was removed from a vault is added again only on request.",
    why: "It was removed for a reason, and files, packs and bundles that still contain it must not undo that silently. \
          The rule also applies to a pack with a session, or any other file, that was removed. If it is \
          allowed, the artifact is stored again; the journal records that and by whom.",
};

/// The rule that a core hash identifies one artifact, of one kind.
pub const OTHER_KIND: RuleInfo = RuleInfo {
    id: "CONFLICT",
    severity: Severity::Error,
    summary: "The core hash of an artifact is not that of a stored artifact of another kind.",
    why: "The canonical bytes whose SHA-256 is the core hash of an artifact would, as a kind that takes any bytes, be an \
          artifact with the same hash. A hash must not identify two artifacts: of the two, the one that was stored first \
          remains until it is removed. The canonical bytes of a stored artifact can always be computed from it, so they \
          need not be stored again.",
};

/// The rules of adding, which apply in addition to those of the kind.
pub const RULES: [RuleInfo; 2] = [REMOVED, OTHER_KIND];

/// A batch is stored when it reaches this number of documents or bytes. A commit costs about as much as storing some
/// hundred artifacts.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: u64 = 16 << 20;

/// Vaults with this many artifacts use batches of more documents: each commit writes most pages of the digest indexes.
const LARGE_VAULT: u64 = 50_000;
const LARGE_VAULT_BATCHES: usize = 4;

/// How long to wait for other writers if the only change is that artifacts were seen again.
const SEEN_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The outcome for a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentOutcome {
    /// It is a new artifact and was stored.
    Added,
    /// It is a new byte form of an existing artifact and was stored.
    NewCapture,
    /// It already existed, and was recorded as seen again.
    Present,
    /// It already existed, and was not recorded as seen again because another process held the write lock.
    PresentUnrecorded,
    /// It is a valid artifact; storing was not requested.
    Verified,
    /// It breaks rules or was removed before ([`REMOVED`]); nothing was stored.
    Rejected,
    /// It is not an artifact.
    Skipped,
}

/// A document and its outcome.
#[derive(Debug)]
pub struct DocumentResult {
    /// The name of the document.
    pub path: String,
    /// The bytes of the name, if it is not UTF-8: `path` then contains replacement characters.
    pub path_bytes: Option<Vec<u8>>,
    /// Its kind, if it was recognized.
    pub kind: Option<Kind>,
    /// The outcome.
    pub outcome: DocumentOutcome,
    /// The core hash of the artifact.
    pub core: Option<CoreHash>,
    /// The artifact that the document continues, if it is the rest of one: the stored artifact consists of both.
    pub continues: Option<CoreHash>,
    /// The files beside it that it refers to and that are stored with it, by core hash.
    pub attachments: Vec<CoreHash>,
    /// Its size in bytes; 0 if it was not admitted.
    pub size: u64,
    /// Its violations, including warnings.
    pub report: Report,
    /// Text that looks like a secret in it, and in the files that are stored with it, if that was to be reported. If it
    /// was rejected for that, they are in the report.
    pub secrets: Vec<SecretMatch>,
    /// The result of checking its signature; `None` if it is not signed or was not admitted.
    pub signature: Option<Signature>,
    /// Its original, if it was admitted and read from a file or directory.
    pub original: Option<ArtifactSource>,
}

/// A receiver of progress events.
pub trait AddMonitor {
    /// Called when the documents read from these locations are durably stored, before the calls of
    /// [`AddMonitor::examined`] for them, which are in the same order.
    fn stored(&mut self, originals: &[&ArtifactSource]) {
        let _ = originals;
    }

    /// Called when the input with this number, from 0, is finished, directly before [`AddMonitor::examined`] or
    /// [`AddMonitor::unreadable`].
    fn done(&mut self, input: usize) {
        let _ = input;
    }

    /// Called when a document is finished and, if it is to be stored, durable. Calls are in the order of the inputs,
    /// except for documents that continue a later one, which come last.
    fn examined(&mut self, examined: &DocumentResult);

    /// Called when an input could not be read.
    fn unreadable(&mut self, error: &SourceError);

    /// Returns whether to stop at the first document that breaks rules or cannot be read. Everything before it is
    /// stored, and nothing after it.
    fn stops_at_bad(&self) -> bool {
        false
    }

    /// Returns whether existing artifacts may be reported as [`DocumentOutcome::PresentUnrecorded`] if other processes
    /// prevent writing. Otherwise adding fails in that case, and can be retried.
    fn accepts_unrecorded(&self) -> bool {
        true
    }
}

/// The number of documents by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// New artifacts.
    pub added: u64,
    /// New byte forms of existing artifacts.
    pub new_captures: u64,
    /// Documents that already existed.
    pub present: u64,
    /// Documents that already existed and could not be recorded as seen again.
    pub unrecorded: u64,
    /// Valid artifacts, when storing was not requested.
    pub verified: u64,
    /// Documents that break rules or were removed before.
    pub rejected: u64,
    /// Documents that are not artifacts.
    pub skipped: u64,
    /// Inputs that could not be read.
    pub unreadable: u64,
    /// Documents that were not processed because of an earlier failure.
    pub left: u64,
    /// Total size of the artifacts in bytes.
    pub bytes: u64,
}

impl Summary {
    /// Adds a document to the counts.
    pub fn count(&mut self, examined: &DocumentResult) {
        self.bytes += examined.size;
        *match examined.outcome {
            DocumentOutcome::Added => &mut self.added,
            DocumentOutcome::NewCapture => &mut self.new_captures,
            DocumentOutcome::Present => &mut self.present,
            DocumentOutcome::PresentUnrecorded => &mut self.unrecorded,
            DocumentOutcome::Verified => &mut self.verified,
            DocumentOutcome::Rejected => &mut self.rejected,
            DocumentOutcome::Skipped => &mut self.skipped,
        } += 1;
    }
}

/// An input to examine, or the error of reading it.
pub type InputResult = std::result::Result<intake::InputItem, SourceError>;

/// The annotations and paths recorded with all artifacts of an addition.
#[derive(Clone, Copy)]
pub(in crate::vault) struct Recorded<'a> {
    pub(in crate::vault) annotations: &'a CommonAnnotations,
    pub(in crate::vault) source_paths: SourcePaths<'a>,
}

/// Examines all `inputs`, and stores the admitted artifacts with what is `recorded` with them.
///
/// # Errors
/// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
pub(in crate::vault) fn add(
    storage: &dyn Storage,
    inputs: impl Iterator<Item = InputResult> + Send,
    (options, recorded): (&ExamineOptions, Recorded<'_>),
    monitor: &mut dyn AddMonitor,
) -> Result<Summary> {
    recorded.annotations.check()?;
    let preparer = storage.preparer()?;
    let at = clock::now();
    let batch = AddBatch {
        storage,
        recorded,
        policy: policy(options, monitor),
        at,
        waiting: Vec::new(),
        bytes: 0,
        times: None,
        dropped: 0,
        seen_busy_timeout: SEEN_BUSY_TIMEOUT,
    };
    let stops_at_bad = monitor.stops_at_bad();
    let mut adding =
        VaultDocumentSink { batch, reporter: AddReporter { monitor, summary: Summary::default() } };
    let prepare = |admitted| preparer.prepare(admitted);
    let mut joining = ContinuationJoiner::new(options, prepare, !stops_at_bad);
    let mut inputs = CountedInputs { inputs, count: 0 };
    let mut looked_at = 0;
    let outcome = each(&mut inputs, true, options, prepare, |event| {
        let PipelineEvent::Result(item) = event else { return adding.settle() };
        let number = looked_at;
        looked_at += usize::from(!ends_directory(&item));
        let Some(item) = joining.take(number, item, &mut adding)? else { return Ok(()) };
        let is_last = stops_at_bad && is_bad(&item);
        adding.push(number, item)?;
        if is_last { Err(AddInterruption::Stopped) } else { Ok(()) }
    });
    let stopped_before = is_stopped(outcome)?;
    if !stopped_before {
        is_stopped(joining.finish(&mut adding))?;
    }
    if is_stopped(adding.settle())? || stopped_before {
        inputs.by_ref().for_each(drop);
        adding.reporter.summary.left = inputs.count - looked_at as u64 + adding.batch.dropped;
    }
    Ok(adding.reporter.summary)
}

/// Returns the position of the last artifact in the order of additions, which is approximately the number of artifacts.
fn additions(storage: &dyn Storage) -> Result<u64> {
    if !storage.is_created() {
        return Ok(0);
    }
    let newest = Order::Newest(TimeBasis::FirstSeen);
    let last = storage.snapshot()?.find(&Filter::default(), newest, &Page::first(1))?.items.pop();
    Ok(last.map_or(0, |hit| hit.artifact.addition))
}

/// Joins a rejected document that continues one in the vault to its beginning there, and returns the rejection if that
/// is not possible.
pub(crate) fn joined(
    storage: &dyn Storage,
    mut rejection: Rejection,
    options: &ExamineOptions,
) -> Result<std::result::Result<Admitted, Rejection>> {
    let Some(continuation) = rejection.continuation.take() else { return Ok(Err(rejection)) };
    let report = match in_storage(storage, &continuation.predecessor())? {
        Some(beginning) => match continuation.admit_after(beginning.document(), &options.admit) {
            Ok(admitted) => return Ok(Ok(admitted)),
            Err(report) => report,
        },
        None => continuation.unmatched(),
    };
    Ok(Err(Rejection { report, ..rejection }))
}

/// Returns the document in a vault that extends to `predecessor`. A vault that is created by the first addition has
/// none yet.
fn in_storage(storage: &dyn Storage, wanted: &Predecessor) -> Result<Option<FirstPart>> {
    if !storage.is_created() {
        return Ok(None);
    }
    joining::in_vault(&*storage.snapshot()?, wanted)
}

/// The state of adding to a vault.
struct VaultDocumentSink<'s, 'm> {
    batch: AddBatch<'s>,
    reporter: AddReporter<'m>,
}

impl DocumentSink<Prepared> for VaultDocumentSink<'_, '_> {
    type Error = AddInterruption;

    fn first_part(&mut self, wanted: &Predecessor) -> Result<Option<FirstPart>> {
        // Documents about to be stored are checked first: one may be the beginning, and checking is cheap.
        if let Some(beginning) = self.batch.beginning(wanted) {
            return Ok(Some(beginning));
        }
        in_storage(self.batch.storage, wanted)
    }

    fn push(
        &mut self,
        number: usize,
        item: ExaminedItem<Prepared>,
    ) -> std::result::Result<(), AddInterruption> {
        self.batch.push(number, item, &mut self.reporter)
    }

    fn settle(&mut self) -> std::result::Result<(), AddInterruption> {
        self.batch.store(&mut self.reporter)
    }
}

/// Returns whether adding stopped at a failed document.
fn is_stopped(outcome: std::result::Result<(), AddInterruption>) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(false),
        Err(AddInterruption::Stopped) => Ok(true),
        Err(AddInterruption::Failed(error)) => Err(error),
    }
}

/// Returns the policy for artifacts that were removed before.
fn policy(options: &ExamineOptions, monitor: &dyn AddMonitor) -> RemovedPolicy {
    match (options.allow_removed, monitor.stops_at_bad()) {
        (true, _) => RemovedPolicy::Readmit,
        (false, true) => RemovedPolicy::RefuseAndStop,
        (false, false) => RemovedPolicy::Refuse,
    }
}

/// The reason for stopping before the end of the inputs.
enum AddInterruption {
    /// At a failed document, as requested.
    Stopped,
    Failed(StorageError),
}

impl From<StorageError> for AddInterruption {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

/// Inputs with a count of those consumed. The end of a directory is not counted.
struct CountedInputs<I> {
    inputs: I,
    count: u64,
}

impl<I: Iterator<Item = InputResult>> Iterator for CountedInputs<I> {
    type Item = InputResult;

    fn next(&mut self) -> Option<InputResult> {
        let next = self.inputs.next();
        self.count += u64::from(next.as_ref().is_some_and(|next| !is_end(next)));
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inputs.size_hint()
    }
}

fn is_end(found: &InputResult) -> bool {
    matches!(found, Ok(intake::InputItem::End { .. }))
}

fn ends_directory<A>(item: &ExaminedItem<A>) -> bool {
    matches!(item, Ok(Examination { is_end: true, .. }))
}

fn is_bad<A>(item: &ExaminedItem<A>) -> bool {
    matches!(item, Err(_) | Ok(Examination { verdict: ExaminationResult::Rejected(_), .. }))
}

/// Examines all `inputs` and stores nothing.
pub fn verify(
    inputs: impl Iterator<Item = InputResult> + Send,
    options: &ExamineOptions,
    monitor: &mut dyn AddMonitor,
) -> Summary {
    let mut reporter = AddReporter { monitor, summary: Summary::default() };
    let mut number = 0;
    let outcome: std::result::Result<(), std::convert::Infallible> = each(
        inputs,
        false,
        options,
        // The rest is freed in the thread that allocated it, where the memory is cheapest to reuse.
        ReportedArtifact::from,
        |event| {
            if let PipelineEvent::Result(item) = event {
                reporter.report(number, item, || AdmissionOutcome::Has(DocumentOutcome::Verified));
                number += 1;
            }
            Ok(())
        },
    );
    match outcome {
        Ok(()) => reporter.summary,
    }
}

/// Examines all `inputs`, stores nothing, and reports what adding would do to the vault in `snapshot`, or to a new
/// one.
///
/// # Errors
/// Returns an error if the vault cannot be read.
pub fn dry_run(
    snapshot: Option<&dyn Snapshot>,
    inputs: impl Iterator<Item = InputResult> + Send,
    options: &ExamineOptions,
    monitor: &mut dyn AddMonitor,
) -> Result<Summary> {
    let allow_removed = options.allow_removed;
    let seen = DryRunContents { snapshot, allow_removed, cores: HashMap::new(), captures: HashSet::new() };
    let reporter = AddReporter { monitor, summary: Summary::default() };
    let mut rehearsal = DryRun { seen, grown: HashMap::new(), options, reporter };
    let mut joining = ContinuationJoiner::new(options, |admitted| admitted, true);
    let mut number = 0;
    each(
        inputs,
        true,
        options,
        |admitted| admitted,
        |event| {
            let PipelineEvent::Result(item) = event else { return Ok(()) };
            let item = joining.take(number, item, &mut rehearsal)?;
            number += 1;
            item.map_or(Ok(()), |item| rehearsal.push(number - 1, item))
        },
    )?;
    joining.finish(&mut rehearsal)?;
    Ok(rehearsal.reporter.summary)
}

/// The state of a dry run.
struct DryRun<'s, 'm> {
    seen: DryRunContents<'s>,
    /// Documents that others may continue.
    grown: HashMap<CoreHash, DryRunDocument>,
    options: &'s ExamineOptions,
    reporter: AddReporter<'m>,
}

/// The location of a document that would be in the vault.
enum DryRunDocument {
    Place(InputLocation),
    Bytes(Vec<u8>),
}

impl DocumentSink<Admitted> for DryRun<'_, '_> {
    type Error = StorageError;

    fn first_part(&mut self, wanted: &Predecessor) -> Result<Option<FirstPart>> {
        let core = CoreHash(wanted.after);
        let document = match self.grown.get(&core) {
            Some(DryRunDocument::Bytes(bytes)) => Some(bytes.clone()),
            Some(DryRunDocument::Place(place)) => self.read_again(place.clone(), core),
            None => None,
        };
        match (document, self.seen.snapshot) {
            (Some(document), _) => Ok(Some(FirstPart::new(core, document))),
            (None, Some(snapshot)) => joining::in_vault(snapshot, wanted),
            (None, None) => Ok(None),
        }
    }

    fn push(&mut self, number: usize, item: ExaminedItem<Admitted>) -> Result<()> {
        let mut fate = AdmissionOutcome::Has(DocumentOutcome::Verified);
        if let Ok(Examination {
            verdict: ExaminationResult::Admitted(admitted), original, continues, ..
        }) = &item
        {
            fate = self.seen.fate(admitted)?;
            if let Some(bytes) = admitted.members().first().filter(|_| admitted.kind().versions().is_some()) {
                let place = original.as_ref().filter(|_| continues.is_none()).and_then(ArtifactSource::place);
                let grown = place
                    .map_or_else(|| DryRunDocument::Bytes(bytes.bytes().to_vec()), DryRunDocument::Place);
                self.grown.insert(admitted.core(), grown);
            }
        }
        self.reporter.report(number, item, || fate);
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

impl DryRun<'_, '_> {
    /// Returns the document at `place` if it still has this core hash.
    fn read_again(&self, place: InputLocation, core: CoreHash) -> Option<Vec<u8>> {
        let (verdict, _) = place.into_file()?.open().examine_in_place(self.options).ok()?;
        match verdict {
            DocumentVerdict::Admitted(admitted) if admitted.core() == core => {
                admitted.members().first().map(|member| member.bytes().to_vec())
            }
            _ => None,
        }
    }
}

/// Examines `inputs`. If they are to be stored, the files beside them that they refer to are read too.
fn each<A: Send, E>(
    inputs: impl Iterator<Item = InputResult> + Send,
    stores: bool,
    options: &ExamineOptions,
    make: impl Fn(Admitted) -> A + Sync,
    mut consume: impl FnMut(PipelineEvent<ExaminedItem<A>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let open = |item: InputResult| {
        let opened = item.map(|item| (item.name(), item.items(), item.open()));
        let size = opened.as_ref().map_or(0, |(.., opened)| opened.size());
        (opened, size)
    };
    let work = |opened: std::result::Result<(OsString, Option<u64>, intake::OpenedInput), SourceError>,
                room: &dyn Fn(u64)| {
        let (path, items, opened) = opened?;
        let (mut verdict, place) = opened.examine_in_place(options)?;
        if stores {
            intake::attach(&mut verdict, place.as_ref(), options, room);
        }
        Ok(Examination::new(path, items, (verdict, place), &make))
    };
    let mut passed_over = 0;
    pipeline::in_order(inputs, open, work, |event| match event {
        PipelineEvent::Idle => consume(PipelineEvent::Idle),
        PipelineEvent::Result(item) => match judge_end(item, &mut passed_over, options) {
            Some(item) => consume(PipelineEvent::Result(item)),
            None => Ok(()),
        },
    })
}

/// Counts in `passed_over` the consecutive items that are not artifacts, and converts the end of a directory with only
/// such items into a rejection. Returns `None` if the directory contained others.
fn judge_end<A>(
    item: ExaminedItem<A>,
    passed_over: &mut u64,
    options: &ExamineOptions,
) -> Option<ExaminedItem<A>> {
    match &item {
        Ok(Examination { verdict: ExaminationResult::NoArtifact, .. }) => *passed_over += 1,
        Ok(Examination { verdict: ExaminationResult::End(items), path, .. }) => {
            if std::mem::take(passed_over) < *items {
                return None;
            }
            let verdict = ExaminationResult::Rejected(intake::nothing_recognized(options));
            return Some(Ok(Examination {
                path: path.clone(),
                original: None,
                continues: None,
                verdict,
                is_end: true,
            }));
        }
        _ => *passed_over = 0,
    }
    Some(item)
}

/// A counter that also reports to the monitor.
struct AddReporter<'m> {
    monitor: &'m mut dyn AddMonitor,
    summary: Summary,
}

impl AddReporter<'_> {
    /// Reports `item`; `fate` applies if it was admitted.
    fn report<A: Into<ReportedArtifact>>(
        &mut self,
        number: usize,
        item: ExaminedItem<A>,
        fate: impl FnOnce() -> AdmissionOutcome,
    ) {
        self.monitor.done(number);
        match item {
            Ok(examination) => {
                let examined = examination.into_examined(fate);
                self.summary.count(&examined);
                self.monitor.examined(&examined);
            }
            Err(error) => {
                self.summary.unreadable += 1;
                self.monitor.unreadable(&error);
            }
        }
    }
}

/// The reported properties of an artifact.
struct ReportedArtifact {
    kind: Kind,
    core: CoreHash,
    attachments: Vec<CoreHash>,
    size: u64,
    report: Report,
    secrets: Vec<SecretMatch>,
    signature: Option<Signature>,
}

impl ReportedArtifact {
    fn new<'a>(admitted: &Admitted, embedded: impl Iterator<Item = &'a Admitted>) -> Self {
        let attachments = embedded.filter(|embedded| embedded.kind().takes_any_bytes()).map(Admitted::core);
        Self {
            kind: admitted.kind(),
            core: admitted.core(),
            attachments: attachments.collect(),
            size: admitted.size(),
            report: admitted.report().clone(),
            secrets: admitted.secrets().to_vec(),
            signature: admitted.signature().cloned(),
        }
    }
}

impl From<Admitted> for ReportedArtifact {
    fn from(admitted: Admitted) -> Self {
        Self::new(&admitted, admitted.embedded().iter())
    }
}

impl From<Prepared> for ReportedArtifact {
    fn from(prepared: Prepared) -> Self {
        Self::new(prepared.admitted(), prepared.embedded().iter().map(Prepared::admitted))
    }
}

impl<A: Into<ReportedArtifact>> Examination<A> {
    fn into_examined(self, fate: impl FnOnce() -> AdmissionOutcome) -> DocumentResult {
        let (path, path_bytes) = match self.path.into_string() {
            Ok(path) => (path, None),
            Err(raw) => (raw.to_string_lossy().into_owned(), Some(raw.into_encoded_bytes())),
        };
        let mut told = DocumentResult {
            path,
            path_bytes,
            kind: None,
            outcome: DocumentOutcome::Skipped,
            core: None,
            continues: self.continues,
            attachments: Vec::new(),
            size: 0,
            report: Report::default(),
            secrets: Vec::new(),
            signature: None,
            original: self.original,
        };
        match self.verdict {
            ExaminationResult::Admitted(admitted) => {
                let ReportedArtifact { kind, core, attachments, size, report, secrets, signature } =
                    admitted.into();
                (told.kind, told.core, told.signature) = (Some(kind), Some(core), signature);
                match fate() {
                    AdmissionOutcome::Has(outcome) => {
                        (told.outcome, told.size, told.report) = (outcome, size, report);
                        (told.attachments, told.secrets) = (attachments, secrets);
                    }
                    AdmissionOutcome::Refused(report) => {
                        (told.outcome, told.report) = (DocumentOutcome::Rejected, report);
                    }
                }
            }
            ExaminationResult::Rejected(Rejection { kind, report, .. })
            | ExaminationResult::Rest(ContinuingDocument {
                rejection: Rejection { kind, report, .. }, ..
            }) => {
                (told.kind, told.outcome, told.report) = (kind, DocumentOutcome::Rejected, report);
            }
            ExaminationResult::NoArtifact | ExaminationResult::End(_) => {}
        }
        told
    }
}

/// Documents to be stored together, with those between them that are not to be stored, so that the monitor receives all
/// of them in order and none too early.
struct AddBatch<'s> {
    storage: &'s dyn Storage,
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
    dropped: u64,
    /// How long to wait for other writers to record artifacts as seen again; zero after the first timeout.
    seen_busy_timeout: Duration,
}

impl AddBatch<'_> {
    /// Returns the document that ends at `predecessor`, if it is about to be stored.
    fn beginning(&self, wanted: &Predecessor) -> Option<FirstPart> {
        let core = CoreHash(wanted.after);
        self.waiting.iter().rev().find_map(|(_, item)| match item {
            Ok(Examination { verdict: ExaminationResult::Admitted(prepared), .. }) => {
                let admitted = prepared.admitted();
                let is_it = admitted.core() == core && admitted.kind() == wanted.kind;
                let only = admitted.members().first().filter(|_| is_it)?;
                Some(FirstPart::new(core, only.bytes().to_vec()))
            }
            _ => None,
        })
    }

    fn push(
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
            None if additions(self.storage)? < LARGE_VAULT => 1,
            None => LARGE_VAULT_BATCHES,
        };
        self.times = Some(times);
        Ok(self.waiting.len() >= BATCH_DOCUMENTS * times)
    }

    /// Stores the waiting artifacts, and returns the outcome for each. Whether all of them already exist is determined
    /// without the write lock, so that it can be reported even if another process holds the lock for a long time.
    fn put(&mut self, accepts_unrecorded: bool) -> Result<Vec<AdmissionOutcome>> {
        let prepared: Vec<&Prepared> =
            self.waiting.iter().filter_map(|(_, item)| prepared_of(item)).collect();
        let are_present = self.are_present(&prepared)?;
        let busy_timeout = if are_present { self.seen_busy_timeout } else { storage::BUSY_TIMEOUT };
        match self.storage.put(&prepared, &PutOptions { policy: self.policy, at: self.at, busy_timeout }) {
            Err(error) if error.kind() == ErrorKind::Busy && are_present && accepts_unrecorded => {
                let fates = prepared
                    .iter()
                    .map(|_| AdmissionOutcome::Has(DocumentOutcome::PresentUnrecorded))
                    .collect();
                self.seen_busy_timeout = Duration::ZERO;
                Ok(fates)
            }
            stored => Ok(stored?.into_iter().map(AdmissionOutcome::from).collect()),
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
    fn annotate(&self, fates: &[AdmissionOutcome]) -> Result<()> {
        let admitted = self.waiting.iter().filter_map(|(_, item)| prepared_of(item)).zip(fates);
        let stored = admitted.filter(|(_, fate)| matches!(fate, AdmissionOutcome::Has(_)));
        let cores: Vec<CoreHash> = stored.map(|(prepared, _)| prepared.admitted().core()).collect();
        self.recorded.annotations.set(self.storage, &cores, self.at)
    }

    fn store(&mut self, reporter: &mut AddReporter<'_>) -> std::result::Result<(), AddInterruption> {
        let fates = self.put(reporter.monitor.accepts_unrecorded()).map_err(AddInterruption::Failed)?;
        self.annotate(&fates).map_err(AddInterruption::Failed)?;
        // Rejected items are not in the vault, nor is anything after a rejection that ends the run.
        let admitted = self.waiting.iter().filter(|(_, item)| prepared_of(item).is_some()).zip(&fates);
        // Originals are not removed either before their artifact is recorded as seen again, so that they can be added
        // again.
        let is_kept = |fate: &AdmissionOutcome| matches!(fate, AdmissionOutcome::Has(outcome) if *outcome != DocumentOutcome::PresentUnrecorded);
        let kept = admitted.filter(|(_, fate)| is_kept(fate));
        let originals: Vec<&ArtifactSource> =
            kept.filter_map(|((_, item), _)| item.as_ref().ok()?.original.as_ref()).collect();
        reporter.monitor.stored(&originals);
        let mut fates = fates.into_iter();
        self.bytes = 0;
        let mut waiting = self.waiting.drain(..);
        while let Some((number, item)) = waiting.next() {
            let fate = prepared_of(&item).and_then(|_| fates.next());
            let is_refused = matches!(fate, Some(AdmissionOutcome::Refused(_)));
            reporter.report(number, item, || fate.unwrap_or(AdmissionOutcome::Has(DocumentOutcome::Present)));
            if is_refused && reporter.monitor.stops_at_bad() {
                let documents = waiting.filter(|(_, item)| !ends_directory(item));
                self.dropped = documents.count() as u64;
                return Err(AddInterruption::Stopped);
            }
        }
        Ok(())
    }
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
    let attachments = embedded.filter(|embedded| embedded.kind().takes_any_bytes());
    prepared.admitted().size() + attachments.map(Admitted::size).sum::<u64>()
}

/// The outcome for an admitted artifact.
enum AdmissionOutcome {
    Has(DocumentOutcome),
    /// It was removed before.
    Refused(Report),
}

impl From<PutResult> for AdmissionOutcome {
    fn from(put: PutResult) -> Self {
        Self::Has(match put.outcome {
            PutOutcome::Added => DocumentOutcome::Added,
            PutOutcome::NewCapture => DocumentOutcome::NewCapture,
            PutOutcome::Present => DocumentOutcome::Present,
            PutOutcome::Refused(tombstones) => return Self::Refused(removed(put.core, &tombstones)),
            PutOutcome::KindConflict(conflict) => return Self::Refused(conflicting(put.core, &conflict)),
        })
    }
}

/// Returns the report for an artifact `core` that is rejected because of these tombstones.
pub(crate) fn removed(core: CoreHash, tombstones: &[Tombstone]) -> Report {
    let mut findings = Findings::default();
    let mut found = findings.for_rule(REMOVED);
    for tombstone in tombstones {
        let removal = tombstone.removal();
        if tombstone.core == core {
            found.add("", removal);
        } else {
            found.add("", format!("contains {} {}, which was {removal}", tombstone.kind, tombstone.core));
        }
    }
    findings.into_report()
}

/// Returns the report for an artifact `core` that is rejected because of this conflict.
pub(crate) fn conflicting(core: CoreHash, conflict: &KindConflict) -> Report {
    let kind = &conflict.kind;
    let message = if conflict.core == core {
        format!("the vault has an artifact of kind {kind} with the same core hash")
    } else {
        format!("it contains {}, which is an artifact of kind {kind} in the vault", conflict.core)
    };
    Violation::new(OTHER_KIND, "", message).into()
}

/// The contents of the vault, with what would have been added so far.
struct DryRunContents<'s> {
    snapshot: Option<&'s dyn Snapshot>,
    allow_removed: bool,
    cores: HashMap<CoreHash, &'static str>,
    captures: HashSet<(CoreHash, CaptureHash)>,
}

impl DryRunContents<'_> {
    fn fate(&mut self, admitted: &Admitted) -> Result<AdmissionOutcome> {
        if let Some(snapshot) = self.snapshot.filter(|_| !self.allow_removed) {
            let tombstones = snapshot.tombstones_of(admitted)?;
            if !tombstones.is_empty() {
                return Ok(AdmissionOutcome::Refused(removed(admitted.core(), &tombstones)));
            }
        }
        if let Some(conflict) = self.conflict(admitted)? {
            return Ok(AdmissionOutcome::Refused(conflicting(admitted.core(), &conflict)));
        }
        self.outcome(admitted).map(AdmissionOutcome::Has)
    }

    fn conflict(&self, admitted: &Admitted) -> Result<Option<KindConflict>> {
        let (core, own) = (admitted.core(), admitted.kind().name());
        let stored = self.snapshot.map(|snapshot| snapshot.artifact(core)).transpose()?.flatten();
        let stored = stored.map(|stored| stored.kind);
        let kind = stored.or_else(|| self.cores.get(&core).map(|kind| (*kind).to_owned()));
        if let Some(kind) = kind.filter(|kind| kind != own) {
            return Ok(Some(KindConflict { core, kind }));
        }
        for embedded in admitted.embedded() {
            if let Some(conflict) = self.conflict(embedded)? {
                return Ok(Some(conflict));
            }
        }
        Ok(None)
    }

    fn outcome(&mut self, admitted: &Admitted) -> Result<DocumentOutcome> {
        for embedded in admitted.embedded() {
            self.outcome(embedded)?;
        }
        let (core, capture) = (admitted.core(), admitted.capture());
        let (mut has_core, mut has_capture) = (
            self.cores.insert(core, admitted.kind().name()).is_some(),
            !self.captures.insert((core, capture)),
        );
        if let Some(snapshot) = self.snapshot {
            has_core |= snapshot.artifact(core)?.is_some();
            has_capture |= snapshot.capture(core, capture)?.is_some();
        }
        Ok(match (has_core, has_capture) {
            (_, true) => DocumentOutcome::Present,
            (true, false) => DocumentOutcome::NewCapture,
            (false, false) => DocumentOutcome::Added,
        })
    }
}
