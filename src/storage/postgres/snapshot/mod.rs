//! Answers from the database.
//!
//! Each is one statement, or a fixed number of them, whatever the number of keys and of hits.

mod artifacts;
pub(super) mod captures;
mod conditions;
mod edges;
mod find;
pub(super) mod journal;
mod matches;
mod mentioned;
mod mentions;
mod names;
mod neighbors;
mod sharers;
mod sorting;
mod statistics;
mod times;

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::view::{PostgresSnapshot, answer_with_inherent};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::storage::interface::{
    Annotations, ArtifactQueries, ArtifactRecord, AttributeRecord, CaptureQueries, CaptureRecord,
    CaptureTarget, Containment, Direction, EngineStatistics, FileRecord, Filter, FullTextSnapshot, Hit,
    HitPage, JournalQueries, JournalRecord, LabelKey, LabelValue, ManualLink, MemberRecord, MentionQueries,
    MentionRecord, NameUse, Names, Neighborhood, NeighborsQuery, Order, Page, ReferenceEdge,
    ReferenceQueries, Resolution, RoleCount, SharedFile, Sharers, SharersQuery, Snapshot, Statistics,
    UnresolvedReference, UnresolvedTarget,
};
use crate::storage::{Head, JournalCheck, JournalQuery, Result, TimeBasis, Tombstone};

impl ArtifactQueries for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>>;
        fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>>;
        fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>>;
        fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>>;
        fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution>;
        fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>>;
        fn count(&self, filter: &Filter) -> Result<u64>;
        fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>>;
        fn attribute_names(&self) -> Result<Vec<String>>;
        fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>>;
        fn label_keys(&self) -> Result<Vec<LabelKey>>;
        fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>>;
        fn statistics(&self, by: TimeBasis) -> Result<Statistics>;
        fn engine_statistics(&self) -> Result<Option<EngineStatistics>>;
    }
}

impl CaptureQueries for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>>;
        fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>>;
        fn preferred_captures(&self, of: &[CoreHash]) -> Result<Vec<Option<CaptureRecord>>>;
        fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>>;
        fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>>;
        fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>>;
        fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>>;
    }
}

impl MentionQueries for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>>;
        fn mention_counts(&self, of: &[CoreHash]) -> Result<Vec<Vec<RoleCount>>>;
        fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>>;
        fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>>;
        fn kinds_with_group(&self, group: &str) -> Result<Vec<String>>;
        fn mentioned_with_prefix(
            &self,
            prefix: &DigestPrefix,
            group: Option<&str>,
            limit: usize,
        ) -> Result<Vec<Digest>>;
        fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>>;
        fn sharers(&self, query: &SharersQuery<'_>) -> Result<Option<Sharers>>;
    }
}

impl ReferenceQueries for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>>;
        fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>>;
        fn named(&self, names: &[String]) -> Result<Vec<NameUse>>;
        fn shared_names(&self, group: &str) -> Result<Vec<String>>;
        fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>>;
        fn related_among(
            &self,
            among: &[CoreHash],
            relation: &str,
            attribute: &str,
        ) -> Result<BTreeSet<CoreHash>>;
        fn related_to_matching(
            &self,
            of: &[CoreHash],
            filter: &Filter,
            relation: &str,
            attribute: &str,
        ) -> Result<BTreeSet<CoreHash>>;
        fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>>;
        fn containers(&self, of: &[CoreHash], by: Containment) -> Result<Vec<Vec<CoreHash>>>;
        fn unresolved(&self, after: Option<&UnresolvedTarget>, limit: usize) -> Result<Vec<UnresolvedReference>>;
    }
}

impl JournalQueries for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>>;
        fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck>;
        fn journal_head(&self) -> Result<Head>;
        fn tombstones(&self, kind: Option<&str>, after: u64, limit: usize) -> Result<Vec<Tombstone>>;
        fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>>;
    }
}

impl Snapshot for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn neighborhood(&self, query: &NeighborsQuery<'_>) -> Result<Neighborhood>;
    }

    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}
