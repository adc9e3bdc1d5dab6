//! Storing artifacts, and the source paths of captures.

use std::ffi::OsStr;
use std::time::Duration;

use super::kinds::{TestDocument, core, note, sheet};
use super::{TestVault, digest, second, start};
use crate::artifact::Admitted;
use crate::artifact::SignatureState::{self, Unchecked, Verified, Wrong};
use crate::digest::CoreHash;
use crate::storage::PutOutcome::{self, Added, NewCapture, Present};
use crate::storage::interface::{Direction, Filter, Order, PutOptions};
use crate::storage::{ErrorKind, JournalQuery, KindConflict, Prepared, RemovedPolicy, SourcePath, TimeBasis};

const ARRIVAL: Order = Order::Newest(TimeBasis::LastSeen);

pub(super) fn every_outcome_is_reported_in_the_order_of_the_batch(vault: &TestVault) {
    let (a, b) = (TestDocument::new("a"), TestDocument::new("b"));
    let again = a.clone().remark("another form");
    let batch = vec![a.admit(note()), b.admit(note()), a.admit(note()), again.admit(note())];
    assert_eq!(vault.add_all(batch), [Added, Added, Present, NewCapture]);
    assert_eq!(vault.snapshot().count(&Filter::default()).unwrap(), 2);
    assert_eq!(vault.actions(), ["add", "add", "add"], "what was added in the batch is not seen again");
}

pub(super) fn an_empty_batch_changes_nothing(vault: &TestVault) {
    assert_eq!(vault.put(Vec::new(), RemovedPolicy::Refuse, start()).unwrap(), []);
    assert_eq!(vault.snapshot().journal_head().unwrap().seq, 0);
}

pub(super) fn an_artifact_is_stored_with_everything_that_belongs_to_it(vault: &TestVault) {
    let document =
        TestDocument::new("a").mention("prompt", 0, digest("p")).attribute("model", "m").named("run");
    let admitted = document.clone().admit(note());
    let capture = admitted.capture();
    let put = vault.put(vec![admitted], RemovedPolicy::Refuse, second(1)).unwrap().remove(0);
    assert_eq!((put.core, put.capture, put.outcome), (core(note(), "a"), capture, Added));
    let snapshot = vault.snapshot();
    let record = vault.record(put.core).unwrap();
    assert_eq!((record.core, record.kind.as_str()), (put.core, "note"));
    assert_eq!((record.added_at, record.seen_at), (second(1), second(1)));
    let stored = snapshot.captures(&[put.core]).unwrap().remove(0).remove(0);
    assert_eq!((stored.capture, stored.artifact), (capture, put.core));
    assert_eq!(stored.size, document.bytes().len() as u64);
    assert_eq!((stored.added_at, stored.seen_at), (second(1), second(1)));
    assert_eq!(snapshot.attributes(&[put.core]).unwrap()[0].len(), 1);
    assert_eq!(snapshot.mentions(&[put.core], None).unwrap()[0].len(), 1);
    assert_eq!(snapshot.names(&[put.core]).unwrap()[0].own, ["test:run"]);
}

pub(super) fn a_further_capture_adds_to_the_index_data(vault: &TestVault) {
    let one = TestDocument::new("a").mention("prompt", 0, digest("p")).attribute("model", "m").named("x");
    let other = TestDocument::new("a")
        .mention("prompt", 1, digest("q"))
        .mention("reference", 0, digest("r"))
        .attribute("model", "n")
        .named("y")
        .names("z");
    let core = vault.add_note(&one);
    assert_eq!(vault.add_at(other.admit(note()), second(5)), NewCapture);
    let snapshot = vault.snapshot();
    let record = vault.record(core).unwrap();
    assert_eq!((record.added_at, record.seen_at), (start(), second(5)));
    let captures = snapshot.captures(&[core]).unwrap().remove(0);
    assert_eq!(captures.iter().map(|capture| capture.added_at).collect::<Vec<_>>(), [start(), second(5)]);
    let values: Vec<String> =
        snapshot.attributes(&[core]).unwrap()[0].iter().map(|attribute| attribute.value.clone()).collect();
    assert_eq!(values, ["m", "n"]);
    assert_eq!(snapshot.mentions(&[core], None).unwrap()[0].len(), 3);
    let names = snapshot.names(&[core]).unwrap().remove(0);
    assert_eq!((names.own.len(), names.mentioned.len()), (2, 1));
    assert_eq!(snapshot.references(&[core], Direction::Out).unwrap()[0].len(), 1);
}

pub(super) fn a_capture_that_is_seen_again_changes_only_times_and_order(vault: &TestVault) {
    let (a, b) = (TestDocument::new("a"), TestDocument::new("b"));
    let (a_core, b_core) = (vault.add_note(&a), vault.add_note(&b));
    assert_eq!(vault.found(&Filter::default(), ARRIVAL), [b_core, a_core]);
    let before = vault.record(a_core).unwrap();
    assert_eq!(vault.add_at(a.admit(note()), second(9)), Present);
    let after = vault.record(a_core).unwrap();
    assert_eq!((after.added_at, after.seen_at), (before.added_at, second(9)));
    assert_eq!(after.addition, before.addition);
    assert!(after.arrival > vault.record(b_core).unwrap().arrival);
    assert_eq!(vault.found(&Filter::default(), ARRIVAL), [a_core, b_core]);
    let capture = vault.snapshot().captures(&[a_core]).unwrap().remove(0).remove(0);
    assert_eq!((capture.added_at, capture.seen_at), (start(), second(9)));
    assert_eq!(vault.actions(), ["add", "add", "seen"]);
    // The order in which a batch sees them is their order.
    assert_eq!(
        vault.add_all(vec![b.admit(note()), a.admit(note()), b.admit(note())]),
        [Present, Present, Present]
    );
    assert_eq!(vault.found(&Filter::default(), ARRIVAL), [a_core, b_core]);
    assert_eq!(vault.actions(), ["add", "add", "seen", "seen"]);
}

pub(super) fn the_same_bytes_can_be_two_artifacts(vault: &TestVault) {
    let document = TestDocument::new("a");
    assert_eq!(vault.add_all(vec![document.admit(note()), document.admit(sheet())]), [Added, Added]);
    let (one, other) = (core(note(), "a"), core(sheet(), "a"));
    let snapshot = vault.snapshot();
    let captures = snapshot.captures(&[one, other]).unwrap();
    assert_eq!(captures[0][0].capture, captures[1][0].capture);
    vault.remove(one);
    let capture = captures[1][0].capture;
    let blob = vault.snapshot().members(other, capture).unwrap().remove(0).blob;
    assert_eq!(vault.snapshot().read(other, capture, blob).unwrap(), document.bytes());
    // What was removed has these bytes.
    let PutOutcome::Refused(tombstones) = vault.add_at(document.admit(sheet()), start()) else { panic!() };
    assert_eq!(tombstones[0].core, one);
}

pub(super) fn embedded_artifacts_are_stored_before_their_container(vault: &TestVault) {
    let part = TestDocument::new("part");
    let folder = TestDocument::new("folder").admit_folder(Some(&part), None);
    let folder = vault.add(folder);
    let part = core(note(), "part");
    let (folder, part) = (vault.record(folder).unwrap(), vault.record(part).unwrap());
    assert!(part.addition < folder.addition && part.arrival < folder.arrival);
    assert_eq!(vault.actions(), ["add", "add"]);
}

pub(super) fn artifacts_prepared_by_another_engine_are_rejected(vault: &TestVault) {
    /// A preparation that no engine makes.
    struct ForeignPreparation;
    let prepared = Prepared::new(TestDocument::new("a").admit(note()), &|_, _| ForeignPreparation);
    let options = PutOptions { policy: RemovedPolicy::Refuse, at: start(), busy_timeout: Duration::ZERO };
    let error = vault.storage.put(&[&prepared], &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(vault.snapshot().count(&Filter::default()).unwrap(), 0);
}

pub(super) fn a_refused_artifact_is_not_stored_and_the_others_are(vault: &TestVault) {
    let (a, b, c) = (TestDocument::new("a"), TestDocument::new("b"), TestDocument::new("c"));
    let removed = vault.add_note(&b);
    vault.remove_at(removed, Some("wrong"), second(1)).unwrap();
    let outcomes = vault.add_all(vec![a.admit(note()), b.admit(note()), c.admit(note())]);
    let [Added, PutOutcome::Refused(tombstones), Added] = &outcomes[..] else { panic!("{outcomes:?}") };
    let [tombstone] = &tombstones[..] else { panic!("one for each artifact") };
    assert_eq!((tombstone.core, tombstone.digest), (removed, removed.0));
    assert_eq!((tombstone.reason.as_deref(), tombstone.at), (Some("wrong"), second(1)));
    assert_eq!((tombstone.actor.as_deref(), tombstone.kind.as_str()), (Some("tester"), "note"));
    assert_eq!((tombstone.left, tombstone.size), (0, b.bytes().len() as u64));
    assert_eq!(vault.record(removed), None);
}

pub(super) fn a_refusal_can_stop_the_batch(vault: &TestVault) {
    let (a, b, c) = (TestDocument::new("a"), TestDocument::new("b"), TestDocument::new("c"));
    let removed = vault.add_note(&b);
    vault.remove(removed);
    let batch = vec![a.admit(note()), b.admit(note()), c.admit(note())];
    let put = vault.put(batch, RemovedPolicy::RefuseAndStop, start()).unwrap();
    assert_eq!(put.len(), 2, "the refusal is the last outcome");
    assert_eq!(put[0].outcome, Added);
    assert!(matches!(put[1].outcome, PutOutcome::Refused(_)));
    assert_eq!(vault.record(core(note(), "c")), None);
}

pub(super) fn a_removal_can_be_taken_back(vault: &TestVault) {
    let document = TestDocument::new("a");
    let removed = vault.add_note(&document);
    vault.remove(removed);
    let put = vault.put(vec![document.admit(note())], RemovedPolicy::Readmit, second(3)).unwrap();
    assert_eq!(put[0].outcome, Added);
    assert_eq!(vault.actions(), ["add", "remove", "allow-removed", "add"]);
    assert_eq!(vault.snapshot().tombstones(None, 0, usize::MAX).unwrap(), []);
    assert_eq!(vault.record(removed).unwrap().added_at, second(3));
    vault.remove(removed);
    assert_eq!(vault.snapshot().tombstones(None, 0, usize::MAX).unwrap()[0].entry, 5);
}

pub(super) fn a_container_of_something_removed_is_refused(vault: &TestVault) {
    let part = TestDocument::new("part");
    let removed = vault.add_note(&part);
    vault.remove(removed);
    let folder = || TestDocument::new("folder").admit_folder(Some(&part), None);
    let PutOutcome::Refused(tombstones) = vault.add_at(folder(), start()) else { panic!() };
    assert_eq!(tombstones[0].core, removed);
    assert_eq!(vault.snapshot().count(&Filter::default()).unwrap(), 0);
    let put = vault.put(vec![folder()], RemovedPolicy::Readmit, start()).unwrap();
    assert_eq!(put[0].outcome, Added);
    assert!(vault.record(removed).is_some());
    assert_eq!(vault.actions(), ["add", "remove", "allow-removed", "add", "add"]);
}

pub(super) fn a_container_of_another_form_of_something_removed_is_refused(vault: &TestVault) {
    let part = TestDocument::new("part");
    let removed = vault.add_note(&part.clone().remark("another form"));
    vault.remove(removed);
    let folder = || TestDocument::new("folder").admit_folder(Some(&part), None);
    let PutOutcome::Refused(tombstones) = vault.add_at(folder(), start()) else { panic!() };
    assert_eq!(tombstones[0].core, removed);
    let put = vault.put(vec![folder()], RemovedPolicy::Readmit, start()).unwrap();
    assert_eq!(put[0].outcome, Added);
    assert_eq!(vault.actions(), ["add", "remove", "allow-removed", "add", "add"]);
}

pub(super) fn a_core_hash_is_of_one_kind(vault: &TestVault) {
    let shared = TestDocument::of_any_kind("shared");
    let stored = vault.add_note(&shared);
    let head = vault.snapshot().journal_head().unwrap();
    let conflict = PutOutcome::KindConflict(KindConflict { core: stored, kind: "note".to_owned() });
    assert_eq!(vault.add_at(shared.admit(sheet()), second(1)), conflict);
    assert_eq!(vault.snapshot().journal_head().unwrap(), head);
    let batch = vec![shared.admit(sheet()), TestDocument::new("a").admit(note())];
    let put = vault.put(batch, RemovedPolicy::RefuseAndStop, start()).unwrap();
    assert_eq!(put.into_iter().map(|put| put.outcome).collect::<Vec<_>>(), [conflict]);
    vault.remove(stored);
    // The removal is of this core hash, whatever the kind.
    assert!(matches!(vault.add_at(shared.admit(sheet()), start()), PutOutcome::Refused(_)));
    let put = vault.put(vec![shared.admit(sheet())], RemovedPolicy::Readmit, start()).unwrap();
    assert_eq!((&put[0].outcome, vault.record(stored).unwrap().kind.as_str()), (&Added, "sheet"));
    // A folder whose part is in the vault as another kind is not stored either.
    let folder = TestDocument::new("folder").admit_folder(Some(&shared), None);
    let conflict = PutOutcome::KindConflict(KindConflict { core: stored, kind: "sheet".to_owned() });
    assert_eq!(vault.add_at(folder, start()), conflict);
    assert_eq!(vault.snapshot().count(&Filter::default()).unwrap(), 1);
}

pub(super) fn times_never_go_back(vault: &TestVault) {
    vault.add_at(TestDocument::new("a").admit(note()), second(10));
    vault.add_at(TestDocument::new("b").admit(note()), second(4));
    let record = vault.record(core(note(), "b")).unwrap();
    assert_eq!((record.added_at, record.seen_at), (second(10), second(10)));
    // Times have milliseconds.
    let at = second(20) + chrono::TimeDelta::nanoseconds(1_999);
    vault.add_at(TestDocument::new("c").admit(note()), at);
    assert_eq!(vault.record(core(note(), "c")).unwrap().added_at, second(20));
}

pub(super) fn a_signature_that_is_checked_again_is_recorded_if_it_changed(vault: &TestVault) {
    let admitted = |state| TestDocument::new("a").checked("key").admit_with_signature(state);
    let state = |vault: &TestVault| -> SignatureState {
        let captures = vault.snapshot().captures(&[core(note(), "a")]).unwrap();
        captures[0][0].signature.as_ref().unwrap().state
    };
    vault.add(admitted(Unchecked));
    assert_eq!((state(vault), vault.actions().len()), (Unchecked, 2));
    vault.add(admitted(Verified));
    assert_eq!(state(vault), Verified);
    assert_eq!(vault.actions(), ["add", "signature", "signature", "seen"]);
    // A signature that was not checked this time does not replace the result of an earlier check.
    vault.add(admitted(Unchecked));
    assert_eq!(state(vault), Verified);
    vault.add(admitted(Wrong));
    assert_eq!(state(vault), Wrong);
}

/// A path with everything that a path can contain and that text in a database or in JSON may be changed by.
pub(super) const HOSTILE: &str = "a \"\\/'\u{1}\u{2}\u{7f}\u{1b}[31m\n\t\u{202e}\u{e000}\u{1f600}é%s$1";

pub(super) fn add_from(vault: &TestVault, admitted: Admitted, path: Option<&str>, seconds: i64) {
    let mut prepared = vault.prepared(admitted);
    let path = path.and_then(|path| SourcePath::new(OsStr::new(path)));
    prepared.set_source_paths(&|_| path.clone());
    let (policy, busy_timeout) = (RemovedPolicy::Readmit, Duration::from_mins(1));
    vault.storage.put(&[&prepared], &PutOptions { policy, at: second(seconds), busy_timeout }).unwrap();
}

/// Returns the paths of the captures of an artifact.
fn paths_of(vault: &TestVault, core: CoreHash) -> Vec<Option<String>> {
    let captures = vault.snapshot().captures(&[core]).unwrap().remove(0);
    captures.into_iter().map(|capture| capture.source_path).collect()
}

pub(super) fn each_capture_has_the_path_of_its_first_addition(vault: &TestVault) {
    let one = TestDocument::new("a");
    let core = one.admit(note()).core();
    add_from(vault, one.admit(note()), Some("runs/a"), 0);
    add_from(vault, one.clone().remark("two").admit(note()), None, 1);
    add_from(vault, one.clone().remark("three").admit(note()), Some(HOSTILE), 2);
    add_from(vault, one.admit(note()), Some("copy/of/a"), 3);
    add_from(vault, one.clone().remark("two").admit(note()), Some("two"), 4);
    let paths = [Some("runs/a"), None, Some(HOSTILE)];
    assert_eq!(paths_of(vault, core), paths.map(|path| path.map(str::to_owned)));
    let snapshot = vault.snapshot();
    let preferred = snapshot.preferred_captures(&[core]).unwrap().remove(0).unwrap();
    assert_eq!(preferred.source_path.as_deref(), Some("runs/a"));
    assert!(snapshot.check_journal(None).unwrap().defect.is_none());
}

pub(super) fn paths_are_in_the_entries_of_additions(vault: &TestVault) {
    for (name, path) in [("a", Some(HOSTILE)), ("b", None), ("c", Some("c"))] {
        add_from(vault, TestDocument::new(name).admit(note()), path, 0);
    }
    let entries = vault.snapshot().journal(&JournalQuery::default(), 0, usize::MAX).unwrap();
    let recorded = entries.iter().map(|entry| {
        let value: serde_json::Value = serde_json::from_str(&entry.entry).unwrap();
        assert_eq!(entry.entry.as_bytes(), serde_json_canonicalizer::to_vec(&value).unwrap());
        value.get("source_path").map(|path| path.as_str().unwrap().to_owned())
    });
    let expected = [Some(HOSTILE), None, Some("c")].map(|path| path.map(str::to_owned));
    assert_eq!(recorded.collect::<Vec<_>>(), expected);
}

pub(super) fn embedded_artifacts_have_paths_too(vault: &TestVault) {
    let part = TestDocument::new("part");
    let whole = TestDocument::new("folder").admit_folder(Some(&part), None);
    let (core, embedded) = (whole.core(), part.admit(note()).core());
    add_from(vault, whole, Some("folder"), 0);
    assert_eq!(paths_of(vault, core), [Some("folder".to_owned())]);
    assert_eq!(paths_of(vault, embedded), [Some("folder".to_owned())]);
}

pub(super) fn what_is_added_after_its_removal_has_the_path_of_that(vault: &TestVault) {
    let document = TestDocument::new("a");
    let core = document.admit(note()).core();
    add_from(vault, document.admit(note()), Some("first"), 0);
    vault.remove_at(core, None, start()).unwrap();
    add_from(vault, document.admit(note()), Some("second"), 1);
    assert_eq!(paths_of(vault, core), [Some("second".to_owned())]);
    vault.remove_at(core, None, second(2)).unwrap();
    add_from(vault, document.admit(note()), None, 3);
    assert_eq!(paths_of(vault, core), [None]);
}
