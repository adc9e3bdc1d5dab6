//! The clients of `examples/replay`, where their languages are installed.

#![allow(clippy::print_stderr, reason = "the output of the tests names what was not tried")]

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{LABEL, SUMMARY, examples};
use crate::sandbox::{Ran, Sandbox, program, repository, run_pack};

/// The session of the examples, and the client that plays it.
const SESSION: &str = "4df877dec7f4";

/// A language with a client.
struct Language {
    program: &'static str,
    client: &'static str,
    /// What makes scripts, and what goes before them.
    extension: &'static str,
    import: &'static str,
}

const PYTHON: Language = Language {
    program: "python3",
    client: "examples/replay/runvault_replay.py",
    extension: "py",
    import: "import sys\nsys.path.insert(0, sys.argv[1])\nsys.dont_write_bytecode = True\nfrom runvault_replay import *\n",
};

const NODE: Language = Language {
    program: "node",
    client: "examples/replay/runvault-replay.mjs",
    extension: "mjs",
    import: "const { Ended, Miss, RecordedError, Replay, ReplayError } =\n  \
        await import(`file://${process.argv[2]}/runvault-replay.mjs`);\n",
};

impl Language {
    /// Whether the language is there. Node.js must not be older than the oldest version that is supported.
    fn is_there(&self) -> bool {
        let version = Command::new(self.program).arg("--version").output();
        let is_there = version.is_ok_and(|output| {
            let version = String::from_utf8_lossy(&output.stdout).into_owned();
            let number = version.trim_start_matches(['v', 'P', 'y', 't', 'h', 'o', 'n', ' ']);
            let major: u32 = number.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
            output.status.success() && major >= if self.program == "node" { 20 } else { 3 }
        });
        if !is_there {
            eprintln!("skipped: {} of a version that is supported is not installed", self.program);
        }
        is_there
    }

    /// Runs a file with the built program where clients look for it.
    fn run(&self, sandbox: &Sandbox, file: &Path, arguments: &[&str]) -> Ran {
        let built = Path::new(program()).parent().unwrap().to_owned();
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(built).chain(std::env::split_paths(&rest))).unwrap();
        let mut command = Command::new(self.program);
        command.env("PATH", path).env("RUNVAULT_VAULT", sandbox.vault());
        command.env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
        command.arg(file).args(arguments).output().unwrap().into()
    }

    /// Runs a script that imports the client as a module. Its arguments are the folder of the client, and `arguments`.
    fn script(&self, sandbox: &Sandbox, script: &str, arguments: &[&str]) -> Ran {
        let name = format!("script.{}", self.extension);
        let file = sandbox.write(&name, format!("{}{script}", self.import));
        let folder = repository("examples/replay");
        let arguments = [&[folder.to_str().unwrap()], arguments].concat();
        self.run(sandbox, &file, &arguments)
    }
}

/// What every client does when it is run.
fn try_out(language: &Language) {
    if !language.is_there() {
        return;
    }
    let sandbox = examples();
    let client = repository(language.client);
    let run = |arguments: &[&str]| language.run(&sandbox, &client, arguments);
    let ran = run(&[SESSION, SUMMARY, LABEL]).expect(0);
    assert_eq!(ran.stdout, "The export to CSV stops after 1,000 rows since the last update.\nbug\n");
    assert!(ran.stderr.contains("2 requests, 0 refused; 1 of 3 recordings unused"), "{}", ran.stderr);
    let missed = run(&[SESSION, "never é\u{2028}😀"]);
    assert!(missed.status == 1 && missed.stderr.contains("was not recorded"), "{}", missed.stderr);
    let nothing = run(&["000000", LABEL]);
    assert!(nothing.status == 1 && nothing.stderr.contains("ended"), "{}", nothing.stderr);
}

#[test]
fn python() {
    try_out(&PYTHON);
}

#[test]
fn node() {
    try_out(&NODE);
}

/// Runs a script with the session of the examples, and expects what it prints.
fn prints(language: &Language, script: &str, expected: &str) {
    if !language.is_there() {
        return;
    }
    let ran = language.script(&examples(), script, &[SESSION, SUMMARY]).expect(0);
    assert_eq!(ran.stdout, expected, "{}", ran.stderr);
}

#[test]
fn the_with_block_of_python_fails_if_recordings_were_not_played() {
    prints(
        &PYTHON,
        r#"
session, summary = sys.argv[2:]
try:
    with Replay(session, "--fail-unused") as replay:
        replay.respond(summary)
except Ended as error:
    print("failed", error.status)
with Replay(session) as replay:
    replay.respond(summary)
    print("closed", replay.close())
try:
    with Replay("000000"):
        pass
except Ended as error:
    print("failed", error.status)
"#,
        "failed 1\nclosed 0\nfailed 1\n",
    );
}

#[test]
fn the_with_block_of_python_does_not_hide_what_went_wrong_in_it() {
    prints(
        &PYTHON,
        r#"
session, summary = sys.argv[2:]
try:
    with Replay(session, "--fail-unused") as replay:
        replay.respond(summary)
        replay.respond(summary)
except Miss as miss:
    print(miss.code)
try:
    with Replay(session, "--fail-unused") as replay:
        raise KeyError("mine")
except KeyError as error:
    print(error)
"#,
        "no_occurrence\n'mine'\n",
    );
}

#[test]
fn finish_of_node_fails_if_recordings_were_not_played() {
    prints(
        &NODE,
        r#"
const [session, summary] = process.argv.slice(3);
const unused = new Replay(session, ["--fail-unused"]);
await unused.respond(summary);
await unused.finish().catch((error) => console.log("failed", error instanceof Ended, error.status));
const closed = new Replay(session, ["--fail-unused"]);
console.log("closed", await closed.close(), await closed.close());
const good = new Replay(session);
const answers = await Promise.allSettled([good.respond(summary), good.respond(summary)]);
console.log(answers.map(({ status, reason }) => `${status} ${reason?.code}`).join());
await good.finish();
const nothing = new Replay("000000");
await nothing.respond(summary).catch((error) => console.log(error.name, error.status));
"#,
        "failed true 1\nclosed 1 1\nfulfilled undefined,rejected no_occurrence\nEnded 1\n",
    );
}

#[test]
fn a_program_that_is_missing_is_an_error_that_can_be_caught() {
    prints(
        &NODE,
        r#"
const replay = new Replay("any", [], "no-such-program");
for (const attempt of [() => replay.respond("p"), () => replay.close(), () => replay.finish()]) {
  await attempt().catch((error) => console.log(error.code));
}
new Replay("any", [], "no-such-program");
await new Promise((resolve) => setImmediate(resolve));
console.log("went on");
"#,
        "ENOENT\nENOENT\nENOENT\nwent on\n",
    );
    prints(
        &PYTHON,
        "try:\n    Replay('any', program='no-such-program')\nexcept FileNotFoundError as error:\n    print(error.errno)\n",
        "2\n",
    );
}

/// A module is given the arguments of whoever imports it.
#[test]
fn importing_a_client_runs_nothing() {
    prints(&NODE, "console.log(typeof Replay);\n", "function\n");
    prints(&PYTHON, "print(Replay.__name__)\n", "Replay\n");
}

#[test]
fn clients_play_tools_and_their_errors() {
    let steps = [
        json!({"type": "tool.request", "input": {"tool": "weather", "args": ["Paris"], "kwargs": {}}}),
        json!({"type": "tool.response", "input": {"tool": "weather"}, "output": {"result": "sun\u{2028}ny"}}),
        json!({"type": "tool.request", "input": {"tool": "weather", "args": ["Atlantis"], "kwargs": {}}}),
        json!({"type": "error.event", "input": {"boundary": "tool", "target": "weather"},
            "output": {"error_type": "KeyError", "message": "no such city"}, "metadata": {"kind": "runtime"}}),
    ];
    let sandbox = Sandbox::new();
    let run = sandbox.add([sandbox.write("run.rpk", run_pack("run-1", &steps))]).remove(0);
    let python = r#"
with Replay.of_run(sys.argv[2], "--fail-unused") as run:
    print(ascii(run.call("weather", ["Paris"])["result"]))
    try:
        run.call("weather", ["Atlantis"])
    except RecordedError as error:
        print(error, error.output["error_type"])
    try:
        run.call("weather", ["Rome"])
    except Miss as miss:
        print(miss.code)
"#;
    let node = r#"
const run = Replay.ofRun(process.argv[3], ["--fail-unused"]);
console.log((await run.call("weather", ["Paris"])).result.replace("\u2028", "\\u2028"));
await run.call("weather", ["Atlantis"]).catch((error) => console.log(error.message, error.output.error_type));
await run.call("weather", ["Rome"]).catch((error) => console.log(error.code));
await run.finish();
"#;
    for (language, script) in [(PYTHON, python), (NODE, node)] {
        if language.is_there() {
            let ran = language.script(&sandbox, script, &[&run]).expect(0);
            let said = ran.stdout.replace('\'', "");
            assert_eq!(said, "sun\\u2028ny\nno such city KeyError\nnot_recorded\n", "{}", ran.stderr);
        }
    }
}

/// Every parameter and result has a type.
#[test]
fn the_client_of_python_is_typed() {
    prints(
        &PYTHON,
        r#"
import inspect, runvault_replay, typing
checked = 0
for owner in [runvault_replay, *(getattr(runvault_replay, name) for name in runvault_replay.__all__)]:
    for name, member in vars(owner).items():
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and function.__module__ == "runvault_replay":
            hints = typing.get_type_hints(function)
            expected = {*inspect.signature(function).parameters, "return"} - {"self", "cls"}
            assert expected <= {*hints}, (name, expected - {*hints})
            checked += 1
print(checked > 8)
"#,
        "True\n",
    );
}

/// The declarations name what the module has, and nothing else.
#[test]
fn the_types_of_the_client_of_node_are_those_of_the_module() {
    prints(
        &NODE,
        r#"
const { readFileSync } = await import("node:fs");
const folder = process.argv[2];
const module = await import(`file://${folder}/runvault-replay.mjs`);
const declared = {};
let members;
for (const line of readFileSync(`${folder}/runvault-replay.d.mts`, "utf8").split("\n")) {
  const exported = line.match(/^export class (\w+)/);
  if (exported) declared[exported[1]] = members = [];
  if (/^export (interface|type)/.test(line)) members = undefined;
  const method = line.match(/^  (static )?(\w+)\(/);
  if (method && members) members.push(`${method[1] ?? ""}${method[2]}`);
}
const actual = {};
for (const [name, value] of Object.entries(module)) {
  const own = (object) => Object.getOwnPropertyNames(object).filter((key) => typeof object[key] === "function");
  actual[name] = [...own(value).map((key) => `static ${key}`), ...own(value.prototype)];
}
const sorted = (object) => JSON.stringify(Object.entries(object).map(([key, list]) => [key, list.sort()]).sort());
console.log(sorted(declared) === sorted(actual) ? "same" : `${sorted(declared)}\n${sorted(actual)}`);
"#,
        "same\n",
    );
}
