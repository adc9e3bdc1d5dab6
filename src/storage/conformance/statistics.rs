//! Statistics, capabilities and maintenance.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::kinds::{TestDocument, note, sheet};
use super::{TestVault, second, start};
use crate::artifact::{CREATED_AT, FINISHED_AT};
use crate::digest::CoreHash;
use crate::storage::interface::{
    Annotation, BackupOptions, BlobCounts, Capability, Day, Extremes, KindTotals, Statistics, Storage,
};
use crate::storage::{BackupError, ErrorKind, ReclaimResult, Result, StorageError, TimeBasis};

const ALL: [TimeBasis; 4] =
    [TimeBasis::FirstSeen, TimeBasis::LastSeen, TimeBasis::Created, TimeBasis::Finished];

fn statistics(vault: &TestVault, by: TimeBasis) -> Statistics {
    vault.snapshot().statistics(by).unwrap()
}

pub(super) fn an_empty_vault_has_no_statistics(vault: &TestVault) {
    for by in ALL {
        let expected = Statistics {
            kinds: Vec::new(),
            blobs: BlobCounts::default(),
            manual_links: 0,
            tags: 0,
            pins: 0,
            notes: 0,
            labels: 0,
            journal_entries: 0,
            extremes: Extremes::default(),
            by,
            undated: 0,
            days: Vec::new(),
        };
        assert_eq!(statistics(vault, by), expected);
    }
}

pub(super) fn everything_is_counted_once(vault: &TestVault) {
    let (a, b) = (TestDocument::new("a"), TestDocument::new("b").remark("longer"));
    let [first, second_core] = [&a, &b].map(|document| vault.add_note(document));
    let again = TestDocument::new("a").remark("again");
    vault.add_note(&again);
    let both = TestDocument::new("both");
    vault.add(both.admit(note()));
    vault.add(both.admit(sheet()));
    for change in [
        Annotation::SetTag { core: first, name: "x" },
        Annotation::SetTag { core: first, name: "y" },
        Annotation::SetNote { core: first, text: Some("text") },
        Annotation::Pin { core: second_core, note: None },
        Annotation::AddLink { source: first, relation: "follows", target: second_core, note: None },
    ] {
        assert!(vault.annotate(&change).unwrap());
    }
    let labels = BTreeMap::from(["k", "l"].map(|key| (key.to_owned(), "v".to_owned())));
    let set = Annotation::SetLabels { cores: &[first, second_core], labels: &labels };
    assert!(vault.annotate(&set).unwrap());
    let size = |document: &TestDocument| document.bytes().len() as u64;
    let found = statistics(vault, TimeBasis::FirstSeen);
    let kind = |kind: crate::artifact::Kind, artifacts, captures, bytes| KindTotals {
        kind: kind.name().to_owned(),
        artifacts,
        captures,
        bytes,
    };
    let of_notes = size(&a) + size(&b) + size(&again) + size(&both);
    let mut kinds = vec![kind(note(), 3, 4, of_notes), kind(sheet(), 1, 1, size(&both))];
    kinds.sort_by(|one, other| one.kind.cmp(&other.kind));
    assert_eq!(found.kinds, kinds);
    assert_eq!((found.artifacts(), found.captures(), found.bytes()), (4, 5, of_notes + size(&both)));
    assert_eq!(found.blobs, BlobCounts { blobs: 4, bytes: of_notes, shared: 1 });
    let annotations = (found.tags, found.notes, found.pins, found.labels, found.manual_links);
    assert_eq!(annotations, (2, 1, 1, 4, 1));
    assert_eq!(found.journal_entries, 11);
    let largest: Vec<_> =
        found.extremes.largest.iter().map(|one| (one.artifact.core, one.captures)).collect();
    assert_eq!(largest.first(), Some(&(first, 2)));
    let sizes: Vec<u64> = found.extremes.largest.iter().map(|one| one.bytes).collect();
    assert!(sizes.is_sorted_by(|one, next| one >= next), "{sizes:?}");
}

pub(super) fn the_time_determines_oldest_newest_and_days(vault: &TestVault) {
    let day = 24 * 60 * 60;
    let dated = TestDocument::new("dated")
        .attribute(CREATED_AT, "2025-12-31T23:59:59.999Z")
        .attribute(FINISHED_AT, "2026-01-01T00:00:00.000Z");
    let old = vault.add_note(&dated);
    vault.add_at(TestDocument::new("new").admit(note()), second(day));
    let new = super::kinds::core(note(), "new");
    // A further capture, and a sighting of the first.
    vault.add_at(dated.clone().remark("more").admit(note()), second(2 * day));
    let bytes = |document: &TestDocument| document.bytes().len() as u64;
    let (first, more) = (bytes(&dated), bytes(&dated.clone().remark("more")));
    let other = bytes(&TestDocument::new("new"));
    let ends = |by| -> Vec<(CoreHash, DateTime<Utc>)> {
        let Extremes { oldest, newest, .. } = statistics(vault, by).extremes;
        [oldest, newest].into_iter().flatten().map(|end| (end.artifact.core, end.at)).collect()
    };
    assert_eq!(ends(TimeBasis::FirstSeen), [(old, start()), (new, second(day))]);
    assert_eq!(ends(TimeBasis::LastSeen), [(new, second(day)), (old, second(2 * day))]);
    let created = "2025-12-31T23:59:59.999Z".parse().unwrap();
    assert_eq!(ends(TimeBasis::Created), [(old, created), (old, created)]);
    let undated = ALL.map(|by| statistics(vault, by).undated);
    assert_eq!(undated, [0, 0, 1, 1]);
    let finished = "2026-01-01T00:00:00.000Z".parse().unwrap();
    assert_eq!(ends(TimeBasis::Finished), [(old, finished), (old, finished)]);
    let on = |at: DateTime<Utc>, artifacts, captures, bytes| Day {
        date: at.date_naive(),
        artifacts,
        captures,
        bytes,
    };
    let days = |by| statistics(vault, by).days;
    assert_eq!(
        days(TimeBasis::FirstSeen),
        [on(start(), 1, 1, first), on(second(day), 1, 1, other), on(second(2 * day), 0, 1, more)]
    );
    assert_eq!(
        days(TimeBasis::LastSeen),
        [on(start(), 0, 1, first), on(second(day), 1, 1, other), on(second(2 * day), 1, 1, more)]
    );
    assert_eq!(days(TimeBasis::Created), [on(created, 1, 2, first + more)]);
    assert_eq!(days(TimeBasis::Finished), [on(finished, 1, 2, first + more)]);
}

pub(super) fn a_manifest_is_counted_as_a_blob(vault: &TestVault) {
    let index = TestDocument::new("folder");
    let folder = index.admit_folder(None, Some("shared"));
    let manifest = folder.manifest().unwrap().bytes().len() as u64;
    let size = folder.size();
    let core = vault.add(folder);
    let found = statistics(vault, TimeBasis::FirstSeen);
    assert_eq!(found.bytes(), size, "that of its files");
    assert_eq!(found.blobs, BlobCounts { blobs: 3, bytes: size + manifest, shared: 0 });
    vault.remove(core);
    assert_eq!(statistics(vault, TimeBasis::FirstSeen).blobs, BlobCounts::default());
}

pub(super) fn removed_artifacts_are_not_counted(vault: &TestVault) {
    let kept = vault.add_note(&TestDocument::new("kept"));
    let before = statistics(vault, TimeBasis::FirstSeen);
    let removed = vault.add_note(&TestDocument::new("removed"));
    vault.annotate(&Annotation::SetTag { core: removed, name: "x" }).unwrap();
    vault
        .annotate(&Annotation::AddLink { source: kept, relation: "r", target: removed, note: None })
        .unwrap();
    vault.remove(removed);
    let after = statistics(vault, TimeBasis::FirstSeen);
    assert!(after.journal_entries > before.journal_entries);
    assert_eq!(Statistics { journal_entries: before.journal_entries, ..after }, before);
}

/// The seconds of a day.
const DAY: i64 = 86_400;

/// Uses a capability, as far as that returns something without changing the vault.
fn attempt(storage: &dyn Storage, capability: Capability, directory: &std::path::Path) -> Result<()> {
    match capability {
        Capability::Sql => storage.sql().map(drop),
        Capability::FullText => {
            storage.full_text()?;
            storage.snapshot()?.full_text()?.search_index().map(drop)
        }
        Capability::FileBackup => {
            let backup = storage.backup(&directory.join("copy"), &BackupOptions::default(), &mut |_| {});
            backup.map(drop).map_err(|error| match error {
                BackupError::Store(error) => error,
                other => StorageError::invalid(other.to_string()),
            })
        }
        Capability::Check => storage.inspect().map(drop),
        Capability::Repair => storage.repairs().map(drop),
    }
}

pub(super) fn what_an_engine_cannot_do_is_unsupported(vault: &TestVault) {
    vault.add_note(&TestDocument::new("a"));
    let directory = tempfile::tempdir().unwrap();
    for capability in Capability::ALL {
        let expected = vault.storage.expect(capability).map_err(|error| error.to_string());
        assert_eq!(expected.is_ok(), vault.storage.has(capability), "{capability}");
        let outcome = attempt(&*vault.storage, capability, directory.path());
        if let Err(error) = &outcome {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{capability}: {error}");
        }
        assert_eq!(outcome.map_err(|error| error.to_string()), expected, "{capability}");
    }
}

pub(super) fn nothing_is_left_to_reclaim_after_reclaiming(vault: &TestVault) {
    let maintenance = &vault.storage;
    let left = vault.add_note(&TestDocument::new("left"));
    let removed = vault.add_note(&TestDocument::new("removed"));
    vault.remove(removed);
    // Object storage keeps what is removed for a day.
    maintenance.reclaim(second(2 * DAY)).unwrap();
    let reclaimable = maintenance.reclaimable().unwrap();
    assert_eq!((reclaimable.blobs, reclaimable.dictionaries), (0, 0));
    assert!(!reclaimable.has_removals);
    assert_eq!(maintenance.reclaim(second(2 * DAY + 1)).unwrap(), ReclaimResult::default());
    assert!(maintenance.erase().remnants.iter().all(|remnant| !remnant.is_reclaimable()));
    assert!(vault.record(left).is_some());
}
