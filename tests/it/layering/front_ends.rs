//! What front ends use of the storage interface: the types that requests, answers and reports contain, and nothing that
//! reads or changes a vault beside the operations.

use std::collections::BTreeSet;

use super::imports::uses;
use super::{code_of, rust_files};
use crate::sandbox::repository;

/// What front ends may import from `runvault::storage`. The documentation of that module says why.
const DATA: &[&str] = &[
    "Actor",
    "ActorError",
    "ArtifactRecord",
    "BackupError",
    "BackupProgress",
    "ErrorKind",
    "MAX_NOTE_BYTES",
    "MAX_RELATION_BYTES",
    "MAX_LABEL_KEY_BYTES",
    "MAX_LABEL_VALUE_BYTES",
    "MAX_TAG_BYTES",
    "Repair",
    "StorageError",
    "StoredMember",
    "TimeBasis",
    "is_note",
    "is_relation",
    "is_label_key",
    "is_label_value",
    "is_tag",
];

/// Returns what the command line imports from `runvault::storage`, by the name of the item.
fn imported() -> BTreeSet<String> {
    let mut imported = BTreeSet::new();
    for path in rust_files(&repository("src/cli")) {
        let paths = uses(&code_of(&path)).into_iter().map(|(_, path)| path);
        let of_storage =
            paths.filter(|path| path.starts_with(&["runvault".to_owned(), "storage".to_owned()]));
        imported.extend(of_storage.filter_map(|mut path| path.pop()));
    }
    imported
}

#[test]
fn front_ends_use_the_data_of_the_storage_interface_and_no_engine() {
    let allowed: BTreeSet<&str> = DATA.iter().copied().collect();
    let imported = imported();
    assert!(imported.contains("StorageError"), "the test sees no imports");
    let others: Vec<&String> = imported.iter().filter(|name| !allowed.contains(name.as_str())).collect();
    assert!(others.is_empty(), "not public to front ends: {others:?}");
    // Written out in the code, without an import.
    for path in rust_files(&repository("src/cli")) {
        for rest in code_of(&path).split("runvault::storage::").skip(1) {
            let is_part = |character: char| character.is_alphanumeric() || character == '_';
            let name = rest.split(|character| !is_part(character)).next().unwrap_or_default();
            let is_module = matches!(name, "" | "check");
            assert!(is_module || allowed.contains(name), "{} names {name}", path.display());
        }
    }
}

#[test]
fn names_that_front_ends_do_not_use_are_not_in_the_list() {
    let imported = imported();
    let unused: Vec<&&str> = DATA.iter().filter(|name| !imported.contains(**name)).collect();
    assert!(unused.is_empty(), "remove them from the list: {unused:?}");
}
