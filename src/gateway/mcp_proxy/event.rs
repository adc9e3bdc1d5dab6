//! The events of a proxy.

/// An event.
#[derive(Debug)]
pub(super) enum ProxyEvent {
    /// The client sent a line.
    FromClient(String),
    /// The client sends nothing more.
    ClientEnded,
    /// The server sent a message.
    FromServer(String),
    /// The server sends nothing more.
    ServerEnded,
    /// The server did not answer the request with this id.
    NotAnswered { id: String, reason: String },
}
