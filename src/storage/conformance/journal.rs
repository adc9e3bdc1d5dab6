//! The journal.

use super::kinds::{TestDocument, note};
use super::{TestVault, digest, second};
use crate::artifact::SignatureState::Unchecked;
use crate::digest::{Digest, Hasher};
use crate::storage::interface::{Annotation, JournalRecord};
use crate::storage::{JournalQuery, RemovedPolicy};

/// Makes one change of each kind.
fn fill(vault: &TestVault) {
    let a = TestDocument::new("a").mention("prompt", 0, digest("p")).signed(Unchecked, "key");
    let core = vault.add_note(&a);
    vault.add_at(a.admit(note()), second(1));
    let b = vault.add_note(&TestDocument::new("b"));
    let (note_text, reason) = (Some("note \"\u{e000}\u{1f600}\n"), Some("reason"));
    for change in [
        Annotation::SetTag { core, name: "x" },
        Annotation::Pin { core, note: note_text },
        Annotation::Unpin { core },
        Annotation::AddLink { source: core, relation: "governs", target: b, note: note_text },
        Annotation::SetNote { core, text: note_text },
    ] {
        vault.annotate_at(&change, second(2)).unwrap();
    }
    vault.remove_at(core, reason, second(3)).unwrap();
    vault.put(vec![a.admit(note())], RemovedPolicy::Readmit, second(4)).unwrap();
}

fn entries(vault: &TestVault, query: &JournalQuery, from: u64, limit: usize) -> Vec<JournalRecord> {
    vault.snapshot().journal(query, from, limit).unwrap()
}

pub(super) fn entries_are_chained(vault: &TestVault) {
    assert_eq!(vault.snapshot().journal_head().unwrap().chain, Digest::from_bytes([0; 32]));
    assert_eq!(vault.snapshot().last_entry_at().unwrap(), None);
    fill(vault);
    let mut chain = Digest::from_bytes([0; 32]);
    let all = entries(vault, &JournalQuery::default(), 0, usize::MAX);
    for (number, entry) in (1..).zip(&all) {
        let mut hasher = Hasher::new();
        hasher.update(chain.as_bytes());
        hasher.update(entry.entry.as_bytes());
        chain = hasher.finish();
        assert_eq!((entry.seq, entry.chain), (number, chain));
    }
    let head = vault.snapshot().journal_head().unwrap();
    assert_eq!((head.seq, head.chain), (all.len() as u64, chain));
    assert_eq!(vault.snapshot().last_entry_at().unwrap(), all.last().map(|entry| entry.at));
}

pub(super) fn entries_are_the_same_for_every_engine(vault: &TestVault) {
    fill(vault);
    assert_eq!(
        vault.actions(),
        [
            "add",
            "signature",
            "seen",
            "add",
            "tag",
            "pin",
            "unpin",
            "link",
            "note",
            "unlink",
            "untag",
            "note",
            "remove",
            "allow-removed",
            "add",
            "signature"
        ]
    );
    let all = entries(vault, &JournalQuery::default(), 0, usize::MAX);
    assert_eq!(all[4].at, second(2));
    let core = super::kinds::core(note(), "a");
    let expected = format!(
        r#"{{"action":"pin","actor":"tester","at":"2026-03-01T12:00:02.123Z","core":"{core}","note":"note \"{}{}\n"}}"#,
        '\u{e000}', '\u{1f600}'
    );
    assert_eq!(all[5].entry, expected);
    // The whole history, as one value.
    let head = vault.snapshot().journal_head().unwrap().chain;
    assert_eq!(head.hex(), "b86150079a4203e6a7cb0f808bb95e434d80b3aa6138802e7cf88c3b173dcfa1");
}

pub(super) fn entries_are_selected(vault: &TestVault) {
    fill(vault);
    let seqs = |query: &JournalQuery, from, limit| -> Vec<u64> {
        entries(vault, query, from, limit).into_iter().map(|entry| entry.seq).collect()
    };
    let all = JournalQuery::default();
    assert_eq!(seqs(&all, 0, usize::MAX), (1..=16).collect::<Vec<_>>());
    assert_eq!(seqs(&all, 5, 3), [5, 6, 7]);
    assert_eq!(seqs(&all, 16, 3), [16]);
    assert!(seqs(&all, 17, 3).is_empty() && seqs(&all, 1, 0).is_empty());
    let adds = JournalQuery { action: Some("add".to_owned()), ..all.clone() };
    assert_eq!(seqs(&adds, 0, 9), [1, 4, 15]);
    assert_eq!(seqs(&adds, 2, 1), [4]);
    // The last ones are selected, and pages are of these.
    let last = JournalQuery { limit: Some(2), ..adds.clone() };
    assert_eq!(seqs(&last, 0, 9), [4, 15]);
    assert_eq!(seqs(&last, 5, 9), [15]);
    let none = JournalQuery { limit: Some(0), ..all.clone() };
    assert!(seqs(&none, 0, 9).is_empty());
    let period = JournalQuery { since: Some(second(2)), until: Some(second(4)), ..all.clone() };
    assert_eq!(seqs(&period, 0, 20), (5..=13).collect::<Vec<_>>());
    let unknown = JournalQuery { action: Some("other".to_owned()), ..all };
    assert!(seqs(&unknown, 0, 9).is_empty());
}

pub(super) fn the_chain_is_checked(vault: &TestVault) {
    let zero = Digest::from_bytes([0; 32]);
    let check = vault.snapshot().check_journal(Some(zero)).unwrap();
    assert_eq!((check.head.seq, check.defect, check.since), (0, None, Some(0)));
    fill(vault);
    let all = entries(vault, &JournalQuery::default(), 0, usize::MAX);
    let check = |since| vault.snapshot().check_journal(since).unwrap();
    assert_eq!((check(None).head, check(None).defect), (vault.snapshot().journal_head().unwrap(), None));
    assert_eq!(check(Some(all[6].chain)).since, Some(7));
    assert_eq!(check(Some(digest("none"))).since, None);
}

pub(super) fn many_captures_seen_again_are_recorded_in_several_entries(vault: &TestVault) {
    let admitted = || -> Vec<_> {
        (0..1_001).map(|number| TestDocument::new(&format!("n{number}")).admit(note())).collect()
    };
    vault.add_all(admitted());
    vault.add_all(admitted());
    assert_eq!(vault.actions()[1_001..], ["seen", "seen"]);
    let entries = entries(vault, &JournalQuery::default(), 1_002, 2);
    let captures = |entry: &JournalRecord| -> usize {
        let entry: serde_json::Value = serde_json::from_str(&entry.entry).unwrap();
        entry["captures"].as_array().unwrap().len()
    };
    assert_eq!((captures(&entries[0]), captures(&entries[1])), (1_000, 1));
}
