//! Reading artifacts in the order of the numbers of an attribute.
//!
//! An index has the numbers of an attribute in their order, but not the artifacts with one number in the order of the page.
//! So the next numbers are read first, and then the artifacts with these, which are sorted. If many artifacts have one
//! number, such as no errors, artifacts are read in the order of their arrival, and those with the number are taken.

use super::super::ceil_millis;
use super::super::dialect::ReadFirst;
use super::super::{Dialect, SqlSession, StatementParameters};
use super::conditions::{ConditionRows, NumberRange, numbers_within, selecting};
use super::order::{PAGE_COLUMNS, SortExpression, key_of, number_of};
use super::statements::{AttributeNumber, PageStatement, PlacedArtifact, is_match};
use super::{FindSnapshot, READ, ResolvedQuery};
use crate::storage::Result;
use crate::storage::interface::{Cursor, TimePeriod};

/// Maximum number of artifacts that are read and sorted for some numbers.
const MANY: usize = if cfg!(test) { 8 } else { 8_192 };

impl<S: FindSnapshot> ResolvedQuery<'_, S> {
    /// Reads artifacts by the number of an attribute, the largest first, and those without it last.
    pub(super) fn by_number(
        &self,
        name: &'static str,
        after: Option<&Cursor>,
        count: usize,
    ) -> Result<Vec<PlacedArtifact>> {
        let mut found = Vec::new();
        let bounds = self.bounds(name);
        if after.is_none_or(|after| key_of(after).is_some()) {
            let (low, high) = bounds.unwrap_or((i64::MIN + 1, i64::MAX));
            let high = high.min(after.and_then(key_of).unwrap_or(i64::MAX));
            self.with_numbers(NumberRange { name, low, high }, after, count, &mut found)?;
        }
        if found.len() < count && bounds.is_none() {
            let number = Some(AttributeNumber { name, number: None });
            let after = after.filter(|after| key_of(after).is_none());
            let size = count - found.len();
            found.append(&mut self.by_arrival(PageStatement {
                number,
                after,
                size,
                ..PageStatement::default()
            })?);
        }
        Ok(found)
    }

    /// Returns the smallest and the largest number of an attribute that the period allows; `None` if the period is not one of
    /// this attribute.
    fn bounds(&self, name: &str) -> Option<(i64, i64)> {
        let TimePeriod { basis, since, until } = self.filter.period?;
        let bounds = (
            since.map_or(i64::MIN + 1, ceil_millis),
            until.map_or(i64::MAX, |until| ceil_millis(until).saturating_sub(1)),
        );
        (basis.attribute() == Some(name)).then_some(bounds)
    }

    /// Adds artifacts with numbers in a range to `found` until there are `count`.
    fn with_numbers(
        &self,
        mut range: NumberRange<'static>,
        after: Option<&Cursor>,
        count: usize,
        found: &mut Vec<PlacedArtifact>,
    ) -> Result<()> {
        let mut size = READ.0;
        while found.len() < count && range.low <= range.high {
            let numbers = self.numbers(range, size)?;
            let (Some(&high), Some(&low)) = (numbers.first(), numbers.last()) else { break };
            let left = count - found.len();
            if numbers.len() < size {
                found.append(&mut self.sorted(NumberRange { high, ..range }, after, left)?);
                break;
            }
            if high > low {
                // Others may have the last number as well.
                found.append(&mut self.sorted(NumberRange { low: low + 1, high, ..range }, after, left)?);
                range.high = low;
            } else if size < MANY {
                size = (size * 8).min(MANY);
                continue;
            } else {
                let number = Some(AttributeNumber { name: range.name, number: Some(low) });
                let after = after.filter(|after| key_of(after) == Some(low));
                let page = PageStatement { number, after, size: left, ..PageStatement::default() };
                found.append(&mut self.by_arrival(page)?);
                range.high = low - 1;
            }
            size = (size * 2).min(MANY);
        }
        Ok(())
    }

    /// Returns up to `count` numbers in a range, the largest first: those of all artifacts.
    fn numbers(&self, range: NumberRange<'static>, count: usize) -> Result<Vec<i64>> {
        let mut parameters = StatementParameters::default();
        let number = S::Session::DIALECT.numbers(ReadFirst::Condition).number;
        let ConditionRows { tables, condition } =
            numbers_within(S::Session::DIALECT, range, ReadFirst::Condition, &mut parameters);
        let count = parameters.bind(count);
        let sql =
            format!("SELECT {number} FROM {tables} WHERE {condition} ORDER BY {number} DESC LIMIT {count}");
        let rows = self.snapshot.rows_planned_for(&sql, &parameters)?;
        self.snapshot.answer(rows.iter().map(|row| Ok(row.integer(0)?)).collect())
    }

    /// Reads the artifacts whose numbers are in a range, and sorts them.
    fn sorted(
        &self,
        range: NumberRange<'static>,
        after: Option<&Cursor>,
        count: usize,
    ) -> Result<Vec<PlacedArtifact>> {
        let dialect = S::Session::DIALECT;
        let mut parameters = StatementParameters::default();
        let number = dialect.numbers(ReadFirst::Condition).number;
        let ConditionRows { tables, condition } =
            numbers_within(dialect, range, ReadFirst::Condition, &mut parameters);
        let mut selected = selecting(dialect, self.filter, &mut parameters);
        selected.push(format!("t.number = {}", number_of(dialect, &parameters.bind(range.name))));
        let mut examined = self.examined(None, &mut parameters)?;
        let mut match_column = String::new();
        if dialect == Dialect::Sqlite {
            match_column = is_match(&examined);
        } else {
            selected.append(&mut examined);
        }
        let sorting = SortExpression::by_number();
        selected.extend(after.map(|after| sorting.after(dialect, after, &mut parameters)));
        let (selected, order_by, limit) =
            (selected.join(" AND "), sorting.order_by(dialect), parameters.bind(count));
        let apart = dialect.kept_apart();
        let numbers =
            format!("SELECT x.artifact, {number} AS number FROM {tables} WHERE {condition} {apart}");
        // Several values of an artifact can have the same number.
        let sql = format!(
            "SELECT DISTINCT {PAGE_COLUMNS}, t.number AS sort_value{match_column}
               FROM {} WHERE {selected} ORDER BY {order_by} LIMIT {limit}",
            dialect.artifacts_of(&numbers, "t")
        );
        self.placed(&sql, &parameters)
    }
}
