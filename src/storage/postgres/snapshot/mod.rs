//! Answers from the database.
//!
//! Each is one statement, or a fixed number of them, whatever the number of keys and of hits.

mod artifacts;
pub(super) mod captures;
mod conditions;
mod edges;
mod find;
mod journal;
mod labels;
mod matches;
mod mentioned;
mod mentions;
mod names;
mod neighbours;
mod sharers;
mod sorting;
mod statistics;
mod times;
pub(super) mod tombstones;

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::view::View;
use crate::artifact::Admitted;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::storage::interface::{
    Annotations, ArtifactRecord, Attribute, CaptureRecord, CaptureTarget, Containment, Direction,
    EngineStatistics, FileRecord, Filter, FullTextSnapshot, Hit, JournalRecord, LabelKey, LabelValue,
    ManualLink, MemberRecord, Mention, NameUse, Names, Neighbourhood, NeighboursQuery, Order, Page, Paged,
    ReferenceEdge, Resolution, RoleCount, SharedFile, Sharers, SharersQuery, Snapshot, Statistics,
    UnresolvedReference,
};
use crate::storage::prepared::removal_digests;
use crate::storage::{Head, JournalCheck, JournalQuery, Result, TimeBasis, Tombstone};

impl Snapshot for View<'_> {
    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>> {
        self.answer(self.artifacts_with(of))
    }

    fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>> {
        self.answer(self.captures_of_all(of))
    }

    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<Attribute>>> {
        self.answer(self.attributes_with(of))
    }

    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>> {
        self.answer(self.annotations_with(of))
    }

    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution> {
        self.answer(self.resolved(prefix, limit))
    }

    fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<Paged<Hit>> {
        self.answer(self.page(filter, order, page))
    }

    fn count(&self, filter: &Filter) -> Result<u64> {
        self.answer(self.number_matching(filter))
    }

    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<Mention>>> {
        self.answer(self.mentions_of_all(of, group))
    }

    fn mention_counts(&self, of: &[CoreHash]) -> Result<Vec<Vec<RoleCount>>> {
        self.answer(self.mention_counts_of(of))
    }

    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<Mention>>> {
        self.answer(self.mentioning_all(digests, group))
    }

    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>> {
        self.answer(self.candidates_for(digests, kinds))
    }

    fn kinds_with_group(&self, group: &str) -> Result<Vec<String>> {
        self.answer(self.kinds_with_roles_of(group))
    }

    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>> {
        self.answer(self.digests_with_prefix(prefix, group, limit))
    }

    fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>> {
        self.answer(self.first_mentions_shared(group))
    }

    fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>> {
        self.answer(self.references_with(of, direction))
    }

    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>> {
        self.answer(self.names_with(of))
    }

    fn named(&self, names: &[String]) -> Result<Vec<NameUse>> {
        self.answer(self.uses_of_names(names))
    }

    fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        self.answer(self.names_shared(group))
    }

    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>> {
        self.answer(self.have_namesakes(of))
    }

    fn related_among(
        &self,
        among: &[CoreHash],
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        self.answer(self.related_of(among, relation, attribute))
    }

    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        self.answer(self.related_to_those(of, filter, relation, attribute))
    }

    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>> {
        self.answer(self.manual_links_with(of))
    }

    fn containers(&self, of: &[CoreHash], by: Containment) -> Result<Vec<Vec<CoreHash>>> {
        self.answer(self.containers_with(of, by))
    }

    fn neighbourhood(&self, query: &NeighboursQuery<'_>) -> Result<Neighbourhood> {
        self.answer(self.neighbourhood_of(query))
    }

    fn sharers(&self, query: &SharersQuery<'_>) -> Result<Option<Sharers>> {
        self.answer(self.sharers_of(query).map(Some))
    }

    fn unresolved(&self) -> Result<Vec<UnresolvedReference>> {
        self.answer(self.all_unresolved())
    }

    fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>> {
        self.answer(self.captures_of_targets(targets))
    }

    fn preferred_captures(&self, of: &[CoreHash]) -> Result<Vec<Option<CaptureRecord>>> {
        self.answer(self.preferred_of_all(of))
    }

    fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>> {
        self.answer(self.files_shared(of))
    }

    fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>> {
        self.answer(self.members_of(core, capture))
    }

    fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        self.answer(self.read_member(core, capture, blob))
    }

    fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>> {
        self.answer(self.files_with(blobs))
    }

    fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>> {
        self.answer(self.entries(query, from, limit))
    }

    fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck> {
        self.answer(self.chain_check(since))
    }

    fn journal_head(&self) -> Result<Head> {
        self.answer(self.head())
    }

    fn tombstones(&self, kind: Option<&str>) -> Result<Vec<Tombstone>> {
        self.answer(self.removed_artifacts(kind))
    }

    fn tombstones_of(&self, admitted: &Admitted) -> Result<Vec<Tombstone>> {
        self.answer(self.tombstones_with(&removal_digests(admitted)))
    }

    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>> {
        self.answer(self.artifacts_tagged(names))
    }

    fn attribute_names(&self) -> Result<Vec<String>> {
        self.answer(self.all_attribute_names())
    }

    fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>> {
        self.answer(self.values_of_attribute(name, text, limit))
    }

    fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>> {
        self.answer(self.number_by_day(filter, by))
    }

    fn label_keys(&self) -> Result<Vec<LabelKey>> {
        self.answer(self.all_label_keys())
    }

    fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>> {
        self.answer(self.values_of_label(key, text, limit))
    }

    fn statistics(&self, by: TimeBasis) -> Result<Statistics> {
        self.answer(self.all_statistics(by))
    }

    fn engine_statistics(&self) -> Result<Option<EngineStatistics>> {
        self.answer(self.sizes().map(Some))
    }

    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}
