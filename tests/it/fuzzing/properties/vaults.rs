//! What vaults are made from and what is read back from them beside documents: bundles and journals.

use std::cell::RefCell;
use std::path::Path;

use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::storage::ArtifactRecord;
use runvault::vault::add::{AddMonitor, ExaminedDocument};
use runvault::vault::annotate::SetTagRequest;
use runvault::vault::bundle::{self, ArtifactSelection, BundleImportResult, BundleRequest};
use runvault::vault::journal::{CheckJournalRequest, JournalRequest};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// Bundles larger than this slow the generators down.
const MOST_BYTES: u64 = 1 << 20;

struct Place {
    vault: Vault,
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let vault = Vault::open_or_create(&directory.path().join("v.vault")).unwrap();
        Self { vault, directory }
    }

    fn with(inputs: Vec<Input>) -> Self {
        let place = Self::new();
        place.vault.add(Inputs::new(inputs), &ExamineOptions::default(), &mut Quiet).unwrap();
        place
    }

    fn cores(&self) -> Vec<CoreHash> {
        self.stored().iter().map(|artifact| artifact.core).collect()
    }

    /// Returns all artifacts by core hash.
    fn stored(&self) -> Vec<ArtifactRecord> {
        self.vault.snapshot().unwrap().all_artifacts(None).unwrap()
    }

    fn everything(&self) -> Vec<u8> {
        let mut bundle = Vec::new();
        self.vault.export(&BundleRequest::default(), &mut bundle).unwrap();
        bundle
    }
}

struct Quiet;

impl AddMonitor for Quiet {
    fn examined(&mut self, _: &ExaminedDocument) {}

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

/// Whatever is taken for a bundle can be imported; a dry run tells what becomes of it; and what came in goes out as a
/// bundle that comes in as well.
pub(super) fn bundles(data: &[u8]) {
    let Ok(bundle) = bundle::read(data, "x", MOST_BYTES) else { return };
    let options = ExamineOptions::default();
    let told = bundle::dry_run(None, &bundle, &options, &mut Quiet).unwrap();
    let place = Place::new();
    let done = place.vault.import(&bundle, &options, &mut Quiet).unwrap();
    let counts = |imported: &BundleImportResult| {
        (imported.summary.added + imported.summary.new_captures, imported.summary.rejected)
    };
    assert_eq!(counts(&told), counts(&done));
    if place.stored().is_empty() {
        return;
    }
    let again = place.everything();
    let again = bundle::read(again.as_slice(), "x", MOST_BYTES).unwrap();
    let other = Place::new();
    let twice = other.vault.import(&again, &options, &mut Quiet).unwrap();
    assert_eq!(twice.summary.rejected, 0);
    // Sessions in packs come along without a word.
    assert_eq!(other.cores(), place.cores());
}

thread_local! {
    static JOURNAL: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// Whatever stands in a journal, it is read and checked without harm, and is not what was written.
pub(super) fn journal(data: &[u8]) {
    JOURNAL.with_borrow_mut(|place| {
        let place = place.get_or_insert_with(|| {
            let place = Place::with(vec![Input::Document {
                name: String::new(),
                bytes: br#"{"effects":[],"io_refs":[]}"#.to_vec(),
            }]);
            let request =
                SetTagRequest { core_hash: place.stored().remove(0).core, name: "first".to_owned() };
            assert!(place.vault.run(&request).unwrap().changed);
            place
        });
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = Connection::open_with_flags(place.directory.path().join("v.vault"), flags).unwrap();
        let original: String =
            connection.query_row("SELECT entry FROM journal WHERE seq = 2", [], |row| row.get(0)).unwrap();
        let replace = |text: &str| connection.execute("UPDATE journal SET entry = ?1 WHERE seq = 2", [text]);
        let text = String::from_utf8_lossy(data);
        replace(&text).unwrap();
        let mut entries = 0;
        // An entry that is no JSON is an error of who asks for its action, not of who checks.
        if let Ok(answer) = place.vault.run(&JournalRequest::default()) {
            entries = answer.entries.len();
        }
        let check = place.vault.run(&CheckJournalRequest::default());
        assert!(entries <= 2);
        assert_eq!(check.unwrap().defect.is_none(), text == original);
        replace(&original).unwrap();
    });
}

/// Every example as a bundle of its own, as it is written and without its compression; and all of them in one.
pub(super) fn bundle_seeds(root: &Path) -> Vec<Vec<u8>> {
    let all = Place::with(vec![Input::Path(root.join("examples"))]);
    let mut seeds = vec![all.everything()];
    for artifact in all.stored() {
        let mut bundle = Vec::new();
        let selection = ArtifactSelection { artifacts: vec![artifact.core], ..ArtifactSelection::default() };
        all.vault.export(&BundleRequest { selection, ..BundleRequest::default() }, &mut bundle).unwrap();
        seeds.push(zstd::decode_all(bundle.as_slice()).unwrap());
        seeds.push(bundle);
    }
    seeds
}

/// Entries of every sort.
pub(super) fn journal_seeds(_: &Path) -> Vec<Vec<u8>> {
    let hash = format!("sha256:{}", "ab".repeat(32));
    let entry = |rest: &str| {
        let rest = rest.replace('#', &format!("\"{hash}\""));
        format!("{{\"action\":\"{}}}", rest.replacen(',', ",\"at\":\"2026-01-01T00:00:00.000Z\",", 1))
            .into_bytes()
    };
    let entries = [
        r#"add","capture":#,"core":#,"kind":"trace","size":7"#,
        r#"link","note":"n","relation":"governs","source":#,"target":#"#,
        r#"unlink","relation":"governs","source":#,"target":#"#,
        r#"tag","core":#,"name":"first""#,
        r#"untag","core":#,"name":"first""#,
        r#"pin","core":#,"note":"n""#,
        r#"unpin","core":#"#,
        r#"remove","captures":[#],"core":#,"kind":"rpk","left":0,"reason":"r","size":7"#,
        r#"gc","blobs":1,"bytes_after":2,"bytes_before":3,"dictionaries":4,"recompressed":5"#,
        r#"reindex","indexed":7,"not_admitted":0"#,
        r#"repair","did":"restored","subject":"blob 1""#,
    ];
    entries.iter().map(|rest| entry(rest)).collect()
}
