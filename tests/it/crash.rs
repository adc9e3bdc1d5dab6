//! A success that was reported survives a crash at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use runvault::digest::DigestPrefix;
use runvault::vault::show::ShowRequest;

use crate::sandbox::{Sandbox, session};

/// More than one batch of the program.
const SESSIONS: usize = 2_500;

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let sandbox = Sandbox::new();
    for number in 0..SESSIONS {
        let text = session(&format!("adapter-{number}"), &[("p", &"text ".repeat(100))]);
        sandbox.write(&format!("d/{number:04}.json"), text);
    }
    for round in 0..12 {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(sandbox.path(&format!("v.vault{ending}")));
        }
        check(&sandbox, &add_and_kill(&sandbox, round));
    }
}

/// Kills an `add`. In every other round, that is after it has acknowledged some artifacts and before it can acknowledge all of
/// them: its output is read no further, and does not fit into a pipe. Otherwise at any moment. Gives the lines that it printed.
fn add_and_kill(sandbox: &Sandbox, round: usize) -> Vec<String> {
    let mut command = sandbox.command();
    command.args(["add", "--create", "--json", "d"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::with_capacity(1, child.stdout.take().unwrap());
    let mut printed = String::new();
    let is_half_way = round.is_multiple_of(2);
    if is_half_way {
        for _ in 0..=round * 100 {
            stdout.read_line(&mut printed).unwrap();
        }
    }
    std::thread::sleep(Duration::from_millis(round as u64 * 7));
    child.kill().unwrap();
    child.wait().unwrap();
    stdout.read_to_string(&mut printed).unwrap();
    // The last line may have been cut off by the kill.
    let lines = printed.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    if is_half_way {
        assert!(round * 100 < lines.len() && lines.len() < SESSIONS, "{} lines", lines.len());
    }
    lines
}

fn check(sandbox: &Sandbox, lines: &[String]) {
    if !sandbox.vault().exists() {
        assert!(lines.is_empty());
        return;
    }
    // Opening repairs what the kill left, and whatever is in there is whole.
    let vault = runvault::Vault::open_or_create(&sandbox.vault()).unwrap();
    for line in lines {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let prefix: DigestPrefix = line["core_hash"].as_str().unwrap().parse().unwrap();
        let original = std::fs::read(sandbox.path(line["path"].as_str().unwrap())).unwrap();
        assert_eq!(vault.read(&vault.locate(&prefix).unwrap()).unwrap(), original);
    }
    let artifacts = vault.snapshot().unwrap().all_artifacts(None).unwrap();
    assert!(artifacts.len() >= lines.len());
    for artifact in artifacts.iter().step_by(50) {
        let prefix = artifact.core.0.into();
        vault.read(&vault.locate(&prefix).unwrap()).unwrap();
        assert_eq!(vault.run(&ShowRequest { artifact: artifact.core }).unwrap().mentions.len(), 2);
    }
}

/// With this variable in the environment, this number of rounds instead of 30.
const ROUNDS: &str = "RUNVAULT_TEST_KILLS";

/// The number of runs of a command of which one is not killed.
const WHOLE: usize = 3;

/// Runs commands, and kills most of them at some moment of their life.
struct Killer {
    seed: u64,
    /// How often each command was run, and how long it took when it was last left alone: kills come within that time, so
    /// that they meet commands at work on slow machines as well.
    runs: BTreeMap<String, (usize, Duration)>,
}

impl Killer {
    fn new() -> Self {
        Self { seed: 20_261_120, runs: BTreeMap::new() }
    }

    /// A number that looks random and is the same every time.
    fn below(&mut self, limit: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % limit
    }

    /// Runs a command, and kills it unless it is its turn to be left alone. Gives the lines of JSON that were printed whole.
    fn run(&mut self, sandbox: &Sandbox, arguments: &[&str]) -> Vec<serde_json::Value> {
        let part = u32::try_from(self.below(1_000)).unwrap();
        let (runs, time) = self.runs.entry(arguments[0].to_owned()).or_default();
        let is_whole = runs.is_multiple_of(WHOLE);
        *runs += 1;
        let mut command = sandbox.command();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut printed = String::new();
        if is_whole {
            stdout.read_to_string(&mut printed).unwrap();
            assert!(child.wait().unwrap().success(), "{arguments:?}");
            *time = began.elapsed();
        } else {
            std::thread::sleep(*time * part / 1_000);
            child.kill().unwrap();
            child.wait().unwrap();
            stdout.read_to_string(&mut printed).unwrap();
        }
        let lines = printed.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// What is known of the artifacts by what was printed.
#[derive(Default)]
struct Known {
    /// Was acknowledged as added, and no removal of it was begun since.
    there: BTreeMap<String, Vec<u8>>,
    /// Was acknowledged as removed.
    gone: BTreeSet<String>,
    /// How many documents were written.
    written: usize,
}

impl Known {
    fn add(&mut self, sandbox: &Sandbox, killer: &mut Killer, round: usize) {
        for number in self.written..self.written + 40 {
            // Some are recordings of one run, so that payloads depend on each other.
            let text = format!("answer {} to everything that was asked of it ", number / 4).repeat(40);
            let session = session(&format!("adapter-{number}"), &[("p", &text), ("q", "r")]);
            sandbox.write(&format!("r{round}/{number}.json"), session);
        }
        self.written += 40;
        for line in killer.run(sandbox, &["add", "--json", &format!("r{round}")]) {
            let core = line["core_hash"].as_str().unwrap().to_owned();
            let bytes = std::fs::read(sandbox.path(line["path"].as_str().unwrap())).unwrap();
            self.there.insert(core, bytes);
        }
    }

    fn remove(&mut self, sandbox: &Sandbox, killer: &mut Killer) {
        let cores: Vec<String> = self.there.keys().cloned().collect();
        let mut leaving: Vec<String> =
            (0..cores.len().min(3)).map(|_| cores[killer.below(cores.len())].clone()).collect();
        leaving.dedup();
        if leaving.is_empty() {
            return;
        }
        // Until it is acknowledged, they may be there or not.
        for core in &leaving {
            self.there.remove(core);
        }
        let arguments: Vec<&str> =
            ["rm", "--json", "--force"].into_iter().chain(leaving.iter().map(String::as_str)).collect();
        for line in killer.run(sandbox, &arguments) {
            self.gone.insert(line["core_hash"].as_str().unwrap().to_owned());
        }
    }
}

/// Commands of every sort, one after the other, most of them killed at some moment of their life.
#[test]
fn a_vault_is_whole_whenever_a_command_is_killed() {
    let rounds = std::env::var(ROUNDS).map_or(30, |rounds| rounds.parse().unwrap());
    let sandbox = Sandbox::new();
    let (mut killer, mut known) = (Killer::new(), Known::default());
    known.add(&sandbox, &mut killer, 0);
    for round in 1..rounds {
        match killer.below(10) {
            0..=4 => known.add(&sandbox, &mut killer, round),
            5 | 6 => known.remove(&sandbox, &mut killer),
            7 => drop(killer.run(&sandbox, &["index", "rebuild"])),
            8 => drop(killer.run(&sandbox, &["backup", "copy.vault", "--force"])),
            _ => drop(killer.run(&sandbox, &["gc"])),
        }
        expect_whole(&sandbox, &known, round);
    }
    assert!(known.there.len() > 100 && !known.gone.is_empty());
}

fn expect_whole(sandbox: &Sandbox, known: &Known, round: usize) {
    for vault in ["v.vault", "copy.vault"] {
        if !sandbox.path(vault).exists() {
            continue;
        }
        let ran = sandbox.run(["--vault", vault, "fsck", "--full", "--json"]);
        assert_eq!((ran.status, ran.stdout.as_str()), (0, ""), "round {round}: {vault}: {}", ran.stderr);
    }
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    let get = |core: &str| vault.get(&core.parse().unwrap());
    for (core, bytes) in known.there.iter().skip(round % 7).step_by(7) {
        assert_eq!(&get(core).unwrap(), bytes, "round {round}: {core}");
    }
    for core in &known.gone {
        assert!(get(core).is_err(), "round {round}: {core} is back");
    }
}
