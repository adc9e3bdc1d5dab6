//! Snapshots and transactions.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::kinds::{TestDocument, note};
use super::{TestVault, second, start};
use crate::storage::interface::{Annotation, Filter, Order, Page, PutOptions, Snapshot};
use crate::storage::{ErrorKind, JournalQuery, RemovedPolicy};

/// Returns the answers of a snapshot, as text.
fn answers(snapshot: &dyn Snapshot) -> String {
    let found = snapshot.find(&Filter::default(), Order::Core, &Page::all()).unwrap();
    let cores: Vec<_> = found.items.iter().map(|hit| hit.artifact.core).collect();
    format!(
        "{found:?} {:?} {:?} {:?} {:?}",
        snapshot.captures(&cores).unwrap(),
        snapshot.annotations(&cores).unwrap(),
        snapshot.journal(&JournalQuery::default(), 0, usize::MAX).unwrap(),
        snapshot.tombstones(None, 0, usize::MAX).unwrap()
    )
}

pub(super) fn snapshots_do_not_see_later_changes(vault: &TestVault) {
    let document = TestDocument::new("a");
    let core = vault.add_note(&document);
    let snapshot = vault.snapshot();
    let before = answers(&*snapshot);
    let capture = snapshot.captures(&[core]).unwrap().remove(0).remove(0).capture;
    let blob = snapshot.members(core, capture).unwrap().remove(0).blob;
    vault.annotate(&Annotation::SetTag { core, name: "x" }).unwrap();
    assert_eq!(answers(&*snapshot), before);
    vault.add_at(TestDocument::new("b").admit(note()), second(1));
    vault.add_at(document.clone().admit(note()), second(1));
    assert_eq!(answers(&*snapshot), before);
    vault.remove(core);
    assert_eq!(answers(&*snapshot), before);
    assert_eq!(snapshot.read(core, capture, blob).unwrap(), document.bytes());
    let now = vault.snapshot();
    assert_eq!((now.artifacts(&[core]).unwrap(), now.count(&Filter::default()).unwrap()), (vec![None], 1));
}

pub(super) fn transactions_see_their_own_changes(vault: &TestVault) {
    let (a, b) = (vault.add_note(&TestDocument::new("a")), vault.add_note(&TestDocument::new("b")));
    let outside = vault.snapshot();
    let mut transaction = vault.transaction();
    assert!(transaction.annotate(&Annotation::SetTag { core: a, name: "x" }).unwrap());
    assert_eq!(transaction.snapshot().annotations(&[a]).unwrap()[0].tags.len(), 1);
    transaction.prepare_removal(&[b]).unwrap();
    transaction.remove(b, None).unwrap();
    assert_eq!(transaction.snapshot().artifacts(&[b]).unwrap(), [None]);
    assert_eq!(transaction.snapshot().journal_head().unwrap().seq, 4);
    assert_eq!(vault.snapshot().journal_head().unwrap().seq, 2);
    let head = transaction.commit().unwrap();
    assert_eq!((head.seq, head), (4, vault.snapshot().journal_head().unwrap()));
    assert!(outside.artifacts(&[b]).unwrap()[0].is_some());
}

pub(super) fn dropped_transactions_change_nothing(vault: &TestVault) {
    let core = vault.add_note(&TestDocument::new("a"));
    let before = answers(&*vault.snapshot());
    let mut transaction = vault.transaction();
    transaction.annotate(&Annotation::SetNote { core, text: Some("text") }).unwrap();
    transaction.prepare_removal(&[core]).unwrap();
    transaction.remove(core, None).unwrap();
    drop(transaction);
    assert_eq!(answers(&*vault.snapshot()), before);
    // A part of a transaction that fails does not prevent the rest.
    let mut transaction = vault.transaction();
    transaction.annotate(&Annotation::Pin { core, note: None }).unwrap();
    assert!(transaction.remove(core, None).is_err());
    assert!(transaction.annotate(&Annotation::SetTag { core, name: "not valid" }).is_err());
    transaction.commit().unwrap();
    assert_eq!(vault.actions(), ["add", "pin"]);
}

pub(super) fn writers_wait_for_each_other(vault: &TestVault) {
    let core = vault.add_note(&TestDocument::new("a"));
    let mut transaction = vault.transaction();
    transaction.annotate(&Annotation::SetTag { core, name: "x" }).unwrap();
    // Without a timeout, a second writer gives up.
    let prepared = vault.prepared(TestDocument::new("b").admit(note()));
    let batch = [&prepared];
    let options =
        PutOptions { policy: RemovedPolicy::Refuse, at: start(), busy_timeout: Duration::from_millis(1) };
    assert_eq!(vault.storage.put(&batch, &options).unwrap_err().kind(), ErrorKind::Busy);
    // With one, it waits until the first has finished, whenever that is.
    let options = PutOptions { busy_timeout: Duration::from_mins(1), ..options };
    let (begin, start) = channel();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            begin.send(()).unwrap();
            vault.storage.put(&batch, &options).unwrap()
        });
        start.recv().unwrap();
        transaction.commit().unwrap();
        assert_eq!(writer.join().unwrap().len(), 1);
    });
    assert_eq!(vault.actions(), ["add", "tag", "add"]);
}
