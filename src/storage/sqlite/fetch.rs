//! The fast path to the bytes of one document by its core hash: one statement, no transaction.

use rusqlite::{Connection, OptionalExtension};

use super::dictionaries::DecompressionDictionaryCache;
use super::ids::beginning;
use super::payload::{PayloadReader, PayloadRow};
use crate::artifact::is_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::seal::seal;

/// Returns the verified bytes of the preferred capture of a document. Returns `None` if the fast path does not apply:
/// the artifact is missing, is a directory or is stored as a delta, its captures have different signature states, or it
/// is damaged. The general path reports which.
pub(super) fn document(
    connection: &Connection,
    readers: &DecompressionDictionaryCache,
    core: CoreHash,
) -> rusqlite::Result<Option<Vec<u8>>> {
    let found = connection
        .prepare_cached(
            "SELECT b.size, p.encoding, p.base, p.dictionary, p.digests, p.bytes, b.digest, c.seal
               FROM artifact a JOIN kind k ON k.id = a.kind AND k.member IS NOT NULL
               JOIN capture c ON c.id = (
                 SELECT CASE WHEN min(coalesce(s.state, '')) = max(coalesce(s.state, '')) THEN min(f.id) END
                   FROM capture f LEFT JOIN signature s ON s.capture = f.id WHERE f.artifact = a.id)
               JOIN blob b ON b.id = c.blob JOIN payload p ON p.blob = b.id
              WHERE substr(a.core, 1, 8) = ?1 AND a.core = ?2",
        )?
        .query_row((beginning(&core.0), core.0.as_bytes()), |row| {
            let digest: Digest = row.get(6)?;
            let sealed = row.get_ref(7)?.as_blob()? == seal(core, CaptureHash(digest)).as_slice();
            Ok((PayloadRow::from_row(row, BlobHash(digest))?, sealed))
        })
        .optional()?;
    Ok(match found {
        Some((row, true)) if row.is_whole() => {
            let bytes = PayloadReader { connection, readers }.bytes_of(row).ok();
            bytes.filter(|bytes| !is_manifest(core, bytes))
        }
        _ => None,
    })
}
