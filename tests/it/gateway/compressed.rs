//! Compressed requests and answers.

use std::io::Write;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use runvault::gateway::GatewayMode;

use super::client::{request, request_bytes};
use super::scripted::{options, server_of_bytes};
use super::{started, steps};
use crate::sandbox::Sandbox;

const REQUEST: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The empty document, in Brotli.
const BROTLI: &[u8] = b"\x8b\x00\x80{}\x03";

#[test]
fn compressed_answers_are_recorded_and_passed_on_unchanged() {
    let stream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let json = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
    let zstd = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (encoding, content_type, text, body) in [
        ("gzip", "application/json", json, gzip(json.as_bytes())),
        ("deflate", "application/json", json, zlib(json.as_bytes())),
        ("zstd", "text/event-stream", stream, zstd(stream)),
        ("br", "application/json", "{}", BROTLI.to_vec()),
        ("br, gzip", "application/json", "{}", gzip(BROTLI)),
    ] {
        let sandbox = Sandbox::without_vault();
        let sent = body.clone();
        let upstream = server_of_bytes(move |_, _| {
            let head = format!(
                "HTTP/1.1 200 X\r\ncontent-type: {content_type}\r\ncontent-encoding: {encoding}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                sent.len()
            );
            let (first, last) = sent.split_at(sent.len() / 2);
            vec![(0, [head.as_bytes(), first].concat()), (0, last.to_vec())]
        });
        let gateway = started(&sandbox, options(&sandbox, GatewayMode::Record, upstream)).unwrap();
        let request_text = REQUEST.replace("\"m\"", &format!("\"m\",\"stream\":{}", text == stream));
        let line = "POST /openai/v1/chat/completions";
        let answer = request(gateway.address(), line, &[], &request_text).expect(200);
        assert_eq!((answer.header("content-encoding"), &answer.bytes), (Some(encoding), &body));
        gateway.stop().unwrap();
        let response = steps(&sandbox).remove(1);
        assert_eq!(response["output"]["content"], text);
        let chunks = response["metadata"]["chunks"]["captured_ns"].as_array().unwrap().clone();
        let sizes = chunks.iter().map(|chunk| chunk[1].as_u64().unwrap());
        assert_eq!(sizes.sum::<u64>(), text.len() as u64);
        let replaying = started(&sandbox, options(&sandbox, GatewayMode::Replay, upstream)).unwrap();
        let replayed = request(replaying.address(), line, &[], &request_text).expect(200);
        assert_eq!((replayed.header("content-encoding"), replayed.body.as_str()), (None, text));
    }
}

#[test]
fn compressed_answers_without_their_end_are_failures() {
    let json = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
    for (encoding, body) in [
        ("gzip", gzip(json.as_bytes())),
        ("deflate", zlib(json.as_bytes())),
        ("zstd", zstd::encode_all(json.as_bytes(), 1).unwrap()),
        ("br", BROTLI.to_vec()),
    ] {
        let sandbox = Sandbox::without_vault();
        let sent = body.get(..body.len() - 1).unwrap().to_vec();
        let passed_on = sent.clone();
        let upstream = server_of_bytes(move |_, _| {
            let head = format!(
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n"
            );
            vec![(0, [head.as_bytes(), &sent].concat())]
        });
        let gateway = started(&sandbox, options(&sandbox, GatewayMode::Record, upstream)).unwrap();
        let line = "POST /openai/v1/chat/completions";
        let answer = request(gateway.address(), line, &[], REQUEST).expect(200);
        assert_eq!(answer.bytes, passed_on, "{encoding}");
        gateway.stop().unwrap();
        let failed = steps(&sandbox).remove(1);
        assert_eq!(failed["type"], "error.event", "{encoding}");
        let message = failed["output"]["message"].as_str().unwrap();
        let expected = format!("the answer has {encoding} data that is damaged or incomplete");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn compressed_requests_are_recorded_and_forwarded_unchanged() {
    let zstd = zstd::encode_all(REQUEST.as_bytes(), 1).unwrap();
    for (encoding, body) in [("gzip", gzip(REQUEST.as_bytes())), ("zstd", zstd)] {
        let sandbox = Sandbox::without_vault();
        let received = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&received);
        let upstream = server_of_bytes(move |_, body| {
            seen.lock().unwrap().push(body.to_vec());
            let answer = "{}";
            let head =
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close";
            vec![(0, format!("{head}\r\n\r\n{answer}").into_bytes())]
        });
        let header = format!("content-encoding: {encoding}");
        let line = "POST /openai/v1/chat/completions";
        let gateway = started(&sandbox, options(&sandbox, GatewayMode::Record, upstream)).unwrap();
        request_bytes(gateway.address(), line, &[&header], &body).expect(200);
        gateway.stop().unwrap();
        assert_eq!(*received.lock().unwrap(), std::slice::from_ref(&body));
        assert_eq!(steps(&sandbox)[0]["input"]["payload"]["messages"][0]["content"], "hi");
        let replaying = started(&sandbox, options(&sandbox, GatewayMode::Replay, upstream)).unwrap();
        request_bytes(replaying.address(), line, &[&header], &body).expect(200);
        let replaying = started(&sandbox, options(&sandbox, GatewayMode::Replay, upstream)).unwrap();
        request(replaying.address(), line, &[], REQUEST).expect(200);
    }
}
