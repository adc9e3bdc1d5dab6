//! Whole programs, side by side: `cargo bench --bench compare -- [PART]... [--runs N] [--quick]`.
//!
//! `benches/README.md` says what is measured and how to read it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "a bench fails by panicking"
)]

#[path = "../corpus/mod.rs"]
mod corpus;
mod floor;
mod measure;
mod parts;
mod programs;
mod table;

use std::path::Path;
use std::process::ExitCode;

use parts::Bench;
use table::Table;

type Part = fn(&Bench) -> Table;

/// What can be asked for by name, in the order in which it is done.
const PARTS: [(&str, Part); 6] = [
    ("unique", parts::unique::run),
    ("single", parts::single::run),
    ("growth", parts::growth::run),
    ("ci", parts::ci::run),
    ("large", parts::large::run),
    ("mixed", parts::mixed::run),
];

const USAGE: &str = "usage: cargo bench --bench compare -- [unique] [single] [growth] [ci] [large] [mixed] \
    [--runs N] [--quick]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        // Measured as a process of its own, as the others are.
        [verb, directory, vault] if verb == "floor" => {
            floor::run(Path::new(directory), Path::new(vault));
            ExitCode::SUCCESS
        }
        // Without any, it is being run as a test.
        [] => ExitCode::SUCCESS,
        _ => compare(&arguments),
    }
}

fn compare(arguments: &[String]) -> ExitCode {
    let (mut wanted, mut runs, mut quick) = (Vec::new(), 5, false);
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        match argument {
            // What cargo adds.
            "--bench" => {}
            "--quick" => quick = true,
            "--runs" => match arguments.next().map(str::parse) {
                Some(Ok(number)) if number > 0 => runs = number,
                _ => return misused(),
            },
            part if PARTS.iter().any(|(name, _)| *name == part) => wanted.push(part),
            _ => return misused(),
        }
    }
    let bench = Bench::new(runs, quick);
    println!("{}", bench.description());
    for (name, run) in PARTS {
        if wanted.is_empty() || wanted.contains(&name) {
            print!("{}", run(&bench));
        }
    }
    ExitCode::SUCCESS
}

fn misused() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(3)
}
