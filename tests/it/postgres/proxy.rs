//! A proxy in front of a server, which counts statements, cuts connections and delays messages.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The statement does not reach the server.
    Statement,
    /// The server runs it, and the answer does not reach the client.
    Answer,
}

/// What the proxy does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    /// Cuts the connection of the statement with this number, counted from 1 over all connections.
    pub(super) cut: Option<(usize, Cut)>,
    /// Delays each message in both directions.
    pub(super) delay: Duration,
}

/// A proxy that ends with the process.
pub(super) struct Proxy {
    address: SocketAddr,
    statements: Arc<AtomicUsize>,
}

impl Proxy {
    /// Starts a proxy of the server behind the socket in `directory`.
    pub(super) fn start(directory: String, plan: Plan) -> Self {
        Self::start_at("127.0.0.1", directory, plan)
    }

    /// The same, at an address of this machine.
    pub(super) fn start_at(host: &str, directory: String, plan: Plan) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let statements = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&statements);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                client.set_nodelay(true).unwrap();
                let socket = PathBuf::from(&directory).join(".s.PGSQL.5432");
                let Ok(server) = UnixStream::connect(socket) else { continue };
                let connection = Connection { client, server, plan, statements: Arc::clone(&counter) };
                std::thread::spawn(move || connection.pass());
            }
        });
        Self { address, statements }
    }

    /// The address of the vault at `address`, a socket, through the proxy.
    pub(super) fn address(&self, address: &str) -> String {
        let host = address.split("host=").nth(1).unwrap().split('&').next().unwrap();
        let address = address.replace(&format!("host={host}"), &format!("host={}", self.address.ip()));
        format!("{address}&port={}&sslmode=disable", self.address.port())
    }

    /// The number of statements so far.
    pub(super) fn statements(&self) -> usize {
        self.statements.load(Ordering::SeqCst)
    }
}

/// One connection. The client waits for the answer to each statement, so that one thread serves both directions.
struct Connection {
    client: TcpStream,
    server: UnixStream,
    plan: Plan,
    statements: Arc<AtomicUsize>,
}

impl Connection {
    fn pass(mut self) {
        let _ = self.try_pass();
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn try_pass(&mut self) -> io::Result<()> {
        // The first message has no type.
        let startup = body(&mut self.client)?;
        self.server.write_all(&startup)?;
        self.answer(true)?;
        loop {
            let Some(statement) = statement(&mut self.client)? else { return Ok(()) };
            let number = self.statements.fetch_add(1, Ordering::SeqCst) + 1;
            let cut = self.plan.cut.filter(|(at, _)| *at == number).map(|(_, cut)| cut);
            if cut == Some(Cut::Statement) {
                return Ok(());
            }
            std::thread::sleep(self.plan.delay);
            self.server.write_all(&statement)?;
            self.answer(cut.is_none())?;
            if cut.is_some() {
                return Ok(());
            }
        }
    }

    /// Reads an answer to its end, and passes it on if that is wanted.
    fn answer(&mut self, is_passed: bool) -> io::Result<()> {
        std::thread::sleep(self.plan.delay);
        loop {
            let message = message(&mut self.server)?;
            let is_last = message.first() == Some(&b'Z');
            if is_passed {
                self.client.write_all(&message)?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Reads the messages of a client up to the one after which it waits for an answer. There are none after a farewell.
fn statement(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut statement = Vec::new();
    loop {
        let message = message(client)?;
        let sort = message.first().copied();
        statement.extend(message);
        match sort {
            Some(b'S' | b'Q') => return Ok(Some(statement)),
            Some(b'X') => return Ok(None),
            _ => {}
        }
    }
}

/// Reads a message: its type, its length and the rest.
fn message(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut message = vec![0];
    from.read_exact(&mut message)?;
    message.extend(body(from)?);
    Ok(message)
}

fn body(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut body = length.to_vec();
    body.resize(u32::from_be_bytes(length) as usize, 0);
    from.read_exact(&mut body[4..])?;
    Ok(body)
}
