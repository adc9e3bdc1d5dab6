//! What is measured, a table for each part.

pub mod ci;
pub mod growth;
pub mod large;
pub mod mixed;
pub mod single;
pub mod unique;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use runvault::Vault;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::storage::Filter;
use runvault::vault::add::{self, AddMonitor, ExaminedDocument};
use tempfile::TempDir;

use crate::corpus;
use crate::measure;
use crate::programs::{Program, RUNVAULT, Score};
use crate::table::{Table, Target, megabytes, size};

/// How many sessions *unique* has, and how many when it must be quick.
const UNIQUE: (usize, usize) = (10_000, 500);

/// Where everything is written, and how much of it.
pub struct Bench {
    directory: TempDir,
    pub runs: usize,
    quick: bool,
    unique: OnceCell<PathBuf>,
}

impl Bench {
    pub fn new(runs: usize, quick: bool) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory, runs, quick, unique: OnceCell::new() }
    }

    pub fn description(&self) -> String {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let quick = if self.quick { ", quick: corpora too small to conclude anything" } else { "" };
        let sync = measure::seconds(measure::sync_time(self.directory.path()).median());
        format!(
            "runvault {}, {threads} threads, {}; a sync takes {sync}; medians of {} runs{quick}",
            env!("CARGO_PKG_VERSION"),
            measure::processor_features(),
            self.runs
        )
    }

    /// A directory for one purpose.
    pub fn directory(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// How many of something: fewer when it must be quick.
    pub fn many(&self, all: usize, quick: usize) -> usize {
        if self.quick { quick } else { all }
    }

    /// The corpus *unique*.
    pub fn unique(&self) -> &Path {
        self.unique.get_or_init(|| {
            let (root, sessions) = (self.directory("unique"), self.many(UNIQUE.0, UNIQUE.1));
            corpus::write_unique(&root, sessions);
            expect_valid(&root, sessions);
            root
        })
    }
}

/// Verifies everything in `root`, all of which must be without errors, and so brings it into the page cache.
pub fn expect_valid(root: &Path, documents: usize) {
    let inputs = Inputs::new(vec![Input::Path(root.to_owned())]);
    let summary = add::verify(inputs, &ExamineOptions::default(), &mut Expecting);
    assert_eq!(summary.verified, documents as u64, "{summary:?}");
}

/// Makes sure that all of a corpus is in the vault at `path`.
pub fn expect_artifacts(path: &Path, artifacts: usize) {
    let vault = Vault::open(path).expect("the vault");
    let count = vault.snapshot().and_then(|snapshot| snapshot.count(&Filter::default()));
    assert_eq!(count.expect("an answer"), artifacts as u64);
}

struct Expecting;

impl AddMonitor for Expecting {
    fn examined(&mut self, examined: &ExaminedDocument) {
        assert!(examined.core_hash.is_some(), "{}: {:?}", examined.path, examined.violations);
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

/// What runvault is compared with, and what the ratio should be.
pub type Rivals = [(&'static Program, Target)];

/// runvault and those it is compared with.
pub fn all_of(rivals: &Rivals) -> Vec<&'static Program> {
    std::iter::once(&RUNVAULT).chain(rivals.iter().map(|(program, _)| *program)).collect()
}

/// One row for each program: how long it took.
pub fn add_times(table: &mut Table, scores: &[Score], rivals: &Rivals) {
    let own = &scores[0].times;
    table.plain(scores[0].program.name, &own.text());
    each_rival(table, scores, rivals, |table, score, target| {
        let Score { program, times, .. } = score;
        table.ratio(program.name, &times.text(), own.median() / times.median(), target);
    });
}

/// One row for each program: what it stores.
pub fn add_sizes(table: &mut Table, scores: &[Score], rivals: &Rivals) {
    let own = scores[0].stored;
    table.plain("vault, index included", &size(own));
    each_rival(table, scores, rivals, |table, score, target| {
        let what = format!("stored by {}", score.program.name);
        table.ratio(&what, &size(score.stored), megabytes(own) / megabytes(score.stored), target);
    });
}

fn each_rival(
    table: &mut Table,
    scores: &[Score],
    rivals: &Rivals,
    add: impl Fn(&mut Table, &Score, Target),
) {
    for (program, target) in rivals {
        match scores.iter().find(|score| score.program.name == program.name) {
            Some(score) => add(table, score, *target),
            None => table.note(format!("{} was skipped: it is not installed.", program.name)),
        }
    }
}
