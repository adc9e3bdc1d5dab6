//! Answers from the database.
//!
//! Each is one statement, or a fixed number of them, whatever the number of keys and of hits.

mod artifacts;
pub(super) mod captures;
mod edges;
mod find;
pub(super) mod journal;
mod mentioned;
mod mentions;
mod neighbors;
mod sharers;
mod statistics;

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
use crate::storage::sql;
use crate::storage::{Head, JournalCheck, JournalQuery, Result, TimeBasis, Tombstone};

impl ArtifactQueries for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn attribute_names(&self) -> Result<Vec<String>>;
        fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>>;
        fn engine_statistics(&self) -> Result<Option<EngineStatistics>>;
    }

    fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>> {
        sql::find(self, filter, order, page)
    }

    fn count(&self, filter: &Filter) -> Result<u64> {
        sql::count(self, filter)
    }

    fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>> {
        sql::count_by_day(self, filter, by)
    }

    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>> {
        self.answer(sql::artifacts(&self.session, of))
    }

    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>> {
        self.answer(sql::attributes(&self.session, of))
    }

    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution> {
        self.answer(sql::resolve(&self.session, prefix, limit))
    }

    fn statistics(&self, by: TimeBasis) -> Result<Statistics> {
        self.answer(sql::statistics(&self.session, by))
    }

    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>> {
        self.answer(sql::annotations(&self.session, of))
    }

    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>> {
        self.answer(sql::tagged(&self.session, names))
    }

    fn label_keys(&self) -> Result<Vec<LabelKey>> {
        self.answer(sql::label_keys(&self.session))
    }

    fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>> {
        self.answer(sql::label_values(&self.session, key, text, limit))
    }
}

impl CaptureQueries for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>>;
        fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>>;
        fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>>;
        fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>>;
    }

    fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>> {
        self.answer(sql::captures(&self.session, of))
    }

    fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>> {
        self.answer(sql::captures_with(&self.session, targets))
    }

    fn preferred_captures(&self, of: &[CoreHash]) -> Result<Vec<Option<CaptureRecord>>> {
        self.answer(sql::preferred_captures(&self.session, of))
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
        fn related_among(
            &self,
            among: &[CoreHash],
            relation: &str,
            attribute: &str,
        ) -> Result<BTreeSet<CoreHash>>;
        fn containers(&self, of: &[CoreHash], by: Containment) -> Result<Vec<Vec<CoreHash>>>;
        fn unresolved(&self, after: Option<&UnresolvedTarget>, limit: usize) -> Result<Vec<UnresolvedReference>>;
    }

    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        Self::related_to_matching(self, of, filter, relation, attribute)
    }

    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>> {
        self.answer(sql::names(&self.session, of))
    }

    fn named(&self, names: &[String]) -> Result<Vec<NameUse>> {
        self.answer(sql::named(&self.session, names))
    }

    fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        self.answer(sql::shared_names(&self.session, group))
    }

    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>> {
        self.answer(sql::has_namesake(&self.session, of))
    }

    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>> {
        self.answer(sql::manual_links(&self.session, of))
    }
}

impl JournalQueries for PostgresSnapshot<'_> {
    answer_with_inherent! {
        fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>>;
        fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck>;
        fn journal_head(&self) -> Result<Head>;
    }

    fn tombstones(&self, kind: Option<&str>, after: u64, limit: usize) -> Result<Vec<Tombstone>> {
        self.answer(sql::removed_artifacts(&self.session, kind, after, limit))
    }

    fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>> {
        self.answer(sql::tombstones_with(&self.session, digests))
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
