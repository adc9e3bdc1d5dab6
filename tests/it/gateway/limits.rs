//! Runs that reach a limit or cannot be stored, and connections on which nothing is sent.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runvault::gateway::{Gateway, GatewayEvent, GatewayMode, recorded_calls};
use runvault::{Vault, digest::CoreHash};
use serde_json::{Value, json};

use super::client::{chat, request};
use super::upstream::Upstream;
use super::{Process, kinds, options, scripted, spooled, start, started};
use crate::sandbox::Sandbox;

const CHAT: &str = "POST /v1/chat/completions";

/// Asks for a chat completion with these messages and further members.
fn ask(gateway: &Gateway, messages: &[Value], more: &str, headers: &[&str]) -> super::client::Answer {
    let body = format!(r#"{{"model":"m","messages":{}{more}}}"#, Value::from(messages));
    request(gateway.address(), CHAT, headers, &body)
}

#[test]
fn a_request_at_the_limit_of_depth_is_stored_and_replayed() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let messages = [json!({"role": "user", "content": "deep"})];
    for depth in [110, 118, 119, 120, 123, 126] {
        let more = format!(r#","x":{}{}"#, "[".repeat(depth), "]".repeat(depth));
        let recording = start(&sandbox, GatewayMode::Record, &upstream);
        let recorded = ask(&recording, &messages, &more, &[]).expect(200);
        let run = recording.stop().unwrap().remove(0);
        assert_eq!((run.calls, run.run_packs.len()), (1, 1), "{depth}");
        let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
        assert_eq!(ask(&replaying, &messages, &more, &[]).expect(200).body, recorded.body);
    }
    // Bodies of more than 119 levels are attachments, which the run packs name. The body itself is a level.
    let count = kinds(&sandbox).iter().filter(|kind| *kind == "attachment").count();
    assert_eq!(count, 4);
    assert_eq!(upstream.requests(), 6);
}

#[test]
fn a_call_with_too_many_labels_is_refused_before_it_is_forwarded() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let label = |number: usize| format!("x-runvault-label: key-{number}=x");
    let labels: Vec<String> = (0..120).map(label).collect();
    let headers: Vec<&str> = labels.iter().map(String::as_str).collect();
    let messages = [json!({"role": "user", "content": "one"})];
    ask(&gateway, &messages, "", &headers[..60]).expect(200);
    let refused = ask(&gateway, &messages, "", &headers[60..]).expect(400);
    assert!(refused.body.contains("more labels together"), "{}", refused.body);
    ask(&gateway, &messages, "", &headers[60..100]).expect(200);
    assert_eq!(upstream.requests(), 2);
    assert_eq!(gateway.stop().unwrap().remove(0).calls, 2);
}

#[test]
fn a_session_with_other_labels_does_not_keep_a_run_from_being_stored() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let messages = [json!({"role": "user", "content": "same"})];
    for run in 0..2 {
        let gateway = start(&sandbox, GatewayMode::Record, &upstream);
        let labels: Vec<String> =
            (0..60).map(|number| format!("x-runvault-label: {run}-{number}=x")).collect();
        let headers: Vec<&str> = labels.iter().map(String::as_str).collect();
        ask(&gateway, &messages, "", &headers).expect(200);
        assert_eq!(gateway.stop().unwrap().len(), 1);
    }
}

#[test]
fn a_conversation_is_stored_once_and_replayed() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let message =
        |turn: usize| json!({"role": "user", "content": format!("{turn} briefly {}", "word ".repeat(100))});
    let all: Vec<Value> = (0..40).map(message).collect();
    let mut sizes = Vec::new();
    for turns in [20, 40] {
        let recording = start(&sandbox, GatewayMode::Record, &upstream);
        for turn in 1..=turns {
            ask(&recording, &all[..turn], "", &[]).expect(200);
        }
        sizes.push(spooled(&sandbox).len());
        let run = recording.stop().unwrap().remove(0);
        let vault = Vault::open(&sandbox.vault()).unwrap();
        sizes.push(vault.get(&run.run_pack.0.into()).unwrap().len());
        let calls = recorded_calls(&vault, run.run_pack).unwrap().unwrap();
        let prompt: Value = serde_json::from_str(&calls[turns - 1].prompt).unwrap();
        assert_eq!(prompt["messages"].as_array().unwrap(), &all[..turns]);
    }
    assert!(sizes[2] < 3 * sizes[0] && sizes[3] < 3 * sizes[1], "{sizes:?}");
    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    for turn in 1..=40 {
        ask(&replaying, &all[..turn], "", &[]).expect(200);
    }
    let missed = ask(&replaying, &[json!({"role": "user", "content": "other"})], "", &[]);
    assert!(missed.body.contains("messages"), "{}", missed.body);
    // A prompt of which only the difference is stored is shown with the session, and is found.
    let found = sandbox.run(["find", "model_io", "--json"]).expect(0).json();
    let session = found[0]["core_hash"].as_str().unwrap();
    let shown = sandbox.run(["view", session, "--json"]).expect(0).stdout;
    assert!(shown.contains("39 briefly word"), "{shown}");
    let hash = serde_json::from_str::<Value>(&sandbox.run(["get", session]).expect(0).stdout).unwrap();
    let hash = hash["interactions"][30]["prompt_hash"].as_str().unwrap().to_owned();
    let found = sandbox.run(["find", "rpk", "--prompt-hash", &hash, "--json"]).expect(0).json();
    assert_eq!(found.len(), 1);
}

/// Writes the file of a run that cannot be stored: its rules are not JSON.
fn write_unstorable(sandbox: &Sandbox, upstream: &Upstream) {
    let gateway = start(sandbox, GatewayMode::Record, upstream);
    chat(gateway.address(), "one", false).expect(200);
    let text = spooled(sandbox);
    gateway.stop().unwrap();
    let (head, calls) = text.split_once('\n').unwrap();
    let mut head: Value = serde_json::from_str(head).unwrap();
    head["run"]["rules"] = "{".into();
    head["run"]["id"] = "other-run".into();
    std::fs::write(sandbox.path("spool/1-0-0.run"), format!("{head}\n{calls}")).unwrap();
}

#[test]
fn a_run_that_cannot_be_stored_is_set_aside_and_blocks_nothing() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    write_unstorable(&sandbox, &upstream);
    let aside = sandbox.path("spool/1-0-0.run.unstored");
    for mode in [GatewayMode::Record, GatewayMode::Replay, GatewayMode::Auto] {
        let named = Arc::new(Mutex::new(Vec::new()));
        let for_gateway = Arc::clone(&named);
        let mut options = options(&sandbox, mode, &upstream);
        options.report = Arc::new(move |event| {
            if let GatewayEvent::SetAside { file, reason } = event {
                for_gateway.lock().unwrap().push((file.to_path_buf(), (*reason).to_owned()));
            }
        });
        started(&sandbox, options).unwrap().stop().unwrap();
        let named = named.lock().unwrap();
        let [(file, reason)] = named.as_slice() else { panic!("{named:?}") };
        assert_eq!(file, &aside);
        assert!(reason.contains("1 call of the run other-run"), "{reason}");
    }
}

#[test]
fn recover_tries_again_and_discard_removes_what_is_there() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    write_unstorable(&sandbox, &upstream);
    let spool = format!("--spool={}", sandbox.path("spool").display());
    let file = sandbox.path("spool/1-0-0.run.unstored");
    started(&sandbox, options(&sandbox, GatewayMode::Record, &upstream)).unwrap().stop().unwrap();
    let recovered = sandbox.run(["gateway", "recover", &spool]).expect(1);
    assert!(recovered.stderr.contains("has no canonical form"), "{}", recovered.stderr);
    let listed = sandbox.run(["gateway", "discard", &spool]).expect(0);
    assert!(listed.stdout.contains("1-0-0.run.unstored: 1 call of the run other-run"), "{}", listed.stdout);
    assert!(file.exists());
    sandbox.run(["gateway", "discard", &spool, "other.run"]).expect(1);
    // Once the reason is gone, it is stored.
    let text = std::fs::read_to_string(&file).unwrap().replace(r#""rules":"{""#, r#""rules":"{}""#);
    std::fs::write(&file, &text).unwrap();
    let recovered = sandbox.run(["gateway", "recover", &spool, "--json"]).expect(0).json();
    let core: CoreHash = recovered[0]["stored"][0]["run_pack"]
        .as_str()
        .unwrap()
        .parse::<runvault::digest::Digest>()
        .map(CoreHash)
        .unwrap();
    assert_eq!(recorded_calls(&Vault::open(&sandbox.vault()).unwrap(), core).unwrap().unwrap().len(), 1);
    assert!(!file.exists());
    std::fs::write(&file, text).unwrap();
    let removed = sandbox.run(["gateway", "discard", &spool, "1-0-0.run.unstored"]).expect(0);
    assert!(removed.stdout.starts_with("removed ") && !file.exists(), "{}", removed.stdout);
}

/// The most memory that a process had so far and the memory that it has, in bytes.
#[cfg(target_os = "linux")]
fn memory(process: &Process) -> (usize, usize) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.child.id())).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    };
    (value("VmHWM:"), value("VmRSS:"))
}

/// The size of a large answer or request, and the cache of the database with buffers.
#[cfg(target_os = "linux")]
const SIZE: usize = 24_000_000;
#[cfg(target_os = "linux")]
const FIXED: usize = 16 << 20;

/// Returns how much memory a process takes for a run with the calls that `ask` makes.
#[cfg(target_os = "linux")]
fn memory_of_run(response: String, ask: impl FnOnce(SocketAddr)) -> usize {
    let sandbox = Sandbox::without_vault();
    let server = scripted::server(move |_| vec![(0, response.clone())]);
    let upstream = format!("--upstream=openai=http://{server}");
    let process =
        Process::start_in(&sandbox, &[("MALLOC_ARENA_MAX", "1")], &["--create", "--mode=record", &upstream]);
    let (_, before) = memory(&process);
    ask(process.address);
    request(process.address, "POST /_runvault/finish", &[], "{}").expect(200);
    memory(&process).0 - before
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_answer_takes_at_most_twice_its_size() {
    let line = "a line of an answer, \\\"with escapes\\\", and of no special length\\n";
    let whole = format!(
        r#"{{"choices":[{{"index":0,"message":{{"content":"{}"}},"finish_reason":"stop"}}]}}"#,
        line.repeat(SIZE / line.len())
    );
    let chunk = |content: &str, reason: &str| {
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\"{content}\"}},\"finish_reason\":{reason}}}]}}\n\n"
        )
    };
    let event = chunk(line, "null");
    let stream = event.repeat(SIZE / event.len()) + &chunk("", "\"stop\"") + "data: [DONE]\n\n";
    // Answers with many small values.
    let list = |value: &str| format!("{value}{}", format!(",{value}").repeat(SIZE / (value.len() + 1)));
    let probability = r#"{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"b","logprob":-1,"bytes":[98]}]}"#;
    let probabilities = format!(
        r#"{{"choices":[{{"index":0,"message":{{"content":"a"}},"logprobs":{{"content":[{}]}}}}]}}"#,
        list(probability)
    );
    let models = format!(r#"{{"object":"list","data":[{}]}}"#, list(r#"{"id":"m","object":"model"}"#));
    for (content_type, body) in [
        ("application/json", whole),
        ("text/event-stream", stream),
        ("application/json", probabilities),
        ("application/json", models),
    ] {
        let is_stream = content_type == "text/event-stream";
        let taken = memory_of_run(scripted::response(content_type, &body), |address| {
            let answer = chat(address, "one", is_stream).expect(200);
            assert_eq!(answer.body.len(), body.len());
        });
        assert!(taken <= 2 * body.len() + FIXED, "{content_type}: {taken} bytes for {}", body.len());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_request_takes_at_most_three_times_its_size() {
    let line = "a line of a prompt, \"with escapes\", and of no special length\n";
    // The allocator keeps what is smaller.
    let prompt = line.repeat(2 * SIZE / line.len());
    let size = json!(prompt).to_string().len();
    let body = r#"{"choices":[{"index":0,"message":{"content":"ok"},"finish_reason":"stop"}]}"#;
    let taken = memory_of_run(scripted::response("application/json", body), |address| {
        chat(address, &prompt, false).expect(200);
    });
    assert!(taken <= 3 * size + 2 * FIXED, "{taken} bytes for {size}");
}

/// How long the gateway may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

#[test]
fn a_connection_without_a_complete_head_is_closed() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let mut options = options(&sandbox, GatewayMode::Record, &upstream);
    options.head_timeout = Duration::from_millis(50);
    let gateway = started(&sandbox, options).unwrap();
    for head in ["", "POST /openai/v1/responses HTTP/1.1\r\nHost"] {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut bytes = Vec::new();
        // On a busy machine it is closed before it is written to, which is an error.
        let written = stream.write_all(head.as_bytes());
        let ended = written.and_then(|()| stream.read_to_end(&mut bytes)).map_err(|error| error.kind());
        assert!(!matches!(ended, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{ended:?}");
        assert!(!bytes.starts_with(b"HTTP/1.1 200"), "{ended:?}");
    }
}

/// A time limit alone would let them take all descriptors for as long.
#[cfg(unix)]
#[test]
fn idle_connections_do_not_keep_others_from_being_answered() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let server = format!("--upstream=openai=http://{}", upstream.address);
    let gateway = super::Process::start_limited(&sandbox, 64, &["--create", "--mode=record", &server]);
    let idle: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(gateway.address).unwrap()).collect();
    for prompt in ["one", "two"] {
        chat(gateway.address, prompt, true).expect(200);
    }
    drop(idle);
}
