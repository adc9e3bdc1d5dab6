//! Counting artifacts by day.
//!
//! The times of all matching artifacts are read: those that artifacts state from the index of numbers, so that no artifact is
//! read, and those of arrival from the artifacts. Which artifacts match is determined first, as row ids.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, NaiveDate};
use rusqlite::{Params, params_from_iter};

use super::super::super::read::SqliteSnapshot;
use super::conditions::ResolvedCondition;
use super::scan::{WhereClause, milliseconds};
use super::{FEW, ResolvedQuery};
use crate::storage::interface::{Filter, Order, TimePeriod};
use crate::storage::sqlite::rows::ArtifactId;
use crate::storage::{Result, TimeBasis};

const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1000;

impl SqliteSnapshot<'_> {
    /// Returns the number of artifacts that match `filter` on each day; `None` if they must be examined one by one.
    pub(in crate::storage::sqlite::engine) fn count_days(
        &self,
        filter: &Filter,
        by: TimeBasis,
    ) -> Result<Option<Vec<(NaiveDate, u64)>>> {
        let finder = ResolvedQuery::new(self, filter, Order::Core)?;
        let is_exact = finder.conditions.iter().all(ResolvedCondition::is_exact);
        if filter.among.is_some() || filter.through_members || !is_exact {
            return Ok(None);
        }
        let matching = finder.matching()?;
        let counts = match (matching, by, finder.attribute_period(by)) {
            (Some(few), ..) if few.len() <= FEW => finder.count_few(&few, by)?,
            (matching, TimeBasis::Created | TimeBasis::Finished, Some(period)) => {
                finder.count_attribute_period(&period, matching.map(RowIdSet::from_iter).as_ref())?
            }
            (matching, TimeBasis::FirstSeen, _) => {
                finder.count_seen("a.added_at", matching.map(RowIdSet::from_iter).as_ref())?
            }
            (matching, TimeBasis::LastSeen, _) => {
                finder.count_seen("a.seen_at", matching.map(RowIdSet::from_iter).as_ref())?
            }
            (_, TimeBasis::Created | TimeBasis::Finished, None) => return Ok(None),
        };
        Ok(Some(counts.into_iter().filter_map(|(day, count)| Some((date(day)?, count))).collect()))
    }
}

/// A time that artifacts state, in a period.
struct AttributePeriod {
    /// The attribute with the time.
    name: &'static str,
    /// The first and the last millisecond of the period.
    range: (i64, i64),
}

/// Numbers of artifacts, by the number of the day since 1970.
type CountsByDay = BTreeMap<i64, u64>;

impl ResolvedQuery<'_, '_> {
    /// Returns a time that artifacts state, in the period of the filter if it is one of this time, or in all of time if
    /// there is none; `None` if the period is one of another time, or artifacts do not state the time.
    fn attribute_period(&self, by: TimeBasis) -> Option<AttributePeriod> {
        let range = match self.filter.period {
            None => (i64::MIN, i64::MAX),
            Some(TimePeriod { basis, since, until }) if basis == by => (
                since.map_or(i64::MIN, milliseconds),
                until.map_or(i64::MAX, |until| milliseconds(until).saturating_sub(1)),
            ),
            Some(_) => return None,
        };
        Some(AttributePeriod { name: by.attribute()?, range })
    }

    /// Counts these artifacts, except those that are not selected.
    fn count_few(&self, artifacts: &[i64], by: TimeBasis) -> Result<CountsByDay> {
        let mut counts = CountsByDay::new();
        for id in artifacts {
            let row = self.snapshot.artifact_by_id(ArtifactId(*id))?;
            if self.is_selected(&row)?
                && let Some(time) = self.time(&row, by)?
            {
                *counts.entry(time.timestamp_millis().div_euclid(DAY_MILLISECONDS)).or_default() += 1;
            }
        }
        Ok(counts)
    }

    /// Counts artifacts by the largest of the times that they state.
    fn count_attribute_period(
        &self,
        period: &AttributePeriod,
        matching: Option<&RowIdSet>,
    ) -> Result<CountsByDay> {
        let (first, last) = period.range;
        let mut open = self.selected(matching)?;
        let mut counted = RowIdSet::default();
        let mut counts = CountsByDay::new();
        // The largest come first: what follows of an artifact does not count.
        let sql = "SELECT v.number, t.artifact
                     FROM attribute_value v INDEXED BY attribute_value_by_number CROSS JOIN attribute t ON t.value = v.id
                    WHERE v.name = ?1 AND v.number >= ?2 ORDER BY v.number DESC";
        self.each(sql, (period.name, first), |number, artifact| {
            let is_first = match &mut open {
                Some(open) => open.remove(artifact),
                None => {
                    matching.is_none_or(|matching| matching.contains(artifact)) && counted.insert(artifact)
                }
            };
            if is_first && number <= last {
                *counts.entry(number.div_euclid(DAY_MILLISECONDS)).or_default() += 1;
            }
        })?;
        Ok(counts)
    }

    /// Counts artifacts by one of the columns with their times.
    fn count_seen(&self, column: &str, matching: Option<&RowIdSet>) -> Result<CountsByDay> {
        let WhereClause { sql, parameters } = self.selection();
        let sql = format!("SELECT {column}, a.id FROM artifact a WHERE {sql}");
        let mut counts = CountsByDay::new();
        self.each(&sql, params_from_iter(parameters), |time, artifact| {
            if matching.is_none_or(|matching| matching.contains(artifact)) {
                *counts.entry(time.div_euclid(DAY_MILLISECONDS)).or_default() += 1;
            }
        })?;
        Ok(counts)
    }

    /// Returns the row ids of the artifacts among `matching` that are of the kinds and have the digits; `None` if neither
    /// is required.
    fn selected(&self, matching: Option<&RowIdSet>) -> Result<Option<RowIdSet>> {
        if self.kinds.is_none() && self.filter.digits.is_none() {
            return Ok(None);
        }
        let WhereClause { sql, parameters } = self.selection_at_any_time();
        let sql = format!("SELECT a.id, 0 FROM artifact a WHERE {sql}");
        let mut selected = RowIdSet::default();
        self.each(&sql, params_from_iter(parameters), |artifact, _| {
            if matching.is_none_or(|matching| matching.contains(artifact)) {
                selected.insert(artifact);
            }
        })?;
        Ok(Some(selected))
    }

    /// Returns the row ids of the artifacts that match all conditions, sorted; `None` if there are no conditions.
    fn matching(&self) -> Result<Option<Vec<i64>>> {
        let mut matching: Option<Vec<i64>> = None;
        for condition in &self.conditions {
            let ids = condition.candidates(self.snapshot, usize::MAX - 1)?.unwrap_or_default();
            let is_among = |id: &i64| matching.as_ref().is_none_or(|others| others.binary_search(id).is_ok());
            matching = Some(ids.into_iter().map(|ArtifactId(id)| id).filter(is_among).collect());
        }
        Ok(matching)
    }

    /// Calls `take` for each row of two numbers.
    fn each(&self, sql: &str, parameters: impl Params, mut take: impl FnMut(i64, i64)) -> Result<()> {
        let read = || -> rusqlite::Result<()> {
            let mut statement = self.snapshot.connection().prepare_cached(sql)?;
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                take(row.get(0)?, row.get(1)?);
            }
            Ok(())
        };
        read().map_err(|error| self.snapshot.failed(error))
    }
}

/// A set of row ids. Almost all are small numbers, of which a set of bits takes less time than a table.
#[derive(Default)]
struct RowIdSet {
    bits: Vec<u64>,
    large: HashSet<i64>,
}

impl FromIterator<i64> for RowIdSet {
    fn from_iter<I: IntoIterator<Item = i64>>(ids: I) -> Self {
        let mut set = Self::default();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

impl RowIdSet {
    /// The number of row ids that have a bit.
    const SMALL: i64 = 1 << 27;

    /// Returns the position of the bit of a row id: its word, and the word with the bit.
    fn bit(id: i64) -> Option<(usize, u64)> {
        let word = usize::try_from(id / 64).ok().filter(|_| (0..Self::SMALL).contains(&id))?;
        Some((word, 1 << (id % 64)))
    }

    fn contains(&self, id: i64) -> bool {
        match Self::bit(id) {
            Some((word, bit)) => self.bits.get(word).is_some_and(|bits| bits & bit != 0),
            None => self.large.contains(&id),
        }
    }

    /// Returns whether it did not contain the row id.
    fn insert(&mut self, id: i64) -> bool {
        let Some((word, bit)) = Self::bit(id) else { return self.large.insert(id) };
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let Some(bits) = self.bits.get_mut(word) else { return false };
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    /// Returns whether it contained the row id.
    fn remove(&mut self, id: i64) -> bool {
        let Some((word, bit)) = Self::bit(id) else { return self.large.remove(&id) };
        let Some(bits) = self.bits.get_mut(word) else { return false };
        let is_there = *bits & bit != 0;
        *bits &= !bit;
        is_there
    }
}

fn date(day: i64) -> Option<NaiveDate> {
    let begins = DateTime::from_timestamp_millis(day.checked_mul(DAY_MILLISECONDS)?)?;
    Some(begins.date_naive())
}

#[cfg(test)]
mod tests {
    use super::RowIdSet;

    #[test]
    fn row_ids_of_any_size_are_members_once() {
        let mut ids = RowIdSet::default();
        for id in [0, 63, 64, RowIdSet::SMALL - 1, RowIdSet::SMALL, i64::MAX, -1, i64::MIN] {
            assert!(!ids.contains(id) && !ids.remove(id), "{id}");
            assert!(ids.insert(id) && !ids.insert(id) && ids.contains(id), "{id}");
            assert!(ids.remove(id) && !ids.remove(id) && !ids.contains(id), "{id}");
        }
    }
}
