//! Sending the bytes of a batch.

use std::collections::{BTreeMap, BTreeSet};

use postgres::types::Type;

use super::preparation::ForPostgres;
use crate::digest::BlobHash;
use crate::storage::Prepared;
use crate::storage::postgres::bytes::Encoded;
use crate::storage::postgres::columns::{all_bytes, blob};
use crate::storage::postgres::error::Outcome;
use crate::storage::postgres::session::Session;

/// The size of a message with bytes, unless one blob is larger.
const MESSAGE: usize = 16 << 20;

/// The bytes of all members of a batch, sorted by hash: who sends several takes their locks in one order.
pub(super) struct Blobs<'b>(BTreeMap<BlobHash, (usize, &'b Encoded)>);

impl<'b> Blobs<'b> {
    pub(super) fn new(batch: &'b [&'b Prepared]) -> Self {
        let mut blobs = Self(BTreeMap::new());
        for prepared in batch {
            blobs.add(prepared);
        }
        blobs
    }

    fn add(&mut self, prepared: &'b Prepared) {
        let encoded = prepared.private::<ForPostgres>().map(|ForPostgres(encoded)| encoded);
        let members = prepared.admitted().members().iter();
        for (member, encoded) in members.zip(encoded.into_iter().flatten()) {
            self.0.insert(member.blob(), (member.bytes().len(), encoded));
        }
        for embedded in prepared.embedded() {
            self.add(embedded);
        }
    }

    /// Sends those of `wanted` that the vault does not have, and returns them.
    pub(super) fn send(
        &mut self,
        session: &Session<'_>,
        wanted: &BTreeSet<BlobHash>,
    ) -> Outcome<BTreeSet<BlobHash>> {
        if wanted.is_empty() {
            return Ok(BTreeSet::new());
        }
        let digests = all_bytes(wanted.iter().map(|blob| &blob.0));
        let sql = "SELECT digest FROM blob WHERE digest = ANY($1)";
        let rows = session.rows(sql, &[(&digests, Type::BYTEA_ARRAY)])?;
        let stored: BTreeSet<BlobHash> = rows.iter().map(|row| blob(row, 0)).collect::<Outcome<_>>()?;
        let missing: BTreeSet<BlobHash> = wanted.difference(&stored).copied().collect();
        let mut message = Vec::new();
        let mut bytes = 0;
        for blob in &missing {
            let Some((size, encoded)) = self.0.get(blob) else { continue };
            if bytes > 0 && bytes + encoded.bytes.len() > MESSAGE {
                insert(session, &message)?;
                message.clear();
                bytes = 0;
            }
            bytes += encoded.bytes.len();
            message.push((blob, *size, *encoded));
        }
        if !message.is_empty() {
            insert(session, &message)?;
        }
        Ok(missing)
    }
}

fn insert(session: &Session<'_>, blobs: &[(&BlobHash, usize, &Encoded)]) -> Outcome<()> {
    let digests = all_bytes(blobs.iter().map(|(blob, ..)| &blob.0));
    let sizes: Vec<i64> = blobs.iter().map(|(_, size, _)| i64::try_from(*size).unwrap_or(i64::MAX)).collect();
    let encodings: Vec<i16> = blobs.iter().map(|(.., encoded)| encoded.encoding).collect();
    let bytes: Vec<&[u8]> = blobs.iter().map(|(.., encoded)| &encoded.bytes[..]).collect();
    session.execute(
        "INSERT INTO blob (digest, size, encoding, bytes)
         SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::smallint[], $4::bytea[]) ON CONFLICT (digest) DO NOTHING",
        &[
            (&digests, Type::BYTEA_ARRAY),
            (&sizes, Type::INT8_ARRAY),
            (&encodings, Type::INT2_ARRAY),
            (&bytes, Type::BYTEA_ARRAY),
        ],
    )?;
    Ok(())
}

/// Deletes those of `sent` that are not `needed` any more and that nothing has.
pub(super) fn discard(
    session: &Session<'_>,
    sent: &BTreeSet<BlobHash>,
    needed: &BTreeSet<BlobHash>,
) -> Outcome<()> {
    let unneeded: Vec<BlobHash> = sent.difference(needed).copied().collect();
    if unneeded.is_empty() {
        return Ok(());
    }
    let digests = all_bytes(unneeded.iter().map(|blob| &blob.0));
    session.execute(
        "DELETE FROM blob b WHERE b.digest = ANY($1) AND NOT EXISTS (SELECT 1 FROM member m WHERE m.blob = b.digest)",
        &[(&digests, Type::BYTEA_ARRAY)],
    )?;
    Ok(())
}
