//! Rows returned by queries, and row ids of artifacts, blobs and captures, by hash.

use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension};

use super::journal::after;
use super::shared_statements::StatementProvider;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::storage::ArtifactRecord;
use crate::storage::catalog::MentionRole;

/// An artifact's row id. Row ids increase in the order of arrival and are only meaningful within their vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ArtifactId(pub(super) i64);

impl From<&ArtifactRecord> for ArtifactId {
    fn from(artifact: &ArtifactRecord) -> Self {
        Self(artifact.addition.cast_signed())
    }
}

impl FromSql for ArtifactId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self)
    }
}

impl FromSql for Digest {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(Self::from_bytes)
    }
}

impl FromSql for CoreHash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Digest::column_result(value).map(Self)
    }
}

impl FromSql for CaptureHash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Digest::column_result(value).map(Self)
    }
}

/// Returns the role with this row id, or `None` if it is missing.
pub(super) fn mention_role(connection: &Connection, id: i64) -> rusqlite::Result<Option<MentionRole>> {
    let sql = "SELECT k.name, r.name, r.role_group, r.unit, r.relation, r.dangles
                 FROM role r LEFT JOIN kind k ON k.id = r.kind WHERE r.id = ?1";
    let role = connection.prepare_cached(sql)?.query_row([id], |row| {
        Ok(MentionRole {
            kind: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
            name: row.get(1)?,
            group: row.get(2)?,
            unit: row.get(3)?,
            relation: row.get(4)?,
            dangles: row.get(5)?,
        })
    });
    role.optional()
}

/// Columns that contain artifact row ids: that of the table of artifacts first, then one that every artifact has.
pub(super) const ARTIFACTS: &[(&str, &str)] = &[
    ("artifact", "id"),
    ("capture", "artifact"),
    ("attribute", "artifact"),
    ("identity", "artifact"),
    ("name_mention", "artifact"),
    ("link", "source"),
    ("link", "target"),
    ("tag", "artifact"),
    ("pin", "artifact"),
    ("note", "artifact"),
    ("label", "artifact"),
];

/// Columns that contain capture row ids, in the same order. Indexes that also contain them are rebuilt after their
/// numbers have changed.
pub(super) const CAPTURES: &[(&str, &str)] =
    &[("capture", "id"), ("mention_list", "capture"), ("member", "capture"), ("signature", "capture")];

/// Columns that contain blob row ids, in the same order.
pub(super) const BLOBS: &[(&str, &str)] = &[
    ("blob", "id"),
    ("payload", "blob"),
    ("payload", "base"),
    ("capture", "blob"),
    ("member", "blob"),
    ("mention_list", "blob"),
];

/// The highest row id that additions reach. A higher one is damage.
pub(super) const MAX_ROW: i64 = 1 << 48;

/// Returns the row id for the next row of the first table of `columns`. If a row was lost, the second column still contains its
/// row id, and would refer to a new row with that id. It is one to which every addition writes, so that nothing else has to be
/// read for this.
pub(super) fn next_row(connection: &Connection, columns: &[(&'static str, &str)]) -> rusqlite::Result<i64> {
    let [(table, id), (other, column), ..] = columns else { return Ok(1) };
    let sql = format!(
        "SELECT max(coalesce((SELECT max({id}) FROM {table}), 0),
                    coalesce((SELECT max({column}) FROM {other} WHERE {column} < {MAX_ROW}), 0))"
    );
    after(connection.prepare_cached(&sql)?.query_row([], |row| row.get(0))?, table)
}

/// Returns the first bytes of a digest, by which it is indexed.
pub(super) fn beginning(digest: &Digest) -> &[u8] {
    digest.as_bytes().first_chunk::<8>().map_or(&[], |first| first)
}

/// Returns the row id of the artifact with this core hash.
pub(super) fn artifact_id(
    statements: &impl StatementProvider,
    core: CoreHash,
) -> rusqlite::Result<Option<i64>> {
    id_of(statements, "SELECT id FROM artifact WHERE substr(core, 1, 8) = ?1 AND core = ?2", &core.0)
}

/// Returns the row id that `sql` finds for the first bytes of a digest, and the digest.
fn id_of(
    statements: &impl StatementProvider,
    sql: &'static str,
    digest: &Digest,
) -> rusqlite::Result<Option<i64>> {
    let key = (beginning(digest), digest.as_bytes());
    statements.with(sql, |select| select.query_row(key, |row| row.get(0)).optional())
}

/// Returns the row id of the blob with this hash.
pub(super) fn blob_id(statements: &impl StatementProvider, blob: BlobHash) -> rusqlite::Result<Option<i64>> {
    id_of(statements, "SELECT id FROM blob WHERE substr(digest, 1, 8) = ?1 AND digest = ?2", &blob.0)
}

/// Returns the row id of the capture of the artifact `core` with this hash. Captures of artifacts of other kinds may
/// have the same hash.
pub(super) fn capture_id(
    connection: &Connection,
    core: CoreHash,
    capture: CaptureHash,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT c.id FROM blob b JOIN capture c ON c.blob = b.id JOIN artifact a ON a.id = c.artifact
              WHERE substr(b.digest, 1, 8) = ?1 AND b.digest = ?2 AND a.core = ?3
              LIMIT 1",
        )?
        .query_row((beginning(&capture.0), capture.0.as_bytes(), core.0.as_bytes()), |row| row.get(0))
        .optional()
}
