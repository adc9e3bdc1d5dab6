//! Parameters of statements, and the values that they return.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::interface::ArtifactRecord;

/// A parameter of a statement.
#[derive(Clone, Copy, Debug)]
pub(in crate::storage) enum SqlParameter<'p> {
    Integer(Option<i64>),
    Text(Option<&'p str>),
    Bytes(&'p [u8]),
    Integers(&'p [i64]),
    Texts(&'p [String]),
    Digests(&'p [Digest]),
    Blobs(&'p [BlobHash]),
    Cores(&'p [CoreHash]),
}

/// A value in a column. Truth values are 1 and 0 where the database has no type for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::storage) enum SqlValue {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The columns of an artifact `a` of the kind `k`, in the order that [`SqlRow::artifact`] reads.
pub(super) const ARTIFACT: &str = "a.core, k.name, a.added_at, a.seen_at, a.id, a.arrival";

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
pub(in crate::storage) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

macro_rules! parameters {
    ($($type:ty: $value:ident => $parameter:expr;)+) => {
        $(impl<'p> From<$type> for SqlParameter<'p> {
            fn from($value: $type) -> Self {
                $parameter
            }
        })+
    };
}

parameters! {
    i64: number => Self::Integer(Some(number));
    u64: number => Self::Integer(Some(i64::try_from(number).unwrap_or(i64::MAX)));
    usize: limit => Self::Integer(Some(limit_of(limit)));
    Option<DateTime<Utc>>: time => Self::Integer(time.map(ceil_millis));
    Option<&'p str>: text => Self::Text(text);
    &'p str: text => Self::Text(Some(text));
    &'p Digest: digest => Self::Bytes(digest.as_bytes());
    &'p [i64]: numbers => Self::Integers(numbers);
    &'p [String]: texts => Self::Texts(texts);
    &'p [Digest]: digests => Self::Digests(digests);
    &'p [BlobHash]: blobs => Self::Blobs(blobs);
    &'p [CoreHash]: cores => Self::Cores(cores);
}

macro_rules! values {
    ($($type:ty: $value:ident => $column:expr;)+) => {
        $(impl From<$type> for SqlValue {
            fn from($value: $type) -> Self {
                $column
            }
        })+
    };
}

values! {
    i64: number => Self::Integer(number);
    u64: number => Self::Integer(number.cast_signed());
    bool: is_true => Self::Integer(i64::from(is_true));
    String: text => Self::Text(text);
    Option<String>: text => text.map_or(Self::Null, Self::Text);
    Vec<u8>: bytes => Self::Bytes(bytes);
    Digest: digest => Self::Bytes(digest.as_bytes().to_vec());
    CoreHash: core => core.0.into();
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
    pub(super) fn as_text(&self, column: usize) -> Option<&str> {
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
    pub(super) fn artifact(&self) -> Result<ArtifactRecord, DamagedValue> {
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
