//! The files of captures.

use super::SqliteSnapshot;
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::seal::seal;
use crate::storage::sqlite::error::{PayloadDefect, ReadFailure};
use crate::storage::sqlite::ids::{beginning, blob_id};
use crate::storage::sqlite::rows::ArtifactId;
use crate::storage::{FileRecord, MemberRecord, Result, StorageError};

impl SqliteSnapshot<'_> {
    /// Returns the names and blob hashes of the members of a capture, sorted by name: those that its manifest has, which is
    /// hashed again, like the binding of the capture to its artifact. The bytes of members are not read.
    ///
    /// # Errors
    /// Returns [`Damaged`](crate::storage::ErrorKind::Damaged) if the manifest is damaged, a member is missing or the capture
    /// does not belong to `core`, and another error if the database cannot be read.
    pub(crate) fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let own = self.own_blob(core, capture)?.ok_or_else(|| damaged(PayloadDefect::NoMembers))?;
        if !own.is_sealed {
            return Err(damaged(PayloadDefect::NotItsOwn));
        }
        let blob = BlobHash(capture.0);
        if let Some(name) = own.document_name {
            return Ok(vec![MemberRecord { name, blob, size: own.size }]);
        }
        let files = parse_manifest(&self.payload(core, capture, own.id, blob)?);
        let files = files.ok_or_else(|| damaged(PayloadDefect::NotItsOwn))?;
        let member = |(name, blob): (String, BlobHash)| {
            let sql = "SELECT size FROM blob WHERE substr(digest, 1, 8) = ?1 AND digest = ?2";
            let size = self.rows(sql, (beginning(&blob.0), blob.0.as_bytes()), |row| row.get(0))?.pop();
            let size = size.ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
            Ok(MemberRecord { name, blob, size })
        };
        files.into_iter().map(member).collect()
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
        let sql = "SELECT c.artifact, o.digest, m.name
                     FROM blob b JOIN member m ON m.blob = b.id JOIN capture c ON c.id = m.capture
                     JOIN blob o ON o.id = c.blob
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

    /// Returns the blob of a capture.
    fn own_blob(&self, core: CoreHash, capture: CaptureHash) -> Result<Option<CaptureBlob>> {
        let expected_seal = seal(core, capture);
        let sql = "SELECT b.id, b.size, k.member, c.seal
                     FROM blob b JOIN capture c ON c.blob = b.id
                     JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
                    WHERE substr(b.digest, 1, 8) = ?1 AND b.digest = ?2 AND a.core = ?3";
        let key = (beginning(&capture.0), capture.0.as_bytes(), core.0.as_bytes());
        let found = self.rows(sql, key, |row| {
            Ok(CaptureBlob {
                id: row.get(0)?,
                size: row.get(1)?,
                document_name: row.get(2)?,
                is_sealed: row.get_ref(3)?.as_blob()? == expected_seal.as_slice(),
            })
        })?;
        // In a damaged vault, the capture may be there more than once.
        Ok(found.into_iter().min_by_key(|capture| !capture.is_sealed))
    }
}

/// The blob of a capture, which has not been read.
struct CaptureBlob {
    id: i64,
    size: u64,
    /// The name of the document that it is; `None` if it is the manifest of a directory.
    document_name: Option<String>,
    /// Whether the capture's seal matches its artifact.
    is_sealed: bool,
}
