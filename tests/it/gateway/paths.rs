//! Requests with the same body that differ in their paths or queries.

use runvault::gateway::GatewayMode;
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
