//! A verified, content-addressed archive for AI agent runs.
//!
//! A [`Vault`] is one SQLite file by default, or a PostgreSQL database. Recorded model sessions, run packs, traces,
//! contracts and export packs are verified before they are stored, can be found by the digests and attributes that they
//! contain, and are returned byte for byte.
//!
//! # Map
//!
//! | module | knows | must not know |
//! |---|---|---|
//! | [`clock`] | the time of day | any other module |
//! | [`display`] | untrusted text, numbers, sizes and times, in the form that people read | any other module |
//! | [`files`] | atomic and durable writing of files, which files SQLite has open in this process | their contents |
//! | [`digest`] | SHA-256, HMAC, hex, prefixes | any other module |
//! | [`json`] | one strict reader, three canonical profiles | the meaning of documents |
//! | [`secrets`] | what looks like a key or a card number | any other module |
//! | [`validation`] | rules, violations, reports; which limit of [`json`] a document exceeds | the meaning of documents |
//! | [`artifact`] | what all kinds share; creates [`Admitted`](artifact::Admitted) | any specific kind |
//! | [`formats`] | the kinds, one directory each | each other, SQL, the terminal |
//! | [`intake`] | files, directories, archives, recognizing kinds, the parallel pipeline | storage |
//! | [`storage`] | the storage interface; engines: `memory`; `sqlite`, a vault in one file; `postgres`, a vault in a database; `objects`, its bytes in object storage | formats |
//! | [`vault`] | the operations: add, find, links, search, audit, replay, fsck and the others | the database, the terminal |
//! | [`conversation`] | what agents and models said, decoded from the bodies of calls in the APIs of providers | formats, the database, the network |
//! | [`calls`] | calls of models, and the session and the run pack that they become | files of other programs, the network |
//! | [`recorders`] | the files of other programs that record calls: cassettes, logs, spans | the database, the terminal |
//! | `server` | web pages over HTTP; only with the feature of that name | the database, the terminal |
//! | `gateway` | recording and replaying the calls of model clients; only with the feature of that name | the database, the terminal |
//! | `mcp` | a server of the Model Context Protocol; only with the feature of that name | the database, the terminal |
//! | `cli` | arguments, text, JSON, progress, exit statuses; the program, which the feature of that name builds | the database |
//!
//! # Invariants
//!
//! 1. Nothing unverified is stored: engines accept only [`Admitted`](artifact::Admitted) values.
//! 2. An artifact is stored with everything that belongs to it, or not at all.
//! 3. Stored bytes are returned byte for byte, and are hashed again on every read.
//! 4. Adding the same bytes again stores nothing but the record that they were seen again.
//! 5. An artifact that was reported as added survives a crash.
//! 6. Kinds do not use SQL, engines do not interpret formats, and the library does not use the terminal.
//! 7. Every hash is computed in [`digest`], every canonical form in [`json::canonical`].
//! 8. Untrusted input is bounded in size, depth, time and memory.
//! 9. The same query on the same vault returns the same result.
//! 10. The journal accounts for everything: each artifact, capture, annotation, manual link and removal follows
//!     from it.
//! 11. Nothing is answered that was not checked: results such as "verified" cover only what was examined.

pub mod artifact;
pub mod calls;
pub mod clock;
pub mod conversation;
pub mod digest;
pub mod display;
pub mod files;
pub mod formats;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod intake;
pub mod json;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod recorders;
pub mod secrets;
#[cfg(feature = "server")]
pub mod server;
pub mod storage;
pub mod validation;
pub mod vault;
pub(crate) mod yaml;

pub use vault::{
    AddError, LocatedCapture, LookupError, PinnedArtifact, ReferencedArtifact, RemoveError,
    SearchIndexUpdate, Vault,
};

/// The README's Rust code, compiled by the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
