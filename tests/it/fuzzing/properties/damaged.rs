//! Vaults whose files are damaged: whatever is in them, every operation ends, and no wrong bytes are given.
//!
//! The input is a list of changes, six bytes each, of a vault that is the same every time. Files whole would be too large
//! to look for anything in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::intake::ExamineOptions;
use runvault::storage::{Filter, Order, Page};
use runvault::vault::annotate::{PinRequest, SetNoteRequest, SetTagRequest};
use runvault::vault::api::TimeBasis;
use runvault::vault::audit::AuditRequest;
use runvault::vault::details::CapturesRequest;
use runvault::vault::diff::{ComparedArtifact, DiffExtent, DiffRequest};
use runvault::vault::forks::ForksRequest;
use runvault::vault::fsck::{self, Finding};
use runvault::vault::journal::{CheckJournalRequest, JournalRequest};
use runvault::vault::links::LinksRequest;
use runvault::vault::maintenance::ReclaimRequest;
use runvault::vault::remove::RemoveRequest;
use runvault::vault::replay::ResponsesRequest;
use runvault::vault::resolve::ResolveRequest;
use runvault::vault::search::{BuildSearchIndexRequest, SearchRequest};
use runvault::vault::show::ShowRequest;
use runvault::vault::stats::StatsRequest;
use runvault::vault::unresolved::UnresolvedRequest;
use runvault::vault::verify::VerifyRequest;
use rusqlite::{Connection, OpenFlags};

/// More changes than these say nothing new.
const MOST_CHANGES: usize = 64;

/// What numbers of four bytes become.
const NUMBERS: &[u32] = &[0, 1, 2, 3, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x0001_0000];

/// The document that is added to damaged vaults.
const NEW: &[u8] = br#"{"effects":[],"io_refs":[]}"#;

const PAGE: usize = 512;

struct Original {
    bytes: Vec<u8>,
    /// The bytes of every capture.
    documents: BTreeSet<Vec<u8>>,
}

/// A vault with artifacts, a search index, a tag, a pin and a tombstone, in pages of 512 bytes.
static ORIGINAL: LazyLock<Original> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("v.vault");
    let files: [&[u8]; 5] = [
        include_bytes!("../../../../examples/session.json"),
        include_bytes!("../../../../examples/session-rerecorded.json"),
        include_bytes!("../../../../examples/run.rpk"),
        include_bytes!("../../../../examples/trace.ndjson"),
        include_bytes!("../../../../examples/contract.yaml"),
    ];
    let removed: &[u8] = include_bytes!("../../../../examples/session-small-model.json");
    let documents = files.iter().chain([&removed, &NEW]).map(|bytes| bytes.to_vec()).collect();
    {
        let vault = Vault::create(&path).unwrap();
        let core = |bytes: &[u8]| add(&vault, bytes).unwrap();
        let cores: Vec<_> = files.iter().map(|bytes| core(bytes)).collect();
        vault.run(&SetTagRequest { core_hash: cores[0], name: "golden".to_owned() }).unwrap();
        vault.run(&PinRequest { core_hash: cores[2], note: Some("keep".to_owned()) }).unwrap();
        vault.run(&BuildSearchIndexRequest {}).unwrap();
        vault.run(&removal(core(removed))).unwrap();
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    Connection::open_with_flags(&path, flags)
        .unwrap()
        .execute_batch(&format!(
            "PRAGMA journal_mode = DELETE; PRAGMA page_size = {PAGE}; VACUUM; PRAGMA journal_mode = WAL"
        ))
        .unwrap();
    Original { bytes: std::fs::read(&path).unwrap(), documents }
});

fn removal(core: CoreHash) -> RemoveRequest {
    let artifacts = vec![core];
    RemoveRequest { artifacts, ignore_links: true, with_containers: true, ..RemoveRequest::default() }
}

fn add(vault: &Vault, document: &[u8]) -> Option<CoreHash> {
    let put = vault.add_document(document.to_vec(), &ExamineOptions::default()).ok()?;
    Some(put.core)
}

struct Silent;

impl fsck::FsckMonitor for Silent {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, _: u64) {}
}

/// Makes one change: where, what, and two bytes that say more.
fn change(bytes: &mut Vec<u8>, [high, middle, low, sort, one, other]: [u8; 6]) {
    let at = (usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)) % bytes.len().max(1);
    let page = |number: usize| number % (bytes.len() / PAGE).max(1) * PAGE;
    let (from, to) = (page(usize::from(one) << 8 | usize::from(other)), page(at / PAGE));
    let put = |bytes: &mut Vec<u8>, new: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + new.len()) {
            place.copy_from_slice(new);
        }
    };
    match sort % 8 {
        0 => put(bytes, &[one]),
        1 => put(bytes, &[one, other]),
        2 => put(bytes, &NUMBERS[usize::from(one) % NUMBERS.len()].to_be_bytes()),
        3 if bytes.len() >= PAGE => bytes.copy_within(from..from + PAGE, to),
        4 if bytes.len() >= PAGE => bytes[to..to + PAGE].fill(one),
        5 if one == 0 => bytes.truncate(at),
        6 => put(bytes, &[0xff; 9]),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (one % 8);
            }
        }
    }
}

/// Whatever is changed in a vault's file, every operation ends, and what is read was once stored.
pub(super) fn vault(data: &[u8]) {
    let original = &*ORIGINAL;
    let mut bytes = original.bytes.clone();
    for changed in data.as_chunks().0.iter().take(MOST_CHANGES) {
        change(&mut bytes, *changed);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("v.vault");
    // Each of these begins with the damaged vault.
    let operations: [fn(&Vault); 4] = [
        |vault| read(vault),
        |vault| {
            let Ok(report) = vault.fsck(&fsck::FsckOptions::default(), &mut Silent) else { return };
            let keys = ExamineOptions::default().admit.signing_keys;
            let _ = vault.repair(&report, &[] as &[PathBuf], &keys, &mut Silent);
            let _ = vault.fsck(&fsck::FsckOptions::default(), &mut Silent);
            read(vault);
        },
        |vault| drop(vault.reindex(&ExamineOptions::default().admit.signing_keys, &mut Silent)),
        |vault| {
            let _ = add(vault, NEW);
            drop(vault.run(&BuildSearchIndexRequest {}));
            let found = everything_in(vault);
            for core_hash in found.into_iter().take(3) {
                drop(vault.run(&SetTagRequest { core_hash, name: "x".to_owned() }));
                drop(vault.run(&SetNoteRequest { core_hash, text: "x".to_owned() }));
                drop(vault.run(&removal(core_hash)));
            }
            drop(vault.run(&ReclaimRequest {}));
        },
    ];
    for operation in operations {
        for beside in ["v.vault-wal", "v.vault-shm"] {
            let _ = std::fs::remove_file(directory.path().join(beside));
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(vault) = Vault::open(&path) {
            operation(&vault);
        }
    }
}

/// Returns the artifacts that can be found.
fn everything_in(vault: &Vault) -> Vec<CoreHash> {
    let found = vault
        .snapshot()
        .and_then(|snapshot| snapshot.find(&Filter::default(), Order::default(), &Page::all()));
    found.map(|found| found.items.iter().map(|hit| hit.artifact.core).collect()).unwrap_or_default()
}

/// Everything that only reads.
fn read(vault: &Vault) {
    let _ = vault.run(&StatsRequest { by: TimeBasis::Created, label: None });
    let _ = vault.catch_up_search(&mut |_| {});
    let _ = vault.run(&SearchRequest { words: "label*".to_owned(), ..SearchRequest::default() });
    for catalog in [false, true] {
        let _ = vault.run(&CheckJournalRequest { catalog, ..CheckJournalRequest::default() });
    }
    let _ = vault.run(&VerifyRequest::default());
    for text in ["latest~1", "@golden", "run-123", "4df877dec7f4"] {
        let _ = vault.run(&ResolveRequest::new(text));
    }
    let _ = vault.run(&UnresolvedRequest { all: true, ..UnresolvedRequest::default() });
    let _ = vault.run(&ForksRequest::default());
    let _ = vault.run(&JournalRequest::default());
    for artifact in everything_in(vault).into_iter().take(20) {
        let links = LinksRequest { depth: 3, limit: Some(1_000), ..LinksRequest::new(artifact) };
        let _ = vault.run(&links);
        let _ = vault.run(&ShowRequest { artifact });
        let _ = vault.run(&CapturesRequest::new(artifact));
        let _ = vault.run(&ResponsesRequest::new(artifact));
        let _ =
            vault.run(&AuditRequest { contract: artifact, run: Some(artifact), limit: None, after: None });
        let other = ComparedArtifact { core_hash: artifact, capture_hash: None };
        let _ = vault.run(&DiffRequest {
            ignore: Vec::new(),
            one: other,
            other,
            all: true,
            extent: DiffExtent::All,
            limit: None,
            after: None,
        });
        let Ok(located) = vault.locate(&artifact.0.into()) else { continue };
        let _ = vault.read_core(&located);
        if let Ok(bytes) = vault.read(&located) {
            assert!(ORIGINAL.documents.contains(&bytes), "it gives bytes that were never stored");
        }
    }
}

/// Lists of changes.
pub(super) fn seeds(_: &Path) -> Vec<Vec<u8>> {
    let mut seeds = vec![Vec::new()];
    for sort in 0..8_u8 {
        for at in [0_u32, 16, 100, 5_000, 20_000, 40_000] {
            let [_, high, middle, low] = at.to_be_bytes();
            seeds.push(vec![high, middle, low, sort, 1, 7, high, low, middle, 7, sort, 0]);
        }
    }
    seeds
}

/// Without a change, nothing is wrong, and everything is as it was.
#[test]
fn the_original_is_clean() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("v.vault");
    std::fs::write(&path, &ORIGINAL.bytes).unwrap();
    let vault = Vault::open(&path).unwrap();
    assert!(vault.fsck(&fsck::FsckOptions::default(), &mut Silent).unwrap().is_clean());
}
