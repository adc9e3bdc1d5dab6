//! Calls of which only a failure was recorded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use runvault::gateway::{Gateway, GatewayEvent, GatewayMode};

use super::client::{Answer, chat, request};
use super::scripted::{options, server};
use super::started;
use crate::sandbox::Sandbox;

/// A body of a chat completion.
const ANSWER: &str =
    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;

/// Starts a server that sends these answers, each once.
fn scripted(answers: &'static [(u16, &'static str, &'static str)]) -> std::net::SocketAddr {
    let next = AtomicUsize::new(0);
    server(move |_| {
        let (status, content_type, body) = answers[next.fetch_add(1, Ordering::SeqCst)];
        let length = body.len();
        let head = format!("content-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close");
        vec![(0, format!("HTTP/1.1 {status} X\r\n{head}\r\n\r\n{body}"))]
    })
}

/// Runs a gateway for as many calls with the same prompt, and returns the answers and the reasons for asking again.
fn ask(
    sandbox: &Sandbox,
    mode: GatewayMode,
    server: std::net::SocketAddr,
    calls: usize,
) -> (Vec<Answer>, Vec<String>) {
    let reasons = Arc::new(Mutex::new(Vec::new()));
    let for_gateway = Arc::clone(&reasons);
    let mut options = options(sandbox, mode, server);
    options.report = Arc::new(move |event| {
        if let GatewayEvent::AskedAgain { reason, .. } = event {
            for_gateway.lock().unwrap().push((*reason).to_owned());
        }
    });
    let gateway: Gateway = started(sandbox, options).unwrap();
    let answers = (0..calls).map(|_| chat(gateway.address(), "one", false)).collect();
    gateway.stop().unwrap();
    let reasons = reasons.lock().unwrap().clone();
    (answers, reasons)
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

#[test]
fn auto_asks_again_where_only_an_error_was_recorded_and_says_why() {
    const JSON: &str = "application/json";
    for status in [503, 401, 404] {
        let sandbox = Sandbox::without_vault();
        let error = r#"{"error":{"message":"no"}}"#;
        let answers: Vec<_> = vec![(status, JSON, error), (200, JSON, ANSWER)];
        let server = scripted(answers.leak());
        let (first, reasons) = ask(&sandbox, GatewayMode::Auto, server, 1);
        assert_eq!((statuses(&first), reasons), (vec![status], vec![]));
        // What is only replayed is the error.
        let (replayed, _) = ask(&sandbox, GatewayMode::Replay, server, 1);
        assert_eq!((statuses(&replayed), &replayed[0].body), (vec![status], &first[0].body));
        let (second, reasons) = ask(&sandbox, GatewayMode::Auto, server, 1);
        assert_eq!(statuses(&second), [200]);
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0] == format!("HTTP status {status}") || reasons[0] == "no", "{reasons:?}");
        // The server has no further answer: it is not asked any more.
        let (third, reasons) = ask(&sandbox, GatewayMode::Auto, server, 1);
        assert_eq!((&third[0].body, reasons), (&second[0].body, vec![]));
    }
}

#[test]
fn answers_that_followed_an_error_are_replayed_without_it_in_auto_and_with_it_in_replay() {
    const JSON: &str = "application/json";
    let sandbox = Sandbox::without_vault();
    let server = scripted(&[
        (503, JSON, "{}"),
        (200, JSON, r#"{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}"#),
        (200, JSON, r#"{"choices":[{"index":0,"message":{"content":"b"},"finish_reason":"stop"}]}"#),
    ]);
    let (first, _) = ask(&sandbox, GatewayMode::Auto, server, 2);
    assert_eq!(statuses(&first), [503, 200]);
    let (second, reasons) = ask(&sandbox, GatewayMode::Auto, server, 2);
    assert_eq!((statuses(&second), reasons), (vec![200, 200], vec![]));
    assert_eq!(second[0].body, first[1].body);
    let bodies = |answers: &[Answer]| answers.iter().map(|answer| answer.body.clone()).collect::<Vec<_>>();
    let (replayed, _) = ask(&sandbox, GatewayMode::Replay, server, 3);
    assert_eq!(statuses(&replayed), [503, 200, 200]);
    assert_eq!(bodies(&replayed[1..]), bodies(&second));
}

#[test]
fn failures_with_status_200_are_asked_again_and_replayed_only_from_a_recording_that_is_named() {
    const EVENTS: &str = "text/event-stream";
    let whole = r#"{"error":{"message":"overloaded"}}"#;
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    for (stream, content_type, failure, answer) in [
        (true, EVENTS, "data: {\"error\":{\"message\":\"overloaded\"}}\n\n", end),
        (true, EVENTS, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\"}}]}\n\n", end),
        (false, "application/json", whole, ANSWER),
    ] {
        let sandbox = Sandbox::without_vault();
        let server = scripted(vec![(200, content_type, failure), (200, content_type, answer)].leak());
        let ask = |mode, prefix: &str| {
            let gateway = started(&sandbox, options(&sandbox, mode, server)).unwrap();
            let body = serde_json::json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "one"}]});
            let line = format!("POST {prefix}/openai/v1/chat/completions");
            let answer = request(gateway.address(), &line, &[], &body.to_string());
            (answer, gateway.stop().unwrap())
        };
        let (first, runs) = ask(GatewayMode::Auto, "");
        assert_eq!(first.body, failure);
        let missed = ask(GatewayMode::Replay, "").0.expect(400).json();
        assert!(missed["detail"].as_str().unwrap().contains("recorded with a failure"), "{missed}");
        let named = ask(GatewayMode::Replay, &format!("/recording/{}", runs[0].run_pack)).0;
        assert_eq!((named.status, named.body.as_str()), (200, failure));
        assert_eq!(ask(GatewayMode::Auto, "").0.body, answer);
        assert_eq!(ask(GatewayMode::Replay, "").0.expect(200).body, answer);
    }
}
