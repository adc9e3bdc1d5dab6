//! Random sequences of operations, run on the engine in memory, which is the specification, and on a vault file. Every
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
use runvault::storage::interface::{Snapshot, Storage};
use runvault::storage::memory::MemoryStorage;
use runvault::storage::{Actor, Store};
use runvault::vault::fsck::{Finding, Monitor};

use answers::{Answers, Probe};
use steps::Step;

/// A step, the milliseconds that pass before it, and a question after it.
type Timed = (Step, i64, Probe);

fn actor() -> Actor {
    Actor::new("tester").unwrap()
}

fn open(path: &Path) -> Store {
    Store::open_or_create(path).unwrap().acting_as(actor())
}

/// Fails with the first answer that differs.
fn compare(context: &str, model: &Answers, file: &Answers) {
    for (question, expected) in model {
        let found = file.get(question).map(String::as_str);
        assert!(found == Some(expected), "{context}: {question}\nexpected {expected}\nfound    {found:?}");
    }
    assert_eq!(model.len(), file.len(), "{context}: the same questions");
}

/// A snapshot of each engine, with what they answered when they were taken.
struct Held<'s> {
    model: Box<dyn Snapshot + 's>,
    file: Box<dyn Snapshot + 's>,
    answers: Answers,
}

impl<'s> Held<'s> {
    fn take(model: &'s MemoryStorage, file: &'s Store) -> Self {
        let (model, file) = (Storage::snapshot(model).unwrap(), Storage::snapshot(file).unwrap());
        let answers = answers::all(&*model);
        compare("a snapshot", &answers, &answers::all(&*file));
        Self { model, file, answers }
    }

    fn check(&self) {
        compare("a held snapshot of the model", &self.answers, &answers::all(&*self.model));
        compare("a held snapshot", &self.answers, &answers::all(&*self.file));
    }
}

/// Runs the steps up to the first reopening, and returns the others.
fn run_until_reopened<'t>(
    timed: &'t [Timed],
    clock: &mut i64,
    model: &MemoryStorage,
    path: &Path,
) -> &'t [Timed] {
    let file = open(path);
    let mut held = Vec::new();
    for (number, (step, passed, probe)) in timed.iter().enumerate() {
        *clock += passed;
        let at = steps::time(*clock);
        let (expected, found) = (steps::run(step, model, at), steps::run(step, &file, at));
        assert_eq!(found, expected, "step {number}: {step:?}");
        let (model_now, file_now) = (Storage::snapshot(model).unwrap(), Storage::snapshot(&file).unwrap());
        let context = format!("after step {number}");
        compare(&context, &answers::all(&*model_now), &answers::all(&*file_now));
        compare(&context, &answers::probed(&*model_now, probe), &answers::probed(&*file_now, probe));
        match step {
            Step::Hold => held.push(Held::take(model, &file)),
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

fn run(timed: &[Timed]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("v.vault");
    let model = MemoryStorage::new().acting_as(actor());
    let mut clock = 0;
    let mut rest = timed;
    while !rest.is_empty() {
        rest = run_until_reopened(rest, &mut clock, &model, &path);
    }
    reindex(&model, &path);
}

/// Rebuilds the indexes of the file. No answer depends on that, except those about the journal, which records it.
fn reindex(model: &MemoryStorage, path: &Path) {
    let vault = Vault::open(path).unwrap();
    let report = vault.reindex(&KeyRing::default(), &mut Silent).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let answers = |snapshot: &dyn Snapshot| {
        let mut answers = answers::all(snapshot);
        answers.retain(|question, _| question != "head" && question != "journal entries");
        answers
    };
    let model = Storage::snapshot(model).unwrap();
    compare("after a rebuild of the indexes", &answers(&*model), &answers(&*vault.snapshot().unwrap()));
}

/// Ignores the progress.
struct Silent;

impl Monitor for Silent {
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
        run(&timed);
    }
}
