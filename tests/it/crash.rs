//! A success that was reported survives a crash at any moment.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use runvault::digest::DigestPrefix;

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
    let mut killed_half_way = 0;
    for round in 0..12 {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(sandbox.path(&format!("v.vault{ending}")));
        }
        let lines = add_and_kill(&sandbox, round);
        killed_half_way += usize::from(!lines.is_empty() && lines.len() < SESSIONS);
        check(&sandbox, &lines);
    }
    assert!(killed_half_way > 0, "no kill came while artifacts were being stored");
}

/// Kills an `add`, in every other round just after it has acknowledged something. Gives the lines that it printed.
fn add_and_kill(sandbox: &Sandbox, round: u64) -> Vec<String> {
    let mut command = sandbox.command();
    command.args(["add", "--json", "d"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    if round.is_multiple_of(2) {
        stdout.read_line(&mut printed).unwrap();
    }
    let reader = std::thread::spawn(move || {
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        rest
    });
    std::thread::sleep(Duration::from_millis(round * 7));
    child.kill().unwrap();
    child.wait().unwrap();
    printed += &reader.join().unwrap();
    // The last line may have been cut off by the kill.
    printed.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect()
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
    let artifacts = vault.snapshot().unwrap().artifacts(None).unwrap();
    assert!(artifacts.len() >= lines.len());
    for artifact in artifacts.iter().step_by(50) {
        let prefix = artifact.core.0.into();
        vault.read(&vault.locate(&prefix).unwrap()).unwrap();
        assert_eq!(vault.describe(&prefix).unwrap().mentions.len(), 2);
    }
}

/// With this variable in the environment, so many kills instead of the 200 of every day.
const ROUNDS: &str = "RUNVAULT_TEST_KILLS";

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// What is known of the artifacts by what was printed.
#[derive(Default)]
struct Known {
    /// Was acknowledged as added, and no removal of it was begun since.
    there: BTreeMap<String, Vec<u8>>,
    /// Was acknowledged as removed.
    gone: BTreeSet<String>,
}

/// Commands of every sort, one after the other, each killed at some moment of its life.
#[test]
fn whatever_is_killed_whenever_the_vault_is_whole() {
    let rounds = std::env::var(ROUNDS).map_or(200, |rounds| rounds.parse().unwrap());
    let sandbox = Sandbox::new();
    let mut numbers = Numbers(20_261_120);
    let (mut known, mut written, mut killed) = (Known::default(), 0, 0);
    for round in 0..rounds {
        match numbers.below(10) {
            0..=4 => {
                for _ in 0..40 {
                    // Some are recordings of one run, so that payloads depend on each other.
                    let name = format!("r{round}/{written}.json");
                    let text =
                        format!("answer {} to everything that was asked of it ", written / 4).repeat(40);
                    sandbox.write(&name, session(&format!("adapter-{written}"), &[("p", &text), ("q", "r")]));
                    written += 1;
                }
                let ran = kill(&sandbox, &["add", "--json", &format!("r{round}")], &mut numbers, &mut killed);
                for line in ran {
                    let core = line["core_hash"].as_str().unwrap().to_owned();
                    let bytes = std::fs::read(sandbox.path(line["path"].as_str().unwrap())).unwrap();
                    known.gone.remove(&core);
                    known.there.insert(core, bytes);
                }
            }
            5 | 6 => {
                let cores: Vec<String> = known.there.keys().cloned().collect();
                let leaving: Vec<String> =
                    (0..cores.len().min(3)).map(|_| cores[numbers.below(cores.len())].clone()).collect();
                let mut arguments = vec!["rm", "--json", "--force"];
                arguments.extend(leaving.iter().map(String::as_str));
                if leaving.is_empty() {
                    continue;
                }
                // Until it is acknowledged, they may be there or not.
                for core in &leaving {
                    known.there.remove(core);
                }
                for line in kill(&sandbox, &arguments, &mut numbers, &mut killed) {
                    known.gone.insert(line["core_hash"].as_str().unwrap().to_owned());
                }
            }
            7 => drop(kill(&sandbox, &["reindex"], &mut numbers, &mut killed)),
            8 => drop(kill(&sandbox, &["backup", "copy.vault", "--force"], &mut numbers, &mut killed)),
            _ => drop(kill(&sandbox, &["gc"], &mut numbers, &mut killed)),
        }
        expect_whole(&sandbox, &known, round);
    }
    assert!(killed * 3 > rounds, "only {killed} of {rounds} were killed before they ended");
    assert!(known.there.len() > 100 && !known.gone.is_empty());
}

/// Runs and kills. Gives the lines of JSON that were printed whole.
fn kill(
    sandbox: &Sandbox,
    arguments: &[&str],
    numbers: &mut Numbers,
    killed: &mut usize,
) -> Vec<serde_json::Value> {
    let mut command = sandbox.command();
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    std::thread::sleep(Duration::from_micros(numbers.below(60_000) as u64));
    child.kill().unwrap();
    *killed += usize::from(child.wait().unwrap().code().is_none());
    let mut printed = String::new();
    stdout.read_to_string(&mut printed).unwrap();
    let lines = printed.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn expect_whole(sandbox: &Sandbox, known: &Known, round: usize) {
    for vault in ["v.vault", "copy.vault"] {
        if !sandbox.path(vault).exists() {
            continue;
        }
        let ran = sandbox.run(["--vault", vault, "fsck", "--full", "--json"]);
        // Whoever is killed before there is a vault may leave a database with nothing in it.
        if vault == "v.vault" && known.there.is_empty() && ran.stderr.contains("it is empty") {
            continue;
        }
        assert_eq!((ran.status, ran.stdout.as_str()), (0, ""), "round {round}: {vault}: {}", ran.stderr);
    }
    if known.there.is_empty() {
        return;
    }
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    let is_there = |core: &str| vault.get(&core.parse().unwrap());
    for (core, bytes) in known.there.iter().skip(round % 7).step_by(7) {
        assert_eq!(&is_there(core).unwrap(), bytes, "round {round}: {core}");
    }
    for core in &known.gone {
        assert!(is_there(core).is_err(), "round {round}: {core} is back");
    }
    if round % 50 == 49 {
        for (core, bytes) in &known.there {
            assert_eq!(&is_there(core).unwrap(), bytes, "round {round}: {core}");
        }
    }
}
