//! One session of a hundred megabytes, one trace of fifty.

use std::process::Command;

use runvault::digest::Digest;

use super::{Bench, expect_valid};
use crate::corpus;
use crate::measure::{self, Times};
use crate::programs::{Place, empty, runvault, runvault_add};
use crate::table::{Table, Target, megabytes, size};

pub fn run(bench: &Bench) -> Table {
    let mut table = Table::new("large");
    let interactions = bench.many(1_000, 50);
    let session = corpus::large_session(bench.many(100_000_000, 5_000_000), interactions);
    // Of a small document most of the memory is the program's own.
    let target = if bench.many(1, 0) == 1 { Target::AtMost(3.0) } else { Target::None };
    measure_document(bench, &mut table, "session", "model_io.json", session, target);
    let trace = corpus::large_trace(bench.many(50_000_000, 2_000_000));
    measure_document(bench, &mut table, "trace", "trace.ndjson", trace, Target::None);
    table
}

/// Adds and gets one document. `target` is for the memory of adding it, to its size.
fn measure_document(
    bench: &Bench,
    table: &mut Table,
    what: &str,
    name: &str,
    document: Vec<u8>,
    target: Target,
) {
    let directory = bench.directory("large");
    let root = directory.join(what);
    empty(&root);
    corpus::write(&root, name, &document);
    let (bytes, digest) = (document.len() as u64, Digest::from_content(&document));
    drop(document);
    expect_valid(&root, 1);
    let place = Place { corpus: root.join(name), scratch: directory.join("scratch") };
    let mut times = [Times::new(), Times::new()];
    let add = || runvault_add(&place.vault(), &place.corpus);
    let get = || runvault("get", &place.vault(), digest.to_string());
    for _ in 0..bench.runs {
        empty(&place.scratch);
        measure::settle();
        times[0].push(measure::time(&mut add()));
        times[1].push(measure::time(&mut get()));
    }
    table.plain(&format!("{what} of {}: runvault add", size(bytes)), &times[0].text());
    table.plain(&format!("{what}: runvault get"), &times[1].text());
    table.plain(&format!("{what}: vault"), &size(measure::size_of(&place.scratch)));
    empty(&place.scratch);
    let memory = |command: Command| measure::peak_memory(&command, &directory).map(megabytes);
    let (Some(adding), Some(getting)) = (memory(add()), memory(get())) else {
        return table.note("The memory was not measured: GNU time is not installed.");
    };
    let label = format!("{what}: memory of runvault add, to the size of the file");
    table.ratio(&label, &format!("{adding:.1} MB"), adding / megabytes(bytes), target);
    table.plain(&format!("{what}: memory of runvault get"), &format!("{getting:.1} MB"));
}
