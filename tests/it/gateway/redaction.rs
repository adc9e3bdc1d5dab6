//! Text that must not be stored, in the forms in which bodies contain it.

use std::sync::{Arc, Mutex};

use runvault::gateway::GatewayMode;
use runvault::secrets::SecretPolicy;
use serde_json::json;

use super::client::request;
use super::scripted::{options, response, server};
use super::{spooled, started, steps};
use crate::sandbox::Sandbox;

const BODY: &str = r#"{"messages":[{"role":"user","content":"hi"}]}"#;

/// A stream of events in which a text is split into these parts.
fn events(parts: &[&str]) -> String {
    let event = |part: &&str| format!("data: {}\n\n", json!({"choices": [{"delta": {"content": part}}]}));
    format!("{}data: [DONE]\n\n", parts.iter().map(event).collect::<String>())
}

/// Records a response, and returns all that is stored of the call, on disk and in the vault.
fn stored(content_type: &'static str, body: &str, path: &str, patterns: &[&str]) -> String {
    let sandbox = Sandbox::without_vault();
    let body = body.to_owned();
    let upstream = server(move |_| vec![(0, response(content_type, &body))]);
    let mut options = options(&sandbox, GatewayMode::Record, upstream);
    for pattern in patterns {
        options.rules.redact(pattern).unwrap();
    }
    let gateway = started(&sandbox, options).unwrap();
    request(gateway.address(), &format!("POST {path}"), &[], BODY);
    let mut stored = spooled(&sandbox);
    gateway.stop().unwrap();
    for artifact in sandbox.run(["find", "--json"]).expect(0).json() {
        stored.push_str(&sandbox.run(["get", artifact["core_hash"].as_str().unwrap()]).expect(0).stdout);
    }
    assert!(stored.contains("[REDACTED]"), "{stored}");
    stored
}

#[test]
fn escaped_text_is_redacted_in_all_that_is_stored() {
    let body = r#"{"choices":[{"message":{"content":"M\u00fcller has sk\/SECRET\"77"}}]}"#;
    let path = "/openai/v1/chat/completions";
    let stored =
        stored("application/json; v=CONTENT7", body, path, &["M\u{fc}ller", r#"sk/SECRET"\d+"#, "CONTENT7"]);
    for secret in ["M\u{fc}ller", "u00fcller", "SECRET", "CONTENT7"] {
        assert!(!stored.contains(secret), "{secret}: {stored}");
    }
}

#[test]
fn text_that_is_split_over_events_is_redacted() {
    let body = events(&["the key is sk-S", "ECR", "ET7 and", " more"]);
    let stored = stored("text/event-stream", &body, "/openai/v1/chat/completions", &["sk-[A-Z]+7"]);
    for part in ["sk-S", "ECR", "ET7"] {
        assert!(!stored.contains(part), "{part}: {stored}");
    }
    assert!(stored.contains("the key is [REDACTED] and more"), "{stored}");
}

#[test]
fn paths_are_redacted() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}"#;
    let path = "/gemini/v1beta/models/sk%2DSECRET:generateContent";
    let stored = stored("application/json", body, path, &["sk-[A-Z]+"]);
    assert!(!stored.contains("SECRET"), "{stored}");
}

#[test]
fn secrets_that_are_split_or_escaped_are_refused() {
    let key = ["sk-ant-", "api03-", &"aB3_dE6-gH9jK2mN5pQ8".repeat(3)].concat();
    let (one, other) = key.split_at(20);
    let split = events(&["my key is ", one, other, " ."]);
    let escaped = format!(r#"{{"choices":[{{"message":{{"content":"sk\u002d{}"}}}}]}}"#, &key[3..]);
    for (content_type, body) in [("text/event-stream", split), ("application/json", escaped)] {
        let sandbox = Sandbox::without_vault();
        let upstream = server(move |_| vec![(0, response(content_type, &body))]);
        let mut options = options(&sandbox, GatewayMode::Record, upstream);
        options.secrets = SecretPolicy::Refuse;
        let gateway = started(&sandbox, options).unwrap();
        request(gateway.address(), "POST /openai/v1/chat/completions", &[], BODY);
        assert_eq!((spooled(&sandbox), gateway.stop().unwrap()), (String::new(), Vec::new()));
    }
}

/// A key in two parts, neither of which matches alone, and its pattern.
const SPLIT: [&str; 2] = ["zk-QWERT", "YUIOPAS"];
const PATTERN: &str = "zk-[A-Z]{12}";

#[test]
fn probabilities_other_choices_and_arguments_are_redacted() {
    let [one, other] = SPLIT;
    let spelled: Vec<u8> = one.bytes().collect();
    let event = |index: u32, part: &str| {
        let token = json!({"token": part, "logprob": -0.5, "bytes": part.as_bytes(), "top_logprobs": []});
        let choice = json!({"index": index, "delta": {"content": part}, "logprobs": {"content": [token]}});
        format!("data: {}\n\n", json!({"object": "chat.completion.chunk", "choices": [choice]}))
    };
    let stream =
        [event(0, "hello"), event(1, "a "), event(1, one), event(0, " you"), event(1, other)].concat();
    let arguments = format!(r#"{{"key":"zk\u002d{}{other}"}}"#, &one[3..]);
    let function = json!({"name": "f", "arguments": arguments});
    let message =
        json!({"content": null, "tool_calls": [{"id": "c", "type": "function", "function": function}]});
    let gemini = json!({"candidates": [
        {"content": {"parts": [{"text": "hi"}]}},
        {"content": {"parts": [{"text": one}, {"text": other}]},
         "logprobsResult": {"chosenCandidates": [{"token": one}, {"token": other}]}},
    ]});
    let delta = |part: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": part});
        format!(
            "event: content_block_delta\ndata: {}\n\n",
            json!({"type": "content_block_delta", "index": 1, "delta": delta})
        )
    };
    let anthropic = format!(
        "{}event: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n",
        arguments.split_inclusive("u0").map(delta).collect::<String>()
    );
    let responses = json!({"object": "response", "output": [{"type": "message", "content": [
        {"type": "output_text", "text": format!("{one}{other}"),
         "logprobs": [{"token": one, "bytes": spelled}, {"token": other}]},
    ]}]});
    for (content_type, path, body) in [
        ("text/event-stream", "/openai/v1/chat/completions", format!("\u{feff}{stream}data: [DONE]\n\n")),
        (
            "application/json",
            "/openai/v1/chat/completions",
            json!({"choices": [{"message": message}]}).to_string(),
        ),
        ("application/json", "/gemini/v1beta/models/g:generateContent", gemini.to_string()),
        ("text/event-stream", "/anthropic/v1/messages", anthropic),
        ("application/json", "/openai/v1/responses", responses.to_string()),
        ("application/json", "/local/generate", json!({"answers": [one, other]}).to_string()),
    ] {
        let stored = stored(content_type, &body, path, &[PATTERN]);
        let spelled = format!("{spelled:?}").replace(' ', "");
        for part in [&one[3..], &other[..5], &spelled[1..spelled.len() - 1]] {
            assert!(!stored.contains(part), "{path}: {part}: {stored}");
        }
    }
}

#[test]
fn requests_in_which_messages_share_a_secret_are_redacted() {
    let [one, other] = SPLIT;
    let sandbox = Sandbox::without_vault();
    let upstream = server(|_| vec![(0, response("application/json", r#"{"choices":[]}"#))]);
    let mut options = options(&sandbox, GatewayMode::Record, upstream);
    options.rules.redact(PATTERN).unwrap();
    let gateway = started(&sandbox, options).unwrap();
    let parts = json!([{"type": "text", "text": other}, {"type": "text", "text": " thanks"}]);
    let messages =
        json!([{"role": "user", "content": format!("it is {one}")}, {"role": "user", "content": parts}]);
    let body = json!({"model": "m", "messages": messages}).to_string();
    request(gateway.address(), "POST /openai/v1/chat/completions", &[], &body).expect(200);
    gateway.stop().unwrap();
    let stored = steps(&sandbox)[0].to_string();
    assert!(stored.contains("it is [REDACTED]") && stored.contains(" thanks"), "{stored}");
    assert!(!stored.contains(&one[3..]) && !stored.contains(other), "{stored}");
}

#[test]
fn a_stream_that_breaks_off_in_a_secret_does_not_keep_its_beginning() {
    let [one, _] = SPLIT;
    let sandbox = Sandbox::without_vault();
    let event = events(&["the key is ", one]).replace("data: [DONE]\n\n", "");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    let upstream = server(move |_| {
        vec![(0, format!("{head}{event}data: {{\"choices\":[{{\"delta\":{{\"content\":\"YU"))]
    });
    let mut options = options(&sandbox, GatewayMode::Record, upstream);
    options.rules.redact(PATTERN).unwrap();
    let gateway = started(&sandbox, options).unwrap();
    request(gateway.address(), "POST /openai/v1/chat/completions", &[], BODY);
    let mut stored = spooled(&sandbox);
    gateway.stop().unwrap();
    stored.push_str(&steps(&sandbox)[1].to_string());
    assert!(stored.contains("the key is ") && !stored.contains(&one[3..]), "{stored}");
}

#[test]
fn an_answer_that_cannot_be_redacted_is_named_and_not_stored() {
    let sandbox = Sandbox::without_vault();
    let upstream =
        server(|_| vec![(0, response("application/json", r#"{"choices":[{"message":"zk\u002dQWE"#))]);
    let mut options = options(&sandbox, GatewayMode::Record, upstream);
    options.rules.redact(PATTERN).unwrap();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&reported);
    options.report = Arc::new(move |event| into.lock().unwrap().push(format!("{event:?}")));
    let gateway = started(&sandbox, options).unwrap();
    request(gateway.address(), "POST /openai/v1/chat/completions", &[], BODY).expect(200);
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.failed), (1, 1));
    let step = steps(&sandbox)[1].to_string();
    assert!(step.contains("the answer is not stored: it begins as JSON but cannot be decoded"), "{step}");
    let reported = reported.lock().unwrap().join("\n");
    assert!(reported.contains("NotRecorded") && reported.contains("the answer is not stored"), "{reported}");
    assert!(!step.contains("QWE") && !reported.contains("QWE"), "{step} {reported}");
}

#[test]
fn credentials_are_in_nothing_that_is_stored_or_reported() {
    let canary = "kanarie-7Q";
    let sandbox = Sandbox::without_vault();
    let head = format!(
        "content-type: application/json\r\nset-cookie: sid={canary}\r\nwww-authenticate: Basic {canary}\r\n\
         location: http://u:{canary}@h/?k={canary}\r\nproxy-authenticate: {canary}\r\nx-request-id: {canary}\r\nconnection: close\r\n\r\n"
    );
    let upstream = server(move |line| {
        let status = if line.contains("redirect") { "307 Temporary Redirect" } else { "200 OK" };
        let cut = if line.contains("broken") { "content-length: 99\r\n" } else { "" };
        vec![(0, format!("HTTP/1.1 {status}\r\n{cut}{head}{{\"choices\":[]}}"))]
    });
    let mut options = options(&sandbox, GatewayMode::Auto, upstream);
    let reported = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&reported);
    options.report = Arc::new(move |event| into.lock().unwrap().push(format!("{event:?}")));
    let gateway = started(&sandbox, options).unwrap();
    let headers = [
        "authorization: Bearer",
        "x-api-key:",
        "x-goog-api-key:",
        "api-key:",
        "cookie: sid=",
        "proxy-authorization: Basic",
        "x-amz-security-token:",
        "openai-organization:",
        "referer: http://h/?k=",
    ];
    let headers: Vec<String> = headers.iter().map(|header| format!("{header} {canary}")).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    for path in [
        "/openai/v1/chat/completions",
        "/openai/v1/broken/chat/completions",
        "/openai/v1/redirect/chat/completions",
        "/gemini/v1beta/models/g:generateContent",
        "/local/generate",
        "/openai/v1/models",
        "/unknown",
        "/local/../x",
    ] {
        for body in [BODY, "not JSON"] {
            let line = format!("POST {path}?key={canary}&access_token={canary}");
            request(gateway.address(), &line, &headers, body);
        }
    }
    let mut all = spooled(&sandbox);
    gateway.stop().unwrap();
    for artifact in sandbox.run(["find", "--json"]).expect(0).json() {
        let core = artifact["core_hash"].as_str().unwrap().to_owned();
        for command in ["get", "show"] {
            all.push_str(&sandbox.run([command, &core]).expect(0).stdout);
        }
    }
    all.push_str(&sandbox.run(["log", "--json"]).expect(0).stdout);
    assert!(all.contains("/v1/chat/completions"), "{all}");
    let reported = reported.lock().unwrap().join("\n");
    assert!(reported.contains("Recorded"), "{reported}");
    assert!(!all.contains(canary) && !reported.contains(canary), "{reported}\n{all}");
}

#[test]
fn the_text_of_other_calls_is_stored_unchanged() {
    let sandbox = Sandbox::without_vault();
    let body = "{ \"choices\": [{\"message\": {\"content\": \"M\\u00fc\"}}] }\n";
    let upstream = server(move |_| vec![(0, response("application/json", body))]);
    let mut options = options(&sandbox, GatewayMode::Record, upstream);
    options.rules.redact("sk-[A-Z]+").unwrap();
    let gateway = started(&sandbox, options).unwrap();
    request(gateway.address(), "POST /openai/v1/chat/completions", &[], BODY);
    gateway.stop().unwrap();
    assert_eq!(steps(&sandbox)[1]["output"]["content"], body);
}
