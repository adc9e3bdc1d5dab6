//! The features of dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::sandbox::repository;

/// Returns the features with which the packages that these edges lead to are built. A package that is built both for the
/// program and for build scripts can have two sets.
fn features(edges: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", "--edges", edges]);
    let listed = cargo.current_dir(repository("")).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let mut packages = BTreeMap::<_, BTreeSet<_>>::new();
    for line in String::from_utf8(listed.stdout).unwrap().lines() {
        let (package, features) = line.trim_end_matches(" (*)").split_once('|').unwrap();
        packages.entry(package.to_owned()).or_default().insert(features.to_owned());
    }
    packages
}

/// Otherwise tests would test another program, and after a build, a bench would build everything again.
#[test]
fn tests_and_benches_are_built_with_the_dependencies_of_the_program() {
    let (of_program, mut of_tests) = (features("normal,build"), features("normal,build,dev"));
    assert!(of_program.len() > 100, "{of_program:?}");
    of_tests.retain(|package, _| of_program.contains_key(package));
    assert_eq!(of_program, of_tests);
}
