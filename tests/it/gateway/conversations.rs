//! Recorded runs, read as conversations.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::request;
use super::upstream::Upstream;
use super::{GatewayMode, start};
use crate::sandbox::Sandbox;

/// Sends a request, and returns the message that is the answer.
fn ask(gateway: SocketAddr, messages: &[Value], status: u16) -> Value {
    let tools = json!([{"type": "function", "function": {"name": "get_weather"}}]);
    let body = json!({"model": "m-1", "messages": messages, "tools": tools, "temperature": 0});
    let line = "POST /openai/v1/chat/completions";
    let answer = request(gateway, line, &["authorization: Bearer sk-secret"], &body.to_string());
    let mut message = answer.expect(status).json()["choices"][0]["message"].clone();
    message["role"] = json!("assistant");
    message
}

/// An agent that calls a tool, and a call that fails.
fn record(sandbox: &Sandbox) {
    let upstream = Upstream::start();
    let gateway = start(sandbox, GatewayMode::Record, &upstream);
    let ask = |messages: &[Value], status| ask(gateway.address(), messages, status);
    let rules: Vec<String> = (0..20).map(|number| format!("rule {number}")).collect();
    let mut messages = vec![
        json!({"role": "system", "content": rules.join("\n")}),
        json!({"role": "user", "content": "briefly: call a tool"}),
    ];
    messages.push(ask(&messages, 200));
    messages.push(
        json!({"role": "tool", "tool_call_id": "call-id-0", "content": r#"{"sky":"clear\u001b[31m"}"#}),
    );
    messages.push(ask(&messages, 200));
    messages.push(json!({"role": "user", "content": "fail"}));
    ask(&messages, 429);
    gateway.stop().unwrap();
}

#[test]
fn a_run_is_printed_as_a_conversation_with_each_message_once() {
    let sandbox = Sandbox::without_vault();
    record(&sandbox);
    let shown = sandbox.run(["view", "latest"]).expect(0);
    assert!(shown.stderr.ends_with("3 calls, 1 failed\n"), "{}", shown.stderr);
    let lines: Vec<&str> = shown.stdout.lines().map(str::trim).collect();
    assert!(lines[1].starts_with("1 error, m-1, ") && lines[1].ends_with(", 3 calls"), "{}", lines[1]);
    for line in [
        "0 m-1 openai chat.completions",
        "system     rule 0",
        "rule 5",
        "… 149 B in all; --full shows everything",
        "user       briefly: call a tool",
        "call       get_weather",
        "city: Paris",
        r"result     sky: clear\u{1b}[31m",
        "2 m-1 openai chat.completions",
        "assistant  answer 1",
        "4 m-1 failed openai chat.completions",
        "user       fail",
        "error      slow down",
    ] {
        assert_eq!(lines.iter().filter(|found| **found == line).count(), 1, "{line}\n{}", shown.stdout);
    }
    assert!(sandbox.run(["view", "latest", "--full"]).expect(0).stdout.contains("rule 19"));
    let steps = sandbox.run(["view", "latest", "--raw"]).expect(0);
    assert!(steps.stderr.ends_with("6 steps, 1 failed\n"), "{}", steps.stderr);
    assert!(steps.stdout.contains("model.response"));
}

#[test]
fn a_part_of_a_conversation_can_be_read() {
    let sandbox = Sandbox::without_vault();
    record(&sandbox);
    let calls = |arguments: &[&str]| {
        let answer =
            sandbox.run([&["view", "latest", "--json"], arguments].concat()).expect(0).json().remove(0);
        let calls = answer["conversation"]["calls"].as_array().unwrap().clone();
        (calls.iter().map(|call| call["step"].as_u64().unwrap()).collect::<Vec<_>>(), answer["next"].clone())
    };
    assert_eq!(calls(&[]), (vec![0, 2, 4], Value::Null));
    assert_eq!(calls(&["--from", "1", "--limit", "1"]), (vec![2], json!(4)));
    assert_eq!(calls(&["--to", "2"]), (vec![0, 2], Value::Null));
    assert_eq!(calls(&["--only", "tools"]), (vec![0], Value::Null));
    assert_eq!(calls(&["--only", "errors"]), (vec![4], Value::Null));
    sandbox.run(["view", "latest", "--from", "5"]).expect(1);
    let answer = sandbox.run(["view", "latest", "--json"]).expect(0).json().remove(0);
    assert_eq!(answer["steps"], json!([]));
    let call = &answer["conversation"]["calls"][0];
    assert_eq!(call["tools"], json!(["get_weather"]));
    assert_eq!(call["parameters"], json!({"temperature": "0"}));
    assert_eq!(call["answers"][0]["parts"][0]["arguments"], r#"{"city":"Paris"}"#);
    assert_eq!(answer["conversation"]["threads"], json!([{"parent": null, "calls": 3}]));
}

/// Records an agent whose answers differ only in ids, times and numbers of tokens.
fn record_for_certain(sandbox: &Sandbox, upstream: &Upstream, asked: &str) -> String {
    let gateway = start(sandbox, GatewayMode::Record, upstream);
    let mut messages = vec![json!({"role": "user", "content": format!("{asked} for certain: call a tool")})];
    let call = ask(gateway.address(), &messages, 200);
    let id = call["tool_calls"][0]["id"].clone();
    messages.push(call);
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "{\"sky\":\"clear\"}"}));
    ask(gateway.address(), &messages, 200);
    gateway.stop().unwrap();
    sandbox.run(["find", "runs", "--limit", "1", "--format", "{{core}}"]).expect(0).stdout.trim().to_owned()
}

#[test]
fn two_recordings_of_a_deterministic_agent_are_equal() {
    let sandbox = Sandbox::without_vault();
    let upstream = Upstream::start();
    let runs = ["Tell me", "Tell me", "Say"].map(|asked| record_for_certain(&sandbox, &upstream, asked));
    let [golden, same, other] = &runs;
    assert_ne!(golden, same);
    sandbox.run(["diff", "--expect", golden, same]).expect(0);
    sandbox.run(["diff", "--exact", golden, same]).expect(1);
    let told = sandbox.run(["diff", "--expect", golden, other]).expect(1).stdout;
    assert!(told.contains("[-Tell me-]{+Say+} for certain"), "{told}");
    let asked = "/input/*/messages/0/content";
    sandbox.run(["diff", "--ignore", asked, golden, other]).expect(0);
    let mut configured = sandbox.command();
    configured.env("RUNVAULT_DIFF_IGNORE", asked).args(["diff", golden, other]);
    assert!(configured.status().unwrap().success());
    sandbox.run(["diff", "--ignore", "a/b", golden, other]).expect(3);
}

#[test]
fn sessions_that_say_the_same_differ_in_prompts_that_repeat_ids_alone() {
    let sandbox = Sandbox::without_vault();
    let upstream = Upstream::start();
    for _ in 0..2 {
        record_for_certain(&sandbox, &upstream, "Tell me");
    }
    let found = sandbox.run(["find", "model_io", "--format", "{{core}}"]).expect(0).stdout;
    let [one, other] = found.lines().collect::<Vec<_>>().try_into().unwrap();
    let changes = |option: &[&str]| {
        let answer =
            sandbox.run([&["diff", "--json", one, other], option].concat()).expect(1).json().remove(0);
        let changes = answer["changes"].as_array().unwrap().iter().map(|change| change["says"].clone());
        changes.collect::<Vec<_>>()
    };
    assert_eq!(changes(&[]), ["different prompt, same response"]);
    assert!(changes(&["--exact"]).len() > 1);
}

#[test]
fn runs_are_found_by_what_was_said_in_them() {
    let sandbox = Sandbox::without_vault();
    let upstream = Upstream::start();
    let run = record_for_certain(&sandbox, &upstream, "Tell me");
    let attributes = sandbox.run(["show", &run, "--json"]).expect(0).json().remove(0)["attributes"].clone();
    let value = |name: &str| {
        let all = attributes.as_array().unwrap();
        all.iter().find(|one| one["name"] == name).map(|one| one["value"].as_str().unwrap().to_owned())
    };
    assert_eq!(value("tool").as_deref(), Some("get_weather"));
    assert_eq!(value("tool_calls").as_deref(), Some("1"));
    assert_eq!(value("errors").as_deref(), Some("0"));
    assert_eq!(value("finish_reason").as_deref(), Some("stop"));
    assert_eq!(value("first_prompt").as_deref(), Some("Tell me for certain: call a tool"));
    assert_eq!(value("last_answer").as_deref(), Some("clear"));
    for arguments in [
        &["find", "--tool", "get_weather"][..],
        &["find", "--attr", "finish_reason=stop"],
        &["find", "--prompt", "Tell me for certain: call a tool"],
        &["search", "clear sky"],
        &["search", "Paris"],
    ] {
        let found = sandbox.run([arguments, &["--json"]].concat()).expect(0).json();
        assert!(found.iter().any(|one| one["core_hash"] == run.as_str()), "{arguments:?}: {found:?}");
    }
    let answers =
        sandbox.run(["find", "--prompt", "Tell me for certain: call a tool", "--answers"]).expect(0).stdout;
    assert!(answers.contains(r#"get_weather({"city":"Paris"})"#), "{answers}");
}

#[test]
fn a_session_is_the_conversation_of_its_run() {
    let sandbox = Sandbox::without_vault();
    record_for_certain(&sandbox, &Upstream::start(), "Tell me");
    let session = sandbox.run(["find", "sessions", "--format", "{{core}}"]).expect(0).stdout;
    let shown = sandbox.run(["view", session.trim()]).expect(0).stdout;
    for line in
        ["user       Tell me for certain: call a tool", "call       get_weather", "result     sky: clear"]
    {
        assert_eq!(shown.lines().filter(|found| found.trim() == line).count(), 1, "{line}\n{shown}");
    }
}
