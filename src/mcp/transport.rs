//! Messages in lines. The transport of the library does not state the id of a request that it cannot decode, so that the
//! client would wait for its response.

use std::io;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty, empty};
use tokio::task::{JoinHandle, spawn};

use crate::display::brief;

/// Maximum size of a message with the end of its line. Larger ones are ignored.
const MAX_MESSAGE: usize = 16 << 20;

/// A mark that some programs write at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A transport of messages that are lines.
pub(super) struct LineTransport<R, W: AsyncWrite> {
    reader: BufReader<R>,
    /// What was read of a line. The library cancels the reading to do other things, and then continues it.
    line: Vec<u8>,
    writer: AsyncRwTransport<RoleServer, Empty, W>,
    /// The writing of the response to a line that is not a message, which is not cancelled with the reading.
    refusal: Option<JoinHandle<io::Result<()>>>,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(reader: R, writer: W) -> Self {
        let writer = AsyncRwTransport::new_server(empty(), writer);
        Self { reader: BufReader::new(reader), line: Vec::new(), writer, refusal: None }
    }

    /// Reads to the end of a line, of which no more than is needed to find that it is too large is kept. Returns whether
    /// there is a line.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.reader.fill_buf().await?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(available.len(), |end| end + 1);
            let (kept, _) = available.split_at(length.min(MAX_MESSAGE + 1 - self.line.len()));
            self.line.extend_from_slice(kept);
            self.reader.consume(length);
            if end.is_some() || length == 0 {
                return Ok(end.is_some());
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.writer.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(writing) = &mut self.refusal {
                let written = writing.await;
                self.refusal = None;
                written.ok()?.ok()?;
            }
            if !self.read_line().await.ok()? {
                return None;
            }
            let line = std::mem::take(&mut self.line);
            if line.len() > MAX_MESSAGE {
                continue;
            }
            let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line);
            match serde_json::from_slice(line) {
                Ok(message) => return Some(message),
                Err(_) => self.refusal = refusal(line).map(|response| spawn(self.writer.send(response))),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.close().await
    }
}

/// Returns the response to a line that cannot be decoded. There is none to what is not JSON, as in the official
/// implementations of the protocol, and to notifications.
fn refusal(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    let message: Value = serde_json::from_slice(line).ok()?;
    let method = message.get("method").and_then(Value::as_str);
    let id = message.get("id");
    if method.is_some() && id.is_none() {
        return None;
    }
    // The id of a response is that of another request.
    let is_response = message.get("result").or(message.get("error")).is_some();
    let id = id.filter(|_| !is_response).and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let is_version = message.get("jsonrpc").is_some_and(|version| version == "2.0");
    let error = match method {
        Some(method) if id.is_some() && is_version => error(method),
        _ => ErrorData::invalid_request("Invalid request", None),
    };
    Some(ServerJsonRpcMessage::error(error, id))
}

/// The methods that are answered, with what their parameters are.
const PARAMETERS: [(&str, &str); 7] = [
    ("initialize", "protocolVersion is a string, capabilities and clientInfo are objects"),
    ("ping", "they are an object, or omitted"),
    ("tools/list", "cursor is a string, or omitted"),
    ("tools/call", "name is a string, and arguments are an object, or omitted"),
    ("resources/list", "cursor is a string, or omitted"),
    ("resources/templates/list", "cursor is a string, or omitted"),
    ("resources/read", "uri is a string"),
];

/// Returns the error of a request that no handler of its method accepts: there is no such method, or its parameters are
/// not valid.
pub(super) fn error(method: &str) -> ErrorData {
    if let Some((_, expected)) = PARAMETERS.iter().find(|(known, _)| *known == method) {
        let message = format!("the parameters of {method} are not valid: {expected}");
        return ErrorData::invalid_params(message, None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method \"{}\"", brief(method)), None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the id and the code of the response to a line that cannot be decoded.
    fn refused(line: &Value) -> Option<(Value, Value)> {
        let line = line.to_string();
        assert!(serde_json::from_str::<ClientJsonRpcMessage>(&line).is_err(), "{line}");
        let response = serde_json::to_value(refusal(line.as_bytes())?).unwrap();
        Some((response["id"].clone(), response["error"]["code"].clone()))
    }

    #[test]
    fn a_request_that_cannot_be_decoded_gets_an_error_with_its_id() {
        let request =
            |id, method, params| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        for params in [json!([]), json!(5), json!("x")] {
            for (id, method, code) in
                [(json!(8), "tools/call", -32602), (json!("a"), "ping", -32602), (json!(8), "nope", -32601)]
            {
                let line = request(id.clone(), json!(method), params.clone());
                assert_eq!(refused(&line), Some((id, json!(code))), "{line}");
            }
        }
        let invalid = |id: Value| Some((id, json!(-32600)));
        assert_eq!(refused(&json!({"jsonrpc": "2.0", "id": 7, "method": 5})), invalid(json!(7)));
        assert_eq!(refused(&json!({"jsonrpc": "1.0", "id": 7, "method": "ping"})), invalid(json!(7)));
        assert_eq!(refused(&json!({"jsonrpc": "2.0", "id": 7})), invalid(json!(7)));
        for id in [json!(1.5), json!({}), json!(null)] {
            assert_eq!(refused(&request(id, json!("ping"), json!({}))), invalid(Value::Null));
        }
        let request = request(json!(1), json!("ping"), json!({}));
        for other in [json!({"a": 1}), json!([request]), json!(7), json!({"id": 3, "error": {}})] {
            assert_eq!(refused(&other), invalid(Value::Null), "{other}");
        }
    }

    #[test]
    fn notifications_and_text_that_is_not_json_get_no_response() {
        assert_eq!(refused(&json!({"jsonrpc": "2.0", "method": "notifications/x", "params": []})), None);
        for line in ["", "\r\n", "this is not JSON", "{\"id\": 1"] {
            assert!(refusal(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn the_lines_after_one_that_is_refused_or_too_large_are_read() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ping = |id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        let space = |length| " ".repeat(length);
        let invalid = json!({"id": 3}).to_string();
        let lines = [space(MAX_MESSAGE - 100) + &ping(1), space(MAX_MESSAGE) + &ping(2), invalid, ping(4)];
        // The last line has no end.
        let input = lines.join("\n") + "\n{\"jsonrpc\":";
        let (writer, _reader) = tokio::io::duplex(4_096);
        let mut transport = LineTransport::new(input.as_bytes(), writer);
        let mut ids = Vec::new();
        runtime.block_on(async {
            while let Some(message) = transport.receive().await {
                ids.push(serde_json::to_value(&message).unwrap()["id"].clone());
            }
        });
        assert_eq!(ids, [1, 4]);
    }
}
