//! Reading the bytes of blobs.

use std::collections::HashMap;

use super::blob_store::{BlobCatalogEntry, BlobReadResult, ObjectRange};
use super::encoding::decoded;
use super::error::PostgresResult;
use super::parameters::object_name;
use super::session::DatabaseTransaction;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::PayloadDefect;
use crate::storage::sql::{SqlRow, SqlSession as _, SqlValue};

/// The columns of a blob `b`, in the order of [`read`]: its size, and where its bytes are, or those of its base.
const PLACE: &str = "b.size, w.digest, w.size, w.encoding, w.bytes, w.object, w.start, w.length";

/// The blobs `b` with those that have their bytes. A base that has a base itself has none.
const BLOBS: &str = "blob b LEFT JOIN blob w ON w.digest = coalesce(b.base, b.digest) AND w.base IS NULL";

/// A blob, which nothing is known of but what was read.
#[derive(Clone)]
pub(super) struct BlobExamination {
    /// The recorded size.
    pub(super) size: i64,
    pub(super) bytes: BlobReadResult,
}

/// Reads the bytes of blobs from where they are, never from copies, as far as the catalog has the blobs, and hashes them.
pub(super) fn examine(
    session: &DatabaseTransaction<'_>,
    blobs: &[BlobHash],
) -> PostgresResult<HashMap<BlobHash, BlobExamination>> {
    let sql = format!("SELECT b.digest, {PLACE} FROM {BLOBS} WHERE b.digest = ANY($1)");
    let mut examined = HashMap::new();
    session.each(&sql, &[blobs.into()], &mut |row| {
        let (blob, size) = (row.blob(0)?, row.integer(1)?);
        let bytes = read(session, blob, row, 1, false)?;
        examined.insert(blob, BlobExamination { size, bytes });
        Ok(())
    })?;
    Ok(examined)
}

/// Returns the bytes of a blob, wherever they are, hashed again: those of a copy only if that `may_be_copy`. The columns of
/// [`PLACE`] begin at `from`.
fn read(
    session: &DatabaseTransaction<'_>,
    blob: BlobHash,
    row: SqlRow,
    from: usize,
    may_be_copy: bool,
) -> PostgresResult<BlobReadResult> {
    let missing = || Ok(Err(PayloadDefect::Missing { blob }));
    if row.optional_bytes(from + 1)?.is_none() {
        return missing();
    }
    let whole = row.blob(from + 1)?;
    // No bytes have a damaged size.
    let count = |column| -> PostgresResult<u64> { Ok(u64::try_from(row.integer(column)?).unwrap_or(0)) };
    let (size, whole_size) = (count(from)?, count(from + 2)?);
    let stored = place(row, from + 3, whole_size)?;
    let read = match (session.server().blobs(), stored.part, stored.bytes) {
        (None, None, Some(bytes)) => decoded(whole, stored.size, stored.encoding, bytes),
        (Some(store), Some(part), bytes) => {
            store.read(whole, &BlobCatalogEntry { bytes, ..stored }, part, may_be_copy)?
        }
        _ => return missing(),
    };
    Ok(if whole == blob { read } else { read.and_then(|bytes| beginning(blob, bytes, size)) })
}

/// Returns the first bytes of a base as those of a blob, hashed.
fn beginning(blob: BlobHash, mut bytes: Vec<u8>, size: u64) -> BlobReadResult {
    bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    bytes.shrink_to_fit();
    let actual = BlobHash(Digest::from_content(&bytes));
    if actual == blob { Ok(bytes) } else { Err(PayloadDefect::Hash { blob, actual }) }
}

/// Returns what the last five columns of [`PLACE`] have, the first of which is `from`.
fn place(mut row: SqlRow, from: usize, size: u64) -> PostgresResult<BlobCatalogEntry> {
    let part = || -> PostgresResult<ObjectRange> {
        Ok(ObjectRange {
            object: object_name(&row, from + 2)?,
            start: row.count(from + 3)?,
            length: row.count(from + 4)?,
        })
    };
    let part = row.optional_bytes(from + 2)?.is_some().then(part).transpose()?;
    let encoding = row.integer(from)?;
    // They are not copied, however many they are.
    let bytes = match row.0.get_mut(from + 1) {
        Some(SqlValue::Bytes(bytes)) => Some(std::mem::take(bytes)),
        _ => None,
    };
    Ok(BlobCatalogEntry { size, encoding, bytes, part })
}

/// Returns the bytes of a blob that belongs to a capture of an artifact, wherever they are, hashed again, if the vault has the
/// capture.
pub(super) fn read_of_capture(
    session: &DatabaseTransaction<'_>,
    blob: BlobHash,
    core: CoreHash,
    capture: CaptureHash,
) -> PostgresResult<BlobReadResult> {
    let sql = format!(
        "SELECT {PLACE} FROM {BLOBS} WHERE b.digest = $1
            AND EXISTS (SELECT 1 FROM artifact a JOIN capture c ON c.artifact = a.id WHERE a.core = $2 AND c.digest = $3)"
    );
    let row = session.row(&sql, &[blob.into(), core.into(), capture.into()])?;
    let Some(row) = row else { return Ok(Err(PayloadDefect::Missing { blob })) };
    read(session, blob, row, 0, true)
}
