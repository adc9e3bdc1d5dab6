//! runvault: a verified, embedded, content-addressed archive for AI agent runs.
//!
//! A [`Vault`] is one SQLite file. Recorded model sessions, run packs, traces, contracts and export packs are verified
//! before they are stored, can be found by the digests and attributes that they contain, and are returned byte for
//! byte.
//!
//! # Map
//!
//! | module | knows | must not know |
//! |---|---|---|
//! | [`clock`] | the time of day | any other module |
//! | `open_vaults` | which files SQLite has open in this process | any other module |
//! | [`files`] | atomic and durable writing of files beside the vault | their contents |
//! | [`digest`] | SHA-256, HMAC, hex, prefixes | any other module |
//! | [`canonical`] | JSON: one strict reader, three canonical profiles | the meaning of documents |
//! | [`verify`] | rules, violations, reports | any other module |
//! | [`artifact`] | what all kinds share; creates [`Admitted`](artifact::Admitted) | any specific kind |
//! | [`archive`] | reading and writing zip and tar archives | the meaning of the entries |
//! | [`kinds`] | the formats, one directory each | each other, SQL, the terminal |
//! | [`store`] | SQLite: blobs, artifacts, index, journal | formats |
//! | [`query`] | finding artifacts, hash prefixes, links | SQL, formats |
//! | [`source`] | files, directories, recognising kinds | SQL |
//! | [`audit`] | checking runs against contracts, payloads against schemas | SQL, the terminal |
//! | [`retention`] | which artifacts a policy keeps | SQL, formats, the terminal |
//! | [`fsck`] | checking the records of a vault against its bytes, repair | SQL, the terminal |
//! | [`replay`] | replay of recordings | formats, SQL, the terminal |
//! | [`diff`] | aligning two artifacts of a kind, differences of values and texts | formats, SQL, the terminal |
//! | [`sql`] | the computed views for SQL queries: contents, mentions, links | SQL itself, formats, the terminal |
//! | [`search`] | full-text queries, the searched texts, the matching passages | formats, SQL, the terminal |
//! | [`ingest`] | the pipeline that adds and verifies many documents | formats, SQL |
//! | [`bundle`] | export and import of portable bundles: a manifest and blobs in a tar file | SQL, formats of artifacts, the terminal |
//! | [`Vault`] | the public interface to all of the above | the terminal |
//!
//! # Invariants
//!
//! 1. Nothing unverified is stored: the store accepts only [`Admitted`](artifact::Admitted) values.
//! 2. An artifact is stored with everything that belongs to it, or not at all.
//! 3. Stored bytes are returned byte for byte, and are hashed again on every read.
//! 4. Adding the same bytes again stores nothing new.
//! 5. An artifact that was reported as added survives a crash.
//! 6. Kinds do not use SQL, the store does not interpret formats, and the library does not use the terminal.
//! 7. Every hash is computed in [`digest`], every canonical form in [`canonical`].
//! 8. Untrusted input is bounded in size, depth and memory.
//! 9. The same query on the same vault returns the same result.

pub mod archive;
pub mod artifact;
pub mod audit;
pub mod bundle;
pub mod canonical;
pub mod clock;
pub mod diff;
pub mod digest;
pub mod files;
pub mod fsck;
pub mod ingest;
pub mod kinds;
mod open_vaults;
mod pipeline;
pub mod query;
pub mod replay;
pub mod retention;
pub mod search;
pub mod source;
pub mod sql;
pub mod store;
mod vault;
pub mod verify;

pub use vault::{
    AddError, CaughtUp, CheckedCapture, Description, Forgetting, Located, LookupError, RecordingFilter,
    Referenced, Removal, RemoveError, RemoveOptions, Upgraded, Vault,
};

/// The README's Rust code, compiled by the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
