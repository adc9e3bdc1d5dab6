//! The properties of `tests/it/fuzzing` for libFuzzer.

#[path = "../../tests/it/fuzzing/properties/mod.rs"]
mod properties;

/// Runs the property of the target `name` on `data`.
pub fn run(name: &str, data: &[u8]) {
    properties::run(name, data);
}

/// Where libFuzzer begins: all targets with their seeds, from the repository at `root`.
#[must_use]
pub fn seeds(root: &std::path::Path) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    properties::TARGETS.iter().map(|target| (target.name, (target.seeds)(root))).collect()
}
