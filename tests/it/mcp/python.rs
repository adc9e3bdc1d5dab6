//! The client of the official Python SDK.

use std::io::Write;
use std::process::Command;

use super::{examples, repository};
use crate::sandbox::{Ran, program};

/// The Python interpreter whose package `mcp` is used.
const PYTHON: &str = "RUNVAULT_TEST_CLIENTS";

/// Says what is skipped, also if the output of tests is captured.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: mcp with the Python SDK; {why}");
}

#[test]
fn clients_of_the_python_sdk_use_everything() {
    let Ok(python) = std::env::var(PYTHON) else {
        return skip(&format!("{PYTHON} does not name an interpreter"));
    };
    if !Command::new(&python).args(["-c", "import mcp"]).output().unwrap().status.success() {
        return skip("it is not installed");
    }
    let sandbox = examples();
    let mut command = Command::new(&python);
    command.arg(repository("tests/clients/mcp_client.py")).arg(program());
    command.arg(sandbox.vault()).env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
    let ran = Ran::from(command.output().unwrap()).expect(0);
    assert!(ran.stdout.ends_with("all answered\n"), "{}{}", ran.stdout, ran.stderr);
}
