//! One name has one meaning in the crate.

use std::collections::BTreeMap;

use super::rust_files;
use crate::sandbox::repository;

/// The types that each command, tool or page has one of: its arguments.
const PER_MODULE: &[&str] = &["Args", "Arguments", "Parameters"];

/// The types with an implementation for each kind of system.
const PER_SYSTEM: &[&str] = &["OpenDir"];

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
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in rust_files(&source) {
        let relative = path.strip_prefix(&source).unwrap().display().to_string();
        for name in std::fs::read_to_string(&path).unwrap().lines().filter_map(defined) {
            let places = files.entry(name.to_owned()).or_default();
            // Alternatives by `cfg` stand in one file.
            if !places.contains(&relative) {
                places.push(relative.clone());
            }
        }
    }
    assert!(files.len() > 1_000, "the test sees only {} types", files.len());
    files.retain(|name, places| {
        places.len() > 1 && ![PER_MODULE, PER_SYSTEM].iter().any(|names| names.contains(&name.as_str()))
    });
    assert!(files.is_empty(), "several types have the same name: {files:#?}");
}
