//! Pages of the artifacts that mention one digest, which is the look-up by the prompt or the response of a model, and those
//! that mention both digests of pairs.
//!
//! The best plan depends on how many artifacts mention the digest, which a plan that the server makes once cannot know. So
//! there are two statements. The first returns everything if the digest has few keys, which is what nearly all digests have.
//! The other one counts keys, and then either collects and sorts the artifacts, or examines artifacts in the order of the
//! page until it is full.

use std::collections::{BTreeMap, BTreeSet};

use super::mentions::list_has;
use crate::digest::{CoreHash, Digest};
use crate::storage::TimeBasis;
use crate::storage::interface::{
    ArtifactRecord, Cursor, Hit, HitPage, Match, MentionRecord, Order, Page, Sharers, SharersQuery,
    sort_mentions, sort_mentions_by_artifact,
};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::{self, ListedMention};
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::sql::{
    ARTIFACT, Dialect, PAGE_COLUMNS, SortExpression, SqlParameter, SqlRow, SqlSession as _,
    StatementParameters, page_artifact,
};

/// The columns with a list and its entries.
const DIGESTS: usize = 7;
const ENTRIES: usize = 8;

/// Maximum number of keys of a digest whose artifacts are all read at once.
const FEW: usize = 100;

/// Maximum number of artifacts on a page that is found by counting keys. Larger ones are a large part of the vault anyway.
const MAX_PAGE: usize = 10_000;

/// The column that says that a digest has more than [`FEW`] keys.
const ARE_MANY: usize = 9;

/// A digest that artifacts mention, in the roles of a group or in any.
#[derive(Clone, Copy)]
struct MentionedDigest {
    group: Option<i64>,
    digest: Digest,
}

impl PostgresSnapshot<'_> {
    /// Returns a page of the artifacts that mention a digest in the roles of a group, or of any; `None` if they cannot be read
    /// in the order, or if they are many and the page is large.
    pub(super) fn page_of_mention(
        &self,
        group: Option<&str>,
        digest: Digest,
        order: Order,
        page: &Page,
    ) -> PostgresResult<Option<HitPage<Hit>>> {
        if matches!(order, Order::Kind | Order::Largest(_) | Order::Newest(TimeBasis::Finished)) {
            return Ok(None);
        }
        let group = match group {
            None => None,
            Some(group) => match self.names.group(&self.session, group)? {
                None => return Ok(Some(HitPage { items: Vec::new(), next: None })),
                found => found,
            },
        };
        let mentioned = MentionedDigest { group, digest };
        let mut parameters = StatementParameters::default();
        let sql = of_few(&mut parameters, mentioned, order, page);
        let mut rows = self.session.rows(&sql, parameters.values())?;
        let are_many = rows.first().map_or(Ok(false), |row| row.flag(ARE_MANY))?;
        if are_many && page.limit > MAX_PAGE {
            return Ok(None);
        }
        if are_many {
            let mut parameters = StatementParameters::default();
            let sql = of_many(&mut parameters, mentioned, order, page);
            rows = self.session.rows(&sql, parameters.values())?;
        }
        self.hits(&rows, digest, order, page).map(Some)
    }

    /// Returns the page in rows, of which an artifact has one for each of its lists.
    fn hits(
        &self,
        rows: &[SqlRow],
        digest: Digest,
        order: Order,
        page: &Page,
    ) -> PostgresResult<HitPage<Hit>> {
        let mut found: Vec<MentionPageArtifact> = Vec::new();
        for row in rows {
            // There is a row without an artifact if there is none.
            let Some(digests) = row.optional_bytes(DIGESTS)? else { continue };
            let entries = lists::decode(digests, row.bytes(ENTRIES)?)?.into_iter();
            let mut entries = entries.filter(|entry| entry.digest == digest).peekable();
            // A key is no proof.
            if entries.peek().is_none() {
                continue;
            }
            let (artifact, place) = page_artifact(row, order)?;
            if found.last().is_none_or(|last| last.artifact.core != artifact.core) {
                found.push(MentionPageArtifact { artifact, place, entries: BTreeSet::new() });
            }
            if let Some(last) = found.last_mut() {
                last.entries.extend(entries);
            }
        }
        let is_more = found.len() > page.limit;
        found.truncate(page.limit);
        let next = found.last().filter(|_| is_more).map(|last| last.place.clone());
        let items = found.into_iter().map(|found| self.hit(found)).collect::<PostgresResult<_>>()?;
        Ok(HitPage { items, next })
    }

    fn hit(&self, found: MentionPageArtifact) -> PostgresResult<Hit> {
        let MentionPageArtifact { artifact, entries, .. } = found;
        let mentions = entries.iter().map(|entry| self.mention(artifact.core, entry));
        let mut mentions = mentions.collect::<PostgresResult<Vec<_>>>()?;
        sort_mentions_by_artifact(&mut mentions);
        Ok(Hit { artifact, matches: mentions.into_iter().map(Match::Mention).collect() })
    }
}

/// An artifact of a page.
struct MentionPageArtifact {
    artifact: ArtifactRecord,
    place: Cursor,
    /// Where it mentions the digest.
    entries: BTreeSet<ListedMention>,
}

/// The terms that the statements for a page share.
struct MentionSqlTerms {
    /// The parameter with the key of the digest.
    key: String,
    /// The condition that the list `l` is of the group.
    of_group: String,
    /// The condition that the artifact `a` comes after the beginning of the page.
    after: String,
    /// The expression that artifacts are sorted by.
    value: String,
    order_by: String,
}

impl MentionSqlTerms {
    fn new(
        parameters: &mut StatementParameters,
        MentionedDigest { group, digest }: MentionedDigest,
        order: Order,
        page: &Page,
    ) -> Self {
        let sorting = SortExpression::new(Dialect::Postgres, order, parameters);
        let key = parameters.bind(digest.key());
        let of_group = group.map(|group| format!("AND l.group_id = {}", parameters.bind(group)));
        let after = page.after.as_ref().map(|after| sorting.after(Dialect::Postgres, after, parameters));
        let after = after.map(|after| format!("AND {after}"));
        let (value, order_by) = (sorting.value().to_owned(), sorting.order_by(Dialect::Postgres));
        Self {
            key,
            of_group: of_group.unwrap_or_default(),
            after: after.unwrap_or_default(),
            value,
            order_by,
        }
    }
}

/// Returns the statement for all artifacts after the beginning of a page, if the digest has few keys. There is a row for each
/// list that a key leads to, and one without an artifact if there is none.
fn of_few(
    parameters: &mut StatementParameters,
    mentioned: MentionedDigest,
    order: Order,
    page: &Page,
) -> String {
    let MentionSqlTerms { key, of_group, after, value, order_by } =
        MentionSqlTerms::new(parameters, mentioned, order, page);
    // The server guesses the same number of elements for all arrays, so that a plan that it makes once costs no more than one
    // for the digest, and it makes no others. `OFFSET 0` keeps the subquery from being read if the keys are many.
    format!(
        "WITH found AS MATERIALIZED
           (SELECT ARRAY(SELECT k.capture FROM mention_key k WHERE k.key = {key} LIMIT {FEW} + 1) AS captures)
         SELECT a.*, cardinality(f.captures) > {FEW}
           FROM found f LEFT JOIN LATERAL
             (SELECT {PAGE_COLUMNS}, {value} AS sort_value, l.digests, l.entries
                FROM mention_list l JOIN capture c ON c.id = l.capture JOIN artifact a ON a.id = c.artifact
               WHERE cardinality(f.captures) <= {FEW} AND l.capture = ANY(f.captures) {of_group} {after} OFFSET 0) a ON true
          ORDER BY {order_by}"
    )
}

/// Returns the statement for a page and one artifact more. An artifact has a row for each list with the digest.
fn of_many(
    parameters: &mut StatementParameters,
    mentioned: MentionedDigest,
    order: Order,
    page: &Page,
) -> String {
    let MentionSqlTerms { key, of_group, after, value, order_by } =
        MentionSqlTerms::new(parameters, mentioned, order, page);
    let has_digest = list_has(&parameters.bind(mentioned.digest));
    // As a part of the text: a plan for any limit is one for a large part of the vault.
    let limit = page.limit.saturating_add(1);
    // Reading an artifact in order costs less than collecting one by its key. At about this number of mentions among
    // `max(id)` artifacts, both ways of filling the page cost the same. Keys are read only if they are few, because keeping
    // thousands of them costs more than skipping them. `OFFSET 0` keeps subqueries as they are.
    format!(
        "WITH most AS MATERIALIZED
           (SELECT 1000 + sqrt(0.3::float8 * {limit} * coalesce(max(id), 0)) AS number FROM artifact),
         keys AS MATERIALIZED
           (SELECT k.capture FROM mention_key k WHERE k.key = {key}
             LIMIT (SELECT 1 + least(number, 1e15)::bigint FROM most)),
         few AS MATERIALIZED
           (SELECT NOT EXISTS (SELECT 1 FROM mention_key k WHERE k.key = {key}
                                OFFSET (SELECT least(number, 1e15)::bigint FROM most)) AS are_few)
         SELECT a.*, m.digests, m.entries
           FROM ((SELECT {PAGE_COLUMNS}, {value} AS sort_value FROM artifact a
                   WHERE (SELECT are_few FROM few) AND a.id IN
                         (SELECT c.artifact FROM keys k
                            JOIN mention_list l ON l.capture = k.capture {of_group}
                            JOIN capture c ON c.id = k.capture
                           WHERE {has_digest}) {after}
                   ORDER BY {order_by} LIMIT {limit})
                 UNION ALL
                 (SELECT {PAGE_COLUMNS}, {value} AS sort_value FROM artifact a
                   WHERE NOT (SELECT are_few FROM few) AND EXISTS
                         (SELECT 1 FROM capture c JOIN mention_list l ON l.capture = c.id {of_group}
                           WHERE c.artifact = a.id AND {has_digest} OFFSET 0) {after}
                   ORDER BY {order_by} LIMIT {limit})) a
           LEFT JOIN LATERAL
             (SELECT l.digests, l.entries FROM capture c JOIN mention_list l ON l.capture = c.id
               WHERE c.artifact = a.id {of_group} AND {has_digest} OFFSET 0) m ON true
          ORDER BY {order_by}"
    )
}

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
