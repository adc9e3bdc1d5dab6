//! Reading artifacts in an order, by an index.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params_from_iter};

use super::ResolvedQuery;
use super::conditions::{ConditionRows, ResolvedCondition, WhereClause};
use crate::artifact::FINISHED_AT;
use crate::digest::Digest;
use crate::storage::interface::{Cursor, Order, TimePeriod};
pub(super) use crate::storage::sql::ceil_millis as milliseconds;
use crate::storage::sqlite::read::artifact_row;
use crate::storage::sqlite::rows::{ArtifactId, ArtifactRow, Milliseconds};
use crate::storage::{Result, TimeBasis};

const COLUMNS: &str = "a.id, a.core, k.name, a.added_at, a.seen_at, a.arrival, a.created_at";

/// The creation time of the artifact `a`, as an index has it: the smallest number if it states none.
const CREATION: &str = "coalesce(a.created_at, -9223372036854775808)";

/// The largest number of the attribute `?` of the artifact `a`; NULL if it has none.
pub(super) const NUMBER: &str =
    "(SELECT max(v.number) FROM attribute t JOIN attribute_value v ON v.id = t.value
    WHERE t.artifact = a.id AND v.name = ?)";

pub(super) fn blob(digest: &Digest) -> Value {
    Value::Blob(digest.as_bytes().to_vec())
}

fn beginning(digest: &Digest) -> Value {
    Value::Blob(digest.as_bytes().iter().take(8).copied().collect())
}

impl ResolvedQuery<'_, '_> {
    /// Returns the condition on kinds, digits, the period and, as `has_row` expresses it, rows of artifacts.
    fn selection_with(&self, has_row: fn(ConditionRows) -> WhereClause) -> WhereClause {
        let mut selection = WhereClause::new();
        // An artifact matches through its members although it does not have the rows.
        if !self.filter.through_members {
            for rows in self.conditions.iter().filter_map(ResolvedCondition::rows) {
                let WhereClause { sql, parameters } = has_row(rows);
                selection.and(&sql, parameters);
            }
        }
        if let Some(kinds) = &self.kinds {
            let list = vec!["?"; kinds.len()].join(", ");
            selection.and(&format!("a.kind IN ({list})"), kinds.iter().copied().map(Value::Integer));
        }
        if let Some(digits) = &self.filter.digits {
            match bounds(digits) {
                Some((low, high)) => {
                    let values = [beginning(&low), beginning(&high), blob(&low), blob(&high)];
                    selection.and("substr(a.core, 1, 8) BETWEEN ? AND ? AND a.core BETWEEN ? AND ?", values);
                }
                None => selection.and("0", []),
            }
        }
        if let Some(period) = &self.filter.period {
            add_period(&mut selection, period);
        }
        selection
    }

    /// Returns the condition of what is selected, for reading some artifacts.
    pub(super) fn selection(&self) -> WhereClause {
        self.selection_with(ConditionRows::has_artifact)
    }

    /// Returns the condition of what is selected, for reading all artifacts.
    pub(super) fn whole_selection(&self) -> WhereClause {
        self.selection_with(ConditionRows::contains_artifact)
    }

    /// Returns the number of artifacts that are selected.
    pub(super) fn count(&self) -> Result<u64> {
        let WhereClause { sql, parameters } = self.whole_selection();
        let sql = format!("SELECT count(*) FROM artifact a WHERE {sql}");
        let count = self.snapshot.rows(&sql, params_from_iter(parameters), |row| row.get(0))?.pop();
        Ok(count.unwrap_or_default())
    }

    /// Returns the artifacts that an index selects and that are not read in the order of the answer anyway, if there
    /// are at most `limit`.
    pub(super) fn few_by_index(&self, limit: usize) -> Result<Option<Vec<ArtifactId>>> {
        let mut tries: Vec<WhereClause> = Vec::new();
        if let Some((low, high)) =
            self.filter.digits.as_ref().filter(|digits| !digits.is_empty()).and_then(|digits| bounds(digits))
        {
            let mut digits = WhereClause::new();
            digits.and("substr(a.core, 1, 8) BETWEEN ? AND ?", [beginning(&low), beginning(&high)]);
            tries.push(digits);
        }
        let is_by_arrival = matches!(self.order, Order::Kind | Order::Newest(TimeBasis::LastSeen));
        if let Some(kinds) = self.kinds.as_ref().filter(|_| !is_by_arrival) {
            let mut of_kinds = WhereClause::new();
            let list = vec!["?"; kinds.len()].join(", ");
            of_kinds.and(&format!("a.kind IN ({list})"), kinds.iter().copied().map(Value::Integer));
            tries.push(of_kinds);
        }
        for WhereClause { sql, mut parameters } in tries {
            let sql = format!("SELECT a.id FROM artifact a WHERE {sql} LIMIT ?");
            parameters.push(Value::Integer(i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX)));
            let ids = self.snapshot.rows(&sql, params_from_iter(parameters), |row| row.get(0))?;
            if ids.len() <= limit {
                return Ok(Some(ids));
            }
        }
        Ok(None)
    }

    /// Returns the next `count` selected artifacts in the order of the answer, fewer only at the end.
    pub(super) fn scan(&self, after: Option<&Cursor>, count: usize) -> Result<Vec<ArtifactRow>> {
        match self.order {
            Order::Core => self.by_core(after, count),
            Order::Kind => self.by_kind(after, count),
            Order::Newest(TimeBasis::LastSeen) => self.by_arrival(after, count),
            Order::Newest(TimeBasis::FirstSeen) => self.by_addition(after, count),
            Order::Newest(TimeBasis::Created) => self.by_creation(after, count),
            Order::Newest(TimeBasis::Finished) => self.by_number(FINISHED_AT, after, count),
            Order::Largest(name) => self.by_number(name, after, count),
        }
    }

    pub(super) fn read(
        &self,
        from: &str,
        condition: WhereClause,
        order: &str,
        count: usize,
    ) -> Result<Vec<ArtifactRow>> {
        let WhereClause { sql, mut parameters } = condition;
        let sql = format!(
            "SELECT {COLUMNS} FROM {from} JOIN kind k ON k.id = a.kind WHERE {sql} ORDER BY {order} LIMIT ?"
        );
        parameters.push(Value::Integer(i64::try_from(count).unwrap_or(i64::MAX)));
        self.snapshot.rows(&sql, params_from_iter(parameters), artifact_row)
    }

    fn by_core(&self, after: Option<&Cursor>, count: usize) -> Result<Vec<ArtifactRow>> {
        let mut selection = self.selection();
        if let Some(Cursor { core, .. }) = after {
            selection.and("substr(a.core, 1, 8) >= ? AND a.core > ?", [beginning(&core.0), blob(&core.0)]);
        }
        self.read("artifact a", selection, "substr(a.core, 1, 8), a.core", count)
    }

    fn by_arrival(&self, after: Option<&Cursor>, count: usize) -> Result<Vec<ArtifactRow>> {
        let mut selection = self.selection();
        add_arrival(&mut selection, after);
        self.add_arrival_bounds(&mut selection)?;
        self.read_by_arrival(selection, count)
    }

    /// Reads selected artifacts in the order of their arrival.
    pub(super) fn read_by_arrival(&self, selection: WhereClause, count: usize) -> Result<Vec<ArtifactRow>> {
        let Some(kinds) = self.kinds.as_deref() else {
            return self.read("artifact a", selection, "a.arrival DESC, a.core", count);
        };
        // One index has the arrivals of each kind.
        let mut all = Vec::new();
        for kind in kinds {
            let mut of_kind = selection.clone();
            of_kind.and("a.kind = ?", [Value::Integer(*kind)]);
            all.append(&mut self.read("artifact a", of_kind, "a.arrival DESC, a.core", count)?);
        }
        all.sort_unstable_by_key(|row| (std::cmp::Reverse(row.arrival), row.core));
        all.truncate(count);
        Ok(all)
    }

    fn by_kind(&self, after: Option<&Cursor>, count: usize) -> Result<Vec<ArtifactRow>> {
        let sql = "SELECT id, name FROM kind ORDER BY name";
        let kinds =
            self.snapshot.rows(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let mut found = Vec::new();
        for (id, name) in kinds {
            let begun = after.and_then(|after| after.kind.as_ref());
            let is_passed = begun.is_some_and(|begun| name < *begun);
            if is_passed || self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&id)) {
                continue;
            }
            let mut selection = self.selection();
            selection.and("a.kind = ?", [Value::Integer(id)]);
            add_arrival(&mut selection, after.filter(|_| begun == Some(&name)));
            let left = count - found.len();
            found.append(&mut self.read("artifact a", selection, "a.arrival DESC, a.core", left)?);
            if found.len() >= count {
                break;
            }
        }
        Ok(found)
    }

    fn by_addition(&self, after: Option<&Cursor>, count: usize) -> Result<Vec<ArtifactRow>> {
        let mut selection = self.selection();
        if let Some(Cursor { time: Some(time), position, .. }) = after {
            let (time, id) =
                (Value::Integer(time.timestamp_millis()), Value::Integer(position.cast_signed()));
            selection.and("a.added_at <= ? AND (a.added_at < ? OR a.id < ?)", [time.clone(), time, id]);
        }
        self.read(
            "artifact a INDEXED BY artifact_by_addition",
            selection,
            "a.added_at DESC, a.id DESC",
            count,
        )
    }

    fn by_creation(&self, after: Option<&Cursor>, count: usize) -> Result<Vec<ArtifactRow>> {
        let mut selection = self.selection();
        if let Some(Cursor { time, position, core, .. }) = after {
            let time = Value::Integer(time.map_or(i64::MIN, |time| time.timestamp_millis()));
            let position = Value::Integer(position.cast_signed());
            selection.and(
                &format!(
                    "{CREATION} <= ? AND ({CREATION} < ? OR a.arrival < ? OR (a.arrival = ? AND a.core > ?))"
                ),
                [time.clone(), time, position.clone(), position, blob(&core.0)],
            );
        }
        self.read("artifact a", selection, &format!("{CREATION} DESC, a.arrival DESC, a.core"), count)
    }

    /// Adds the bounds of arrivals in the period: the time at which artifacts were last seen does not decrease with
    /// their arrival.
    fn add_arrival_bounds(&self, selection: &mut WhereClause) -> Result<()> {
        let Some(TimePeriod { basis: TimeBasis::LastSeen, since, until }) = &self.filter.period else {
            return Ok(());
        };
        if let Some(since) = since {
            let first = self.first_arrival(milliseconds(*since))?;
            selection.and("a.arrival >= ?", [Value::Integer(first)]);
        }
        if let Some(until) = until {
            let first = self.first_arrival(milliseconds(*until))?;
            selection.and("a.arrival < ?", [Value::Integer(first)]);
        }
        Ok(())
    }

    /// Returns the first arrival that is not before this time, or the largest number if there is none.
    fn first_arrival(&self, time: i64) -> Result<i64> {
        let find = || -> rusqlite::Result<i64> {
            let mut next = self.snapshot.connection().prepare_cached(
                "SELECT arrival, seen_at FROM artifact WHERE arrival >= ?1 ORDER BY arrival LIMIT 1",
            )?;
            let (mut low, mut high) = (0_i64, i64::MAX);
            while low < high {
                let middle = low + (high - low) / 2;
                let found = next
                    .query_row([middle], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Milliseconds>(1)?.0)))
                    .optional()?;
                match found {
                    Some((arrival, seen)) if seen.timestamp_millis() < time => {
                        low = arrival.max(middle).saturating_add(1);
                    }
                    _ => high = middle,
                }
            }
            Ok(low)
        };
        find().map_err(|error| self.snapshot.failed(error))
    }
}

/// Adds the condition that an artifact comes after this place in the order of arrivals.
pub(super) fn add_arrival(selection: &mut WhereClause, after: Option<&Cursor>) {
    if let Some(Cursor { position, core, .. }) = after {
        let position = Value::Integer(position.cast_signed());
        selection.and(
            "a.arrival <= ? AND (a.arrival < ? OR a.core > ?)",
            [position.clone(), position, blob(&core.0)],
        );
    }
}

fn add_period(selection: &mut WhereClause, TimePeriod { basis, since, until }: &TimePeriod) {
    let WhereClause { sql, parameters } = time_column(*basis);
    // Artifacts without a time that they can state have the smallest number in the index.
    let stated = basis.attribute().map(|_| i64::MIN + 1);
    for (comparison, bound) in
        [(">= ?", since.map(milliseconds).or(stated)), ("< ?", until.map(milliseconds))]
    {
        if let Some(bound) = bound {
            let values = parameters.iter().cloned().chain([Value::Integer(bound)]);
            selection.and(&format!("{sql} {comparison}"), values);
        }
    }
}

/// Returns the expression of a time of the artifact `a`. For an artifact without it, it is NULL or the smallest number.
pub(super) fn time_column(basis: TimeBasis) -> WhereClause {
    let (sql, name) = match basis {
        TimeBasis::FirstSeen => ("a.added_at", None),
        TimeBasis::LastSeen => ("a.seen_at", None),
        TimeBasis::Created => (CREATION, None),
        TimeBasis::Finished => (NUMBER, Some(Value::Text(FINISHED_AT.to_owned()))),
    };
    WhereClause { sql: sql.to_owned(), parameters: name.into_iter().collect() }
}

/// Returns the first and the last digest that begin with these digits, which are lowercase; `None` if they are not
/// such digits.
fn bounds(digits: &str) -> Option<(Digest, Digest)> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() > 64 || !digits.bytes().all(is_digit) {
        return None;
    }
    let fill = |with: &str| format!("{digits}{}", with.repeat(64_usize.saturating_sub(digits.len())));
    Some((fill("0").parse().ok()?, fill("f").parse().ok()?))
}
