//! Parameters of statements, the values that they return, and tables that have the same columns in both databases.

use std::fmt;

use SqlType::{Bytes, Integer, Text};
use chrono::{DateTime, Utc};

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::interface::ArtifactRecord;

/// A value in a column. Truth values are 1 and 0 where the database has no type for them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::storage) enum SqlValue {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A parameter of a statement, with its type: PostgreSQL also has to know that of a missing value.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "values in a file have their own types"))]
pub(in crate::storage) enum SqlParameter {
    Value(SqlType, SqlValue),
    List(SqlType, Vec<SqlValue>),
}

/// The parameters of a statement while its text is written.
#[derive(Default)]
pub(in crate::storage) struct StatementParameters(Vec<SqlParameter>);

impl StatementParameters {
    /// Adds a parameter, and returns how the statement names it.
    pub(in crate::storage) fn bind(&mut self, value: impl Into<SqlParameter>) -> String {
        self.0.push(value.into());
        format!("?{}", self.0.len())
    }

    /// Returns the parameters in their order.
    pub(in crate::storage) fn values(&self) -> &[SqlParameter] {
        &self.0
    }
}

/// The columns of an artifact `a` of the kind `k`, in the order that [`SqlRow::artifact`] reads.
pub(in crate::storage) const ARTIFACT: &str = "a.core, k.name, a.added_at, a.seen_at, a.id, a.arrival";

/// A row that a query returned.
#[derive(Clone, Debug)]
pub(in crate::storage) struct SqlRow(pub(in crate::storage) Vec<SqlValue>);

/// A value that cannot be what was written.
#[derive(Clone, Debug)]
pub(in crate::storage) struct DamagedValue {
    /// The position of its column in the query.
    pub(in crate::storage) column: usize,
    reason: &'static str,
}

impl DamagedValue {
    pub(super) fn new(column: usize, reason: &'static str) -> Self {
        Self { column, reason }
    }
}

impl fmt::Display for DamagedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl std::error::Error for DamagedValue {}

/// Returns the first millisecond that is not before `time`. Stored times have milliseconds.
pub(in crate::storage) fn ceil_millis(time: DateTime<Utc>) -> i64 {
    let millis = time.timestamp_millis();
    let is_whole = time.timestamp_subsec_nanos().is_multiple_of(1_000_000);
    if is_whole { millis } else { millis.saturating_add(1) }
}

/// Returns a limit as a parameter.
fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A type whose values have one type in the database.
pub(in crate::storage) trait StaticSqlType: Into<SqlValue> {
    const TYPE: SqlType;
}

macro_rules! values {
    ($($type:ty: $of:ident, $value:ident => $column:expr;)+) => {
        $(
            impl From<$type> for SqlValue {
                fn from($value: $type) -> Self {
                    $column
                }
            }

            impl StaticSqlType for $type {
                const TYPE: SqlType = SqlType::$of;
            }
        )+
    };
}

values! {
    i64: Integer, number => Self::Integer(number);
    usize: Integer, limit => Self::Integer(limit_of(limit));
    bool: Flag, is_true => Self::Integer(i64::from(is_true));
    String: Text, text => Self::Text(text);
    &String: Text, text => Self::Text(text.clone());
    &str: Text, text => Self::Text(text.to_owned());
    Vec<u8>: Bytes, bytes => Self::Bytes(bytes);
    [u8; 16]: Bytes, bytes => Self::Bytes(bytes.to_vec());
    Digest: Bytes, digest => Self::Bytes(digest.as_bytes().to_vec());
    &Digest: Bytes, digest => (*digest).into();
    CoreHash: Bytes, core => core.0.into();
    CaptureHash: Bytes, capture => capture.0.into();
    BlobHash: Bytes, blob => blob.0.into();
}

/// Numbers of stored rows, which may be damaged, keep all their bits.
impl From<u64> for SqlValue {
    fn from(number: u64) -> Self {
        Self::Integer(number.cast_signed())
    }
}

impl<T: StaticSqlType> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

impl<T: StaticSqlType> From<T> for SqlParameter {
    fn from(value: T) -> Self {
        Self::Value(T::TYPE, value.into())
    }
}

impl<T: StaticSqlType> From<Option<T>> for SqlParameter {
    fn from(value: Option<T>) -> Self {
        Self::Value(T::TYPE, value.into())
    }
}

impl<T: StaticSqlType + Clone> From<&[T]> for SqlParameter {
    fn from(values: &[T]) -> Self {
        Self::List(T::TYPE, values.iter().cloned().map(T::into).collect())
    }
}

impl<T: StaticSqlType> FromIterator<T> for SqlParameter {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::List(T::TYPE, values.into_iter().map(T::into).collect())
    }
}

impl From<u64> for SqlParameter {
    fn from(number: u64) -> Self {
        i64::try_from(number).unwrap_or(i64::MAX).into()
    }
}

impl From<Option<DateTime<Utc>>> for SqlParameter {
    fn from(time: Option<DateTime<Utc>>) -> Self {
        time.map(ceil_millis).into()
    }
}

impl SqlRow {
    pub(super) fn value(&self, column: usize) -> Result<&SqlValue, DamagedValue> {
        self.0.get(column).ok_or(DamagedValue { column, reason: "a column is missing" })
    }

    /// Returns a number, if there is one.
    pub(in crate::storage) fn optional_integer(&self, column: usize) -> Result<Option<i64>, DamagedValue> {
        match self.value(column)? {
            SqlValue::Null => Ok(None),
            SqlValue::Integer(number) => Ok(Some(*number)),
            _ => Err(DamagedValue { column, reason: "a value is not a number" }),
        }
    }

    /// Returns a number.
    pub(in crate::storage) fn integer(&self, column: usize) -> Result<i64, DamagedValue> {
        let missing = DamagedValue { column, reason: "a number is missing" };
        self.optional_integer(column)?.ok_or(missing)
    }

    /// Returns a number that is not negative.
    pub(in crate::storage) fn count(&self, column: usize) -> Result<u64, DamagedValue> {
        let negative = |_| DamagedValue { column, reason: "a count is negative" };
        u64::try_from(self.integer(column)?).map_err(negative)
    }

    /// Returns a truth value.
    pub(in crate::storage) fn flag(&self, column: usize) -> Result<bool, DamagedValue> {
        Ok(self.integer(column)? != 0)
    }

    /// Returns the time of a number of milliseconds since 1970.
    pub(in crate::storage) fn time(&self, column: usize) -> Result<DateTime<Utc>, DamagedValue> {
        let invalid = DamagedValue { column, reason: "a time is out of range" };
        DateTime::from_timestamp_millis(self.integer(column)?).ok_or(invalid)
    }

    /// Returns a text, if there is one.
    pub(in crate::storage) fn optional_text(&self, column: usize) -> Result<Option<String>, DamagedValue> {
        match self.value(column)? {
            SqlValue::Null => Ok(None),
            SqlValue::Text(text) => Ok(Some(text.clone())),
            _ => Err(DamagedValue { column, reason: "a value is not a text" }),
        }
    }

    /// Returns a text, unless the column has another value.
    pub(in crate::storage) fn as_text(&self, column: usize) -> Option<&str> {
        match self.value(column) {
            Ok(SqlValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns a text.
    pub(in crate::storage) fn text(&self, column: usize) -> Result<String, DamagedValue> {
        let missing = DamagedValue { column, reason: "a text is missing" };
        self.optional_text(column)?.ok_or(missing)
    }

    /// Returns bytes.
    pub(in crate::storage) fn bytes(&self, column: usize) -> Result<&[u8], DamagedValue> {
        match self.value(column)? {
            SqlValue::Bytes(bytes) => Ok(bytes),
            _ => Err(DamagedValue { column, reason: "a value does not consist of bytes" }),
        }
    }

    /// Returns bytes, if there are any.
    #[cfg(feature = "postgres")]
    pub(in crate::storage) fn optional_bytes(&self, column: usize) -> Result<Option<&[u8]>, DamagedValue> {
        if *self.value(column)? == SqlValue::Null { Ok(None) } else { self.bytes(column).map(Some) }
    }

    /// Returns a digest.
    pub(in crate::storage) fn digest(&self, column: usize) -> Result<Digest, DamagedValue> {
        let invalid = |_| DamagedValue { column, reason: "a digest does not have 32 bytes" };
        self.bytes(column)?.try_into().map(Digest::from_bytes).map_err(invalid)
    }

    /// Returns the artifact in the columns [`ARTIFACT`].
    pub(in crate::storage) fn artifact(&self) -> Result<ArtifactRecord, DamagedValue> {
        Ok(ArtifactRecord {
            core: self.core(0)?,
            kind: self.text(1)?,
            added_at: self.time(2)?,
            seen_at: self.time(3)?,
            addition: self.count(4)?,
            arrival: self.count(5)?,
        })
    }

    /// Returns a digest, if there is one.
    pub(in crate::storage) fn optional_digest(&self, column: usize) -> Result<Option<Digest>, DamagedValue> {
        if *self.value(column)? == SqlValue::Null { Ok(None) } else { self.digest(column).map(Some) }
    }

    pub(in crate::storage) fn core(&self, column: usize) -> Result<CoreHash, DamagedValue> {
        self.digest(column).map(CoreHash)
    }

    pub(in crate::storage) fn blob(&self, column: usize) -> Result<BlobHash, DamagedValue> {
        self.digest(column).map(BlobHash)
    }

    pub(in crate::storage) fn capture(&self, column: usize) -> Result<CaptureHash, DamagedValue> {
        self.digest(column).map(CaptureHash)
    }
}

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::storage) struct SqlTable {
    /// Its name.
    pub(in crate::storage) name: &'static str,
    /// Its columns. Those of the key come first.
    pub(in crate::storage) columns: &'static [(&'static str, SqlType)],
    /// The number of columns that the key has.
    pub(in crate::storage) key: usize,
    /// The column whose texts PostgreSQL finds by a hash, which it has in a further column `key`.
    pub(in crate::storage) hashed: Option<usize>,
}

impl SqlTable {
    /// Creates a table whose first `key` columns are its key.
    pub(in crate::storage) const fn new(
        name: &'static str,
        key: usize,
        columns: &'static [(&'static str, SqlType)],
    ) -> Self {
        Self { name, columns, key, hashed: None }
    }

    /// Returns the table with the hash of a column.
    #[cfg(feature = "postgres")]
    pub(in crate::storage) const fn hashing(self, column: usize) -> Self {
        Self { hashed: Some(column), ..self }
    }
}

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum SqlType {
    Integer,
    Flag,
    Text,
    Bytes,
}

/// Names that people give to artifacts.
pub(super) const TAG: SqlTable =
    SqlTable::new("tag", 1, &[("name", Text), ("artifact", Integer), ("at", Integer)]);

/// What people want to remember of artifacts.
pub(super) const NOTE: SqlTable =
    SqlTable::new("note", 1, &[("artifact", Integer), ("text", Text), ("folded", Bytes), ("at", Integer)]);

/// Artifacts that must not be removed.
pub(super) const PIN: SqlTable =
    SqlTable::new("pin", 1, &[("artifact", Integer), ("note", Text), ("at", Integer)]);

/// Labels, which many artifacts share.
pub(super) const LABEL: SqlTable =
    SqlTable::new("label", 2, &[("artifact", Integer), ("key", Text), ("value", Text), ("at", Integer)]);

/// Links that people state.
pub(super) const LINK: SqlTable = SqlTable::new(
    "link",
    3,
    &[("source", Integer), ("relation", Text), ("target", Integer), ("note", Text), ("at", Integer)],
);

/// What was removed.
pub(super) const TOMBSTONE: SqlTable = SqlTable::new(
    "tombstone",
    2,
    &[
        ("digest", Bytes),
        ("entry", Integer),
        ("at", Integer),
        ("core", Bytes),
        ("kind", Text),
        ("actor", Text),
        ("reason", Text),
        ("remaining", Integer),
        ("size", Integer),
    ],
);
