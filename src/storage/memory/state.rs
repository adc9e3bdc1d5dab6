//! The content of a vault, and changes of its rows.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::artifact::{Admitted, Kind, Member, Mention, Signature, SignatureState};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::catalog::{Row, RowChange, RowKey};
use crate::storage::interface::{
    ArtifactRecord, AttributeRecord, CapturePassages, CaptureRecord, CaptureTarget, JournalRecord, Label,
    NameMention, Note, Pin, Tag, TimePeriod,
};
use crate::storage::{Head, TimeBasis, Tombstone};
use crate::validation::Violation;

/// The content of a vault at one point in time.
#[derive(Clone, Default)]
pub(super) struct MemoryState {
    pub(super) kinds: BTreeMap<&'static str, Kind>,
    pub(super) artifacts: BTreeMap<CoreHash, Arc<MemoryArtifact>>,
    /// The artifact of each tag.
    pub(super) tags: BTreeMap<String, (CoreHash, DateTime<Utc>)>,
    pub(super) notes: BTreeMap<CoreHash, Note>,
    pub(super) pins: BTreeMap<CoreHash, Pin>,
    /// The value of each artifact and key.
    pub(super) labels: BTreeMap<(CoreHash, String), (String, DateTime<Utc>)>,
    /// The notes of the manual links.
    pub(super) links: BTreeMap<MemoryLinkKey, Option<String>>,
    /// The removals of core hashes and capture hashes, by hash and journal entry. Several removed artifacts may have had
    /// a capture with the same hash.
    pub(super) tombstones: BTreeMap<(Digest, u64), Tombstone>,
    pub(super) journal: Vec<Arc<MemoryJournalEntry>>,
    /// The texts that are searched, if there is an index.
    pub(super) search: Option<IndexedTexts>,
    /// Whether this is a copy of another vault that is not complete.
    pub(super) is_incomplete: bool,
}

/// The texts that are searched.
#[derive(Clone, Default)]
pub(super) struct IndexedTexts {
    /// The position of the last indexed capture. None before it is missing.
    pub(super) last: i64,
    /// The passages of each capture, by its position.
    pub(super) captures: BTreeMap<i64, Arc<CapturePassages>>,
}

/// A journal entry with its action.
pub(super) struct MemoryJournalEntry {
    pub(super) record: JournalRecord,
    pub(super) action: Cow<'static, str>,
}

/// The ends and the relation of a manual link, in the order in which links are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MemoryLinkKey {
    pub(super) relation: String,
    pub(super) source: CoreHash,
    pub(super) target: CoreHash,
}

/// An artifact. Its index data is that of all its captures.
#[derive(Clone)]
pub(super) struct MemoryArtifact {
    pub(super) core: CoreHash,
    pub(super) kind: Kind,
    pub(super) added_at: DateTime<Utc>,
    pub(super) seen_at: DateTime<Utc>,
    pub(super) addition: u64,
    pub(super) arrival: u64,
    /// In the order in which they were added.
    pub(super) captures: Vec<MemoryCapture>,
}

/// A capture with its members and its index data.
#[derive(Clone)]
pub(super) struct MemoryCapture {
    pub(super) capture: CaptureHash,
    /// Its position in the order in which all captures were added.
    pub(super) addition: u64,
    pub(super) added_at: DateTime<Utc>,
    pub(super) seen_at: DateTime<Utc>,
    pub(super) warnings: Vec<Violation>,
    pub(super) signature: Option<Signature>,
    pub(super) source_path: Option<String>,
    /// Sorted by name.
    pub(super) members: Vec<MemoryMember>,
    /// The manifest of a directory, which has no name.
    pub(super) manifest: Option<MemoryMember>,
    pub(super) mentions: BTreeSet<Mention>,
    pub(super) attributes: BTreeSet<AttributeRecord>,
    pub(super) identified_by: BTreeSet<String>,
    /// The relation and the name of each reference by name, and whether it is reported if no artifact has the name.
    pub(super) refers_to: BTreeMap<(&'static str, String), bool>,
}

/// A member of a capture.
#[derive(Clone)]
pub(super) struct MemoryMember {
    pub(super) name: String,
    pub(super) blob: BlobHash,
    pub(super) bytes: Arc<[u8]>,
}

impl From<&Member> for MemoryMember {
    fn from(member: &Member) -> Self {
        Self { name: member.name().to_owned(), blob: member.blob(), bytes: member.bytes().into() }
    }
}

impl MemoryState {
    pub(super) fn artifact(&self, core: CoreHash) -> Option<&MemoryArtifact> {
        self.artifacts.get(&core).map(Arc::as_ref)
    }

    /// Returns the artifact with this core hash, to change it.
    pub(super) fn artifact_mut(&mut self, core: CoreHash) -> Option<&mut MemoryArtifact> {
        self.artifacts.get_mut(&core).map(Arc::make_mut)
    }

    /// Returns all artifacts, by core hash.
    pub(super) fn all(&self) -> impl Iterator<Item = &MemoryArtifact> {
        self.artifacts.values().map(Arc::as_ref)
    }

    /// Returns all artifacts in the order in which they were added.
    pub(super) fn by_addition(&self) -> Vec<&MemoryArtifact> {
        let mut artifacts: Vec<&MemoryArtifact> = self.all().collect();
        artifacts.sort_unstable_by_key(|artifact| artifact.addition);
        artifacts
    }

    /// Returns all captures with their artifacts.
    pub(super) fn captures(&self) -> impl Iterator<Item = (&MemoryArtifact, &MemoryCapture)> {
        self.all().flat_map(|artifact| artifact.captures.iter().map(move |capture| (artifact, capture)))
    }

    /// Returns the artifact with a capture of this hash; the one with the smallest core hash, if several have one.
    pub(super) fn captured_as(&self, capture: CaptureHash) -> Option<&MemoryArtifact> {
        self.captures().find(|(_, known)| known.capture == capture).map(|(artifact, _)| artifact)
    }

    pub(super) fn capture(&self, core: CoreHash, capture: CaptureHash) -> Option<&MemoryCapture> {
        self.artifact(core)?.captures.iter().find(|known| known.capture == capture)
    }

    /// Returns the tags of an artifact, by name.
    pub(super) fn tags_of(&self, core: CoreHash) -> Vec<Tag> {
        let tags = self.tags.iter().filter(|(_, (tagged, _))| *tagged == core);
        tags.map(|(name, (_, at))| Tag { name: name.clone(), at: *at }).collect()
    }

    /// Returns the labels of an artifact, by key.
    pub(super) fn labels_of(&self, core: CoreHash) -> Vec<Label> {
        let labels = self.labels.iter().filter(|((labeled, _), _)| *labeled == core);
        let label = |((_, key), (value, at)): (&(CoreHash, String), &(String, DateTime<Utc>))| Label {
            key: key.clone(),
            value: value.clone(),
            at: *at,
        };
        labels.map(label).collect()
    }

    /// Returns the keys of the manual links from and to an artifact, in their order.
    pub(super) fn links_of(&self, core: CoreHash) -> Vec<MemoryLinkKey> {
        self.links.keys().filter(|link| link.source == core || link.target == core).cloned().collect()
    }

    /// Returns the tombstones of these digests, one for each artifact, by core hash: that of its core hash if it is among
    /// the digests. Those of artifacts that are stored are not included.
    pub(super) fn tombstones_with(&self, digests: &[Digest]) -> Vec<Tombstone> {
        let tombstones = self.tombstones.values().filter(|tombstone| digests.contains(&tombstone.digest));
        let mut found: Vec<Tombstone> =
            tombstones.filter(|tombstone| self.artifact(tombstone.core).is_none()).cloned().collect();
        found.sort_unstable_by_key(|tombstone| {
            (tombstone.core, tombstone.digest != tombstone.core.0, tombstone.digest)
        });
        found.dedup_by_key(|tombstone| tombstone.core);
        found
    }

    pub(super) fn head(&self) -> Head {
        let last = self.journal.last();
        let empty = Head { seq: 0, chain: Digest::from_bytes([0; 32]) };
        last.map_or(empty, |last| Head { seq: last.record.seq, chain: last.record.chain })
    }
}

impl MemoryArtifact {
    pub(super) fn record(&self) -> ArtifactRecord {
        ArtifactRecord {
            core: self.core,
            kind: self.kind.name().to_owned(),
            added_at: self.added_at,
            seen_at: self.seen_at,
            addition: self.addition,
            arrival: self.arrival,
        }
    }

    /// Returns its mentions, without those that several captures have in common.
    pub(super) fn mentions(&self) -> BTreeSet<&Mention> {
        self.captures.iter().flat_map(|capture| &capture.mentions).collect()
    }

    pub(super) fn attributes(&self) -> BTreeSet<&AttributeRecord> {
        self.captures.iter().flat_map(|capture| &capture.attributes).collect()
    }

    /// Returns the largest number of an attribute.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        let attributes = self.attributes().into_iter().filter(|attribute| attribute.name == name);
        attributes.filter_map(|attribute| attribute.number).max()
    }

    pub(super) fn identified_by(&self) -> BTreeSet<&str> {
        self.captures.iter().flat_map(|capture| &capture.identified_by).map(String::as_str).collect()
    }

    /// Returns the names by which it refers to others, sorted by relation and name.
    pub(super) fn refers_to(&self) -> Vec<NameMention> {
        let mut names = BTreeMap::new();
        for ((relation, handle), dangles) in self.captures.iter().flat_map(|capture| &capture.refers_to) {
            names.entry((*relation, handle)).or_insert(*dangles);
        }
        let mention = |((relation, handle), dangles): ((&str, &String), bool)| NameMention {
            relation: relation.to_owned(),
            handle: handle.clone(),
            dangles,
        };
        names.into_iter().map(mention).collect()
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.identified_by().contains(name)
    }

    pub(super) fn refers_to_name(&self, name: &str) -> bool {
        self.refers_to().iter().any(|mention| mention.handle == name)
    }

    /// Returns whether it has the name and does not refer to it, as redacted copies of a run do.
    pub(super) fn is_original(&self, name: &str) -> bool {
        self.has_name(name) && !self.refers_to_name(name)
    }

    /// Returns the names that it has or refers to.
    pub(super) fn names_used(&self) -> impl Iterator<Item = String> {
        let own = self.identified_by().into_iter().map(str::to_owned);
        own.chain(self.refers_to().into_iter().map(|mention| mention.handle))
    }

    /// Returns whether it states that it contains `other`.
    pub(super) fn contains(&self, other: CoreHash) -> bool {
        let is_contained = |mention: &&Mention| {
            mention.digest == other.0
                && mention.role.relation.is_some_and(|relation| relation.name == CONTAINS)
        };
        self.core != other && self.mentions().iter().any(is_contained)
    }

    /// Returns its time for `basis`.
    pub(super) fn time(&self, basis: TimeBasis) -> Option<DateTime<Utc>> {
        match basis {
            TimeBasis::FirstSeen => Some(self.added_at),
            TimeBasis::LastSeen => Some(self.seen_at),
            TimeBasis::Created | TimeBasis::Finished => {
                let (attributes, name) = (self.attributes().into_iter(), basis.attribute());
                let times = attributes.filter(|attribute| Some(attribute.name.as_str()) == name);
                let times = times.filter_map(|time| DateTime::parse_from_rfc3339(&time.value).ok());
                times.map(|time| time.to_utc()).max()
            }
        }
    }

    pub(super) fn is_within(&self, period: &TimePeriod) -> bool {
        self.time(period.basis).is_some_and(|time| {
            period.since.is_none_or(|since| time >= since) && period.until.is_none_or(|until| time < until)
        })
    }
}

/// The relation of an artifact to those that it contains.
const CONTAINS: &str = "contains";

impl MemoryCapture {
    /// Creates a capture without files.
    pub(super) fn new(capture: CaptureHash, added_at: DateTime<Utc>, seen_at: DateTime<Utc>) -> Self {
        Self {
            capture,
            addition: 0,
            added_at,
            seen_at,
            warnings: Vec::new(),
            signature: None,
            source_path: None,
            members: Vec::new(),
            manifest: None,
            mentions: BTreeSet::new(),
            attributes: BTreeSet::new(),
            identified_by: BTreeSet::new(),
            refers_to: BTreeMap::new(),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.members.iter().map(|member| member.bytes.len() as u64).sum()
    }

    pub(super) fn record(&self, artifact: CoreHash) -> CaptureRecord {
        CaptureRecord {
            capture: self.capture,
            artifact,
            size: self.size(),
            added_at: self.added_at,
            seen_at: self.seen_at,
            warnings: self.warnings.clone(),
            signature: self.signature.clone(),
            source_path: self.source_path.clone(),
        }
    }

    pub(super) fn target(&self, artifact: CoreHash) -> CaptureTarget {
        CaptureTarget { capture: self.capture, artifact }
    }

    /// Returns the files and the manifest.
    pub(super) fn stored(&self) -> impl Iterator<Item = &MemoryMember> {
        self.members.iter().chain(&self.manifest)
    }

    pub(super) fn has_blob(&self, blob: BlobHash) -> bool {
        self.members.iter().any(|member| member.blob == blob)
    }
}

/// Returns the time of a row.
fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

impl MemoryState {
    /// Executes the changes that follow from an entry.
    pub(super) fn execute(&mut self, changes: Vec<RowChange<'_>>) {
        for change in changes {
            match change {
                RowChange::Insert(row) => self.insert(&row),
                RowChange::Put(row) => self.put(row),
                RowChange::Delete(key) => self.delete(&key),
                RowChange::Arrive { core, at, arrival } => {
                    if let Some(artifact) = self.artifact_mut(core) {
                        (artifact.seen_at, artifact.arrival) = (time(at), arrival.cast_unsigned());
                    }
                }
                RowChange::See { core, capture, at } => {
                    if let Some(known) = self.capture_mut(core, capture) {
                        known.seen_at = time(at);
                    }
                }
                RowChange::Store { core, capture, content } => self.store(core, capture, content.admitted()),
                RowChange::Remove { core } => {
                    if let Some(removed) = self.artifacts.remove(&core) {
                        self.forget_texts(&removed.captures);
                    }
                }
                RowChange::Readmit { core } => self.tombstones.retain(|_, removed| removed.core != core),
            }
        }
    }

    fn capture_mut(&mut self, core: CoreHash, capture: CaptureHash) -> Option<&mut MemoryCapture> {
        self.artifact_mut(core)?.captures.iter_mut().find(|known| known.capture == capture)
    }

    /// Inserts a row unless there is one with its key.
    fn insert(&mut self, row: &Row) {
        // What captures state is stored with each of them.
        match row {
            Row::Kind(kind) => drop(self.kinds.insert(kind.name(), *kind)),
            Row::Artifact { core, entry, kind, added_at, seen_at, arrival } => {
                let Some(kind) = self.kinds.get(kind.as_str()).copied() else { return };
                let artifact = || MemoryArtifact {
                    core: *core,
                    kind,
                    added_at: time(*added_at),
                    seen_at: time(*seen_at),
                    addition: *entry,
                    arrival: arrival.cast_unsigned(),
                    captures: Vec::new(),
                };
                self.artifacts.entry(*core).or_insert_with(|| Arc::new(artifact()));
            }
            _ => {}
        }
    }

    /// Inserts or replaces a row. Those of artifacts that are not stored are left out.
    fn put(&mut self, row: Row) {
        match row {
            Row::Capture { core, capture, entry, added_at, seen_at, source_path, .. } => {
                let Some(artifact) = self.artifact_mut(core) else { return };
                artifact.captures.retain(|known| known.capture != capture);
                artifact.captures.push(MemoryCapture {
                    addition: entry,
                    source_path,
                    ..MemoryCapture::new(capture, time(added_at), time(seen_at))
                });
            }
            Row::Signature { core, capture, state, key_id } => {
                if let Some(known) = self.capture_mut(core, capture) {
                    known.signature = SignatureState::named(&state).map(|state| Signature { state, key_id });
                }
            }
            Row::Tag { name, core, at } => {
                self.tags.remove(&name);
                if self.artifacts.contains_key(&core) {
                    self.tags.insert(name, (core, time(at)));
                }
            }
            Row::Note { core, text, at } if self.artifacts.contains_key(&core) => {
                self.notes.insert(core, Note { text, at: time(at) });
            }
            Row::Pin { core, note, at } if self.artifacts.contains_key(&core) => {
                self.pins.insert(core, Pin { note, at: time(at) });
            }
            Row::Label { core, key, value, at } if self.artifacts.contains_key(&core) => {
                self.labels.insert((core, key), (value, time(at)));
            }
            Row::Link { source, relation, target, note, .. }
                if self.artifacts.contains_key(&source) && self.artifacts.contains_key(&target) =>
            {
                self.links.insert(MemoryLinkKey { relation, source, target }, note);
            }
            Row::Tombstone(tombstone) => {
                self.tombstones.insert((tombstone.digest, tombstone.entry), *tombstone);
            }
            _ => {}
        }
    }

    fn delete(&mut self, key: &RowKey) {
        match key {
            RowKey::Signature(core, capture) => {
                if let Some(known) = self.capture_mut(*core, *capture) {
                    known.signature = None;
                }
            }
            RowKey::Tag(name) => drop(self.tags.remove(name)),
            RowKey::Note(core) => drop(self.notes.remove(core)),
            RowKey::Pin(core) => drop(self.pins.remove(core)),
            RowKey::Label(core, key) => drop(self.labels.remove(&(*core, key.clone()))),
            RowKey::Link(source, relation, target) => {
                let key = MemoryLinkKey { relation: relation.clone(), source: *source, target: *target };
                self.links.remove(&key);
            }
        }
    }

    /// Stores the files of a capture, and what it states.
    fn store(&mut self, core: CoreHash, capture: CaptureHash, admitted: &Admitted) {
        let draft = admitted.draft();
        let Some(known) = self.capture_mut(core, capture) else { return };
        known.warnings = admitted.report().violations().to_vec();
        known.members = admitted.members().iter().map(MemoryMember::from).collect();
        known.manifest = admitted.manifest().map(MemoryMember::from);
        known.mentions = draft.mentions.iter().cloned().collect();
        let attributes = draft.attributes.iter().map(|known| AttributeRecord {
            name: known.name.to_owned(),
            value: known.value.clone(),
            number: known.number,
        });
        known.attributes = attributes.collect::<BTreeSet<_>>();
        known.identified_by = draft.identified_by.iter().map(|name| name.as_str().to_owned()).collect();
        let references = draft
            .refers_to
            .iter()
            .map(|(relation, name)| ((relation.name, name.as_str().to_owned()), relation.dangles));
        known.refers_to = references.collect();
    }
}
