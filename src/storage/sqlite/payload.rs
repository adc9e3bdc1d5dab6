//! Stored bytes: stripped of digests and compressed when written, restored and hashed when read.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use super::compress::{self, Dictionary, FrameDependency, PayloadContent, as_bytes, as_digests, defect};
use super::delta_bases::{RecentBases, RecentDelta};
use super::dictionaries::{DecompressionDictionaryCache, Dictionaries, DictionaryChoice};
use super::digest_stripping::{self, StrippedText};
use super::error::{PayloadDefect, ReadFailure};
use super::shared_statements::StatementProvider;
use crate::artifact::{Admitted, Member};
use crate::digest::{BlobHash, Digest};
use crate::storage::compression::{LONG_TRANSCRIPT, compress_parts};
use crate::storage::{Prepared, StorageError};

/// Encoding: the unmodified bytes.
pub(super) const RAW: i64 = 0;
/// Encoding: a frame with the bytes.
pub(super) const FRAME: i64 = 1;
/// Encoding: a frame with the text that remains after stripping the digests from the bytes, and the digests.
pub(super) const STRIPPED_FRAME: i64 = 2;
/// Encoding: the same, both as deltas against another payload.
pub(super) const DELTA: i64 = 3;

/// Encoding: the beginning of another payload: the numbers of bytes of its text and of its digests.
pub(super) const PREFIX: i64 = 4;

/// How much of its base a payload in the encoding [`PREFIX`] consists of.
#[derive(Clone, Copy)]
pub(super) struct PrefixLengths {
    /// Number of bytes of the text.
    pub(super) text: usize,
    /// Number of bytes of the digests.
    pub(super) digests: usize,
}

impl PrefixLengths {
    /// Returns those of a document that begins with `bytes`, and from whose text digests may have been stripped.
    pub(super) fn new(bytes: &[u8], is_stripped: bool) -> Self {
        let mut text = 0;
        let Ok(digests) = digest_stripping::strip_into::<Infallible>(bytes, &mut |part| {
            text += part.len();
            Ok(())
        });
        match digests.filter(|_| is_stripped) {
            Some(digests) => Self { text, digests: digests.len() * 32 },
            None => Self { text: bytes.len(), digests: 0 },
        }
    }

    /// Returns the stored form.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        [self.text, self.digests].iter().flat_map(|length| (*length as u64).to_be_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let [text, digests] = numbers else { return None };
        let length = |bytes: &[u8; 8]| usize::try_from(u64::from_be_bytes(*bytes)).ok();
        Some(Self { text: length(text)?, digests: length(digests)? }).filter(|_| rest.is_empty())
    }

    /// Returns the beginning of a content, if that is long enough.
    fn of(self, content: &PayloadContent) -> Option<PayloadContent> {
        let PayloadContent { text, digests } = content;
        Some(PayloadContent {
            text: text.get(..self.text)?.to_vec(),
            digests: digests.get(..self.digests)?.to_vec(),
        })
    }
}

/// The prepared form of an artifact.
pub(super) struct EncodedArtifact {
    /// The payloads of what is stored of it, in its order.
    payloads: Vec<PreparedPayload>,
    /// The dictionaries that they were made with.
    dictionaries: Arc<Dictionaries>,
}

/// The prepared form of a file.
pub(super) enum PreparedPayload {
    /// The file, unless a delta base is found when it is stored.
    Whole(Payload),
    /// To be compressed when stored: there was no dictionary during preparation, but there may be one by then.
    Waiting,
    /// A delta against a document that may be stored by then; otherwise to be compressed.
    Delta(RecentDelta),
}

/// Bytes in their stored form, without another payload.
pub(super) struct Payload {
    /// The stripped digests.
    pub(super) digests: Vec<Digest>,
    pub(super) body: PayloadBody,
}

pub(super) enum PayloadBody {
    /// Compression gains nothing: the bytes themselves.
    Raw,
    /// A frame with the text, or with the bytes if nothing was stripped.
    Frame { frame: Vec<u8>, dictionary: Option<Arc<Dictionary>> },
}

/// Encodes the files of `admitted` and of its embedded artifacts. Needs no database, so that other threads can do it
/// while one writes.
pub(super) fn prepare(admitted: Admitted, dictionaries: &Arc<Dictionaries>, bases: &RecentBases) -> Prepared {
    Prepared::new(admitted, &|admitted, digests| {
        let kind = admitted.kind().name();
        let grows = admitted.kind().info().versions.is_some();
        let payload = |member: &Member| {
            if grows && member.bytes().len() >= LONG_TRANSCRIPT {
                return PreparedPayload::Whole(Payload::of_transcript(member.bytes()));
            }
            if member.bytes().len() >= LARGE {
                return PreparedPayload::Whole(Payload::of_parts(member.bytes(), false));
            }
            let cut = digest_stripping::strip(member.bytes());
            let text = cut.as_ref().map_or(member.bytes(), |cut| &cut.text);
            let choice = dictionaries.for_text(kind, text, digests);
            match cut {
                Some(cut) => PreparedPayload::of_stripped(member, cut, choice, bases),
                None => PreparedPayload::compressed(member.bytes(), None, choice),
            }
        };
        let payloads = admitted.stored().map(payload).collect();
        EncodedArtifact { payloads, dictionaries: Arc::clone(dictionaries) }
    })
}

/// Returns the dictionaries that `prepared` was made with.
pub(super) fn dictionaries(prepared: &Prepared) -> Result<&Dictionaries, StorageError> {
    let encoded = prepared.private::<EncodedArtifact>().map(|encoded| &*encoded.dictionaries);
    encoded.ok_or_else(|| StorageError::invalid("the artifacts were prepared for another storage engine"))
}

/// Returns the payloads of `prepared`, in the order of what is stored of it.
pub(super) fn payloads(prepared: &Prepared) -> rusqlite::Result<&[PreparedPayload]> {
    let payloads = prepared.private::<EncodedArtifact>().map(|encoded| encoded.payloads.as_slice());
    payloads
        .ok_or_else(|| rusqlite::Error::ToSqlConversionFailure("it was prepared for another engine".into()))
}

impl PreparedPayload {
    /// Encodes a file as a delta if there is a similar recent one. If not, it may be the base of others.
    fn of_stripped(
        member: &Member,
        stripped: StrippedText,
        choice: DictionaryChoice,
        bases: &RecentBases,
    ) -> Self {
        if let Some(delta) = bases.delta(&stripped) {
            return Self::Delta(delta);
        }
        let payload = Self::compressed(member.bytes(), Some(&stripped), choice);
        bases.remember(member.blob(), stripped);
        payload
    }

    fn compressed(bytes: &[u8], stripped: Option<&StrippedText>, choice: DictionaryChoice) -> Self {
        match choice {
            DictionaryChoice::Now(dictionary) => Self::Whole(Payload::new(bytes, stripped, dictionary)),
            DictionaryChoice::Later => Self::Waiting,
        }
    }
}

/// Size in bytes above which the stripped text of a file is never in memory as a whole.
const LARGE: usize = 32 << 20;

impl Payload {
    /// Encodes the bytes of a document that grows, without a dictionary.
    pub(super) fn of_transcript(bytes: &[u8]) -> Self {
        if bytes.len() >= LONG_TRANSCRIPT {
            Self::of_parts(bytes, true)
        } else {
            Self::new(bytes, digest_stripping::strip(bytes).as_ref(), None)
        }
    }

    /// Encodes `bytes` like [`Payload::new`] without a dictionary, and never has their stripped text in memory as a whole.
    /// What they repeat can be looked for at any distance.
    fn of_parts(bytes: &[u8], at_any_distance: bool) -> Self {
        let mut size = 0;
        let Ok(digests) = digest_stripping::strip_into::<Infallible>(bytes, &mut |part| {
            size += part.len() as u64;
            Ok(())
        });
        let digests = digests.unwrap_or_default();
        let frame = if digests.is_empty() {
            compress_parts(bytes.len() as u64, at_any_distance, &mut |out| out.write_all(bytes))
        } else {
            compress_parts(size, at_any_distance, &mut |out| {
                digest_stripping::strip_into(bytes, &mut |part| out.write_all(part)).map(drop)
            })
        };
        match frame {
            Ok(frame) if frame.len() + digests.len() * 32 < bytes.len() => {
                Self { digests, body: PayloadBody::Frame { frame, dictionary: None } }
            }
            _ => Self { digests: Vec::new(), body: PayloadBody::Raw },
        }
    }

    /// Encodes `bytes`, from which `stripped` remains after stripping their digests.
    pub(super) fn new(
        bytes: &[u8],
        stripped: Option<&StrippedText>,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Self {
        let (text, digests) = stripped.map_or((bytes, [].as_slice()), |it| (&it.text, &it.digests));
        match compress::compress(text, dictionary.as_deref()) {
            Some(frame) if frame.len() + digests.len() * 32 < bytes.len() => {
                Self { digests: digests.to_vec(), body: PayloadBody::Frame { frame, dictionary } }
            }
            _ => Self { digests: Vec::new(), body: PayloadBody::Raw },
        }
    }
}

/// A payload as a delta against another.
pub(super) struct PayloadDelta {
    pub(super) base: i64,
    pub(super) digests: Vec<u8>,
    pub(super) text: Vec<u8>,
}

/// The columns of a payload.
pub(super) struct StoredPayload<'s> {
    pub(super) encoding: i64,
    pub(super) base: Option<i64>,
    pub(super) dictionary: Option<i64>,
    pub(super) digests: Option<Cow<'s, [u8]>>,
    pub(super) bytes: &'s [u8],
}

impl<'s> StoredPayload<'s> {
    /// Returns those of bytes that are encoded with the dictionary with this row id.
    pub(super) fn of(payload: &'s Payload, bytes: &'s [u8], dictionary: Option<i64>) -> Self {
        let digests = (!payload.digests.is_empty()).then(|| as_bytes(&payload.digests).into());
        let (encoding, bytes) = match &payload.body {
            PayloadBody::Frame { frame, .. } if digests.is_some() => (STRIPPED_FRAME, frame.as_slice()),
            PayloadBody::Frame { frame, .. } => (FRAME, frame.as_slice()),
            PayloadBody::Raw => (RAW, bytes),
        };
        Self { encoding, base: None, dictionary, digests, bytes }
    }

    /// Returns those of a delta.
    pub(super) fn of_delta(base: i64, digests: &'s [u8], text: &'s [u8]) -> Self {
        Self {
            encoding: DELTA,
            base: Some(base),
            dictionary: None,
            digests: Some(digests.into()),
            bytes: text,
        }
    }

    /// Makes it the payload of a blob. It does not replace the row: others may refer to it.
    pub(super) fn write(&self, statements: &impl StatementProvider, blob: i64) -> rusqlite::Result<()> {
        let Self { encoding, base, dictionary, digests, bytes } = self;
        let sql = "INSERT INTO payload (blob, encoding, base, dictionary, digests, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT (blob) DO UPDATE SET encoding = excluded.encoding, base = excluded.base,
                     dictionary = excluded.dictionary, digests = excluded.digests, bytes = excluded.bytes";
        let row = (blob, encoding, base, dictionary, digests.as_deref(), bytes);
        statements.with(sql, |write| write.execute(row)).map(drop)
    }
}

/// A reader of payloads.
#[derive(Clone, Copy)]
pub(super) struct PayloadReader<'c> {
    pub(super) connection: &'c Connection,
    pub(super) readers: &'c DecompressionDictionaryCache,
}

/// A stored payload.
pub(super) struct PayloadRow {
    blob: BlobHash,
    pub(super) size: usize,
    encoding: i64,
    base: Option<i64>,
    dictionary: Option<i64>,
    digests: Vec<u8>,
    bytes: Vec<u8>,
}

impl PayloadRow {
    /// Reads the columns size, encoding, base, dictionary, digests and bytes, which come first.
    pub(super) fn from_row(row: &rusqlite::Row<'_>, blob: BlobHash) -> rusqlite::Result<Self> {
        Ok(Self {
            blob,
            size: row.get(0)?,
            encoding: row.get(1)?,
            base: row.get(2)?,
            dictionary: row.get(3)?,
            digests: row.get::<_, Option<Vec<u8>>>(4)?.unwrap_or_default(),
            bytes: row.get(5)?,
        })
    }

    /// Whether it can be read without another payload.
    pub(super) fn is_whole(&self) -> bool {
        self.base.is_none()
    }
}

impl PayloadReader<'_> {
    /// Returns the original bytes of the blob with this row id after checking their hash. `named` is the expected hash.
    pub(super) fn bytes(&self, blob: i64, named: BlobHash) -> Result<Vec<u8>, ReadFailure> {
        self.bytes_of(self.row(blob, named)?)
    }

    /// Returns the original bytes of a payload after checking their hash.
    pub(super) fn bytes_of(&self, row: PayloadRow) -> Result<Vec<u8>, ReadFailure> {
        let (blob, size, is_cut) = (row.blob, row.size, !matches!(row.encoding, RAW | FRAME));
        let content = self.content_of(row, true)?;
        let spliced = match content.bytes(blob, size, is_cut)? {
            Cow::Owned(bytes) => Some(bytes),
            Cow::Borrowed(_) => None,
        };
        Ok(spliced.unwrap_or(content.text))
    }

    /// Returns the text and digests of the blob with this row id after checking the hash of its bytes.
    pub(super) fn verified_content(&self, blob: i64) -> Result<PayloadContent, ReadFailure> {
        let named = self.hash_of(blob)?;
        let row = self.row(blob, named)?;
        let (size, is_cut) = (row.size, !matches!(row.encoding, RAW | FRAME));
        let content = self.content_of(row, true)?;
        content.bytes(named, size, is_cut)?;
        Ok(content)
    }

    /// Returns the text and digests of a blob that is stored as a delta against `base`, after checking the hash of its
    /// bytes.
    pub(super) fn verified_difference(
        &self,
        blob: i64,
        base: &PayloadContent,
    ) -> Result<PayloadContent, ReadFailure> {
        let named = self.hash_of(blob)?;
        let row = self.row(blob, named)?;
        if !matches!(row.encoding, DELTA | PREFIX) {
            return Err(defect(named, "it has a delta base but is not a delta").into());
        }
        let content = difference_to(&row, base)?;
        content.bytes(named, row.size, true)?;
        Ok(content)
    }

    /// Returns the text and digests of the blob with this row id, which is a delta base. The hashes of the blobs
    /// restored with it verify them.
    pub(super) fn base(&self, blob: i64) -> Result<PayloadContent, ReadFailure> {
        self.content_of(self.row(blob, self.hash_of(blob)?)?, false)
    }

    /// Returns the digests that were stripped from the blob with this row id.
    pub(super) fn digests(&self, blob: i64) -> Result<Vec<Digest>, ReadFailure> {
        self.digests_of(blob, true)
    }

    /// Returns the stripped digests. A delta base is stored whole. If it is not, the vault is damaged, and following it
    /// might not terminate.
    fn digests_of(&self, blob: i64, may_have_base: bool) -> Result<Vec<Digest>, ReadFailure> {
        let row = self
            .connection
            .prepare_cached(
                "SELECT encoding, base, CASE encoding WHEN 4 THEN bytes ELSE digests END FROM payload WHERE blob = ?1",
            )?
            .query_row([blob], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, Option<Vec<u8>>>(2)?))
            })
            .optional()?;
        let (encoding, base, stored) = row.ok_or(PayloadDefect::Missing { blob: self.hash_of(blob)? })?;
        let digests = match (encoding, base) {
            (STRIPPED_FRAME, _) => stored.unwrap_or_default(),
            (DELTA | PREFIX, Some(_)) if !may_have_base => {
                return Err(
                    defect(self.hash_of(blob)?, "it is a delta, but is the base of another one").into()
                );
            }
            (DELTA, Some(base)) => {
                let base = self.digests_of(base, false)?;
                self.digests_like(blob, &as_bytes(&base), &stored.unwrap_or_default())?
            }
            (PREFIX, Some(base)) => {
                let mut digests = as_bytes(&self.digests_of(base, false)?);
                digests.truncate(
                    PrefixLengths::from_bytes(&stored.unwrap_or_default()).map_or(0, |it| it.digests),
                );
                digests
            }
            _ => Vec::new(),
        };
        match as_digests(&digests) {
            Some(digests) => Ok(digests),
            None => Err(defect(self.hash_of(blob)?, "its digests are damaged").into()),
        }
    }

    fn digests_like(&self, blob: i64, base: &[u8], frame: &[u8]) -> Result<Vec<u8>, ReadFailure> {
        // The size of a blob limits how many digests it can have.
        let limit: usize = self
            .connection
            .prepare_cached("SELECT size FROM blob WHERE id = ?1")?
            .query_row([blob], |row| row.get(0))?;
        match compress::decompress(frame, FrameDependency::Base(base), limit) {
            Ok(digests) => Ok(digests),
            Err(error) => Err(defect(self.hash_of(blob)?, &error.to_string()).into()),
        }
    }

    fn content_of(&self, row: PayloadRow, may_have_base: bool) -> Result<PayloadContent, ReadFailure> {
        let damaged = |error: std::io::Error| defect(row.blob, &error.to_string());
        match row.encoding {
            RAW => Ok(PayloadContent { text: row.bytes, digests: Vec::new() }),
            FRAME | STRIPPED_FRAME => {
                let reader =
                    row.dictionary.map(|id| self.readers.get(self.connection, id, row.blob)).transpose()?;
                let dependency =
                    reader.as_deref().map_or(FrameDependency::Nothing, FrameDependency::Dictionary);
                let text = compress::decompress(&row.bytes, dependency, row.size).map_err(damaged)?;
                Ok(PayloadContent { text, digests: row.digests })
            }
            DELTA | PREFIX if may_have_base => {
                let base = row.base.ok_or_else(|| defect(row.blob, "its delta base is not recorded"))?;
                Ok(difference_to(&row, &self.base(base)?)?)
            }
            DELTA | PREFIX => Err(defect(row.blob, "it is a delta, but is the base of another one").into()),
            other => Err(defect(row.blob, &format!("it has the unknown encoding {other}")).into()),
        }
    }

    /// Returns the payload of the blob with this row id. `named` is the expected hash.
    pub(super) fn row(&self, blob: i64, named: BlobHash) -> Result<PayloadRow, ReadFailure> {
        let row = self
            .connection
            .prepare_cached(
                "SELECT b.size, p.encoding, p.base, p.dictionary, p.digests, p.bytes
                   FROM blob b JOIN payload p ON p.blob = b.id WHERE b.id = ?1",
            )?
            .query_row([blob], |row| PayloadRow::from_row(row, named))
            .optional()?;
        row.ok_or_else(|| PayloadDefect::Missing { blob: named }.into())
    }

    pub(super) fn hash_of(&self, blob: i64) -> rusqlite::Result<BlobHash> {
        self.connection
            .prepare_cached("SELECT digest FROM blob WHERE id = ?1")?
            .query_row([blob], |row| row.get(0))
            .map(BlobHash)
    }
}

/// Returns the text and digests of a payload that is stored as a delta against `base`, or is its beginning.
fn difference_to(row: &PayloadRow, base: &PayloadContent) -> Result<PayloadContent, PayloadDefect> {
    if row.encoding == PREFIX {
        let content = PrefixLengths::from_bytes(&row.bytes).and_then(|lengths| lengths.of(base));
        return content
            .ok_or_else(|| defect(row.blob, "it is longer than the payload that it is the beginning of"));
    }
    let read = |frame: &[u8], base: &[u8]| {
        compress::decompress(frame, FrameDependency::Base(base), row.size)
            .map_err(|error| defect(row.blob, &error.to_string()))
    };
    Ok(PayloadContent { text: read(&row.bytes, &base.text)?, digests: read(&row.digests, &base.digests)? })
}
