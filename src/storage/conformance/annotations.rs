//! Tags, notes, pins and manual links.

use super::kinds::TestDocument;
use super::{TestVault, second, start, unknown};
use crate::digest::CoreHash;
use crate::storage::ErrorKind;
use crate::storage::interface::{Annotation, Annotations, Note, Pin, Tag};

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
