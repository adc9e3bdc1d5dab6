//! Reading artifacts in the order of the numbers of an attribute.
//!
//! An index has the values of an attribute in the order of their numbers, but not the artifacts with one value in the
//! order of the answer. Values that few artifacts have are read together and sorted. If many have one value, such as
//! no errors, artifacts are read in the order of their arrival, and those with the value are taken: they are frequent.

use rusqlite::types::Value;

use super::ResolvedQuery;
use super::conditions::WhereClause;
use super::scan::{NUMBER, add_arrival, blob, milliseconds};
use crate::storage::Result;
use crate::storage::interface::{Cursor, TimePeriod};
use crate::storage::sqlite::rows::ArtifactRow;

/// Numbers of values that are read at a time: the first and the largest one. Tests have few artifacts.
const VALUES: (usize, usize) = if cfg!(test) { (2, 4) } else { (64, 4_096) };

/// Maximum number of artifacts that are read and sorted for some values.
const MANY: i64 = if cfg!(test) { 3 } else { 8_192 };

/// A range of numbers of an attribute.
struct AttributeNumberRange {
    name: &'static str,
    low: i64,
    high: i64,
}

impl AttributeNumberRange {
    fn parameters(&self) -> [Value; 3] {
        [Value::Text(self.name.to_owned()), Value::Integer(self.low), Value::Integer(self.high)]
    }
}

/// Returns the number of a cursor: that of the attribute, or of the time, in milliseconds.
fn number(cursor: &Cursor) -> Option<i64> {
    cursor.number.or_else(|| cursor.time.map(|time| time.timestamp_millis()))
}

impl ResolvedQuery<'_, '_> {
    /// Reads artifacts by the number of an attribute, the largest first, and those without it last.
    pub(super) fn by_number(
        &self,
        name: &'static str,
        after: Option<&Cursor>,
        count: usize,
    ) -> Result<Vec<ArtifactRow>> {
        let mut found = Vec::new();
        let bounds = self.bounds(name);
        if after.is_none_or(|after| number(after).is_some()) {
            let (low, mut high) = bounds.unwrap_or((i64::MIN, i64::MAX));
            high = high.min(after.and_then(number).unwrap_or(i64::MAX));
            self.with_numbers(AttributeNumberRange { name, low, high }, after, count, &mut found)?;
        }
        if found.len() < count && bounds.is_none() {
            let mut without = self.selection();
            without.and(&format!("{NUMBER} IS NULL"), [Value::Text(name.to_owned())]);
            add_arrival(&mut without, after.filter(|after| number(after).is_none()));
            found.append(&mut self.read_by_arrival(without, count - found.len())?);
        }
        Ok(found)
    }

    /// Returns the smallest and the largest number of an attribute that the period allows; `None` if the period is
    /// none of this attribute.
    fn bounds(&self, name: &str) -> Option<(i64, i64)> {
        let TimePeriod { basis, since, until } = self.filter.period?;
        let bounds = (
            since.map_or(i64::MIN, milliseconds),
            until.map_or(i64::MAX, |until| milliseconds(until).saturating_sub(1)),
        );
        (basis.attribute() == Some(name)).then_some(bounds)
    }

    /// Adds artifacts with numbers in a range to `found` until there are `count`.
    fn with_numbers(
        &self,
        mut range: AttributeNumberRange,
        after: Option<&Cursor>,
        count: usize,
        found: &mut Vec<ArtifactRow>,
    ) -> Result<()> {
        let mut size = VALUES.0;
        while found.len() < count {
            let numbers = self.numbers(&range, size)?;
            let Some(&low) = numbers.last() else { break };
            let part = AttributeNumberRange { low, ..range };
            let left = count - found.len();
            match (self.count_artifacts(&part)? > MANY, numbers.len()) {
                (false, _) => found.append(&mut self.sorted(&part, after, left)?),
                (true, 1) => found.append(&mut self.frequent(&part, after, left)?),
                (true, several) => {
                    size = several / 2;
                    continue;
                }
            }
            let Some(high) = low.checked_sub(1).filter(|high| *high >= range.low) else { break };
            range.high = high;
            size = (size * 2).min(VALUES.1);
        }
        Ok(())
    }

    /// Returns up to `count` numbers in a range that artifacts have, the largest first.
    fn numbers(&self, range: &AttributeNumberRange, count: usize) -> Result<Vec<i64>> {
        let sql = "SELECT number FROM attribute_value WHERE name = ?1 AND number BETWEEN ?2 AND ?3
                    ORDER BY number DESC LIMIT ?4";
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.snapshot.rows(sql, (range.name, range.low, range.high, count), |row| row.get(0))
    }

    /// Returns the number of artifacts with numbers in a range, up to `MANY` and one more.
    fn count_artifacts(&self, range: &AttributeNumberRange) -> Result<i64> {
        let sql = "SELECT count(*) FROM (
                     SELECT 1 FROM attribute_value v CROSS JOIN attribute t ON t.value = v.id
                      WHERE v.name = ?1 AND v.number BETWEEN ?2 AND ?3 LIMIT ?4)";
        let most = MANY + 1;
        let counts = self.snapshot.rows(sql, (range.name, range.low, range.high, most), |row| row.get(0))?;
        Ok(counts.into_iter().next().unwrap_or_default())
    }

    /// Reads the artifacts whose numbers are in a range, and sorts them.
    fn sorted(
        &self,
        range: &AttributeNumberRange,
        after: Option<&Cursor>,
        count: usize,
    ) -> Result<Vec<ArtifactRow>> {
        let mut selection = self.selection();
        selection.and("v.name = ? AND v.number BETWEEN ? AND ?", range.parameters());
        selection.and(&format!("v.number = {NUMBER}"), [Value::Text(range.name.to_owned())]);
        if let Some((cursor, number)) = after.and_then(|after| Some((after, number(after)?))) {
            let (number, position) = (Value::Integer(number), Value::Integer(cursor.position.cast_signed()));
            selection.and(
                "v.number <= ? AND (v.number < ? OR a.arrival < ? OR (a.arrival = ? AND a.core > ?))",
                [number.clone(), number, position.clone(), position, blob(&cursor.core.0)],
            );
        }
        let from = "attribute_value v CROSS JOIN attribute t ON t.value = v.id
                    CROSS JOIN artifact a ON a.id = t.artifact";
        self.read(from, selection, "v.number DESC, a.arrival DESC, a.core", count)
    }

    /// Reads the artifacts whose number is the only one of a range, which many artifacts have.
    fn frequent(
        &self,
        range: &AttributeNumberRange,
        after: Option<&Cursor>,
        count: usize,
    ) -> Result<Vec<ArtifactRow>> {
        let mut selection: WhereClause = self.selection();
        let name = Value::Text(range.name.to_owned());
        selection.and(&format!("{NUMBER} = ?"), [name, Value::Integer(range.low)]);
        add_arrival(&mut selection, after.filter(|after| number(after) == Some(range.low)));
        self.read_by_arrival(selection, count)
    }
}
