//! How the time of commands grows with what one artifact shares with others: each row at one, two, four and eight
//! times a size.
//!
//! `cargo bench --bench growth`; `benches/README.md` says how to read it. `RUNVAULT_GROWTH_SCALE` multiplies the sizes,
//! `RUNVAULT_GROWTH_PROGRAM` measures another program, such as an older one. Names of rows select them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "a bench prints a table, and fails by panicking"
)]

mod make;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A row: what is made of a number, and what is run on it.
struct Row {
    name: &'static str,
    /// What is counted.
    what: &'static str,
    size: usize,
    /// Fills the vault, and writes what the command needs into the directory.
    fill: fn(&Place, usize),
    arguments: &'static [&'static str],
    /// The exit statuses that are right.
    statuses: &'static [i32],
    /// Whether it can be run several times.
    repeats: bool,
}

const ROWS: &[Row] = &[
    Row {
        name: "forks",
        what: "traces of one header",
        size: 100,
        fill: make::forking_traces,
        arguments: &["forks"],
        statuses: &[1],
        repeats: true,
    },
    Row {
        name: "links",
        what: "traces of one header",
        size: 100,
        fill: make::forking_traces,
        arguments: &["links", "latest", "--depth", "3"],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "path",
        what: "runs of one name",
        size: 250,
        fill: make::runs_of_one_name,
        arguments: &["path", "@one", "@other"],
        statuses: &[1],
        repeats: true,
    },
    Row {
        name: "forget",
        what: "sessions and runs",
        size: 50,
        fill: make::shared_exchanges,
        arguments: &["forget", "--keep-last", "1", "--yes"],
        statuses: &[0],
        repeats: false,
    },
    Row {
        name: "references",
        what: "references",
        size: 2_500,
        fill: make::references,
        arguments: &["links", "latest"],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "capture",
        what: "captures of one artifact",
        size: 500,
        fill: make::captures,
        arguments: &["add", "one-more.json"],
        statuses: &[0],
        repeats: false,
    },
    Row {
        name: "find",
        what: "sessions with one prompt",
        size: 1_000,
        fill: make::sessions_of_one_prompt,
        arguments: &["find", "--prompt", make::PROMPT, "--limit", "3"],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "replay",
        what: "sessions with one prompt",
        size: 1_000,
        fill: make::sessions_of_one_prompt,
        arguments: &["replay", "any", "--prompt", make::PROMPT],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "show",
        what: "sessions with one prompt",
        size: 1_000,
        fill: make::sessions_of_one_prompt,
        arguments: &["show", "latest"],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "audit",
        what: "effects and steps",
        size: 500,
        fill: make::effects,
        arguments: &["audit", "@contract", "@run"],
        statuses: &[0, 1],
        repeats: true,
    },
    Row {
        name: "rm",
        what: "differences to what is removed",
        size: 500,
        fill: make::differences,
        arguments: &["rm", "@base", "--force"],
        statuses: &[0],
        repeats: false,
    },
    Row {
        name: "parts",
        what: "parts of traces of 20 records",
        size: 1_000,
        fill: make::parts_of_many,
        arguments: &["add", "parts", "--create"],
        statuses: &[0],
        repeats: false,
    },
    Row {
        name: "one-trace",
        what: "parts of one trace",
        size: 100,
        fill: make::parts,
        arguments: &["add", "parts", "--create"],
        statuses: &[0],
        repeats: false,
    },
    Row {
        name: "scan",
        what: "beginnings of keys in a file",
        size: 125_000,
        fill: make::beginnings_of_keys,
        arguments: &["add", "--create", "--dry-run", "--as", "attachment", "keys.txt"],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "redaction",
        what: "members and messages of a call",
        size: 10_000,
        fill: make::call_to_redact,
        arguments: &[
            "import",
            "--create",
            "--dry-run",
            "--no-original",
            "--redact",
            "zk-[A-Z]{8}",
            "calls.jsonl",
        ],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "members",
        what: "members with digests of one object",
        size: 10_000,
        fill: make::members,
        arguments: &["verify", "members.rpk"],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "members-add",
        what: "members with digests of one object",
        size: 10_000,
        fill: make::members,
        arguments: &["add", "members.rpk", "--create"],
        statuses: &[0],
        repeats: false,
    },
    Row {
        name: "chain-forget",
        what: "records of traces that extend others",
        size: 10_000,
        fill: make::chain,
        arguments: &["forget", "--keep-last", "1", "--dry-run"],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "chain-list",
        what: "records of traces that extend others",
        size: 10_000,
        fill: make::chain,
        arguments: &["list"],
        statuses: &[0],
        repeats: true,
    },
    Row {
        name: "chain-forks",
        what: "records of traces that extend others",
        size: 10_000,
        fill: make::chain,
        arguments: &["forks"],
        statuses: &[0, 1],
        repeats: true,
    },
    Row {
        name: "chain-fsck",
        what: "records of traces that extend others",
        size: 10_000,
        fill: make::chain,
        arguments: &["fsck"],
        statuses: &[0],
        repeats: true,
    },
];

/// A directory with a vault.
pub struct Place {
    root: PathBuf,
}

impl Place {
    pub fn vault(&self) -> PathBuf {
        self.root.join("v.vault")
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.root)).expect("a directory");
        std::fs::write(path, bytes).expect("written");
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let scale: usize =
        std::env::var("RUNVAULT_GROWTH_SCALE").map_or(1, |text| text.parse().expect("a number"));
    let program = std::env::var_os("RUNVAULT_GROWTH_PROGRAM");
    let program = program.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_runvault")), PathBuf::from);
    println!(
        "{:<12} {:<36} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7}",
        "command", "n", "n", "1x", "2x", "4x", "8x", "2x/1x", "4x/2x", "8x/4x"
    );
    for row in ROWS.iter().filter(|row| wanted.is_empty() || wanted.iter().any(|name| name == row.name)) {
        let size = row.size * scale;
        let [one, two, four, eight] = [1, 2, 4, 8].map(|times| measured(row, size * times, &program));
        let ratio = |more: Duration, less: Duration| more.as_secs_f64() / less.as_secs_f64();
        let [ones, twos, fours, eights] =
            [one, two, four, eight].map(|time| format!("{:.3} s", time.as_secs_f64()));
        let [first, second, third] = [ratio(two, one), ratio(four, two), ratio(eight, four)];
        println!(
            "{:<12} {:<36} {size:>8} {ones:>9} {twos:>9} {fours:>9} {eights:>9} {first:>7.2} {second:>7.2} {third:>7.2}",
            row.name, row.what
        );
    }
}

/// Whatever takes longer is ended.
const LONGEST: Duration = Duration::from_secs(20);

/// The least time that the command of a row takes on a vault of this size.
fn measured(row: &Row, size: usize, program: &Path) -> Duration {
    let directory = tempfile::tempdir().expect("a directory");
    let place = Place { root: directory.path().to_owned() };
    (row.fill)(&place, size);
    let times = if row.repeats { 3 } else { 1 };
    let run = || {
        let mut command = Command::new(program);
        command.args(row.arguments).current_dir(&place.root).env("RUNVAULT_VAULT", place.vault());
        command
            .env("RUNVAULT_CONFIG", place.root.join("none.toml"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let begun = Instant::now();
        let mut child = command.spawn().expect("it runs");
        let status = loop {
            match child.try_wait().expect("its status") {
                Some(status) => break status.code(),
                None if begun.elapsed() > LONGEST => {
                    child.kill().and_then(|()| child.wait()).expect("killed");
                    return begun.elapsed();
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let time = begun.elapsed();
        assert!(status.is_some_and(|status| row.statuses.contains(&status)), "{}: {status:?}", row.name);
        time
    };
    let first = run();
    // What takes long is measured once.
    let again = if first > Duration::from_secs(1) { 0 } else { times - 1 };
    (0..again).map(|_| run()).fold(first, Duration::min)
}
