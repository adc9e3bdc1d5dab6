//! A server of the Model Context Protocol: the operations of a vault as tools, and its artifacts as resources.
//!
//! [`McpServer`] answers one client over standard input and output. A tool makes requests of its arguments, runs the
//! operations of [`vault::api`](crate::vault::api), and returns their answers as JSON in pages of limited size
//! ([`MAX_RESULT_BYTES`]). Everything is read only unless [`McpOptions::allow_write`] is set.

mod page;
mod resource;
mod server;
mod tools;
mod work;

pub use page::MAX_RESULT_BYTES;
pub use server::{McpError, McpOptions, McpServer};
