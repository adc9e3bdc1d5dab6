//! Documents that grow: their shorter versions are stored as the beginning of the longest one.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use super::blobs::Blobs;
use crate::digest::BlobHash;
use crate::storage::Prepared;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::parameters::ParameterRows;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlType::{Bytes, Integer, Text};
use crate::storage::sql::{SqlSession as _, SqlType, SqlValue, text_key};
use crate::storage::versions::{self, StoredVersion, longest_beginning};

/// The columns of documents that are stored, and of pairs of versions.
const DOCUMENT: &[(&str, SqlType)] = &[
    ("blob", Bytes),
    ("artifact", Integer),
    ("kind", Integer),
    ("name", Text),
    ("value", Text),
    ("key", Integer),
];
const PAIR: &[(&str, SqlType)] = &[("shorter", Bytes), ("longer", Bytes), ("at", Integer)];

/// Documents that grow and are stored in a batch, by their blobs.
#[derive(Default)]
pub(super) struct AddedVersions<'c> {
    bytes: HashMap<BlobHash, &'c [u8]>,
    rows: Vec<Vec<SqlValue>>,
}

impl<'c> AddedVersions<'c> {
    /// Adds a document of the artifact with this number, if it grows.
    pub(super) fn add(&mut self, artifact: i64, content: &'c Prepared, names: &NameRegistry) {
        let admitted = content.admitted();
        let (Some(run), [document]) = (versions::run_attribute(admitted), admitted.members()) else { return };
        let Some(kind) = names.kind_id(admitted.kind().name()) else { return };
        self.bytes.insert(document.blob(), document.bytes());
        self.rows.push(vec![
            document.blob().into(),
            artifact.into(),
            kind.into(),
            run.name.into(),
            run.value.clone().into(),
            text_key(&run.value).into(),
        ]);
    }

    /// Stores the shorter versions of the documents as the beginning of them. All are stored, with what they state, from
    /// `blobs`.
    pub(super) fn write(
        self,
        session: &DatabaseTransaction<'_>,
        blobs: &Blobs<'_>,
        at: DateTime<Utc>,
    ) -> PostgresResult<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = ParameterRows::new(DOCUMENT, self.rows);
        let sql = format!(
            "SELECT n.blob, w.size, w.digest
               FROM {} CROSS JOIN LATERAL
                 (SELECT a.id FROM attribute t JOIN artifact a ON a.id = t.artifact
                   WHERE t.name = n.name AND t.key = n.key AND t.value = n.value AND a.kind = n.kind AND a.id <> n.artifact
                   ORDER BY t.artifact DESC LIMIT {}) r
               JOIN capture c ON c.artifact = r.id JOIN blob w ON w.digest = c.digest AND w.base IS NULL",
            rows.source(),
            versions::NEWEST,
        );
        let mut stored: BTreeMap<BlobHash, Vec<StoredVersion<BlobHash>>> = BTreeMap::new();
        for row in session.rows(&sql, rows.parameters())? {
            let version = StoredVersion { size: row.count(1)?, blob: row.blob(2)?, key: row.blob(2)? };
            stored.entry(row.blob(0)?).or_default().push(version);
        }
        let mut longer: BTreeMap<BlobHash, BlobHash> = BTreeMap::new();
        for (blob, versions) in stored {
            let document = self.bytes.get(&blob).copied().unwrap_or_default();
            // The bytes of the shorter one are deleted.
            let shorter = longest_beginning(document, versions).filter(|_| blobs.is_sent_intact(blob));
            longer.extend(shorter.map(|shorter| (shorter, blob)));
        }
        store_beginnings(session, &longer, at)
    }
}

/// Stores each blob as the beginning of a longer one, and what was stored as the beginning of it. Beside the database, its bytes
/// are deleted later.
fn store_beginnings(
    session: &DatabaseTransaction<'_>,
    longer: &BTreeMap<BlobHash, BlobHash>,
    at: DateTime<Utc>,
) -> PostgresResult<()> {
    if longer.is_empty() {
        return Ok(());
    }
    let longest = |mut blob| {
        while let Some(next) = longer.get(&blob) {
            blob = *next;
        }
        blob
    };
    let pair =
        |shorter: &BlobHash| vec![(*shorter).into(), longest(*shorter).into(), at.timestamp_millis().into()];
    let rows = ParameterRows::new(PAIR, longer.keys().map(pair).collect());
    let source = rows.source();
    let sql = format!("UPDATE blob b SET base = n.longer FROM {source} WHERE b.base = n.shorter");
    session.execute(&sql, rows.parameters())?;
    let sql = format!(
        "UPDATE blob b SET base = n.longer, bytes = NULL,
           condemned_at = CASE WHEN b.object IS NOT NULL THEN n.at END FROM {source} WHERE b.digest = n.shorter"
    );
    session.execute(&sql, rows.parameters()).map(drop)
}
