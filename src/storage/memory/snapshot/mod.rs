//! Answers from the content of a vault.

mod documents;
mod find;
mod mentions;
mod names;
mod references;
mod statistics;

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::NaiveDate;

use super::state::MemoryState;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::storage::interface::{
    Annotations, ArtifactQueries, ArtifactRecord, AttributeRecord, CaptureQueries, CaptureRecord,
    CaptureTarget, Containment, Direction, FileRecord, Filter, FullTextSnapshot, Hit, HitPage,
    JournalQueries, JournalRecord, LabelKey, LabelValue, ManualLink, MemberRecord, MentionQueries,
    MentionRecord, NameUse, Names, Order, Page, ReferenceEdge, ReferenceQueries, Resolution, SharedFile,
    Snapshot, Statistics, UnresolvedReference, UnresolvedTarget, page_of_unresolved,
};
use crate::storage::{Head, JournalCheck, JournalQuery, Result, RoleCount, TimeBasis, Tombstone};

/// A snapshot, which shares the content with all others of the same time.
#[derive(Clone, Default)]
pub(super) struct MemorySnapshot(pub(super) Arc<MemoryState>);

/// Returns the answer for each key.
fn each<K: Copy, T>(keys: &[K], answer: impl Fn(K) -> T) -> Vec<T> {
    keys.iter().map(|key| answer(*key)).collect()
}

impl ArtifactQueries for MemorySnapshot {
    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>> {
        Ok(each(of, |core| Some(self.0.artifact(core)?.record())))
    }

    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>> {
        Ok(each(of, |core| self.0.attributes_of(core)))
    }

    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>> {
        Ok(each(of, |core| self.0.annotations_of(core)))
    }

    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>> {
        Ok(names.iter().map(|name| self.0.tags.get(name).map(|(core, _)| *core)).collect())
    }

    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution> {
        Ok(self.0.resolve(prefix, limit))
    }

    fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>> {
        Ok(self.0.find(filter, order, page))
    }

    fn count(&self, filter: &Filter) -> Result<u64> {
        Ok(self.0.matching(filter).len() as u64)
    }

    fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>> {
        Ok(self.0.count_by_day(filter, by))
    }

    fn attribute_names(&self) -> Result<Vec<String>> {
        Ok(self.0.attribute_names())
    }

    fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>> {
        Ok(self.0.attribute_values(name, text, limit))
    }

    fn label_keys(&self) -> Result<Vec<LabelKey>> {
        Ok(self.0.label_keys())
    }

    fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>> {
        Ok(self.0.label_values(key, text, limit))
    }

    fn statistics(&self, by: TimeBasis) -> Result<Statistics> {
        Ok(self.0.statistics(by))
    }
}

impl CaptureQueries for MemorySnapshot {
    fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>> {
        Ok(each(of, |core| self.0.captures_of(core)))
    }

    fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>> {
        Ok(each(targets, |CaptureTarget { capture, artifact }| {
            Some(self.0.capture(artifact, capture)?.record(artifact))
        }))
    }

    fn preferred_captures(&self, of: &[CoreHash]) -> Result<Vec<Option<CaptureRecord>>> {
        Ok(each(of, |core| self.0.preferred_capture(core)))
    }

    fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>> {
        self.0.members(core, capture)
    }

    fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        self.0.read(core, capture, blob)
    }

    fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>> {
        Ok(each(blobs, |blob| self.0.file(blob)))
    }

    fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>> {
        Ok(each(of, |core| self.0.shared_files(core, of)))
    }
}

impl MentionQueries for MemorySnapshot {
    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        Ok(each(of, |core| self.0.mentions_of(core, group)))
    }

    fn mention_counts(&self, of: &[CoreHash]) -> Result<Vec<Vec<RoleCount>>> {
        Ok(each(of, |core| self.0.mention_counts(core)))
    }

    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        Ok(each(digests, |digest| self.0.mentioning(digest, group)))
    }

    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>> {
        Ok(each(digests, |digest| self.0.candidates(digest, kinds)))
    }

    fn kinds_with_group(&self, group: &str) -> Result<Vec<String>> {
        Ok(self.0.kinds_with_group(group).into_iter().map(str::to_owned).collect())
    }

    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>> {
        Ok(self.0.mentioned_with_prefix(prefix, group, limit))
    }

    fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>> {
        Ok(self.0.shared_first_mentions(group))
    }
}

impl ReferenceQueries for MemorySnapshot {
    fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>> {
        Ok(each(of, |core| match direction {
            Direction::Out => self.0.references_from(core),
            Direction::In => self.0.references_to(core),
        }))
    }

    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>> {
        Ok(each(of, |core| self.0.names_of(core)))
    }

    fn named(&self, names: &[String]) -> Result<Vec<NameUse>> {
        Ok(names.iter().map(|name| self.0.named(name)).collect())
    }

    fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        Ok(self.0.shared_names(group))
    }

    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>> {
        Ok(each(of, |core| self.0.has_namesake(core)))
    }

    fn related_among(
        &self,
        among: &[CoreHash],
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        Ok(self.0.related_among(among, relation, attribute))
    }

    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        Ok(self.0.related_to_matching(of, filter, relation, attribute))
    }

    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>> {
        Ok(each(of, |core| self.0.manual_links_of(core)))
    }

    fn containers(&self, of: &[CoreHash], by: Containment) -> Result<Vec<Vec<CoreHash>>> {
        Ok(each(of, |core| self.0.containers(core, by)))
    }

    fn unresolved(&self, after: Option<&UnresolvedTarget>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        Ok(page_of_unresolved(self.0.unresolved(), after, limit))
    }
}

impl JournalQueries for MemorySnapshot {
    fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>> {
        Ok(self.0.entries(query, from, limit))
    }

    fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck> {
        Ok(self.0.check_journal(since))
    }

    fn journal_head(&self) -> Result<Head> {
        Ok(self.0.head())
    }

    fn tombstones(&self, kind: Option<&str>, after: u64, limit: usize) -> Result<Vec<Tombstone>> {
        Ok(self.0.removed(kind, after, limit))
    }

    fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>> {
        Ok(digests.iter().map(|digests| self.0.tombstones_with(digests)).collect())
    }
}

impl Snapshot for MemorySnapshot {
    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}
