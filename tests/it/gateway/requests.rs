//! Replayed requests that differ in their paths or queries, and those of agents that are no calls of a model.

use std::sync::{Arc, Mutex};

use runvault::gateway::{Gateway, GatewayEvent, GatewayMode};
use serde_json::json;

use super::client::{Answer, request};
use super::scripted::{options, response, server};
use super::started;
use crate::sandbox::Sandbox;

/// Records a call for a path, and returns the responses for other paths when calls are replayed.
fn replayed<const N: usize>(recorded: &str, paths: [&str; N]) -> [Answer; N] {
    let sandbox = Sandbox::without_vault();
    let body = json!({"answer": "recorded"}).to_string();
    let upstream = server(move |_| vec![(0, response("application/json", &body))]);
    let ask = |address, path: &str| request(address, &format!("POST {path}"), &[], r#"{"contents":[]}"#);
    let recording = started(&sandbox, options(&sandbox, GatewayMode::Record, upstream)).unwrap();
    assert_eq!(ask(recording.address(), recorded).status, 200);
    recording.stop().unwrap();
    // Each is the first request of a run: the call was recorded once.
    paths.map(|path| {
        let replaying = started(&sandbox, options(&sandbox, GatewayMode::Replay, upstream)).unwrap();
        ask(replaying.address(), path)
    })
}

fn statuses<const N: usize>(recorded: &str, paths: [&str; N]) -> [u16; N] {
    replayed(recorded, paths).map(|answer| answer.status)
}

#[test]
fn requests_to_added_providers_are_compared_by_path_and_query() {
    let paths = [
        "/local/generate?task=b",
        "/local/delete?task=a",
        "/local/generate",
        "/local/generate?key=k2&task=a",
    ];
    assert_eq!(statuses("/local/generate?task=a&key=k1", paths), [400, 400, 400, 200]);
    let [delete, with_query] = replayed("/local/generate", ["/local/delete", "/local/generate?task=b"]);
    let detail = |answer: &Answer| answer.json()["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail(&delete), r#"the path differs: recorded "/generate", requested "/delete""#);
    assert_eq!(detail(&with_query), "the query of the URL differs");
}

#[test]
fn deployments_and_models_in_paths_are_compared() {
    let azure = |name: &str| format!("/openai/deployments/{name}/chat/completions?api-version=1");
    assert_eq!(statuses(&azure("gpt3"), [&azure("gpt4"), "/openai/v1/chat/completions"]), [400, 400]);
    let gemini = |name: &str| format!("/gemini/v1beta/{name}");
    let recorded = gemini("models/g1:generateContent");
    let others =
        ["tunedModels/g1:generateContent", "models/g1:streamGenerateContent", "models/g2:generateContent"];
    let others = others.map(gemini);
    assert_eq!(statuses(&recorded, [&others[0], &others[1], &others[2]]), [400, 400, 400]);
}

#[test]
fn clients_differ_in_the_version_of_a_path() {
    let others =
        ["/v1/chat/completions", "/openai/chat/completions", "/openai/v2/chat/completions?beta=true"];
    assert_eq!(statuses("/openai/v1/chat/completions", others), [200, 200, 200]);
    let others = ["/gemini/v1/models/g1:generateContent", "/models/g1:generateContent"];
    assert_eq!(statuses("/gemini/v1beta/models/g1:generateContent?key=k", others), [200, 200]);
}

/// Records a call of a model with each API, and starts a gateway that replays them. It fails if something is missed.
fn replaying(sandbox: &Sandbox) -> (Gateway, Arc<Mutex<Vec<String>>>) {
    let upstream = server(|line| {
        let body = if line.contains("ount") { r#"{"input_tokens":7,"totalTokens":7}"# } else { "{}" };
        vec![(0, response("application/json", body))]
    });
    let recording = started(sandbox, options(sandbox, GatewayMode::Record, upstream)).unwrap();
    for (line, body) in [
        ("POST /openai/v1/responses", r#"{"model":"o-1","input":"hi"}"#),
        ("POST /anthropic/v1/messages", r#"{"model":"c-1","messages":[]}"#),
        ("POST /anthropic/v1/messages/count_tokens", r#"{"model":"c-1","messages":[]}"#),
        ("POST /gemini/v1beta/models/g-1:generateContent", r#"{"contents":[]}"#),
        ("POST /gemini/v1beta/models/g-1:countTokens", r#"{"contents":[]}"#),
    ] {
        request(recording.address(), line, &[], body).expect(200);
    }
    assert_eq!(recording.stop().unwrap()[0].calls, 5);
    let missed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&missed);
    let mut options = options(sandbox, GatewayMode::Replay, upstream);
    options.report = Arc::new(move |event| {
        if let GatewayEvent::Missed { path, .. } = event {
            seen.lock().unwrap().push((*path).to_owned());
        }
    });
    (started(sandbox, options).unwrap(), missed)
}

#[test]
fn models_and_the_head_of_the_api_are_answered_without_a_miss() {
    let sandbox = Sandbox::without_vault();
    let (gateway, missed) = replaying(&sandbox);
    let get = |path: &str| request(gateway.address(), &format!("GET {path}"), &[], "").expect(200).json();
    assert_eq!(get("/openai/v1/models?client_version=1")["data"][0]["id"], "o-1");
    assert_eq!(get("/openai/models")["data"].as_array().unwrap().len(), 1);
    assert_eq!(get("/v1/models")["object"], "list");
    assert_eq!(get("/openai/v1/models/o-1")["object"], "model");
    let anthropic = get("/anthropic/v1/models");
    assert_eq!((&anthropic["data"][0]["id"], &anthropic["has_more"]), (&json!("c-1"), &json!(false)));
    assert_eq!(get("/anthropic/v1/models/c-1")["type"], "model");
    assert_eq!(get("/gemini/v1beta/models")["models"][0]["name"], "models/g-1");
    assert_eq!(get("/gemini/v1beta/models/g-1")["name"], "models/g-1");
    request(gateway.address(), "GET /openai/v1/models/other", &[], "").expect(404);
    for path in ["/", "/anthropic", "/anthropic/", "/openai/v1"] {
        assert_eq!(request(gateway.address(), &format!("HEAD {path}"), &[], "").status, 200, "{path}");
    }
    assert_eq!(*missed.lock().unwrap(), [""; 0]);
}

#[test]
fn numbers_of_tokens_are_replayed_as_often_as_they_are_asked_for_or_estimated() {
    let sandbox = Sandbox::without_vault();
    let (gateway, missed) = replaying(&sandbox);
    let count = |line: &str, body: &str| request(gateway.address(), line, &[], body).expect(200).json();
    let (anthropic, gemini) =
        ("POST /anthropic/v1/messages/count_tokens", "POST /gemini/v1beta/models/g-1:countTokens");
    for _ in 0..3 {
        assert_eq!(count(anthropic, r#"{"model":"c-1","messages":[]}"#)["input_tokens"], 7);
        assert_eq!(count(gemini, r#"{"contents":[]}"#)["totalTokens"], 7);
    }
    // 18 bytes of text, with the name of the model.
    let other = r#"{"model":"c-1","messages":[{"content":"sixteen letters"}]}"#;
    assert_eq!(count(anthropic, other)["input_tokens"], 5);
    assert_eq!(count(gemini, r#"{"contents":[{"parts":[{"text":"sixteen letters"}]}]}"#)["totalTokens"], 5);
    assert_eq!(*missed.lock().unwrap(), [""; 0]);
}
