//! Storing bytes, once each, and as deltas where there is a similar blob, and executing the changes of rows that follow from
//! the entries of the journal.

use std::sync::Arc;

use rusqlite::{OptionalExtension, Params};

use super::{NewCapture, PendingCapture, SqliteWriter, StoredBlob};
use crate::artifact::{Admitted, CREATED_AT, Kind, Member, SignatureState};
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::Prepared;
use crate::storage::catalog::{Row, RowChange, RowKey};
use crate::storage::sql::{self, AnnotationChanges};
use crate::storage::sqlite::compress::Dictionary;
use crate::storage::sqlite::delta_bases::RecentDelta;
use crate::storage::sqlite::journal::after;
use crate::storage::sqlite::payload::{
    self, Payload, PayloadBody, PayloadDelta, PayloadReader, PrefixLengths, PreparedPayload, StoredPayload,
};
use crate::storage::sqlite::rows::{artifact_id, blob_id, capture_id};
use crate::storage::sqlite::shared_statements::StatementProvider;
use crate::storage::sqlite::unresolved::{self, ReferenceReader};
use crate::storage::sqlite::{dictionaries, digest_stripping, remove};
use crate::storage::versions::{self, StoredVersion, StoredVersions};

/// A kind, and its row id in the vault.
#[derive(Clone, Copy)]
struct StoredKind {
    kind: Kind,
    id: i64,
}

impl SqliteWriter<'_> {
    /// Stores the bytes of an artifact; `known` is the blob of its capture, if that exists. `sibling` is the blob of an earlier
    /// capture.
    pub(super) fn blobs<'p>(
        &mut self,
        prepared: &'p Prepared,
        known: Option<i64>,
        kind: i64,
        sibling: Option<i64>,
        versions: Option<&StoredVersions<i64>>,
    ) -> rusqlite::Result<Vec<StoredBlob<'p>>> {
        let admitted = prepared.admitted();
        let store = |(member, payload): (&Member, &'p PreparedPayload)| {
            let is_of_capture = member.blob().0 == admitted.capture().0;
            let sibling = sibling.filter(|_| is_of_capture);
            // Two files of a directory may be identical.
            let known = if is_of_capture { known } else { blob_id(self.connection, member.blob())? };
            if let Some(id) = known {
                return Ok(self.stored_blob(id));
            }
            let id = self.insert_blob(member)?;
            if let Some(versions) = versions.filter(|_| is_of_capture) {
                if self.is_stored_as_beginning(id, member, versions) {
                    return Ok(self.stored_blob(id));
                }
                if let Some(shorter) = versions.longest_beginning(member.bytes()) {
                    return self.longer_blob(id, member, payload, kind, shorter);
                }
            }
            let kind = StoredKind { kind: admitted.kind(), id: kind };
            self.new_blob(id, member, payload, kind, sibling)
        };
        admitted.stored().zip(payload::payloads(prepared)?).map(store).collect()
    }

    /// Returns a blob that is in the vault.
    pub(in crate::storage) fn stored_blob<'p>(&self, id: i64) -> StoredBlob<'p> {
        let payloads = PayloadReader { connection: self.connection, readers: &self.bases.readers };
        // If the stored blob is damaged, reads of it report that.
        StoredBlob { id, digests: payloads.digests(id).unwrap_or_default().into() }
    }

    /// Stores a document as the beginning of a longer version, if there is one that has its bytes: of a document that grows,
    /// only the longest version takes room. Returns whether it is stored.
    fn is_stored_as_beginning(&self, id: i64, member: &Member, versions: &StoredVersions<i64>) -> bool {
        let payloads = PayloadReader { connection: self.connection, readers: &self.bases.readers };
        versions.longer(member.bytes()).any(|longer| {
            // What cannot be read stays as it is, and is reported by those who read it.
            payloads.digests(longer).is_ok_and(|digests| {
                let lengths = PrefixLengths::new(member.bytes(), !digests.is_empty());
                payloads.store_prefix(id, longer, lengths, None).is_ok_and(|is_stored| is_stored)
            })
        })
    }

    /// Stores a document whole that begins with the bytes of the blob `shorter`, and that blob as its beginning.
    fn longer_blob<'p>(
        &mut self,
        id: i64,
        member: &Member,
        prepared: &'p PreparedPayload,
        kind: i64,
        shorter: i64,
    ) -> rusqlite::Result<StoredBlob<'p>> {
        let own;
        let (payload, digests) = match prepared {
            PreparedPayload::Whole(payload) if self.is_usable(payload, kind)? => {
                (payload, payload.digests.as_slice().into())
            }
            _ => {
                own = Payload::of_transcript(member.bytes());
                (&own, own.digests.clone().into())
            }
        };
        self.insert_whole(id, kind, member, payload)?;
        let size: usize = self
            .connection
            .prepare_cached("SELECT size FROM blob WHERE id = ?1")?
            .query_row([shorter], |row| row.get(0))?;
        let beginning = member.bytes().get(..size).unwrap_or_default();
        self.bases.shortened(shorter);
        let payloads = PayloadReader { connection: self.connection, readers: &self.bases.readers };
        // What cannot be read stays as it is, and is reported by those who read it.
        if let Ok(before) = payloads.digests(shorter) {
            let lengths = PrefixLengths::new(beginning, !payload.digests.is_empty());
            let _ = payloads.store_prefix(shorter, id, lengths, Some(&before));
        }
        Ok(StoredBlob { id, digests })
    }

    fn insert_blob(&mut self, member: &Member) -> rusqlite::Result<i64> {
        let id = self.next_blob;
        self.next_blob = after(id, "blob")?;
        self.statements.with("INSERT INTO blob (id, digest, size) VALUES (?1, ?2, ?3)", |insert| {
            insert.execute((id, member.blob().0.as_bytes(), member.bytes().len()))
        })?;
        Ok(id)
    }

    fn new_blob<'p>(
        &mut self,
        id: i64,
        member: &Member,
        prepared: &'p PreparedPayload,
        kind: StoredKind,
        sibling: Option<i64>,
    ) -> rusqlite::Result<StoredBlob<'p>> {
        let mut dictionary = None;
        match prepared {
            PreparedPayload::Delta(delta) if self.recent_delta(id, member, delta, sibling)? => {
                return Ok(StoredBlob { id, digests: delta.stripped.as_slice().into() });
            }
            PreparedPayload::Whole(payload) if self.is_usable(payload, kind.id)? => {
                self.payload(id, kind.id, member, payload, sibling)?;
                return Ok(StoredBlob { id, digests: payload.digests.as_slice().into() });
            }
            PreparedPayload::Delta(_) | PreparedPayload::Waiting => {
                dictionary = self.dictionary_by_now(kind)?;
            }
            PreparedPayload::Whole(_) => {}
        }
        let stripped = digest_stripping::strip(member.bytes());
        let now = Payload::new(member.bytes(), stripped.as_ref(), dictionary);
        self.payload(id, kind.id, member, &now, sibling)?;
        Ok(StoredBlob { id, digests: now.digests.into() })
    }

    /// Stores a payload as a delta, against the recent document if that is stored, or against another. Returns whether it
    /// is stored.
    fn recent_delta(
        &mut self,
        blob: i64,
        member: &Member,
        delta: &RecentDelta,
        sibling: Option<i64>,
    ) -> rusqlite::Result<bool> {
        let RecentDelta { base, stripped, digests, text, whole } = delta;
        if let Some(base) = self.bases.stored(self.connection, base)? {
            StoredPayload::of_delta(base, digests, text).write(&self.statements, blob)?;
            return Ok(true);
        }
        let other = self.bases.difference(self.connection, member.bytes(), stripped, sibling, *whole)?;
        if let Some(PayloadDelta { base, digests, text }) = &other {
            StoredPayload::of_delta(*base, digests, text).write(&self.statements, blob)?;
        }
        Ok(other.is_some())
    }

    /// Returns whether a payload can be stored as it is: the dictionary that it was compressed with may have been
    /// dropped since.
    fn is_usable(&mut self, payload: &Payload, kind: i64) -> rusqlite::Result<bool> {
        match &payload.body {
            PayloadBody::Frame { dictionary: Some(dictionary), .. } => {
                Ok(self.dictionary_id(kind, dictionary)?.is_some())
            }
            PayloadBody::Frame { dictionary: None, .. } | PayloadBody::Raw => Ok(true),
        }
    }

    /// Returns the dictionary for a kind, if there is one by now that may be used.
    fn dictionary_by_now(&mut self, kind: StoredKind) -> rusqlite::Result<Option<Arc<Dictionary>>> {
        let Some(dictionary) = self.dictionaries.by_now(kind.kind.name()) else { return Ok(None) };
        Ok(self.dictionary_id(kind.id, &dictionary)?.map(|_| dictionary))
    }

    fn dictionary_id(&mut self, kind: i64, dictionary: &Dictionary) -> rusqlite::Result<Option<i64>> {
        if let Some(id) = self.dictionary_ids.get(&dictionary.digest()) {
            return Ok(*id);
        }
        let id = dictionaries::number(self.connection, kind, dictionary)?;
        self.dictionary_ids.insert(dictionary.digest(), id);
        Ok(id)
    }

    fn payload(
        &mut self,
        blob: i64,
        kind: i64,
        member: &Member,
        payload: &Payload,
        sibling: Option<i64>,
    ) -> rusqlite::Result<()> {
        let Payload { digests, body } = payload;
        let whole = match body {
            PayloadBody::Frame { frame, .. } => frame.len() + digests.len() * 32,
            PayloadBody::Raw => member.bytes().len(),
        };
        let difference = self.bases.difference(self.connection, member.bytes(), digests, sibling, whole)?;
        if let Some(PayloadDelta { base, digests, text }) = difference {
            return StoredPayload::of_delta(base, &digests, &text).write(&self.statements, blob);
        }
        self.insert_whole(blob, kind, member, payload)
    }

    fn insert_whole(
        &mut self,
        blob: i64,
        kind: i64,
        member: &Member,
        payload: &Payload,
    ) -> rusqlite::Result<()> {
        let dictionary = match &payload.body {
            PayloadBody::Frame { dictionary: Some(dictionary), .. } => {
                self.dictionary_id(kind, dictionary)?
            }
            PayloadBody::Frame { dictionary: None, .. } | PayloadBody::Raw => None,
        };
        StoredPayload::of(payload, member.bytes(), dictionary).write(&self.statements, blob)?;
        if let PayloadBody::Frame { .. } = payload.body {
            self.bases.remember(blob, &payload.digests);
        }
        Ok(())
    }
}

impl SqliteWriter<'_> {
    /// Executes a change. Rows of artifacts that the vault does not have are left out.
    pub(in crate::storage::sqlite) fn execute(&mut self, change: RowChange<'_>) -> rusqlite::Result<()> {
        match change {
            RowChange::Insert(row) => self.insert(&row),
            RowChange::Put(row) => self.put(row),
            // The capture that is pending is a new one, or what is stored of it is replaced.
            RowChange::Delete(RowKey::Signature(..)) => Ok(()),
            RowChange::Delete(key) => {
                let mut changes = AnnotationChanges::default();
                changes.delete(key);
                changes.write(self.connection)
            }
            RowChange::Arrive { core, at, arrival } => match self.artifact(core)? {
                // The row of a new artifact has both already.
                Some(id) if self.new_artifact != Some(id) => self
                    .run("UPDATE artifact SET seen_at = ?2, arrival = ?3 WHERE id = ?1", (id, at, arrival)),
                _ => Ok(()),
            },
            RowChange::See { core, capture, at } => match capture_id(self.connection, core, capture)? {
                Some(id) => self.run("UPDATE capture SET seen_at = ?2 WHERE id = ?1", (id, at)),
                None => Ok(()),
            },
            RowChange::Store { core, capture, content } => self.store(core, capture, content),
            RowChange::Remove { core } => match self.artifact(core)? {
                Some(id) => {
                    self.last_artifact = None;
                    let remains = remove::take_out(self.lists(), id, core)?;
                    self.remains.add(remains);
                    Ok(())
                }
                None => Ok(()),
            },
            RowChange::Readmit { core } => {
                // Almost always, there are none.
                if self.connection.prepare_cached("SELECT 1 FROM tombstone LIMIT 1")?.exists([])? {
                    sql::readmit(self.connection, &[core])?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn run(&self, sql: &str, parameters: impl Params) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(parameters).map(drop)
    }

    /// Returns the row id of an artifact. That of the last one is remembered: most changes are about the same as before.
    pub(super) fn artifact(&mut self, core: CoreHash) -> rusqlite::Result<Option<i64>> {
        if let Some((last, id)) = self.last_artifact
            && last == core
        {
            return Ok(Some(id));
        }
        let id = artifact_id(&self.statements, core)?;
        self.last_artifact = id.map(|id| (core, id));
        Ok(id)
    }

    fn insert(&mut self, row: &Row) -> rusqlite::Result<()> {
        match row {
            Row::Kind(kind) => self.kind(*kind).map(drop),
            Row::Artifact { core, entry, kind, added_at, seen_at, arrival } => {
                if self.artifact(*core)?.is_none() {
                    // In a damaged vault, a row may have a higher number than its entry.
                    let id = self.next_artifact.max(entry.cast_signed());
                    self.next_artifact = after(id, "artifact")?;
                    self.new_artifact = Some(id);
                    let kind = self.kind_named(kind)?;
                    self.statements.with(
                        "INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                        |insert| insert.execute((id, core.0.as_bytes(), kind, added_at, seen_at, arrival)),
                    )?;
                    self.last_artifact = Some((*core, id));
                    let lists = self.lists();
                    unresolved::resolve(&self.statements, lists, *core)?;
                }
                Ok(())
            }
            Row::Attribute { core, name, value, number } => {
                let value = self.attribute_value(name, value, *number)?;
                let sql = "INSERT OR IGNORE INTO attribute (value, artifact) VALUES (?1, ?2)";
                let Some(id) = self.artifact(*core)? else { return Ok(()) };
                self.statements.with(sql, |insert| insert.execute((value, id)))?;
                if name == CREATED_AT && number.is_some() {
                    let sql =
                        "UPDATE artifact SET created_at = ?2 WHERE id = ?1 AND coalesce(created_at < ?2, 1)";
                    self.statements.with(sql, |update| update.execute((id, number)))?;
                }
                Ok(())
            }
            Row::Identity { core, handle } => match self.artifact(*core)? {
                Some(id) => self
                    .run("INSERT OR IGNORE INTO identity (handle, artifact) VALUES (?1, ?2)", (handle, id)),
                None => Ok(()),
            },
            Row::NameMention { core, relation, handle, dangles } => {
                let sql = "INSERT OR IGNORE INTO name_mention (artifact, relation, handle, dangles)
                           VALUES (?1, ?2, ?3, ?4)";
                match self.artifact(*core)? {
                    Some(id) => self.run(sql, (id, relation, handle, dangles)),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, row: Row) -> rusqlite::Result<()> {
        match row {
            Row::Capture { entry, added_at, source_path, .. } => {
                let entry = entry.cast_signed();
                let has_source_path = source_path.is_some();
                self.pending = Some(PendingCapture { entry, at: added_at, has_source_path });
                Ok(())
            }
            Row::Signature { core, capture, state, key_id } => {
                let sql = "INSERT OR REPLACE INTO signature (capture, state, key_id) VALUES (?1, ?2, ?3)";
                match capture_id(self.connection, core, capture)? {
                    Some(id) if SignatureState::named(&state).is_some() => self.run(sql, (id, state, key_id)),
                    _ => Ok(()),
                }
            }
            Row::Tombstone(tombstone) => sql::put_tombstones(self.connection, vec![*tombstone]),
            row => {
                let mut changes = AnnotationChanges::default();
                changes.put(row);
                changes.write(self.connection)
            }
        }
    }

    /// Stores the bytes of a capture with its row and what it mentions.
    fn store(&mut self, core: CoreHash, capture: CaptureHash, content: &Prepared) -> rusqlite::Result<()> {
        let (Some(artifact), Some(pending)) = (self.artifact(core)?, self.pending.take()) else {
            return Ok(());
        };
        let source_entry = pending.has_source_path.then_some(pending.entry);
        let admitted = content.admitted();
        let known = blob_id(&self.statements, BlobHash(capture.0))?;
        // Bytes that are not stored cannot have been captured.
        if known.is_some()
            && let Some(id) = capture_id(self.connection, core, capture)?
        {
            // It had been lost, and has the number of its last addition.
            let lists = self.lists();
            let unlisted = remove::take_out_capture(lists, &ReferenceReader::new(lists)?, id)?;
            self.remains.unlisted.extend(unlisted);
        }
        let kind = self.kind(admitted.kind())?;
        let is_first = self.new_artifact == Some(artifact);
        let sibling = if is_first { None } else { self.first_capture(artifact)? };
        let versions = if is_first { self.versions(admitted, kind)? } else { None };
        let blobs = self.blobs(content, known, kind, sibling, versions.as_ref())?;
        self.reuses_bytes = blobs.iter().any(|blob| blob.id < self.first_new_blob);
        let id = self.next_capture.max(pending.entry);
        self.next_capture = after(id, "capture")?;
        let new = NewCapture { id, artifact, is_first, blobs };
        self.insert_capture(&new, admitted, pending.at, source_entry)?;
        self.mentions(&new, kind, &admitted.draft().mentions)?;
        let is_document = is_first && admitted.manifest().is_none();
        if new.blobs.first().is_some_and(|blob| is_document && blob.id % super::TRY_DICTIONARY == 0) {
            self.train(kind)?;
        }
        Ok(())
    }

    /// Returns the blobs of other versions of a document that grows which are stored whole.
    fn versions(&self, admitted: &Admitted, kind: i64) -> rusqlite::Result<Option<StoredVersions<i64>>> {
        let Some(run) = versions::run_attribute(admitted) else { return Ok(None) };
        let mut select = self.connection.prepare_cached(
            "SELECT DISTINCT b.size, b.digest, b.id
               FROM (SELECT a.id FROM attribute_value v JOIN attribute t ON t.value = v.id JOIN artifact a ON a.id = t.artifact
                      WHERE v.name = ?1 AND v.value = ?2 AND a.kind = ?3 AND a.id <> ?4 ORDER BY t.artifact DESC LIMIT ?5) r
               JOIN capture c ON c.artifact = r.id JOIN payload p ON p.blob = c.blob
               JOIN blob b ON b.id = CASE p.encoding WHEN 4 THEN p.base ELSE p.blob END",
        )?;
        let parameters = (run.name, &run.value, kind, self.new_artifact, versions::NEWEST);
        let stored = select.query_map(parameters, |row| {
            Ok(StoredVersion { size: row.get(0)?, blob: BlobHash(row.get(1)?), key: row.get(2)? })
        })?;
        Ok(Some(StoredVersions::new(stored.collect::<rusqlite::Result<_>>()?)))
    }

    /// Returns the blob of the first capture of an artifact.
    fn first_capture(&self, artifact: i64) -> rusqlite::Result<Option<i64>> {
        self.connection
            .prepare_cached("SELECT blob FROM capture WHERE artifact = ?1 ORDER BY id LIMIT 1")?
            .query_row([artifact], |row| row.get(0))
            .optional()
    }
}
