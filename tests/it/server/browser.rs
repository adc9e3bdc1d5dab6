//! The pages in a real browser: `tests/browser` drives Chromium over them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::annotations::writable;
use super::conversations::{hostile, long_run, record, weather};
use super::{HOSTILE, Serving, cores, examples, hostile_run};
use crate::gateway::clients::{self, Providers};
use crate::sandbox::{Sandbox, repository, run_pack, sealed, session};

/// Number of steps of the run that is opened.
const STEPS: usize = 12;

/// The prompt of the session with long texts.
const LONG_PROMPT: &str = "long";

/// A run with calls of a model and of tools, some of which fail.
fn run(number: usize, steps: usize) -> String {
    let steps: Vec<Value> = (0..steps)
        .map(|step| match step % 4 {
            0 => json!({"type": "model.request", "input": {"messages": [{"role": "user", "content": format!("Which label fits ticket {number}?")}]},
                "metadata": {"model": "small-1"}}),
            1 => json!({"type": "model.response", "output": {"content": format!("Ticket {number} is a bug.\nIt needs a test.")}}),
            2 => json!({"type": "tool.request", "input": {"tool": "tracker.label", "arguments": {"ticket": number, "label": "bug"}}}),
            _ => json!({"type": "error.event", "output": {"message": format!("ticket {number} is locked")}}),
        })
        .collect();
    run_pack(&format!("nightly-{number:03}"), &steps)
}

/// A run and a session with long texts without spaces, some of them escapes.
fn long() -> (String, String) {
    let text = "\u{202e}\u{2028}".repeat(50);
    let step = json!({"type": "tool.response", "input": {"tool": text}, "output": {"result": text}});
    let mut pack: Value = serde_json::from_str(&run_pack(&text, &[step])).unwrap();
    pack["metadata"]["source_run_id"] = text.as_str().into();
    let mut answered: Value = serde_json::from_str(&session(&text, &[(LONG_PROMPT, &text)])).unwrap();
    answered["model_id"] = text.as_str().into();
    (sealed(pack), answered.to_string())
}

/// Adds artifacts with hostile text in everything that is free, and returns their core hashes.
fn add_hostile(sandbox: &Sandbox) -> Vec<String> {
    let mut cores = sandbox.add([
        sandbox.write("hostile.json", session(HOSTILE, &[(HOSTILE, HOSTILE)])),
        sandbox.write("hostile.rpk", hostile_run()),
    ]);
    cores.push(record(sandbox, &hostile()));
    cores
}

/// A vault with something for every page, and the names of what the tests open.
fn scene() -> (Sandbox, Value) {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let examples = ["session.json", "trace.ndjson", "contract.yaml", "pack"];
    let cores = sandbox.add(examples.map(|name| repository("examples").join(name)));
    let many: Vec<PathBuf> = (0..60)
        .map(|number| sandbox.write(&format!("runs/{number}.rpk"), run(number, 4 + number % 5)))
        .collect();
    sandbox.add(many);
    let opened = sandbox.add([sandbox.write("opened.rpk", run(900, STEPS))]).remove(0);
    let hostile = add_hostile(&sandbox);
    let (run_with_long_texts, session_with_long_texts) = long();
    let long = sandbox.add([
        sandbox.write("long.rpk", run_with_long_texts),
        sandbox.write("long.json", session_with_long_texts),
    ]);
    let notes = sandbox.write("notes.txt", "The ticket was closed on Monday.\n");
    let attached = sandbox.run(["add", "--json", "--as", "attachment", notes.to_str().unwrap()]).expect(0);
    sandbox.run(["tag", "set", &cores[0], "golden"]).expect(0);
    sandbox.run(["index", "build"]).expect(0);
    let example: Value =
        serde_json::from_slice(&std::fs::read(repository("examples/session.json")).unwrap()).unwrap();
    let scene = json!({
        "session": cores[0], "trace": cores[1], "contract": cores[2], "pack": cores[3],
        "run": opened, "steps": STEPS, "failed": STEPS / 4, "hostile": hostile,
        "messages": 8, "conversation": record(&sandbox, &weather()), "long_conversation": record(&sandbox, &long_run()),
        "attachment": attached.json()[0]["core_hash"],
        "long": long[0], "long_prompt": runvault::digest::Digest::from_content(LONG_PROMPT.as_bytes()).to_string(),
        "prompt": example["interactions"][0]["prompt_hash"],
    });
    (sandbox, scene)
}

/// Returns what the tests in a browser need and this machine lacks.
fn missing() -> Option<&'static str> {
    let has =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !has("node") {
        return Some("node");
    }
    if !Path::new(&chromium()).exists() {
        return Some("chromium");
    }
    let modules = repository("tests/browser/node_modules/playwright-core");
    (!modules.exists()).then_some("tests/browser/node_modules (npm ci)")
}

fn chromium() -> String {
    std::env::var("RUNVAULT_CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned())
}

/// Runs a file of tests in the browser, or says why not.
fn drive(tests: &str, address: &str, scene: &Value) {
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-concurrency=1", "--test-reporter=spec", tests])
        .current_dir(repository("tests/browser"))
        .env("RUNVAULT_ADDRESS", address)
        .env("RUNVAULT_CHROMIUM", chromium())
        .env("RUNVAULT_SCENE", scene.to_string());
    let ran = command.output().unwrap();
    assert!(
        ran.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Returns whether tests in a browser are possible. Says so if they are not, in a run of all tests too.
fn can_drive(what: &str) -> bool {
    let missing = missing();
    if let Some(missing) = missing {
        let _ = writeln!(std::io::stderr(), "skipped: {what} in a browser; {missing} is missing");
    }
    missing.is_none()
}

#[test]
fn people_can_use_the_pages_in_a_browser() {
    if !can_drive("the pages") {
        return;
    }
    let (sandbox, scene) = scene();
    let serving = Serving::start(&sandbox);
    drive("pages.test.mjs", &format!("http://{}/", serving.address), &scene);
}

#[test]
fn people_can_use_the_files_in_a_browser() {
    if !can_drive("the files") {
        return;
    }
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let examples = ["session.json", "run.rpk", "trace.ndjson", "contract.yaml", "pack"];
    sandbox.add(examples.map(|name| repository("examples").join(name)));
    let runs = [900, 901].map(|number| sandbox.write(&format!("{number}.rpk"), run(number, STEPS)));
    sandbox.add(runs);
    let hostile = add_hostile(&sandbox);
    record(&sandbox, &weather());
    // The directory has a name that addresses must escape.
    sandbox.run(["export", "--html", "all pages", "--all"]).expect(0);
    let directory = sandbox.path("all pages");
    let address = format!("file://{}/", directory.to_str().unwrap().replace(' ', "%20"));
    drive("files.test.mjs", &address, &json!({"name": "nightly-900", "hostile": hostile}));
}

/// The clients for Python whose agents `tests/clients/tool_agent.py` has.
const CLIENTS: [&str; 6] =
    ["openai-chat", "openai-responses", "anthropic", "google-genai", "litellm", "langchain-openai"];

/// The prompt of these agents.
const ASKED: &str = "What is the weather in Paris?";

/// Records the agents of all clients. Returns what the program of each saw, and the core hash of its run.
fn agents(sandbox: &Sandbox, python: &str) -> Vec<Value> {
    let providers = Providers::start(python);
    let of_python = CLIENTS.map(|client| {
        let program = repository("tests/clients/tool_agent.py").into_os_string();
        (client, vec![python.into(), program, client.into(), ASKED.into()])
    });
    let of_node = repository("tests/clients/tool_agent.mjs").into_os_string();
    let of_node = ("ai-sdk", vec![clients::node(), of_node, ASKED.into()]);
    let recorded = of_python.into_iter().chain([of_node]).map(|(client, program)| {
        let ran = clients::record(sandbox, &providers, &program);
        let saw: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let run = ran.stderr.split("run pack sha256:").nth(1).unwrap();
        json!({"client": client, "saw": saw, "run": format!("sha256:{}", run.get(..64).unwrap())})
    });
    recorded.collect()
}

#[test]
fn people_see_what_the_programs_of_clients_saw() {
    const WHAT: &str = "recordings of clients";
    if !can_drive(WHAT) {
        return;
    }
    let Some(python) =
        clients::python_with("openai, anthropic, google.genai, litellm, langchain_openai", WHAT)
    else {
        return;
    };
    if !repository("tests/clients/node_modules").is_dir() {
        return clients::skip(WHAT, "the packages of tests/clients are not installed");
    }
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let scene = json!({"agents": agents(&sandbox, &python)});
    let serving = Serving::start(&sandbox);
    drive("agents.test.mjs", &format!("http://{}/", serving.address), &scene);
}

#[test]
fn questions_are_answered_with_few_clicks_or_one_command() {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    sandbox.add(["run.rpk", "contract.yaml"].map(|name| repository("examples").join(name)));
    sandbox.add([900, 901].map(|number| sandbox.write(&format!("{number}.rpk"), run(number, 4))));
    let weather = weather();
    record(&sandbox, &weather);
    record(&sandbox, &weather);
    let stdout = |arguments: &[&str], status: i32| sandbox.run(arguments).expect(status).stdout;
    let failed = stdout(
        &[
            "list",
            "--has-error",
            "--by",
            "created",
            "--since",
            "2026-11-18",
            "--until",
            "2026-11-19",
            "--columns",
            "run_id,error",
        ],
        0,
    );
    assert!(failed.contains("nightly-900") && failed.contains("ticket 900 is locked"), "{failed}");
    assert!(!failed.contains("run-triage-4711"), "{failed}");
    let answers = stdout(&["find", "--prompt", "Which label fits ticket 900?", "--answers"], 0);
    assert!(answers.contains("Ticket 900 is a bug."), "{answers}");
    let changed = stdout(&["diff", "nightly-900", "nightly-901"], 1);
    assert!(changed.contains("901"), "{changed}");
    let used = stdout(&["list", "--tool", "tracker.label"], 0);
    assert!(["nightly-900", "nightly-901", "run-triage-4711"].iter().all(|run| used.contains(run)), "{used}");
    let audited = stdout(&["audit", "run-triage-4711"], 1);
    assert!(audited.contains("inconclusive label-ticket"), "{audited}");
    if !can_drive("questions") {
        return;
    }
    let serving = Serving::start(&sandbox);
    drive("questions.test.mjs", &format!("http://{}/", serving.address), &json!({"day": "2026-11-18"}));
}

#[test]
fn people_can_annotate_artifacts_in_a_browser() {
    if !can_drive("forms") {
        return;
    }
    let sandbox = examples();
    let artifact = cores(&sandbox).remove(0);
    let serving = writable(&sandbox);
    drive("annotations.test.mjs", &format!("http://{}/", serving.address), &json!({"artifact": artifact}));
}
