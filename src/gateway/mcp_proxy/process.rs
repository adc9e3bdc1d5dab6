//! A server that is a process, and is asked over its standard input and output.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use tokio::sync::mpsc::UnboundedSender;

use super::lookup::ProxyEvent;

/// A process. It is killed if it is dropped before it has ended.
pub(super) struct ServerProcess {
    child: Child,
    /// The lines that are written to its standard input, which is closed with this.
    input: Option<mpsc::Sender<String>>,
}

impl ServerProcess {
    /// Starts the process. The lines of its output become events.
    pub(super) fn start(command: &mut Command, events: UnboundedSender<ProxyEvent>) -> Result<Self, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |error: io::Error| format!("cannot run {program}: {error}");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (sender, lines) = mpsc::channel::<String>();
        if let Some(mut stdin) = child.stdin.take() {
            // It can read as slowly as it likes.
            spawn(move || {
                for line in lines {
                    let written = stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n"));
                    if written.and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            })
            .map_err(failed)?;
        }
        if let Some(stdout) = child.stdout.take() {
            spawn(move || {
                read_lines(stdout, |line| events.send(ProxyEvent::FromServer(line)).is_ok());
                // The proxy may have ended before.
                let _ = events.send(ProxyEvent::ServerEnded);
            })
            .map_err(failed)?;
        }
        Ok(Self { child, input: Some(sender) })
    }

    pub(super) fn send(&self, line: String) {
        if let Some(input) = &self.input {
            // That it has ended is an event of its own.
            let _ = input.send(line);
        }
    }

    /// Closes its standard input, at whose end servers end.
    pub(super) fn close(&mut self) {
        self.input = None;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().spawn(work).map(drop)
}

/// Calls `visit` with each line of an input, without its end, until it returns false.
pub(super) fn read_lines(input: impl Read, mut visit: impl FnMut(String) -> bool) {
    let mut reader = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if !text.is_empty() && !visit(text) {
            return;
        }
    }
}
