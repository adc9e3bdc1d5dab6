//! Storing bytes: once each, and as deltas where there is a similar blob.

use std::sync::Arc;

use super::{SqliteWriter, StoredBlob};
use crate::artifact::{Kind, Member};
use crate::storage::Prepared;
use crate::storage::sqlite::compress::Dictionary;
use crate::storage::sqlite::delta_bases::RecentDelta;
use crate::storage::sqlite::ids::blob_id;
use crate::storage::sqlite::journal::after;
use crate::storage::sqlite::payload::{
    self, Payload, PayloadBody, PayloadDelta, PayloadReader, PrefixLengths, PreparedPayload, StoredPayload,
};
use crate::storage::sqlite::shared_statements::StatementProvider;
use crate::storage::sqlite::{dictionaries, digest_stripping};
use crate::storage::versions::StoredVersions;

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
            self.new_blob(id, member, payload, (admitted.kind(), kind), sibling)
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
        (kind, kind_id): (Kind, i64),
        sibling: Option<i64>,
    ) -> rusqlite::Result<StoredBlob<'p>> {
        let mut dictionary = None;
        match prepared {
            PreparedPayload::Delta(delta) if self.recent_delta(id, member, delta, sibling)? => {
                return Ok(StoredBlob { id, digests: delta.stripped.as_slice().into() });
            }
            PreparedPayload::Whole(payload) if self.is_usable(payload, kind_id)? => {
                self.payload(id, kind_id, member, payload, sibling)?;
                return Ok(StoredBlob { id, digests: payload.digests.as_slice().into() });
            }
            PreparedPayload::Delta(_) | PreparedPayload::Waiting => {
                dictionary = self.dictionary_by_now(kind, kind_id)?;
            }
            PreparedPayload::Whole(_) => {}
        }
        let stripped = digest_stripping::strip(member.bytes());
        let now = Payload::new(member.bytes(), stripped.as_ref(), dictionary);
        self.payload(id, kind_id, member, &now, sibling)?;
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
    fn dictionary_by_now(&mut self, kind: Kind, kind_id: i64) -> rusqlite::Result<Option<Arc<Dictionary>>> {
        let Some(dictionary) = self.dictionaries.by_now(kind.name()) else { return Ok(None) };
        Ok(self.dictionary_id(kind_id, &dictionary)?.map(|_| dictionary))
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
