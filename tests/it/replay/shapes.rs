//! Runs of every provider that ReplayKit's listener records: found by their prompts, linked to sessions, searched, played.

use serde_json::{Value, json};

use super::protocol::lines;
use crate::sandbox::{Sandbox, run_pack, session};

/// What the listener records of a request and its response.
fn recorded(provider: &str, path: &str, payload: &Value, body: &Value, assembled: &str) -> [Value; 2] {
    let metadata =
        json!({"provider": provider, "path": path, "request_id": "r-1", "capture_mode": "passive"});
    [
        json!({"type": "model.request", "input": {"provider": provider, "path": path, "request_id": "r-1",
            "model": "m", "stream": false, "headers": {}, "payload": payload},
            "output": {"status": "captured"}, "metadata": metadata}),
        json!({"type": "model.response", "input": {"request_id": "r-1"}, "metadata": metadata,
            "output": {"status_code": 200, "output": body, "assembled_text": assembled, "error": null}}),
    ]
}

/// The prompt and the response of every test.
const PROMPT: &str = "Which zebra crossed the river?";
const RESPONSE: &str = "The striped quagga did.";

fn prompts_are_seen(steps: &[Value]) {
    let sandbox = Sandbox::new();
    let run = sandbox.add([sandbox.write("run.rpk", run_pack("run-1", steps))]).remove(0);
    let recording = sandbox.add([sandbox.write("s.json", session("a", &[(PROMPT, RESPONSE)]))]).remove(0);
    let found = |arguments: &[&str]| -> Vec<Value> {
        let found = sandbox.run([arguments, &["--json"]].concat()).expect(0).json();
        found.into_iter().map(|hit| hit["core_hash"].clone()).collect()
    };
    assert!(found(&["find", "--prompt", PROMPT]).contains(&run.as_str().into()));
    let digest = runvault::digest::Digest::from_content(RESPONSE.as_bytes()).to_string();
    assert!(found(&["find", "--response-hash", &digest]).contains(&run.as_str().into()));
    sandbox.run(["index", "build"]).expect(0);
    assert!(found(&["search", "--in", "prompt", "zebra"]).contains(&run.as_str().into()));
    assert!(found(&["search", "--in", "response", "quagga"]).contains(&run.as_str().into()));
    let links = sandbox.run(["links", &run, "--json"]).expect(0).json();
    let replays = links.iter().find(|link| link["relation"] == "replays").unwrap();
    assert_eq!(replays["core_hash"], recording);
    let asked = lines(&[json!({"prompt": PROMPT})]);
    let answer = sandbox.run_on(&asked, &["replay", &run, "--serve-stdio"]).expect(0).json().remove(0);
    assert_eq!(answer["response"], RESPONSE);
}

#[test]
fn openai_chat_completions() {
    let payload = json!({"model": "m", "messages": [
        {"role": "system", "content": "be brief"}, {"role": "user", "content": [{"type": "text", "text": PROMPT}]}]});
    let body = json!({"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": RESPONSE}}]});
    prompts_are_seen(&recorded("openai", "/v1/chat/completions", &payload, &body, RESPONSE));
}

#[test]
fn openai_responses() {
    let payload = json!({"model": "m", "instructions": "be brief", "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]}]});
    let body = json!({"object": "response", "output": [{"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": RESPONSE, "annotations": []}]}]});
    prompts_are_seen(&recorded("openai", "/v1/responses", &payload, &body, ""));
}

#[test]
fn anthropic_messages() {
    let payload = json!({"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "be brief"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]});
    let body = json!({"type": "message", "role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": &RESPONSE[..4]},
        {"type": "text", "text": &RESPONSE[4..]}]});
    prompts_are_seen(&recorded("anthropic", "/v1/messages", &payload, &body, RESPONSE));
}

#[test]
fn gemini_generate_content() {
    let payload = json!({"systemInstruction": {"parts": [{"text": "be brief"}]}, "contents": [
        {"role": "user", "parts": [{"text": "Hello"}]}, {"role": "model", "parts": [{"text": "Hello!"}]},
        {"role": "user", "parts": [{"text": PROMPT}]}]});
    let body = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": RESPONSE}]}}]});
    let path = "/v1beta/models/gemini-2.0-flash:generateContent";
    prompts_are_seen(&recorded("google", path, &payload, &body, RESPONSE));
}

/// Coding agents send events, whose input is theirs.
#[test]
fn events_of_agents() {
    let event =
        |step_type: &str| json!({"agent": "codex", "event_type": step_type, "capture_mode": "passive"});
    prompts_are_seen(&[
        json!({"type": "model.request", "input": {"model": "m", "messages": [{"role": "user", "content": PROMPT}]},
            "metadata": event("model.request")}),
        json!({"type": "model.response", "input": {"request_id": "r"}, "output": {"content": RESPONSE},
            "metadata": event("model.response")}),
    ]);
}
