//! A server of models, which answers as the request says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// A running server. Its threads end with the process.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    requests: AtomicUsize,
    heads: Mutex<Vec<String>>,
}

impl Upstream {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let upstream = Self { address, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream.unwrap(), &shared));
            }
        });
        upstream
    }

    /// The number of requests so far.
    pub(super) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// The request lines and headers so far.
    pub(super) fn heads(&self) -> String {
        self.shared.heads.lock().unwrap().concat()
    }
}

/// Answers the requests of one connection until it is closed.
fn serve(stream: TcpStream, shared: &Shared) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let number = shared.requests.fetch_add(1, Ordering::SeqCst);
        shared.heads.lock().unwrap().push(head.clone());
        let is_redirected = head.starts_with("POST /v1/redirected/");
        if !is_redirected && String::from_utf8_lossy(&body).contains("redirect") {
            let location = "location: /v1/redirected/chat/completions";
            write!(writer, "HTTP/1.1 307 X\r\n{location}\r\ncontent-length: 0\r\n\r\n").unwrap();
            continue;
        }
        // The client may have left.
        if !answer(&mut writer, &body, number).unwrap_or(false) {
            return;
        }
    }
}

/// Answers a request. Returns whether the connection can be used again.
fn answer(out: &mut TcpStream, body: &[u8], number: usize) -> std::io::Result<bool> {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        write_whole(out, 200, &json!({"data": []}))?;
        return Ok(true);
    };
    let prompt = body["messages"].to_string();
    if prompt.contains("fail") {
        write_whole(out, 429, &json!({"error": {"message": "slow down"}}))?;
        return Ok(true);
    }
    let asker = body["messages"].as_array().and_then(|all| all.last()).map(|last| &last["role"]);
    if prompt.contains("call a tool") && asker == Some(&json!("user")) {
        let function = json!({"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"});
        let call = json!({"id": format!("call-id-{number}"), "type": "function", "function": function});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        write_whole(out, 200, &json!({"model": body["model"], "choices": [{"message": message}]}))?;
        return Ok(true);
    }
    if prompt.contains("for certain") {
        let usage = json!({"prompt_tokens": number, "completion_tokens": 1});
        let choices =
            json!([{"message": {"role": "assistant", "content": "clear"}, "finish_reason": "stop"}]);
        let id = format!("answer-{number}");
        write_whole(out, 200, &json!({"id": id, "created": number, "usage": usage, "choices": choices}))?;
        return Ok(true);
    }
    let text = if prompt.contains("briefly") {
        format!("answer {number}")
    } else {
        format!("answer {number} to {prompt}")
    };
    if body["stream"] != json!(true) {
        if prompt.contains("break") {
            write!(
                out,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"cho"
            )?;
            return Ok(false);
        }
        write_whole(out, 200, &json!({"model": body["model"], "choices": [{"message": {"content": text}}]}))?;
        return Ok(true);
    }
    let is_lines = prompt.contains("lines");
    let content_type = if is_lines { "application/x-ndjson" } else { "text/event-stream" };
    write!(out, "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n")?;
    if is_lines {
        for (content, done) in [("on two ", false), ("lines", true)] {
            chunk(out, &format!("{}\n", json!({"message": {"content": content}, "done": done})))?;
        }
        write!(out, "0\r\n\r\n")?;
        return Ok(true);
    }
    for word in text.split_inclusive(' ') {
        chunk(out, &format!("data: {}\n\n", json!({"choices": [{"delta": {"content": word}}]})))?;
        if prompt.contains("slow") {
            thread::sleep(Duration::from_millis(20));
        }
        if prompt.contains("break") {
            return Ok(false);
        }
    }
    chunk(out, "data: [DONE]\n\n")?;
    write!(out, "0\r\n\r\n")?;
    Ok(true)
}

fn chunk(out: &mut TcpStream, text: &str) -> std::io::Result<()> {
    write!(out, "{:x}\r\n{text}\r\n", text.len())?;
    out.flush()
}

fn write_whole(out: &mut TcpStream, status: u16, document: &Value) -> std::io::Result<()> {
    let body = document.to_string();
    write!(
        out,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
