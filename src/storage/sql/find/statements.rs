//! The statements that read a page of artifacts.

use std::cell::OnceCell;

use super::super::ceil_millis;
use super::super::dialect::ReadFirst;
use super::super::{Dialect, SqlRow, SqlSession, StatementParameters};
use super::conditions::{beginning_with, of_kinds, selecting};
use super::order::{PAGE_COLUMNS, SortExpression, number_of, page_artifact};
use super::{
    BUDGET, ConditionRows, FEW, FindSnapshot, MAX_PAGE, PlacedHit, READ, RequiredMention, ResolvedCondition,
    ResolvedQuery, SearchedArtifacts,
};
use crate::artifact::FINISHED_AT;
use crate::storage::interface::{ArtifactRecord, Condition, Cursor, Filter, Order, TimePeriod};
use crate::storage::{Result, TimeBasis};

/// An artifact with its place in the order.
pub(super) struct PlacedArtifact {
    pub(super) artifact: ArtifactRecord,
    pub(super) place: Cursor,
    /// Whether it satisfies the conditions that the statement examined.
    pub(super) is_match: bool,
}

/// A part of the artifacts in the order of the page.
#[derive(Clone, Copy, Default)]
pub(super) struct PageStatement<'p> {
    /// The artifacts among which it looks; those that are first in the order if `None`.
    pub(super) among: Option<&'p SearchedArtifacts>,
    /// The only kind; those of the filter if `None`.
    pub(super) kind: Option<&'p str>,
    /// The number of an attribute that all have, or that none has one. They are read in the order of their arrival.
    pub(super) number: Option<AttributeNumber>,
    pub(super) after: Option<&'p Cursor>,
    pub(super) size: usize,
}

/// The position of the column of [`is_match`].
const MATCHES: usize = 7;

/// Reads up to a number of artifacts after a place.
type ReadArtifacts<'r> = dyn Fn(Option<&Cursor>, usize) -> Result<Vec<PlacedArtifact>> + 'r;

/// The number of hits that are wanted, and of artifacts that are examined for them: at first and at most.
#[derive(Clone, Copy)]
struct PageSize {
    limit: usize,
    first: usize,
    budget: usize,
}

/// The number of an attribute; `None` if artifacts have none.
#[derive(Clone, Copy)]
pub(super) struct AttributeNumber {
    pub(super) name: &'static str,
    pub(super) number: Option<i64>,
}

impl<'q, S: FindSnapshot> ResolvedQuery<'q, S> {
    pub(super) fn new(snapshot: &'q S, filter: &'q Filter, order: Order) -> Result<Self> {
        let resolved = |condition: &'q Condition| {
            let (group, digest) = match condition {
                Condition::Mention { group, digest } => (group.as_deref(), *digest),
                Condition::About { digest } => (None, *digest),
                _ => return Ok(ResolvedCondition { condition, mention: None }),
            };
            let few = snapshot.captures_mentioning(digest, FEW)?;
            let captures = few.map_or_else(OnceCell::new, OnceCell::from);
            let mention = Some(RequiredMention { group, digest, captures });
            Ok(ResolvedCondition { condition, mention })
        };
        let conditions = filter.conditions.iter().map(resolved).collect::<Result<_>>()?;
        Ok(Self { snapshot, filter, order, conditions, budget: BUDGET })
    }

    /// Returns whether a statement finds exactly the artifacts that match a condition.
    pub(super) fn is_stated(&self, condition: &ResolvedCondition<'_>) -> bool {
        S::FINDS_MENTIONS || (!self.filter.through_members && condition.mention.is_none())
    }

    /// Returns whether a statement finds exactly the artifacts that match.
    pub(super) fn is_exact(&self) -> bool {
        let all = self.conditions.iter().all(|condition| self.is_stated(condition));
        all && self.filter.among.is_none()
    }

    /// Returns the artifacts `a` that match, for a statement that reads all of them.
    pub(super) fn matching(&self, parameters: &mut StatementParameters) -> Result<String> {
        let mut all = selecting(S::Session::DIALECT, self.filter, parameters);
        all.extend(self.contained(parameters)?);
        let artifacts = match &self.filter.among {
            Some(among) => S::Session::DIALECT.artifacts(&parameters.bind(&among[..])),
            None => "artifact a".to_owned(),
        };
        Ok(format!("{artifacts} WHERE {}", all.join(" AND ")))
    }

    /// Returns the conditions that the artifact `a` is one of those with rows.
    fn contained(&self, parameters: &mut StatementParameters) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for condition in &self.conditions {
            let rows = self.rows(condition, ReadFirst::Condition, parameters)?.query();
            if !self.filter.through_members {
                all.push(format!("a.id IN ({rows})"));
            } else if let Some(artifacts) = self.snapshot.with_containers_query(&rows, parameters) {
                all.push(format!("a.id IN ({artifacts})"));
            }
        }
        Ok(all)
    }

    /// Returns the conditions that the artifact `a` has rows, but for the condition at the position `except`.
    pub(super) fn examined(
        &self,
        except: Option<usize>,
        parameters: &mut StatementParameters,
    ) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for (position, condition) in self.conditions.iter().enumerate() {
            if self.is_stated(condition) && except != Some(position) {
                let rows = self.rows(condition, ReadFirst::Artifact, parameters)?;
                all.push(rows.has_artifact(S::Session::DIALECT));
            }
        }
        Ok(all)
    }

    /// Reads the hits after a place, in the order of the page, until there are `limit`.
    pub(super) fn read(&mut self, after: Option<&Cursor>, limit: usize) -> Result<Vec<PlacedHit>> {
        if self.filter.among.is_some() {
            return self.read_among(&SearchedArtifacts::Among, after, limit);
        }
        let most = if S::FINDS_MENTIONS { MAX_PAGE } else { BUDGET };
        let is_large = limit > most.saturating_add(1);
        let all = |query: &Self| query.read_among(&query.all()?, after, limit);
        if !self.conditions.is_empty() && (S::FINDS_MENTIONS && self.filter.through_members || is_large) {
            return all(self);
        }
        for budget in [FEW, BUDGET] {
            if let Some(few) = self.fewest(budget)? {
                return self.read_among(&few, after, limit);
            }
            self.budget = if is_large { usize::MAX } else { budget };
            if let Some(found) = self.read_in_order(after, limit)? {
                return Ok(found);
            }
        }
        all(self)
    }

    /// Returns all artifacts that match, in whatever way the database finds them.
    fn all(&self) -> Result<SearchedArtifacts> {
        if S::FINDS_MENTIONS || !self.filter.through_members {
            return Ok(SearchedArtifacts::All);
        }
        Ok(self.fewest(u32::MAX as usize)?.unwrap_or(SearchedArtifacts::All))
    }

    /// Returns the artifacts that can match the condition which the fewest can, if these are at most `limit`.
    fn fewest(&self, limit: usize) -> Result<Option<SearchedArtifacts>> {
        let mut parameters = StatementParameters::default();
        let (mut sources, mut queries) = (Vec::new(), Vec::new());
        for (position, condition) in self.conditions.iter().enumerate() {
            // A long list is not passed to a statement that only counts it, and not even read if it is known to be long.
            let is_long = match &condition.mention {
                Some(mention) if limit > FEW => mention.captures(self.snapshot)?.len() > limit,
                Some(mention) => mention.known_captures().is_none(),
                None => false,
            };
            if is_long {
                continue;
            }
            sources.push(SearchedArtifacts::Matching(position));
            queries.push(self.rows(condition, ReadFirst::Condition, &mut parameters)?.query());
        }
        if S::Session::DIALECT == Dialect::Sqlite {
            for source in self.indexed() {
                queries.push(self.searched(&source, &mut parameters)?);
                sources.push(source);
            }
        }
        if sources.is_empty() {
            return Ok(None);
        }
        let most = limit.saturating_add(1);
        let count =
            |query: &String| format!("(SELECT count(*) FROM (SELECT 1 FROM ({query}) x LIMIT {most}) y)");
        let sql = format!("SELECT {}", queries.iter().map(count).collect::<Vec<_>>().join(", "));
        let row = self.snapshot.rows_planned_for(&sql, &parameters)?.pop();
        let counts =
            (0..sources.len()).map(|column| row.as_ref().map_or(Ok(0), |row| Ok(row.count(column)?)));
        let counts: Vec<u64> = self.snapshot.answer(counts.collect())?;
        let fewest = sources.into_iter().zip(counts).min_by_key(|(_, count)| *count);
        let fewest = fewest.filter(|(_, count)| *count <= limit as u64).map(|(source, _)| source);
        fewest.map(|source| self.with_containers(source)).transpose()
    }

    /// Returns the artifacts that an index selects which does not have them in the order of the page.
    fn indexed(&self) -> Vec<SearchedArtifacts> {
        let is_by_arrival = matches!(self.order, Order::Kind | Order::Newest(TimeBasis::LastSeen));
        let digits = self.filter.digits.as_ref().filter(|digits| !digits.is_empty());
        let digits = digits.map(|_| SearchedArtifacts::WithDigits);
        let kinds = (!is_by_arrival && !self.filter.kinds.is_empty()).then_some(SearchedArtifacts::OfKinds);
        digits.into_iter().chain(kinds).collect()
    }

    /// Adds the artifacts that contain one of those of `source`, if they match through it and no statement does that.
    fn with_containers(&self, source: SearchedArtifacts) -> Result<SearchedArtifacts> {
        if S::FINDS_MENTIONS
            || !self.filter.through_members
            || !matches!(source, SearchedArtifacts::Matching(_))
        {
            return Ok(source);
        }
        let mut parameters = StatementParameters::default();
        let sql = self.searched(&source, &mut parameters)?;
        let rows = self.snapshot.rows_planned_for(&sql, &parameters)?;
        let numbers = rows.iter().map(|row| Ok(row.integer(0)?));
        let mut numbers: Vec<i64> = self.snapshot.answer(numbers.collect())?;
        self.snapshot.add_containers(&mut numbers)?;
        Ok(SearchedArtifacts::Numbered(numbers))
    }

    /// Returns the query for the numbers of the artifacts of `source`.
    fn searched(&self, source: &SearchedArtifacts, parameters: &mut StatementParameters) -> Result<String> {
        let dialect = S::Session::DIALECT;
        let selected = match source {
            SearchedArtifacts::Matching(position) => {
                let Some(condition) = self.conditions.get(*position) else { return Ok(String::new()) };
                let ConditionRows { tables, condition } =
                    self.rows(condition, ReadFirst::Condition, parameters)?;
                let apart = dialect.kept_apart();
                return Ok(format!("SELECT DISTINCT x.artifact FROM {tables} WHERE {condition} {apart}"));
            }
            SearchedArtifacts::WithDigits => {
                beginning_with(dialect, self.filter.digits.as_deref().unwrap_or_default(), parameters)
            }
            SearchedArtifacts::OfKinds => of_kinds(dialect, &self.filter.kinds, parameters),
            SearchedArtifacts::Numbered(numbers) => dialect.is_in("a.id", &parameters.bind(&numbers[..])),
            SearchedArtifacts::Among | SearchedArtifacts::All => "true".to_owned(),
        };
        Ok(format!("SELECT a.id AS artifact FROM artifact a WHERE {selected}"))
    }

    /// Reads the hits among some artifacts.
    fn read_among(
        &self,
        among: &SearchedArtifacts,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<PlacedHit>> {
        let page = PageStatement { among: Some(among), ..PageStatement::default() };
        let read = |after: Option<&Cursor>, size| match self.order {
            Order::Kind => self.by_kind(PageStatement { after, size, ..page }),
            _ => self.run(PageStatement { after, size, ..page }),
        };
        let first = first_size(limit, self.is_exact());
        let size = PageSize { limit, first, budget: usize::MAX };
        self.collect(after, size, &read).map(Option::unwrap_or_default)
    }

    /// Reads the hits in the order of the page; nothing if too many artifacts would have to be examined for that.
    fn read_in_order(&self, after: Option<&Cursor>, limit: usize) -> Result<Option<Vec<PlacedHit>>> {
        let page = PageStatement::default();
        let read = |after: Option<&Cursor>, size| match self.order {
            Order::Kind => self.by_kind(PageStatement { after, size, ..page }),
            Order::Newest(TimeBasis::LastSeen) => self.by_arrival(PageStatement { after, size, ..page }),
            Order::Newest(TimeBasis::Finished) => self.by_number(FINISHED_AT, after, size),
            Order::Largest(name) => self.by_number(name, after, size),
            _ => self.run(PageStatement { after, size, ..page }),
        };
        let are_matches = self.is_exact() && (self.conditions.is_empty() || S::FINDS_MENTIONS);
        let size = PageSize { limit, first: first_size(limit, are_matches), budget: self.budget };
        let found = self.collect(after, size, &read)?;
        let are_all = !S::FINDS_MENTIONS || self.conditions.is_empty();
        // A statement that examines a limited number of artifacts may have found too few.
        Ok(found.filter(|found| are_all || found.len() >= limit))
    }

    /// Reads artifacts with `read` until `limit` of them match. Returns nothing if it seems to take long.
    fn collect(
        &self,
        after: Option<&Cursor>,
        PageSize { limit, first, budget }: PageSize,
        read: &ReadArtifacts<'_>,
    ) -> Result<Option<Vec<PlacedHit>>> {
        let mut after = after.cloned();
        let (mut found, mut examined) = (Vec::new(), 0);
        let mut size = first;
        loop {
            let mut artifacts = read(after.as_ref(), size)?;
            let is_last = artifacts.len() < size;
            examined += artifacts.len();
            after = artifacts.last().map(|last| last.place.clone());
            artifacts.retain(|artifact| artifact.is_match);
            found.append(&mut self.hits(artifacts)?);
            if found.len() >= limit || is_last {
                found.truncate(limit);
                return Ok(Some(found));
            }
            if examined > budget && found.len() < limit / 2 {
                return Ok(None);
            }
            size = size.saturating_mul(2).min(READ.1.max(limit));
        }
    }

    /// Reads artifacts of one kind after the other.
    fn by_kind(&self, page: PageStatement<'_>) -> Result<Vec<PlacedArtifact>> {
        let sql = "SELECT k.name FROM kind k ORDER BY 1";
        let rows = self.snapshot.rows_planned_for(sql, &StatementParameters::default())?;
        let names: Vec<String> = self.snapshot.answer(rows.iter().map(|row| Ok(row.text(0)?)).collect())?;
        let begun = page.after.and_then(|after| after.kind.as_ref());
        let mut found = Vec::new();
        for name in &names {
            let is_selected = self.filter.kinds.is_empty() || self.filter.kinds.contains(name);
            if !is_selected || begun.is_some_and(|begun| name < begun) {
                continue;
            }
            let after = page.after.filter(|_| begun == Some(name));
            let size = page.size - found.len();
            found.append(&mut self.run(PageStatement { kind: Some(name), after, size, ..page })?);
            if found.len() >= page.size {
                break;
            }
        }
        Ok(found)
    }

    /// Reads artifacts in the order of their arrival: an index has that of each kind.
    pub(super) fn by_arrival(&self, page: PageStatement<'_>) -> Result<Vec<PlacedArtifact>> {
        let mut kinds: Vec<Option<&str>> = self.filter.kinds.iter().map(|kind| Some(kind.as_str())).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.is_empty() {
            kinds.push(None);
        }
        let mut all = Vec::new();
        for kind in kinds {
            all.append(&mut self.run(PageStatement { kind, ..page })?);
        }
        all.sort_by_key(|PlacedArtifact { artifact, .. }| {
            (std::cmp::Reverse(artifact.arrival), artifact.core)
        });
        all.truncate(page.size);
        Ok(all)
    }

    /// Runs a statement.
    pub(super) fn run(&self, page: PageStatement<'_>) -> Result<Vec<PlacedArtifact>> {
        let dialect = S::Session::DIALECT;
        let mut parameters = StatementParameters::default();
        let sorting = match page.number {
            Some(_) => SortExpression::by_arrival(),
            None => SortExpression::new(dialect, self.order, &mut parameters),
        };
        let value = match page.number {
            Some(AttributeNumber { number: Some(number), .. }) => number.to_string(),
            Some(_) => "NULL".to_owned(),
            None => sorting.value().to_owned(),
        };
        let mut selected = self.selected(&page, &mut parameters)?;
        selected.extend(page.after.map(|after| sorting.after(dialect, after, &mut parameters)));
        let order_by = sorting.order_by(dialect);
        let sorted = SortedArtifacts { value, order_by, selected };
        let sql = self.statement(&page, sorted, &mut parameters)?;
        self.placed(&sql, &parameters)
    }

    /// Returns the artifacts that a query returns.
    pub(super) fn placed(&self, sql: &str, parameters: &StatementParameters) -> Result<Vec<PlacedArtifact>> {
        let rows = self.snapshot.rows_planned_for(sql, parameters)?;
        let placed = |row: &SqlRow| {
            let (artifact, place) = page_artifact(row, self.order)?;
            let is_match = row.0.len() <= MATCHES || row.flag(MATCHES)?;
            Ok(PlacedArtifact { artifact, place, is_match })
        };
        self.snapshot.answer(rows.iter().map(placed).collect())
    }

    /// Returns the conditions on the artifact `a` but for those of the filter on its rows.
    fn selected(
        &self,
        page: &PageStatement<'_>,
        parameters: &mut StatementParameters,
    ) -> Result<Vec<String>> {
        let dialect = S::Session::DIALECT;
        let mut selected = selecting(dialect, self.filter, parameters);
        if let Some(kind) = page.kind {
            selected
                .push(format!("a.kind = (SELECT k.id FROM kind k WHERE k.name = {})", parameters.bind(kind)));
        }
        if let Some(AttributeNumber { name, number }) = page.number {
            let its_number = number_of(dialect, &parameters.bind(name));
            selected.push(match number {
                Some(number) => format!("{its_number} = {}", parameters.bind(number)),
                None => format!("{its_number} IS NULL"),
            });
        }
        if page.among.is_none() && dialect == Dialect::Sqlite {
            selected.extend(self.arrival_bounds(parameters)?);
        }
        Ok(selected)
    }

    /// Returns the statement of a page.
    fn statement(
        &self,
        page: &PageStatement<'_>,
        sorted: SortedArtifacts,
        parameters: &mut StatementParameters,
    ) -> Result<String> {
        let limit = parameters.bind(page.size);
        let SortedArtifacts { value, order_by, mut selected } = sorted;
        let (mut from, mut value, mut match_column) = (self.in_order().to_owned(), value, String::new());
        if let Some(among) = page.among {
            let (some, mut conditions) = self.among(among, parameters)?;
            selected.append(&mut conditions);
            from = some;
        } else {
            let examined = self.examined(None, parameters)?;
            if S::Session::DIALECT == Dialect::Sqlite {
                match_column = is_match(&examined);
            } else if !examined.is_empty() {
                let inner = std::mem::replace(&mut selected, examined).join(" AND ");
                // The order is that of the columns of the result, so that nothing is sorted.
                from = format!(
                    "(SELECT a.*, {value} AS sort_value FROM artifact a WHERE {inner} ORDER BY {order_by} LIMIT {}) a",
                    self.budget
                );
                "a.sort_value".clone_into(&mut value);
            }
        }
        let selected = selected.join(" AND ");
        Ok(format!(
            "SELECT {PAGE_COLUMNS}, {value} AS sort_value{match_column} FROM {from}
              WHERE {selected} ORDER BY {order_by} LIMIT {limit}"
        ))
    }

    /// Returns the artifacts `a`, for reading them in the order of the page.
    fn in_order(&self) -> &'static str {
        match self.order {
            Order::Newest(TimeBasis::FirstSeen) => S::Session::DIALECT.artifacts_by_addition(),
            _ => "artifact a",
        }
    }

    /// Returns some artifacts `a`, and the conditions of the filter on their rows.
    fn among(
        &self,
        among: &SearchedArtifacts,
        parameters: &mut StatementParameters,
    ) -> Result<(String, Vec<String>)> {
        let dialect = S::Session::DIALECT;
        Ok(match among {
            SearchedArtifacts::All => ("artifact a".to_owned(), self.contained(parameters)?),
            SearchedArtifacts::Among => {
                let conditions = if S::FINDS_MENTIONS && self.filter.through_members {
                    self.contained(parameters)?
                } else {
                    self.examined(None, parameters)?
                };
                let among = self.filter.among.as_deref().unwrap_or_default();
                (dialect.artifacts(&parameters.bind(among)), conditions)
            }
            source => {
                let searched = self.searched(source, parameters)?;
                let position = match source {
                    SearchedArtifacts::Matching(position) => Some(*position),
                    _ => None,
                };
                (dialect.artifacts_of(&searched, "f"), self.examined(position, parameters)?)
            }
        })
    }

    /// Returns the bounds of arrivals in the period, if it is one of the time at which artifacts were last seen, which does not
    /// decrease with their arrival.
    fn arrival_bounds(&self, parameters: &mut StatementParameters) -> Result<Vec<String>> {
        let Some(TimePeriod { basis: TimeBasis::LastSeen, since, until }) = &self.filter.period else {
            return Ok(Vec::new());
        };
        let mut bounds = Vec::new();
        for (comparison, time) in [(">=", since), ("<", until)] {
            if let Some(time) = time {
                let first = self.first_arrival(ceil_millis(*time))?;
                bounds.push(format!("a.arrival {comparison} {}", parameters.bind(first)));
            }
        }
        Ok(bounds)
    }

    /// Returns the first arrival that is not before this time, or the largest number if there is none.
    fn first_arrival(&self, time: i64) -> Result<i64> {
        let sql =
            "SELECT a.seen_at, a.arrival FROM artifact a WHERE a.arrival >= ?1 ORDER BY a.arrival LIMIT 1";
        let (mut low, mut high) = (0_i64, i64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            let rows = self.snapshot.answer(self.snapshot.session().rows(sql, &[middle.into()]))?;
            let found = rows.first().map(|row| Ok((row.integer(0)?, row.integer(1)?)));
            match self.snapshot.answer(found.transpose())? {
                Some((seen, arrival)) if seen < time => low = arrival.max(middle).saturating_add(1),
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

/// Returns the number of artifacts that are read first: as many as are wanted if all of those match.
fn first_size(limit: usize, are_matches: bool) -> usize {
    if are_matches { limit } else { READ.0.max(limit.min(READ.1)) }
}

/// Returns the column that says whether an artifact satisfies conditions, with a comma before it. As a condition of the
/// statement, they would be examined for all artifacts until the page is full.
pub(super) fn is_match(conditions: &[String]) -> String {
    if conditions.is_empty() {
        String::new()
    } else {
        format!(", ({}) AS is_match", conditions.join(" AND "))
    }
}

/// What artifacts are sorted by, and the conditions on them.
struct SortedArtifacts {
    value: String,
    order_by: String,
    selected: Vec<String>,
}
