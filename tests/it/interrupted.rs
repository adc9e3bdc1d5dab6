//! Ctrl-C while artifacts are added or imported.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Sandbox, session};

/// More files than fit into the largest batch, what the program reads ahead, and the lines that a pipe holds: about 6,000.
const FILES: usize = 10_000;

#[test]
fn ctrl_c_ends_with_the_summary_of_what_is_stored() {
    let sandbox = Sandbox::new();
    for number in 0..FILES {
        sandbox.write(&format!("in/{number}.json"), session(&format!("adapter-{number}"), &[]));
    }
    interrupt(&sandbox, &["add", "in"]);
}

#[test]
fn ctrl_c_ends_an_import_with_the_summary_of_what_is_stored() {
    let source = Sandbox::new();
    for number in 0..FILES {
        source.write(&format!("in/{number}.json"), session(&format!("adapter-{number}"), &[]));
    }
    source.run(["add", "in", "--quiet"]).expect(0);
    let sandbox = Sandbox::new();
    source.run(["tag", "set", "latest", "last"]).expect(0);
    let bundle = sandbox.path("all.rvz");
    source.run(["export", "--all", "-o", bundle.to_str().unwrap()]).expect(0);
    interrupt(&sandbox, &["import", "all.rvz"]);
    sandbox.run(["import", "all.rvz"]).expect(0);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).stdout.lines().count(), FILES);
    sandbox.run(["show", "@last"]).expect(0);
}

/// Interrupts a command that adds [`FILES`] artifacts after it has listed the first.
fn interrupt(sandbox: &Sandbox, arguments: &[&str]) {
    let mut command = sandbox.command();
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.starts_with("added"), "{first}");
    // It cannot have finished: the pipe does not hold the lines of all files, and they are not read yet.
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let listed = 1 + lines.lines().map(Result::unwrap).count();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{told}");
    assert!(told.contains(&format!("{listed} added, 0 seen again")), "{listed}: {told}");
    assert!(told.ends_with("error: interrupted; the other inputs were not examined\n"), "{told}");
    assert!(listed < FILES);
    // Everything that was listed is stored, and nothing else is.
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).stdout.lines().count(), listed);
    sandbox.run(["fsck", "--quick"]).expect(0);
}
