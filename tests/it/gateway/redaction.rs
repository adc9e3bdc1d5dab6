//! Text that must not be stored, in the forms in which bodies contain it.

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
