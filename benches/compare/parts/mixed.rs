//! Artifacts of all kinds.

use super::{Bench, Rivals, add_sizes, add_times, all_of, expect_artifacts, expect_valid};
use crate::corpus;
use crate::measure;
use crate::programs::{BORG, RESTIC, contest};
use crate::table::{Table, Target, size};

static RIVALS: &Rivals = &[(&BORG, Target::None), (&RESTIC, Target::None)];

pub fn run(bench: &Bench) -> Table {
    let (root, rounds) = (bench.directory("mixed"), bench.many(300, 10));
    corpus::write_mixed(&root, rounds);
    expect_valid(&root, corpus::mixed_documents(rounds));
    let (artifacts, bytes) = (corpus::mixed_artifacts(rounds), measure::size_of(&root));
    let mut table = Table::new(format!("mixed: {artifacts} artifacts, {} in files", size(bytes)));
    let scores = contest(&all_of(RIVALS), &root, &bench.directory("contest-mixed"), bench.runs);
    expect_artifacts(&scores[0].place.vault(), artifacts);
    add_times(&mut table, &scores, RIVALS);
    add_sizes(&mut table, &scores, RIVALS);
    table
}
