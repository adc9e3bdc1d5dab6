//! Ten thousand sessions that have nothing in common.

use super::{Bench, Rivals, UNIQUE, add_sizes, add_times, all_of, expect_artifacts};
use crate::corpus;
use crate::measure;
use crate::programs::{BORG, BY_HAND, FLOOR, GIT, Place, RESTIC, contest, empty, runvault_add};
use crate::table::{Table, Target, megabytes, size};

static IN_TIME: [(&crate::programs::Program, Target); 5] = [
    (&FLOOR, Target::AtMost(1.3)),
    (&BORG, Target::AtMost(0.6)),
    (&RESTIC, Target::AtMost(0.5)),
    (&GIT, Target::AtMost(0.45)),
    (&BY_HAND, Target::AtMost(0.33)),
];

static IN_SIZE: &Rivals = &[
    (&RESTIC, Target::AtMost(1.0)),
    (&BORG, Target::None),
    (&GIT, Target::None),
    (&BY_HAND, Target::None),
    (&FLOOR, Target::None),
];

pub fn run(bench: &Bench) -> Table {
    let root = bench.unique();
    let bytes = measure::size_of(root);
    let mut table = Table::new(format!("unique: {} in files", size(bytes)));
    let directory = bench.directory("contest-unique");
    let scores = contest(&all_of(&IN_TIME), root, &directory, bench.runs);
    for score in &scores[..2] {
        expect_artifacts(&score.place.vault(), bench.many(UNIQUE.0, UNIQUE.1));
    }
    add_times(&mut table, &scores, &IN_TIME);
    add_sizes(&mut table, &scores, IN_SIZE);
    let place = Place { corpus: root.to_owned(), scratch: directory.join("memory") };
    empty(&place.scratch);
    match measure::peak_memory(&runvault_add(&place.vault(), root), &place.scratch) {
        Some(memory) => table.limited("memory of runvault add", megabytes(memory), 150.0),
        None => table.note("The memory was not measured: GNU time is not installed."),
    }
    table.note(format!("zstd level 1 makes these sessions {:.2} times smaller, each by itself.", density()));
    table
}

/// How much smaller zstd makes what the corpus consists of.
fn density() -> f64 {
    let documents: Vec<Vec<u8>> = (0..100).map(corpus::unique_session).collect();
    let compressed =
        documents.iter().map(|document| zstd::bulk::compress(document, 1).expect("compressed").len());
    let (compressed, size): (usize, usize) = (compressed.sum(), documents.iter().map(Vec::len).sum());
    megabytes(size as u64) / megabytes(compressed as u64)
}
