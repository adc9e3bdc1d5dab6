//! The gateway: what clients get, and what is in the vault after that.

mod agents;
mod auto;
mod bedrock;
pub(crate) mod client;
pub(crate) mod clients;
mod compressed;
mod conversations;
#[cfg(unix)]
mod environment;
mod interruptions;
mod limits;
#[cfg(feature = "mcp")]
mod mcp_servers;
mod otlp;
mod presets;
mod problems;
mod proxy;
mod recordings;
mod redaction;
mod requests;
mod rules;
pub(crate) mod scripted;
mod tls;
mod unfinished;
mod upstream;
mod web_sockets;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use runvault::Vault;
use runvault::gateway::{
    Gateway, GatewayEvent, GatewayMode, GatewayOptions, MatchingRules, Pace, ReplaySource, StartError,
    Upstream as Server, recorded_calls,
};
use runvault::secrets::SecretPolicy;
use runvault::vault::find::FindRequest;
use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use client::{chat, request};
use upstream::Upstream;

const ANYWHERE: &str = "127.0.0.1:0";

/// Starts a gateway on the vault of a sandbox.
fn start(sandbox: &Sandbox, mode: GatewayMode, upstream: &Upstream) -> Gateway {
    started(sandbox, options(sandbox, mode, upstream)).unwrap()
}

fn started(sandbox: &Sandbox, options: GatewayOptions) -> Result<Gateway, StartError> {
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    Gateway::start(vault, ANYWHERE.parse().unwrap(), options)
}

fn options(sandbox: &Sandbox, mode: GatewayMode, upstream: &Upstream) -> GatewayOptions {
    let mut options = GatewayOptions::new(mode, &sandbox.path("spool"));
    options.upstreams = vec![Server::parse(&format!("openai=http://{}", upstream.address)).unwrap()];
    options
}

/// The kinds of all artifacts, sorted.
fn kinds(sandbox: &Sandbox) -> Vec<String> {
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    let hits = vault.run(&FindRequest::default()).unwrap().hits;
    let mut kinds: Vec<String> = hits.into_iter().map(|hit| hit.artifact.kind).collect();
    kinds.sort();
    kinds
}

/// The steps of the run pack that was added last.
fn steps(sandbox: &Sandbox) -> Vec<Value> {
    let found = sandbox.run(["find", "rpk", "--json", "--limit", "1"]).expect(0).json();
    let core = found[0]["core_hash"].as_str().unwrap().to_owned();
    let pack: Value = serde_json::from_str(&sandbox.run(["get", &core]).expect(0).stdout).unwrap();
    pack["payload"]["run"]["steps"].as_array().unwrap().clone()
}

/// The calls that are on disk and not in the vault.
fn spooled(sandbox: &Sandbox) -> String {
    spool_files(sandbox).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The files of runs that are not finished.
fn spool_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(sandbox.path("spool")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "run")).collect()
}

#[test]
fn what_was_recorded_is_replayed_byte_for_byte() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    let asked =
        [("one", false), ("one", true), ("fail", false), ("two \u{e4}\u{1f600}", true), ("lines", true)];
    let ask = |gateway: &Gateway| asked.map(|(prompt, stream)| chat(gateway.address(), prompt, stream));
    let recorded = ask(&recording);
    assert_eq!(recorded.clone().map(|answer| answer.status), [200, 200, 429, 200, 200]);
    assert!(recorded.iter().all(|answer| answer.is_complete));
    let runs = recording.stop().unwrap();
    assert_eq!((runs.len(), runs[0].calls, runs[0].failed, runs[0].sessions.len()), (1, 5, 0, 1));
    assert_eq!(kinds(&sandbox), ["model_io", "rpk"]);
    assert_eq!(upstream.requests(), 5);
    let links = sandbox.run(["links", &runs[0].sessions[0].to_string()]).expect(0).stdout;
    assert!(links.contains("replays"), "{links}");

    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    let replayed = ask(&replaying);
    for (one, other) in recorded.iter().zip(&replayed) {
        assert_eq!((one.status, &one.body, one.is_complete), (other.status, &other.body, other.is_complete));
        assert!(other.head.contains(&format!("x-runvault-replayed: {}", runs[0].run_pack)), "{}", other.head);
    }
    assert_eq!(replaying.stop().unwrap(), []);
    assert_eq!(upstream.requests(), 5);
}

#[test]
fn what_was_recorded_and_what_is_replayed_are_named_by_the_same_steps() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    for prompt in ["one", "two", "three"] {
        chat(recording.address(), prompt, false).expect(200);
    }
    let pack = recording.stop().unwrap()[0].run_pack;
    let vault = Arc::new(Vault::open(&sandbox.vault()).unwrap());
    let recorded = recorded_calls(&vault, pack).unwrap().unwrap();
    assert!(recorded[1].prompt.contains("two") && recorded[1].endpoint == "chat.completions");
    let replayed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&replayed);
    let mut options = options(&sandbox, GatewayMode::Replay, &upstream);
    options.report = Arc::new(move |event| {
        if let GatewayEvent::Replayed { from, step, .. } = event {
            seen.lock().unwrap().push((*from, *step));
        }
    });
    // A vault that is open can be used by a gateway and others.
    let replaying = Gateway::start(Arc::clone(&vault), ANYWHERE.parse().unwrap(), options).unwrap();
    for prompt in ["three", "one"] {
        chat(replaying.address(), prompt, false).expect(200);
    }
    replaying.stop().unwrap();
    assert_eq!(*replayed.lock().unwrap(), [(pack, recorded[2].step), (pack, recorded[0].step)]);
    let session = vault.run(&FindRequest::default()).unwrap().hits;
    let session = session.into_iter().find(|hit| hit.artifact.kind == "model_io").unwrap();
    assert_eq!(recorded_calls(&vault, session.artifact.core_hash).unwrap(), None);
}

#[test]
fn a_call_is_on_disk_before_its_last_byte_is_sent() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    for (number, stream) in [(0, false), (1, true)] {
        let answer = chat(gateway.address(), "one", stream).expect(200);
        let line = spooled(&sandbox).lines().nth(number + 1).unwrap().to_owned();
        let call: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(call["stored_call"]["outcome"]["answered"]["body"], json!(answer.body));
    }
    gateway.stop().unwrap();
    assert_eq!(spooled(&sandbox), "");
}

/// What a gateway reported about secrets: the rules, and whether the call was refused.
type Reported = Arc<Mutex<Vec<(Vec<String>, bool)>>>;

#[test]
fn calls_with_secrets_are_answered_and_reported_or_refused() {
    let key = ["sk-ant-", "api03-", &"aB3_dE6-gH9jK2mN5pQ8".repeat(3)].concat();
    for policy in [SecretPolicy::Ignore, SecretPolicy::Report, SecretPolicy::Refuse] {
        let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
        let mut options = options(&sandbox, GatewayMode::Record, &upstream);
        let reported = Reported::default();
        let for_gateway = Arc::clone(&reported);
        options.secrets = policy;
        options.report = Arc::new(move |event| {
            if let GatewayEvent::Secrets { secrets, refused, .. } = event {
                assert!(secrets.iter().all(|one| one.beginning == "sk-a"));
                let rules = secrets.iter().map(|one| format!("{} {}", one.place, one.rule)).collect();
                for_gateway.lock().unwrap().push((rules, *refused));
            }
        });
        let gateway = started(&sandbox, options).unwrap();
        for stream in [false, true] {
            let answer = chat(gateway.address(), &format!("my key is {key}"), stream).expect(200);
            assert!(answer.is_complete);
        }
        chat(gateway.address(), "one", false).expect(200);
        let on_disk = spooled(&sandbox).contains(&key);
        let run = gateway.stop().unwrap().remove(0);
        let reported = reported.lock().unwrap().clone();
        // The answer of the server repeats the prompt, in the stream in parts.
        let found = reported.iter().map(|(rules, _)| rules[0].as_str()).collect::<Vec<_>>();
        let is_refused = policy == SecretPolicy::Refuse;
        let expected = if policy == SecretPolicy::Ignore { 0 } else { 2 };
        assert_eq!(
            (found.len(), on_disk, run.calls),
            (expected, !is_refused, if is_refused { 1 } else { 3 })
        );
        assert!(
            found.iter().all(|found| *found == "request /messages/0/content anthropic-api-key"),
            "{found:?}"
        );
        assert!(reported.iter().all(|(_, refused)| *refused == is_refused));
        let stored = sandbox.run(["get", &run.run_pack.to_string()]).expect(0).stdout.contains(&key);
        assert_eq!(stored, !is_refused);
    }
}

#[test]
fn a_run_that_was_left_behind_is_stored_without_refused_calls() {
    let key = ["sk-ant-", "api03-", &"aB3_dE6-gH9jK2mN5pQ8".repeat(3)].concat();
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    chat(gateway.address(), &key, false).expect(200);
    chat(gateway.address(), "one", false).expect(200);
    // What a process that was killed leaves.
    let text = std::fs::read(spool_files(&sandbox).remove(0)).unwrap();
    gateway.stop().unwrap();
    std::fs::remove_file(sandbox.vault()).unwrap();
    std::fs::write(sandbox.path("spool/4711-0.calls"), text).unwrap();
    let mut options = options(&sandbox, GatewayMode::Record, &upstream);
    options.secrets = SecretPolicy::Refuse;
    started(&sandbox, options).unwrap().stop().unwrap();
    assert_eq!(kinds(&sandbox), ["model_io", "rpk"]);
    assert_eq!(steps(&sandbox).len(), 2);
    assert!(!steps(&sandbox).iter().any(|step| step.to_string().contains(&key)));
}

#[test]
fn calls_after_a_write_that_failed_are_not_lost() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    chat(gateway.address(), "one", false).expect(200);
    let spool = spool_files(&sandbox).remove(0);
    // What a write leaves that finds the disk full.
    let mut file = std::fs::OpenOptions::new().append(true).open(&spool).unwrap();
    file.write_all(b"{\"call\":{\"number\"").unwrap();
    chat(gateway.address(), "two", false).expect(200);
    let text = std::fs::read_to_string(&spool).unwrap();
    assert_eq!(text.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 3, "{text}");
    gateway.stop().unwrap();
}

#[test]
fn a_damaged_file_is_named_and_kept_and_its_other_calls_are_stored() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    for prompt in ["one", "two"] {
        chat(gateway.address(), prompt, false).expect(200);
    }
    let text = spooled(&sandbox);
    gateway.stop().unwrap();
    std::fs::remove_file(sandbox.vault()).unwrap();
    // The first call of one file, the run of another, and no line of the last.
    let damaged = text.replacen("\"stored_call\"", "\"", 1);
    std::fs::write(sandbox.path("spool/1-0.calls"), &damaged).unwrap();
    std::fs::write(sandbox.path("spool/2-0.calls"), text.replacen("\"run\"", "\"", 1)).unwrap();
    std::fs::write(sandbox.path("spool/3-0.calls"), &text).unwrap();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let for_gateway = Arc::clone(&reported);
    let mut options = options(&sandbox, GatewayMode::Record, &upstream);
    options.report = Arc::new(move |event| match event {
        GatewayEvent::Failed { reason } => for_gateway.lock().unwrap().push((*reason).to_owned()),
        GatewayEvent::Finished(run) => for_gateway.lock().unwrap().push(format!("{} calls", run.calls)),
        _ => {}
    });
    started(&sandbox, options.clone()).unwrap().stop().unwrap();
    let first = reported.lock().unwrap().clone();
    let kept = |name: &str| sandbox.path(&format!("spool/{name}.calls.damaged"));
    assert!(
        first[0].starts_with(&format!("{}: line 2 is damaged: ", sandbox.path("spool/1-0.calls").display()))
    );
    let end =
        format!("; other calls of this file that were stored: 1; it is kept as {}", kept("1-0").display());
    assert!(first[0].ends_with(&end), "{first:?}");
    assert!(
        first[2].contains("2-0.calls: line 1 is damaged: ") && first[2].contains("were stored: 0;"),
        "{first:?}"
    );
    assert_eq!([&first[1], &first[3]], ["1 calls", "2 calls"]);
    assert_eq!(kinds(&sandbox), ["model_io", "model_io", "rpk", "rpk"]);
    assert_eq!(std::fs::read_to_string(kept("1-0")).unwrap(), damaged);
    // The next start does not report it again.
    started(&sandbox, options).unwrap().stop().unwrap();
    assert_eq!(reported.lock().unwrap().len(), 4);
}

#[test]
fn an_answer_that_is_broken_off_is_never_complete() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    for stream in [false, true] {
        let gateway = start(&sandbox, GatewayMode::Record, &upstream);
        let answer = chat(gateway.address(), "break", stream);
        assert!(answer.status == 200 && !answer.is_complete, "{answer:?}");
        let run = gateway.stop().unwrap().remove(0);
        assert_eq!((run.calls, run.failed, run.sessions.len()), (1, 1, 0));
        let last = steps(&sandbox).pop().unwrap();
        assert_eq!(last["type"], "error.event");
        let partial = last["output"]["partial"].as_str().unwrap();
        assert!(!partial.is_empty() && partial.starts_with(&answer.body), "{partial}");
        let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
        let missed = chat(replaying.address(), "break", stream).expect(400).json();
        let reason = "the request was recorded without a complete answer, which is never replayed: the answer was broken off";
        assert!(missed["detail"].as_str().unwrap().starts_with(reason), "{missed}");
        // The last run that was stored is the nearest.
        assert_eq!(missed["nearest"], json!({"core_hash": run.run_pack.to_string(), "step": 0}));
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_reported() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut options = options(&sandbox, GatewayMode::Record, &upstream);
    // A port on which no server listens, and that no server gets: it is the one of a client.
    let listener = std::net::TcpListener::bind(ANYWHERE).unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let silent = client.local_addr().unwrap();
    options.upstreams = vec![Server::parse(&format!("openai=http://{silent}")).unwrap()];
    let gateway = started(&sandbox, options).unwrap();
    let answer = chat(gateway.address(), "one", false).expect(502);
    let names_it = format!("could not be asked: {silent}: ");
    assert!(answer.json()["detail"].as_str().unwrap().contains(&names_it), "{}", answer.body);
    // The server can answer the next attempt.
    assert_eq!(answer.header("x-should-retry"), None);
    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    let missed = chat(replaying.address(), "two", false).expect(400);
    assert_eq!(missed.header("x-should-retry"), Some("false"));
    assert_eq!(gateway.stop().unwrap()[0].failed, 1);
}

#[test]
fn a_miss_says_what_differs_from_the_nearest_request() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    for prompt in ["the first", "the second"] {
        chat(recording.address(), prompt, false).expect(200);
    }
    let run = recording.stop().unwrap().remove(0);
    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    let missed = chat(replaying.address(), "the third", false).expect(400).json();
    assert_eq!(
        missed["detail"],
        r#"messages[0].content differs: recorded "the first", requested "the third""#
    );
    assert_eq!(missed["nearest"], json!({"core_hash": run.run_pack.to_string(), "step": 0}));
    let other_form = chat(replaying.address(), "the first", true).expect(400).json();
    assert!(other_form["detail"].as_str().unwrap().contains("in one piece"), "{other_form}");
}

#[test]
fn the_nth_request_gets_the_nth_recording() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    let recorded = [0, 1].map(|_| chat(recording.address(), "again", false).expect(200).body);
    assert_ne!(recorded[0], recorded[1]);
    recording.stop().unwrap();
    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    let replayed = [0, 1].map(|_| chat(replaying.address(), "again", false).expect(200).body);
    assert_eq!(recorded, replayed);
    let exhausted = chat(replaying.address(), "again", false).expect(400).json();
    assert_eq!(exhausted["detail"], "the request was recorded only 2 times");
    // Another run begins with the first recording.
    let line = "POST /run/other/openai/v1/chat/completions";
    let body = r#"{"model":"m-1","messages":[{"role":"user","content":"again"}]}"#;
    assert_eq!(request(replaying.address(), line, &[], body).expect(200).body, recorded[0]);
}

#[test]
fn auto_records_only_what_is_new() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    for (prompts, requests) in
        [(&["one"][..], 1), (&["one", "two"], 2), (&["two", "one"], 2), (&["one", "one"], 3)]
    {
        let gateway = start(&sandbox, GatewayMode::Auto, &upstream);
        for prompt in prompts {
            chat(gateway.address(), prompt, false).expect(200);
        }
        gateway.stop().unwrap();
        assert_eq!(upstream.requests(), requests, "{prompts:?}");
    }
}

#[test]
fn what_auto_records_comes_after_what_it_replayed() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let run = |mode, times: usize| {
        let gateway = start(&sandbox, mode, &upstream);
        let answers: Vec<_> = (0..times).map(|_| chat(gateway.address(), "again", false).body).collect();
        gateway.stop().unwrap();
        answers
    };
    let first = run(GatewayMode::Auto, 1);
    let second = run(GatewayMode::Auto, 3);
    assert_eq!((&second[..1], upstream.requests()), (&first[..], 3));
    assert_eq!(run(GatewayMode::Auto, 4)[..3], second);
    assert_eq!(run(GatewayMode::Replay, 3), second);
    // A chosen recording has only its own calls.
    let mut latest = options(&sandbox, GatewayMode::Replay, &upstream);
    latest.source = ReplaySource::Latest;
    let gateway = started(&sandbox, latest).unwrap();
    assert_eq!([0, 1].map(|_| chat(gateway.address(), "again", false).status), [200, 400]);
    // What is recorded again comes first.
    let third = run(GatewayMode::Record, 1);
    assert_eq!(run(GatewayMode::Replay, 2), [&third[..], &first[..]].concat());
}

#[test]
fn a_chosen_recording_is_the_only_one() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut runs = Vec::new();
    for prompt in ["one", "two"] {
        let gateway = start(&sandbox, GatewayMode::Record, &upstream);
        chat(gateway.address(), prompt, false).expect(200);
        runs.push(gateway.stop().unwrap().remove(0));
    }
    let first = &runs[0];
    for (source, one, two) in [
        (ReplaySource::Artifact(first.run_pack), 200, 400),
        (ReplaySource::Artifact(first.sessions[0]), 200, 400),
        (ReplaySource::Latest, 400, 200),
        (ReplaySource::All, 200, 200),
    ] {
        let mut options = options(&sandbox, GatewayMode::Replay, &upstream);
        options.source = source;
        let gateway = started(&sandbox, options).unwrap();
        assert_eq!(chat(gateway.address(), "one", false).status, one, "{source:?}");
        assert_eq!(chat(gateway.address(), "two", false).status, two, "{source:?}");
    }
    let empty = Sandbox::without_vault();
    let mut none = options(&empty, GatewayMode::Replay, &upstream);
    none.source = ReplaySource::Latest;
    assert!(matches!(started(&empty, none), Err(StartError::NoRecording(_))));
}

#[test]
fn credentials_are_forwarded_and_never_stored() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut options = options(&sandbox, GatewayMode::Record, &upstream);
    options.rules.redact("4111[ 0-9]+").unwrap();
    let gateway = started(&sandbox, options).unwrap();
    let body = r#"{"model":"m-1","messages":[{"role":"user","content":"card 4111 1111 1111 1111"}]}"#;
    let line = "POST /openai/v1/chat/completions?key=sk-query";
    let headers = ["authorization: Bearer sk-secret", "x-api-key: sk-other", "x-runvault-label: job=7"];
    let answer = request(gateway.address(), line, &headers, body).expect(200);
    assert!(answer.body.contains("4111 1111"), "the client gets the answer as it is");
    let heads = upstream.heads();
    assert!(["sk-secret", "sk-other", "sk-query"].iter().all(|key| heads.contains(key)), "{heads}");
    assert!(!heads.contains("x-runvault"), "{heads}");
    let on_disk = spooled(&sandbox);
    gateway.stop().unwrap();
    let found = sandbox.run(["find", "--json"]).expect(0).json();
    let mut stored = on_disk;
    for artifact in &found {
        stored.push_str(&sandbox.run(["get", artifact["core_hash"].as_str().unwrap()]).expect(0).stdout);
    }
    assert!(stored.contains("card [REDACTED]"), "{stored}");
    // No digest contains a space, as some contain each group of digits.
    for secret in ["sk-secret", "sk-other", "sk-query", "4111 ", " 1111"] {
        assert!(!stored.contains(secret), "{secret}: {stored}");
    }
}

#[test]
fn runs_have_names_and_labels() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut options = options(&sandbox, GatewayMode::Record, &upstream);
    options.labels = BTreeMap::from([("team".to_owned(), "search".to_owned())]);
    let gateway = started(&sandbox, options).unwrap();
    let body = |prompt: &str| format!(r#"{{"model":"m","messages":[{{"content":"{prompt}"}}]}}"#);
    let by_path = "POST /run/nightly/label/job=7/openai/v1/chat/completions";
    request(gateway.address(), by_path, &[], &body("one")).expect(200);
    let by_header = ["x-runvault-run: nightly", "x-runvault-label: shard=2"];
    request(gateway.address(), "POST /v1/chat/completions", &by_header, &body("two")).expect(200);
    request(gateway.address(), "POST /v1/chat/completions", &[], &body("three")).expect(200);
    let finish = "POST /_runvault/finish";
    let finished = request(gateway.address(), finish, &["x-runvault-run: nightly"], "").expect(200).json();
    assert_eq!(
        (&finished["finished"]["name"], &finished["finished"]["calls"]),
        (&json!("nightly"), &json!(2))
    );
    let labels = ["run=nightly", "job=7", "shard=2", "team=search"];
    let arguments = labels.iter().flat_map(|label| ["--label", label]);
    let found = sandbox.run(["find", "--json"].into_iter().chain(arguments)).expect(0).json();
    assert_eq!(found.len(), 2);
    assert_eq!(request(gateway.address(), finish, &[], "").expect(200).json()["finished"]["calls"], 1);
    assert_eq!(request(gateway.address(), finish, &[], "").expect(200).json()["finished"], Value::Null);
    let wrong = request(
        gateway.address(),
        "POST /v1/chat/completions",
        &["x-runvault-label: no value"],
        &body("four"),
    );
    wrong.expect(400);
    for header in ["x-runvault-run: na\u{ef}ve", "x-runvault-recording: na\u{ef}ve"] {
        request(gateway.address(), "POST /v1/chat/completions", &[header], &body("four")).expect(400);
    }
}

#[test]
fn what_is_ignored_and_replaced_is_stated() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let rules = || {
        let mut rules = MatchingRules::default();
        rules.ignore("temperature").unwrap();
        rules.replace(Some("/messages"), r"\d{4}-\d\d-\d\d", "DATE").unwrap();
        rules
    };
    let ask = |address: SocketAddr, temperature: u32, day: &str| {
        let messages = json!([{"role": "user", "content": format!("today is {day}")}]);
        let body = json!({"model": "m", "temperature": temperature, "messages": messages});
        request(address, "POST /v1/chat/completions", &[], &body.to_string())
    };
    let gateway = started(
        &sandbox,
        GatewayOptions { rules: rules(), ..options(&sandbox, GatewayMode::Record, &upstream) },
    );
    let gateway = gateway.unwrap();
    let recorded = ask(gateway.address(), 0, "2026-01-02").expect(200);
    gateway.stop().unwrap();
    let request = &steps(&sandbox)[0];
    assert_eq!(request["input"]["payload"]["messages"][0]["content"], "today is 2026-01-02");
    let found = sandbox.run(["find", "rpk", "--json"]).expect(0).json();
    let core = found[0]["core_hash"].as_str().unwrap().parse().unwrap();
    let calls = recorded_calls(&Vault::open(&sandbox.vault()).unwrap(), core).unwrap().unwrap();
    assert_eq!(calls[0].prompt, r#"{"messages":[{"content":"today is DATE","role":"user"}],"model":"m"}"#);
    let pack = sandbox.run(["get", found[0]["core_hash"].as_str().unwrap()]).expect(0).stdout;
    let pack: Value = serde_json::from_str(&pack).unwrap();
    assert_eq!(
        pack["metadata"]["gateway"]["matching"],
        json!({"ignored": ["temperature"], "redacted": 0,
            "replaced": [{"at": "/messages", "pattern": r"\d{4}-\d\d-\d\d", "with": "DATE"}]})
    );
    let gateway = started(
        &sandbox,
        GatewayOptions { rules: rules(), ..options(&sandbox, GatewayMode::Replay, &upstream) },
    );
    assert_eq!(ask(gateway.unwrap().address(), 1, "2027-11-12").expect(200).body, recorded.body);
    let strict = start(&sandbox, GatewayMode::Replay, &upstream);
    ask(strict.address(), 0, "2026-01-02").expect(400);
}

#[test]
fn replaying_never_asks_a_server() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Replay, &upstream);
    chat(gateway.address(), "one", false).expect(400);
    request(gateway.address(), "GET /openai/v1/files", &[], "").expect(404);
    request(gateway.address(), "POST /openai/v1/chat/completions", &[], "not JSON").expect(400);
    assert_eq!(upstream.requests(), 0);
    let passing = start(&sandbox, GatewayMode::Pass, &upstream);
    chat(passing.address(), "one", false).expect(200);
    request(passing.address(), "GET /openai/v1/models", &[], "").expect(200);
    assert_eq!(passing.stop().unwrap(), []);
    assert_eq!((upstream.requests(), kinds(&sandbox)), (2, vec![]));
}

#[test]
fn pages_of_other_sites_are_refused() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let line = "POST /openai/v1/chat/completions";
    request(gateway.address(), line, &["host: evil.example"], "{}").expect(421);
    request(gateway.address(), line, &["sec-fetch-site: cross-site"], "{}").expect(403);
    request(gateway.address(), line, &["origin: https://evil.example"], "{}").expect(403);
    let own = format!("host: {}", gateway.address());
    assert_eq!(request(gateway.address(), line, &[&own, "host: evil.example"], "{}").status, 400);
    assert_eq!(upstream.requests(), 0);
}

#[test]
fn many_requests_at_once_are_each_recorded_once() {
    const CLIENTS: usize = 200;
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let ask_all = |address: SocketAddr| -> Vec<String> {
        let ask = |number: usize| {
            move || chat(address, &format!("question {number}"), number.is_multiple_of(2)).expect(200).body
        };
        let threads: Vec<_> = (0..CLIENTS).map(|number| thread::spawn(ask(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    };
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    let recorded = ask_all(recording.address());
    let runs = recording.stop().unwrap();
    assert_eq!((runs.len(), runs[0].calls, runs[0].failed), (1, CLIENTS as u64, 0));
    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    assert_eq!(ask_all(replaying.address()), recorded);
    assert_eq!(upstream.requests(), CLIENTS);
}

#[test]
fn streams_can_be_replayed_as_slowly_as_they_came() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    let recorded = chat(recording.address(), "slow", true).expect(200);
    recording.stop().unwrap();
    let chunks = steps(&sandbox)[1]["metadata"]["chunks"]["captured_ns"].as_array().unwrap().clone();
    let last = chunks.last().unwrap()[0].as_u64().unwrap();
    assert!(chunks.len() > 1 && last > 0, "{chunks:?}");
    let mut options = options(&sandbox, GatewayMode::Replay, &upstream);
    options.pace = Pace::Recorded;
    let replaying = started(&sandbox, options).unwrap();
    let began = Instant::now();
    assert_eq!(chat(replaying.address(), "slow", true).expect(200).body, recorded.body);
    assert!(began.elapsed().as_nanos() >= u128::from(last));
}

#[test]
fn events_are_reported() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let reported = Arc::new(Mutex::new(Vec::new()));
    let mut options = options(&sandbox, GatewayMode::Auto, &upstream);
    let into = Arc::clone(&reported);
    options.report = Arc::new(move |event| {
        let name = match event {
            GatewayEvent::Recorded { status, .. } => format!("recorded {status}"),
            GatewayEvent::Replayed { .. } => "replayed".to_owned(),
            GatewayEvent::NotRecorded { reason, .. } => (*reason).to_owned(),
            GatewayEvent::Finished(run) => format!("finished {}", run.calls),
            GatewayEvent::Forwarded { .. } => "forwarded".to_owned(),
            other => format!("{other:?}"),
        };
        into.lock().unwrap().push(name);
    });
    let gateway = started(&sandbox, options.clone()).unwrap();
    chat(gateway.address(), "one", false).expect(200);
    gateway.finish(None).unwrap();
    chat(gateway.address(), "one", false).expect(200);
    let line = "POST /openai/v1/chat/completions";
    for body in ["not JSON", "[]"] {
        request(gateway.address(), line, &[], body).expect(200);
    }
    request(gateway.address(), line, &["content-encoding: lzma"], "{}").expect(200);
    request(gateway.address(), "GET /openai/v1/models", &[], "").expect(200);
    gateway.stop().unwrap();
    let expected = [
        "recorded 200",
        "finished 1",
        "replayed",
        "the request is not JSON that can be compared: line 1 column 1: expected a value, found 'n'; the call is not recorded",
        "the request is not a JSON object; the call is not recorded",
        "the request has a content coding that is not known: lzma; the call is not recorded",
        "forwarded",
    ];
    assert_eq!(*reported.lock().unwrap(), expected);
}

/// A gateway as a process.
struct Process {
    child: Child,
    address: SocketAddr,
    /// It ends if no process reads the addresses that it prints.
    _stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(sandbox: &Sandbox, upstream: &Upstream) -> Self {
        let server = format!("--upstream=openai=http://{}", upstream.address);
        Self::start_with(sandbox, &["--create", "--mode=record", &server])
    }

    fn start_with(sandbox: &Sandbox, options: &[&str]) -> Self {
        Self::start_in(sandbox, &[], options)
    }

    /// Starts a gateway with variables.
    fn start_in(sandbox: &Sandbox, variables: &[(&str, &str)], options: &[&str]) -> Self {
        let mut command = sandbox.command();
        command.args(["gateway", "--listen", ANYWHERE]).args(options).envs(variables.iter().copied());
        Self::spawn(command)
    }

    /// Starts a gateway that can have only a few descriptors.
    #[cfg(unix)]
    fn start_limited(sandbox: &Sandbox, descriptors: u32, options: &[&str]) -> Self {
        let program = sandbox.command();
        let mut command = std::process::Command::new("/bin/sh");
        command.arg("-c").arg(format!("ulimit -n {descriptors}; exec \"$0\" \"$@\""));
        command.arg(program.get_program()).args(program.get_args());
        command.args(["gateway", "--listen", ANYWHERE]).args(options);
        command.env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = program.get_current_dir() {
            command.current_dir(directory);
        }
        Self::spawn(command)
    }

    fn spawn(mut command: std::process::Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("OPENAI_BASE_URL=http://").unwrap();
        let address = address.strip_suffix("/openai/v1").unwrap().parse().unwrap();
        Self { child, address, _stdout: stdout }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn calls_of_a_killed_gateway_become_a_run_at_the_next_start() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut killed = Process::start(&sandbox, &upstream);
    let answers = ["one", "two"].map(|prompt| chat(killed.address, prompt, true).expect(200).body);
    // While it runs, another one does not take its calls.
    drop(Process::start(&sandbox, &upstream));
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert_eq!(kinds(&sandbox), Vec::<String>::new());
    drop(Process::start(&sandbox, &upstream));
    assert_eq!(kinds(&sandbox), ["model_io", "rpk"]);
    let bodies: Vec<Value> =
        steps(&sandbox).iter().skip(1).step_by(2).map(|step| step["output"]["content"].clone()).collect();
    assert_eq!(bodies, answers);
    sandbox.run(["fsck"]).expect(0);
}

#[cfg(unix)]
#[test]
fn a_program_gets_the_variables_and_its_status_is_returned() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let server = format!("openai=http://{}", upstream.address);
    let script = r#"case "$OPENAI_BASE_URL $ANTHROPIC_BASE_URL" in
        "$RUNVAULT_GATEWAY/openai/v1 $RUNVAULT_GATEWAY/anthropic") exit 7;; *) exit 1;; esac"#;
    let arguments = ["exec", "--create", "--upstream", &server, "--", "sh", "-c", script];
    let ran = sandbox.run(arguments).expect(7);
    assert_eq!(ran.stdout, "");
    sandbox.run(["exec", "--create", "--", "sh", "-c", "kill -9 $$"]).expect(137);
    sandbox.run(["exec", "--create", "--", "no-such-program"]).expect(2);
    sandbox.run(["exec", "--create"]).expect(3);
    sandbox.run(["exec", "--create", "--ignore", "a/b", "--", "true"]).expect(3);
    let key = r#"test "$OPENAI_API_KEY" = given && test -n "$GEMINI_API_KEY""#;
    sandbox.run(["init"]).expect(0);
    let mut command = sandbox.command();
    command.args(["exec", "--mode", "replay", "--", "sh", "-c", key]).env("OPENAI_API_KEY", "given");
    assert_eq!(command.env_remove("GEMINI_API_KEY").status().unwrap().code(), Some(0));
}
