//! A proxy in front of the server, which cuts connections.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The handling of the next statements that contain a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyFault {
    /// It does not pass it on.
    Statement,
    /// It passes it on and loses the answer.
    Answer,
}

/// A socket whose connections are cut.
pub(super) struct Proxy {
    directory: tempfile::TempDir,
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    /// Starts a proxy of the socket in `server`, which does `cut` to statements with `text` as often as
    /// [`Proxy::fail_next`] says.
    pub(super) fn start(server: PathBuf, text: &'static str, cut: ProxyFault) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let cuts = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&cuts);
        // It ends with the process: the listener blocks.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = UnixStream::connect(server.join(".s.PGSQL.5432")).unwrap();
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || pass(from_server, to_client));
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || forward_until_fault(client, server, text, cut, &counter));
            }
        });
        Self { directory, cuts }
    }

    /// Cuts the next `count` times.
    pub(super) fn fail_next(&self, count: u32) {
        self.cuts.store(count, Ordering::SeqCst);
    }

    /// Returns how many cuts are left.
    pub(super) fn left(&self) -> u32 {
        self.cuts.load(Ordering::SeqCst)
    }

    pub(super) fn directory(&self) -> String {
        self.directory.path().to_str().unwrap().to_owned()
    }
}

fn pass(mut from: UnixStream, mut to: UnixStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

fn forward_until_fault(
    mut client: UnixStream,
    mut server: UnixStream,
    text: &str,
    cut: ProxyFault,
    cuts: &AtomicU32,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let sent = &bytes[..count];
        let has_text = sent.windows(text.len()).any(|window| window == text.as_bytes());
        let is_cut = has_text
            && cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if is_cut {
            // Nothing of the answer passes, because the client is cut off first.
            let _ = client.shutdown(Shutdown::Both);
            if cut == ProxyFault::Answer {
                let _ = server.write_all(sent);
                // The server has done it when it is ready for the next statement or gone.
                let _ = server.shutdown(Shutdown::Write);
                return;
            }
            let _ = server.shutdown(Shutdown::Both);
            return;
        }
        if server.write_all(sent).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}
