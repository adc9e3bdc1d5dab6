//! The floor: the least that archiving sessions can cost with this schema. Reads, hashes, parses into typed structs,
//! compresses, and inserts into the tables of a vault, a thousand documents in a transaction. It verifies nothing and looks
//! nothing up; in place of the core hash it stores the hash of the file. One thread reads and parses, one writes.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use runvault::Vault;
use runvault::digest::Digest;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use serde::Deserialize;

const BATCH: usize = 1_000;

/// Those of a vault's own connections, for the same durability.
const SETTINGS: &str = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON; PRAGMA cache_size = -32768;";

/// Stores the sessions in `directory` in a new vault at `path`.
pub fn run(directory: &Path, path: &Path) {
    drop(Vault::open_or_create(path).expect("a vault"));
    let (sender, batches) = sync_channel::<Vec<Document>>(2);
    thread::scope(|scope| {
        scope.spawn(move || read_all(directory, &sender));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).expect("the vault");
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(SETTINGS).expect("settings");
        let mut journal = Journal { seq: 0, chain: Digest::from_bytes([0; 32]) };
        for batch in batches {
            let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let transaction = begun.expect("a transaction");
            insert(&transaction, &batch, &mut journal).expect("inserted");
            transaction.commit().expect("committed");
        }
    });
}

/// What is stored of a session.
struct Document {
    digest: Digest,
    size: usize,
    compressed: Vec<u8>,
    /// Role, interaction, digest.
    mentions: Vec<(usize, usize, Digest)>,
    attributes: [(&'static str, String); 4],
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "all that a session must have is parsed")]
struct Session<'d> {
    #[serde(borrow)]
    model_io_schema_version: Cow<'d, str>,
    #[serde(borrow)]
    adapter_id: Cow<'d, str>,
    #[serde(borrow)]
    model_id: Cow<'d, str>,
    #[serde(borrow)]
    mode: Cow<'d, str>,
    #[serde(borrow)]
    interactions: Vec<Interaction<'d>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "all that an interaction must have is parsed")]
struct Interaction<'d> {
    i: usize,
    #[serde(borrow)]
    prompt_hash: Cow<'d, str>,
    #[serde(borrow)]
    response_hash: Cow<'d, str>,
    #[serde(borrow)]
    response_content: Cow<'d, str>,
}

fn read_all(directory: &Path, sender: &SyncSender<Vec<Document>>) {
    let mut compressor = zstd::bulk::Compressor::new(1).expect("a compressor");
    let mut batch = Vec::with_capacity(BATCH);
    for path in files(directory) {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        batch.push(parse(&bytes, &mut compressor));
        if batch.len() == BATCH {
            sender.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))).expect("a writer");
        }
    }
    sender.send(batch).expect("a writer");
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry")).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let is_directory = |entry: &fs::DirEntry| entry.file_type().expect("a type").is_dir();
    entries
        .iter()
        .flat_map(|entry| if is_directory(entry) { files(&entry.path()) } else { vec![entry.path()] })
        .collect()
}

fn parse(bytes: &[u8], compressor: &mut zstd::bulk::Compressor<'_>) -> Document {
    let session: Session<'_> = serde_json::from_slice(bytes).expect("a session");
    let stated = |text: &str| Digest::parse_prefixed(text).expect("a digest");
    let mut mentions = Vec::with_capacity(2 * session.interactions.len());
    for (place, interaction) in session.interactions.iter().enumerate() {
        mentions.push((PROMPT, place, stated(&interaction.prompt_hash)));
        mentions.push((RESPONSE, place, stated(&interaction.response_hash)));
    }
    Document {
        digest: Digest::from_content(bytes),
        size: bytes.len(),
        compressed: compressor.compress(bytes).expect("compressed"),
        mentions,
        attributes: [
            ("adapter_id", session.adapter_id.into_owned()),
            ("interactions", session.interactions.len().to_string()),
            ("mode", session.mode.into_owned()),
            ("model_id", session.model_id.into_owned()),
        ],
    }
}

struct Journal {
    seq: i64,
    chain: Digest,
}

const KIND: usize = 1;
const KIND_NAME: &str = "model_io";
const PROMPT: usize = 1;
const RESPONSE: usize = 2;
/// A compressed frame with nothing cut out.
const FRAME: usize = 1;
/// When all was added.
const AT: i64 = 1_767_225_600_000;
/// Approximate number of entries in a bucket of the mention index.
const BUCKET: usize = 128;

/// Everything that knows the tables is from here on: to be changed with `migrations/`.
fn insert(transaction: &Transaction<'_>, batch: &[Document], journal: &mut Journal) -> rusqlite::Result<()> {
    if journal.seq == 0 {
        transaction.execute(
            "INSERT INTO kind (id, name, member) VALUES (?1, ?2, 'model_io.json')",
            (KIND, KIND_NAME),
        )?;
        for (id, role) in [(PROMPT, "prompt"), (RESPONSE, "response")] {
            transaction.execute(
                "INSERT INTO role (id, kind, name, role_group, unit, dangles) VALUES (?1, ?2, ?3, ?3, 'interaction', 0)",
                (id, KIND, role),
            )?;
        }
    }
    let prepare = |sql| transaction.prepare_cached(sql);
    let mut artifacts = prepare(
        "INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival, created_at)
         VALUES (?1, ?2, ?3, ?4, ?4, ?1 << 20, ?4)",
    )?;
    let mut blobs = prepare("INSERT INTO blob (id, digest, size) VALUES (?1, ?2, ?3)")?;
    let mut payloads = prepare("INSERT INTO payload (blob, encoding, bytes) VALUES (?1, ?2, ?3)")?;
    let mut captures = prepare(
        "INSERT INTO capture (id, artifact, blob, size, added_at, seen_at, seal) VALUES (?1, ?1, ?1, ?2, ?3, ?3, ?4)",
    )?;
    let mut lists = prepare("INSERT INTO mention_list (capture, blob, bytes) VALUES (?1, ?1, ?2)")?;
    let mut values = prepare(
        "INSERT INTO attribute_value (name, value) VALUES (?1, ?2)
         ON CONFLICT (name, value) DO UPDATE SET name = name RETURNING id",
    )?;
    let mut attributes = prepare("INSERT INTO attribute (value, artifact) VALUES (?1, ?2)")?;
    let mut entries = prepare(
        "INSERT INTO journal (seq, at, kind, core, capture, size, chain) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
    )?;
    let mut keys = Vec::with_capacity(batch.len() * 20);
    for document in batch {
        journal.seq += 1;
        let (id, digest) = (journal.seq, document.digest.as_bytes());
        let seal = Digest::from_content(&[*digest, *digest].concat());
        artifacts.execute((id, digest, KIND, AT))?;
        blobs.execute((id, digest, document.size))?;
        payloads.execute((id, FRAME, &document.compressed))?;
        captures.execute((id, document.size, AT, &seal.as_bytes()[..16]))?;
        lists.execute((id, list(document)))?;
        keys.extend(document.mentions.iter().map(|(_, _, digest)| (digest.key().cast_unsigned() >> 24, id)));
        for (name, value) in &document.attributes {
            let value: i64 = values.query_row((name, value), |row| row.get(0))?;
            attributes.execute((value, id))?;
        }
        let entry = format!(
            r#"{{"action":"add","at":"2026-01-01T00:00:00.000Z","capture":"{0}","core":"{0}","kind":"model_io","size":{1}}}"#,
            document.digest, document.size
        );
        journal.chain = Digest::from_content(&[journal.chain.as_bytes(), entry.as_bytes()].concat());
        entries.execute((id, AT, KIND_NAME, digest, document.size, journal.chain.as_bytes()))?;
    }
    keys.sort_unstable();
    segment(transaction, &keys)
}

/// The list of a document's mentions with its digests in it: those of the prompts, then those of the responses.
fn list(document: &Document) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.mentions.len() * 32 + 16);
    varint(&mut out, document.mentions.len() as u64);
    let of_role = |role| document.mentions.iter().filter(move |mention| mention.0 == role);
    for (_, _, digest) in of_role(PROMPT).chain(of_role(RESPONSE)) {
        out.extend_from_slice(digest.as_bytes());
    }
    let exchanges = document.mentions.len() as u64 / 2;
    // Places and positions proceed by one, but for the first position of the responses.
    let (prompts, first, others) =
        ([2 * exchanges, 2, 2], [2, 2, 2 * (exchanges + 1)], [2 * (exchanges - 1), 2, 2]);
    let runs =
        [PROMPT as u64, 1].into_iter().chain(prompts).chain([RESPONSE as u64, 2]).chain(first).chain(others);
    runs.for_each(|number| varint(&mut out, number));
    out
}

/// A segment of the mention index with sorted `keys`.
fn segment(transaction: &Transaction<'_>, keys: &[(u64, i64)]) -> rusqlite::Result<()> {
    let bits = (keys.len() / BUCKET).max(1).ilog2();
    transaction.execute("INSERT INTO mention_segment (bits, entries) VALUES (?1, ?2)", (bits, keys.len()))?;
    let segment = transaction.last_insert_rowid();
    let mut buckets = transaction.prepare_cached("INSERT INTO mention_bucket (id, bytes) VALUES (?1, ?2)")?;
    let bucket = |key: u64| key >> (40 - bits);
    for entries in keys.chunk_by(|one, other| bucket(one.0) == bucket(other.0)) {
        let (mut bytes, mut last) = (Vec::with_capacity(entries.len() * 8), 0);
        for (key, capture) in entries {
            varint(&mut bytes, key - last);
            varint(&mut bytes, capture.cast_unsigned());
            last = *key;
        }
        buckets.execute(((segment << 24) | bucket(entries[0].0).cast_signed(), bytes))?;
    }
    Ok(())
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}
