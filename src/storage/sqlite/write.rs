//! Storing artifacts.

mod adopted;
mod arrivals;
mod blobs;
mod index;
mod removed;
mod sightings;
mod signatures;

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, Utc};
use foldhash::{HashMap, HashMapExt};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::delta::DeltaBaseFinder;
use super::dictionaries::Dictionaries;
use super::dictionary_training;
use super::error::{StorageError, refused};
use super::ids::{ARTIFACTS, BLOBS, CAPTURES, artifact_id, blob_id, capture_id, next_row};
use super::journal::{Addition, JournalEvent, SqliteJournalWriter, after, arrival};
use super::lists::MentionListReader;
use super::mention_index;
use super::payload::PayloadReader;
use super::statements::{StatementProvider, TransactionStatements};
use super::tombstones::Tombstones;
use super::unresolved;
use super::write_lock;
use crate::artifact::{Admitted, Kind, Signature};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::check::Repair;
use crate::storage::seal::seal;
use crate::storage::{Actor, AdoptedEntry, Prepared, PutOutcome, PutResult, RemovedPolicy};
use sightings::PendingSightings;

/// The context in which the artifacts of a transaction are stored.
pub(super) struct PutContext<'a> {
    pub(super) dictionaries: &'a Dictionaries,
    pub(super) actor: Option<&'a Actor>,
    pub(super) at: DateTime<Utc>,
    pub(super) policy: RemovedPolicy,
    /// Maximum time to wait for other writers.
    pub(super) busy_timeout: Duration,
}

/// Stores `batch` in one transaction.
pub(super) fn put<'p>(
    connection: &mut Connection,
    batch: impl IntoIterator<Item = &'p Prepared>,
    putting: &PutContext<'_>,
) -> rusqlite::Result<Vec<PutResult>> {
    in_one_transaction(connection, putting, |writer| writer.put_all(batch))
}

/// Stores one artifact whose capture was lost, with its previously `recorded` signature state.
pub(super) fn put_again(
    connection: &mut Connection,
    prepared: &Prepared,
    recorded: Option<Signature>,
    putting: &PutContext<'_>,
) -> rusqlite::Result<PutResult> {
    let key = (prepared.admitted().core(), prepared.admitted().capture());
    in_one_transaction(connection, putting, |writer| {
        writer.recorded = recorded.map(|signature| (key, signature));
        writer.put_unless_removed(prepared)
    })
}

/// Deletes a damaged capture of one artifact, with `drop`, and stores the artifact, as by [`put_again`], in one
/// transaction: if it cannot be stored, what is left of the damaged capture must remain.
pub(super) fn replace_capture(
    connection: &mut Connection,
    prepared: &Prepared,
    recorded: Option<Signature>,
    putting: &PutContext<'_>,
    drop: impl FnOnce(&Connection, CoreHash, CaptureHash) -> rusqlite::Result<Vec<Repair>>,
) -> rusqlite::Result<(Vec<Repair>, PutResult)> {
    let (core, capture) = (prepared.admitted().core(), prepared.admitted().capture());
    let mut dropped = Vec::new();
    let open = |connection: &Connection| {
        let mut journal = SqliteJournalWriter::open(connection, putting.actor, putting.at)?;
        dropped = drop(connection, core, capture)?;
        for Repair { subject, did } in &dropped {
            journal.append(connection, &JournalEvent::Repair { did, subject: &subject.to_string() })?;
        }
        Ok(journal)
    };
    let put = with_journal(connection, putting, open, |writer| {
        writer.recorded = recorded.map(|signature| ((core, capture), signature));
        let put = writer.put_unless_removed(prepared)?;
        if put.outcome.is_refused() { Err(refused(StorageError::gone(core))) } else { Ok(put) }
    })?;
    Ok((dropped, put))
}

fn in_one_transaction<T>(
    connection: &mut Connection,
    putting: &PutContext<'_>,
    work: impl FnOnce(&mut SqliteWriter<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let open = |connection: &Connection| SqliteJournalWriter::open(connection, putting.actor, putting.at);
    with_journal(connection, putting, open, work)
}

/// Adopts entries of another journal, with their artifacts, in one transaction. None of them removes anything.
pub(super) fn adopt(
    connection: &mut Connection,
    entries: &[AdoptedEntry<'_>],
    putting: &PutContext<'_>,
) -> rusqlite::Result<()> {
    with_journal(connection, putting, SqliteJournalWriter::open_to_adopt, |writer| {
        entries.iter().try_for_each(|entry| writer.adopt(entry))
    })
}

fn with_journal<T>(
    connection: &mut Connection,
    putting: &PutContext<'_>,
    open: impl FnOnce(&Connection) -> rusqlite::Result<SqliteJournalWriter>,
    work: impl FnOnce(&mut SqliteWriter<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = write_lock::begin_within(connection, putting.busy_timeout)?;
    let journal = open(&transaction)?;
    let mut writer = SqliteWriter::with_journal(&transaction, putting, journal)?;
    let outcome = work(&mut writer)?;
    writer.finish()?;
    transaction.commit()?;
    Ok(outcome)
}

/// The interval, in artifacts, at which training a dictionary for the kind is tried.
const TRY_DICTIONARY: i64 = 256;

pub(super) struct SqliteWriter<'t> {
    pub(super) transaction: &'t Transaction<'t>,
    statements: TransactionStatements<'t>,
    dictionaries: &'t Dictionaries,
    pub(super) journal: SqliteJournalWriter,
    policy: RemovedPolicy,
    tombstones: Tombstones,
    seen: PendingSightings,
    next_artifact: i64,
    next_capture: i64,
    next_blob: i64,
    /// Captures and blobs with lower row ids were stored before this transaction.
    first_new_capture: i64,
    first_new_blob: i64,
    kinds: HashMap<&'static str, i64>,
    roles: HashMap<(i64, &'static str), i64>,
    attributes: HashMap<&'static str, HashMap<String, i64>>,
    bases: DeltaBaseFinder,
    /// A lost capture, and the signature state that the journal records for it.
    pub(super) recorded: Option<((CoreHash, CaptureHash), Signature)>,
    /// The row ids of dictionaries; `None` for those that must not be used.
    dictionary_ids: HashMap<Digest, Option<i64>>,
    /// Entries for the mention index, to which they are added at the end of the batch.
    pub(super) entries: Vec<mention_index::MentionIndexEntry>,
}

/// A new capture with its artifact and the blobs of its members.
pub(super) struct NewCapture<'p> {
    pub(super) id: i64,
    pub(super) artifact: i64,
    pub(super) is_first: bool,
    pub(super) blobs: Vec<StoredBlob<'p>>,
}

/// A blob in the vault.
pub(super) struct StoredBlob<'p> {
    pub(super) id: i64,
    /// The digests that were stripped from it.
    pub(super) digests: Cow<'p, [Digest]>,
}

impl<'t> SqliteWriter<'t> {
    pub(super) fn new(transaction: &'t Transaction<'t>, putting: &PutContext<'t>) -> rusqlite::Result<Self> {
        let journal = SqliteJournalWriter::open(transaction, putting.actor, putting.at)?;
        Self::with_journal(transaction, putting, journal)
    }

    fn with_journal(
        transaction: &'t Transaction<'t>,
        putting: &PutContext<'t>,
        journal: SqliteJournalWriter,
    ) -> rusqlite::Result<Self> {
        let PutContext { dictionaries, policy, .. } = *putting;
        let (next_capture, next_blob) = (next_row(transaction, CAPTURES)?, next_row(transaction, BLOBS)?);
        Ok(Self {
            transaction,
            statements: TransactionStatements::new(transaction),
            dictionaries,
            policy,
            tombstones: Tombstones::default(),
            seen: PendingSightings::before(after(journal.seq(), "journal")?),
            journal,
            next_artifact: next_row(transaction, ARTIFACTS)?,
            next_capture,
            next_blob,
            first_new_capture: next_capture,
            first_new_blob: next_blob,
            kinds: HashMap::new(),
            roles: HashMap::new(),
            attributes: HashMap::new(),
            bases: DeltaBaseFinder::default(),
            recorded: None,
            dictionary_ids: HashMap::new(),
            entries: Vec::new(),
        })
    }

    fn put(&mut self, prepared: &Prepared) -> rusqlite::Result<PutResult> {
        let mut reuses_bytes = false;
        for embedded in prepared.embedded() {
            reuses_bytes |= self.put(embedded)?.reuses_bytes;
        }
        let admitted = prepared.admitted();
        let (core, capture) = (admitted.core(), admitted.capture());
        // Bytes that are not stored cannot have been captured.
        let (known, may_be_present) = match admitted.members() {
            [only] => blob_id(&self.statements, only.blob()).map(|known| (known, known.is_some()))?,
            _ => (None, true),
        };
        if may_be_present && let Some(id) = capture_id(self.transaction, core, capture)? {
            self.see(id, core, capture)?;
            self.record_signature(id, admitted)?;
            reuses_bytes |= id < self.first_new_capture;
            return Ok(PutResult { core, capture, outcome: PutOutcome::Present, reuses_bytes });
        }
        self.record_seen()?;
        let kind = self.kind(admitted.kind())?;
        let entry = after(self.journal.seq(), "journal")?;
        let (new, outcome) = self.store(prepared, kind, known, entry)?;
        reuses_bytes |= new.blobs.iter().any(|blob| blob.id < self.first_new_blob);
        let (kind_name, size) = (admitted.kind().name(), admitted.size());
        let source_path = prepared.source_path();
        let entry = Addition { kind, kind_name, core, capture, size, source_path };
        self.journal.add(&self.statements, &entry)?;
        self.record_signature(new.id, admitted)?;
        Ok(PutResult { core, capture, outcome, reuses_bytes })
    }

    /// Stores a new capture, whose addition is the journal entry `entry`; `known` is the existing blob of a single member, if
    /// there is one.
    fn store<'p>(
        &mut self,
        prepared: &'p Prepared,
        kind: i64,
        known: Option<i64>,
        entry: i64,
    ) -> rusqlite::Result<(NewCapture<'p>, PutOutcome)> {
        let admitted = prepared.admitted();
        let (artifact, outcome) = self.artifact(admitted.core(), kind, entry)?;
        let is_first = outcome == PutOutcome::Added;
        let sibling = if is_first { None } else { self.first_capture(artifact)? };
        let blobs = self.blobs(prepared, known, kind, sibling)?;
        // Paths are stored in the entry of the addition only.
        let source_entry = prepared.source_path().map(|_| entry);
        let id = self.capture(artifact, admitted, source_entry, &blobs)?;
        let new = NewCapture { id, artifact, is_first, blobs };
        self.index(&new, kind, admitted)?;
        if is_first && artifact % TRY_DICTIONARY == 0 {
            let payloads = PayloadReader { connection: self.transaction, readers: &self.bases.readers };
            dictionary_training::make(payloads, kind)?;
        }
        Ok((new, outcome))
    }

    pub(super) fn kind(&mut self, kind: Kind) -> rusqlite::Result<i64> {
        if let Some(id) = self.kinds.get(kind.name()) {
            return Ok(*id);
        }
        let id = self
            .transaction
            .prepare_cached(
                // Not the number of a lost row, to which artifacts still refer.
                "INSERT INTO kind (id, name, stated_by, member) VALUES (
                   (SELECT max(kind) + 1 FROM artifact WHERE kind > (SELECT coalesce(max(id), 0) FROM kind)), ?1, ?2, ?3)
                 ON CONFLICT (name) DO UPDATE SET stated_by = excluded.stated_by, member = excluded.member
                 RETURNING id",
            )?
            .query_row((kind.name(), kind.inverse_relation(), kind.document_member()), |row| row.get(0))?;
        self.kinds.insert(kind.name(), id);
        Ok(id)
    }

    fn artifact(&mut self, core: CoreHash, kind: i64, entry: i64) -> rusqlite::Result<(i64, PutOutcome)> {
        if let Some(id) = artifact_id(&self.statements, core)? {
            self.arrived(id, arrival(entry, 0))?;
            return Ok((id, PutOutcome::NewCapture));
        }
        let id = self.next_artifact;
        self.next_artifact = after(id, "artifact")?;
        let at = self.journal.at().timestamp_millis();
        self.statements.with(
            "INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival) VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
            |insert| insert.execute((id, core.0.as_bytes(), kind, at, arrival(entry, 0))),
        )?;
        let payloads = PayloadReader { connection: self.transaction, readers: &self.bases.readers };
        unresolved::resolve(&self.statements, MentionListReader { payloads }, core)?;
        Ok((id, PutOutcome::Added))
    }

    /// Returns the blob of the first capture of a single-file artifact.
    fn first_capture(&self, artifact: i64) -> rusqlite::Result<Option<i64>> {
        self.transaction
            .prepare_cached("SELECT blob FROM capture WHERE artifact = ?1 ORDER BY id LIMIT 1")?
            .query_row([artifact], |row| row.get(0))
            .optional()
            .map(Option::flatten)
    }

    fn capture(
        &mut self,
        artifact: i64,
        admitted: &Admitted,
        source_entry: Option<i64>,
        blobs: &[StoredBlob<'_>],
    ) -> rusqlite::Result<i64> {
        let warnings = warnings(admitted)?;
        let document = admitted.kind().document_member().and(blobs.first()).map(|blob| blob.id);
        let capture = admitted.capture();
        let id = self.next_capture;
        self.next_capture = after(id, "capture")?;
        let row = (
            id,
            artifact,
            document,
            document.is_none().then_some(capture.0.as_bytes()),
            admitted.size().cast_signed(),
            self.journal.at().timestamp_millis(),
            warnings,
            seal(admitted.core(), capture),
            source_entry,
        );
        self.statements.with(
            "INSERT INTO capture (id, artifact, blob, digest, size, added_at, seen_at, warnings, seal, source_entry)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9)",
            |insert| insert.execute(row),
        )?;
        if document.is_none() {
            for (member, blob) in admitted.members().iter().zip(blobs) {
                self.transaction
                    .prepare_cached("INSERT INTO member (capture, name, blob) VALUES (?1, ?2, ?3)")?
                    .execute((id, member.name(), blob.id))?;
            }
        }
        Ok(id)
    }

    pub(super) fn finish(mut self) -> rusqlite::Result<()> {
        self.record_seen()?;
        mention_index::add(self.transaction, self.entries)
    }
}

/// Returns the warnings of an artifact in their stored form.
pub(super) fn warnings(admitted: &Admitted) -> rusqlite::Result<Option<String>> {
    match admitted.report().violations() {
        [] => Ok(None),
        violations => serde_json::to_string(violations)
            .map(Some)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into())),
    }
}
