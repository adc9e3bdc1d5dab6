//! Documents that grow: their shorter versions are stored as the beginning of the longest one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::blobs::Blobs;
use crate::digest::BlobHash;
use crate::storage::Prepared;
use crate::storage::postgres::bytes;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::parameters::ParameterRows;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlType::{Bytes, Integer, Text};
use crate::storage::sql::{SqlSession as _, SqlType, SqlValue, text_key};
use crate::storage::versions::{self, StoredVersion, StoredVersions};

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

/// Number of documents of a batch that are compared with a longer one of the same run.
const SHORTER: usize = 16;

/// What versions of a document have in common: the kind, and the name and the value of an attribute.
type RunKey<'c> = (i64, &'c str, &'c str);

/// Documents that grow and are stored in a batch, by their blobs.
#[derive(Default)]
pub(super) struct AddedVersions<'c> {
    documents: BTreeMap<BlobHash, (RunKey<'c>, &'c [u8])>,
    rows: Vec<Vec<SqlValue>>,
}

impl<'c> AddedVersions<'c> {
    /// Adds a document of the artifact with this number, if it grows.
    pub(super) fn add(&mut self, artifact: i64, content: &'c Prepared, names: &NameRegistry) {
        let admitted = content.admitted();
        let (Some(run), [document]) = (versions::run_attribute(admitted), admitted.members()) else { return };
        let Some(kind) = names.kind_id(admitted.kind().name()) else { return };
        self.documents.insert(document.blob(), ((kind, run.name, &run.value), document.bytes()));
        self.rows.push(vec![
            document.blob().into(),
            artifact.into(),
            kind.into(),
            run.name.into(),
            run.value.clone().into(),
            text_key(&run.value).into(),
        ]);
    }

    /// Stores the shorter versions of the documents as the beginning of them, and those of the documents that others begin with
    /// as the beginning of these. All are stored, with what they state, from `blobs`.
    pub(super) fn write(
        mut self,
        session: &DatabaseTransaction<'_>,
        blobs: &Blobs<'_>,
        at: DateTime<Utc>,
    ) -> PostgresResult<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = ParameterRows::new(DOCUMENT, std::mem::take(&mut self.rows));
        let sql = format!(
            "SELECT DISTINCT n.blob, w.size, w.digest
               FROM {} CROSS JOIN LATERAL
                 (SELECT a.id FROM attribute t JOIN artifact a ON a.id = t.artifact
                   WHERE t.name = n.name AND t.key = n.key AND t.value = n.value AND a.kind = n.kind AND a.id <> n.artifact
                   ORDER BY t.artifact DESC LIMIT {}) r
               JOIN capture c ON c.artifact = r.id JOIN blob b ON b.digest = c.digest
               JOIN blob w ON w.digest = coalesce(b.base, b.digest) AND w.base IS NULL",
            rows.source(),
            versions::NEWEST,
        );
        let mut stored: BTreeMap<BlobHash, BTreeMap<BlobHash, u64>> = BTreeMap::new();
        for row in session.rows(&sql, rows.parameters())? {
            stored.entry(row.blob(0)?).or_default().insert(row.blob(2)?, row.count(1)?);
        }
        let versions = self.with_those_of_batch(stored);
        let mut longer: BTreeMap<BlobHash, BlobHash> = BTreeMap::new();
        for (blob, document, versions) in &versions {
            // The bytes of the shorter one are deleted.
            let shorter = versions.longest_beginning(document).filter(|_| blobs.is_sent_intact(*blob));
            longer.extend(shorter.map(|shorter| (shorter, *blob)));
        }
        for (blob, document, versions) in &versions {
            if !longer.contains_key(blob) {
                let whole = longer_version(session, document, versions)?;
                longer.extend(whole.map(|whole| (*blob, whole)));
            }
        }
        store_beginnings(session, &longer, at)
    }

    /// Returns each document with its versions: those that are `stored`, and the next shorter ones of the batch.
    fn with_those_of_batch(
        &self,
        mut stored: BTreeMap<BlobHash, BTreeMap<BlobHash, u64>>,
    ) -> Vec<(BlobHash, &'c [u8], StoredVersions<BlobHash>)> {
        let mut runs: HashMap<RunKey<'_>, BTreeSet<(u64, BlobHash)>> = HashMap::new();
        for (blob, (run, document)) in &self.documents {
            runs.entry(*run).or_default().insert((document.len() as u64, *blob));
        }
        let with_versions = |(blob, (run, document)): (&BlobHash, &(RunKey<'c>, &'c [u8]))| {
            let mut versions = stored.remove(blob).unwrap_or_default();
            let own = (document.len() as u64, *blob);
            let shorter = runs.get(run).into_iter().flat_map(|run| run.range(..own).rev());
            versions.extend(shorter.take(SHORTER).map(|(size, blob)| (*blob, *size)));
            let version = |(blob, size)| StoredVersion { size, blob, key: blob };
            (*blob, *document, StoredVersions::new(versions.into_iter().map(version).collect()))
        };
        self.documents.iter().map(with_versions).collect()
    }
}

/// Returns the one of `versions` that begins with a document, after reading it from where it is stored.
fn longer_version(
    session: &DatabaseTransaction<'_>,
    document: &[u8],
    versions: &StoredVersions<BlobHash>,
) -> PostgresResult<Option<BlobHash>> {
    for whole in versions.longer(document) {
        let mut examined = bytes::examine(session, &[whole])?;
        let bytes = examined.remove(&whole).and_then(|examined| examined.bytes.ok());
        if bytes.is_some_and(|bytes| bytes.starts_with(document)) {
            return Ok(Some(whole));
        }
    }
    Ok(None)
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
