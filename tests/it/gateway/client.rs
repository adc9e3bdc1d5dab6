//! A client of a gateway.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

/// How long an answer may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// The body as it arrived, which can be compressed.
    pub(crate) bytes: Vec<u8>,
    /// Whether all of the body arrived.
    pub(crate) is_complete: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.body))
    }

    /// The value of a header, whose name is in lowercase.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        assert!(self.is_complete, "{}", self.body);
        self
    }
}

/// Makes a request.
pub(crate) fn request(address: SocketAddr, line: &str, headers: &[&str], body: &str) -> Answer {
    request_bytes(address, line, headers, body.as_bytes())
}

/// Makes a request whose body can be compressed.
pub(crate) fn request_bytes(address: SocketAddr, line: &str, headers: &[&str], body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let host = if headers.iter().any(|header| header.starts_with("host:")) {
        String::new()
    } else {
        format!("host: {address}\r\n")
    };
    let headers: Vec<String> = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let headers = headers.concat();
    let length = body.len();
    let head =
        format!("{line} HTTP/1.1\r\n{host}{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut bytes = Vec::new();
    // An answer that is broken off may end in an error.
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

/// Asks for a chat completion.
pub(crate) fn chat(address: SocketAddr, prompt: &str, stream: bool) -> Answer {
    ask(address, "", prompt, stream)
}

/// Asks for a chat completion with a prefix of the path.
pub(crate) fn chat_at(address: SocketAddr, prefix: &str, prompt: &str) -> Answer {
    ask(address, prefix, prompt, false)
}

fn ask(address: SocketAddr, prefix: &str, prompt: &str, stream: bool) -> Answer {
    let body = serde_json::json!({"model": "m-1", "stream": stream, "messages": [{"role": "user", "content": prompt}]});
    let line = format!("POST {prefix}/openai/v1/chat/completions");
    request(address, &line, &["authorization: Bearer sk-secret"], &body.to_string())
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
    let rest = &bytes[end + 4..];
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let (body, is_complete) = if head.contains("transfer-encoding: chunked") {
        unchunked(rest)
    } else {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        (rest.to_vec(), length.is_some_and(|length| length.parse() == Ok(rest.len())))
    };
    Answer { status, head, body: String::from_utf8_lossy(&body).into_owned(), bytes: body, is_complete }
}

/// Returns the content of chunks, and whether the last one arrived.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(line) = rest.windows(2).position(|two| two == b"\r\n") else { return (body, false) };
        let length = std::str::from_utf8(&rest[..line]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        let Some(content) = rest.get(line + 2..line + 2 + length) else { return (body, false) };
        body.extend_from_slice(content);
        if length == 0 {
            return (body, true);
        }
        rest = rest.get(line + 4 + length..).unwrap_or_default();
    }
}

/// Returns a script for bash that asks the gateway of `exec` a question, in which variables are replaced, and prints the answer.
/// Without bash, says that the tests of `what` are skipped.
pub(super) fn bash_that_asks(question: &str, what: &str) -> Option<String> {
    if Command::new("bash").args(["-c", ":"]).status().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: {what}; there is no bash");
        return None;
    }
    let body = format!(
        r#"body="{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{question}\"}}]}}""#
    );
    Some(body + SENDS_BODY)
}

const SENDS_BODY: &str = r#"
host=${RUNVAULT_GATEWAY#http://}
exec 3<>"/dev/tcp/${host/://}"
printf 'POST /openai/v1/chat/completions HTTP/1.1\r\nhost: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s' \
  "$host" ${#body} "$body" >&3
cat <&3
"#;
