//! Programs that are run: the servers that variables of their environment name, and their end from outside.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::client::{bash_that_asks, chat, request};
use super::upstream::Upstream;
use super::{kinds, steps};
use crate::sandbox::Sandbox;

/// Prints the URL that the client of a program would read, and waits until its standard input ends.
const PROGRAM: &str = r#"echo "$OPENAI_BASE_URL"; cat"#;

/// Makes a call at the URL that a program gets, where the variable has a path at the server.
fn forwarded(path: &str, options: &[&str]) -> String {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut command = sandbox.command();
    command.args(["exec", "--create", "--mode", "record"]).args(options).args(["--", "sh", "-c", PROGRAM]);
    command.env("OPENAI_BASE_URL", format!("http://{}{path}", upstream.address));
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let (address, base) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "one"}]}).to_string();
    let line = format!("POST /{base}/chat/completions");
    let answer = request(address.parse().unwrap(), &line, &["content-type: application/json"], &body);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(answer.status == 200, upstream.requests() == 1, "{}", answer.body);
    upstream.heads().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_server_that_a_variable_names_is_asked() {
    assert_eq!(forwarded("/v1", &[]), "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(forwarded("/models/v1/", &[]), "POST /models/v1/chat/completions HTTP/1.1");
    // What has no version gets none.
    assert_eq!(forwarded("/proxy", &[]), "POST /proxy/chat/completions HTTP/1.1");
    // Port 9 has no server.
    assert_eq!(forwarded("/v1", &["--upstream", "openai=http://127.0.0.1:9"]), "");
}

#[test]
fn a_variable_that_is_not_the_url_of_a_server_is_an_error_unless_it_is_not_used() {
    let sandbox = Sandbox::new();
    let run = |options: &[&str]| {
        let mut command = sandbox.command();
        command.arg("exec").args(options).args(["--", "true"]).env("ANTHROPIC_BASE_URL", "ftp://models");
        command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(3));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("ANTHROPIC_BASE_URL: the URL of the upstream server anthropic"), "{message}");
    for options in [&["--mode", "replay"][..], &["--upstream", "anthropic=http://127.0.0.1:9"]] {
        assert!(run(options).status.success(), "{options:?}");
    }
}

/// Runs a program that makes these calls, and returns the status and what is printed.
fn ran(sandbox: &Sandbox, options: &[&str], prompts: &[&str]) -> (Option<i32>, String) {
    let mut command = sandbox.command();
    command.args(["exec"]).args(options).args(["--", "sh", "-c", PROGRAM]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let (address, _) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    for prompt in prompts {
        assert!(chat(address.parse().unwrap(), prompt, false).is_complete);
    }
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_became_of_the_calls_is_always_printed() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let server = format!("openai=http://{}", upstream.address);
    let auto = ["--create", "--upstream", &server];
    let last = |options: &[&str], prompts: &[&str]| {
        let (status, printed) = ran(&sandbox, options, prompts);
        assert_eq!(status, Some(0), "{printed}");
        printed.lines().last().unwrap().to_owned()
    };
    assert_eq!(last(&auto, &["one", "two"]), "calls: 2 recorded, 0 replayed, 0 missed; 0 recordings unused");
    assert_eq!(last(&auto, &["one"]), "calls: 0 recorded, 1 replayed, 0 missed; 1 recording unused");
    assert_eq!(last(&auto, &["one", "new"]), "calls: 1 recorded, 1 replayed, 0 missed; 1 recording unused");
    let secret = ["sk-ant-", "api03-", &"aB3_dE6-gH9jK2mN5pQ8".repeat(3)].concat();
    let refused = last(&[&auto[..], &["--refuse-secrets"]].concat(), &[secret.as_str()]);
    assert!(refused.contains("0 missed, 1 without a recorded answer"), "{refused}");
    let replay = ["--mode=replay"];
    assert_eq!(
        last(&replay, &["one", "two", "never"]),
        "calls: 0 recorded, 2 replayed, 1 missed; 0 recordings unused"
    );
    for options in [&auto[..], &replay] {
        let nothing = last(options, &[]);
        assert!(
            nothing.starts_with("no call arrived; the program had ANTHROPIC_API_BASE=http://"),
            "{nothing}"
        );
        assert!(nothing.contains("OPENAI_BASE_URL=http://127.0.0.1:"), "{nothing}");
    }
}

#[test]
fn the_status_says_that_calls_were_missed_or_recordings_not_used_if_that_is_asked_for() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let server = format!("openai=http://{}", upstream.address);
    ran(&sandbox, &["--create", "--upstream", &server], &["one", "two"]);
    let all = ["--mode=replay", "--fail-on-miss", "--fail-unused", "--fail-if-empty"];
    let status = |option: &str, prompts: &[&str]| {
        let (status, printed) = ran(&sandbox, &["--mode=replay", option], prompts);
        assert_eq!(status == Some(1), printed.contains("error: "), "{printed}");
        status
    };
    assert_eq!(ran(&sandbox, &all, &["one", "two"]).0, Some(0));
    assert_eq!(status("--fail-on-miss", &["one", "never"]), Some(1));
    assert_eq!(status("--fail-on-miss", &["one"]), Some(0));
    assert_eq!(status("--fail-unused", &["one"]), Some(1));
    assert_eq!(status("--fail-unused", &["never"]), Some(0));
    assert_eq!(status("--fail-if-empty", &[]), Some(1));
    assert_eq!(status("--fail-if-empty", &["never"]), Some(0));
    // The recording that was chosen is expected to be used.
    assert_eq!(ran(&sandbox, &["--mode=replay", "--session=latest", "--fail-unused"], &[]).0, Some(1));
    // A program that failed has its own status.
    let failed = ["exec", "--mode=replay", "--fail-if-empty", "--", "sh", "-c", "exit 7"];
    sandbox.run(failed).expect(7);
}

#[test]
fn a_run_is_made_again_from_a_step_on() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let server = format!("openai=http://{}", upstream.address);
    let prompts = ["one", "two", "three"];
    ran(&sandbox, &["--create", "--upstream", &server], &prompts);
    let newest = || {
        let found = sandbox.run(["find", "rpk", "--json", "--limit", "1"]).expect(0).json();
        found[0]["core_hash"].as_str().unwrap().to_owned()
    };
    let first = newest();
    let again = ["--upstream", &server, "--session=latest", "--rerun-from=2", "--fail-unused"];
    let (status, printed) = ran(&sandbox, &again, &prompts);
    assert_eq!(status, Some(0), "{printed}");
    let last = printed.lines().last().unwrap();
    assert_eq!(last, "calls: 2 recorded, 1 replayed, 0 missed; 0 recordings unused");
    assert_eq!(upstream.requests(), 5);
    let (second, links) = (newest(), |core: &str| sandbox.run(["links", core, "--json"]).expect(0).json());
    let derived = |core: &str, other: &str| {
        links(core).iter().any(|link| link["relation"] == "derived-from" && link.to_string().contains(other))
    };
    assert!(first != second && derived(&second, &first), "{:?}", links(&second));
    assert_eq!(steps(&sandbox).len(), 4);
    // Both together are a whole run, and the first one is as it was.
    for options in [&["--mode=replay"][..], &["--mode=replay", "--session", &first, "--fail-unused"]] {
        assert_eq!(ran(&sandbox, &[options, &["--fail-on-miss"]].concat(), &prompts).0, Some(0));
    }
    assert_eq!(upstream.requests(), 5);
    for options in [&["--mode=replay", "--session", &first][..], &[]] {
        let program = ["--rerun-from=2", "--", "true"];
        sandbox.run([&["exec"], options, &program].concat()).expect(3);
    }
}

#[test]
fn programs_ask_the_gateway_without_a_proxy() {
    let sandbox = Sandbox::new();
    let variables = |given: &[(&str, &str)]| {
        let mut command = sandbox.command();
        command.args(["exec", "--mode=replay", "--", "sh", "-c", r#"echo "$NO_PROXY $no_proxy""#]);
        let output = command.envs(given.iter().copied()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let own = "127.0.0.1,localhost,::1";
    assert_eq!(variables(&[]), format!("{own} {own}"));
    let given = "models.example, localhost";
    let expected = "models.example,localhost,127.0.0.1,::1";
    assert_eq!(variables(&[("NO_PROXY", given)]), format!("{expected} {expected}"));
    assert_eq!(variables(&[("NO_PROXY", given), ("no_proxy", "a")]), format!("{expected} a,{own}"));
}

#[test]
fn an_unknown_option_is_not_taken_for_the_program() {
    let sandbox = Sandbox::without_vault();
    let said = sandbox.run(["exec", "--create", "--lable", "a=b", "--", "true"]).expect(3).stderr;
    assert_eq!(said, "error: unexpected argument --lable; the program follows the options and \"--\"\n");
    assert!(!sandbox.vault().exists());
}

/// Prints the address of the gateway, and does not end by itself.
const RUNNING_PROGRAM: &str = r#"echo "$RUNVAULT_GATEWAY"; exec sleep 1000"#;

/// Runs the program, makes a call, and sends these signals. Returns the exit status.
fn ended_by(sandbox: &Sandbox, upstream: &Upstream, signals: &[Signal]) -> Option<i32> {
    let server = format!("openai=http://{}", upstream.address);
    let mut command = sandbox.command();
    command.args([
        "exec",
        "--create",
        "--mode=record",
        "--upstream",
        &server,
        "--",
        "sh",
        "-c",
        RUNNING_PROGRAM,
    ]);
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

/// Tries whether another server of this machine can be reached.
const TRIES_OTHER: &str = r#"
if (exec 4<>"/dev/tcp/${OTHER/://}") 2>/dev/null; then echo "; $OTHER is reached"; fi
"#;

#[test]
fn an_isolated_program_reaches_the_gateway_only() {
    let Some(asks) = bash_that_asks("one", "isolated programs") else { return };
    let asks = asks + TRIES_OTHER;
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let exec = |options: &[&str]| {
        let mut command = sandbox.command();
        command.args(["exec", "--create"]).args(options).args(["--", "bash", "-c", &asks]);
        command.env("OPENAI_BASE_URL", format!("http://{}/v1", upstream.address));
        command.env("OTHER", upstream.address.to_string()).env("PATH", std::env::var_os("PATH").unwrap());
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), printed, String::from_utf8(output.stderr).unwrap())
    };
    let reached = format!("; {} is reached\n", upstream.address);
    let (_, recorded, message) = exec(&["--mode", "record"]);
    assert!(recorded.starts_with("HTTP/1.1 200 ") && recorded.ends_with(&reached), "{recorded}{message}");
    let (status, replayed, message) = exec(&["--mode", "replay", "--isolated"]);
    if message.contains("permits no network namespace") {
        assert_eq!((status, replayed.as_str()), (Some(3), ""));
        let _ = writeln!(std::io::stderr(), "skipped: isolated programs; {}", message.trim());
        return;
    }
    let body = |answer: &str| answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    assert_eq!(format!("{}{reached}", body(&replayed)), body(&recorded));
    assert_eq!((status, upstream.requests()), (Some(0), 1), "{message}");
    assert!(message.contains("isolated: only this machine's loopback interface"), "{message}");
}
