//! Decisions: what the journal is to record of a request, given what the vault has. They know no engine.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::annotations::{LabeledArtifacts, link_defect, note_defect, tag_defect};
use super::entry::Entry;
use super::interface::{
    Annotation, Annotations, AppendedEntry, ArtifactRecord, CaptureRecord, CaptureTarget, ManualLink,
    Snapshot, Storage, Transaction,
};
use super::journal::{JournalWriter, MAX_CAPTURES};
use super::{
    KindConflict, Prepared, PutOptions, PutOutcome, PutResult, RecordedEntry, RemovedPolicy, Result,
    StorageError, Tombstone,
};
use crate::artifact::{Admitted, Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash, Digest};

/// Stores artifacts in one transaction: see [`Storage::put`].
pub(super) fn put<S: Storage + ?Sized>(
    storage: &S,
    batch: &[&Prepared],
    options: &PutOptions,
) -> Result<Vec<PutResult>> {
    let mut transaction = storage.transaction(options.at, options.busy_timeout)?;
    let state = PutState::read(transaction.snapshot(), batch)?;
    let results = state.decide(batch, options.policy).append(&mut *transaction)?;
    if results.iter().any(|result| !result.outcome.is_refused()) {
        transaction.commit()?;
    }
    Ok(results)
}

/// What is to be recorded of a batch of artifacts.
pub(super) struct PutDecision<'p> {
    /// The results, each with the indices of the entries that add its parts.
    results: Vec<(PutResult, Vec<usize>)>,
    /// The entries, each with the artifact whose capture it adds.
    entries: Vec<(Entry, Option<&'p Prepared>)>,
}

impl<'p> PutDecision<'p> {
    /// Returns the artifacts whose captures are added.
    #[cfg(feature = "postgres")]
    pub(super) fn contents(&self) -> impl Iterator<Item = &'p Prepared> {
        self.entries.iter().filter_map(|(_, content)| *content)
    }

    /// Continues a journal by the entries.
    pub(super) fn record(self, journal: &mut JournalWriter) -> Result<RecordedPut<'p>> {
        let record = |(entry, content)| Ok((journal.record(entry)?, content));
        let entries = self.entries.into_iter().map(record).collect::<Result<_>>()?;
        Ok(RecordedPut { results: self.results, entries })
    }

    fn append<T: Transaction + ?Sized>(self, transaction: &mut T) -> Result<Vec<PutResult>> {
        let recorded = self.record(transaction.journal())?;
        let reuse = transaction.append(&recorded.entries())?;
        Ok(recorded.results(&reuse))
    }
}

/// What is recorded of a batch of artifacts.
pub(super) struct RecordedPut<'p> {
    results: Vec<(PutResult, Vec<usize>)>,
    entries: Vec<(RecordedEntry, Option<&'p Prepared>)>,
}

impl RecordedPut<'_> {
    /// Returns the entries.
    pub(super) fn entries(&self) -> Vec<AppendedEntry<'_>> {
        self.entries.iter().map(|(entry, content)| AppendedEntry { entry, content: *content }).collect()
    }

    /// Returns the results, given what [`Transaction::append`] returns.
    pub(super) fn results(self, reuse: &[bool]) -> Vec<PutResult> {
        let reuses = |of: Vec<usize>| of.into_iter().any(|index| reuse.get(index).copied().unwrap_or(false));
        let result = |(result, entries): (PutResult, Vec<usize>)| {
            let reuses_bytes = result.reuses_bytes || reuses(entries);
            PutResult { reuses_bytes, ..result }
        };
        self.results.into_iter().map(result).collect()
    }
}

/// Changes annotations: see [`Transaction::annotate`].
pub(super) fn annotate<T: Transaction + ?Sized>(
    transaction: &mut T,
    change: &Annotation<'_>,
) -> Result<bool> {
    let entries = annotation(transaction.snapshot(), change)?;
    record(transaction, entries)
}

/// Removes an artifact: see [`Transaction::remove`].
pub(super) fn remove<T: Transaction + ?Sized>(
    transaction: &mut T,
    core: CoreHash,
    reason: Option<&str>,
) -> Result<()> {
    let entries = removal(transaction.snapshot(), core, reason)?;
    record(transaction, entries).map(drop)
}

/// Appends entries. Returns whether there are any.
fn record<T: Transaction + ?Sized>(transaction: &mut T, entries: Vec<Entry>) -> Result<bool> {
    let record = |entry| transaction.journal().record(entry);
    let entries: Vec<RecordedEntry> = entries.into_iter().map(record).collect::<Result<_>>()?;
    let adopted: Vec<AppendedEntry<'_>> =
        entries.iter().map(|entry| AppendedEntry { entry, content: None }).collect();
    transaction.append(&adopted)?;
    Ok(!adopted.is_empty())
}

/// What a vault has of the artifacts of a batch.
#[derive(Default)]
pub(super) struct PutState {
    /// The kind of each artifact.
    kinds: HashMap<CoreHash, String>,
    /// The signature of each capture.
    captures: HashMap<CaptureTarget, Option<Signature>>,
    /// The tombstones of each artifact of the batch.
    tombstones: Vec<Vec<Tombstone>>,
}

impl PutState {
    fn read(snapshot: &dyn Snapshot, batch: &[&Prepared]) -> Result<Self> {
        let targets: Vec<CaptureTarget> = batch.iter().flat_map(|prepared| prepared.targets()).collect();
        let cores: Vec<CoreHash> = targets.iter().map(|target| target.artifact).collect();
        let digests: Vec<&[Digest]> = batch.iter().map(|prepared| prepared.digests()).collect();
        let artifacts = snapshot.artifacts(&cores)?.into_iter().flatten();
        let captures = snapshot.captures_with(&targets)?.into_iter().flatten();
        Ok(Self::new(artifacts, captures, snapshot.tombstones_with(&digests)?))
    }

    /// Creates the state of a batch: those of the artifacts and captures in it that are stored, and the tombstones of each
    /// artifact of the batch.
    pub(super) fn new(
        artifacts: impl Iterator<Item = ArtifactRecord>,
        captures: impl Iterator<Item = CaptureRecord>,
        tombstones: Vec<Vec<Tombstone>>,
    ) -> Self {
        let known = |known: CaptureRecord| {
            (CaptureTarget { capture: known.capture, artifact: known.artifact }, known.signature)
        };
        Self {
            kinds: artifacts.map(|artifact| (artifact.core, artifact.kind)).collect(),
            captures: captures.map(known).collect(),
            tombstones,
        }
    }

    /// Decides what is to be recorded of a batch.
    pub(super) fn decide<'p>(self, batch: &[&'p Prepared], policy: RemovedPolicy) -> PutDecision<'p> {
        let mut decider = PutDecider { state: self, policy, ..PutDecider::default() };
        PutDecision { results: decider.put_all(batch), entries: decider.entries }
    }
}

fn target(admitted: &Admitted) -> CaptureTarget {
    CaptureTarget { capture: admitted.capture(), artifact: admitted.core() }
}

/// The decisions on a batch of artifacts.
#[derive(Default)]
struct PutDecider<'p> {
    state: PutState,
    policy: RemovedPolicy,
    /// The artifacts that this batch adds captures to or sees again.
    arrived: HashSet<CoreHash>,
    /// The captures that this batch adds.
    added: HashSet<CaptureTarget>,
    /// The removed artifacts that this batch permits again.
    readmitted: HashSet<CoreHash>,
    /// Captures that were seen again and are in no entry yet.
    seen: Vec<CaptureTarget>,
    pending: HashSet<CaptureTarget>,
    entries: Vec<(Entry, Option<&'p Prepared>)>,
}

impl<'p> PutDecider<'p> {
    /// Decides on all artifacts in order, up to the first rejected one if the policy requires that. Returns the results, each
    /// with the indices of the entries that add its parts.
    fn put_all(&mut self, batch: &[&'p Prepared]) -> Vec<(PutResult, Vec<usize>)> {
        let mut results = Vec::new();
        for (prepared, tombstones) in batch.iter().zip(std::mem::take(&mut self.state.tombstones)) {
            let begun = self.entries.len();
            let result = self.put_unless_removed(prepared, tombstones);
            let is_refused = result.outcome.is_refused();
            results.push((result, (begun..self.entries.len()).collect()));
            if is_refused && self.policy == RemovedPolicy::RefuseAndStop {
                break;
            }
        }
        self.record_seen();
        results
    }

    /// Decides on an artifact: it is rejected if it or an artifact or file in it was removed, or if the vault has its core hash
    /// for an artifact of another kind.
    fn put_unless_removed(&mut self, prepared: &'p Prepared, mut tombstones: Vec<Tombstone>) -> PutResult {
        let (core, capture) = (prepared.admitted().core(), prepared.admitted().capture());
        let refused = |outcome| PutResult { core, capture, outcome, reuses_bytes: false };
        if let Some(conflict) = self.conflict(prepared) {
            return refused(PutOutcome::KindConflict(conflict));
        }
        tombstones.retain(|removed| {
            !self.readmitted.contains(&removed.core) && !self.state.kinds.contains_key(&removed.core)
        });
        if !tombstones.is_empty() && self.policy != RemovedPolicy::Readmit {
            return refused(PutOutcome::Refused(tombstones));
        }
        for removed in tombstones {
            self.entries.push((Entry::AllowRemoved { core: removed.core, kind: removed.kind }, None));
            self.readmitted.insert(removed.core);
        }
        self.put(prepared)
    }

    fn conflict(&self, prepared: &Prepared) -> Option<KindConflict> {
        let (core, kind) = (prepared.admitted().core(), prepared.admitted().kind().name());
        let stored = self.state.kinds.get(&core).filter(|stored| *stored != kind);
        if let Some(stored) = stored {
            return Some(KindConflict { core, kind: stored.clone() });
        }
        prepared.embedded().iter().find_map(|embedded| self.conflict(embedded))
    }

    /// Decides on an artifact after those embedded in it.
    fn put(&mut self, prepared: &'p Prepared) -> PutResult {
        let mut reuses_bytes = false;
        for embedded in prepared.embedded() {
            reuses_bytes |= self.put(embedded).reuses_bytes;
        }
        let admitted = prepared.admitted();
        let target = target(admitted);
        let outcome = if self.state.captures.contains_key(&target) {
            self.see(target);
            reuses_bytes |= !self.added.contains(&target);
            PutOutcome::Present
        } else {
            self.record_seen();
            self.add(prepared, target)
        };
        self.record_signature(admitted, target);
        PutResult { core: target.artifact, capture: target.capture, outcome, reuses_bytes }
    }

    fn add(&mut self, prepared: &'p Prepared, target: CaptureTarget) -> PutOutcome {
        let admitted = prepared.admitted();
        let kind = admitted.kind().name().to_owned();
        let entry = Entry::Add {
            capture: target.capture,
            core: target.artifact,
            kind: kind.clone(),
            size: admitted.size(),
            source_path: prepared.source_path().map(str::to_owned),
        };
        self.entries.push((entry, Some(prepared)));
        self.arrived.insert(target.artifact);
        self.added.insert(target);
        self.state.captures.insert(target, None);
        match self.state.kinds.insert(target.artifact, kind) {
            Some(_) => PutOutcome::NewCapture,
            None => PutOutcome::Added,
        }
    }

    /// Records that a capture was seen again, unless its artifact arrived in this batch.
    fn see(&mut self, target: CaptureTarget) {
        if self.arrived.contains(&target.artifact) || !self.pending.insert(target) {
            return;
        }
        self.seen.push(target);
        if self.seen.len() == MAX_CAPTURES {
            self.record_seen();
        }
    }

    /// Adds an entry of the captures seen since the last one.
    fn record_seen(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        self.pending.clear();
        if seen.is_empty() {
            return;
        }
        let (captures, cores): (Vec<CaptureHash>, Vec<CoreHash>) =
            seen.into_iter().map(|target| (target.capture, target.artifact)).unzip();
        self.arrived.extend(&cores);
        self.entries.push((Entry::Seen { captures, cores }, None));
    }

    /// Records the result of checking a signature, only if it changed.
    fn record_signature(&mut self, admitted: &Admitted, target: CaptureTarget) {
        let Some(found) = admitted.signature() else { return };
        let known = self.state.captures.get(&target).cloned().flatten();
        let news = renewed_signature(known.as_ref(), found);
        if known.as_ref() != Some(&news) {
            self.entries.push((signature_entry(admitted, &news), None));
            self.state.captures.insert(target, Some(news));
        }
    }
}

/// Returns the signature of a capture after it was admitted. One that was not checked this time does not replace the result of
/// an earlier check.
pub(super) fn renewed_signature(known: Option<&Signature>, found: &Signature) -> Signature {
    let state = match known {
        Some(known) if found.state == SignatureState::Unchecked => known.state,
        _ => found.state,
    };
    Signature { state, key_id: found.key_id.clone() }
}

/// Returns the entry that records a signature.
pub(super) fn signature_entry(admitted: &Admitted, signature: &Signature) -> Entry {
    let (capture, core) = (admitted.capture(), admitted.core());
    let (key_id, state) = (signature.key_id.clone(), signature.state.name().to_owned());
    Entry::Signature { capture, core, key_id, state }
}

/// Returns the entries of a change of annotations; none if it was so already.
fn annotation(snapshot: &dyn Snapshot, change: &Annotation<'_>) -> Result<Vec<Entry>> {
    match *change {
        Annotation::SetTag { core, name } => set_tag(snapshot, core, name),
        Annotation::RemoveTag { name } => {
            let tagged = snapshot.with_tag(name)?;
            Ok(tagged.map(|core| Entry::Untag { core, name: name.to_owned() }).into_iter().collect())
        }
        Annotation::SetNote { core, text } => set_note(snapshot, core, text),
        Annotation::Pin { core, note } => {
            let pin = annotations_of(snapshot, core)?.pin;
            let is_set = pin.is_some_and(|pin| pin.note.as_deref() == note);
            Ok((!is_set).then(|| Entry::Pin { core, note: note.map(str::to_owned) }).into_iter().collect())
        }
        Annotation::Unpin { core } => {
            let pin = annotations_of(snapshot, core)?.pin;
            Ok(pin.map(|_| Entry::Unpin { core }).into_iter().collect())
        }
        Annotation::SetLabels { cores, labels } => labeled(snapshot, cores)?.set(labels),
        Annotation::RemoveLabels { cores, keys } => Ok(labeled(snapshot, cores)?.remove(keys)),
        Annotation::AddLink { source, relation, target, note } => {
            let link = LinkRequest { source, relation, target };
            link.add(snapshot, note)
        }
        Annotation::RemoveLink { source, relation, target } => {
            let is_set = LinkRequest { source, relation, target }.stored(snapshot)?.is_some();
            let entry = || Entry::Unlink { relation: relation.to_owned(), source, target };
            Ok(is_set.then(entry).into_iter().collect())
        }
    }
}

/// Returns the annotations of an artifact, or an error of the kind `Gone` if it is not stored.
fn annotations_of(snapshot: &dyn Snapshot, core: CoreHash) -> Result<Annotations> {
    snapshot.expect_artifact(core)?;
    snapshot.annotations_of(core)
}

fn set_tag(snapshot: &dyn Snapshot, core: CoreHash, name: &str) -> Result<Vec<Entry>> {
    reject(tag_defect(name))?;
    let tags = annotations_of(snapshot, core)?.tags;
    let is_set = tags.iter().any(|tag| tag.name == name);
    Ok((!is_set).then(|| Entry::Tag { core, name: name.to_owned() }).into_iter().collect())
}

fn set_note(snapshot: &dyn Snapshot, core: CoreHash, text: Option<&str>) -> Result<Vec<Entry>> {
    reject(text.and_then(note_defect))?;
    let known = annotations_of(snapshot, core)?.note;
    let is_set = known.map(|note| note.text).as_deref() == text;
    Ok((!is_set).then(|| Entry::Note { core, note: text.map(str::to_owned) }).into_iter().collect())
}

/// Returns the labels of artifacts, each of which is there once.
fn labeled(snapshot: &dyn Snapshot, cores: &[CoreHash]) -> Result<LabeledArtifacts> {
    let mut known = BTreeSet::new();
    let cores: Vec<CoreHash> = cores.iter().copied().filter(|core| known.insert(*core)).collect();
    snapshot.expect_artifacts(&cores)?;
    let labels = snapshot.annotations(&cores)?.into_iter().map(|annotations| annotations.labels);
    Ok(LabeledArtifacts(cores.into_iter().zip(labels).collect()))
}

/// The key of a manual link.
struct LinkRequest<'l> {
    source: CoreHash,
    relation: &'l str,
    target: CoreHash,
}

impl LinkRequest<'_> {
    /// Returns the link if there is such a link.
    fn stored(&self, snapshot: &dyn Snapshot) -> Result<Option<ManualLink>> {
        snapshot.expect_artifacts(&[self.source, self.target])?;
        let links = snapshot.manual_links_of(self.source)?;
        let mut same = links.into_iter().filter(|link| {
            link.source == self.source && link.relation == self.relation && link.target == self.target
        });
        Ok(same.next())
    }

    fn add(&self, snapshot: &dyn Snapshot, note: Option<&str>) -> Result<Vec<Entry>> {
        let Self { source, relation, target } = *self;
        reject(link_defect(source, relation, target, note))?;
        if self.stored(snapshot)?.is_some_and(|known| known.note.as_deref() == note) {
            return Ok(Vec::new());
        }
        let (note, relation) = (note.map(str::to_owned), relation.to_owned());
        Ok(vec![Entry::Link { note, relation, source, target }])
    }
}

/// Returns the entries of the removal of an artifact, with all its annotations.
fn removal(snapshot: &dyn Snapshot, core: CoreHash, reason: Option<&str>) -> Result<Vec<Entry>> {
    let kind = snapshot.expect_artifact(core)?.kind;
    let annotations = snapshot.annotations_of(core)?;
    if annotations.pin.is_some() {
        return Err(StorageError::pinned(core));
    }
    let links = snapshot.manual_links_of(core)?.into_iter();
    let mut entries: Vec<Entry> = links
        .map(|link| Entry::Unlink { relation: link.relation, source: link.source, target: link.target })
        .collect();
    entries.extend(annotations.tags.into_iter().map(|tag| Entry::Untag { core, name: tag.name }));
    entries.extend(annotations.note.map(|_| Entry::Note { core, note: None }));
    if !annotations.labels.is_empty() {
        let keys = annotations.labels.into_iter().map(|label| label.key).collect();
        entries.push(Entry::Unlabel { cores: vec![core], keys });
    }
    let captures = snapshot.captures_of(core)?;
    let size = captures.iter().map(|capture| capture.size).sum();
    let captures = captures.into_iter().map(|capture| capture.capture).collect();
    let reason = reason.map(str::to_owned);
    entries.push(Entry::Remove { captures, core, kind, left: 0, reason, size });
    Ok(entries)
}

/// Returns the error for a value with a defect.
fn reject(defect: Option<String>) -> Result<()> {
    defect.map_or(Ok(()), |defect| Err(StorageError::invalid(defect)))
}
