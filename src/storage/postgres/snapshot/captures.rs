//! Captures, their members and their bytes.

use std::collections::HashMap;

use postgres::Row;

use crate::artifact::{Signature, SignatureState, parse_manifest};
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::interface::{FileRecord, MemberRecord, SharedFile};
use crate::storage::postgres::bytes::{self, place};
use crate::storage::postgres::columns::{
    blob, capture, core, count, limit as limit_of, optional_text, text, value,
};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::view::PostgresSnapshot;
use crate::storage::seal::seal;
use crate::storage::sql::in_order;
use crate::storage::{PayloadDefect, StorageError};

/// Returns the signature in two columns from `first` on.
pub(in crate::storage::postgres) fn signature(row: &Row, first: usize) -> PostgresResult<Option<Signature>> {
    let Some(state) = value::<Option<&str>>(row, first)? else { return Ok(None) };
    let state = SignatureState::named(state)
        .ok_or_else(|| PostgresError::damaged("a signature has no such state"))?;
    Ok(Some(Signature { state, key_id: optional_text(row, first + 1)? }))
}

impl PostgresSnapshot<'_> {
    /// Returns the members of a capture, those that its manifest has, after hashing that again and checking that the capture
    /// belongs to its artifact.
    pub(super) fn members(&self, core: CoreHash, capture: CaptureHash) -> PostgresResult<Vec<MemberRecord>> {
        let damaged = |defect| PostgresError::from(StorageError::damaged(core, capture, defect));
        let sql = "SELECT c.seal, k.is_directory, m.name, b.size, b.encoding, CASE WHEN k.is_directory THEN b.bytes END,
                          b.object, b.start, b.length
                     FROM artifact a JOIN kind k ON k.id = a.kind
                     JOIN capture c ON c.artifact = a.id LEFT JOIN blob b ON b.digest = c.digest
                     LEFT JOIN member m ON m.capture = c.id AND m.blob = c.digest
                    WHERE a.core = $1 AND c.digest = $2 ORDER BY m.name LIMIT 1";
        let row = self.session.row(sql, &[&core, &capture])?;
        let row = row.ok_or_else(|| damaged(PayloadDefect::NoMembers))?;
        if value::<&[u8]>(&row, 0)? != seal(core, capture) {
            return Err(damaged(PayloadDefect::NotItsOwn));
        }
        let blob = BlobHash(capture.0);
        if value::<Option<i64>>(&row, 3)?.is_none() {
            return Err(damaged(PayloadDefect::Missing { blob }));
        }
        let size = count(&row, 3)?;
        if !value::<bool>(&row, 1)? {
            let name = optional_text(&row, 2)?.unwrap_or_default();
            return Ok(vec![MemberRecord { name, blob, size }]);
        }
        let manifest = self.session.server().blobs().read(blob, place(&row, 4, size)?)?.map_err(damaged)?;
        let files = parse_manifest(&manifest).ok_or_else(|| damaged(PayloadDefect::NotItsOwn))?;
        let sizes = self.sizes(&files)?;
        let member = |(name, blob)| {
            let size = sizes.get(&blob).ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
            Ok(MemberRecord { name, blob, size: *size })
        };
        files.into_iter().map(member).collect()
    }

    /// Returns the sizes of files by hash.
    fn sizes(&self, files: &[(String, BlobHash)]) -> PostgresResult<HashMap<BlobHash, u64>> {
        let blobs: Vec<BlobHash> = files.iter().map(|(_, blob)| *blob).collect();
        let rows = self.session.rows("SELECT digest, size FROM blob WHERE digest = ANY($1)", &[&blobs])?;
        rows.iter().map(|row| Ok((blob(row, 0)?, count(row, 1)?))).collect()
    }

    /// Returns the bytes of a member, hashed again.
    pub(super) fn read(
        &self,
        core: CoreHash,
        capture: CaptureHash,
        blob: BlobHash,
    ) -> PostgresResult<Vec<u8>> {
        let read = bytes::read_of_capture(&self.session, blob, core, capture)?;
        read.map_err(|defect| PostgresError::from(StorageError::damaged(core, capture, defect)))
    }

    pub(super) fn files(&self, blobs: &[BlobHash]) -> PostgresResult<Vec<Option<FileRecord>>> {
        let sql = "SELECT DISTINCT ON (m.blob) m.blob, a.core, c.digest, m.name
                     FROM member m JOIN capture c ON c.id = m.capture JOIN artifact a ON a.id = c.artifact
                     JOIN kind k ON k.id = a.kind
                    WHERE m.blob = ANY($1) AND k.is_directory ORDER BY m.blob, c.id, m.name";
        let mut found = HashMap::new();
        for row in self.session.rows(sql, &[&blobs])? {
            let file =
                FileRecord { artifact: core(&row, 1)?, capture: capture(&row, 2)?, name: text(&row, 3)? };
            found.insert(blob(&row, 0)?, Some(file));
        }
        Ok(in_order(blobs, &found))
    }

    /// Returns the files of artifacts whose bytes artifacts other than these also have.
    pub(super) fn shared_files(&self, of: &[CoreHash]) -> PostgresResult<Vec<Vec<SharedFile>>> {
        let sql = "WITH file AS
                     (SELECT DISTINCT a.core, m.name, m.blob
                        FROM artifact a JOIN capture c ON c.artifact = a.id JOIN member m ON m.capture = c.id
                       WHERE a.core = ANY($1)),
                   dependent AS
                     (SELECT DISTINCT m.blob, a.core
                        FROM member m JOIN capture c ON c.id = m.capture JOIN artifact a ON a.id = c.artifact
                       WHERE m.blob IN (SELECT blob FROM file) AND a.core <> ALL($1)),
                   listed AS
                     (SELECT blob, core, row_number() OVER (PARTITION BY blob ORDER BY core) AS number,
                             count(*) OVER (PARTITION BY blob) AS count FROM dependent)
                   SELECT f.core, f.name, f.blob, l.core, l.count FROM file f JOIN listed l ON l.blob = f.blob
                    WHERE l.number <= $2 ORDER BY f.core, f.name, f.blob, l.number";
        let listed = limit_of(SharedFile::LISTED);
        let mut found: HashMap<CoreHash, Vec<SharedFile>> = HashMap::new();
        let mut last = None;
        for row in self.session.rows(sql, &[&of, &listed])? {
            let (artifact, file) = (core(&row, 0)?, (core(&row, 0)?, text(&row, 1)?, blob(&row, 2)?));
            let files = found.entry(artifact).or_default();
            if last.as_ref() != Some(&file) {
                files.push(SharedFile {
                    name: file.1.clone(),
                    dependents: Vec::new(),
                    count: count(&row, 4)?,
                });
                last = Some(file);
            }
            if let Some(shared) = files.last_mut() {
                shared.dependents.push(core(&row, 3)?);
            }
        }
        Ok(in_order(of, &found))
    }
}
