//! Captures, and those whose passages are searched.

use std::collections::{BTreeSet, HashMap};

use super::stored::{seal, signature};
use super::value::ARTIFACT;
use super::{
    DamagedValue, Dialect, SqlResult, SqlRow, SqlSession, SqlSnapshot, SqlValue, in_order, read_rows,
    read_rows_of,
};
use crate::artifact::{Admitted, parse_manifest};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::interface::{
    ArtifactRecord, CaptureQueries, CaptureRecord, CaptureTarget, FileRecord, MemberRecord,
    SearchableCapture, SharedFile,
};
use crate::storage::{PayloadDefect, Result, StorageError};

/// Returns the capture in the columns of [`Dialect::capture_columns`](super::Dialect).
fn capture_record(row: &SqlRow) -> std::result::Result<CaptureRecord, DamagedValue> {
    let warnings = row.optional_text(5)?.map(|warnings| serde_json::from_str(&warnings)).transpose();
    Ok(CaptureRecord {
        artifact: row.core(0)?,
        capture: row.capture(1)?,
        size: row.count(2)?,
        added_at: row.time(3)?,
        seen_at: row.time(4)?,
        warnings: warnings.map_err(|_| DamagedValue::new(5, "warnings are no list"))?.unwrap_or_default(),
        signature: signature(row, 6)?,
        source_path: row.optional_text(8)?,
    })
}

/// Returns the warnings of a capture as they are stored; nothing if there are none.
pub(in crate::storage) fn warnings(admitted: &Admitted) -> std::result::Result<Option<String>, DamagedValue> {
    let violations = admitted.report().violations();
    let warnings = (!violations.is_empty()).then(|| serde_json::to_string(violations)).transpose();
    warnings.map_err(|_| DamagedValue::new(5, "warnings have no JSON form"))
}

/// Returns the captures of each artifact in the order in which they were added.
pub(in crate::storage) fn captures<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> SqlResult<Vec<Vec<CaptureRecord>>, S> {
    let (columns, joins) = S::DIALECT.capture_columns();
    let sql = format!(
        "SELECT {columns} FROM {} JOIN capture c ON c.artifact = a.id {joins} ORDER BY c.id",
        S::DIALECT.artifacts("?1")
    );
    read_rows_of(session, &sql, of, &[], capture_record)
}

/// Returns each of these captures, if it is stored.
pub(in crate::storage) fn captures_with<S: SqlSession>(
    session: &S,
    targets: &[CaptureTarget],
) -> SqlResult<Vec<Option<CaptureRecord>>, S> {
    let (columns, joins) = S::DIALECT.capture_columns();
    let sql = format!(
        "SELECT {columns} FROM {} JOIN artifact a ON a.id = c.artifact {joins}",
        S::DIALECT.captures_with_hashes("?1")
    );
    let hashes: Vec<Digest> = targets.iter().map(|target| target.capture.0).collect();
    let found = read_rows(session, &sql, &[hashes.as_slice().into()], capture_record)?;
    let found: HashMap<_, _> =
        found.into_iter().map(|record| ((record.artifact, record.capture), record)).collect();
    Ok(targets.iter().map(|target| found.get(&(target.artifact, target.capture)).cloned()).collect())
}

/// Returns the hashes of all captures of these artifacts.
pub(in crate::storage) fn capture_hashes<S: SqlSnapshot>(
    snapshot: &S,
    of: &[CoreHash],
) -> Result<Vec<Digest>> {
    let dialect = S::Session::DIALECT;
    let (artifacts, hash) = (dialect.artifacts("?1"), dialect.hash_of_capture("c"));
    let sql = format!("SELECT DISTINCT {hash} FROM {artifacts} JOIN capture c ON c.artifact = a.id");
    snapshot.read_rows(&sql, &[of.into()], |row| Ok(row.capture(0)?.0))
}

/// Returns the artifacts that have captures with these hashes, in the order of their core hashes.
pub(in crate::storage) fn captured_as<S: SqlSnapshot>(
    snapshot: &S,
    hashes: &[Digest],
) -> Result<Vec<(CaptureHash, ArtifactRecord)>> {
    if hashes.is_empty() {
        return Ok(Vec::new());
    }
    let dialect = S::Session::DIALECT;
    let sql = format!(
        "SELECT {ARTIFACT}, {} FROM {} JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind ORDER BY a.core",
        dialect.hash_of_capture("c"),
        dialect.captures_with_hashes("?1")
    );
    snapshot.read_rows(&sql, &[hashes.into()], |row| Ok((row.capture(6)?, row.artifact()?)))
}

/// The blob of a capture, which has not been read.
struct CaptureBlob {
    /// `None` if it is missing.
    size: Option<u64>,
    /// The name of the document that it is; `None` if it is the manifest of a directory.
    document_name: Option<String>,
    /// Whether the capture's seal matches its artifact.
    is_sealed: bool,
}

/// Returns the blob of a capture of an artifact.
fn own_blob<S: SqlSnapshot>(
    snapshot: &S,
    core: CoreHash,
    capture: CaptureHash,
) -> Result<Option<CaptureBlob>> {
    let dialect = S::Session::DIALECT;
    let sql = format!(
        "SELECT b.size, {}, c.seal FROM {} JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
           LEFT JOIN blob b ON b.{} = c.{} WHERE a.core = ?2",
        dialect.name_of_document(),
        dialect.captures_with_hashes("?1"),
        dialect.key_of_blob(),
        dialect.blob_of_capture()
    );
    let expected_seal = seal(core, capture);
    let found = snapshot.read_rows(&sql, &[[capture.0].as_slice().into(), (&core.0).into()], |row| {
        let size = row.optional_integer(0)?.map(|_| row.count(0)).transpose()?;
        let is_sealed = row.bytes(2)? == expected_seal;
        Ok(CaptureBlob { size, document_name: row.optional_text(1)?, is_sealed })
    })?;
    // In a damaged vault, the capture may be there more than once.
    Ok(found.into_iter().min_by_key(|capture| !capture.is_sealed))
}

/// Returns the query for the files of the artifacts `?1`: the core hash, the name and the key of the blob.
fn files_of_artifacts(dialect: Dialect) -> String {
    format!(
        "SELECT a.core, m.name, m.blob
           FROM {artifacts} JOIN capture c ON c.artifact = a.id JOIN member m ON m.capture = c.id
         UNION
         SELECT a.core, {name}, c.{blob}
           FROM {artifacts} JOIN kind k ON k.id = a.kind JOIN capture c ON c.artifact = a.id WHERE {is_document}",
        artifacts = dialect.artifacts("?1"),
        name = dialect.name_of_document(),
        blob = dialect.blob_of_capture(),
        is_document = dialect.is_of_documents("k")
    )
}

/// Returns the query for the artifacts other than `?1` that have these files: the key of the blob, the first `?2` core hashes,
/// and their number.
fn dependents_of_files(dialect: Dialect) -> String {
    format!(
        "WITH file AS MATERIALIZED (SELECT DISTINCT blob FROM ({files}) f),
         dependent AS
           (SELECT m.blob, a.core
              FROM member m JOIN capture c ON c.id = m.capture JOIN artifact a ON a.id = c.artifact
             WHERE m.blob IN (SELECT blob FROM file) AND NOT {is_among}
            UNION
            SELECT c.{blob}, a.core
              FROM capture c JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
             WHERE c.{blob} IN (SELECT blob FROM file) AND {is_document} AND NOT {is_among}),
         listed AS
           (SELECT blob, core, row_number() OVER (PARTITION BY blob ORDER BY core) AS number,
                   count(*) OVER (PARTITION BY blob) AS count FROM dependent)
         SELECT blob, core, count FROM listed WHERE number <= ?2 ORDER BY core",
        files = files_of_artifacts(dialect),
        blob = dialect.blob_of_capture(),
        is_among = dialect.is_in("a.core", "?1"),
        is_document = dialect.is_of_documents("k")
    )
}

impl<S: SqlSnapshot> CaptureQueries for S {
    fn captures(&self, of: &[CoreHash]) -> Result<Vec<Vec<CaptureRecord>>> {
        self.answer(captures(self.session(), of))
    }

    fn captures_with(&self, targets: &[CaptureTarget]) -> Result<Vec<Option<CaptureRecord>>> {
        self.answer(captures_with(self.session(), targets))
    }

    fn members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<MemberRecord>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let own = own_blob(self, core, capture)?.ok_or_else(|| damaged(PayloadDefect::NoMembers))?;
        if !own.is_sealed {
            return Err(damaged(PayloadDefect::NotItsOwn));
        }
        let blob = BlobHash(capture.0);
        let size = own.size.ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
        if let Some(name) = own.document_name {
            return Ok(vec![MemberRecord { name, blob, size }]);
        }
        let files = parse_manifest(&self.bytes(core, capture, blob)?);
        let files = files.ok_or_else(|| damaged(PayloadDefect::NotItsOwn))?;
        let blobs: Vec<BlobHash> = files.iter().map(|(_, blob)| *blob).collect();
        let sql = format!("SELECT b.digest, b.size FROM {}", S::Session::DIALECT.blobs("?1"));
        let sizes =
            self.read_rows(&sql, &[blobs.as_slice().into()], |row| Ok((row.blob(0)?, row.count(1)?)))?;
        let sizes: HashMap<BlobHash, u64> = sizes.into_iter().collect();
        let member = |(name, blob)| {
            let size = sizes.get(&blob).ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
            Ok(MemberRecord { name, blob, size: *size })
        };
        files.into_iter().map(member).collect()
    }

    fn read(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        self.bytes(core, capture, blob)
    }

    fn files(&self, blobs: &[BlobHash]) -> Result<Vec<Option<FileRecord>>> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "WITH first AS MATERIALIZED
               (SELECT b.digest, b.{key} AS blob,
                       (SELECT min(m.capture) FROM {files} m WHERE m.blob = b.{key}) AS capture FROM {blobs})
             SELECT f.digest, a.core, {hash}, m.name
               FROM first f CROSS JOIN member m CROSS JOIN capture c CROSS JOIN artifact a
              WHERE m.capture = f.capture AND m.blob = f.blob AND c.id = m.capture AND a.id = c.artifact
              ORDER BY m.name DESC",
            key = dialect.key_of_blob(),
            files = dialect.files_of_directories(),
            blobs = dialect.blobs("?1"),
            hash = dialect.hash_of_capture("c")
        );
        let found = self.read_rows(&sql, &[blobs.into()], |row| {
            let file = FileRecord { artifact: row.core(1)?, capture: row.capture(2)?, name: row.text(3)? };
            Ok((row.blob(0)?, Some(file)))
        })?;
        // Of several names, the first one replaces the others.
        Ok(in_order(blobs, &found.into_iter().collect()))
    }

    fn shared_files(&self, of: &[CoreHash]) -> Result<Vec<Vec<SharedFile>>> {
        let dialect = S::Session::DIALECT;
        let parameters = [of.into(), SharedFile::LISTED.into()];
        let rows = self.read_rows(&dependents_of_files(dialect), &parameters, |row| {
            Ok((row.value(0)?.clone(), row.core(1)?, row.count(2)?))
        })?;
        // A file shared by many artifacts, such as a policy, is looked up once.
        let mut shared: HashMap<SqlValue, (Vec<CoreHash>, u64)> = HashMap::new();
        for (blob, dependent, count) in rows {
            shared.entry(blob).or_insert((Vec::new(), count)).0.push(dependent);
        }
        let sql = format!("{} ORDER BY 1, 2, 3", files_of_artifacts(dialect));
        let files = read_rows_of(self.session(), &sql, of, &[], |row| {
            let others = shared.get(row.value(2)?);
            let name = row.text(1)?;
            Ok(others.map(|(dependents, count)| SharedFile {
                name,
                dependents: dependents.clone(),
                count: *count,
            }))
        });
        Ok(self.answer(files)?.into_iter().map(|files| files.into_iter().flatten().collect()).collect())
    }

    fn artifacts_with_bytes(&self, of: &[CoreHash]) -> Result<Vec<BTreeSet<CoreHash>>> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "SELECT a.core, f.core AS other FROM {artifacts} JOIN kind k ON k.id = a.kind
               JOIN capture c ON c.artifact = a.id JOIN member m ON m.blob = c.{blob}
               JOIN capture d ON d.id = m.capture JOIN artifact f ON f.id = d.artifact
              WHERE {is_document} AND f.id <> a.id
             UNION
             SELECT a.core, f.core FROM {artifacts} JOIN kind k ON k.id = a.kind
               JOIN capture c ON c.artifact = a.id JOIN capture d ON d.{blob} = c.{blob}
               JOIN artifact f ON f.id = d.artifact JOIN kind g ON g.id = f.kind
              WHERE {is_document} AND {is_other_document} AND f.id <> a.id",
            artifacts = dialect.artifacts("?1"),
            blob = dialect.blob_of_capture(),
            is_document = dialect.is_of_documents("k"),
            is_other_document = dialect.is_of_documents("g")
        );
        let found = self.answer(read_rows_of(self.session(), &sql, of, &[], |row| row.core(1)))?;
        Ok(found.into_iter().map(BTreeSet::from_iter).collect())
    }
}

/// Returns up to `limit` captures with numbers after `after` up to `last`, in the order in which they were added. Captures
/// without a hash are left to a check.
pub(in crate::storage) fn captures_between<S: SqlSnapshot>(
    snapshot: &S,
    after: i64,
    last: i64,
    limit: u32,
) -> Result<Vec<SearchableCapture>> {
    let dialect = S::Session::DIALECT;
    let sql = format!(
        "SELECT {ARTIFACT}, c.id, {}, (SELECT {} FROM capture f
                  WHERE f.id = (SELECT min(o.id) FROM capture o WHERE o.artifact = c.artifact))
           FROM {} JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
          WHERE c.id > ?1 AND c.id <= ?2 ORDER BY c.id LIMIT ?3",
        dialect.capture_hash(),
        dialect.hash_of_capture("f"),
        dialect.captures()
    );
    let captures =
        snapshot.read_rows(&sql, &[after.into(), last.into(), u64::from(limit).into()], |row| {
            let (id, capture) = (row.integer(6)?, row.capture(7)?);
            // Callers continue after the last capture of an answer, and must terminate.
            if id <= after || id > last {
                return Err(out_of_order());
            }
            let first = row.optional_digest(8)?.map(CaptureHash).filter(|first| *first != capture);
            Ok(SearchableCapture { id, capture, artifact: row.artifact()?, first })
        })?;
    if captures.is_sorted_by(|one, other| one.id < other.id) {
        Ok(captures)
    } else {
        snapshot.answer(Err(out_of_order().into()))
    }
}

fn out_of_order() -> DamagedValue {
    DamagedValue::new(6, "the rows of capture are not in the order of their numbers")
}
