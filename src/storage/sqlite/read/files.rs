//! The files of captures.

use rusqlite::Row;

use super::SqliteSnapshot;
use crate::artifact::is_capture_of;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::seal::seal;
use crate::storage::sqlite::error::{PayloadDefect, ReadFailure};
use crate::storage::sqlite::ids::{beginning, blob_id};
use crate::storage::sqlite::rows::ArtifactId;
use crate::storage::{FileRecord, MemberRecord, Result, StorageError};

impl SqliteSnapshot<'_> {
    /// Returns the names and blob hashes of the members of a capture, sorted by name. Their bindings to the capture and
    /// to its artifact are hashed again; the bytes are not read.
    ///
    /// # Errors
    /// Returns [`Damaged`](crate::storage::ErrorKind::Damaged) if they do not belong to the capture or the capture not to
    /// `core`, and another error if the database cannot be read.
    pub(crate) fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>> {
        Ok(self.own_members(core, capture)?.into_iter().map(|member| member.row).collect())
    }

    /// Returns the bytes of one member of a capture after checking their hash.
    ///
    /// # Errors
    /// Returns [`Damaged`](crate::storage::ErrorKind::Damaged) if the bytes are not those that were stored, and another
    /// error if the database cannot be read.
    pub(crate) fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        let id = blob_id(&*self.connection, blob).map_err(|error| self.failed(error))?;
        let defect = PayloadDefect::Missing { blob };
        let id = id.ok_or_else(|| StorageError::damaged(core, capture, defect))?;
        self.payload(core, capture, id, blob)
    }

    /// Returns a file with these bytes in a capture of several files: from the capture that was added first, and the
    /// first by name in it.
    pub(crate) fn file_with(&self, blob: BlobHash) -> Result<Option<FileRecord>> {
        let sql = "SELECT c.artifact, c.digest, m.name
                     FROM blob b JOIN member m ON m.blob = b.id JOIN capture c ON c.id = m.capture
                    WHERE substr(b.digest, 1, 8) = ?1 AND b.digest = ?2 ORDER BY c.id, m.name LIMIT 1";
        let key = (beginning(&blob.0), blob.0.as_bytes());
        let file =
            self.rows(sql, key, |row| Ok((row.get::<_, ArtifactId>(0)?, row.get(1)?, row.get(2)?)))?.pop();
        let Some((artifact, capture, name)) = file else { return Ok(None) };
        Ok(Some(FileRecord { artifact: self.core_of(artifact)?, capture, name }))
    }

    fn payload(&self, core: CoreHash, capture: CaptureHash, id: i64, blob: BlobHash) -> Result<Vec<u8>> {
        self.payloads().bytes(id, blob).map_err(|failure| match failure {
            ReadFailure::Defect(defect) => StorageError::damaged(core, capture, defect),
            ReadFailure::Database(error) => self.failed(error),
        })
    }

    /// Returns the members of a capture after checking that they belong to it and that it belongs to its artifact.
    fn own_members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<UnreadMember>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let members = self.stored_members(core, capture)?;
        if members.is_empty() {
            return Err(damaged(PayloadDefect::NoMembers));
        }
        let blobs: Vec<_> =
            members.iter().map(|member| (member.row.name.as_str(), member.row.blob)).collect();
        if !members.iter().all(|member| member.sealed) || !is_capture_of(capture, &blobs) {
            return Err(damaged(PayloadDefect::NotItsOwn));
        }
        Ok(members)
    }

    fn stored_members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<UnreadMember>> {
        let expected_seal = seal(core, capture);
        let member = |row: &Row<'_>| {
            Ok(UnreadMember {
                row: MemberRecord { name: row.get(0)?, blob: BlobHash(row.get(1)?), size: row.get(3)? },
                sealed: row.get_ref(2)?.as_blob()? == expected_seal.as_slice(),
            })
        };
        let sql = "SELECT coalesce(k.member, ''), b.digest, c.seal, b.size
                     FROM blob b JOIN capture c ON c.blob = b.id
                     JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
                    WHERE substr(b.digest, 1, 8) = ?1 AND b.digest = ?2 AND a.core = ?3";
        let key = (beginning(&capture.0), capture.0.as_bytes(), core.0.as_bytes());
        let mut document = self.rows(sql, key, member)?;
        if !document.is_empty() {
            // In a damaged vault, the capture may be there more than once.
            document.sort_by_key(|member| !member.sealed);
            document.truncate(1);
            return Ok(document);
        }
        let sql = "SELECT m.name, b.digest, c.seal, b.size
                     FROM capture c JOIN member m ON m.capture = c.id JOIN blob b ON b.id = m.blob
                     JOIN artifact a ON a.id = c.artifact
                    WHERE c.digest = ?1 AND a.core = ?2 ORDER BY m.name";
        self.rows(sql, (capture.0.as_bytes(), core.0.as_bytes()), member)
    }
}

/// A member of a capture whose bytes have not been read.
struct UnreadMember {
    row: MemberRecord,
    /// Whether the capture's seal matches its artifact.
    sealed: bool,
}
