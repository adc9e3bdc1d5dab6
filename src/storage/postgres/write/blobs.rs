//! The bytes of a batch, which are encoded in the threads that prepare artifacts. Of documents that grow, shorter versions
//! are stored as the beginning of the longest one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use postgres::types::Type;

use crate::artifact::{Admitted, Member};
use crate::digest::BlobHash;
use crate::storage::Prepared;
use crate::storage::postgres::blob_store::{BlobStore, ObjectRange};
use crate::storage::postgres::bytes;
use crate::storage::postgres::encoding::{EncodedMember, decoded, encoded};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::parameters::{ParameterRows, TypedParameter};
use crate::storage::postgres::pool::PostgresServer;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlType::{self, Bytes, Integer, Text};
use crate::storage::sql::{SqlSession as _, SqlValue, text_key};
use crate::storage::versions::{self, StoredVersion, StoredVersions};

/// The size of a message with bytes, unless one blob is larger.
const MESSAGE: usize = 16 << 20;

/// The prepared form of an artifact: the encoded bytes of what is stored of it, in its order.
struct EncodedMembers(Vec<EncodedMember>);

/// Prepares an artifact.
pub(in crate::storage::postgres) fn prepare(admitted: Admitted) -> Prepared {
    Prepared::new(admitted, &|admitted, _| {
        let grows = admitted.kind().info().versions.is_some();
        EncodedMembers(admitted.stored().map(|member| encoded(member.bytes(), grows)).collect())
    })
}

/// Returns whether this engine prepared all artifacts of a batch.
pub(in crate::storage::postgres) fn are_ours(batch: &[&Prepared]) -> bool {
    batch.iter().all(|prepared| prepared.private::<EncodedMembers>().is_some())
}

/// All bytes of a batch, sorted by hash: who sends several takes their locks in one order.
pub(in crate::storage::postgres) struct Blobs<'b> {
    all: BTreeMap<BlobHash, (usize, &'b EncodedMember)>,
    /// Where those are that were stored beside the database. A batch that is stored again does not store them again.
    stored: BTreeMap<BlobHash, ObjectRange>,
    /// Those that the vault did not have and that were sent in the current transaction.
    sent: BTreeSet<BlobHash>,
}

/// The row of a blob to be inserted.
struct BlobRow<'b> {
    blob: BlobHash,
    /// The size of the bytes before they were encoded.
    size: usize,
    encoded: &'b EncodedMember,
    /// Their place if they are not in the row.
    part: Option<ObjectRange>,
}

impl<'b> Blobs<'b> {
    pub(in crate::storage::postgres) fn new(batch: &[&'b Prepared]) -> Self {
        let mut blobs = Self { all: BTreeMap::new(), stored: BTreeMap::new(), sent: BTreeSet::new() };
        for prepared in batch {
            blobs.add(prepared);
        }
        blobs
    }

    fn add(&mut self, prepared: &'b Prepared) {
        let encoded = prepared.private::<EncodedMembers>().map(|EncodedMembers(encoded)| encoded);
        let members = prepared.admitted().stored();
        for (member, encoded) in members.zip(encoded.into_iter().flatten()) {
            self.all.insert(member.blob(), (member.bytes().len(), encoded));
        }
        for embedded in prepared.embedded() {
            self.add(embedded);
        }
    }

    /// Forgets what was sent in a transaction that was not committed.
    pub(in crate::storage::postgres) fn begin(&mut self) {
        self.sent.clear();
    }

    /// Returns the blobs that were sent in the current transaction.
    pub(in crate::storage::postgres) fn sent(&self) -> &BTreeSet<BlobHash> {
        &self.sent
    }

    /// Returns those of `blobs` that the vault does not have.
    fn missing(
        session: &DatabaseTransaction<'_>,
        blobs: &BTreeSet<BlobHash>,
    ) -> PostgresResult<BTreeSet<BlobHash>> {
        if blobs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let sql = "SELECT digest FROM blob WHERE digest = ANY($1)";
        let rows = session.rows(sql, &[blobs.iter().copied().collect()])?;
        let stored: BTreeSet<BlobHash> =
            rows.iter().map(|row| Ok(row.blob(0)?)).collect::<PostgresResult<_>>()?;
        Ok(blobs.difference(&stored).copied().collect())
    }

    /// Stores those of `needed` that belong beside the database and that the vault does not have, as a transaction sees it.
    /// Nothing is locked and no transaction waits meanwhile, however long it takes.
    pub(in crate::storage::postgres) fn store_external(
        &mut self,
        session: DatabaseTransaction<'_>,
        needed: &BTreeSet<BlobHash>,
    ) -> PostgresResult<()> {
        let missing = Self::missing(&session, needed)?;
        let server = session.server();
        drop(session);
        self.store(server.blobs(), &missing)
    }

    /// Returns whether a blob was sent in the current transaction, with bytes that are decoded as what they were made of.
    pub(super) fn is_sent_intact(&self, blob: BlobHash) -> bool {
        let is_same = |(size, encoded): &(usize, &EncodedMember)| {
            decoded(blob, *size as u64, encoded.encoding, encoded.bytes.clone()).is_ok()
        };
        self.sent.contains(&blob) && self.all.get(&blob).is_some_and(is_same)
    }

    /// Returns all blobs of the batch.
    pub(in crate::storage::postgres) fn all(&self) -> BTreeSet<BlobHash> {
        self.all.keys().copied().collect()
    }

    /// Stores the bytes of blobs beside the database, if the vault has them there.
    fn store(&mut self, to: Option<&dyn BlobStore>, missing: &BTreeSet<BlobHash>) -> PostgresResult<()> {
        let Some(to) = to else { return Ok(()) };
        let waiting = missing.iter().filter(|blob| !self.stored.contains_key(blob));
        let waiting: Vec<(BlobHash, &EncodedMember)> =
            waiting.filter_map(|blob| Some((*blob, self.all.get(blob)?.1))).collect();
        let parts = to.store(&waiting)?;
        self.stored.extend(waiting.iter().map(|(blob, _)| *blob).zip(parts));
        Ok(())
    }

    /// Sends those of `blobs` that the vault does not have.
    pub(in crate::storage::postgres) fn send(
        &mut self,
        session: &DatabaseTransaction<'_>,
        blobs: &BTreeSet<BlobHash>,
    ) -> PostgresResult<()> {
        let missing = Self::missing(session, blobs)?;
        self.store(session.server().blobs(), &missing)?;
        let (mut message, mut length) = (Vec::new(), 0);
        for blob in &missing {
            let Some((size, encoded)) = self.all.get(blob) else { continue };
            let row = BlobRow { blob: *blob, size: *size, encoded, part: self.stored.get(blob).copied() };
            let own = row.bytes().map_or(0, <[u8]>::len);
            if length > 0 && length + own > MESSAGE {
                insert(session, &std::mem::take(&mut message), "NOTHING")?;
                length = 0;
            }
            length += own;
            message.push(row);
        }
        insert(session, &message, "NOTHING")?;
        self.sent.extend(missing);
        Ok(())
    }
}

/// Stores the bytes of one blob beside the database, if the vault has them there. Returns where they are then.
pub(in crate::storage::postgres) fn store_alone(
    server: &PostgresServer,
    blob: BlobHash,
    encoded: &EncodedMember,
) -> PostgresResult<Option<ObjectRange>> {
    let parts = server.blobs().map(|store| store.store(&[(blob, encoded)])).transpose()?;
    Ok(parts.and_then(|parts| parts.into_iter().next()))
}

/// Records where the bytes of a blob are, which may have been recorded before.
pub(in crate::storage::postgres) fn replace(
    session: &DatabaseTransaction<'_>,
    blob: BlobHash,
    size: usize,
    encoded: &EncodedMember,
    part: Option<ObjectRange>,
) -> PostgresResult<()> {
    insert(
        session,
        &[BlobRow { blob, size, encoded, part }],
        "UPDATE SET size = excluded.size, encoding = excluded.encoding, bytes = excluded.bytes, object = excluded.object,
           start = excluded.start, length = excluded.length, condemned_at = NULL, base = NULL",
    )
}

impl BlobRow<'_> {
    /// Returns the bytes that are in the row.
    fn bytes(&self) -> Option<&[u8]> {
        self.part.is_none().then_some(&self.encoded.bytes[..])
    }
}

/// Inserts rows, and does `otherwise` with those of blobs that there are. The bytes are not copied.
fn insert(session: &DatabaseTransaction<'_>, rows: &[BlobRow<'_>], otherwise: &str) -> PostgresResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    insert_objects(session, rows)?;
    let digests: Vec<&[u8]> = rows.iter().map(|row| &row.blob.0.as_bytes()[..]).collect();
    let sizes: Vec<i64> = rows.iter().map(|row| i64::try_from(row.size).unwrap_or(i64::MAX)).collect();
    let encodings: Vec<i64> = rows.iter().map(|row| row.encoded.encoding).collect();
    let bytes: Vec<Option<&[u8]>> = rows.iter().map(BlobRow::bytes).collect();
    let parts = || rows.iter().map(|row| row.part.as_ref());
    let objects: Vec<Option<&[u8]>> = parts().map(|part| Some(&part?.object[..])).collect();
    let starts: Vec<Option<i64>> = parts().map(|part| Some(part?.start.cast_signed())).collect();
    let lengths: Vec<Option<i64>> = parts().map(|part| Some(part?.length.cast_signed())).collect();
    let sql = format!(
        "INSERT INTO blob (digest, size, encoding, bytes, object, start, length)
         SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[],
                              $7::bigint[])
         ON CONFLICT (digest) DO {otherwise}"
    );
    let parameters: [TypedParameter<'_>; 7] = [
        (&digests, Type::BYTEA_ARRAY),
        (&sizes, Type::INT8_ARRAY),
        (&encodings, Type::INT8_ARRAY),
        (&bytes, Type::BYTEA_ARRAY),
        (&objects, Type::BYTEA_ARRAY),
        (&starts, Type::INT8_ARRAY),
        (&lengths, Type::INT8_ARRAY),
    ];
    session.run(&sql, &parameters).map(drop)
}

/// Inserts the objects that have the blobs of rows.
fn insert_objects(session: &DatabaseTransaction<'_>, rows: &[BlobRow<'_>]) -> PostgresResult<()> {
    let mut sizes: BTreeMap<[u8; 16], u64> = BTreeMap::new();
    for part in rows.iter().filter_map(|row| row.part) {
        let size = sizes.entry(part.object).or_default();
        *size = (*size).max(part.start.saturating_add(part.length));
    }
    if sizes.is_empty() {
        return Ok(());
    }
    let rows = sizes.into_iter().map(|(name, size)| vec![name.into(), size.into()]).collect();
    let rows = ParameterRows::new(&[("name", SqlType::Bytes), ("size", SqlType::Integer)], rows);
    // The blobs of an object may be inserted by several messages, in any order.
    let sql = format!(
        "INSERT INTO object (name, size) SELECT * FROM {}
         ON CONFLICT (name) DO UPDATE SET size = greatest(object.size, excluded.size)",
        rows.source()
    );
    session.execute(&sql, rows.parameters()).map(drop)
}

/// Cancels the pending deletion of blobs that a batch needs. The session must hold the writer lock.
pub(super) fn reprieve(session: &DatabaseTransaction<'_>, needed: &BTreeSet<BlobHash>) -> PostgresResult<()> {
    if needed.is_empty() || session.server().blobs().is_none() {
        return Ok(());
    }
    let sql = "UPDATE blob SET condemned_at = NULL
                WHERE digest = ANY($1) AND condemned_at IS NOT NULL AND base IS NULL";
    session.execute(sql, &[needed.iter().copied().collect()])?;
    Ok(())
}

/// Returns the blobs of what entries add.
pub(in crate::storage::postgres) fn blobs_of<'e>(
    contents: impl Iterator<Item = &'e Prepared>,
) -> BTreeSet<BlobHash> {
    contents.flat_map(|content| content.admitted().stored()).map(Member::blob).collect()
}

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
