//! Source paths of captures.

use std::ffi::OsStr;
use std::time::Duration;

use super::kinds::{TestDocument, note};
use super::{TestVault, second, start};
use crate::artifact::Admitted;
use crate::digest::CoreHash;
use crate::storage::interface::PutOptions;
use crate::storage::{JournalQuery, RemovedPolicy, SourcePath};

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
