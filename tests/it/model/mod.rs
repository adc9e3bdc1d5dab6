//! Random sequences of operations, run on the engine in memory, which is the specification, and on another one. Every
//! answer is compared after each step. `RUNVAULT_MODEL_CASES` sets the number of sequences.

mod answers;
mod queries;
mod steps;
mod universe;

use std::path::Path;

use proptest::prelude::*;
use runvault::Vault;
use runvault::artifact::KeyRing;
use runvault::digest::CoreHash;
use runvault::storage::Actor;
use runvault::storage::interface::Snapshot;
use runvault::vault::copy::CopyRequest;
use runvault::vault::fsck::{Finding, FsckMonitor};

use answers::{Answers, Probe};
use steps::Step;

/// A step, the milliseconds that pass before it, and a question after it.
type Timed = (Step, i64, Probe);

fn actor() -> Actor {
    Actor::new("tester").unwrap()
}

/// Opens the vault of an engine, and creates it if it does not exist.
type Open<'o> = &'o dyn Fn() -> Vault;

/// Fails with the first answer that differs.
fn compare(context: &str, model: &Answers, other: &Answers) {
    for (question, expected) in model {
        let found = other.get(question).map(String::as_str);
        assert!(found == Some(expected), "{context}: {question}\nexpected {expected}\nfound    {found:?}");
    }
    assert_eq!(model.len(), other.len(), "{context}: the same questions");
}

/// A snapshot of each engine, with what they answered when they were taken.
struct Held<'s> {
    model: Box<dyn Snapshot + 's>,
    other: Box<dyn Snapshot + 's>,
    answers: Answers,
}

impl<'s> Held<'s> {
    fn take(model: &'s Vault, other: &'s Vault) -> Self {
        let (model, other) = (model.snapshot().unwrap(), other.snapshot().unwrap());
        let answers = answers::all(&*model);
        compare("a snapshot", &answers, &answers::all(&*other));
        Self { model, other, answers }
    }

    fn check(&self) {
        compare("a held snapshot of the model", &self.answers, &answers::all(&*self.model));
        compare("a held snapshot", &self.answers, &answers::all(&*self.other));
    }
}

/// Runs the steps up to the first reopening, and returns the others.
fn run_until_reopened<'t>(timed: &'t [Timed], clock: &mut i64, model: &Vault, open: Open<'_>) -> &'t [Timed] {
    let other = open();
    let mut held = Vec::new();
    for (number, (step, passed, probe)) in timed.iter().enumerate() {
        *clock += passed;
        let at = steps::time(*clock);
        let (expected, found) = (steps::run(step, model, at), steps::run(step, &other, at));
        assert_eq!(found, expected, "step {number}: {step:?}");
        let context = format!("after step {number}");
        compare(&context, &answers::now(model, probe), &answers::now(&other, probe));
        match step {
            Step::Hold => held.push(Held::take(model, &other)),
            Step::Reopen => {
                held.iter().for_each(Held::check);
                return timed.get(number + 1..).unwrap_or_default();
            }
            _ => {}
        }
    }
    held.iter().for_each(Held::check);
    &[]
}

/// Runs steps on the model and on another engine, and returns the model.
fn run(timed: &[Timed], open: Open<'_>) -> Vault {
    let model = Vault::in_memory().acting_as(actor());
    let mut clock = 0;
    let mut rest = timed;
    while !rest.is_empty() {
        rest = run_until_reopened(rest, &mut clock, &model, open);
    }
    model
}

fn run_on_file(timed: &[Timed]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("v.vault");
    let open = || Vault::open_or_create(&path).unwrap().acting_as(actor());
    let model = run(timed, &open);
    copy(&model, &path, &directory.path().join("copy.vault"));
    reindex(&model, &path);
}

/// Copies the vault into an empty one, whose answers are those of the model.
fn copy(model: &Vault, path: &Path, to: &Path) {
    let Ok(vault) = Vault::open(path) else { return };
    let request =
        CopyRequest { to: to.to_owned(), allow_removed: false, without_source_paths: false, actor: None };
    assert!(vault.run(&request).unwrap().is_complete);
    let (model, copy) = (model.snapshot().unwrap(), Vault::open(to).unwrap());
    // Also the positions of artifacts, which are the numbers of the entries that add them.
    compare("a copy", &answers::all(&*model), &answers::all(&*copy.snapshot().unwrap()));
}

#[cfg(feature = "postgres")]
fn run_on_postgres(timed: &[Timed]) {
    let Some(schema) = crate::postgres::Schema::new() else { return };
    run_at(timed, &schema.address());
}

/// Runs steps on the vault at an address of a database.
#[cfg(feature = "postgres")]
fn run_at(timed: &[Timed], address: &str) {
    let open = || Vault::open_or_create(Path::new(address)).unwrap().acting_as(actor());
    let model = run(timed, &open);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("copy.vault");
    copy(&model, Path::new(&address), &file);
    let Some(other) = crate::postgres::Schema::new() else { return };
    copy(&model, &file, Path::new(&other.address()));
}

#[cfg(feature = "objects")]
fn run_beside(timed: &[Timed], place: Option<crate::postgres::Place>) {
    let Some(place) = place else { return };
    let Some(schema) = crate::postgres::Schema::new() else { return };
    run_at(timed, &place.address_with(&schema.address()));
}

/// Rebuilds the indexes of the file. No answer depends on that, except those about the journal, which records it.
fn reindex(model: &Vault, path: &Path) {
    let vault = Vault::open(path).unwrap();
    let report = vault.reindex(&KeyRing::default(), &mut Silent).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let answers = |snapshot: &dyn Snapshot| {
        let mut answers = answers::all(snapshot);
        answers.retain(|question, _| question != "head" && question != "journal entries");
        answers
    };
    let model = model.snapshot().unwrap();
    compare("after a rebuild of the indexes", &answers(&*model), &answers(&*vault.snapshot().unwrap()));
}

/// Ignores the progress.
struct Silent;

impl FsckMonitor for Silent {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, _: u64) {}
}

fn cases() -> u32 {
    std::env::var("RUNVAULT_MODEL_CASES").map_or(12, |cases| cases.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(), max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn engines_give_the_same_answers(
        timed in prop::collection::vec((steps::step(), -500..3_000_i64, answers::probe()), 1..16)
    ) {
        run_on_file(&timed);
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn databases_give_the_same_answers(
        timed in prop::collection::vec((steps::step(), -500..3_000_i64, answers::probe()), 1..16)
    ) {
        run_on_postgres(&timed);
    }
}

#[cfg(feature = "objects")]
proptest! {
    // What differs from a database alone is only where the bytes are.
    #![proptest_config(ProptestConfig {
        cases: cases().div_ceil(4), max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn databases_beside_directories_give_the_same_answers(
        timed in prop::collection::vec((steps::step(), -500..3_000_i64, answers::probe()), 1..16)
    ) {
        run_beside(&timed, Some(crate::postgres::Place::directory()));
    }

    #[test]
    fn databases_beside_buckets_give_the_same_answers(
        timed in prop::collection::vec((steps::step(), -500..3_000_i64, answers::probe()), 1..16)
    ) {
        run_beside(&timed, crate::postgres::Place::bucket());
    }
}
