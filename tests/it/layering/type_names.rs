//! One name has one meaning in the crate.

use std::collections::{BTreeMap, BTreeSet};

use super::rust_files;
use crate::sandbox::repository;

/// Names of several types: of the arguments of each command, tool and page, and of the directory handle of each kind of
/// system.
const SHARED: &[&str] = &["Args", "Arguments", "OpenDir", "Parameters"];

/// The name of the type that `line` defines outside of functions and implementations, if it defines one.
fn defined(line: &str) -> Option<&str> {
    let mut rest = line;
    if let Some(visible) = rest.strip_prefix("pub") {
        rest = match visible.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => visible,
        };
        rest = rest.strip_prefix(' ')?;
    }
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end])
}

#[test]
fn no_two_types_have_the_same_name() {
    assert_eq!(defined("pub(in crate::storage) struct Scan<'a> {"), Some("Scan"));
    let source = repository("src");
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in rust_files(&source) {
        let relative = path.strip_prefix(&source).unwrap().display().to_string();
        for name in std::fs::read_to_string(&path).unwrap().lines().filter_map(defined) {
            // Alternatives by `cfg` are in one file.
            files.entry(name.to_owned()).or_default().insert(relative.clone());
        }
    }
    assert!(files.len() > 1_000, "the test sees only {} types", files.len());
    files.retain(|name, files| files.len() > 1 && !SHARED.contains(&name.as_str()));
    assert!(files.is_empty(), "several types have the same name: {files:#?}");
}
