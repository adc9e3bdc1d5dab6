//! Many processes, one vault.

use std::collections::BTreeSet;

use crate::sandbox::{Sandbox, session};

#[test]
fn processes_that_add_at_once_lose_nothing() {
    let sandbox = Sandbox::new();
    const PROCESSES: usize = 6;
    const EACH: usize = 40;
    // Neighbours share half of their sessions, and nobody creates the vault beforehand.
    for process in 0..PROCESSES {
        for number in 0..EACH {
            let number = process * EACH / 2 + number;
            let text = session(&format!("adapter-{number}"), &[("shared prompt", "r")]);
            sandbox.write(&format!("{process}/{number}.json"), text);
        }
    }
    let children: Vec<_> = (0..PROCESSES)
        .map(|process| {
            let mut command = sandbox.command();
            command.args(["add", "--json", &process.to_string()]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut added = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        added += String::from_utf8(output.stdout).unwrap().matches("\"outcome\":\"added\"").count();
    }
    let expected = (PROCESSES + 1) * EACH / 2;
    assert_eq!(added, expected, "every session is new to exactly one process");
    let found = sandbox.run(["find", "sessions", "--prompt", "shared prompt", "--json"]).expect(0).json();
    let cores: BTreeSet<String> = found.iter().map(|line| line["core_hash"].to_string()).collect();
    assert_eq!(cores.len(), expected);
}

#[test]
fn a_reader_sees_one_state_while_others_write() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("0.json", session("0", &[("p", "r")]))]);
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    let snapshot = vault.snapshot().unwrap();
    sandbox.add([sandbox.write("1.json", session("1", &[("p", "r")]))]);
    assert_eq!(snapshot.artifacts(None).unwrap().len(), 1);
    assert_eq!(vault.snapshot().unwrap().artifacts(None).unwrap().len(), 2);
}
