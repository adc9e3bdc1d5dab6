//! A proxy of a server of the Model Context Protocol. It relays the messages between a client and the server, and reports the
//! calls to a gateway; what the gateway has recorded is answered without the server, which is started when it is needed.

mod lookup;
mod message;
mod process;
mod relay;
mod remote;

use std::io::stdin;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use lookup::ProxyEvent;
use relay::MessageRelay;

pub use message::{McpProxyError, McpTarget};

/// How often the proxy checks whether it is to stop.
const POLL: Duration = Duration::from_millis(50);

/// A proxy for one client.
#[derive(Debug)]
pub struct McpProxy {
    /// The name under which the calls of the server are recorded.
    pub name: String,
    /// The server.
    pub target: McpTarget,
    /// The URL of the gateway, with the prefixes of a run.
    pub gateway: String,
}

impl McpProxy {
    /// Relays messages between the server and the client, which is at standard input and output, until the client or the server
    /// ends or `is_stopped` returns true.
    ///
    /// # Errors
    /// Returns an error if the system permits no threads, or if the client or the server cannot be written to.
    pub fn run(self, is_stopped: impl Fn() -> bool) -> Result<(), McpProxyError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, mut events) = mpsc::unbounded_channel();
        let for_client = sender.clone();
        // It reads until the client closes its end: a read cannot be cancelled.
        thread::Builder::new().name("client".to_owned()).spawn(move || {
            process::read_lines(stdin(), |line| for_client.send(ProxyEvent::FromClient(line)).is_ok());
            // The proxy may have ended before.
            let _ = for_client.send(ProxyEvent::ClientEnded);
        })?;
        runtime.block_on(async {
            let mut relay = MessageRelay::new(&self.name, self.target.0, &self.gateway, sender);
            loop {
                match timeout(POLL, events.recv()).await {
                    Ok(Some(event)) => {
                        if !relay.handle(event).await? {
                            break;
                        }
                    }
                    Ok(None) => break,
                    Err(_) => {}
                }
                if is_stopped() || relay.has_waited_long_enough() {
                    break;
                }
            }
            relay.finish().await;
            Ok(())
        })
    }
}
