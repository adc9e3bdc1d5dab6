//! The clients of `examples/replay`, where their languages are installed.

#![allow(clippy::print_stderr, reason = "who runs the tests learns what was not tried")]

use std::path::Path;
use std::process::{Command, Output};

use super::{LABEL, SUMMARY, examples};
use crate::sandbox::{Ran, Sandbox, repository};

/// Runs a client with the program where it looks for it.
fn run(sandbox: &Sandbox, program: &str, client: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    let built = Path::new(env!("CARGO_BIN_EXE_runvault")).parent().unwrap().to_owned();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(built).chain(std::env::split_paths(&rest))).unwrap();
    let mut command = Command::new(program);
    command.env("PATH", path).env("RUNVAULT_VAULT", sandbox.vault());
    command.env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
    command.arg(client).args(arguments).output()
}

/// What every client does when it is run.
fn try_out(program: &str, client: &Path) {
    let sandbox = examples();
    let ran: Ran = match run(&sandbox, program, client, &["4df877dec7f4", SUMMARY, LABEL]) {
        Ok(output) => output.into(),
        Err(error) => {
            eprintln!("skipped: {program} cannot be run: {error}");
            return;
        }
    };
    let ran = ran.expect(0);
    assert_eq!(ran.stdout, "The export to CSV stops after 1,000 rows since the last update.\nbug\n");
    assert!(
        ran.stderr.contains("2 requests, 0 refused; 1 of 3 recordings never asked for"),
        "{}",
        ran.stderr
    );
    let missed: Ran = run(&sandbox, program, client, &["4df877dec7f4", "never é\u{2028}😀"]).unwrap().into();
    assert!(missed.status == 1 && missed.stderr.contains("was not recorded"), "{}", missed.stderr);
    let nothing: Ran = run(&sandbox, program, client, &["000000", LABEL]).unwrap().into();
    assert!(nothing.status == 1 && nothing.stderr.contains("ended"), "{}", nothing.stderr);
}

#[test]
fn python() {
    try_out("python3", &repository("examples/replay/client.py"));
}

/// The types of `client.ts`, and what is left without them. Node.js can take them out itself, but not everywhere.
const TYPES: [(&str, &str); 9] = [
    ("type Answer = { id: null; response: string; error?: { code: string; message: string } };\n", ""),
    ("  code: string;\n", "  code;\n"),
    ("(error: { code: string; message: string })", "(error)"),
    ("recording: string,", "recording,"),
    ("options: string[] =", "options ="),
    ("(prompt: string)", "(prompt)"),
    (": Promise<string>", ""),
    (": Promise<number>", ""),
    ("answer: Answer", "answer"),
];

#[test]
fn typescript() {
    let sandbox = Sandbox::new();
    let mut script = std::fs::read_to_string(repository("examples/replay/client.ts")).unwrap();
    for (typed, plain) in TYPES {
        assert!(script.contains(typed), "{typed}");
        script = script.replace(typed, plain);
    }
    try_out("node", &sandbox.write("client.mjs", script));
}

/// As it stands, where Node.js takes the types out.
#[test]
fn typescript_as_it_is() {
    let features = Command::new("node").args(["-p", "process.features.typescript"]).output();
    if features.is_ok_and(|output| output.stdout.starts_with(b"strip")) {
        try_out("node", &repository("examples/replay/client.ts"));
    } else {
        eprintln!("skipped: there is no Node.js that reads TypeScript");
    }
}
