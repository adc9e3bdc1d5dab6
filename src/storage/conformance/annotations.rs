//! Tags, notes, pins, labels and manual links.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{TestDocument, note, sheet};
use super::{TestVault, second, start, unknown};
use crate::digest::CoreHash;
use crate::storage::interface::{
    Annotation, Annotations, Condition, Filter, Label, LabelKey, LabelValue, Match, Note, Order, Page, Pin,
    Tag,
};
use crate::storage::{ErrorKind, JournalQuery, MAX_LABELS};

fn two(vault: &TestVault) -> (CoreHash, CoreHash) {
    (vault.add_note(&TestDocument::new("a")), vault.add_note(&TestDocument::new("b")))
}

fn annotations(vault: &TestVault, core: CoreHash) -> Annotations {
    vault.snapshot().annotations(&[core]).unwrap().remove(0)
}

pub(super) fn tags_are_unique_and_move(vault: &TestVault) {
    let (a, b) = two(vault);
    for name in ["z", "b", "x/y"] {
        assert!(vault.annotate(&Annotation::SetTag { core: a, name }).unwrap());
    }
    let tag = |name: &str, at| Tag { name: name.to_owned(), at };
    assert_eq!(annotations(vault, a).tags, ["b", "x/y", "z"].map(|name| tag(name, start())));
    assert!(vault.annotate_at(&Annotation::SetTag { core: b, name: "z" }, second(1)).unwrap());
    assert_eq!(annotations(vault, a).tags.len(), 2);
    assert_eq!(annotations(vault, b).tags, [tag("z", second(1))]);
    assert!(vault.annotate(&Annotation::RemoveTag { name: "z" }).unwrap());
    assert!(annotations(vault, b).tags.is_empty());
    assert_eq!(vault.actions()[2..], ["tag", "tag", "tag", "tag", "untag"]);
}

pub(super) fn notes_and_pins_are_replaced(vault: &TestVault) {
    let (core, _) = two(vault);
    let note = |text| Annotation::SetNote { core, text };
    assert!(vault.annotate(&note(Some("first"))).unwrap());
    assert!(vault.annotate_at(&note(Some("second")), second(1)).unwrap());
    assert_eq!(annotations(vault, core).note, Some(Note { text: "second".to_owned(), at: second(1) }));
    assert!(vault.annotate(&note(None)).unwrap());
    assert_eq!(annotations(vault, core), Annotations::default());
    assert!(vault.annotate_at(&Annotation::Pin { core, note: None }, second(2)).unwrap());
    assert_eq!(annotations(vault, core).pin, Some(Pin { note: None, at: second(2) }));
    assert!(vault.annotate_at(&Annotation::Pin { core, note: Some("why") }, second(3)).unwrap());
    assert_eq!(annotations(vault, core).pin, Some(Pin { note: Some("why".to_owned()), at: second(3) }));
    assert!(vault.annotate(&Annotation::Unpin { core }).unwrap());
    assert_eq!(annotations(vault, core), Annotations::default());
    assert_eq!(vault.actions()[2..], ["note", "note", "note", "pin", "pin", "unpin"]);
}

pub(super) fn manual_links_are_listed_from_both_ends(vault: &TestVault) {
    let (a, b) = two(vault);
    let c = vault.add_note(&TestDocument::new("c"));
    let link = |source, relation, target| Annotation::AddLink { source, relation, target, note: None };
    for change in [link(b, "governs", a), link(a, "governs", b), link(a, "about", c), link(c, "governs", a)] {
        assert!(vault.annotate(&change).unwrap());
    }
    let governs = Annotation::AddLink { source: a, relation: "governs", target: b, note: Some("why") };
    assert!(vault.annotate(&governs).unwrap(), "the note changes");
    let links = vault.snapshot().manual_links(&[a, c]).unwrap();
    let keys = |links: &[crate::storage::interface::ManualLink]| -> Vec<(String, CoreHash, CoreHash)> {
        links.iter().map(|link| (link.relation.clone(), link.source, link.target)).collect()
    };
    let mut expected =
        vec![("governs".to_owned(), a, b), ("governs".to_owned(), b, a), ("governs".to_owned(), c, a)];
    expected.sort_unstable();
    expected.insert(0, ("about".to_owned(), a, c));
    assert_eq!(keys(&links[0]), expected);
    assert_eq!(links[1].len(), 2);
    let noted: Vec<_> = links[0].iter().filter_map(|link| link.note.as_deref()).collect();
    assert_eq!(noted, ["why"]);
    let remove = Annotation::RemoveLink { source: a, relation: "governs", target: b };
    assert!(vault.annotate(&remove).unwrap());
    assert_eq!(vault.snapshot().manual_links(&[b]).unwrap()[0].len(), 1);
}

pub(super) fn what_is_already_so_is_not_recorded(vault: &TestVault) {
    let (a, b) = two(vault);
    let changes = [
        Annotation::SetTag { core: a, name: "x" },
        Annotation::SetNote { core: a, text: Some("text") },
        Annotation::Pin { core: a, note: Some("note") },
        Annotation::AddLink { source: a, relation: "governs", target: b, note: Some("note") },
    ];
    let nothing = [
        Annotation::RemoveTag { name: "y" },
        Annotation::SetNote { core: b, text: None },
        Annotation::Unpin { core: b },
        Annotation::RemoveLink { source: b, relation: "governs", target: a },
    ];
    for change in &changes {
        assert!(vault.annotate(change).unwrap());
    }
    let (before, head) = (annotations(vault, a), vault.snapshot().journal_head().unwrap());
    for change in changes.iter().chain(&nothing) {
        assert!(!vault.annotate_at(change, second(9)).unwrap(), "{change:?}");
    }
    assert_eq!((annotations(vault, a), vault.snapshot().journal_head().unwrap()), (before, head));
}

pub(super) fn invalid_annotations_are_rejected(vault: &TestVault) {
    let (a, b) = two(vault);
    let head = vault.snapshot().journal_head().unwrap();
    let (long, note) = ("x".repeat(101), "x".repeat(4_097));
    let relation = "x".repeat(41);
    let link = |relation, target, note| Annotation::AddLink { source: a, relation, target, note };
    let long_note = "x".repeat((1 << 20) + 1);
    for change in [
        Annotation::SetTag { core: a, name: "" },
        Annotation::SetTag { core: a, name: "with space" },
        Annotation::SetTag { core: a, name: &long },
        Annotation::SetNote { core: a, text: Some(" \n") },
        Annotation::SetNote { core: a, text: Some(&note) },
        link("Governs", b, None),
        link(&relation, b, None),
        link("governs", a, None),
        link("governs", b, Some(&long_note)),
    ] {
        assert_eq!(vault.annotate(&change).unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(vault.snapshot().journal_head().unwrap(), head);
}

pub(super) fn annotations_of_missing_artifacts_are_rejected(vault: &TestVault) {
    let (a, b) = two(vault);
    let core = unknown();
    vault.remove(b);
    for change in [
        Annotation::SetTag { core, name: "x" },
        Annotation::SetNote { core: b, text: Some("text") },
        Annotation::SetNote { core, text: None },
        Annotation::Pin { core: b, note: None },
        Annotation::Unpin { core },
        Annotation::AddLink { source: a, relation: "governs", target: b, note: None },
        Annotation::AddLink { source: core, relation: "governs", target: a, note: None },
        Annotation::RemoveLink { source: a, relation: "governs", target: b },
    ] {
        assert_eq!(vault.annotate(&change).unwrap_err().kind(), ErrorKind::Gone, "{change:?}");
    }
}

pub(super) fn tagged_artifacts_are_found(vault: &TestVault) {
    let (a, b) = two(vault);
    for (core, name) in [(a, "x"), (a, "y"), (b, "z")] {
        vault.annotate(&Annotation::SetTag { core, name }).unwrap();
    }
    let names = ["z", "none", "x", "y"].map(str::to_owned);
    assert_eq!(vault.snapshot().tagged(&names).unwrap(), [Some(b), None, Some(a), Some(a)]);
    assert!(vault.snapshot().tagged(&[]).unwrap().is_empty());
    vault.remove(a);
    assert_eq!(vault.snapshot().tagged(&names).unwrap(), [Some(b), None, None, None]);
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn keys(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn set(vault: &TestVault, cores: &[CoreHash], pairs: &[(&str, &str)]) -> bool {
    vault.annotate(&Annotation::SetLabels { cores, labels: &labels(pairs) }).unwrap()
}

fn three(vault: &TestVault) -> [CoreHash; 3] {
    ["a", "b", "c"].map(|name| vault.add_note(&TestDocument::new(name)))
}

fn labels_of(vault: &TestVault, core: CoreHash) -> Vec<Label> {
    vault.snapshot().annotations(&[core]).unwrap().remove(0).labels
}

/// Returns the entries after the entry `seq`.
fn entries(vault: &TestVault, seq: u64) -> Vec<serde_json::Value> {
    let entries = vault.snapshot().journal(&JournalQuery::default(), seq + 1, usize::MAX).unwrap();
    entries.iter().map(|entry| serde_json::from_str(&entry.entry).unwrap()).collect()
}

pub(super) fn labels_are_set_replaced_and_removed(vault: &TestVault) {
    let [a, b, _] = three(vault);
    assert!(set(vault, &[a, b], &[("commit", "1"), ("branch", ""), ("Z", "z")]));
    let label = |key: &str, value: &str, at| Label { key: key.to_owned(), value: value.to_owned(), at };
    let first = [label("Z", "z", start()), label("branch", "", start()), label("commit", "1", start())];
    assert_eq!(labels_of(vault, a), first);
    let change = labels(&[("commit", "2"), ("branch", "")]);
    let change = Annotation::SetLabels { cores: &[a], labels: &change };
    assert!(vault.annotate_at(&change, second(1)).unwrap());
    // What was so already keeps its time.
    let second_ones =
        [label("Z", "z", start()), label("branch", "", start()), label("commit", "2", second(1))];
    assert_eq!((labels_of(vault, a), labels_of(vault, b)), (second_ones.to_vec(), first.to_vec()));
    let removal = keys(&["Z", "commit", "none"]);
    let removal = Annotation::RemoveLabels { cores: &[a, b], keys: &removal };
    assert!(vault.annotate(&removal).unwrap());
    assert_eq!(labels_of(vault, a), [label("branch", "", start())]);
    assert_eq!(labels_of(vault, b), [label("branch", "", start())]);
    let head = vault.snapshot().journal_head().unwrap();
    assert!(!vault.annotate_at(&removal, second(9)).unwrap());
    assert!(
        !set(vault, &[b, a], &[("branch", "")]) && !set(vault, &[], &[("k", "v")]) && !set(vault, &[a], &[])
    );
    assert_eq!(vault.snapshot().journal_head().unwrap(), head);
    assert_eq!(vault.actions()[3..], ["label", "label", "unlabel"]);
}

pub(super) fn labels_of_many_artifacts_are_recorded_together(vault: &TestVault) {
    let [a, b, c] = three(vault);
    assert!(set(vault, &[b], &[("k", "v")]));
    let seq = vault.snapshot().journal_head().unwrap().seq;
    assert!(set(vault, &[c, b, a, c], &[("k", "v"), ("l", "m")]));
    let found = entries(vault, seq);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["cores"], serde_json::json!([c, a]));
    assert_eq!(found[0]["labels"], serde_json::json!({"k": "v", "l": "m"}));
    assert_eq!(found[1]["cores"], serde_json::json!([b]));
    assert_eq!(found[1]["labels"], serde_json::json!({"l": "m"}));
    let seq = vault.snapshot().journal_head().unwrap().seq;
    let removal = keys(&["l", "k", "x"]);
    vault.annotate(&Annotation::RemoveLabels { cores: &[b, c], keys: &removal }).unwrap();
    let [entry] = &entries(vault, seq)[..] else { panic!("one entry") };
    assert_eq!(entry["cores"], serde_json::json!([b, c]));
    assert_eq!(entry["keys"], serde_json::json!(["k", "l"]));
    let text = vault.snapshot().journal(&JournalQuery::default(), seq + 1, 1).unwrap().remove(0).entry;
    assert!(text.starts_with(r#"{"action":"unlabel","actor":"tester","at":"2026-03-01T"#), "{text}");
}

pub(super) fn invalid_labels_are_rejected(vault: &TestVault) {
    let [a, b, _] = three(vault);
    let head = vault.snapshot().journal_head().unwrap();
    let (long, value) = ("k".repeat(101), "v".repeat(1_025));
    let many: Vec<String> = (0..=MAX_LABELS).map(|number| format!("k{number}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "")).collect();
    for pairs in [
        &[("good", "v"), ("", "v")][..],
        &[("with space", "v")],
        &[("-k", "v")],
        &[(&long, "v")],
        &[("k", "two\nlines")],
        &[("k", &value)],
        &many,
    ] {
        let labels = labels(pairs);
        let change = Annotation::SetLabels { cores: &[a, b], labels: &labels };
        assert_eq!(vault.annotate(&change).unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(vault.snapshot().journal_head().unwrap(), head);
    assert!(set(vault, &[a], &many[1..]), "as many as there may be");
    let labels = labels(&many[..1]);
    let change = Annotation::SetLabels { cores: &[b, a], labels: &labels };
    assert_eq!(vault.annotate(&change).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(labels_of(vault, b).is_empty());
}

pub(super) fn labels_of_missing_artifacts_are_rejected(vault: &TestVault) {
    let [a, b, _] = three(vault);
    vault.remove(b);
    let (labels, keys) = (labels(&[("k", "v")]), keys(&["k"]));
    for core in [b, unknown()] {
        for change in [
            Annotation::SetLabels { cores: &[a, core], labels: &labels },
            Annotation::RemoveLabels { cores: &[core], keys: &keys },
        ] {
            assert_eq!(vault.annotate(&change).unwrap_err().kind(), ErrorKind::Gone, "{change:?}");
        }
    }
    assert!(labels_of(vault, a).is_empty());
}

pub(super) fn labels_are_removed_with_their_artifact(vault: &TestVault) {
    let [a, b, _] = three(vault);
    set(vault, &[a, b], &[("commit", "1"), ("branch", "main")]);
    set(vault, &[a], &[("only", "a")]);
    let seq = vault.snapshot().journal_head().unwrap().seq;
    vault.remove(a);
    let found = entries(vault, seq);
    assert_eq!((&found[0]["action"], &found[1]["action"]), (&"unlabel".into(), &"remove".into()));
    assert_eq!(found[0]["keys"], serde_json::json!(["branch", "commit", "only"]));
    let listed: Vec<String> = vault.snapshot().label_keys().unwrap().into_iter().map(|key| key.key).collect();
    assert_eq!(listed, ["branch", "commit"]);
    // It comes back without them.
    vault.put(vec![TestDocument::new("a").admit(note())], super::RemovedPolicy::Readmit, second(1)).unwrap();
    assert!(labels_of(vault, a).is_empty());
    assert_eq!(labels_of(vault, b).len(), 2);
}

fn label(key: &str, value: Option<&str>) -> Condition {
    Condition::Label { key: key.to_owned(), value: value.map(str::to_owned) }
}

pub(super) fn labels_select_artifacts(vault: &TestVault) {
    let [a, b, c] = three(vault);
    set(vault, &[a, b], &[("commit", "1"), ("branch", "main")]);
    set(vault, &[b], &[("commit", "2")]);
    set(vault, &[c], &[("other", "1")]);
    let found = |conditions: &[Condition]| {
        let filter = Filter { conditions: conditions.to_vec(), ..Filter::default() };
        let mut found = vault.found(&filter, Order::default());
        assert_eq!(vault.snapshot().count(&filter).unwrap(), found.len() as u64);
        found.reverse();
        found
    };
    assert_eq!(found(&[label("commit", None)]), [a, b]);
    assert_eq!(found(&[label("commit", Some("1"))]), [a]);
    assert_eq!(found(&[label("branch", Some("main")), label("commit", Some("2"))]), [b]);
    assert!(found(&[label("branch", Some("main")), label("other", None)]).is_empty());
    assert!(found(&[label("commit", Some("11"))]).is_empty() && found(&[label("Commit", None)]).is_empty());
    let filter = Filter::from(label("branch", None));
    let hits = vault.snapshot().find(&filter, Order::Core, &Page::first(1)).unwrap();
    let matched = Match::Label { key: "branch".to_owned(), value: "main".to_owned() };
    assert_eq!(hits.items[0].matches, [matched]);
    assert!(hits.next.is_some());
}

pub(super) fn keys_and_values_are_listed_with_their_use(vault: &TestVault) {
    let [a, b, c] = three(vault);
    vault.add(TestDocument::new("a").remark("another capture").admit(note()));
    let d = vault.add(TestDocument::new("d").admit(sheet()));
    set(vault, &[a, b, d], &[("commit", "beta"), ("branch", "main")]);
    set(vault, &[b, c], &[("commit", "alpha")]);
    let snapshot = vault.snapshot();
    let key = |key: &str, artifacts, values| LabelKey { key: key.to_owned(), artifacts, values };
    assert_eq!(snapshot.label_keys().unwrap(), [key("branch", 3, 1), key("commit", 4, 2)]);
    let values = |text: &str, limit| snapshot.label_values("commit", text, limit).unwrap();
    let size = |core: CoreHash| -> u64 {
        snapshot.captures(&[core]).unwrap()[0].iter().map(|capture| capture.size).sum()
    };
    let value = |value: &str, artifacts, captures, bytes| LabelValue {
        value: value.to_owned(),
        artifacts,
        captures,
        bytes,
    };
    let alpha = value("alpha", 2, 2, size(b) + size(c));
    let beta = value("beta", 2, 3, size(a) + size(d));
    assert_eq!(values("", 9), [alpha.clone(), beta.clone()]);
    assert_eq!((values("", 1), values("b", 9)), (vec![alpha], vec![beta]));
    assert!(values("", 0).is_empty() && values("x", 9).is_empty());
    assert!(snapshot.label_values("none", "", 9).unwrap().is_empty());
}
