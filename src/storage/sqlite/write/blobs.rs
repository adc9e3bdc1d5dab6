//! Storing bytes: once each, and as deltas where there is a similar blob.

use super::{StoredBlob, Writer};
use crate::artifact::{Kind, Member};
use crate::storage::Prepared;
use crate::storage::sqlite::compress::Dictionary;
use crate::storage::sqlite::delta::Difference;
use crate::storage::sqlite::ids::blob_id;
use crate::storage::sqlite::payload::{self, Body, Payload, Payloads};
use crate::storage::sqlite::{dictionaries, digest_stripping};

impl Writer<'_> {
    /// Stores the members' bytes; `known` is the existing blob of a single member, if there is one. `sibling` is the
    /// blob of an earlier capture of a document.
    pub(super) fn blobs<'p>(
        &mut self,
        prepared: &'p Prepared,
        known: Option<i64>,
        kind: i64,
        sibling: Option<i64>,
    ) -> rusqlite::Result<Vec<StoredBlob<'p>>> {
        let admitted = prepared.admitted();
        let is_only = admitted.members().len() == 1;
        let store = |(member, payload): (&Member, &'p Payload)| {
            // If there are several, two may be identical.
            let known = if is_only { known } else { blob_id(self.transaction, member.blob())? };
            match known {
                Some(id) => Ok(self.known_blob(id)),
                None => self.new_blob(member, payload, (admitted.kind(), kind), sibling),
            }
        };
        admitted.members().iter().zip(payload::payloads(prepared)?).map(store).collect()
    }

    /// Returns a blob that is in the vault.
    pub(in crate::storage) fn known_blob<'p>(&self, id: i64) -> StoredBlob<'p> {
        let payloads = Payloads { connection: self.transaction, readers: &self.bases.readers };
        // If the stored blob is damaged, reads of it report that.
        StoredBlob { id, digests: payloads.digests(id).unwrap_or_default().into() }
    }

    fn new_blob<'p>(
        &mut self,
        member: &Member,
        payload: &'p Payload,
        (kind, kind_id): (Kind, i64),
        sibling: Option<i64>,
    ) -> rusqlite::Result<StoredBlob<'p>> {
        self.transaction
            .prepare_cached("INSERT INTO blob (digest, size) VALUES (?1, ?2)")?
            .execute((member.blob().0.as_bytes(), member.bytes().len()))?;
        let id = self.transaction.last_insert_rowid();
        if let Some(now) = self.encode(payload, member, (kind, kind_id))? {
            self.payload(id, kind_id, member, &now, sibling)?;
            return Ok(StoredBlob { id, digests: now.digests.into() });
        }
        self.payload(id, kind_id, member, payload, sibling)?;
        Ok(StoredBlob { id, digests: payload.digests.as_slice().into() })
    }

    /// Returns the payload to store instead of the prepared one, if there is a dictionary by now, or if the dictionary
    /// that it was compressed with must not be used any more.
    fn encode(
        &mut self,
        payload: &Payload,
        member: &Member,
        (kind, kind_id): (Kind, i64),
    ) -> rusqlite::Result<Option<Payload>> {
        let (dictionary, is_waiting) = match &payload.body {
            Body::Waiting => (self.dictionaries.by_now(kind.name()), true),
            Body::Frame { dictionary: Some(dictionary), .. } => (Some(dictionary.clone()), false),
            Body::Frame { dictionary: None, .. } | Body::Raw => return Ok(None),
        };
        let mut usable = None;
        if let Some(dictionary) = dictionary
            && self.dictionary_id(kind_id, &dictionary)?.is_some()
        {
            usable = Some(dictionary);
        }
        let is_good = !is_waiting && usable.is_some();
        Ok((!is_good).then(|| Payload::new(member.bytes(), digest_stripping::strip(member.bytes()), usable)))
    }

    fn dictionary_id(&mut self, kind: i64, dictionary: &Dictionary) -> rusqlite::Result<Option<i64>> {
        if let Some(id) = self.dictionary_ids.get(&dictionary.digest()) {
            return Ok(*id);
        }
        let id = dictionaries::number(self.transaction, kind, dictionary)?;
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
            Body::Frame { frame, .. } => frame.len() + digests.len() * 32,
            Body::Raw | Body::Waiting => member.bytes().len(),
        };
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO payload (blob, encoding, base, dictionary, digests, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let difference = self.bases.difference(self.transaction, member.bytes(), digests, sibling, whole)?;
        if let Some(Difference { base, digests, text }) = difference {
            insert.execute((blob, payload::DIFFERENCE, base, None::<i64>, digests, text))?;
            return Ok(());
        }
        self.bases.remember(blob, digests);
        let cut = (!digests.is_empty()).then(|| payload::as_bytes(digests));
        match body {
            Body::Frame { frame, dictionary } => {
                let encoding = if cut.is_some() { payload::CUT } else { payload::FRAME };
                let dictionary = match dictionary {
                    Some(dictionary) => self.dictionary_id(kind, dictionary)?,
                    None => None,
                };
                insert.execute((blob, encoding, None::<i64>, dictionary, cut, frame))?;
            }
            Body::Raw | Body::Waiting => {
                insert.execute((
                    blob,
                    payload::RAW,
                    None::<i64>,
                    None::<i64>,
                    None::<Vec<u8>>,
                    member.bytes(),
                ))?;
            }
        }
        Ok(())
    }
}
