//! What clients of a provider need to show why a call was not answered.

use runvault::gateway::{GatewayMode, Upstream as Server};
use serde_json::{Value, json};

use super::client::{chat, request};
use super::scripted::{self, server};
use super::upstream::Upstream;
use super::{kinds, options, start, started, steps};
use crate::sandbox::Sandbox;

/// A request of each API in which clients look for the message in another form.
const REQUESTS: [&str; 2] = ["POST /anthropic/v1/messages", "POST /gemini/v1beta/models/g:generateContent"];

/// Returns what a gateway answers to these requests.
fn answers(gateway: &runvault::gateway::Gateway, status: u16) -> [Value; 2] {
    REQUESTS.map(|line| request(gateway.address(), line, &[], r#"{"messages":[]}"#).expect(status).json())
}

#[test]
fn clients_of_each_provider_find_the_message() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let [anthropic, gemini] = answers(&start(&sandbox, GatewayMode::Replay, &upstream), 400);
    let message = "not recorded: no request of this API was recorded";
    assert_eq!((&anthropic["type"], &anthropic["error"]["message"]), (&json!("error"), &json!(message)));
    let error =
        json!({"code": 400, "status": "INVALID_ARGUMENT", "type": "not_recorded", "message": message});
    assert_eq!(gemini["error"], error);

    let mut unreachable = options(&sandbox, GatewayMode::Record, &upstream);
    // Port 9 has no server.
    let server = |name: &&str| Server::parse(&format!("{name}=http://127.0.0.1:9")).unwrap();
    unreachable.upstreams = ["anthropic", "gemini"].iter().map(server).collect();
    let [anthropic, gemini] = answers(&started(&sandbox, unreachable).unwrap(), 502);
    assert_eq!((&anthropic["type"], &gemini["error"]["status"]), (&json!("error"), &json!("UNAVAILABLE")));
}

#[test]
fn headers_by_which_clients_ask_again_are_replayed() {
    let sandbox = Sandbox::without_vault();
    let headers = ["retry-after: 1", "retry-after-ms: 1500", "x-should-retry: false"];
    let head = format!("HTTP/1.1 529 X\r\n{}\r\ncontent-length: 2\r\n\r\n{{}}", headers.join("\r\n"));
    let upstream = server(move |_| vec![(0, head.clone())]);
    let ask = |mode| {
        let gateway = started(&sandbox, scripted::options(&sandbox, mode, upstream)).unwrap();
        let answer = request(gateway.address(), REQUESTS[0], &[], r#"{"messages":[]}"#).expect(529);
        gateway.stop().unwrap();
        headers.map(|header| answer.head.lines().any(|line| line == header))
    };
    assert_eq!(ask(GatewayMode::Record), [true; 3]);
    assert_eq!(ask(GatewayMode::Replay), [true; 3]);
    let output = &steps(&sandbox)[1]["output"];
    assert_eq!((&output["retry_after_ms"], &output["should_retry"]), (&json!("1500"), &json!("false")));
}

#[test]
fn answers_that_cannot_be_decompressed_are_passed_on_and_recorded_as_failures() {
    let sandbox = Sandbox::without_vault();
    let encodings = ["identity", "gzip"];
    let answer =
        |encoding| format!("HTTP/1.1 200 X\r\ncontent-encoding: {encoding}\r\ncontent-length: 2\r\n\r\n{{}}");
    let upstream = server(move |line| {
        vec![(0, answer(if line.contains("gzip") { encodings[1] } else { encodings[0] }))]
    });
    let gateway = started(&sandbox, scripted::options(&sandbox, GatewayMode::Record, upstream)).unwrap();
    for encoding in encodings {
        let line = format!("POST /anthropic/{encoding}/messages");
        request(gateway.address(), &line, &[], r#"{"messages":[]}"#).expect(200);
    }
    assert_eq!(gateway.finish(None).unwrap().unwrap().calls, 2);
    let failed = steps(&sandbox).iter().filter(|step| step["type"] == "error.event").count();
    assert_eq!(failed, 1, "{:?}", steps(&sandbox));
}

#[test]
fn servers_are_asked_not_to_compress() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let line = "POST /openai/v1/chat/completions";
    request(gateway.address(), line, &["accept-encoding: gzip, br"], r#"{"messages":[]}"#).expect(200);
    let heads = upstream.heads().to_ascii_lowercase();
    assert!(heads.contains("accept-encoding: identity\r\n"), "{heads}");
    assert!(!heads.contains("gzip"), "{heads}");
}

#[test]
fn redirections_are_passed_on_and_not_recorded() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let redirected = chat(gateway.address(), "redirect", false).expect(307);
    let line = format!("POST {}", redirected.header("location").unwrap());
    let body =
        json!({"model": "m-1", "stream": false, "messages": [{"role": "user", "content": "redirect"}]});
    let answer = request(gateway.address(), &line, &[], &body.to_string()).expect(200);
    gateway.stop().unwrap();
    assert_eq!((kinds(&sandbox), steps(&sandbox).len()), (vec!["model_io".to_owned(), "rpk".to_owned()], 2));
    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    assert_eq!(chat(replaying.address(), "redirect", false).expect(200).body, answer.body);
}

#[test]
fn a_web_socket_is_refused_so_that_clients_use_http() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    for mode in [GatewayMode::Record, GatewayMode::Replay, GatewayMode::Pass] {
        let gateway = start(&sandbox, mode, &upstream);
        let headers = ["connection: Upgrade", "upgrade: WebSocket", "sec-websocket-version: 13"];
        let answer = request(gateway.address(), "GET /openai/v1/audio", &headers, "").expect(426);
        assert_eq!(answer.header("upgrade"), Some("http/1.1"));
        assert!(answer.json()["detail"].as_str().unwrap().contains("HTTP"), "{}", answer.body);
    }
    assert_eq!(upstream.requests(), 0);
}

#[test]
fn a_miss_names_the_rules_with_which_it_would_match() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let ask = |gateway: &runvault::gateway::Gateway, day: &str, seed: u8| {
        let messages = json!([{"role": "user", "content": format!("Today is {day}.")}]);
        let body = json!({"model": "m", "seed": seed, "messages": messages}).to_string();
        request(gateway.address(), "POST /v1/chat/completions", &[], &body)
    };
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    ask(&recording, "Thu Nov 26 2026", 1).expect(200);
    recording.stop().unwrap();
    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    let missed = ask(&replaying, "Fri Nov 27 2026", 2).expect(400).json();
    assert_eq!(
        missed["detail"],
        "messages[0].content differs: recorded \"Today is Thu Nov 26 2026.\", requested \"Today is Fri Nov 27 2026.\"; \
         seed differs: recorded 1, requested 2; it would match with normalize date ignore seed"
    );
    assert_eq!(missed["rules"], json!(["normalize date", "ignore seed"]));
    let other = ask(&replaying, "over", 2).expect(400).json();
    assert_eq!(other["rules"], json!([]));
}
