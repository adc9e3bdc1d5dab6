//! Bedrock, whose streams are binary messages, and other servers whose host depends on a region or a resource.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use runvault::gateway::{AwsKey, GatewayMode, GatewayOptions, Upstream as Server};
use serde_json::{Value, json};

use super::client::{Answer, request};
use super::scripted::{self, response, server, server_of_bytes};
use super::{spooled, started, steps};
use crate::sandbox::Sandbox;

/// The type of content of the streams.
const STREAM: &str = "application/vnd.amazon.eventstream";

/// Returns a message.
fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let headers = headers.iter().flat_map(|(name, value)| {
        let lengths = (u8::try_from(name.len()).unwrap(), u16::try_from(value.len()).unwrap().to_be_bytes());
        [&[lengths.0], name.as_bytes(), &[7], &lengths.1, value.as_bytes()].concat()
    });
    let headers: Vec<u8> = headers.collect();
    let lengths = [16 + headers.len() + payload.len(), headers.len()];
    let mut message = lengths.map(|length| u32::try_from(length).unwrap().to_be_bytes()).concat();
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message.extend_from_slice(&headers);
    message.extend_from_slice(payload.as_bytes());
    message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    message
}

fn event(name: &str, payload: &Value) -> Vec<u8> {
    let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    message(&headers, &payload.to_string())
}

/// The events of a model that thinks, says something and calls a tool.
fn converse() -> Vec<Vec<u8>> {
    let block = |index: u32, delta: Value| {
        event("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta, "p": "abcd"}))
    };
    let tool = json!({"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather"}});
    let usage = json!({"inputTokens": 30, "outputTokens": 12, "totalTokens": 42});
    vec![
        event("messageStart", &json!({"role": "assistant", "p": "ab"})),
        block(0, json!({"reasoningContent": {"text": "They ask for the sky."}})),
        block(1, json!({"text": "I look "})),
        block(1, json!({"text": "it up."})),
        event("contentBlockStart", &json!({"contentBlockIndex": 2, "start": tool})),
        block(2, json!({"toolUse": {"input": "{\"city\":"}})),
        block(2, json!({"toolUse": {"input": "\"Paris\"}"}})),
        event("contentBlockStop", &json!({"contentBlockIndex": 2})),
        event("messageStop", &json!({"stopReason": "tool_use"})),
        event("metadata", &json!({"usage": usage, "metrics": {"latencyMs": 1}})),
    ]
}

/// The events of a model of Anthropic, of which each is data in a chunk.
fn invoke() -> Vec<Vec<u8>> {
    let message = json!({"id": "msg_1", "content": [], "usage": {"input_tokens": 30}});
    let tool = json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}});
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let events = [
        json!({"type": "message_start", "message": message}),
        delta(0, json!({"type": "thinking_delta", "thinking": "They ask for the sky."})),
        delta(1, json!({"type": "text_delta", "text": "I look it up."})),
        json!({"type": "content_block_start", "index": 2, "content_block": tool}),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"city\":\"Paris\"}"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 12}}),
        json!({"type": "message_stop"}),
    ];
    let chunk = |data: &Value| json!({"bytes": STANDARD.encode(data.to_string()), "p": "abc"});
    events.iter().map(|data| event("chunk", &chunk(data))).collect()
}

/// Starts a server that sends a stream in two parts.
fn streaming(stream: Vec<u8>) -> SocketAddr {
    server_of_bytes(move |_, _| {
        let (first, last) = stream.split_at(stream.len() / 2);
        let head = response(STREAM, "").into_bytes();
        vec![(0, [&head, first].concat()), (0, last.to_vec())]
    })
}

/// Returns options with which a provider is a server.
fn options(sandbox: &Sandbox, mode: GatewayMode, name: &str, server: SocketAddr) -> GatewayOptions {
    let mut options = scripted::options(sandbox, mode, server);
    options.upstreams = vec![Server::parse(&format!("{name}=http://{server}")).unwrap()];
    options
}

/// Asks a model, with a signature that must not be stored.
fn ask(gateway: SocketAddr, method: &str) -> Answer {
    let body = json!({"messages": [{"role": "user", "content": [{"text": "The sky over Paris?"}]}]});
    let line = format!("POST /bedrock/model/a.b-v1%3A0/{method}");
    let signed = "authorization: AWS4-HMAC-SHA256 Credential=the-key/20260101/r/s/aws4_request, \
        SignedHeaders=host, Signature=secret-signature";
    request(gateway, &line, &[signed, "x-amz-security-token: secret-token"], &body.to_string())
}

/// Records an answer, and returns the numbers of calls and of sessions, of which failures are no part.
fn recorded(sandbox: &Sandbox, method: &str, stream: &[u8]) -> (u64, usize) {
    let server = streaming(stream.to_vec());
    let gateway = started(sandbox, options(sandbox, GatewayMode::Record, "bedrock", server)).unwrap();
    let answer = ask(gateway.address(), method).expect(200);
    assert_eq!((answer.header("content-type"), &*answer.bytes), (Some(STREAM), stream));
    assert!(!spooled(sandbox).contains("secret"));
    let run = gateway.stop().unwrap().remove(0);
    (run.calls, run.sessions.len())
}

#[test]
fn streams_are_recorded_and_replayed_byte_for_byte() {
    for (method, events) in [("converse-stream", converse()), ("invoke-with-response-stream", invoke())] {
        let (sandbox, stream) = (Sandbox::without_vault(), events.concat());
        assert_eq!(recorded(&sandbox, method, &stream), (1, 1));
        let output = steps(&sandbox).remove(1)["output"].clone();
        assert_eq!(output["content_type"], "text/event-stream; transport=vnd.amazon.eventstream");
        let text = output["content"].as_str().unwrap();
        assert!(text.contains("I look ") && !text.contains("secret"), "{text}");
        let server = SocketAddr::from(([127, 0, 0, 1], 9));
        let replaying = started(&sandbox, options(&sandbox, GatewayMode::Replay, "bedrock", server)).unwrap();
        let replayed = ask(replaying.address(), method).expect(200);
        assert_eq!((replayed.header("content-type"), &replayed.bytes), (Some(STREAM), &stream));
        // Another method has another answer.
        ask(replaying.address(), "converse").expect(400);
    }
}

#[test]
fn streams_are_read_as_conversations() {
    for (method, events) in [("converse-stream", converse()), ("invoke-with-response-stream", invoke())] {
        let sandbox = Sandbox::without_vault();
        recorded(&sandbox, method, &events.concat());
        let answer = sandbox.run(["view", "latest", "--json"]).expect(0).json().remove(0);
        let call = &answer["conversation"]["calls"][0];
        let said = call["answers"][0]["parts"].as_array().unwrap();
        let types: Vec<&str> = said.iter().map(|part| part["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["thinking", "text", "tool-call"], "{call}");
        assert_eq!(
            (&said[0]["text"], &said[1]["text"]),
            (&json!("They ask for the sky."), &json!("I look it up."))
        );
        assert_eq!(
            (&said[2]["name"], &said[2]["arguments"]),
            (&json!("get_weather"), &json!("{\"city\":\"Paris\"}"))
        );
        assert_eq!(call["finish_reason"], "tool_use", "{call}");
        for (name, value) in [
            ("model_id", "a.b-v1:0"),
            ("tool", "get_weather"),
            ("finish_reason", "tool_use"),
            ("tokens", "42"),
        ] {
            let condition = format!("{name}={value}");
            let found = sandbox.run(["find", "rpk", "--attr", &condition, "--json"]).expect(0).json();
            assert_eq!(found.len(), 1, "{condition}");
        }
    }
}

#[test]
fn a_stream_that_is_not_complete_is_a_failure() {
    let events = converse();
    let stream = events.concat();
    let mut damaged = stream.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let without_end = events[..7].concat();
    let headers = [
        (":exception-type", "throttlingException"),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    let exception = [&events[..3].concat(), &*message(&headers, r#"{"message":"Too many tokens"}"#)].concat();
    for (stream, reason) in [
        (&stream[..stream.len() - 1], "it ends inside a message"),
        (&damaged, "the checksum of a message is wrong"),
        (&without_end, "the stream was broken off"),
        (&exception, "Too many tokens"),
    ] {
        let sandbox = Sandbox::without_vault();
        assert_eq!(recorded(&sandbox, "converse-stream", stream), (1, 0), "{reason}");
        let shown = sandbox.run(["view", "latest"]).expect(0).stdout;
        assert!(shown.contains(reason), "{shown}");
        let server = SocketAddr::from(([127, 0, 0, 1], 9));
        let replaying = started(&sandbox, options(&sandbox, GatewayMode::Replay, "bedrock", server)).unwrap();
        let missed = ask(replaying.address(), "converse-stream").expect(400).json();
        // The SDKs of AWS show these members.
        assert_eq!(
            (&missed["message"], &missed["__type"]),
            (&missed["error"]["message"], &json!("not_recorded"))
        );
    }
}

#[test]
fn text_to_be_redacted_is_not_in_what_is_replayed() {
    let sandbox = Sandbox::without_vault();
    let stream = invoke().concat();
    let options = |mode| {
        let mut options = options(&sandbox, mode, "bedrock", streaming(stream.clone()));
        options.rules.redact("look it").unwrap();
        options
    };
    let gateway = started(&sandbox, options(GatewayMode::Record)).unwrap();
    assert_eq!(ask(gateway.address(), "invoke-with-response-stream").expect(200).bytes, stream);
    gateway.stop().unwrap();
    let replaying = started(&sandbox, options(GatewayMode::Replay)).unwrap();
    let replayed = ask(replaying.address(), "invoke-with-response-stream").expect(200);
    let redacted = json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I [REDACTED] up."}});
    let chunk = event("chunk", &json!({"bytes": STANDARD.encode(redacted.to_string()), "p": "abc"}));
    assert!(replayed.bytes.windows(chunk.len()).any(|part| part == chunk), "{replayed:?}");
}

#[test]
fn a_server_that_is_not_given_is_named() {
    let sandbox = Sandbox::without_vault();
    let nothing = GatewayOptions::new(GatewayMode::Auto, &sandbox.path("spool"));
    let gateway = started(&sandbox, nothing).unwrap();
    let paths =
        ["azure/openai/deployments/d/chat/completions", "bedrock/model/m/converse", "vertex/v1/m:rawPredict"];
    for path in paths {
        let refused = request(gateway.address(), &format!("POST /{path}"), &[], "{}").expect(400);
        let name = path.split('/').next().unwrap();
        let reason = format!("no URL of the server of {name} is given");
        assert!(refused.json()["detail"].as_str().unwrap().starts_with(&reason), "{}", refused.body);
        assert_eq!(refused.header("x-should-retry"), Some("false"));
    }
    assert!(gateway.stop().unwrap().is_empty());
}

#[test]
fn a_request_that_is_signed_with_another_key_than_that_of_the_gateway_is_not_sent_to_aws() {
    let sandbox = Sandbox::without_vault();
    let mut options = GatewayOptions::new(GatewayMode::Record, &sandbox.path("spool"));
    let host = "bedrock-runtime.us-east-1.amazonaws.com";
    options.upstreams = vec![Server::parse(&format!("bedrock=https://{host}")).unwrap()];
    options.aws_key = Some(AwsKey::new("other-key".to_owned(), "other-secret".to_owned()));
    let gateway = started(&sandbox, options).unwrap();
    let refused = ask(gateway.address(), "converse").expect(400).json();
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("with the key the-key") && detail.contains(host), "{detail}");
}

#[test]
fn models_and_deployments_in_paths_are_those_of_calls() {
    let chat = r#"{"choices":[{"message":{"content":"from azure"},"finish_reason":"stop"}]}"#;
    let message =
        r#"{"type":"message","content":[{"type":"text","text":"from vertex"}],"stop_reason":"end_turn"}"#;
    let candidates =
        r#"{"candidates":[{"content":{"parts":[{"text":"from gemini"}]},"finishReason":"STOP"}]}"#;
    for (name, path, model, said, body) in [
        ("azure", "/azure/openai/deployments/d-1/chat/completions?api-version=1", "d-1", "from azure", chat),
        (
            "vertex",
            "/vertex/v1/projects/p/locations/l/publishers/anthropic/models/c@1:rawPredict",
            "c@1",
            "from vertex",
            message,
        ),
        (
            "vertex",
            "/vertex/v1/projects/p/locations/l/publishers/google/models/g-1:generateContent",
            "g-1",
            "from gemini",
            candidates,
        ),
    ] {
        let sandbox = Sandbox::without_vault();
        let upstream = server(move |_| vec![(0, response("application/json", body))]);
        let asked = r#"{"messages":[{"role":"user","content":"hi"}],"contents":[]}"#;
        let ask = |mode| {
            let gateway = started(&sandbox, options(&sandbox, mode, name, upstream)).unwrap();
            request(gateway.address(), &format!("POST {path}"), &[], asked).expect(200);
            gateway.stop().unwrap();
        };
        ask(GatewayMode::Record);
        ask(GatewayMode::Replay);
        let condition = format!("model_id={model}");
        let found = sandbox.run(["find", "rpk", "--attr", &condition, "--json"]).expect(0).json();
        assert_eq!(found.len(), 1, "{condition}");
        let shown = sandbox.run(["view", "latest"]).expect(0).stdout;
        assert!(shown.contains(said), "{shown}");
    }
}

#[test]
fn variables_point_clients_at_servers_that_are_given() {
    let sandbox = Sandbox::new();
    let script =
        r#"echo "$AZURE_OPENAI_ENDPOINT|$AWS_ENDPOINT_URL_BEDROCK_RUNTIME|$ANTHROPIC_VERTEX_BASE_URL""#;
    let urls = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = sandbox.command();
        command.arg("exec").args(options).args(["--", "sh", "-c", script]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        let path = |url: &str| url.splitn(4, '/').nth(3).map(str::to_owned).unwrap_or_default();
        line.trim().split('|').map(path).collect::<Vec<_>>()
    };
    assert_eq!(urls(&[], &[]), ["", "", ""]);
    assert_eq!(urls(&["--upstream=bedrock=http://h"], &[]), ["", "bedrock", ""]);
    assert_eq!(urls(&[], &[("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:9/")]), ["azure", "", ""]);
    assert_eq!(urls(&["--mode=replay"], &[]), ["azure", "bedrock", "vertex/v1"]);
}
