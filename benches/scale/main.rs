//! Vaults in PostgreSQL: `cargo bench --bench scale -- [PART]... [--mentions N] [--runs N]`.
//!
//! `RUNVAULT_SCALE_ENGINE` is the URL of a database. `benches/README.md` says what is measured and how to read it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    missing_docs,
    unreachable_pub,
    reason = "a bench fails by panicking"
)]

#[path = "../corpus/mod.rs"]
mod corpus;
#[path = "../compare/measure.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod measure;
mod mentions;
mod popular;
mod rates;
mod schema;
#[path = "../compare/table.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod table;

use std::process::ExitCode;

/// What is measured, and how often.
pub struct Bench {
    url: String,
    /// The numbers of mentions to measure at, ascending.
    mentions: Vec<usize>,
    runs: usize,
}

type Part = fn(&Bench);

const PARTS: [(&str, Part); 3] =
    [("rates", rates::run), ("mentions", mentions::run), ("popular", popular::run)];

fn main() -> ExitCode {
    let Some(url) = std::env::var("RUNVAULT_SCALE_ENGINE").ok().filter(|url| !url.is_empty()) else {
        eprintln!("skipped: RUNVAULT_SCALE_ENGINE names no database");
        return ExitCode::SUCCESS;
    };
    let mut bench = Bench { url, mentions: Vec::new(), runs: 3 };
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().expect("a number").parse().expect("a number");
        match argument.as_str() {
            // Cargo adds it.
            "--bench" => {}
            "--mentions" => bench.mentions.push(number()),
            "--runs" => bench.runs = number(),
            _ => wanted.push(argument),
        }
    }
    if bench.mentions.is_empty() {
        bench.mentions = vec![1_000_000, 5_000_000];
    }
    for (name, part) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            part(&bench);
        }
    }
    ExitCode::SUCCESS
}
