//! Values of rows.

use chrono::{DateTime, Utc};
use postgres::Row;
use postgres::types::FromSql;

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::text;
pub(super) use crate::storage::sql::limit_of as limit;

/// Returns the value of a column.
pub(super) fn value<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> PostgresResult<T> {
    row.try_get(index).map_err(PostgresError::from)
}

/// Returns a number that is not negative.
pub(super) fn count(row: &Row, index: usize) -> PostgresResult<u64> {
    let number: i64 = value(row, index)?;
    u64::try_from(number).map_err(|_| PostgresError::damaged("a count is negative"))
}

/// Returns a digest.
pub(super) fn digest(row: &Row, index: usize) -> PostgresResult<Digest> {
    let bytes: &[u8] = value(row, index)?;
    let bytes = bytes.try_into().map_err(|_| PostgresError::damaged("a digest does not have 32 bytes"))?;
    Ok(Digest::from_bytes(bytes))
}

/// Returns the digests that stand one after the other in a value.
pub(super) fn digests(bytes: &[u8]) -> PostgresResult<Vec<Digest>> {
    let (digests, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(PostgresError::damaged("a list of digests ends within a digest"));
    }
    Ok(digests.iter().map(|digest| Digest::from_bytes(*digest)).collect())
}

pub(super) fn core(row: &Row, index: usize) -> PostgresResult<CoreHash> {
    digest(row, index).map(CoreHash)
}

pub(super) fn capture(row: &Row, index: usize) -> PostgresResult<CaptureHash> {
    digest(row, index).map(CaptureHash)
}

pub(super) fn blob(row: &Row, index: usize) -> PostgresResult<BlobHash> {
    digest(row, index).map(BlobHash)
}

/// Returns the name of an object in object storage.
pub(super) fn object_name(row: &Row, index: usize) -> PostgresResult<[u8; 16]> {
    let bytes: &[u8] = value(row, index)?;
    bytes.try_into().map_err(|_| PostgresError::damaged("the name of an object does not have 16 bytes"))
}

/// Returns a text.
pub(super) fn text(row: &Row, index: usize) -> PostgresResult<String> {
    text::from_stored(value(row, index)?)
}

/// Returns a text, if there is one.
pub(super) fn optional_text(row: &Row, index: usize) -> PostgresResult<Option<String>> {
    value::<Option<String>>(row, index)?.map(text::from_stored).transpose()
}

/// Returns a time.
pub(super) fn time(row: &Row, index: usize) -> PostgresResult<DateTime<Utc>> {
    from_millis(value(row, index)?)
}

/// Returns the time of a number of milliseconds.
pub(super) fn from_millis(millis: i64) -> PostgresResult<DateTime<Utc>> {
    DateTime::from_timestamp_millis(millis).ok_or_else(|| PostgresError::damaged("a time is out of range"))
}
