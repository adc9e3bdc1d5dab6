//! Adoption of the journal of another vault. The source is a vault in memory.

use std::ffi::OsStr;
use std::fmt::Debug;

use super::kinds::{TestDocument, folder, note, sheet};
use super::storing::{HOSTILE, add_from};
use super::{TestVault, digest, memory, second};
use crate::artifact::SignatureState::{Unchecked, Verified, Wrong};
use crate::artifact::{AdmitOptions, Admitted, Directory, DirectoryEntry, EntryContent, Kind};
use crate::digest::CoreHash;
use crate::storage::check::IntegrityLevel;
use crate::storage::entry::Entry;
use crate::storage::interface::{
    Annotation, AppendedEntry, ArtifactRecord, CaptureTarget, Direction, Extremes, Filter, JournalRecord,
    Order, Page, Snapshot, Statistics,
};
use crate::storage::journal::JournalWriter;
use crate::storage::{
    Capability, ErrorKind, Head, JournalQuery, Prepared, PutOutcome, RecordedEntry, RemovedPolicy, Result,
    SourcePath, TimeBasis,
};

/// Returns a vault with a long history: every kind of entry, and everything that a vault can have.
fn source() -> TestVault {
    let vault = memory();
    let a = TestDocument::new("a")
        .mention("prompt", 0, digest("p"))
        .attribute("model", "m")
        .named("x")
        .names("y");
    let signed = TestDocument::new("a").signed(Unchecked, "k").remark("signed");
    let a_core = vault.add_note(&a);
    vault.add_note(&signed);
    vault.add_at(
        TestDocument::new("b").warned("w").mention("reference", 0, a_core.0).admit(sheet()),
        second(1),
    );
    let part = TestDocument::new("part").attribute("created_at", "2026-01-01T00:00:00.000Z");
    vault.add_at(TestDocument::new("f").admit_folder(Some(&part), Some("shared")), second(2));
    let removed = vault.add(TestDocument::new("gone").mention("prompt", 0, digest("p")).admit(note()));
    let again = vault.add(TestDocument::new("again").admit(note()));
    let b = super::kinds::core(sheet(), "b");
    let labels = [("k", "v"), ("l", "w")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    for (at, change) in (3..).zip([
        Annotation::SetTag { core: a_core, name: "moves" },
        Annotation::SetTag { core: removed, name: "moves" },
        Annotation::SetTag { core: b, name: "stays" },
        Annotation::SetNote { core: a_core, text: Some("first") },
        Annotation::SetNote { core: a_core, text: Some("second \0 \u{1} é") },
        Annotation::SetNote { core: b, text: Some("removed") },
        Annotation::SetNote { core: b, text: None },
        Annotation::Pin { core: a_core, note: Some("why") },
        Annotation::Pin { core: b, note: None },
        Annotation::Unpin { core: b },
        Annotation::SetLabels { cores: &[a_core, b, removed], labels: &labels },
        Annotation::RemoveLabels { cores: &[b], keys: &["k".to_owned()].into() },
        Annotation::AddLink { source: a_core, relation: "governs", target: b, note: None },
        Annotation::AddLink { source: a_core, relation: "governs", target: b, note: Some("noted") },
        Annotation::AddLink { source: removed, relation: "governs", target: b, note: None },
        Annotation::AddLink { source: b, relation: "undone", target: a_core, note: None },
        Annotation::RemoveLink { source: b, relation: "undone", target: a_core },
    ]) {
        vault.annotate_at(&change, second(at)).unwrap();
    }
    vault.add_at(a.admit(note()), second(30));
    vault.put(vec![signed.admit(note()), a.admit(note())], RemovedPolicy::Refuse, second(31)).unwrap();
    for (at, state) in [(32, Wrong), (33, Verified)] {
        vault.add_at(TestDocument::new("c").checked("key").admit_with_signature(state), second(at));
        vault.add_at(TestDocument::new("c").checked("key").admit_with_signature(state), second(at));
    }
    for (at, remark, path) in [(34, "from x", "x"), (35, "from y", HOSTILE), (36, "from x", "not recorded")] {
        add_from(&vault, a.clone().remark(remark).admit(note()), Some(path), at);
    }
    add_from(&vault, TestDocument::new("d").admit(note()), Some("d"), 37);
    vault.remove_at(removed, Some("why"), second(40)).unwrap();
    vault.remove_at(again, None, second(41)).unwrap();
    vault.put(vec![TestDocument::new("again").admit(note())], RemovedPolicy::Readmit, second(42)).unwrap();
    vault
}

fn kind(name: &str) -> Kind {
    [note(), sheet(), folder()].into_iter().find(|kind| kind.name() == name).unwrap()
}

/// Admits the files of a capture again, without what is embedded in it.
fn admitted(snapshot: &dyn Snapshot, target: CaptureTarget, name: &str) -> Admitted {
    let files = snapshot.read_members(target.artifact, target.capture).unwrap();
    let mut admitted = if kind(name).is_of_directories() {
        let entry = |file: &crate::storage::StoredMember| DirectoryEntry {
            name: file.name.clone(),
            content: EntryContent::File(file.bytes.clone()),
        };
        let entries = files.iter().map(entry).collect();
        kind(name).admit_directory(Directory { entries }, &AdmitOptions::default()).unwrap()
    } else {
        kind(name).admit(files[0].bytes.clone(), &AdmitOptions::default()).unwrap()
    };
    drop(admitted.take_embedded());
    admitted
}

/// Returns the entries of the source from a number on, each with the artifact that it adds if the source still has it.
fn entries(source: &TestVault, vault: &TestVault, from: u64) -> Vec<(RecordedEntry, Option<Prepared>)> {
    let snapshot = source.snapshot();
    let entries = snapshot.journal(&JournalQuery::default(), from, usize::MAX).unwrap();
    let content = |entry: &RecordedEntry| {
        let addition = entry.addition()?;
        let target = addition.target;
        snapshot.capture(target.artifact, target.capture).unwrap()?;
        let mut prepared = vault.prepared(admitted(&*snapshot, target, addition.kind));
        let path = addition.source_path.and_then(|path| SourcePath::new(OsStr::new(path)));
        prepared.set_source_paths(&|_| path.clone());
        Some(prepared)
    };
    let entry = |record| {
        let entry = RecordedEntry::parse(record).unwrap();
        let content = content(&entry);
        (entry, content)
    };
    entries.into_iter().map(entry).collect()
}

fn adopt(vault: &TestVault, entries: &[(RecordedEntry, Option<Prepared>)]) -> Result<Head> {
    let adopted = entries.iter().map(|(entry, content)| AppendedEntry { entry, content: content.as_ref() });
    vault.storage.adopt(&adopted.collect::<Vec<_>>())
}

fn equal<T: PartialEq + Debug>(what: &str, one: &[T], other: &[T]) {
    assert_eq!(one, other, "{what}");
}

/// Fails unless everything in both vaults is equal.
fn expect_equal(source: &TestVault, vault: &TestVault) {
    let (one, other) = (source.snapshot(), vault.snapshot());
    let journal = |snapshot: &dyn Snapshot| -> Vec<JournalRecord> {
        snapshot.journal(&JournalQuery::default(), 0, usize::MAX).unwrap()
    };
    equal("the journal", &journal(&*one), &journal(&*other));
    let check = vault.snapshot().check_journal(None).unwrap();
    assert_eq!((check.defect, check.head), (None, one.journal_head().unwrap()));
    if vault.storage.has(Capability::Check) {
        let inspection = vault.storage.inspect().unwrap();
        let [whole, parts] = [usize::MAX, 4].map(|most_rows| {
            let compared = inspection.compare_journal_in_parts(None, most_rows).unwrap();
            (compared.counts, compared.findings)
        });
        assert_eq!(whole.1, []);
        assert_eq!(whole, parts);
    }
    for order in [
        Order::Core,
        Order::Newest(TimeBasis::FirstSeen),
        Order::Newest(TimeBasis::Created),
        Order::default(),
    ] {
        equal("the order", &source.found(&Filter::default(), order), &vault.found(&Filter::default(), order));
    }
    let cores = source.found(&Filter::default(), Order::Core);
    let records = |snapshot: &dyn Snapshot| -> Vec<ArtifactRecord> {
        let records = snapshot.artifacts(&cores).unwrap().into_iter().flatten();
        records.map(|record| ArtifactRecord { addition: 0, ..record }).collect()
    };
    equal("artifacts", &records(&*one), &records(&*other));
    equal("captures", &one.captures(&cores).unwrap(), &other.captures(&cores).unwrap());
    equal("attributes", &one.attributes(&cores).unwrap(), &other.attributes(&cores).unwrap());
    equal("annotations", &one.annotations(&cores).unwrap(), &other.annotations(&cores).unwrap());
    equal("mentions", &one.mentions(&cores, None).unwrap(), &other.mentions(&cores, None).unwrap());
    equal("links", &one.manual_links(&cores).unwrap(), &other.manual_links(&cores).unwrap());
    equal("names", &one.names(&cores).unwrap(), &other.names(&cores).unwrap());
    for direction in [Direction::Out, Direction::In] {
        let references = |snapshot: &dyn Snapshot| snapshot.references(&cores, direction).unwrap();
        equal("references", &references(&*one), &references(&*other));
    }
    equal(
        "tombstones",
        &one.tombstones(None, 0, usize::MAX).unwrap(),
        &other.tombstones(None, 0, usize::MAX).unwrap(),
    );
    for capture in one.captures(&cores).unwrap().into_iter().flatten() {
        let read =
            |snapshot: &dyn Snapshot| snapshot.read_members(capture.artifact, capture.capture).unwrap();
        equal("bytes", &read(&*one), &read(&*other));
    }
    // Without the extremes, which have positions that are only comparable within one vault.
    let statistics = |snapshot: &dyn Snapshot| Statistics {
        extremes: Extremes::default(),
        ..snapshot.statistics(TimeBasis::LastSeen).unwrap()
    };
    assert_eq!(statistics(&*one), statistics(&*other));
    let found =
        |snapshot: &dyn Snapshot| snapshot.find(&Filter::default(), Order::Core, &Page::all()).unwrap();
    assert_eq!(found(&*one).items.len(), found(&*other).items.len());
}

pub(super) fn a_journal_is_adopted_with_everything_that_follows(vault: &TestVault) {
    let source = source();
    let head = source.snapshot().journal_head().unwrap();
    assert!(!vault.storage.is_incomplete().unwrap());
    assert_eq!(vault.storage.begin_adoption().unwrap().seq, 0);
    assert!(vault.storage.is_incomplete().unwrap());
    assert_eq!(adopt(vault, &entries(&source, vault, 0)).unwrap(), head);
    expect_equal(&source, vault);
    vault.storage.finish_adoption(head).unwrap();
    assert!(!vault.storage.is_incomplete().unwrap());
    expect_equal(&source, vault);
    // Both go on alike.
    for vault in [&source, vault] {
        vault.add_at(TestDocument::new("later").admit(note()), second(50));
        vault
            .put(
                vec![TestDocument::new("gone").mention("prompt", 0, digest("p")).admit(note())],
                RemovedPolicy::Readmit,
                second(51),
            )
            .unwrap();
        vault.remove_at(super::kinds::core(folder(), "f"), None, second(52)).unwrap();
    }
    expect_equal(&source, vault);
}

pub(super) fn a_capture_that_was_lost_and_added_again_is_there_once(vault: &TestVault) {
    let document =
        TestDocument::new("a").mention("prompt", 0, digest("p")).attribute("model", "m").named("x");
    let prepared = vault.prepared(document.admit(note()));
    let (core, capture) = (prepared.admitted().core(), prepared.admitted().capture());
    let adoption = &vault.storage;
    let mut head = adoption.begin_adoption().unwrap();
    for (seconds, count) in [(0, 1), (1, 1), (2, 2)] {
        let mut journal = JournalWriter::new(head, None, None, second(seconds));
        let add = || Entry::Add {
            capture,
            core,
            kind: "note".to_owned(),
            size: prepared.admitted().size(),
            source_path: None,
        };
        let entries: Vec<RecordedEntry> = (0..count).map(|_| journal.record(add()).unwrap()).collect();
        let adopted: Vec<AppendedEntry<'_>> =
            entries.iter().map(|entry| AppendedEntry { entry, content: Some(&prepared) }).collect();
        head = adoption.adopt(&adopted).unwrap();
    }
    adoption.finish_adoption(head).unwrap();
    let snapshot = vault.snapshot();
    let captures = snapshot.captures(&[core]).unwrap().remove(0);
    assert_eq!(
        captures.iter().map(|known| (known.capture, known.added_at)).collect::<Vec<_>>(),
        [(capture, second(2))]
    );
    assert_eq!(vault.record(core).unwrap().added_at, second(0));
    assert_eq!(snapshot.mentions(&[core], None).unwrap().remove(0).len(), 1);
    assert_eq!(snapshot.attributes(&[core]).unwrap().remove(0).len(), 1);
    assert_eq!(snapshot.read_members(core, capture).unwrap().len(), 1);
    if vault.storage.has(Capability::Check) {
        let inspection = vault.storage.inspect().unwrap();
        assert_eq!(inspection.compare_journal(None).unwrap().findings, []);
        assert_eq!(inspection.structures(IntegrityLevel::Full).unwrap(), []);
        assert_eq!(inspection.mentions_index(IntegrityLevel::Full).unwrap(), (Vec::new(), true));
    }
}

pub(super) fn an_adoption_can_be_continued_in_any_steps(vault: &TestVault) {
    let source = source();
    let entries = entries(&source, vault, 0);
    let adoption = &vault.storage;
    for (number, step) in entries.chunks(3).enumerate() {
        let head = adoption.begin_adoption().unwrap();
        assert_eq!(head.seq, 3 * number as u64);
        adopt(vault, step).unwrap();
    }
    expect_equal(&source, vault);
    adoption.finish_adoption(source.snapshot().journal_head().unwrap()).unwrap();
}

pub(super) fn what_was_removed_meanwhile_is_removed(vault: &TestVault) {
    let source = source();
    let adoption = &vault.storage;
    adoption.begin_adoption().unwrap();
    let adopted = adopt(vault, &entries(&source, vault, 0)).unwrap();
    let removed = super::kinds::core(note(), "c");
    assert!(vault.record(removed).is_some());
    source.remove_at(removed, Some("later"), second(60)).unwrap();
    source.add_at(TestDocument::new("d").admit(note()), second(61));
    let head = adopt(vault, &entries(&source, vault, adopted.seq + 1)).unwrap();
    assert_eq!(vault.record(removed), None);
    adoption.finish_adoption(head).unwrap();
    expect_equal(&source, vault);
    assert!(matches!(
        vault.add_at(TestDocument::new("c").checked("key").admit(note()), second(62)),
        PutOutcome::Refused(_)
    ));
}

pub(super) fn only_an_empty_vault_adopts_a_journal(vault: &TestVault) {
    let source = source();
    let adoption = &vault.storage;
    let head = source.snapshot().journal_head().unwrap();
    // It was not begun.
    let entries = entries(&source, vault, 0);
    assert_eq!(adopt(vault, &entries[..2]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(adoption.finish_adoption(head).unwrap_err().kind(), ErrorKind::Invalid);
    let core = vault.add_note(&TestDocument::new("own"));
    assert_eq!(adoption.begin_adoption().unwrap_err().kind(), ErrorKind::Invalid);
    vault.remove(core);
    assert_eq!(adoption.begin_adoption().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(adopt(vault, &entries[..2]).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!adoption.is_incomplete().unwrap());
    assert_eq!(vault.actions(), ["add", "remove"]);
}

pub(super) fn an_incomplete_copy_refuses_writers(vault: &TestVault) {
    let source = source();
    let adoption = &vault.storage;
    adoption.begin_adoption().unwrap();
    let entries = entries(&source, vault, 0);
    let head = adopt(vault, &entries[..5]).unwrap();
    let refused = vault.put(vec![TestDocument::new("own").admit(note())], RemovedPolicy::Refuse, second(0));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Incomplete);
    let core = super::kinds::core(note(), "a");
    let refused = vault.annotate(&Annotation::SetTag { core, name: "own" });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Incomplete);
    assert_eq!(vault.remove_at(core, None, second(0)).unwrap_err().kind(), ErrorKind::Incomplete);
    assert_eq!(vault.snapshot().journal_head().unwrap(), head);
    // It is complete only with the last entry.
    let last = source.snapshot().journal_head().unwrap();
    assert_eq!(adoption.finish_adoption(last).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(adoption.is_incomplete().unwrap());
    adoption.finish_adoption(head).unwrap();
    assert_eq!(adopt(vault, &entries[5..]).unwrap_err().kind(), ErrorKind::Invalid);
    vault.annotate(&Annotation::SetTag { core, name: "own" }).unwrap();
}

pub(super) fn entries_must_continue_the_journal(vault: &TestVault) {
    let source = source();
    let adoption = &vault.storage;
    adoption.begin_adoption().unwrap();
    let all = || entries(&source, vault, 0);
    let changed = |record: JournalRecord| {
        let entry = record.entry.replace("12:00:", "13:00:");
        RecordedEntry::parse(JournalRecord { entry, ..record }).unwrap()
    };
    let records = source.snapshot().journal(&JournalQuery::default(), 0, usize::MAX).unwrap();
    let mut wrong = all();
    wrong[3].0 = changed(records[3].clone());
    for (refused, adopted) in [(&all()[1..], 0), (&wrong[..], 0)] {
        assert_eq!(adopt(vault, refused).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(vault.snapshot().journal_head().unwrap().seq, adopted);
    }
    adopt(vault, &all()[..2]).unwrap();
    // The same entries again, and a gap.
    for refused in [&all()[..2], &all()[3..]] {
        assert_eq!(adopt(vault, refused).unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(vault.snapshot().journal_head().unwrap().seq, 2);
    assert_eq!(vault.snapshot().count(&Filter::default()).unwrap(), 1);
}

pub(super) fn entries_with_unknown_actions_are_kept(vault: &TestVault) {
    let source = source();
    let adoption = &vault.storage;
    adoption.begin_adoption().unwrap();
    let Head { seq, chain } = adopt(vault, &entries(&source, vault, 0)).unwrap();
    let text = r#"{"action":"invent","at":"2030-01-01T00:00:00.000Z","x":1}"#;
    let at = chrono::DateTime::UNIX_EPOCH;
    let chain = crate::storage::journal::next(&chain, text);
    let record = JournalRecord { seq: seq + 1, at, entry: text.to_owned(), chain };
    let head = adopt(vault, &[(RecordedEntry::parse(record).unwrap(), None)]).unwrap();
    adoption.finish_adoption(head).unwrap();
    let invented = JournalQuery { action: Some("invent".to_owned()), ..JournalQuery::default() };
    let kept = vault.snapshot().journal(&invented, 0, usize::MAX).unwrap();
    let kept: Vec<_> = kept.iter().map(|record| (record.seq, record.entry.as_str(), record.chain)).collect();
    assert_eq!(kept, [(seq + 1, text, chain)]);
    let check = vault.snapshot().check_journal(None).unwrap();
    assert_eq!((check.head, check.defect), (head, None));
}

pub(super) fn artifacts_must_be_those_of_their_entries(vault: &TestVault) {
    let source = source();
    vault.storage.begin_adoption().unwrap();
    let mut entries = entries(&source, vault, 0);
    for other in [
        TestDocument::new("other").admit(note()),
        TestDocument::new("a").remark("another capture").admit(note()),
    ] {
        entries[0].1 = Some(vault.prepared(other));
        assert_eq!(adopt(vault, &entries).unwrap_err().kind(), ErrorKind::Invalid);
    }
    let number = entries.iter().position(|(entry, _)| entry.addition().is_none()).unwrap();
    entries.truncate(number + 1);
    entries[0].1 = None;
    entries[number].1 = Some(vault.prepared(TestDocument::new("a").admit(note())));
    assert_eq!(adopt(vault, &entries).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(vault.snapshot().journal_head().unwrap().seq, 0);
    let stored: Vec<CoreHash> = vault.found(&Filter::default(), Order::Core);
    assert!(stored.is_empty());
}
