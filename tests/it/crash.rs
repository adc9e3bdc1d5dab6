//! A success that was reported survives a crash at any moment.

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
