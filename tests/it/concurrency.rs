//! Many processes, one vault.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::vault::add::{AddMonitor, ExaminedDocument};

use crate::sandbox::{Sandbox, session};

struct Silent;

impl AddMonitor for Silent {
    fn examined(&mut self, _: &ExaminedDocument) {}
    fn unreadable(&mut self, _: &SourceError) {}
}

#[test]
fn processes_that_add_at_once_lose_nothing() {
    let sandbox = Sandbox::new();
    const PROCESSES: usize = 6;
    const EACH: usize = 40;
    // Neighbors share half of their sessions, and the vault is not created beforehand.
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

/// Reading the files of the vault would take this process's locks away: the others would take it for gone, delete the log
/// that it writes to, and shrink the memory that it maps.
#[test]
fn adding_the_directory_that_the_vault_is_in_does_not_give_up_its_locks() {
    let sandbox = Sandbox::new();
    // The vault's files come between the documents.
    for number in 0..20 {
        sandbox.write(&format!("all/{number}.json"), session(&format!("a {number}"), &[("p", "r")]));
    }
    let vault = ["--vault", "all/0.vault"];
    std::os::unix::fs::symlink("0.vault", sandbox.path("all/1.link")).unwrap();
    let open = runvault::Vault::create(&sandbox.path("all/0.vault")).unwrap();
    let options = ExamineOptions::default();
    let inputs = || Inputs::new(vec![Input::Path(sandbox.path("all"))]);
    assert_eq!(open.add(inputs(), &options, &mut Silent).unwrap().added, 20);
    for number in 0..3 {
        let file =
            sandbox.write(&format!("one/{number}.json"), session(&format!("b {number}"), &[("p", "r")]));
        sandbox.run([&vault[..], &["add", file.to_str().unwrap()]].concat()).expect(0);
        assert!(
            sandbox.path("all/0.vault-wal").exists(),
            "the log of a process that is still there was deleted"
        );
        let text = session(&format!("c {number}"), &[("p", "r")]);
        open.add_document(text.into_bytes(), &options).unwrap();
        open.add(inputs(), &options, &mut Silent).unwrap();
    }
    // Opening it once more and closing that does not give them up either.
    drop(runvault::Vault::open(&sandbox.path("all/1.link")).unwrap());
    sandbox.run([&vault[..], &["stats"]].concat()).expect(0);
    assert!(sandbox.path("all/0.vault-wal").exists());
    drop(open);
    let found = sandbox.run([&vault[..], &["find", "--json"]].concat()).expect(0).json();
    assert_eq!(found.len(), 20 + 3 + 3);
    sandbox.run([&vault[..], &["fsck"]].concat()).expect(0);
    // One that is named is no artifact, and is not read either.
    let ran = sandbox.run([&vault[..], &["add", "all/1.link"]].concat()).expect(2);
    assert!(ran.stderr.contains("this is the vault itself"), "{}", ran.stderr);
}

#[test]
fn a_reader_sees_one_state_while_others_write() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("0.json", session("0", &[("p", "r")]))]);
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    let snapshot = vault.snapshot().unwrap();
    sandbox.add([sandbox.write("1.json", session("1", &[("p", "r")]))]);
    assert_eq!(snapshot.all_artifacts(None).unwrap().len(), 1);
    assert_eq!(vault.snapshot().unwrap().all_artifacts(None).unwrap().len(), 2);
}

/// Eight that add overlapping sets, four that read, one each that checks, backs up and reclaims: no process reports that the
/// vault is busy, nothing is lost, and in the end it is the vault that one process would have made.
#[test]
fn everything_at_once_is_as_if_it_came_one_by_one() {
    const ADDERS: usize = 8;
    const EACH: usize = 60;
    let (sandbox, alone) = (Sandbox::new(), Sandbox::new());
    for adder in 0..ADDERS {
        for number in adder * EACH / 3..adder * EACH / 3 + EACH {
            // Some are recordings of one run.
            let text = format!("what was said in case {} ", number / 5).repeat(30);
            let text = session(&format!("adapter-{number}"), &[("shared prompt", &text), ("other", "r")]);
            sandbox.write(&format!("{adder}/{number}.json"), &text);
            alone.write(&format!("{adder}/{number}.json"), &text);
        }
    }
    let first = sandbox.add([sandbox.path("0/0.json")]).remove(0);
    let start = |arguments: &[&str]| {
        let mut command = sandbox.command();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut children: Vec<Child> = (0..ADDERS).map(|adder| start(&["add", &adder.to_string()])).collect();
    for round in 0..4 {
        children.push(start(&["get", &first]));
        children.push(start(&["find", "--prompt", "shared prompt", "--json"]));
        children.push(start(&["show", &first]));
        children.push(start(&["links", &first, "--depth", "2"]));
        children.push(start(&["fsck"]));
        children.push(start(&["gc"]));
        children.push(start(&["backup", &format!("copy-{round}.vault")]));
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // On a busy machine, recording a further sighting does not wait for all others; it says so, and nothing is missing.
        let is_done = output.status.success() || said.contains("could not be recorded as seen again");
        assert!(is_done, "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    }
    for adder in 0..ADDERS {
        alone.run(["add", &adder.to_string()]).expect(0);
    }
    assert_eq!(sandbox.run(["fsck", "--json"]).expect(0).stdout, "");
    let cores = |sandbox: &Sandbox| -> Vec<String> {
        let found = sandbox.run(["find", "--sort", "core", "--json"]).expect(0).json();
        found.iter().map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect()
    };
    let all = cores(&sandbox);
    assert_eq!(all, cores(&alone));
    assert_eq!(all.len(), EACH + (ADDERS - 1) * EACH / 3);
    for core in all.iter().step_by(9) {
        assert_eq!(sandbox.run(["get", core]).expect(0).stdout, alone.run(["get", core]).expect(0).stdout);
        let links = |sandbox: &Sandbox| sandbox.run(["links", core, "--json"]).expect(0).stdout;
        assert_eq!(links(&sandbox), links(&alone));
    }
    for round in 0..4 {
        let copy = format!("copy-{round}.vault");
        assert_eq!(sandbox.run(["--vault", &copy, "fsck", "--json"]).expect(0).stdout, "");
    }
}
