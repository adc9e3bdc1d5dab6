//! Reads.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, NaiveDate, Utc};

use super::super::ids::artifact_id;
use super::super::read;
use super::super::rows::{ArtifactId, ArtifactRow};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::storage::forward::forward_to_inherent;
use crate::storage::interface::{
    Annotations, ArtifactQueries, ArtifactRecord, AttributeRecord, CaptureQueries, CaptureRecord,
    CaptureTarget, Containment, Direction, EngineStatistics, FileRecord, Filter, FullTextSnapshot, Hit,
    HitPage, JournalQueries, JournalRecord, LabelKey, LabelValue, ManualLink, MemberRecord, MentionQueries,
    MentionRecord, NameUse, Names, Order, Page, ReferenceEdge, ReferenceQueries, Resolution, RoleCount,
    SharedFile, Snapshot, Statistics, UnresolvedReference, UnresolvedTarget, sort_mentions, sort_references,
};
use crate::storage::sql;
use crate::storage::{Head, JournalCheck, JournalQuery, Result, TimeBasis, Tombstone};

impl read::SqliteSnapshot<'_> {
    /// Returns the row id of an artifact.
    pub(super) fn id_of(&self, core: CoreHash) -> Result<Option<ArtifactId>> {
        let id = artifact_id(self.connection(), core).map_err(|error| self.failed(error))?;
        Ok(id.map(ArtifactId))
    }

    /// Returns the value of `read` for each artifact, and an empty value for those that are not stored.
    fn each<T: Default>(
        &self,
        of: &[CoreHash],
        mut read: impl FnMut(CoreHash, ArtifactId) -> Result<T>,
    ) -> Result<Vec<T>> {
        let value = |core: &CoreHash| match self.id_of(*core)? {
            Some(id) => read(*core, id),
            None => Ok(T::default()),
        };
        of.iter().map(value).collect()
    }

    pub(super) fn cores(&self, ids: impl IntoIterator<Item = ArtifactId>) -> Result<Vec<CoreHash>> {
        ids.into_iter().map(|id| self.core_of(id)).collect()
    }

    fn sorted_cores(&self, ids: impl IntoIterator<Item = ArtifactId>) -> Result<Vec<CoreHash>> {
        let mut cores = self.cores(ids)?;
        cores.sort_unstable();
        Ok(cores)
    }
}

impl ArtifactQueries for read::SqliteSnapshot<'_> {
    forward_to_inherent! {
        fn attribute_names(&self) -> Result<Vec<String>>;
        fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>>;
    }

    fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>> {
        sql::find(self, filter, order, page)
    }

    fn count(&self, filter: &Filter) -> Result<u64> {
        sql::count(self, filter)
    }

    fn statistics(&self, by: TimeBasis) -> Result<Statistics> {
        self.answer(sql::statistics(self.connection(), by))
    }

    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>> {
        self.answer(sql::artifacts(self.connection(), of))
    }

    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>> {
        self.answer(sql::attributes(self.connection(), of))
    }

    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>> {
        self.answer(sql::annotations(self.connection(), of))
    }

    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>> {
        self.answer(sql::tagged(self.connection(), names))
    }

    fn label_keys(&self) -> Result<Vec<LabelKey>> {
        self.answer(sql::label_keys(self.connection()))
    }

    fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>> {
        self.answer(sql::label_values(self.connection(), key, text, limit))
    }

    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution> {
        self.answer(sql::resolve(self.connection(), prefix, limit))
    }

    fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>> {
        sql::count_by_day(self, filter, by)
    }

    fn engine_statistics(&self) -> Result<Option<EngineStatistics>> {
        Self::engine_statistics(self).map(Some)
    }
}

impl CaptureQueries for read::SqliteSnapshot<'_> {
    forward_to_inherent! {
        fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>>;
        fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>>;
    }

    fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>> {
        self.answer(sql::captures(self.connection(), of))
    }

    fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>> {
        self.answer(sql::captures_with(self.connection(), targets))
    }

    fn preferred_captures(&self, of: &[CoreHash]) -> Result<Vec<Option<CaptureRecord>>> {
        self.answer(sql::preferred_captures(self.connection(), of))
    }

    fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>> {
        blobs.iter().map(|blob| self.file_with(*blob)).collect()
    }

    fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>> {
        let ids = of.iter().map(|core| self.id_of(*core)).collect::<Result<Vec<_>>>()?;
        self.shared_files_of(&ids)
    }
}

impl MentionQueries for read::SqliteSnapshot<'_> {
    forward_to_inherent! {
        fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>>;
    }

    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        self.each(of, |core, id| {
            let mut mentions = self.mentions(core, id, group)?;
            sort_mentions(&mut mentions);
            Ok(mentions)
        })
    }

    fn mention_counts(&self, of: &[CoreHash]) -> Result<Vec<Vec<RoleCount>>> {
        self.each(of, |_, id| self.role_counts(id))
    }

    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        digests.iter().map(|digest| self.mentioning(*digest, group)).collect()
    }

    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>> {
        let kinds = self.kind_ids(kinds)?;
        digests.iter().map(|digest| self.candidates_of(*digest, &kinds)).collect()
    }

    fn kinds_with_group(&self, group: &str) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT k.name FROM role r JOIN kind k ON k.id = r.kind WHERE r.role_group = ?1 ORDER BY 1";
        self.rows(sql, [group], |row| row.get(0))
    }

    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>> {
        self.mentioned_beginning(prefix, group, u32::try_from(limit).unwrap_or(u32::MAX))
    }
}

impl ReferenceQueries for read::SqliteSnapshot<'_> {
    forward_to_inherent! {
        fn unresolved(&self, after: Option<&UnresolvedTarget>, limit: usize) -> Result<Vec<UnresolvedReference>>;
    }

    fn references(&self, of: &[CoreHash], direction: Direction) -> Result<Vec<Vec<ReferenceEdge>>> {
        let artifacts: Vec<Option<ArtifactRow>> =
            of.iter().map(|core| self.artifact(*core)).collect::<Result<_>>()?;
        let stored: Vec<ArtifactRow> = artifacts.iter().flatten().cloned().collect();
        let mut edges = match direction {
            Direction::Out => {
                stored.iter().map(|artifact| self.references_from(artifact.id)).collect::<Result<Vec<_>>>()?
            }
            Direction::In => self.references_to(&stored)?,
        };
        for edges in &mut edges {
            sort_references(edges, direction);
        }
        let mut edges = edges.into_iter();
        Ok(artifacts
            .iter()
            .map(|found| found.as_ref().and_then(|_| edges.next()).unwrap_or_default())
            .collect())
    }

    fn containers(&self, of: &[CoreHash], by: Containment) -> Result<Vec<Vec<CoreHash>>> {
        self.each(of, |_, id| match by {
            Containment::Declared => self.sorted_cores(self.containers_of(id)?),
            Containment::Bytes => self.sorted_cores(self.artifacts_with_bytes(id)?),
        })
    }

    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>> {
        self.answer(sql::names(self.connection(), of))
    }

    fn named(&self, names: &[String]) -> Result<Vec<NameUse>> {
        self.answer(sql::named(self.connection(), names))
    }

    fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        self.answer(sql::shared_names(self.connection(), group))
    }

    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>> {
        self.answer(sql::has_namesake(self.connection(), of))
    }

    fn related_among(
        &self,
        among: &[CoreHash],
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        let rows = among.iter().filter_map(|core| self.artifact(*core).transpose());
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let related = self.related_among(&rows.iter().collect::<Vec<_>>(), relation, attribute)?;
        Ok(self.cores(related)?.into_iter().collect())
    }

    fn related_to_matching(
        &self,
        of: &[CoreHash],
        filter: &Filter,
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        let rows = of.iter().filter_map(|core| self.artifact(*core).transpose());
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let mut matching: HashMap<ArtifactId, bool> = HashMap::new();
        let related = self.related_to(&rows, relation, attribute, &mut |id| {
            if let Some(matches) = matching.get(&id) {
                return Ok(*matches);
            }
            let digits = self.core_of(id)?.0.hex();
            let has_digits = filter.digits.as_ref().is_none_or(|first| digits.starts_with(first.as_str()));
            let only = Filter { digits: Some(digits), ..filter.clone() };
            let matches = has_digits && self.count(&only)? > 0;
            matching.insert(id, matches);
            Ok(matches)
        })?;
        Ok(self.cores(related)?.into_iter().collect())
    }

    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>> {
        self.answer(sql::manual_links(self.connection(), of))
    }
}

impl JournalQueries for read::SqliteSnapshot<'_> {
    forward_to_inherent! {
        fn journal(&self, query: &JournalQuery, from: u64, limit: usize) -> Result<Vec<JournalRecord>>;
        fn check_journal(&self, since: Option<Digest>) -> Result<JournalCheck>;
        fn journal_head(&self) -> Result<Head>;
        fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>>;
    }

    fn tombstones(&self, kind: Option<&str>, after: u64, limit: usize) -> Result<Vec<Tombstone>> {
        self.answer(sql::removed_artifacts(self.connection(), kind, after, limit))
    }

    fn tombstones_with(&self, digests: &[&[Digest]]) -> Result<Vec<Vec<Tombstone>>> {
        self.answer(sql::tombstones_with(self.connection(), digests))
    }
}

impl Snapshot for read::SqliteSnapshot<'_> {
    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}
