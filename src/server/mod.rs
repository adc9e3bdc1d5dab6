//! Web pages of a vault.
//!
//! A page is made of the answers of operations ([`vault::api`](crate::vault::api)), and has no other data. [`WebServer`]
//! sends pages over HTTP to browsers on this machine, and [`write_pages`] makes files of them. Everything is read only unless
//! [`ServerOptions::allow_write`] is set. Pages need no JavaScript for reading and load nothing from elsewhere.
//!
//! ```no_run
//! use runvault::Vault;
//! use runvault::server::{ServerOptions, WebServer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let vault = Vault::open("runs.vault".as_ref())?;
//! let server = WebServer::bind("127.0.0.1:0".parse()?)?;
//! println!("http://{}/", server.address());
//! server.run(vault, ServerOptions::default(), || false)?;
//! # Ok(())
//! # }
//! ```

mod address;
mod connections;
mod files;
mod frame;
mod http;
mod markdown;
mod pages;
mod visit;

#[cfg(feature = "gateway")]
pub(crate) use address::{is_unreserved, percent_encoded};
#[cfg(feature = "gateway")]
pub(crate) use connections::{ConnectionLimits, HEAD_TIMEOUT, serve};
pub use files::{PageSelection, WritePagesError, WrittenPages, write_pages};
#[cfg(feature = "gateway")]
pub(crate) use http::is_own as is_own_host;
pub use http::{ServerOptions, WebServer};
pub use visit::Hint;
