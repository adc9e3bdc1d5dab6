//! Adding *unique* to a file, to a database with one process, and with four processes at the same time.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Bench;
use crate::corpus;
use crate::measure::{self, Times};
use crate::schema::Schema;
use crate::table::{Table, Target};

const SESSIONS: usize = 10_000;
const WRITERS: usize = 4;

/// The least rate of one process and of all of them, as parts of the rate into a file.
const LEAST: (f64, f64) = (0.3, 0.5);

pub fn run(bench: &Bench) {
    let directory = tempfile::tempdir().expect("a directory");
    let (all, parts) = (directory.path().join("all"), directory.path().join("parts"));
    corpus::write_unique(&all, SESSIONS);
    for number in 0..SESSIONS {
        let part = parts.join((number % WRITERS).to_string());
        corpus::write(&part, &format!("session-{number:05}.json"), &corpus::unique_session(number));
    }
    let mut times = [Times::new(), Times::new(), Times::new()];
    for _ in 0..bench.runs {
        times[0].push(into_file(directory.path(), &all));
        times[1].push(into_database(bench, &[&all]));
        let parts: Vec<_> = (0..WRITERS).map(|part| parts.join(part.to_string())).collect();
        times[2].push(into_database(bench, &parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()));
    }
    let rate = |times: &Times| format!("{:.0}/s, {}", SESSIONS as f64 / times.median(), times.text());
    let [file, one, several] = &times;
    let mut table = Table::new(format!("rates: adding {SESSIONS} sessions of *unique*"));
    table.plain("into a file", &rate(file));
    for (what, times, least) in
        [("into PostgreSQL, one process", one, LEAST.0), ("four processes", several, LEAST.1)]
    {
        table.ratio(what, &rate(times), file.median() / times.median(), Target::AtLeast(least));
    }
    println!("{table}");
}

fn add(vault: &Path, documents: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runvault"));
    command
        .env("RUNVAULT_CONFIG", vault.with_file_name("none.toml"))
        .arg("--vault")
        .arg(vault)
        .args(["add", "--create"]);
    command.arg(documents);
    command
}

fn into_file(directory: &Path, documents: &Path) -> Duration {
    let vault = directory.join("v.vault");
    let _ = fs::remove_file(&vault);
    measure::settle();
    measure::time(&mut add(&vault, documents))
}

/// Adds directories to a new vault, each in a process of its own.
fn into_database(bench: &Bench, documents: &[&Path]) -> Duration {
    let schema = Schema::new(bench, "scale_rates");
    drop(schema.create());
    measure::settle();
    let begun = Instant::now();
    let run = |documents: &&Path| {
        let mut command = add(&schema.address(), documents);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs")
    };
    let running: Vec<_> = documents.iter().map(run).collect();
    for mut process in running {
        assert!(process.wait().expect("its status").success(), "everything is added");
    }
    let took = begun.elapsed();
    let added: i64 = schema.client().query_one("SELECT count(*) FROM artifact", &[]).expect("a count").get(0);
    assert_eq!(usize::try_from(added), Ok(SESSIONS));
    took
}
