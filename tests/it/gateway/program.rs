//! Programs that are ended from outside.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::client::chat;
use super::upstream::Upstream;
use super::{kinds, steps};
use crate::sandbox::Sandbox;

/// Prints the address of the gateway, and does not end by itself.
const PROGRAM: &str = r#"echo "$RUNVAULT_GATEWAY"; exec sleep 1000"#;

/// Runs the program, makes a call, and sends these signals. Returns the exit status.
fn ended_by(sandbox: &Sandbox, upstream: &Upstream, signals: &[Signal]) -> Option<i32> {
    let server = format!("openai=http://{}", upstream.address);
    let mut command = sandbox.command();
    command.args(["exec", "--create", "--mode=record", "--upstream", &server, "--", "sh", "-c", PROGRAM]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut address = String::new();
    output.read_line(&mut address).unwrap();
    let address = address.trim().strip_prefix("http://").unwrap().parse().unwrap();
    chat(address, "one", false).expect(200);
    for signal in signals {
        kill_process(Pid::from_child(&child), *signal).unwrap();
    }
    child.wait().unwrap().code()
}

#[test]
fn sigterm_ends_the_program_and_the_run_is_stored() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    assert_eq!(ended_by(&sandbox, &upstream, &[Signal::TERM]), Some(143));
    assert_eq!((kinds(&sandbox), steps(&sandbox).len()), (vec!["model_io".to_owned(), "rpk".to_owned()], 2));

    // A process group gets it, too, and a terminal sends Ctrl-C: neither keeps the run from being stored.
    let sandbox = Sandbox::without_vault();
    let signals = [Signal::INT, Signal::INT, Signal::TERM, Signal::TERM];
    assert_eq!(ended_by(&sandbox, &upstream, &signals), Some(143));
    assert_eq!(kinds(&sandbox), ["model_io", "rpk"]);
}
