//! Presets of programs, and what is the same in another place: directories, results of tools, identifiers and keys.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use runvault::gateway::{Gateway, GatewayEvent, GatewayMode};
use serde_json::{Value, json};

use super::client::{bash_that_asks, request};
use super::upstream::Upstream;
use super::{options, started};
use crate::sandbox::Sandbox;

/// A chat with the call of a tool and its result.
fn chat(directory: &str, id: &str, result: &str) -> String {
    let call = json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    json!({"model": "m", "messages": [
        {"role": "user", "content": format!("read {directory}/a.txt, briefly")},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]})
    .to_string()
}

fn ask(gateway: &Gateway, body: &str) -> super::client::Answer {
    request(gateway.address(), "POST /openai/v1/chat/completions", &[], body)
}

#[test]
fn what_was_recorded_in_one_directory_is_replayed_in_another() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = |mode, directory: &str| {
        let mut options = options(&sandbox, mode, &upstream);
        options.rules.name_directory("<cwd>", directory);
        options.compares_all = false;
        started(&sandbox, options).unwrap()
    };
    let body = |directory: &str, file: &str| {
        let text = format!("read {directory}/{file}");
        json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string()
    };
    let recording = gateway(GatewayMode::Record, "/there/project");
    // The server repeats the question.
    let recorded = ask(&recording, &body("/there/project", "a.txt")).expect(200).json();
    recording.stop().unwrap();
    let replaying = gateway(GatewayMode::Replay, "/here/copy");
    let replayed = ask(&replaying, &body("/here/copy", "a.txt")).expect(200).json();
    let content = |answer: &Value| answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert_eq!(content(&replayed), content(&recorded).replace("/there/project", "/here/copy"));
    assert_ne!(replayed, recorded);
    // Another file is another question, and so is the directory where it was recorded.
    ask(&replaying, &body("/here/copy", "b.txt")).expect(400);
    ask(&replaying, &body("/there/project", "a.txt")).expect(400);
}

#[test]
fn any_program_is_replayed_in_another_directory() {
    let Some(asks) = bash_that_asks("read $PWD/a.txt", "programs without presets") else { return };
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    for directory in ["there", "here", "home"] {
        std::fs::create_dir(sandbox.path(directory)).unwrap();
    }
    let server = format!("--upstream=openai=http://{}/v1", upstream.address);
    let ask = |directory, options: &[&str]| {
        let ran = exec(&sandbox, directory, options, &["bash", "-c", &asks]);
        String::from_utf8(ran.stdout).unwrap()
    };
    let recorded = ask("there", &["--create", "--mode=record", &server]);
    assert!(recorded.contains("/there/a.txt"), "{recorded}");
    let replayed = ask("here", &["--mode=replay"]);
    assert!(replayed.starts_with("HTTP/1.1 200 ") && replayed.contains("/here/a.txt"), "{replayed}");
    assert_eq!(upstream.requests(), 1);
    let missed = ask("here", &["--mode=replay", "--preset=none"]);
    assert!(missed.starts_with("HTTP/1.1 400 "), "{missed}");
}

#[test]
fn requests_that_differ_in_results_and_ids_are_answered_if_that_is_asked_for() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let recording = started(&sandbox, options(&sandbox, GatewayMode::Record, &upstream)).unwrap();
    let recorded =
        ["one", "two"].map(|result| ask(&recording, &chat("/d", "call_1", result)).expect(200).body);
    recording.stop().unwrap();
    let differences = Arc::new(Mutex::new(Vec::new()));
    let replay = |is_loose| {
        let mut options = options(&sandbox, GatewayMode::Replay, &upstream);
        options.is_loose = is_loose;
        let seen = Arc::clone(&differences);
        options.report = Arc::new(move |event| {
            if let GatewayEvent::ReplayedLoosely { difference, .. } = event {
                seen.lock().unwrap().push((*difference).to_owned());
            }
        });
        started(&sandbox, options).unwrap()
    };
    ask(&replay(false), &chat("/d", "call_2", "other")).expect(400);
    let loose = replay(true);
    // The first call is the first recorded one, although it is answered as it was; the second is another one.
    assert_eq!(ask(&loose, &chat("/d", "call_1", "one")).expect(200).body, recorded[0]);
    assert_eq!(ask(&loose, &chat("/d", "call_2", "other")).expect(200).body, recorded[1]);
    ask(&loose, &chat("/d", "call_3", "third")).expect(400);
    // The question is never another one.
    ask(&loose, &chat("/other", "call_1", "one")).expect(400);
    let differences = differences.lock().unwrap();
    assert_eq!(differences.len(), 1);
    assert!(differences[0].contains("recorded \"two\", requested \"other\""), "{differences:?}");
}

#[test]
fn the_recording_of_the_same_turn_is_named_by_a_miss() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let recording = started(&sandbox, options(&sandbox, GatewayMode::Record, &upstream)).unwrap();
    let first = json!({"model": "m", "messages": [{"role": "user", "content": "read /d/a.txt, briefly"}]});
    ask(&recording, &first.to_string()).expect(200);
    ask(&recording, &chat("/d", "call_1", "one")).expect(200);
    recording.stop().unwrap();
    let replaying = started(&sandbox, options(&sandbox, GatewayMode::Replay, &upstream)).unwrap();
    // It differs from the first turn in two values that were not recorded, and from the second in three.
    let missed = ask(&replaying, &chat("/d", "call_2", "other")).expect(400).json();
    assert_eq!(missed["nearest"]["step"], 2, "{missed}");
}

#[test]
fn the_status_of_a_miss_is_one_with_which_the_client_stops() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let replaying = started(&sandbox, options(&sandbox, GatewayMode::Replay, &upstream)).unwrap();
    let body = json!({"model": "m", "messages": []}).to_string();
    for (agent, status) in [("claude-cli/2.1.332 (external, cli)", 412), ("OpenAI/JS 6.26.0", 400)] {
        let agent = format!("user-agent: {agent}");
        let missed = request(replaying.address(), "POST /anthropic/v1/messages", &[&agent], &body);
        assert_eq!(missed.expect(status).json()["status"], status);
    }
}

/// Runs a program with `exec` in a directory of the sandbox.
fn exec(sandbox: &Sandbox, directory: &str, options: &[&str], program: &[&str]) -> Output {
    let mut command = sandbox.command();
    command.arg("exec").args(options).arg("--").args(program).current_dir(sandbox.path(directory));
    command.env("RUNVAULT_VAULT", sandbox.vault()).env("HOME", sandbox.path("home"));
    command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
}

#[test]
fn a_program_gets_what_its_preset_says() {
    let sandbox = Sandbox::new();
    let script = sandbox.write(
        "work/agent.sh",
        "#!/bin/sh\ncat \"$1\" \"$HOME/settings\"; echo \"$2 $AGENT_URL\"; rm -f \"$HOME/other\"\n",
    );
    sandbox.write(
        "presets/agent.toml",
        "programs = ['agent.sh']\narguments = ['${file:own.json}']\nwithout-calls = 'agent asks no server'\n\
         [environment]\nAGENT_URL = '${gateway}/x in ${cwd-name}'\n[files]\n'own.json' = '{\"url\":\"${OPENAI_BASE_URL}\"}'\n\
         [missing-files]\n'${NO_SUCH_HOME|home}/settings' = 'set'\n'${home}/other' = 'removed by the program'\n",
    );
    let options = ["--mode=replay"];
    let explained = exec(&sandbox, "work", &["--explain"], &["sh", "agent.sh", "go"]);
    assert!(explained.status.success());
    // A shell is none of the programs that run the one in their first argument.
    assert!(
        String::from_utf8(explained.stdout).unwrap().starts_with("preset: none\nprogram: sh agent.sh go\n")
    );
    std::fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
    let by_launcher = ["env", "./agent.sh", "go"];
    let explained = exec(&sandbox, "work", &["--explain"], &by_launcher);
    let explained = String::from_utf8(explained.stdout).unwrap();
    for line in [
        "preset: agent (agent)",
        "program: env ./agent.sh own.json go",
        "  AGENT_URL='http://127.0.0.1:PORT/x in work'",
        "temporary file own.json",
    ] {
        assert!(explained.lines().any(|printed| printed == line), "{line}\n{explained}");
    }
    let ran = exec(&sandbox, "work", &options, &by_launcher);
    let (said, noted) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    let (url, rest) =
        said.strip_prefix("{\"url\":\"http://127.0.0.1:").unwrap().split_once("/openai/v1\"}set").unwrap();
    assert_eq!(rest, format!("go http://127.0.0.1:{url}/x in work\n"));
    assert!(noted.contains("no call arrived") && noted.contains("; agent asks no server"), "{noted}");
    // Nothing is left of the files.
    let left: Vec<_> = std::fs::read_dir(sandbox.path("home")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    // It has no arguments for a program that it does not know.
    for other in ["env ./other.sh", "sh other.sh"] {
        let command: Vec<&str> = other.split(' ').collect();
        let explained = exec(&sandbox, "work", &["--explain", "--preset=agent"], &command);
        let explained = String::from_utf8(explained.stdout).unwrap();
        assert!(explained.starts_with(&format!("preset: agent (agent)\nprogram: {other}\n")), "{explained}");
    }
    // A preset can be named, and must be there.
    let named = exec(&sandbox, "work", &["--explain", "--preset=none"], &by_launcher);
    assert!(String::from_utf8(named.stdout).unwrap().starts_with("preset: none\n"));
    let unknown = exec(&sandbox, "work", &["--preset=clod"], &by_launcher);
    assert_eq!(unknown.status.code(), Some(3));
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert!(message.contains("there is no preset clod; presets are agent, aider, claude"), "{message}");
}

#[test]
fn keys_of_the_environment_are_not_stored_and_runs_are_labeled() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut command = sandbox.command();
    command.args(["exec", "--create", "--mode=record", "--", "sh", "-c", r#"echo "$OPENAI_BASE_URL"; cat"#]);
    command
        .env("OPENAI_BASE_URL", format!("http://{}/v1", upstream.address))
        .env("OTHER_TOKEN", "correct-horse");
    command.env("SHORT_TOKEN", "read").env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let (address, _) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let text = "read the correct-horse";
    let body = json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string();
    let answer =
        request(address.parse().unwrap(), "POST /openai/v1/chat/completions", &[], &body).expect(200);
    // The client gets what the server says.
    assert!(answer.body.contains("correct-horse"));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let found = sandbox.run(["find", "rpk", "--json", "--label=program=sh"]).expect(0).json();
    let pack = sandbox.run(["get", found[0]["core_hash"].as_str().unwrap()]).expect(0).stdout;
    assert!(pack.contains("read the [REDACTED]") && !pack.contains("correct-horse"), "{pack}");
}
