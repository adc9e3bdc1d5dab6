//! The orders of artifacts, as expressions and cursors.

use super::super::dialect::{NumberedAttributes, ReadFirst};
use super::super::{DamagedValue, Dialect, SqlRow, StatementParameters};
use crate::artifact::FINISHED_AT;
use crate::storage::TimeBasis;
use crate::storage::interface::{ArtifactRecord, Cursor, Order};

/// The columns of an artifact `a` on a page, before the one that it is sorted by. There is no join for the kind: it could lose
/// the order in which artifacts are read.
pub(in crate::storage) const PAGE_COLUMNS: &str = "a.core, (SELECT k.name FROM kind k WHERE k.id = a.kind) AS kind_name, a.added_at, a.seen_at, a.id, a.arrival";

/// The position of the column that artifacts are sorted by.
const SORT_VALUE: usize = 6;

/// Returns the creation time of the artifact `a`, as an index has it: the smallest number if it states none.
pub(super) fn creation(dialect: Dialect) -> String {
    or_none(dialect, "a.created_at")
}

/// Returns the largest number of the attribute `name` of the artifact `a`: NULL if it has none.
pub(super) fn number_of(dialect: Dialect, name: &str) -> String {
    let NumberedAttributes { tables, name: its_name, number, .. } = dialect.numbers(ReadFirst::Artifact);
    format!("(SELECT max({number}) FROM {tables} WHERE x.artifact = a.id AND {its_name} = {name})")
}

/// An order as expressions: the values by which artifacts are sorted, all descending but the core hash at the end.
pub(in crate::storage) struct SortExpression {
    /// An expression of the time or number of the artifact `a`. `None` if the order has none. Artifacts without one have the
    /// smallest value, which no time has.
    value: Option<String>,
    /// The position of the artifact `a`.
    position: Option<&'static str>,
}

impl SortExpression {
    /// Creates the order. That by kind is the one of each kind.
    pub(in crate::storage) fn new(
        dialect: Dialect,
        order: Order,
        parameters: &mut StatementParameters,
    ) -> Self {
        let number = |parameters: &mut StatementParameters, name: &str| {
            or_none(dialect, &number_of(dialect, &parameters.bind(name)))
        };
        let value = match order {
            Order::Core => return Self { value: None, position: None },
            Order::Kind | Order::Newest(TimeBasis::LastSeen) => return Self::by_arrival(),
            Order::Newest(TimeBasis::FirstSeen) => {
                return Self { value: Some("a.added_at".to_owned()), position: Some("a.id") };
            }
            Order::Newest(TimeBasis::Created) => creation(dialect),
            Order::Newest(TimeBasis::Finished) => number(parameters, FINISHED_AT),
            Order::Largest(name) => number(parameters, name),
        };
        Self { value: Some(value), position: Some("a.arrival") }
    }

    /// Creates the order of arrival.
    pub(super) fn by_arrival() -> Self {
        Self { value: None, position: Some("a.arrival") }
    }

    /// Creates the order of the numbers `t.number` of the artifacts `a`.
    pub(super) fn by_number() -> Self {
        Self { value: Some("t.number".to_owned()), position: Some("a.arrival") }
    }

    /// Returns the expression whose largest values come first.
    pub(in crate::storage) fn value(&self) -> &str {
        self.value.as_deref().unwrap_or("0")
    }

    /// Returns what the statement sorts by. Its column with the value is `sort_value`.
    pub(in crate::storage) fn order_by(&self, dialect: Dialect) -> String {
        let Some(position) = self.position else { return dialect.order_by_core("a.core").0.to_owned() };
        let value = if self.value.is_some() { "sort_value DESC, " } else { "" };
        format!("{value}{position} DESC, a.core")
    }

    /// Returns the condition that an artifact comes after the one that a cursor describes.
    pub(in crate::storage) fn after(
        &self,
        dialect: Dialect,
        cursor: &Cursor,
        parameters: &mut StatementParameters,
    ) -> String {
        let core = parameters.bind(cursor.core);
        let Some(position) = self.position else { return dialect.order_by_core(&core).1 };
        let known = parameters.bind(cursor.position.cast_signed());
        let Some(value) = &self.value else {
            return format!("{position} <= {known} AND ({position} < {known} OR a.core > {core})");
        };
        let key = parameters.bind(key_of(cursor).unwrap_or(i64::MIN));
        // The first parts are ranges of an index.
        format!(
            "{value} <= {key} AND ({value}, {position}) <= ({key}, {known})
             AND (({value}, {position}) < ({key}, {known}) OR a.core > {core})"
        )
    }
}

fn or_none(dialect: Dialect, number: &str) -> String {
    format!("coalesce({number}, {})", dialect.smallest_number())
}

/// Returns the time or number of the artifact that a cursor describes, in milliseconds or in the unit of the attribute.
pub(super) fn key_of(cursor: &Cursor) -> Option<i64> {
    cursor.number.or_else(|| cursor.time.map(|time| time.timestamp_millis()))
}

/// Returns the artifact in a row of a page, and the cursor that describes it.
pub(in crate::storage) fn page_artifact(
    row: &SqlRow,
    order: Order,
) -> Result<(ArtifactRecord, Cursor), DamagedValue> {
    let artifact = row.artifact()?;
    let key = row.optional_integer(SORT_VALUE)?.filter(|key| *key != i64::MIN);
    let core = artifact.core;
    let plain = Cursor { kind: None, time: None, number: None, position: artifact.arrival, core };
    let cursor = match order {
        Order::Newest(TimeBasis::LastSeen) => Cursor { time: Some(artifact.seen_at), ..plain },
        Order::Newest(TimeBasis::FirstSeen) => {
            Cursor { time: Some(artifact.added_at), position: artifact.addition, ..plain }
        }
        Order::Newest(TimeBasis::Created | TimeBasis::Finished) => {
            Cursor { time: key.map(|_| row.time(SORT_VALUE)).transpose()?, ..plain }
        }
        Order::Largest(_) => Cursor { number: key, ..plain },
        Order::Core => Cursor { position: 0, ..plain },
        Order::Kind => Cursor { kind: Some(artifact.kind.clone()), ..plain },
    };
    Ok((artifact, cursor))
}
