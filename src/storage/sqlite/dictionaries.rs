//! The dictionaries of a vault: one for each kind that has enough small documents.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Row};

use super::compress::{self, DecompressionDictionary, Dictionary};
use super::encodings::Encoding;
use super::error::{PayloadDefect, ReadFailure};
use crate::digest::{BlobHash, Digest, Hasher};
use crate::storage::sql;

/// Maximum size in bytes of a text that uses a dictionary. Larger texts contain enough repetition themselves.
pub(super) const MAX_TEXT: usize = 64 << 10;

/// Number of texts that a dictionary is trained on; fewer are used once they have [`SAMPLE_BYTES`].
pub(super) const SAMPLES: usize = 128;
const SAMPLE_BYTES: usize = 256 << 10;

/// Maximum size of a dictionary in bytes. Larger ones gain little and cost more to set up.
const MAX_SIZE: usize = 32 << 10;

/// Dictionaries for compression, by kind. If the vault has none for a kind, the first texts of the kind train one.
#[derive(Default)]
pub(super) struct Dictionaries {
    slots: Mutex<HashMap<String, Slot>>,
    /// The last journal entry when collecting texts began.
    begun: i64,
}

/// The choice of how to compress a text.
pub(super) enum DictionaryChoice {
    /// With this dictionary, or without one.
    Now(Option<Arc<Dictionary>>),
    /// There is no dictionary yet, but there may be one when the text is stored.
    Later,
}

#[derive(Clone)]
enum Slot {
    /// Stored in the vault and not used yet.
    Stored {
        bytes: Arc<Vec<u8>>,
        begun: i64,
    },
    Ready(Option<Arc<Dictionary>>),
    Collecting(Arc<Mutex<Samples>>),
}

/// Texts of documents that are not stored yet, and the digests of their artifacts.
#[derive(Default)]
struct Samples {
    texts: Vec<Vec<u8>>,
    bytes: usize,
    sources: Vec<Digest>,
    is_complete: bool,
}

impl Samples {
    /// Adds a text unless there are enough. Returns all texts, once, when this one completes them: their number does
    /// not depend on the number of threads that add to them.
    fn add(&mut self, text: &[u8], digests: &[Digest]) -> Option<(Vec<Vec<u8>>, Vec<Digest>)> {
        if self.is_complete {
            return None;
        }
        self.texts.push(text.to_vec());
        self.bytes += text.len();
        self.sources.extend_from_slice(digests);
        self.is_complete = is_enough(self.texts.len(), self.bytes);
        self.is_complete.then(|| (std::mem::take(&mut self.texts), std::mem::take(&mut self.sources)))
    }
}

impl Dictionaries {
    /// Loads the dictionaries of a vault.
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare_cached(
            "SELECT k.name, d.bytes, d.begun FROM dictionary d JOIN kind k ON k.id = d.kind ORDER BY d.id",
        )?;
        let slot = |row: &Row<'_>| -> rusqlite::Result<Slot> {
            Ok(Slot::Stored { bytes: Arc::new(row.get(1)?), begun: row.get(2)? })
        };
        let stored = statement.query_map([], |row| Ok((row.get(0)?, slot(row)?)))?;
        let slots = Mutex::new(stored.collect::<rusqlite::Result<_>>()?);
        Ok(Self { slots, begun: last_entry(connection)? })
    }

    /// Returns how to compress `text`, which belongs to the artifact with these `digests`.
    pub(super) fn for_text(&self, kind: &str, text: &[u8], digests: &[Digest]) -> DictionaryChoice {
        if Encoding::Dictionary.is_off() || text.len() > MAX_TEXT {
            return DictionaryChoice::Now(None);
        }
        let known = self.slots.lock().get(kind).cloned();
        let samples = match known.unwrap_or_else(|| self.collecting(kind)) {
            Slot::Ready(dictionary) => return DictionaryChoice::Now(dictionary),
            Slot::Stored { bytes, begun } => {
                let dictionary = Dictionary::new(bytes.to_vec(), begun).map(Arc::new);
                self.slots.lock().insert(kind.to_owned(), Slot::Ready(dictionary.clone()));
                return DictionaryChoice::Now(dictionary);
            }
            Slot::Collecting(samples) => samples,
        };
        // The thread that adds the last sample trains the dictionary. The others do not wait for it.
        let complete = samples.lock().add(text, digests);
        let Some((texts, sources)) = complete else { return DictionaryChoice::Later };
        let dictionary = train(&texts, self.begun).map(|dictionary| Arc::new(dictionary.made_of(sources)));
        self.slots.lock().insert(kind.to_owned(), Slot::Ready(dictionary.clone()));
        DictionaryChoice::Now(dictionary)
    }

    /// Returns the dictionary for `kind`, if there is one yet.
    pub(super) fn by_now(&self, kind: &str) -> Option<Arc<Dictionary>> {
        match self.slots.lock().get(kind) {
            Some(Slot::Ready(dictionary)) => dictionary.clone(),
            _ => None,
        }
    }

    fn collecting(&self, kind: &str) -> Slot {
        self.slots.lock().entry(kind.to_owned()).or_insert_with(|| Slot::Collecting(Arc::default())).clone()
    }
}

/// Whether `texts` texts with `bytes` bytes in total are enough for a dictionary.
pub(super) fn is_enough(texts: usize, bytes: usize) -> bool {
    texts >= SAMPLES || bytes >= SAMPLE_BYTES
}

/// Trains a dictionary on texts that were collected since the journal entry `begun`.
pub(super) fn train(samples: &[Vec<u8>], begun: i64) -> Option<Dictionary> {
    let bytes: usize = samples.iter().map(Vec::len).sum();
    Dictionary::train(samples, MAX_SIZE.min(bytes / 8), begun)
}

/// Returns the number of the last journal entry.
pub(super) fn last_entry(connection: &Connection) -> rusqlite::Result<i64> {
    let last: Option<i64> =
        connection.prepare_cached("SELECT max(seq) FROM journal")?.query_row([], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

/// The SQL condition that the dictionary `d` may contain pieces of removed documents: an artifact of its kind was
/// removed after collecting its training documents began. Tombstones are not sufficient: an artifact that was added
/// again since may have another byte form than the dictionary was trained on.
pub(super) const IS_STALE: &str = "EXISTS (
    SELECT 1 FROM journal j
     WHERE j.seq > d.begun AND j.entry GLOB '{\"action\":\"remove\",*'
       AND j.entry ->> 'kind' = (SELECT k.name FROM kind k WHERE k.id = d.kind))";

/// Returns the names of the kinds whose dictionaries may contain pieces of removed documents, sorted.
pub(super) fn stale_kinds(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = format!(
        "SELECT DISTINCT k.name FROM dictionary d JOIN kind k ON k.id = d.kind WHERE {IS_STALE} ORDER BY k.name"
    );
    connection.prepare(&sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Returns the row id of `dictionary`, which is stored if it is not in the vault yet. Returns `None` if it must not be
/// stored, because it may contain pieces of documents that were removed since.
pub(super) fn number(
    connection: &Connection,
    kind: i64,
    dictionary: &Dictionary,
) -> rusqlite::Result<Option<i64>> {
    let seal = seal(connection, kind, dictionary)?;
    let known = connection
        .prepare_cached("SELECT id FROM dictionary WHERE digest = ?1")?
        .query_row([seal.as_bytes()], |row| row.get(0))
        .optional()?;
    if known.is_some() {
        return Ok(known);
    }
    let is_stale = connection
        .prepare_cached(&format!("SELECT 1 FROM (SELECT ?1 AS kind, ?2 AS begun) d WHERE {IS_STALE}"))?
        .exists((kind, dictionary.begun()))?;
    // A document that is rejected because it was removed must not be stored again as part of a dictionary.
    let mut sources = dictionary.sources().to_vec();
    sources.sort_unstable();
    if is_stale || sql::tombstones_with(connection, &[&sources])?.iter().any(|found| !found.is_empty()) {
        return Ok(None);
    }
    connection
        .prepare_cached("INSERT INTO dictionary (kind, begun, digest, bytes) VALUES (?1, ?2, ?3, ?4)")?
        .execute((kind, dictionary.begun(), seal.as_bytes(), dictionary.bytes()))?;
    Ok(Some(connection.last_insert_rowid()))
}

fn seal(connection: &Connection, kind: i64, dictionary: &Dictionary) -> rusqlite::Result<Digest> {
    let kind: String = connection
        .prepare_cached("SELECT name FROM kind WHERE id = ?1")?
        .query_row([kind], |row| row.get(0))?;
    Ok(DictionarySeal { kind: &kind, begun: dictionary.begun() }.digest(&dictionary.digest()))
}

/// Returns the row ids of dictionaries that do not have the digest of their content, or cannot be read, and why.
pub(super) fn damaged(connection: &Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut statement = connection.prepare(
        "SELECT d.id, d.digest, d.bytes, d.begun, coalesce(k.name, '') FROM dictionary d
           LEFT JOIN kind k ON k.id = d.kind ORDER BY d.id",
    )?;
    let mut rows = statement.query([])?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        let digests = || -> rusqlite::Result<(Digest, Digest)> {
            let content = Digest::from_content(row.get_ref(2)?.as_blob()?);
            let sealed = DictionarySeal { begun: row.get(3)?, kind: row.get_ref(4)?.as_str()? };
            Ok((row.get(1)?, sealed.digest(&content)))
        };
        let defect = match digests() {
            Ok((digest, actual)) if digest == actual => continue,
            Ok((digest, actual)) => format!("its digest should be {digest} but is {actual}"),
            Err(error) => error.to_string(),
        };
        damaged.push((row.get(0)?, defect));
    }
    Ok(damaged)
}

/// The fields stored with a dictionary. They determine which removals require dropping it.
pub(super) struct DictionarySeal<'k> {
    /// The name of its kind.
    pub(super) kind: &'k str,
    /// The last journal entry when collecting its samples began.
    pub(super) begun: i64,
}

impl DictionarySeal<'_> {
    /// Returns the digest that is stored with a dictionary whose bytes have the SHA-256 `content`: the SHA-256 of that
    /// digest, `begun` as eight little-endian bytes, and the name of the kind.
    pub(super) fn digest(&self, content: &Digest) -> Digest {
        let mut hasher = Hasher::new();
        hasher.update(content.as_bytes());
        hasher.update(&self.begun.to_le_bytes());
        hasher.update(self.kind.as_bytes());
        hasher.finish()
    }
}

/// Dictionaries for decompression, by their row ids, which never change.
#[derive(Default)]
pub(super) struct DecompressionDictionaryCache(Mutex<HashMap<i64, Arc<DecompressionDictionary>>>);

impl DecompressionDictionaryCache {
    /// Returns the dictionary with this row id, which `blob` was compressed with.
    pub(super) fn get(
        &self,
        connection: &Connection,
        id: i64,
        blob: BlobHash,
    ) -> Result<Arc<DecompressionDictionary>, ReadFailure> {
        let known = || self.0.lock();
        if let Some(reader) = known().get(&id) {
            return Ok(reader.clone());
        }
        let damaged = |message: &str| PayloadDefect::Compression { blob, message: message.to_owned() };
        let row = connection
            .prepare_cached("SELECT bytes FROM dictionary WHERE id = ?1")?
            .query_row([id], |row| Ok(compress::reader(row.get_ref(0)?.as_blob()?)))
            .optional()?;
        // The dictionary's digest is not checked: the blob's digest detects damage here too.
        let reader = row.ok_or_else(|| damaged("its dictionary is missing"))?;
        let reader = Arc::new(reader.map_err(|error| damaged(&error.to_string()))?);
        known().insert(id, reader.clone());
        Ok(reader)
    }
}
