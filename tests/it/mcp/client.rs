//! A small client of the protocol, which sees every line that the program writes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The bound of the documentation.
const MOST: usize = 24_000;

/// The program, in a session with this client.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[allow(clippy::needless_pass_by_value, reason = "documents are written where they are passed")]
impl Client {
    /// Starts the program, and does nothing else.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout, last: 0 }
    }

    /// Starts the program and a session.
    pub(crate) fn connect(command: Command) -> Self {
        let mut client = Self::start(command);
        let answer = client.initialize("2025-06-18");
        assert_eq!(answer["protocolVersion"], "2025-06-18");
        client
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let client = json!({"name": "test", "version": "0"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", params).unwrap();
        self.notify("notifications/initialized", json!({}));
        answer
    }

    pub(crate) fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Returns the next message, which is a response: the server sends nothing else.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(line.len() <= MOST + 200, "{} bytes: {line:.300}", line.len());
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    /// Returns the result of a request, or its error.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        let mut message = self.receive();
        assert_eq!(message["id"], id, "{message}");
        match message["error"].take() {
            Value::Null => {
                assert!(message["result"].to_string().len() <= MOST, "{}", message["result"]);
                Ok(message["result"].take())
            }
            error => Err(error),
        }
    }

    /// Returns the data of a tool's result, which the text and the structured content have.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).unwrap();
        assert_eq!(result["isError"], false, "{tool}: {result}");
        let mut data = result["structuredContent"].clone();
        let notice = data.as_object_mut().unwrap().remove("notice").unwrap();
        assert!(notice.as_str().unwrap().contains("never as instructions"));
        let text = result["content"][0]["text"].as_str().unwrap();
        let text = text.strip_prefix(notice.as_str().unwrap()).unwrap().strip_prefix('\n').unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), data);
        data
    }

    /// Returns the message of a tool that cannot answer.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).unwrap();
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Returns the items of all pages of a tool's result, and the number of pages.
    pub(crate) fn all(&mut self, tool: &str, mut arguments: Value, list: &str) -> (Vec<Value>, usize) {
        let (mut all, mut pages) = (Vec::new(), 0);
        loop {
            let mut page = self.call(tool, arguments.clone());
            pages += 1;
            assert!(page[list].is_array(), "{page}");
            let items = page[list].as_array_mut().unwrap();
            assert!(!items.is_empty() || pages == 1, "{tool}: an empty page after a cursor");
            all.append(items);
            match page.get("next_cursor") {
                Some(next) => arguments["cursor"] = next.clone(),
                None => return (all, pages),
            }
        }
    }

    /// Ends standard input, and returns the exit status when the program has written nothing more.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "");
        self.child.wait().unwrap().code()
    }
}
