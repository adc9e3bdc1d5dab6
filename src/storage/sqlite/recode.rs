//! Re-encoding of stored bytes. The bytes themselves never change: they are hashed before and after. The digests that
//! were stripped from them, which mention lists refer to, do not change either.

use rusqlite::OptionalExtension;

use super::compress::PayloadContent;
use super::compress::{self, Dictionary};
use super::error::{PayloadDefect, ReadFailure};
use super::payload::{self, PayloadDelta, PayloadReader, PrefixLengths, StoredPayload};
use crate::digest::Digest;

/// A dictionary with its row id.
pub(super) type DictionaryWithId<'d> = (i64, &'d Dictionary);

/// A payload that is stored whole and becomes the delta base of others.
struct SuccessorBase {
    blob: i64,
    text: compress::DeltaCodec,
    digests: compress::DeltaCodec,
}

impl SuccessorBase {
    /// Prepares `content` as a base, or returns `None` if memory cannot be allocated.
    fn new(blob: i64, content: &PayloadContent) -> Option<Self> {
        let PayloadContent { text, digests } = content;
        Some(Self {
            blob,
            text: compress::DeltaCodec::new(text)?,
            digests: compress::DeltaCodec::new(digests)?,
        })
    }

    /// Returns `content` as a delta, if that is shorter than storing it whole.
    fn difference(&self, content: &PayloadContent) -> Option<PayloadDelta> {
        let (digests, text) =
            (self.digests.difference(&content.digests)?, self.text.difference(&content.text)?);
        let length = digests.len() + text.len();
        // A blob stored whole keeps its digests as they are. That usually decides it, and compressing the text takes
        // time.
        let is_shorter = length < content.digests.len()
            || compress::compress(&content.text, None)
                .is_none_or(|whole| length < whole.len() + content.digests.len());
        is_shorter.then_some(PayloadDelta { base: self.blob, digests, text })
    }
}

impl PayloadReader<'_> {
    /// Re-encodes everything that is stored as a delta against `base`, like [`PayloadReader::release`].
    pub(super) fn release_all(&self, base: i64) -> Result<(), ReadFailure> {
        let dependents: Vec<i64> = self
            .connection
            .prepare_cached("SELECT blob FROM payload WHERE base = ?1 ORDER BY blob")?
            .query_map([base], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.release(base, None, &dependents).map(drop)
    }

    /// Re-encodes `dependents`, which are stored as deltas against `base`, as deltas against `heir`. Without an heir,
    /// stores the first of them whole and the others as deltas against it. Verifies the hash of each before, and reads
    /// back the result. Returns the new base.
    pub(super) fn release(
        &self,
        base: i64,
        heir: Option<i64>,
        dependents: &[i64],
    ) -> Result<Option<i64>, ReadFailure> {
        let dependents = &*self.release_prefixes(base, dependents)?;
        let Some(next) = dependents.first() else { return Ok(heir) };
        let base = self.base(base)?;
        let (first, content, rest) = if let Some(heir) = heir {
            (heir, self.verified_content(heir)?, dependents)
        } else {
            let content = self.verified_difference(*next, &base)?;
            self.store_whole(*next, &content)?;
            (*next, content, dependents.get(1..).unwrap_or_default())
        };
        let heir = SuccessorBase::new(first, &content);
        for blob in rest {
            let content = self.verified_difference(*blob, &base)?;
            match heir.as_ref().and_then(|heir| heir.difference(&content)) {
                Some(PayloadDelta { base, digests, text }) => {
                    StoredPayload::of_delta(base, &digests, &text).write(self.connection, *blob)?;
                }
                None => self.store_whole(*blob, &content)?,
            }
        }
        Ok(Some(first))
    }

    /// Stores those of `dependents` that are the beginning of `base` as the beginning of the longest of them, which is stored
    /// whole. Returns the others.
    fn release_prefixes(&self, base: i64, dependents: &[i64]) -> Result<Vec<i64>, ReadFailure> {
        let (mut prefixes, mut others) = (Vec::new(), Vec::new());
        for blob in dependents {
            let size: Option<i64> = self
                .connection
                .prepare_cached(
                    "SELECT b.size FROM payload p JOIN blob b ON b.id = p.blob WHERE p.blob = ?1 AND p.encoding = 4",
                )?
                .query_row([blob], |row| row.get(0))
                .optional()?;
            match size {
                Some(size) => prefixes.push((size, *blob)),
                None => others.push(*blob),
            }
        }
        let Some((_, longest)) = prefixes.iter().copied().max() else { return Ok(others) };
        let content = self.verified_difference(longest, &self.base(base)?)?;
        self.store_whole(longest, &content)?;
        for (_, blob) in prefixes.into_iter().filter(|(_, blob)| *blob != longest) {
            self.connection
                .prepare_cached("UPDATE payload SET base = ?2 WHERE blob = ?1")?
                .execute([blob, longest])?;
        }
        Ok(others)
    }

    /// Stores `shorter` as the beginning of `longer`, which is stored whole, and what was stored as the beginning of it. Does
    /// nothing if that would not be read as its bytes, with the digests that it had `before` if it was stored, or if other
    /// payloads are deltas against it. Returns whether it is stored so.
    pub(super) fn store_prefix(
        &self,
        shorter: i64,
        longer: i64,
        lengths: PrefixLengths,
        before: Option<&[Digest]>,
    ) -> Result<bool, ReadFailure> {
        let is_base: bool = self
            .connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM payload WHERE base = ?1 AND encoding <> 4)")?
            .query_row([shorter], |row| row.get(0))?;
        if is_base {
            return Ok(false);
        }
        let savepoint = |sql: &str| self.connection.execute_batch(sql);
        savepoint("SAVEPOINT prefix")?;
        let (encoding, base, bytes) = (payload::PREFIX, Some(longer), &lengths.to_bytes());
        let row = StoredPayload { encoding, base, dictionary: None, digests: None, bytes };
        row.write(self.connection, shorter)?;
        self.connection
            .prepare_cached("UPDATE payload SET base = ?2 WHERE base = ?1")?
            .execute([shorter, longer])?;
        let is_same = self.verified_content(shorter).is_ok()
            && before.is_none_or(|before| self.digests(shorter).is_ok_and(|after| after == before));
        savepoint(if is_same { "RELEASE prefix" } else { "ROLLBACK TO prefix; RELEASE prefix" })?;
        Ok(is_same)
    }

    /// Stores a payload whole and checks that it can be read.
    fn store_whole(&self, blob: i64, content: &PayloadContent) -> Result<(), ReadFailure> {
        self.store_frame(blob, content, compress::compress(&content.text, None), None)?;
        self.verified_content(blob).map(drop)
    }

    /// Recompresses a payload with a dictionary, or without one. Unless it `must` change, it does so only if the
    /// payload becomes at least a tenth shorter. Returns whether it was recompressed.
    pub(super) fn recompress(
        &self,
        blob: i64,
        dictionary: Option<DictionaryWithId<'_>>,
        must: bool,
    ) -> Result<bool, ReadFailure> {
        let before: usize = self
            .connection
            .prepare_cached("SELECT length(bytes) FROM payload WHERE blob = ?1")?
            .query_row([blob], |row| row.get(0))?;
        let content = self.verified_content(blob)?;
        let frame = compress::compress(&content.text, dictionary.map(|(_, dictionary)| dictionary));
        if !must && frame.as_ref().is_none_or(|frame| frame.len() * 10 > before * 9) {
            return Ok(false);
        }
        self.store_frame(blob, &content, frame, dictionary.map(|(number, _)| number))?;
        self.verified_content(blob)?;
        Ok(true)
    }

    /// Stores `content` as `frame`, which was compressed with the dictionary with this row id; fails if `frame` is
    /// `None` because compression failed.
    fn store_frame(
        &self,
        blob: i64,
        content: &PayloadContent,
        frame: Option<Vec<u8>>,
        dictionary: Option<i64>,
    ) -> Result<(), ReadFailure> {
        let Some(frame) = frame else {
            let message = "not enough memory to recompress it".to_owned();
            return Err(PayloadDefect::Compression { blob: self.hash_of(blob)?, message }.into());
        };
        let is_cut = !content.digests.is_empty();
        let digests = is_cut.then(|| content.digests.as_slice().into());
        let encoding = if is_cut { payload::STRIPPED_FRAME } else { payload::FRAME };
        let stored = if !is_cut && frame.len() >= content.text.len() {
            let bytes = &content.text;
            StoredPayload { encoding: payload::RAW, base: None, dictionary: None, digests: None, bytes }
        } else {
            StoredPayload { encoding, base: None, dictionary, digests, bytes: &frame }
        };
        Ok(stored.write(self.connection, blob)?)
    }
}
