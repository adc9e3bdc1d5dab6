//! The mentions and containers by which a vault in PostgreSQL finds artifacts.

use std::collections::HashMap;

use super::mentions::list_has;
use crate::artifact::relation;
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::{Hit, HitPage, MentionRecord, Order, Page};
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::sql::{
    ConditionRows, ContainedArtifacts, FindSnapshot, NumberedArtifact, RequiredMention, SqlRow,
    SqlSnapshot as _, StatementParameters,
};

impl FindSnapshot for PostgresSnapshot<'_> {
    const FINDS_MENTIONS: bool = true;

    fn rows_planned_for(&self, sql: &str, parameters: &StatementParameters) -> Result<Vec<SqlRow>> {
        self.answer(self.session.rows_planned_for(sql, parameters.values()))
    }

    fn captures_mentioning(&self, _: Digest, _: usize) -> Result<Option<Vec<i64>>> {
        Ok(Some(Vec::new()))
    }

    fn mention_rows(
        &self,
        mention: &RequiredMention<'_>,
        parameters: &mut StatementParameters,
    ) -> Result<ConditionRows> {
        let (key, digest) = (parameters.bind(mention.digest.key()), parameters.bind(mention.digest));
        let of_group = mention.group.map(|group| {
            let group = parameters.bind(group);
            format!("AND k.group_id = (SELECT min(r.group_id) FROM role r WHERE r.role_group = {group})")
        });
        let tables = "mention_key k JOIN mention_list l ON l.capture = k.capture AND l.group_id = k.group_id
                        JOIN capture x ON x.id = k.capture";
        let of_group = of_group.unwrap_or_default();
        let condition = format!("k.key = {key} {of_group} AND {}", list_has(&digest));
        Ok(ConditionRows::new(tables, condition))
    }

    fn mentions_among(
        &self,
        of: &[NumberedArtifact],
        mention: &RequiredMention<'_>,
    ) -> Result<HashMap<CoreHash, Vec<MentionRecord>>> {
        let of: Vec<CoreHash> = of.iter().map(|artifact| artifact.core).collect();
        let mentions = self.answer(self.mentions_with(&[mention.digest], mention.group, Some(&of)))?;
        let mut found: HashMap<CoreHash, Vec<MentionRecord>> = HashMap::new();
        for mention in mentions.into_values().flatten() {
            found.entry(mention.artifact).or_default().push(mention);
        }
        Ok(found)
    }

    fn with_contained(&self, of: &[NumberedArtifact]) -> Result<ContainedArtifacts> {
        self.answer(Self::with_contained(self, of))
    }

    fn with_containers_query(&self, artifacts: &str, parameters: &mut StatementParameters) -> Option<String> {
        let relation = parameters.bind(relation::CONTAINS);
        Some(format!(
            "WITH own AS MATERIALIZED ({artifacts})
             SELECT artifact FROM own
             UNION ALL
             SELECT e.artifact FROM own JOIN artifact m ON m.id = own.artifact
               JOIN edge e ON e.target = m.core AND e.artifact <> m.id JOIN role r ON r.id = e.role
              WHERE r.relation = {relation}"
        ))
    }

    fn add_containers(&self, _: &mut Vec<i64>) -> Result<()> {
        Ok(())
    }

    fn page_mentioning(
        &self,
        mention: (Option<&str>, Digest),
        order: Order,
        page: &Page,
    ) -> Result<Option<HitPage<Hit>>> {
        self.answer(self.page_of_mention(mention, order, page))
    }
}
