//! Finding artifacts by conditions, in an order, page by page.
//!
//! There are two ways. If few artifacts can match one of the conditions, these are read, ordered and examined.
//! Otherwise a statement selects artifacts by the rows that the conditions require, in the order of the answer, by an
//! index. What they mention, and the texts of notes, are examined until the page is full. If very many are examined
//! before that, the first way is taken after all.

mod conditions;
mod days;
mod numbers;
mod scan;

use std::cmp::{Ordering, Reverse};

use chrono::{DateTime, Utc};

use super::super::read::SqliteSnapshot;
use super::super::rows::{ArtifactId, ArtifactRow};
use crate::artifact::FINISHED_AT;
use crate::storage::interface::{Cursor, Filter, Hit, HitPage, Match, Order, Page};
use crate::storage::{Result, TimeBasis};
use conditions::ResolvedCondition;

/// Maximum number of artifacts that are all examined for one page.
const FEW: usize = 2_000;

/// Maximum number of artifacts that are examined in the order of the answer before all that can match are.
const BUDGET: usize = 100_000;

/// Numbers of artifacts that are read at a time: the first and the largest one.
const READ: (usize, usize) = (64, 4_096);

/// An artifact with its place in the order of the answer.
struct PositionedArtifact {
    row: ArtifactRow,
    place: Cursor,
}

/// A query with what was looked up for it.
struct ResolvedQuery<'q, 's> {
    snapshot: &'q SqliteSnapshot<'s>,
    filter: &'q Filter,
    order: Order,
    /// The row ids of the kinds, by name; all if `None`.
    kinds: Option<Vec<i64>>,
    conditions: Vec<ResolvedCondition<'q>>,
}

impl SqliteSnapshot<'_> {
    /// Returns a page of the artifacts that match `filter`.
    pub(super) fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>> {
        let finder = ResolvedQuery::new(self, filter, order)?;
        let limit = page.limit.saturating_add(1);
        let mut found = match finder.few(if page.limit > BUDGET { usize::MAX } else { FEW })? {
            Some(ids) => finder.examine(ids, page.after.as_ref(), limit)?,
            None => finder.read_in_order(page.after.as_ref(), limit)?,
        };
        let is_more = found.len() > page.limit;
        found.truncate(page.limit);
        let next = found.last().filter(|_| is_more).map(|(_, place)| place.clone());
        Ok(HitPage { items: found.into_iter().map(|(hit, _)| hit).collect(), next })
    }

    /// Returns the number of artifacts that match `filter`.
    pub(super) fn count(&self, filter: &Filter) -> Result<u64> {
        let query = ResolvedQuery::new(self, filter, Order::Core)?;
        if query.is_selection() {
            return query.count();
        }
        Ok(self.find(filter, Order::Core, &Page::all())?.items.len() as u64)
    }
}

impl<'q, 's> ResolvedQuery<'q, 's> {
    fn new(snapshot: &'q SqliteSnapshot<'s>, filter: &'q Filter, order: Order) -> Result<Self> {
        let mut kinds = None;
        if !filter.kinds.is_empty() {
            let mut names = filter.kinds.clone();
            names.sort_unstable();
            names.dedup();
            kinds = Some(snapshot.kind_ids(&names)?);
        }
        let conditions =
            filter.conditions.iter().map(|condition| ResolvedCondition::new(snapshot, condition));
        Ok(Self { snapshot, filter, order, kinds, conditions: conditions.collect::<Result<_>>()? })
    }

    /// Returns the artifacts that can match one of the conditions, if one has at most `limit`.
    fn few(&self, limit: usize) -> Result<Option<Vec<ArtifactId>>> {
        if let Some(among) = &self.filter.among {
            let mut ids = Vec::new();
            for core in among {
                ids.extend(self.snapshot.artifact(*core)?.map(|row| row.id));
            }
            ids.sort_unstable();
            ids.dedup();
            return Ok(Some(ids));
        }
        if let Some(ids) = self.fewest(FEW)? {
            return Ok(Some(ids));
        }
        if let Some(ids) = self.few_by_index(FEW)? {
            return Ok(Some(ids));
        }
        if limit > FEW { self.fewest(usize::MAX - 1) } else { Ok(None) }
    }

    /// Returns the artifacts that can match the condition which the fewest can, if these are at most `limit`.
    fn fewest(&self, limit: usize) -> Result<Option<Vec<ArtifactId>>> {
        let mut fewest: Option<Vec<ArtifactId>> = None;
        for condition in &self.conditions {
            let most = fewest.as_ref().map_or(limit, |ids| ids.len().saturating_sub(1));
            fewest = condition.candidates(self.snapshot, most)?.or(fewest);
        }
        if let Some(ids) = &mut fewest {
            self.add_containers(ids)?;
        }
        Ok(fewest)
    }

    fn add_containers(&self, ids: &mut Vec<ArtifactId>) -> Result<()> {
        if self.filter.through_members {
            let members = ids.clone();
            for member in members {
                ids.extend(self.snapshot.containers_of(member)?);
            }
            ids.sort_unstable();
            ids.dedup();
        }
        Ok(())
    }

    /// Returns whether the artifacts that match are those that a statement selects.
    fn is_selection(&self) -> bool {
        let is_exact = self.conditions.iter().all(ResolvedCondition::is_exact);
        self.filter.among.is_none() && !self.filter.through_members && is_exact
    }

    /// Orders these artifacts and examines them until `limit` are found.
    fn examine(
        &self,
        ids: Vec<ArtifactId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<(Hit, Cursor)>> {
        let mut placed = Vec::new();
        for id in ids {
            let row = self.snapshot.artifact_by_id(id)?;
            if self.is_selected(&row)? {
                placed.push(self.place(row)?);
            }
        }
        placed.retain(|placed| after.is_none_or(|after| self.compare(&placed.place, after).is_gt()));
        placed.sort_by(|one, other| self.compare(&one.place, &other.place));
        let mut found = Vec::new();
        for placed in placed {
            self.take(placed, false, &mut found)?;
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    /// Reads artifacts in the order of the answer until `limit` are found.
    fn read_in_order(&self, after: Option<&Cursor>, limit: usize) -> Result<Vec<(Hit, Cursor)>> {
        let mut found = Vec::new();
        let mut after = after.cloned();
        let (mut size, mut examined) = (READ.0.max(limit.min(READ.1)), 0);
        let begin = after.clone();
        loop {
            let rows = self.scan(after.as_ref(), size)?;
            let is_last = rows.len() < size;
            examined += rows.len();
            for row in rows {
                let placed = self.place(row)?;
                after = Some(placed.place.clone());
                self.take(placed, !self.filter.through_members, &mut found)?;
                if found.len() == limit {
                    return Ok(found);
                }
            }
            if is_last {
                return Ok(found);
            }
            size = (size * 2).min(READ.1);
            if examined > BUDGET
                && found.len() < limit / 2
                && let Some(ids) = self.fewest(usize::MAX - 1)?
            {
                return self.examine(ids, begin.as_ref(), limit);
            }
        }
    }

    /// Adds an artifact to `found` if it matches all conditions. `has_rows` says that it has the rows that they require.
    fn take(&self, placed: PositionedArtifact, has_rows: bool, found: &mut Vec<(Hit, Cursor)>) -> Result<()> {
        let mut matches: Vec<Match> = Vec::new();
        if !self.conditions.is_empty() {
            let parts = self.parts(&placed.row)?;
            for condition in &self.conditions {
                if let Some(certain) = condition.certain_match().filter(|_| has_rows) {
                    matches.push(certain);
                    continue;
                }
                let before = matches.len();
                for part in &parts {
                    matches.append(&mut condition.matches(self.snapshot, *part)?);
                }
                if matches.len() == before {
                    return Ok(());
                }
            }
        }
        found.push((Hit { artifact: placed.row.record(), matches }, placed.place));
        Ok(())
    }

    /// Returns the artifacts whose matches count for an artifact, by core hash.
    fn parts(&self, row: &ArtifactRow) -> Result<Vec<ArtifactId>> {
        if !self.filter.through_members {
            return Ok(vec![row.id]);
        }
        let mut parts = vec![(row.core, row.id)];
        for member in self.snapshot.contained_in(row.id)? {
            parts.push((self.snapshot.core_of(member)?, member));
        }
        parts.sort_unstable();
        parts.dedup();
        Ok(parts.into_iter().map(|(_, id)| id).collect())
    }

    /// Returns whether the artifact is of one of the kinds, in the period, and has the digits.
    fn is_selected(&self, row: &ArtifactRow) -> Result<bool> {
        let Filter { kinds, period, digits, among, .. } = self.filter;
        if among.as_ref().is_some_and(|among| !among.contains(&row.core)) {
            return Ok(false);
        }
        if !kinds.is_empty() && !kinds.contains(&row.kind) {
            return Ok(false);
        }
        if digits.as_ref().is_some_and(|digits| !row.core.0.hex().clone().starts_with(digits.as_str())) {
            return Ok(false);
        }
        let Some(period) = period else { return Ok(true) };
        let time = self.time(row, period.basis)?;
        Ok(time.is_some_and(|time| {
            period.since.is_none_or(|since| time >= since) && period.until.is_none_or(|until| time < until)
        }))
    }

    fn time(&self, row: &ArtifactRow, basis: TimeBasis) -> Result<Option<DateTime<Utc>>> {
        match basis {
            TimeBasis::FirstSeen => Ok(Some(row.added_at)),
            TimeBasis::LastSeen => Ok(Some(row.seen_at)),
            // An invalid number is damage, which a check reports.
            TimeBasis::Created => Ok(row.created_at.and_then(DateTime::from_timestamp_millis)),
            TimeBasis::Finished => self.snapshot.declared_time(row.id, FINISHED_AT),
        }
    }

    /// Returns an artifact with its place in the order.
    fn place(&self, row: ArtifactRow) -> Result<PositionedArtifact> {
        let (kind, time, number, position) = match self.order {
            Order::Core => (None, None, None, 0),
            Order::Kind => (Some(row.kind.clone()), None, None, row.arrival),
            Order::Newest(TimeBasis::FirstSeen) => (None, Some(row.added_at), None, row.id.0),
            Order::Newest(basis) => (None, self.time(&row, basis)?, None, row.arrival),
            Order::Largest(name) => (None, None, self.snapshot.number_of(row.id, name)?, row.arrival),
        };
        let place = Cursor { kind, time, number, position: position.cast_unsigned(), core: row.core };
        Ok(PositionedArtifact { row, place })
    }

    /// Compares two places.
    fn compare(&self, one: &Cursor, other: &Cursor) -> Ordering {
        let by_position = Reverse(one.position).cmp(&Reverse(other.position));
        let first = match self.order {
            Order::Core => Ordering::Equal,
            Order::Kind => one.kind.cmp(&other.kind).then(by_position),
            Order::Newest(TimeBasis::LastSeen) => by_position,
            Order::Newest(_) => Reverse(one.time).cmp(&Reverse(other.time)).then(by_position),
            Order::Largest(_) => Reverse(one.number).cmp(&Reverse(other.number)).then(by_position),
        };
        first.then_with(|| one.core.cmp(&other.core))
    }
}
