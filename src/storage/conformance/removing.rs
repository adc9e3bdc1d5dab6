//! Removing artifacts, and tombstones.

use super::kinds::{TestDocument, core, note, sheet};
use super::{TestVault, digest, second, unknown};
use crate::digest::{BlobHash, CoreHash};
use crate::storage::interface::{Annotation, Annotations, Filter, Names, Order};
use crate::storage::{ErrorKind, PutOutcome, RemovedPolicy};

pub(super) fn everything_of_an_artifact_is_removed(vault: &TestVault) {
    let document = TestDocument::new("a")
        .mention("reference", 0, digest("p"))
        .attribute("model", "m")
        .named("x")
        .names("y");
    let a = vault.add_note(&document);
    vault.add_note(
        &document.clone().remark("another capture").signed(crate::artifact::SignatureState::Wrong, "k"),
    );
    let b = vault.add_note(&TestDocument::new("b").mention("reference", 0, a.0));
    for change in [
        Annotation::SetTag { core: a, name: "x" },
        Annotation::SetNote { core: a, text: Some("text") },
        Annotation::AddLink { source: b, relation: "governs", target: a, note: None },
    ] {
        vault.annotate(&change).unwrap();
    }
    let captures = vault.snapshot().captures(&[a]).unwrap().remove(0);
    vault.remove_at(a, Some("why"), second(1)).unwrap();
    let snapshot = vault.snapshot();
    assert_eq!(vault.record(a), None);
    assert!(snapshot.captures(&[a]).unwrap()[0].is_empty());
    assert_eq!(snapshot.annotations(&[a]).unwrap()[0], Annotations::default());
    assert_eq!(snapshot.names(&[a]).unwrap()[0], Names::default());
    assert!(snapshot.manual_links(&[b]).unwrap()[0].is_empty());
    assert!(snapshot.mentioning(&[digest("p")], None).unwrap()[0].is_empty());
    assert!(snapshot.attribute_names().unwrap().is_empty());
    assert_eq!(vault.found(&Filter::default(), Order::Core), [b]);
    let unresolved = snapshot.unresolved(None, usize::MAX).unwrap();
    assert_eq!((unresolved.len(), unresolved[0].artifact), (1, b));
    for capture in captures {
        assert_eq!(snapshot.members(a, capture.capture).unwrap_err().kind(), ErrorKind::Damaged);
        assert!(snapshot.read(a, capture.capture, BlobHash(capture.capture.0)).is_err());
    }
}

pub(super) fn pinned_artifacts_are_not_removed(vault: &TestVault) {
    let core = vault.add_note(&TestDocument::new("a"));
    vault.annotate(&Annotation::SetTag { core, name: "x" }).unwrap();
    vault.annotate(&Annotation::Pin { core, note: None }).unwrap();
    let head = vault.snapshot().journal_head().unwrap();
    assert_eq!(vault.remove_at(core, None, second(1)).unwrap_err().kind(), ErrorKind::Pinned);
    assert_eq!(vault.snapshot().journal_head().unwrap(), head);
    assert_eq!(vault.snapshot().annotations(&[core]).unwrap()[0].tags.len(), 1);
    vault.annotate(&Annotation::Unpin { core }).unwrap();
    vault.remove(core);
    assert_eq!(vault.record(core), None);
}

pub(super) fn removals_are_recorded_in_a_fixed_order(vault: &TestVault) {
    let cores: Vec<CoreHash> =
        (0..4).map(|number| vault.add_note(&TestDocument::new(&format!("n{number}")))).collect();
    let core = cores[0];
    for name in ["z", "a"] {
        vault.annotate(&Annotation::SetTag { core, name }).unwrap();
    }
    vault.annotate(&Annotation::SetNote { core, text: Some("text") }).unwrap();
    for other in &cores[1..] {
        for relation in ["governs", "about"] {
            vault
                .annotate(&Annotation::AddLink { source: *other, relation, target: core, note: None })
                .unwrap();
            vault
                .annotate(&Annotation::AddLink { source: core, relation, target: *other, note: None })
                .unwrap();
        }
    }
    let links = vault.snapshot().manual_links(&[core]).unwrap().remove(0);
    let before = vault.snapshot().journal_head().unwrap().seq;
    vault.remove(core);
    let entries =
        vault.snapshot().journal(&super::super::JournalQuery::default(), before + 1, usize::MAX).unwrap();
    let entry = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
    let entries: Vec<serde_json::Value> = entries.iter().map(|record| entry(&record.entry)).collect();
    assert_eq!(entries.len(), 12 + 2 + 1 + 1);
    for (entry, link) in entries.iter().zip(links) {
        assert_eq!(entry["action"], "unlink");
        assert_eq!(
            (&entry["relation"], &entry["source"]),
            (&link.relation.into(), &link.source.to_string().into())
        );
        assert_eq!(entry["target"], link.target.to_string());
    }
    assert_eq!((&entries[12]["name"], &entries[13]["name"]), (&"a".into(), &"z".into()));
    assert_eq!((&entries[14]["action"], &entries[15]["action"]), (&"note".into(), &"remove".into()));
}

pub(super) fn tombstones_are_listed_in_the_order_of_removal(vault: &TestVault) {
    let names = ["d", "a", "c", "b"];
    for name in names {
        vault.add_note(&TestDocument::new(name));
    }
    vault.add(TestDocument::new("s").admit(sheet()));
    for name in names {
        vault.remove(core(note(), name));
    }
    vault.remove(core(sheet(), "s"));
    let listed = |kind: Option<&str>| -> Vec<CoreHash> {
        let tombstones = vault.snapshot().tombstones(kind, 0, usize::MAX).unwrap();
        assert!(tombstones.iter().all(|tombstone| tombstone.digest == tombstone.core.0));
        tombstones.into_iter().map(|tombstone| tombstone.core).collect()
    };
    let notes = names.map(|name| core(note(), name));
    assert_eq!(listed(Some("note")), notes);
    assert_eq!(listed(Some("sheet")), [core(sheet(), "s")]);
    assert_eq!(listed(None), [&notes[..], &[core(sheet(), "s")]].concat());
    assert!(listed(Some("folder")).is_empty());
    let snapshot = vault.snapshot();
    let first = snapshot.tombstones(None, 0, 3).unwrap();
    let rest = snapshot.tombstones(None, first[2].entry, usize::MAX).unwrap();
    assert_eq!([first, rest].concat(), snapshot.tombstones(None, 0, usize::MAX).unwrap());
    assert_eq!(snapshot.tombstones(Some("note"), 0, 2).unwrap().len(), 2);
}

pub(super) fn tombstones_are_found_for_what_is_added_again(vault: &TestVault) {
    let (part, kept) = (TestDocument::new("part"), TestDocument::new("kept"));
    let folder = || TestDocument::new("folder").admit_folder(Some(&part), None);
    assert!(vault.snapshot().tombstones_of(&folder()).unwrap().is_empty());
    let folder_core = vault.add(folder());
    vault.add_note(&kept);
    let part_core = core(note(), "part");
    vault.remove(folder_core);
    vault.remove(part_core);
    let found = vault.snapshot().tombstones_of(&folder()).unwrap();
    let mut expected = vec![folder_core, part_core];
    expected.sort_unstable();
    assert_eq!(found.iter().map(|tombstone| tombstone.core).collect::<Vec<_>>(), expected);
    assert!(found.iter().all(|tombstone| tombstone.digest == tombstone.core.0));
    assert!(vault.snapshot().tombstones_of(&kept.admit(note())).unwrap().is_empty());
    // Other bytes of a removed artifact are found by its core hash.
    let other_form = part.clone().remark("another form").admit(note());
    assert_eq!(vault.snapshot().tombstones_of(&other_form).unwrap()[0].core, part_core);
    let readmitted = vault.put(vec![folder()], RemovedPolicy::Readmit, second(1)).unwrap();
    assert_eq!(readmitted[0].outcome, PutOutcome::Added);
    assert!(vault.snapshot().tombstones(None, 0, usize::MAX).unwrap().is_empty());
}

pub(super) fn bytes_that_others_have_remain(vault: &TestVault) {
    let part = TestDocument::new("part");
    let admitted = TestDocument::new("folder").admit_folder(Some(&part), Some("text"));
    let (folder, capture) = (admitted.core(), admitted.capture());
    vault.add(admitted);
    let other = vault.add(TestDocument::new("other").admit_folder(None, Some("text")));
    vault.remove(core(note(), "part"));
    vault.remove(other);
    let snapshot = vault.snapshot();
    for member in snapshot.members(folder, capture).unwrap() {
        assert_eq!(snapshot.read(folder, capture, member.blob).unwrap().len() as u64, member.size);
    }
}

pub(super) fn a_removed_artifact_cannot_be_removed_again(vault: &TestVault) {
    let core = vault.add_note(&TestDocument::new("a"));
    vault.remove(core);
    for core in [core, unknown()] {
        assert_eq!(vault.remove_at(core, None, second(1)).unwrap_err().kind(), ErrorKind::Gone);
    }
    assert_eq!(vault.actions(), ["add", "remove"]);
}
