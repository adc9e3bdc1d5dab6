//! Mentions of digests, and the containers by which a vault in PostgreSQL finds artifacts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::artifact::relation;
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::storage::Result;
use crate::storage::interface::{
    Hit, HitPage, MentionQueries, MentionRecord, Order, Page, PairQueries, Sharers, SharersQuery,
    sort_mentions, sort_mentions_by_artifact,
};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::lists::{self, ListedMention};
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::sql::{
    ConditionRows, ContainedArtifacts, FindSnapshot, NumberedArtifact, RequiredMention, SqlParameter, SqlRow,
    SqlSession as _, SqlSnapshot as _, StatementParameters, in_order,
};

/// The number of a group, whose name is the second parameter; any list matches if that is NULL.
const IN_GROUP: &str =
    "($2::text IS NULL OR l.group_id = (SELECT min(r.group_id) FROM role r WHERE r.role_group = $2))";

/// An expression that is true if the digests of the list `l` include `digest`, also an expression.
///
/// Bytes that look like the digest may begin within another one, which only documents made for that have.
pub(super) fn list_has(digest: &str) -> String {
    format!(
        "(CASE position({digest} IN l.digests) % 32 WHEN 1 THEN true ELSE position({digest} IN l.digests) > 0 AND EXISTS
           (SELECT 1 FROM generate_series(1, octet_length(l.digests), 32) AS i WHERE substr(l.digests, i, 32) = {digest})
          END)"
    )
}

impl PostgresSnapshot<'_> {
    /// Returns the mention of an artifact in the form of the interface.
    pub(super) fn mention(&self, artifact: CoreHash, entry: &ListedMention) -> PostgresResult<MentionRecord> {
        let role = self.names.role(&self.session, entry.role)?;
        Ok(MentionRecord {
            artifact,
            role: role.name.clone(),
            unit: role.unit.clone(),
            place: entry.place.clone(),
            digest: entry.digest,
        })
    }

    /// Returns the entries of lists by artifact, without those that several captures have in common. The rows have the
    /// core hash, the digests and the entries.
    fn entries_by_artifact(
        &self,
        sql: &str,
        parameters: &[SqlParameter],
        is_requested: impl Fn(&Digest) -> bool,
    ) -> PostgresResult<BTreeMap<CoreHash, BTreeSet<ListedMention>>> {
        let mut found: BTreeMap<CoreHash, BTreeSet<ListedMention>> = BTreeMap::new();
        self.session.each(sql, parameters, &mut |row| {
            let entries = lists::decode(row.bytes(1)?, row.bytes(2)?)?;
            let entries = entries.into_iter().filter(|entry| is_requested(&entry.digest));
            found.entry(row.core(0)?).or_default().extend(entries);
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the mentions of digests, by artifact, role and place; only those of `among`, if it is given.
    pub(super) fn mentions_with(
        &self,
        digests: &[Digest],
        group: Option<&str>,
        among: Option<&[CoreHash]>,
    ) -> PostgresResult<HashMap<Digest, Vec<MentionRecord>>> {
        let mut parameters = vec![digests.iter().map(Digest::key).collect(), group.into()];
        let sql = if let Some(among) = among {
            parameters.push(among.into());
            // The artifacts are few and the mentions may be many, which the server does not know: `OFFSET 0` keeps it from
            // beginning with the keys.
            format!(
                "SELECT a.core, l.digests, l.entries FROM artifact a JOIN capture c ON c.artifact = a.id
                   JOIN mention_list l ON l.capture = c.id
                  WHERE a.core = ANY($3) AND {IN_GROUP} AND EXISTS
                        (SELECT 1 FROM mention_key k WHERE k.key = ANY($1) AND k.capture = l.capture OFFSET 0)"
            )
        } else {
            format!(
                "SELECT a.core, l.digests, l.entries FROM mention_list l
                   JOIN capture c ON c.id = l.capture JOIN artifact a ON a.id = c.artifact
                  WHERE (l.capture, l.group_id) IN
                        (SELECT k.capture, k.group_id FROM mention_key k WHERE k.key = ANY($1))
                    AND {IN_GROUP}"
            )
        };
        let requested: BTreeSet<&Digest> = digests.iter().collect();
        let found = self.entries_by_artifact(&sql, &parameters, |digest| requested.contains(digest))?;
        let mut mentions: HashMap<Digest, Vec<MentionRecord>> = HashMap::new();
        for (core, entries) in found {
            for entry in &entries {
                mentions.entry(entry.digest).or_default().push(self.mention(core, entry)?);
            }
        }
        for mentions in mentions.values_mut() {
            sort_mentions_by_artifact(mentions);
        }
        Ok(mentions)
    }

    /// Returns the artifacts, of those with these numbers, and the ones that they contain.
    pub(super) fn with_contained(&self, of: &[NumberedArtifact]) -> PostgresResult<ContainedArtifacts> {
        let sql = "SELECT DISTINCT a.core, e.target, t.id FROM artifact a JOIN edge e ON e.artifact = a.id
                     JOIN role r ON r.id = e.role JOIN artifact t ON t.core = e.target
                    WHERE a.core = ANY($1) AND r.relation = $2 AND t.id <> a.id";
        let mut found: ContainedArtifacts =
            of.iter().map(|artifact| (artifact.core, BTreeSet::from([*artifact]))).collect();
        let cores = of.iter().map(|artifact| artifact.core).collect();
        for row in self.session.rows(sql, &[cores, relation::CONTAINS.into()])? {
            let part = NumberedArtifact { core: row.core(1)?, number: row.integer(2)? };
            found.entry(row.core(0)?).or_default().insert(part);
        }
        Ok(found)
    }
}

impl MentionQueries for PostgresSnapshot<'_> {
    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        let sql = format!(
            "SELECT a.core, l.digests, l.entries
               FROM artifact a JOIN capture c ON c.artifact = a.id JOIN mention_list l ON l.capture = c.id
              WHERE a.core = ANY($1) AND {IN_GROUP}"
        );
        let read = || {
            let mut found = HashMap::new();
            for (core, entries) in self.entries_by_artifact(&sql, &[of.into(), group.into()], |_| true)? {
                let mentions = entries.iter().map(|entry| self.mention(core, entry));
                let mut mentions: Vec<MentionRecord> = mentions.collect::<PostgresResult<_>>()?;
                sort_mentions(&mut mentions);
                found.insert(core, mentions);
            }
            Ok(in_order(of, &found))
        };
        self.answer(read())
    }

    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        let found = self.answer(self.mentions_with(digests, group, None))?;
        Ok(in_order(digests, &found))
    }

    /// The key of a digest leads to the lists of few others.
    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>> {
        let sql = "SELECT DISTINCT m.key, a.core FROM mention_key m JOIN capture c ON c.id = m.capture
                     JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
                    WHERE m.key = ANY(?1) AND k.name = ANY(?2) ORDER BY a.core";
        let keys: Vec<i64> = digests.iter().map(Digest::key).collect();
        let rows = self.read_rows(sql, &[keys.as_slice().into(), kinds.into()], |row| {
            Ok((row.integer(0)?, row.core(1)?))
        })?;
        let mut found: HashMap<i64, Vec<CoreHash>> = HashMap::new();
        for (key, core) in rows {
            found.entry(key).or_default().push(core);
        }
        Ok(in_order(&keys, &found))
    }

    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>> {
        let sql = format!(
            "SELECT DISTINCT d.digest
               FROM mention_list l, generate_series(1, octet_length(l.digests), 32) AS i,
                    LATERAL (SELECT substr(l.digests, i, 32) AS digest) d
              WHERE (l.capture, l.group_id) IN
                    (SELECT k.capture, k.group_id FROM mention_key k WHERE k.key BETWEEN ?3 AND ?4)
                AND {IN_GROUP} AND d.digest BETWEEN ?1 AND ?5
              ORDER BY 1 LIMIT ?6"
        );
        let (low, high) = prefix.range();
        let keys = (low.key().into(), high.key().into());
        let parameters = [(&low).into(), group.into(), keys.0, keys.1, (&high).into(), limit.into()];
        self.read_rows(&sql, &parameters, |row| row.digest(0))
    }

    fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>> {
        let sql = "SELECT substr(l.firsts, i, 32)
                     FROM mention_list l JOIN capture c ON c.id = l.capture,
                          generate_series(1, octet_length(l.firsts), 32) AS i
                    WHERE l.firsts IS NOT NULL
                      AND l.group_id = (SELECT min(r.group_id) FROM role r WHERE r.role_group = ?1)
                    GROUP BY 1 HAVING count(DISTINCT c.artifact) > 1 ORDER BY 1";
        self.read_rows(sql, &[group.into()], |row| row.digest(0))
    }

    fn pairs(&self) -> Option<&dyn PairQueries> {
        Some(self)
    }
}

impl PairQueries for PostgresSnapshot<'_> {
    fn sharers(&self, query: &SharersQuery<'_>) -> Result<Sharers> {
        self.answer(Self::sharers(self, query))
    }
}

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
        let (group, digest) = mention;
        self.answer(self.page_of_mention(group, digest, order, page))
    }
}
