//! The flow of `add` and `verify`: find, examine, store, tell.

mod joining;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::artifact::{Admitted, Kind, Signature};
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::pipeline::{self, Event};
use crate::source::{self, ExamineOptions, Original, Place, Rejection, SourceError, Verdict, Wanted};
use crate::store::{
    Prepared, Preparer, Put, PutOutcome, RemovedPolicy, Result, Snapshot, Store, StoreError, Tombstone,
};
use crate::verify::{Findings, Report, RuleInfo, Severity};

/// What keeps an artifact out of a vault that was removed from it.
pub const REMOVED: RuleInfo = RuleInfo {
    id: "REMOVED",
    severity: Severity::Error,
    summary: "An artifact that was removed from a vault is added again only on request.",
    why: "There was a reason to remove it, and files, packs and bundles that still have it must not undo that silently. The \
          rule also holds for a pack with a session, or any other file, that was removed. With --allow-removed it is \
          stored again; the journal records that and by whom. \"runvault tombstones\" lists what was removed.",
};

/// The rules of adding. What is added is held to those of its kind as well.
pub const RULES: [RuleInfo; 1] = [REMOVED];

use joining::{Beginning, Joining, Rest, Target};

/// A batch is stored when it has so many documents or bytes. A commit costs about as much as some hundred artifacts.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: u64 = 16 << 20;

/// In a vault of so many artifacts, batches are so many times as large: each commit writes most pages of the indexes of
/// digests.
const LARGE_VAULT: u64 = 50_000;
const LARGE_VAULT_BATCHES: usize = 4;

/// How long to wait for other writers where all that there is to write is that artifacts were seen again.
const SEEN_PATIENCE: Duration = Duration::from_secs(5);

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a new artifact, and is in the vault now.
    Added,
    /// It is a new byte form of an artifact that was there, and is in the vault now.
    NewCapture,
    /// It was there already, which is recorded as seen again.
    Present,
    /// It was there already. That it was seen again is not recorded, because others did not let this process write.
    PresentUnrecorded,
    /// It is an artifact; nothing was to be stored.
    Verified,
    /// It breaks rules or was removed before ([`REMOVED`]), and nothing of it was stored.
    Rejected,
    /// It is no artifact.
    Skipped,
}

/// A document and what became of it.
#[derive(Debug)]
pub struct Examined {
    /// The name of the document.
    pub path: String,
    /// The bytes of the name, if they are no UTF-8: `path` has marks in place of some.
    pub path_bytes: Option<Vec<u8>>,
    /// Its kind, as far as that can be told.
    pub kind: Option<Kind>,
    /// What became of it.
    pub outcome: Outcome,
    /// Which artifact it is.
    pub core: Option<CoreHash>,
    /// The artifact that the document continues, if it is the rest of one: the artifact that was stored is both together.
    pub continues: Option<CoreHash>,
    /// Its size in bytes; 0 if it was not admitted.
    pub size: u64,
    /// Its violations, warnings included.
    pub report: Report,
    /// What checking its signature gave; nothing if it has none or was not admitted.
    pub signature: Option<Signature>,
    /// Where it was read from, if it was admitted and stood in a file or directory.
    pub original: Option<Original>,
}

/// Is told what happens.
pub trait Monitor {
    /// Documents that were read from these places are on the disk now. Comes before the calls of [`Monitor::examined`]
    /// for them, which are in the same order.
    fn stored(&mut self, originals: &[&Original]) {
        let _ = originals;
    }

    /// The input with this number, from 0, was dealt with. Comes right before [`Monitor::examined`] or
    /// [`Monitor::unreadable`].
    fn done(&mut self, input: usize) {
        let _ = input;
    }

    /// A document was dealt with. If it is to be stored, it is on the disk now. Calls come in the order of the inputs, but
    /// for documents that continue one that comes after them: these come last.
    fn examined(&mut self, examined: &Examined);

    /// Something could not be read.
    fn unreadable(&mut self, error: &SourceError);

    /// Whether to stop at the first document that breaks rules or cannot be read. All that comes before it is stored, and
    /// nothing that comes after it.
    fn stops_at_bad(&self) -> bool {
        false
    }

    /// Whether artifacts that are there already may be reported as [`Outcome::PresentUnrecorded`] when others do not let this
    /// process write. Otherwise adding fails then, and can be repeated.
    fn accepts_unrecorded(&self) -> bool {
        true
    }
}

/// How many documents came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// New artifacts.
    pub added: u64,
    /// New byte forms of artifacts that were there.
    pub new_captures: u64,
    /// Those that were there already.
    pub present: u64,
    /// Those that were there already and could not be recorded as seen again.
    pub unrecorded: u64,
    /// Those that are artifacts, when nothing was to be stored.
    pub verified: u64,
    /// Those that break rules, or were removed before.
    pub rejected: u64,
    /// Those that are no artifacts.
    pub skipped: u64,
    /// Those that could not be read.
    pub unreadable: u64,
    /// Those that were left alone because a bad one came before them.
    pub left: u64,
    /// Bytes of the artifacts.
    pub bytes: u64,
}

impl Summary {
    /// Counts one more document.
    pub fn count(&mut self, examined: &Examined) {
        self.bytes += examined.size;
        *match examined.outcome {
            Outcome::Added => &mut self.added,
            Outcome::NewCapture => &mut self.new_captures,
            Outcome::Present => &mut self.present,
            Outcome::PresentUnrecorded => &mut self.unrecorded,
            Outcome::Verified => &mut self.verified,
            Outcome::Rejected => &mut self.rejected,
            Outcome::Skipped => &mut self.skipped,
        } += 1;
    }
}

/// Something to examine, or why it cannot be read.
pub type Found = std::result::Result<source::Item, SourceError>;

/// Examines everything in `inputs` and stores what is admitted.
///
/// # Errors
/// What the store says. Everything that the monitor was told of before is in the vault.
pub fn add(
    store: &Store,
    inputs: impl Iterator<Item = Found> + Send,
    options: &ExamineOptions,
    monitor: &mut dyn Monitor,
) -> Result<Summary> {
    let preparer = store.preparer()?.with_policy(policy(options, monitor));
    let times = if store.last_artifact()? < LARGE_VAULT { 1 } else { LARGE_VAULT_BATCHES };
    let at = clock::now();
    let batch = Batch {
        store,
        preparer: &preparer,
        at,
        waiting: Vec::new(),
        bytes: 0,
        times,
        dropped: 0,
        seen_patience: SEEN_PATIENCE,
    };
    let stops_at_bad = monitor.stops_at_bad();
    let mut adding = Adding { batch, teller: Teller { monitor, summary: Summary::default() } };
    let prepare = |admitted| preparer.prepare(admitted);
    let mut joining = Joining::new(options, prepare, !stops_at_bad);
    let mut inputs = Counted { inputs, count: 0 };
    let mut looked_at = 0;
    let outcome = each(&mut inputs, options, prepare, |event| {
        let Event::Result(item) = event else { return adding.settle() };
        let number = looked_at;
        looked_at += usize::from(!ends_directory(&item));
        let Some(item) = joining.take(number, item, &mut adding)? else { return Ok(()) };
        let is_last = stops_at_bad && is_bad(&item);
        adding.push(number, item)?;
        if is_last { Err(End::Stopped) } else { Ok(()) }
    });
    let stopped_before = is_stopped(outcome)?;
    if !stopped_before {
        is_stopped(joining.finish(&mut adding))?;
    }
    if is_stopped(adding.settle())? || stopped_before {
        inputs.by_ref().for_each(drop);
        adding.teller.summary.left = inputs.count - looked_at as u64 + adding.batch.dropped;
    }
    Ok(adding.teller.summary)
}

/// Puts together `rejection`, of a document that is the rest of one in the vault, and its beginning there; gives it back if
/// it is not.
///
/// # Errors
/// What the store says.
pub(crate) fn joined(
    store: &Store,
    mut rejection: Rejection,
    options: &ExamineOptions,
) -> Result<std::result::Result<Admitted, Rejection>> {
    let Some(continuation) = rejection.continuation.take() else { return Ok(Err(rejection)) };
    let report = match joining::in_vault(&store.snapshot()?, &continuation.wanted())? {
        Some(beginning) => match continuation.admit_after(beginning.document(), &options.admit) {
            Ok(admitted) => return Ok(Ok(admitted)),
            Err(report) => report,
        },
        None => continuation.unmatched(),
    };
    Ok(Err(Rejection { report, ..rejection }))
}

/// Adds to a vault, and reports.
struct Adding<'s, 'm> {
    batch: Batch<'s>,
    teller: Teller<'m>,
}

impl Target<Prepared> for Adding<'_, '_> {
    type Error = End;

    fn beginning(&mut self, wanted: &Wanted) -> Result<Option<Beginning>> {
        // What is about to be stored comes first: that may be the beginning, and looking there costs nothing.
        if let Some(beginning) = self.batch.beginning(wanted) {
            return Ok(Some(beginning));
        }
        joining::in_vault(&self.batch.store.snapshot()?, wanted)
    }

    fn push(&mut self, number: usize, item: Item<Prepared>) -> std::result::Result<(), End> {
        self.batch.push(number, item, &mut self.teller)
    }

    fn settle(&mut self) -> std::result::Result<(), End> {
        self.batch.store(&mut self.teller)
    }
}

/// Whether adding ended at a bad document.
fn is_stopped(outcome: std::result::Result<(), End>) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(false),
        Err(End::Stopped) => Ok(true),
        Err(End::Failed(error)) => Err(error),
    }
}

/// What to do with what was removed before.
fn policy(options: &ExamineOptions, monitor: &dyn Monitor) -> RemovedPolicy {
    match (options.allow_removed, monitor.stops_at_bad()) {
        (true, _) => RemovedPolicy::TakeBack,
        (false, true) => RemovedPolicy::RefuseAndStop,
        (false, false) => RemovedPolicy::Refuse,
    }
}

/// Why adding ends before its inputs do.
enum End {
    /// At a bad document, as it was wanted.
    Stopped,
    Failed(StoreError),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Inputs, and how many of them were taken. The end of a directory is none.
struct Counted<I> {
    inputs: I,
    count: u64,
}

impl<I: Iterator<Item = Found>> Iterator for Counted<I> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        let next = self.inputs.next();
        self.count += u64::from(next.as_ref().is_some_and(|next| !is_end(next)));
        next
    }
}

fn is_end(found: &Found) -> bool {
    matches!(found, Ok(source::Item::End { .. }))
}

fn ends_directory<A>(item: &Item<A>) -> bool {
    matches!(item, Ok(Examination { is_end: true, .. }))
}

fn is_bad<A>(item: &Item<A>) -> bool {
    matches!(item, Err(_) | Ok(Examination { verdict: Finding::Rejected(_), .. }))
}

/// Examines everything in `inputs` and stores nothing.
pub fn verify(
    inputs: impl Iterator<Item = Found> + Send,
    options: &ExamineOptions,
    monitor: &mut dyn Monitor,
) -> Summary {
    let mut teller = Teller { monitor, summary: Summary::default() };
    let mut number = 0;
    let outcome: std::result::Result<(), std::convert::Infallible> = each(
        inputs,
        options,
        // The rest goes where it came from: memory is cheapest to reuse there.
        Brief::from,
        |event| {
            if let Event::Result(item) = event {
                teller.tell(number, item, || Fate::Has(Outcome::Verified));
                number += 1;
            }
            Ok(())
        },
    );
    match outcome {
        Ok(()) => teller.summary,
    }
}

/// Examines everything in `inputs`, stores nothing, and tells what [`add`] would do to the vault seen in `snapshot`, or
/// to a new one.
///
/// # Errors
/// What the store says.
pub fn rehearse(
    snapshot: Option<&Snapshot<'_>>,
    inputs: impl Iterator<Item = Found> + Send,
    options: &ExamineOptions,
    monitor: &mut dyn Monitor,
) -> Result<Summary> {
    let allow_removed = options.allow_removed;
    let seen = Seen { snapshot, allow_removed, cores: HashSet::new(), captures: HashSet::new() };
    let teller = Teller { monitor, summary: Summary::default() };
    let mut rehearsal = Rehearsal { seen, grown: HashMap::new(), options, teller };
    let mut joining = Joining::new(options, |admitted| admitted, true);
    let mut number = 0;
    each(
        inputs,
        options,
        |admitted| admitted,
        |event| {
            let Event::Result(item) = event else { return Ok(()) };
            let item = joining.take(number, item, &mut rehearsal)?;
            number += 1;
            item.map_or(Ok(()), |item| rehearsal.push(number - 1, item))
        },
    )?;
    joining.finish(&mut rehearsal)?;
    Ok(rehearsal.teller.summary)
}

/// Finds out what adding would do, and reports.
struct Rehearsal<'s, 'm> {
    seen: Seen<'s>,
    /// Documents that others may continue.
    grown: HashMap<CoreHash, Grown>,
    options: &'s ExamineOptions,
    teller: Teller<'m>,
}

/// Where a document is that would be in the vault.
enum Grown {
    Place(Place),
    Bytes(Vec<u8>),
}

impl Target<Admitted> for Rehearsal<'_, '_> {
    type Error = StoreError;

    fn beginning(&mut self, wanted: &Wanted) -> Result<Option<Beginning>> {
        let core = CoreHash(wanted.after);
        let document = match self.grown.get(&core) {
            Some(Grown::Bytes(bytes)) => Some(bytes.clone()),
            Some(Grown::Place(place)) => self.read_again(place.clone(), core),
            None => None,
        };
        match (document, self.seen.snapshot) {
            (Some(document), _) => Ok(Some(Beginning::new(core, document))),
            (None, Some(snapshot)) => joining::in_vault(snapshot, wanted),
            (None, None) => Ok(None),
        }
    }

    fn push(&mut self, number: usize, item: Item<Admitted>) -> Result<()> {
        let mut fate = Fate::Has(Outcome::Verified);
        if let Ok(Examination { verdict: Finding::Admitted(admitted), original, continues, .. }) = &item {
            fate = self.seen.fate(admitted)?;
            if let Some(bytes) = admitted.members().first().filter(|_| admitted.kind().versions().is_some()) {
                let place = original.as_ref().filter(|_| continues.is_none()).and_then(Original::place);
                let grown = place.map_or_else(|| Grown::Bytes(bytes.bytes().to_vec()), Grown::Place);
                self.grown.insert(admitted.core(), grown);
            }
        }
        self.teller.tell(number, item, || fate);
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Rehearsal<'_, '_> {
    /// The document at `place`, if it is still the one with this core hash.
    fn read_again(&self, place: Place, core: CoreHash) -> Option<Vec<u8>> {
        let (verdict, _) = place.into_file()?.open().examine_in_place(self.options).ok()?;
        match verdict {
            Verdict::Admitted(admitted) if admitted.core() == core => {
                admitted.members().first().map(|member| member.bytes().to_vec())
            }
            _ => None,
        }
    }
}

/// A document that was examined, with what its admission was made into.
struct Examination<A> {
    path: OsString,
    original: Option<Original>,
    continues: Option<CoreHash>,
    verdict: Finding<A>,
    /// Whether it stands for a whole directory, at its end.
    is_end: bool,
}

enum Finding<A> {
    Admitted(A),
    Rejected(Rejection),
    /// Whether it is rejected depends on whether its beginning is known.
    Rest(Rest),
    NoArtifact,
    /// The end of a directory in which there were so many items.
    End(u64),
}

type Item<A> = std::result::Result<Examination<A>, SourceError>;

fn each<A: Send, E>(
    inputs: impl Iterator<Item = Found> + Send,
    options: &ExamineOptions,
    make: impl Fn(Admitted) -> A + Sync,
    mut consume: impl FnMut(Event<Item<A>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let open = |item: Found| {
        let opened = item.map(|item| (item.name(), item.items(), item.open()));
        let size = opened.as_ref().map_or(0, |(.., opened)| opened.size());
        (opened, size)
    };
    let work = |opened: std::result::Result<(OsString, Option<u64>, source::Opened), SourceError>| {
        let (path, items, opened) = opened?;
        Ok(Examination::of(path, items, opened.examine_in_place(options)?, &make))
    };
    let mut passed_over = 0;
    pipeline::in_order(inputs, open, work, |event| match event {
        Event::Idle => consume(Event::Idle),
        Event::Result(item) => match judge_end(item, &mut passed_over, options) {
            Some(item) => consume(Event::Result(item)),
            None => Ok(()),
        },
    })
}

/// Counts in `passed_over` how many items in a row were no artifacts, and turns the end of a directory in which there were
/// no others into a rejection. Nothing if the directory had something else in it.
fn judge_end<A>(item: Item<A>, passed_over: &mut u64, options: &ExamineOptions) -> Option<Item<A>> {
    match &item {
        Ok(Examination { verdict: Finding::NoArtifact, .. }) => *passed_over += 1,
        Ok(Examination { verdict: Finding::End(items), path, .. }) => {
            if std::mem::take(passed_over) < *items {
                return None;
            }
            let verdict = Finding::Rejected(source::nothing_recognised(options));
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

/// Counts, and passes on to the monitor.
struct Teller<'m> {
    monitor: &'m mut dyn Monitor,
    summary: Summary,
}

impl Teller<'_> {
    /// Tells of `item`, whose `fate` is given for the case that it was admitted.
    fn tell<A: Into<Brief>>(&mut self, number: usize, item: Item<A>, fate: impl FnOnce() -> Fate) {
        self.monitor.done(number);
        match item {
            Ok(examination) => {
                let examined = examination.told(fate);
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

/// What is told of an artifact.
struct Brief {
    kind: Kind,
    core: CoreHash,
    size: u64,
    report: Report,
    signature: Option<Signature>,
}

impl Brief {
    fn of(admitted: &Admitted) -> Self {
        let (report, signature) = (admitted.report().clone(), admitted.signature().cloned());
        Self { kind: admitted.kind(), core: admitted.core(), size: admitted.size(), report, signature }
    }
}

impl From<Admitted> for Brief {
    fn from(admitted: Admitted) -> Self {
        Self::of(&admitted)
    }
}

impl From<Prepared> for Brief {
    fn from(prepared: Prepared) -> Self {
        Self::of(prepared.admitted())
    }
}

impl<A: Into<Brief>> Examination<A> {
    fn told(self, fate: impl FnOnce() -> Fate) -> Examined {
        let (path, path_bytes) = match self.path.into_string() {
            Ok(path) => (path, None),
            Err(raw) => (raw.to_string_lossy().into_owned(), Some(raw.into_encoded_bytes())),
        };
        let mut told = Examined {
            path,
            path_bytes,
            kind: None,
            outcome: Outcome::Skipped,
            core: None,
            continues: self.continues,
            size: 0,
            report: Report::default(),
            signature: None,
            original: self.original,
        };
        match self.verdict {
            Finding::Admitted(admitted) => {
                let Brief { kind, core, size, report, signature } = admitted.into();
                (told.kind, told.core, told.signature) = (Some(kind), Some(core), signature);
                match fate() {
                    Fate::Has(outcome) => (told.outcome, told.size, told.report) = (outcome, size, report),
                    Fate::Refused(report) => (told.outcome, told.report) = (Outcome::Rejected, report),
                }
            }
            Finding::Rejected(Rejection { kind, report, .. })
            | Finding::Rest(Rest { rejection: Rejection { kind, report, .. }, .. }) => {
                (told.kind, told.outcome, told.report) = (kind, Outcome::Rejected, report);
            }
            Finding::NoArtifact | Finding::End(_) => {}
        }
        told
    }
}

/// Documents that wait to be stored together, with those between them that are not to be stored, so that the monitor
/// hears of all of them in order and of none too early.
struct Batch<'s> {
    store: &'s Store,
    preparer: &'s Preparer,
    /// One time for all of one `add`, so that the order within it leaves no trace.
    at: DateTime<Utc>,
    waiting: Vec<(usize, Item<Prepared>)>,
    /// The size of the artifacts and reports among them.
    bytes: u64,
    /// How many times as large as usual it may be.
    times: usize,
    /// How many were not stored because one before them was refused.
    dropped: u64,
    /// How long to wait for others to record what was seen again; nothing once that was too short.
    seen_patience: Duration,
}

impl Batch<'_> {
    /// The document that ends with what is wanted, if it is about to be stored.
    fn beginning(&self, wanted: &Wanted) -> Option<Beginning> {
        let core = CoreHash(wanted.after);
        self.waiting.iter().rev().find_map(|(_, item)| match item {
            Ok(Examination { verdict: Finding::Admitted(prepared), .. }) => {
                let admitted = prepared.admitted();
                let is_it = admitted.core() == core && admitted.kind() == wanted.kind;
                let only = admitted.members().first().filter(|_| is_it)?;
                Some(Beginning::new(core, only.bytes().to_vec()))
            }
            _ => None,
        })
    }

    fn push(
        &mut self,
        number: usize,
        item: Item<Prepared>,
        teller: &mut Teller<'_>,
    ) -> std::result::Result<(), End> {
        self.bytes += match &item {
            Ok(Examination { verdict: Finding::Admitted(prepared), .. }) => prepared.admitted().size(),
            Ok(Examination { verdict: Finding::Rejected(rejection), .. }) => rejection.report.bytes() as u64,
            _ => 0,
        };
        self.waiting.push((number, item));
        if self.waiting.len() >= BATCH_DOCUMENTS * self.times || self.bytes >= BATCH_BYTES * self.times as u64
        {
            self.store(teller)?;
        }
        Ok(())
    }

    /// Stores what waits, and gives what became of each artifact. Whether all of them are there already is found out without
    /// the write lock, so that a process that holds it for long does not keep this one from saying so.
    fn put(&mut self, accepts_unrecorded: bool) -> Result<Vec<Fate>> {
        let prepared = || self.waiting.iter().filter_map(|(_, item)| prepared_of(item));
        let are_present = self.are_present(prepared())?;
        let patience = if are_present { self.seen_patience } else { Store::PATIENCE };
        match self.store.put_within(prepared(), self.preparer, self.at, patience) {
            Err(StoreError::Busy { .. }) if are_present && accepts_unrecorded => {
                let fates = prepared().map(|_| Fate::Has(Outcome::PresentUnrecorded)).collect();
                self.seen_patience = Duration::ZERO;
                Ok(fates)
            }
            stored => Ok(stored?.into_iter().map(Fate::from).collect()),
        }
    }

    /// Whether adding these artifacts would change nothing but when they were seen.
    fn are_present<'p>(&self, artifacts: impl Iterator<Item = &'p Prepared>) -> Result<bool> {
        if !self.store.is_created() {
            return Ok(false);
        }
        let snapshot = self.store.snapshot()?;
        for artifact in artifacts {
            if !snapshot.has_all_of(artifact)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn store(&mut self, teller: &mut Teller<'_>) -> std::result::Result<(), End> {
        let fates = self.put(teller.monitor.accepts_unrecorded()).map_err(End::Failed)?;
        // What is refused is not in the vault, and neither is what comes after it where that is the end.
        let admitted = self.waiting.iter().filter(|(_, item)| prepared_of(item).is_some()).zip(&fates);
        // A file is not removed either before it is recorded that it was seen: then it can be added again.
        let is_kept =
            |fate: &Fate| matches!(fate, Fate::Has(outcome) if *outcome != Outcome::PresentUnrecorded);
        let kept = admitted.filter(|(_, fate)| is_kept(fate));
        let originals: Vec<&Original> =
            kept.filter_map(|((_, item), _)| item.as_ref().ok()?.original.as_ref()).collect();
        teller.monitor.stored(&originals);
        let mut fates = fates.into_iter();
        self.bytes = 0;
        let mut waiting = self.waiting.drain(..);
        while let Some((number, item)) = waiting.next() {
            let fate = prepared_of(&item).and_then(|_| fates.next());
            let is_refused = matches!(fate, Some(Fate::Refused(_)));
            teller.tell(number, item, || fate.unwrap_or(Fate::Has(Outcome::Present)));
            if is_refused && teller.monitor.stops_at_bad() {
                let documents = waiting.filter(|(_, item)| !ends_directory(item));
                self.dropped = documents.count() as u64;
                return Err(End::Stopped);
            }
        }
        Ok(())
    }
}

/// The artifact that is to be stored, if the item is one.
fn prepared_of(item: &Item<Prepared>) -> Option<&Prepared> {
    match item {
        Ok(Examination { verdict: Finding::Admitted(prepared), .. }) => Some(prepared),
        _ => None,
    }
}

/// What became of an artifact that was admitted.
enum Fate {
    Has(Outcome),
    /// It was removed before.
    Refused(Report),
}

impl From<Put> for Fate {
    fn from(put: Put) -> Self {
        Self::Has(match put.outcome {
            PutOutcome::Added => Outcome::Added,
            PutOutcome::NewCapture => Outcome::NewCapture,
            PutOutcome::Present => Outcome::Present,
            PutOutcome::Refused(tombstones) => return Self::Refused(removed(put.core, &tombstones)),
        })
    }
}

/// Why the artifact `core` is refused, if these tombstones keep it out.
pub(crate) fn removed(core: CoreHash, tombstones: &[Tombstone]) -> Report {
    let mut findings = Findings::default();
    let mut found = findings.of(REMOVED);
    for tombstone in tombstones {
        let removal = tombstone.removal();
        if tombstone.core == core {
            found.add("", removal);
        } else {
            found.add("", format!("has {} {}, which was {removal}", tombstone.kind, tombstone.core));
        }
    }
    findings.into_report()
}

/// What the vault has, and would have by now.
struct Seen<'s> {
    snapshot: Option<&'s Snapshot<'s>>,
    allow_removed: bool,
    cores: HashSet<CoreHash>,
    captures: HashSet<(CoreHash, CaptureHash)>,
}

impl Seen<'_> {
    fn fate(&mut self, admitted: &Admitted) -> Result<Fate> {
        if let Some(snapshot) = self.snapshot.filter(|_| !self.allow_removed) {
            let tombstones = snapshot.tombstones_of(admitted)?;
            if !tombstones.is_empty() {
                return Ok(Fate::Refused(removed(admitted.core(), &tombstones)));
            }
        }
        self.outcome(admitted).map(Fate::Has)
    }

    fn outcome(&mut self, admitted: &Admitted) -> Result<Outcome> {
        for embedded in admitted.embedded() {
            self.outcome(embedded)?;
        }
        let (core, capture) = (admitted.core(), admitted.capture());
        let (mut has_core, mut has_capture) =
            (!self.cores.insert(core), !self.captures.insert((core, capture)));
        if let Some(snapshot) = self.snapshot {
            has_core |= snapshot.artifact(core)?.is_some();
            has_capture |= snapshot.capture(core, capture)?.is_some();
        }
        Ok(match (has_core, has_capture) {
            (_, true) => Outcome::Present,
            (true, false) => Outcome::NewCapture,
            (false, false) => Outcome::Added,
        })
    }
}
