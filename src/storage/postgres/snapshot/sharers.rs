//! The artifacts that mention both digests of pairs, as one statement.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{MentionRecord, Sharers, SharersQuery, sort_mentions};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::{self, ListedMention};
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::sql::{ARTIFACT, SqlParameter, SqlRow, SqlSession as _};

/// The parts of the answer, whose number follows the columns of artifacts: artifacts, the pairs that they share, and their lists.
const SHARER: i64 = 0;
const PAIR: i64 = 1;
const LIST: i64 = 2;

/// Returns the statement. Its parameters are the keys of the first and of the second digests of the pairs, the kinds to
/// exclude, the groups, the first of them, and the number of artifacts whose lists are wanted.
///
/// For each artifact that mentions the second digest, its captures are checked for the key of the first. `OFFSET 0`
/// keeps the server from collecting all captures that mention the first digest, which may be very many.
fn statement() -> String {
    let no_artifact = "NULL, 0, 0, 0, 0";
    format!(
        "WITH pair AS MATERIALIZED
           (SELECT p.* FROM unnest($1, $2, $3) WITH ORDINALITY AS p (one, other, kind, number)),
         found AS MATERIALIZED
           (SELECT DISTINCT p.number, a.id, a.core
              FROM pair p JOIN mention_key k ON k.key = p.other JOIN capture c ON c.id = k.capture
              JOIN artifact a ON a.id = c.artifact JOIN kind n ON n.id = a.kind
             WHERE n.name <> p.kind AND a.kind IN (SELECT r.kind FROM role r WHERE r.role_group = $5)
               AND EXISTS (SELECT 1 FROM capture d JOIN mention_key m ON m.capture = d.id AND m.key = p.one
                            WHERE d.artifact = a.id OFFSET 0)),
         first AS MATERIALIZED
           (SELECT DISTINCT id, core FROM found ORDER BY core LIMIT $6)
         SELECT {ARTIFACT}, {SHARER} AS part, NULL::bigint AS number, NULL::bytea AS digests, NULL::bytea AS entries
           FROM artifact a JOIN kind k ON k.id = a.kind WHERE a.id IN (SELECT id FROM found)
         UNION ALL
         SELECT f.core, {no_artifact}, {PAIR}, f.number, NULL, NULL FROM found f
         UNION ALL
         SELECT f.core, {no_artifact}, {LIST}, NULL, l.digests, l.entries
           FROM first f JOIN capture c ON c.artifact = f.id JOIN mention_list l ON l.capture = c.id
          WHERE l.group_id IN (SELECT r.group_id FROM role r WHERE r.role_group = ANY($4))"
    )
}

impl PostgresSnapshot<'_> {
    pub(super) fn sharers(&self, query: &SharersQuery<'_>) -> PostgresResult<Sharers> {
        let keys = |which: fn([Digest; 2]) -> Digest| -> SqlParameter {
            query.pairs.iter().map(|pair| which(pair.digests).key()).collect()
        };
        let [first_group, _] = query.groups;
        let parameters = [
            keys(|[one, _]| one),
            keys(|[_, other]| other),
            query.pairs.iter().map(|pair| &*pair.other_than).collect(),
            query.groups[..].into(),
            first_group.into(),
            query.limit.into(),
        ];
        let mut sharers = Sharers { candidates: vec![Vec::new(); query.pairs.len()], ..Sharers::default() };
        let mut entries: BTreeMap<CoreHash, BTreeSet<ListedMention>> = BTreeMap::new();
        for row in self.session.rows(&statement(), &parameters)? {
            match row.integer(6)? {
                SHARER => sharers.artifacts.push(row.artifact()?),
                PAIR => candidates_of(&mut sharers, &row)?.push(row.core(0)?),
                _ => {
                    let list = lists::decode(row.bytes(8)?, row.bytes(9)?)?;
                    entries.entry(row.core(0)?).or_default().extend(list);
                }
            }
        }
        sharers.candidates.iter_mut().for_each(|candidates| candidates.sort_unstable());
        sharers.artifacts.sort_unstable_by_key(|artifact| artifact.core);
        for artifact in sharers.artifacts.iter().take(query.limit) {
            let entries = entries.get(&artifact.core);
            let mut groups = self.by_group(artifact.core, entries, &query.groups)?.into_iter();
            let mentions = [(); 2].map(|()| groups.next().unwrap_or_default());
            sharers.mentions.insert(artifact.core, mentions);
        }
        Ok(sharers)
    }

    /// Returns the entries of an artifact as mentions in the roles of each group.
    pub(super) fn by_group(
        &self,
        artifact: CoreHash,
        entries: Option<&BTreeSet<ListedMention>>,
        groups: &[&str],
    ) -> PostgresResult<Vec<Vec<MentionRecord>>> {
        let mut all = vec![Vec::new(); groups.len()];
        for entry in entries.into_iter().flatten() {
            let group = &self.names.role(&self.session, entry.role)?.group;
            let mention = self.mention(artifact, entry)?;
            for (_, mentions) in groups.iter().zip(&mut all).filter(|(name, _)| *name == group) {
                mentions.push(mention.clone());
            }
        }
        for mentions in &mut all {
            sort_mentions(mentions);
        }
        Ok(all)
    }
}

/// Returns the artifacts that share the pair whose number, from 1, is in a row.
fn candidates_of<'s>(sharers: &'s mut Sharers, row: &SqlRow) -> PostgresResult<&'s mut Vec<CoreHash>> {
    let number = row.integer(7)?;
    let candidates = usize::try_from(number - 1).ok().and_then(|number| sharers.candidates.get_mut(number));
    candidates.ok_or_else(|| PostgresError::damaged("a pair has no number"))
}
