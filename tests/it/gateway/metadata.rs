//! Requests of agents that are no calls of a model, when calls are replayed.

use std::sync::{Arc, Mutex};

use runvault::gateway::{Gateway, GatewayEvent, GatewayMode};
use serde_json::json;

use super::client::request;
use super::scripted::{options, response, server};
use super::started;
use crate::sandbox::Sandbox;

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
