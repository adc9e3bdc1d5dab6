//! The orders of artifacts, as expressions and cursors.

use postgres::Row;

use super::conditions::StatementParameters;
use super::times::column;
use crate::storage::TimeBasis;
use crate::storage::interface::{ArtifactRecord, Cursor, Order};
use crate::storage::postgres::columns::{from_millis, value};
use crate::storage::postgres::error::PostgresResult;

/// How an order is expressed: the values by which artifacts are sorted, all descending but the last.
pub(super) struct SortExpression {
    /// An expression whose largest values come first, of the time or number of the artifact `a`. `None` if the order has
    /// none. Artifacts without one have the smallest value, which no time has.
    value: Option<String>,
    /// The position of the artifact `a`.
    position: Option<&'static str>,
    /// Whether artifacts are sorted by kind before anything else.
    is_by_kind: bool,
}

/// The sort value of an artifact without the time or number.
const NONE: &str = "'-9223372036854775808'::bigint";

impl SortExpression {
    pub(super) fn new(order: Order, selection: &mut StatementParameters) -> Self {
        let sorted =
            |value: Option<String>, position| Self { value, position: Some(position), is_by_kind: false };
        match order {
            Order::Newest(TimeBasis::LastSeen) => sorted(None, "a.arrival"),
            Order::Newest(TimeBasis::FirstSeen) => sorted(Some("a.added_at".to_owned()), "a.id"),
            Order::Newest(basis @ (TimeBasis::Created | TimeBasis::Finished)) => {
                sorted(Some(format!("coalesce({}, {NONE})", column(basis))), "a.arrival")
            }
            Order::Largest(name) => {
                let name = selection.bind(name);
                let largest = format!(
                    "(SELECT max(t.number) FROM attribute t WHERE t.artifact = a.id AND t.name = {name})"
                );
                sorted(Some(format!("coalesce({largest}, {NONE})")), "a.arrival")
            }
            Order::Core => Self { value: None, position: None, is_by_kind: false },
            Order::Kind => Self { value: None, position: Some("a.arrival"), is_by_kind: true },
        }
    }

    /// Creates the order of the numbers of attributes `t`, each of an artifact `a`.
    pub(super) fn by_number() -> Self {
        Self { value: Some("t.number".to_owned()), position: Some("a.arrival"), is_by_kind: false }
    }

    /// Returns the expression whose largest values come first.
    pub(super) fn value(&self) -> &str {
        self.value.as_deref().unwrap_or("0::bigint")
    }

    /// Returns what the statement sorts by.
    pub(super) fn order_by(&self) -> String {
        let kind = self.is_by_kind.then(|| "kind_name".to_owned());
        let value = self.value.as_ref().map(|_| "sort_value DESC".to_owned());
        let position = self.position.map(|position| format!("{position} DESC"));
        kind.into_iter()
            .chain(value)
            .chain(position)
            .chain(["a.core".to_owned()])
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns the condition that an artifact comes after the one that a cursor describes.
    pub(super) fn after(&self, cursor: &Cursor, order: Order, selection: &mut StatementParameters) -> String {
        let core = selection.bind(cursor.core);
        let Some(position) = self.position else { return format!("a.core > {core}") };
        let known = selection.bind(cursor.position.cast_signed());
        if self.is_by_kind {
            let kind = selection.bind(cursor.kind.clone().unwrap_or_default());
            return format!(
                "(k.name > {kind} OR k.name = {kind} AND ({position} < {known} OR {position} = {known} AND a.core > {core}))"
            );
        }
        let Some(value) = &self.value else {
            return format!("{position} <= {known} AND ({position} < {known} OR a.core > {core})");
        };
        let key = selection.bind(key_of(cursor, order).unwrap_or(i64::MIN));
        // The first part is a range of an index.
        format!(
            "({value}, {position}) <= ({key}, {known})
             AND (({value}, {position}) < ({key}, {known}) OR a.core > {core})"
        )
    }
}

/// Returns the time or number of the artifact that a cursor describes, in an order by that.
pub(super) fn key_of(cursor: &Cursor, order: Order) -> Option<i64> {
    match order {
        Order::Largest(_) => cursor.number,
        _ => cursor.time.map(|time| time.timestamp_millis()),
    }
}

/// Returns the value by which a row is sorted, in the column `index`, if the artifact has it.
fn optional_sort_value(row: &Row, index: usize) -> PostgresResult<Option<i64>> {
    let number: i64 = value(row, index)?;
    Ok(Some(number).filter(|number| *number != i64::MIN))
}

/// Returns the cursor that describes the artifact of a row, whose column `sort_value` is the one that it is sorted by.
pub(super) fn cursor(
    row: &Row,
    sort_value: usize,
    artifact: &ArtifactRecord,
    order: Order,
) -> PostgresResult<Cursor> {
    let core = artifact.core;
    let plain = Cursor { kind: None, time: None, number: None, position: artifact.arrival, core };
    Ok(match order {
        Order::Newest(TimeBasis::LastSeen) => Cursor { time: Some(artifact.seen_at), ..plain },
        Order::Newest(TimeBasis::FirstSeen) => {
            Cursor { time: Some(artifact.added_at), position: artifact.addition, ..plain }
        }
        Order::Newest(TimeBasis::Created | TimeBasis::Finished) => {
            Cursor { time: optional_sort_value(row, sort_value)?.map(from_millis).transpose()?, ..plain }
        }
        Order::Largest(_) => Cursor { number: optional_sort_value(row, sort_value)?, ..plain },
        Order::Core => Cursor { position: 0, ..plain },
        Order::Kind => Cursor { kind: Some(artifact.kind.clone()), ..plain },
    })
}
