//! Counting artifacts by day.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate};
use rusqlite::params_from_iter;

use super::super::super::read::SqliteSnapshot;
use super::conditions::WhereClause;
use super::scan::time_column;
use super::{FEW, ResolvedQuery};
use crate::storage::interface::{Filter, Order};
use crate::storage::sqlite::rows::ArtifactId;
use crate::storage::{Result, TimeBasis};

const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1000;

/// Numbers of artifacts, by the number of the day since 1970.
type CountsByDay = BTreeMap<i64, u64>;

impl SqliteSnapshot<'_> {
    /// Returns the number of artifacts that match `filter` on each day; `None` if they must be examined one by one.
    pub(in crate::storage::sqlite::engine) fn count_days(
        &self,
        filter: &Filter,
        by: TimeBasis,
    ) -> Result<Option<Vec<(NaiveDate, u64)>>> {
        let query = ResolvedQuery::new(self, filter, Order::Core)?;
        if !query.is_selection() {
            return Ok(None);
        }
        let counts = match query.fewest(FEW)? {
            Some(few) => query.count_few(few, by)?,
            None => query.count_selected(by)?,
        };
        Ok(Some(counts.into_iter().filter_map(|(day, count)| Some((date(day)?, count))).collect()))
    }
}

impl ResolvedQuery<'_, '_> {
    /// Counts those of these artifacts that match.
    fn count_few(&self, artifacts: Vec<ArtifactId>, by: TimeBasis) -> Result<CountsByDay> {
        let mut counts = CountsByDay::new();
        let mut found = Vec::new();
        for id in artifacts {
            let row = self.snapshot.artifact_by_id(id)?;
            let Some(time) = self.time(&row, by)? else { continue };
            if self.is_selected(&row)? {
                self.take(self.place(row)?, false, &mut found)?;
            }
            if found.pop().is_some() {
                add(&mut counts, time.timestamp_millis());
            }
        }
        Ok(counts)
    }

    /// Counts the artifacts that the conditions select.
    fn count_selected(&self, by: TimeBasis) -> Result<CountsByDay> {
        let WhereClause { sql: time, parameters: mut values } = time_column(by);
        let WhereClause { sql, parameters } = self.whole_selection();
        values.extend(parameters);
        let sql = format!("SELECT {time} FROM artifact a WHERE {sql}");
        let read = || -> rusqlite::Result<CountsByDay> {
            let mut counts = CountsByDay::new();
            let mut statement = self.snapshot.connection().prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                if let Some(time) = row.get::<_, Option<i64>>(0)?.filter(|time| *time > i64::MIN) {
                    add(&mut counts, time);
                }
            }
            Ok(counts)
        };
        read().map_err(|error| self.snapshot.failed(error))
    }
}

fn add(counts: &mut CountsByDay, milliseconds: i64) {
    *counts.entry(milliseconds.div_euclid(DAY_MILLISECONDS)).or_default() += 1;
}

fn date(day: i64) -> Option<NaiveDate> {
    let begins = DateTime::from_timestamp_millis(day.checked_mul(DAY_MILLISECONDS)?)?;
    Some(begins.date_naive())
}
