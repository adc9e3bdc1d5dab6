//! The properties of all parsers, on what a generator makes of the corpus.
//!
//! `cargo test` gives every parser a second. `RUNVAULT_FUZZ_SECONDS=600 cargo test --test it fuzzing` gives each ten
//! minutes, and `fuzz/README.md` says how to let libFuzzer look for what this does not find.

mod mutate;
mod properties;
#[cfg(unix)]
mod vaults;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use mutate::{Mutator, Random};
use properties::{TARGETS, Target};

use crate::sandbox::repository;

/// How long each parser is tried.
fn time() -> Duration {
    let seconds = std::env::var("RUNVAULT_FUZZ_SECONDS").ok();
    Duration::from_secs(seconds.map_or(1, |text| text.parse().unwrap()))
}

/// Where the generator begins. The same number makes the same documents, so a failure can be had again.
fn start() -> u64 {
    let start = std::env::var("RUNVAULT_FUZZ_START").ok();
    start.map_or(0, |text| text.parse().unwrap())
}

fn try_out(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = (target.seeds)(&repository(""));
    assert!(seeds.len() > 10, "the corpus is not there");
    for (number, seed) in seeds.iter().enumerate() {
        holds(target, seed, &format!("seed {number}"));
    }
    let deadline = Instant::now() + time();
    let mutator = Mutator::new(&seeds);
    for number in start().. {
        if Instant::now() > deadline {
            break;
        }
        let document = mutator.next(&mut Random::new(number));
        holds(target, &document, &format!("RUNVAULT_FUZZ_START={number}"));
    }
}

/// Says what broke the property, if something does, and keeps it.
fn holds(target: &Target, document: &[u8], origin: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.holds)(document))) {
        let path = std::env::temp_dir().join(format!("runvault-fuzz-{}", target.name));
        let kept = std::fs::write(&path, document).map(|()| path);
        let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        panic!("{}: {origin} breaks the property: {why}\nthe document is in {kept:?}", target.name);
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        const TRIED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                try_out(stringify!($name));
            }
        )*
    };
}

targets! { json model_io rpk trace contract yaml pack archive recognition verify_and_add bundle journal vault }

#[test]
fn every_target_is_tried_and_has_a_file() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TRIED);
    // The fuzz crate is not part of the package.
    if let Ok(files) = std::fs::read_dir(repository("fuzz/fuzz_targets")) {
        let mut files: Vec<String> =
            files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        let mut expected: Vec<String> = names.iter().map(|name| format!("{name}.rs")).collect();
        expected.sort();
        assert_eq!(files, expected);
    }
}
