//! The interface of reads.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Connection;

use super::super::read::SqliteSnapshot;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::interface::{EngineStatistics, FullTextSnapshot, MentionRecord, Snapshot};
use crate::storage::sql::{
    ConditionRows, ContainedArtifacts, FindSnapshot, NumberedArtifact, RequiredMention, SqlSnapshot,
    StatementParameters,
};
use crate::storage::sqlite::error::{PayloadDefect, ReadFailure};
use crate::storage::sqlite::ids::blob_id;
use crate::storage::sqlite::rows::ArtifactId;
use crate::storage::sqlite::{mention_index, schema, search};
use crate::storage::{Result, StorageError};

impl SqlSnapshot for SqliteSnapshot<'_> {
    type Session = Connection;

    fn session(&self) -> &Connection {
        self.connection()
    }

    fn answer<T>(&self, outcome: rusqlite::Result<T>) -> Result<T> {
        Self::answer(self, outcome)
    }

    fn bytes(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let id = self.answer(blob_id(self.connection(), blob))?;
        let id = id.ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
        self.payloads().bytes(id, blob).map_err(|failure| match failure {
            ReadFailure::Defect(defect) => damaged(defect),
            ReadFailure::Database(error) => self.failed(error),
        })
    }

    fn expect_journal_texts(&self) -> Result<()> {
        self.answer(schema::expect_journal_view(self.connection()))
    }
}

impl Snapshot for SqliteSnapshot<'_> {
    fn engine_statistics(&self) -> Result<Option<EngineStatistics>> {
        let connection = self.connection();
        let measure = || {
            let number = |sql| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
            let page = number("SELECT page_size FROM pragma_page_size")?;
            Ok(EngineStatistics {
                // The length is stored before the value, so long values are not read for this.
                stored_bytes: number(
                    "SELECT coalesce(sum(length(bytes) + coalesce(length(digests), 0)), 0) FROM payload",
                )?,
                differences: number("SELECT count(*) FROM payload WHERE base NOT NULL")?,
                dictionaries: number("SELECT count(*) FROM dictionary")?,
                dictionary_bytes: number("SELECT coalesce(sum(length(bytes)), 0) FROM dictionary")?,
                search_bytes: search::size(connection)?,
                file_bytes: page * number("SELECT page_count FROM pragma_page_count")?,
                free_bytes: page * number("SELECT freelist_count FROM pragma_freelist_count")?,
                mentions: mention_index::count(connection)?,
            })
        };
        self.answer(measure().map(Some))
    }

    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}

impl FindSnapshot for SqliteSnapshot<'_> {
    const FINDS_MENTIONS: bool = false;

    fn captures_mentioning(&self, digest: Digest, limit: usize) -> Result<Option<Vec<i64>>> {
        self.answer(self.captures_stating_up_to(mention_index::key(&digest), limit))
    }

    fn mention_rows(
        &self,
        mention: &RequiredMention<'_>,
        parameters: &mut StatementParameters,
    ) -> Result<ConditionRows> {
        let captures = parameters.bind(mention.captures(self)?);
        let tables = format!("rarray({captures}) r CROSS JOIN capture x ON x.id = r.value");
        Ok(ConditionRows::new(tables, "true"))
    }

    fn mentions_among(
        &self,
        of: &[NumberedArtifact],
        mention: &RequiredMention<'_>,
    ) -> Result<HashMap<CoreHash, Vec<MentionRecord>>> {
        let RequiredMention { group, digest, .. } = mention;
        let captures = mention.known_captures();
        let mut found = HashMap::new();
        for NumberedArtifact { core, number } in of {
            let mentions = self.mentions_in(ArtifactId(*number), captures, *digest, *group)?;
            if !mentions.is_empty() {
                found.insert(*core, mentions);
            }
        }
        self.answer(Ok(found))
    }

    fn with_contained(&self, of: &[NumberedArtifact]) -> Result<ContainedArtifacts> {
        let with_contained = |artifact: &NumberedArtifact| {
            let mut all = BTreeSet::from([*artifact]);
            for part in self.contained_in(ArtifactId(artifact.number))? {
                all.insert(NumberedArtifact { core: self.core_of(part)?, number: part.0 });
            }
            Ok((artifact.core, all))
        };
        of.iter().map(with_contained).collect()
    }

    fn with_containers_query(&self, _: &str, _: &mut StatementParameters) -> Option<String> {
        None
    }

    fn add_containers(&self, artifacts: &mut Vec<i64>) -> Result<()> {
        let members: BTreeSet<i64> = artifacts.iter().copied().collect();
        for member in &members {
            artifacts
                .extend(self.containers_of(ArtifactId(*member))?.into_iter().map(|container| container.0));
        }
        artifacts.sort_unstable();
        artifacts.dedup();
        Ok(())
    }
}
