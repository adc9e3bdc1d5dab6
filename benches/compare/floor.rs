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
    let stated = |text: &str| Digest::stated(text).expect("a digest");
    let mut mentions = Vec::with_capacity(2 * session.interactions.len());
    for (place, interaction) in session.interactions.iter().enumerate() {
        mentions.push((PROMPT, place, stated(&interaction.prompt_hash)));
        mentions.push((RESPONSE, place, stated(&interaction.response_hash)));
    }
    Document {
        digest: Digest::of(bytes),
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
const PROMPT: usize = 1;
const RESPONSE: usize = 2;
const ZSTD: usize = 1;
/// When all was added.
const AT: i64 = 1_767_225_600_000;

/// Everything that knows the tables is here: to be changed with `migrations/`.
fn insert(transaction: &Transaction<'_>, batch: &[Document], journal: &mut Journal) -> rusqlite::Result<()> {
    if journal.seq == 0 {
        transaction.execute("INSERT INTO kind (id, name) VALUES (?1, 'model_io')", [KIND])?;
        for (id, role) in [(PROMPT, "prompt"), (RESPONSE, "response")] {
            transaction.execute(
                "INSERT INTO role (id, kind, name, role_group, unit, dangles) VALUES (?1, ?2, ?3, ?3, 'interaction', 0)",
                (id, KIND, role),
            )?;
        }
    }
    let prepare = |sql| transaction.prepare_cached(sql);
    let mut artifacts = prepare("INSERT INTO artifact (id, core, kind, added_at) VALUES (?1, ?2, ?3, ?4)")?;
    let mut blobs = prepare("INSERT INTO blob (id, digest, size) VALUES (?1, ?2, ?3)")?;
    let mut payloads = prepare("INSERT INTO payload (blob, encoding, bytes) VALUES (?1, ?2, ?3)")?;
    let mut captures = prepare(
        "INSERT INTO capture (id, artifact, digest, size, added_at, warnings, seal)
         VALUES (?1, ?1, ?2, ?3, ?4, '[]', ?5)",
    )?;
    let mut members = prepare("INSERT INTO member (capture, name, blob) VALUES (?1, 'model_io.json', ?1)")?;
    let mut mentions =
        prepare("INSERT INTO mention (artifact, role, place, digest) VALUES (?1, ?2, ?3, ?4)")?;
    let mut attributes = prepare("INSERT INTO attribute (artifact, name, value) VALUES (?1, ?2, ?3)")?;
    let mut entries = prepare("INSERT INTO journal (seq, entry, chain) VALUES (?1, ?2, ?3)")?;
    let mut mention_keys =
        prepare("INSERT INTO mention_key (key, artifact, role, place) VALUES (?1, ?2, ?3, ?4)")?;
    let mut keys = Vec::with_capacity(batch.len() * 20);
    for document in batch {
        journal.seq += 1;
        let (id, digest) = (journal.seq, document.digest.as_bytes());
        let seal = Digest::of(&[*digest, *digest].concat());
        artifacts.execute((id, digest, KIND, AT))?;
        blobs.execute((id, digest, document.size))?;
        payloads.execute((id, ZSTD, &document.compressed))?;
        captures.execute((id, digest, document.size, AT, seal.as_bytes()))?;
        members.execute([id])?;
        for (role, place, digest) in &document.mentions {
            mentions.execute((id, role, place, digest.as_bytes()))?;
            keys.push((digest.key(), id, *role, *place));
        }
        for (name, value) in &document.attributes {
            attributes.execute((id, name, value))?;
        }
        let entry = format!(
            r#"{{"action":"add","at":"2026-01-01T00:00:00.000Z","capture":"{0}","core":"{0}","kind":"model_io","size":{1}}}"#,
            document.digest, document.size
        );
        journal.chain = Digest::of(&[journal.chain.as_bytes(), entry.as_bytes()].concat());
        entries.execute((id, entry, journal.chain.as_bytes()))?;
    }
    keys.sort_unstable();
    for key in keys {
        mention_keys.execute(key)?;
    }
    Ok(())
}
