//! Reading what is stored: pages, prefixes, snapshots and transactions.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::kinds::{TestDocument, core, note, sheet};
use super::{TestVault, digest, second, start, unknown};
use crate::artifact::SignatureState::{Unchecked, Verified, Wrong};
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash, DigestPrefix};
use crate::storage::TimeBasis::{Created, FirstSeen, LastSeen};
use crate::storage::interface::{
    Annotation, CaptureTarget, Containment, Cursor, Direction, Filter, HitPage, Names, Order, Page,
    PutOptions, Resolution, SharedFile, Snapshot,
};
use crate::storage::{ErrorKind, JournalQuery, RemovedPolicy};

pub(super) fn unknown_hashes_have_empty_answers(vault: &TestVault) {
    vault.add_note(&TestDocument::new("a"));
    let snapshot = vault.snapshot();
    let of = [unknown()];
    assert_eq!(snapshot.artifacts(&of).unwrap(), [None]);
    assert_eq!(snapshot.captures(&of).unwrap(), [[]]);
    assert_eq!(snapshot.attributes(&of).unwrap(), [[]]);
    assert_eq!(snapshot.annotations(&of).unwrap()[0], super::super::interface::Annotations::default());
    assert_eq!(snapshot.mentions(&of, None).unwrap(), [[]]);
    assert_eq!(snapshot.mention_counts(&of).unwrap(), [[]]);
    assert_eq!(snapshot.mentioning(&[unknown().0], None).unwrap(), [[]]);
    assert_eq!(snapshot.references(&of, Direction::In).unwrap(), [[]]);
    assert_eq!(snapshot.references(&of, Direction::Out).unwrap(), [[]]);
    assert_eq!(snapshot.names(&of).unwrap(), [Names::default()]);
    assert!(snapshot.named(&["test:none".to_owned()]).unwrap()[0].identified.is_empty());
    assert_eq!(snapshot.has_namesake(&of).unwrap(), [false]);
    assert!(snapshot.related_among(&of, "extends", "id").unwrap().is_empty());
    let any = Filter::default();
    assert!(snapshot.related_to_matching(&of, &any, "extends", "id").unwrap().is_empty());
    assert_eq!(snapshot.manual_links(&of).unwrap(), [[]]);
    assert_eq!(snapshot.containers(&of, Containment::Bytes).unwrap(), [[]]);
    assert_eq!(snapshot.files(&[BlobHash(unknown().0)]).unwrap(), [None]);
    assert_eq!(snapshot.shared_files(&of).unwrap(), [[]]);
    assert_eq!(snapshot.preferred_captures(&of).unwrap(), [None]);
    let target = CaptureTarget { capture: CaptureHash(unknown().0), artifact: core(note(), "a") };
    assert_eq!(snapshot.captures_with(&[target]).unwrap(), [None]);
    assert!(snapshot.kinds_with_group("prompt").unwrap().is_empty());
    assert!(snapshot.attribute_values("model", "", 10).unwrap().is_empty());
}

pub(super) fn no_keys_have_no_answers(vault: &TestVault) {
    vault.add_note(&TestDocument::new("a").mention("prompt", 0, digest("p")));
    let snapshot = vault.snapshot();
    assert!(snapshot.artifacts(&[]).unwrap().is_empty());
    assert!(snapshot.captures(&[]).unwrap().is_empty());
    assert!(snapshot.attributes(&[]).unwrap().is_empty());
    assert!(snapshot.annotations(&[]).unwrap().is_empty());
    assert!(snapshot.mentions(&[], None).unwrap().is_empty());
    assert!(snapshot.mention_counts(&[]).unwrap().is_empty());
    assert!(snapshot.mentioning(&[], None).unwrap().is_empty());
    assert!(snapshot.candidates(&[], &["note".to_owned()]).unwrap().is_empty());
    assert!(snapshot.references(&[], Direction::Out).unwrap().is_empty());
    assert!(snapshot.names(&[]).unwrap().is_empty());
    assert!(snapshot.named(&[]).unwrap().is_empty());
    assert!(snapshot.has_namesake(&[]).unwrap().is_empty());
    assert!(snapshot.related_among(&[], "extends", "id").unwrap().is_empty());
    assert!(snapshot.manual_links(&[]).unwrap().is_empty());
    assert!(snapshot.containers(&[], Containment::Declared).unwrap().is_empty());
    assert!(snapshot.files(&[]).unwrap().is_empty());
    assert!(snapshot.shared_files(&[]).unwrap().is_empty());
    assert!(snapshot.preferred_captures(&[]).unwrap().is_empty());
    assert!(snapshot.captures_with(&[]).unwrap().is_empty());
}

pub(super) fn answers_are_in_the_order_of_the_keys(vault: &TestVault) {
    let cores: Vec<CoreHash> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            let shared = TestDocument::new(name).mention("prompt", 0, digest(name)).attribute("model", name);
            vault.add_note(&shared.named(name))
        })
        .collect();
    let of = [cores[2], unknown(), cores[0], cores[2]];
    let snapshot = vault.snapshot();
    let found: Vec<Option<CoreHash>> =
        snapshot.artifacts(&of).unwrap().into_iter().map(|record| Some(record?.core)).collect();
    assert_eq!(found, [Some(cores[2]), None, Some(cores[0]), Some(cores[2])]);
    let values: Vec<Vec<String>> = snapshot
        .attributes(&of)
        .unwrap()
        .into_iter()
        .map(|attributes| attributes.into_iter().map(|attribute| attribute.value).collect())
        .collect();
    assert_eq!(values, [vec!["c"], vec![], vec!["a"], vec!["c"]]);
    let counts: Vec<usize> = snapshot.captures(&of).unwrap().iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 0, 1, 1]);
    let counts: Vec<usize> = snapshot.mentions(&of, None).unwrap().iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 0, 1, 1]);
    let own: Vec<Vec<String>> = snapshot.names(&of).unwrap().into_iter().map(|names| names.own).collect();
    assert_eq!(own, [vec!["test:c"], vec![], vec!["test:a"], vec!["test:c"]]);
    let digests = [digest("b"), digest("none"), digest("a")];
    let mentioning: Vec<Vec<CoreHash>> = snapshot
        .mentioning(&digests, None)
        .unwrap()
        .into_iter()
        .map(|mentions| mentions.into_iter().map(|mention| mention.artifact).collect())
        .collect();
    assert_eq!(mentioning, [vec![cores[1]], vec![], vec![cores[0]]]);
}

pub(super) fn members_and_bytes_are_returned_as_stored(vault: &TestVault) {
    let (index, part) = (TestDocument::new("folder"), TestDocument::new("part"));
    let admitted = index.admit_folder(Some(&part), Some("shared text"));
    let (core, capture) = (admitted.core(), admitted.capture());
    vault.add(admitted);
    let snapshot = vault.snapshot();
    let members = snapshot.members(core, capture).unwrap();
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["index", "part", "shared"]);
    for (member, bytes) in members.iter().zip([index.bytes(), part.bytes(), b"shared text".to_vec()]) {
        assert_eq!(member.size, bytes.len() as u64);
        assert_eq!(snapshot.read(core, capture, member.blob).unwrap(), bytes);
    }
    let document = snapshot.captures(&[super::kinds::core(note(), "part")]).unwrap().remove(0).remove(0);
    let only = snapshot.members(document.artifact, document.capture).unwrap();
    assert_eq!((only.len(), only[0].name.as_str()), (1, "document"));
    let target = CaptureTarget { capture, artifact: core };
    let with = snapshot.captures_with(&[target]).unwrap().remove(0).unwrap();
    assert_eq!(with, snapshot.captures(&[core]).unwrap().remove(0).remove(0));
}

pub(super) fn a_capture_is_its_blob(vault: &TestVault) {
    let (index, part) = (TestDocument::new("folder"), TestDocument::new("part"));
    let further = index.clone().remark("further");
    let document = part.admit(note());
    let (core, capture) = (document.core(), document.capture());
    vault.add(document);
    assert_eq!(vault.snapshot().read(core, capture, BlobHash(capture.0)).unwrap(), part.bytes());
    for (shared, index) in
        [(None, &index), (Some("shared"), &index), (Some("other"), &index), (None, &further)]
    {
        let admitted = index.admit_folder(Some(&part), shared);
        let (core, capture) = (admitted.core(), admitted.capture());
        vault.add(admitted);
        let snapshot = vault.snapshot();
        // The names of the files, and which files these are, follow from the blob of the capture.
        let manifest = snapshot.read(core, capture, BlobHash(capture.0)).unwrap();
        let files = parse_manifest(&manifest).unwrap();
        let members = snapshot.members(core, capture).unwrap().into_iter();
        assert_eq!(files, members.map(|member| (member.name, member.blob)).collect::<Vec<_>>());
        assert_eq!(files.len(), 2 + usize::from(shared.is_some()));
    }
}

pub(super) fn a_manifest_is_no_file(vault: &TestVault) {
    let folder = TestDocument::new("folder").admit_folder(None, Some("shared"));
    let (core, manifest) = (folder.core(), folder.manifest().unwrap().bytes().to_vec());
    let capture = folder.capture();
    vault.add(folder);
    let snapshot = vault.snapshot();
    assert_eq!(snapshot.files(&[BlobHash(capture.0)]).unwrap(), [None]);
    assert_eq!(vault.storage.document(core).unwrap(), None);
    drop(snapshot);
    // A file with the bytes of the manifest of another directory does not relate the two.
    let text = std::str::from_utf8(&manifest).unwrap();
    let other = vault.add(TestDocument::new("other").admit_folder(None, Some(text)));
    let snapshot = vault.snapshot();
    let file = snapshot.files(&[BlobHash(capture.0)]).unwrap().remove(0).unwrap();
    assert_eq!((file.artifact, file.name.as_str()), (other, "shared"));
    assert_eq!(snapshot.shared_files(&[core]).unwrap(), [[]]);
    assert_eq!(snapshot.shared_files(&[other]).unwrap(), [[]]);
    assert_eq!(snapshot.containers(&[core, other], Containment::Bytes).unwrap(), [[], []]);
    drop(snapshot);
    // The bytes stay for as long as one of them has them.
    vault.remove(other);
    assert_eq!(vault.snapshot().members(core, capture).unwrap().len(), 2);
}

pub(super) fn what_a_capture_does_not_have_is_an_error(vault: &TestVault) {
    let admitted = TestDocument::new("a").admit(note());
    let (core, capture) = (admitted.core(), admitted.capture());
    vault.add(admitted);
    let snapshot = vault.snapshot();
    for error in [
        snapshot.members(core, CaptureHash(unknown().0)).unwrap_err(),
        snapshot.members(unknown(), capture).unwrap_err(),
        snapshot.read(core, capture, BlobHash(unknown().0)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    }
}

pub(super) fn warnings_and_signatures_are_returned(vault: &TestVault) {
    let document = TestDocument::new("a").warned("two").warned("one").signed(Wrong, "key");
    let core = vault.add_note(&document);
    let capture = vault.snapshot().captures(&[core]).unwrap().remove(0).remove(0);
    let warnings: Vec<&str> = capture.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(warnings, ["one", "two"]);
    let signature = capture.signature.unwrap();
    assert_eq!((signature.state, signature.key_id.as_deref()), (Wrong, Some("key")));
}

pub(super) fn the_preferred_capture_depends_on_the_signatures(vault: &TestVault) {
    let plain = TestDocument::new("a");
    let forms = [
        plain.clone().signed(Wrong, "k"),
        plain.clone().signed(Unchecked, "k"),
        plain.clone(),
        plain.clone().remark("second"),
        plain.clone().signed(Verified, "k"),
    ];
    for (number, preferred) in [0, 1, 2, 2, 4].into_iter().enumerate() {
        let admitted = forms[number].admit(note());
        let core = vault.add(admitted);
        let capture = vault.snapshot().preferred_captures(&[core]).unwrap().remove(0).unwrap();
        assert_eq!(capture.capture, forms[preferred].admit(note()).capture(), "after {number}");
    }
}

pub(super) fn files_are_found_in_the_capture_that_was_added_first(vault: &TestVault) {
    let text = "the same text";
    let one = vault.add(TestDocument::new("one").admit_folder(None, Some(text)));
    let other = TestDocument::new("other").admit_folder(None, Some(text));
    let other = vault.add(other);
    let blob = BlobHash(digest(text));
    let found = |vault: &TestVault| vault.snapshot().files(&[blob]).unwrap().remove(0);
    let file = found(vault).unwrap();
    assert_eq!((file.artifact, file.name.as_str()), (one, "shared"));
    vault.remove(one);
    assert_eq!(found(vault).unwrap().artifact, other);
    vault.remove(other);
    assert_eq!(found(vault), None);
    // Documents are not files of a directory.
    let document = TestDocument::new("document");
    vault.add(document.admit(sheet()));
    let blob = BlobHash(document.admit(sheet()).capture().0);
    assert_eq!(vault.snapshot().files(&[blob]).unwrap(), [None]);
}

pub(super) fn shared_files_are_listed_with_the_artifacts_that_stay(vault: &TestVault) {
    let folders: Vec<CoreHash> = (0..8)
        .map(|number| vault.add(TestDocument::new(&format!("f{number}")).admit_folder(None, Some("text"))))
        .collect();
    let snapshot = vault.snapshot();
    let shared = snapshot.shared_files(&folders[..1]).unwrap().remove(0);
    let mut others = folders[1..].to_vec();
    others.sort_unstable();
    others.truncate(SharedFile::LISTED);
    assert_eq!(shared, [SharedFile { name: "shared".to_owned(), dependents: others, count: 7 }]);
    // What all of them have is not shared with others.
    assert_eq!(snapshot.shared_files(&folders).unwrap(), vec![vec![]; 8]);
    assert_eq!(snapshot.shared_files(&folders[..7]).unwrap()[3][0].dependents, folders[7..]);
}

pub(super) fn attribute_names_and_values_are_sorted_and_limited(vault: &TestVault) {
    for (name, model) in [("a", "beta"), ("b", "alpha"), ("c", "alpine"), ("d", "alpha")] {
        vault.add_at(TestDocument::new(name).attribute("model", model).admit(note()), second(0));
    }
    let last = vault.add_note(&TestDocument::new("e").attribute("id", "al"));
    let snapshot = vault.snapshot();
    assert_eq!(snapshot.attribute_names().unwrap(), ["id", "model"]);
    assert_eq!(snapshot.attribute_values("model", "", 10).unwrap(), ["alpha", "alpine", "beta"]);
    assert_eq!(snapshot.attribute_values("model", "al", 10).unwrap(), ["alpha", "alpine"]);
    assert_eq!(snapshot.attribute_values("model", "al", 1).unwrap(), ["alpha"]);
    assert!(snapshot.attribute_values("model", "al", 0).unwrap().is_empty());
    assert!(snapshot.attribute_values("model", "gamma", 10).unwrap().is_empty());
    drop(snapshot);
    vault.remove(last);
    assert_eq!(vault.snapshot().attribute_names().unwrap(), ["model"]);
}

const ORDERS: [Order; 6] = [
    Order::Newest(FirstSeen),
    Order::Newest(LastSeen),
    Order::Newest(Created),
    Order::Largest("tokens"),
    Order::Core,
    Order::Kind,
];

/// Stores artifacts of two kinds, in several batches of the same time, some of which state when they were created.
fn fill(vault: &TestVault) {
    for batch in 0..4_i64 {
        let artifacts = (0..5).map(|number| {
            let document = TestDocument::new(&format!("n{batch}-{number}"));
            let document = match number {
                0 => document,
                1 | 2 => document.attribute("created_at", "2025-01-01T00:00:00.000Z"),
                _ => document.attribute("created_at", &format!("2025-01-0{}T00:00:00.000Z", batch + 1)),
            };
            // Texts would be in another order.
            let document = match number {
                0 | 4 => document,
                _ => document.attribute("tokens", &(7 + batch * number).to_string()),
            };
            document.admit(if number % 2 == 0 { note() } else { sheet() })
        });
        let artifacts = artifacts.collect();
        vault.put(artifacts, crate::storage::RemovedPolicy::Refuse, second(batch / 2)).unwrap();
    }
}

fn page(
    vault: &TestVault,
    order: Order,
    limit: usize,
    after: Option<Cursor>,
) -> (Vec<CoreHash>, Option<Cursor>) {
    let HitPage { items, next } =
        vault.snapshot().find(&Filter::default(), order, &Page { limit, after }).unwrap();
    assert!(items.len() <= limit);
    (items.into_iter().map(|hit| hit.artifact.core).collect(), next)
}

pub(super) fn pages_are_the_whole(vault: &TestVault) {
    fill(vault);
    for order in ORDERS {
        let whole = vault.found(&Filter::default(), order);
        assert_eq!(whole.len(), 20);
        for limit in [1, 3, 7, 20, 21] {
            let (mut found, mut next) = page(vault, order, limit, None);
            while let Some(after) = next {
                let (more, following) = page(vault, order, limit, Some(after));
                assert!(!more.is_empty());
                found.extend(more);
                next = following;
            }
            assert_eq!(found, whole, "{order:?} in pages of {limit}");
        }
    }
}

pub(super) fn pages_stay_complete_when_items_are_removed(vault: &TestVault) {
    fill(vault);
    for order in ORDERS {
        let whole = vault.found(&Filter::default(), order);
        let (first, next) = page(vault, order, 2, None);
        // The item after which the next page begins, and one of the next page.
        let removed = [whole[1], whole[3]];
        for core in removed {
            vault.remove(core);
        }
        let (rest, last) = page(vault, order, 100, next);
        assert_eq!(last, None);
        let rest = [first, rest].concat();
        let expected: Vec<CoreHash> = whole.iter().copied().filter(|core| *core != whole[3]).collect();
        assert_eq!(rest, expected, "{order:?}");
    }
}

pub(super) fn the_last_page_has_no_next(vault: &TestVault) {
    fill(vault);
    for order in ORDERS {
        let (first, next) = page(vault, order, 19, None);
        assert_eq!(first.len(), 19);
        let (last, none) = page(vault, order, 1, next);
        assert_eq!((last.len(), none), (1, None));
        assert_eq!(page(vault, order, 20, None).1, None);
    }
}

pub(super) fn a_limit_of_zero_returns_nothing(vault: &TestVault) {
    fill(vault);
    for order in ORDERS {
        assert_eq!(page(vault, order, 0, None), (Vec::new(), None));
    }
}

fn resolve(vault: &TestVault, prefix: &str, limit: usize) -> Resolution {
    let prefix: DigestPrefix = prefix.parse().unwrap();
    vault.snapshot().resolve(&prefix, limit).unwrap()
}

pub(super) fn prefixes_resolve_to_artifacts_captures_and_tombstones(vault: &TestVault) {
    let document = TestDocument::new("a");
    let capture = document.admit(note()).capture();
    let (one, other) = (vault.add_note(&document), vault.add(document.admit(sheet())));
    for digits in [6, 20, 64] {
        let found = resolve(vault, &one.0.hex()[..digits], 10);
        assert_eq!((found.artifacts, found.captures.len(), found.tombstones.len()), (vec![one], 0, 0));
        // Both artifacts have these bytes.
        let found = resolve(vault, &capture.0.hex()[..digits], 10);
        let mut expected =
            vec![CaptureTarget { capture, artifact: one }, CaptureTarget { capture, artifact: other }];
        expected.sort_unstable();
        assert_eq!((found.captures, found.artifacts.len(), found.tombstones.len()), (expected, 0, 0));
    }
    vault.remove(one);
    let found = resolve(vault, &one.0.hex()[..12], 10);
    assert!(found.artifacts.is_empty());
    assert_eq!((found.tombstones[0].core, found.tombstones[0].digest), (one, one.0));
    // The capture was removed with one artifact, and is stored with the other.
    let found = resolve(vault, &capture.0.hex()[..12], 10);
    assert_eq!((found.captures.len(), found.tombstones.len()), (1, 0));
    vault.remove(other);
    let found = resolve(vault, &capture.0.hex()[..12], 10);
    assert!(found.captures.is_empty());
    let removed: Vec<CoreHash> = found.tombstones.iter().map(|tombstone| tombstone.core).collect();
    assert_eq!(removed, [other], "the latest removal counts");
    assert_eq!(resolve(vault, &super::unknown().0.hex(), 10), Resolution::default());
}

pub(super) fn resolution_is_limited(vault: &TestVault) {
    // Prefixes have at least six digits, which hashes of tests do not share: the limit is one of several captures.
    let document = TestDocument::new("a");
    let capture = document.admit(note()).capture();
    vault.add_all(vec![document.admit(note()), document.admit(sheet())]);
    let mut cores: Vec<CoreHash> = vec![core(note(), "a"), core(sheet(), "a")];
    cores.sort_unstable();
    let found = resolve(vault, &capture.0.hex(), 1);
    assert_eq!(found.captures, [CaptureTarget { capture, artifact: cores[0] }]);
    assert!(resolve(vault, &capture.0.hex(), 0).captures.is_empty());
    assert!(resolve(vault, &cores[0].0.hex(), 0).artifacts.is_empty());
}

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
