//! The mentions and containers by which a vault in a file finds artifacts.

use std::collections::{BTreeSet, HashMap};

use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::MentionRecord;
use crate::storage::sql::{
    ConditionRows, ContainedArtifacts, FindSnapshot, NumberedArtifact, RequiredMention, StatementParameters,
};
use crate::storage::sqlite::mention_index;
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::sqlite::rows::ArtifactId;

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
        let captures = parameters.bind(mention.captures(self)?.to_vec());
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
