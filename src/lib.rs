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
//! | [`clock`] | the time of day | anything else of ours |
//! | `open_vaults` | which files SQLite has open in this process | anything else of ours |
//! | [`files`] | writing files whole and for good, beside the vault | what is in them |
//! | [`digest`] | SHA-256, HMAC, hex, prefixes | anything else of ours |
//! | [`canonical`] | JSON: one strict reader, three canonical profiles | what documents mean |
//! | [`verify`] | rules, violations, reports | anything else of ours |
//! | [`artifact`] | what all kinds have in common; makes [`Admitted`](artifact::Admitted) | any kind |
//! | [`archive`] | zip and tar: entries out, files in | what the entries mean |
//! | [`kinds`] | the formats, one folder each | each other, SQL, the terminal |
//! | [`store`] | SQLite: blobs, artifacts, index, journal | formats |
//! | [`query`] | finding, short hashes, links | SQL, formats |
//! | [`source`] | files, directories, recognising kinds | SQL |
//! | [`audit`] | contracts held against runs, payloads against schemas | SQL, the terminal |
//! | [`retention`] | which artifacts a policy keeps | SQL, formats, the terminal |
//! | [`fsck`] | what a vault says, held against its bytes | SQL, the terminal |
//! | [`replay`] | playing recordings back | formats, SQL, the terminal |
//! | [`diff`] | aligning two artifacts of a kind, the difference of values and texts | formats, SQL, the terminal |
//! | [`sql`] | what queries in SQL can name: contents, mentions, links | SQL itself, formats, the terminal |
//! | [`search`] | questions in words, which texts are searched, what of them matches | formats, SQL, the terminal |
//! | [`ingest`] | the flow of adding and verifying many documents | formats, SQL |
//! | [`bundle`] | portable bundles: a manifest and blobs in a tar file, out and in | SQL, formats of artifacts, the terminal |
//! | [`Vault`] | all of the above, for users | the terminal |
//!
//! # What always holds
//!
//! 1. Nothing unverified is stored: the store takes only [`Admitted`](artifact::Admitted) values.
//! 2. An artifact goes in with everything that belongs to it, or not at all.
//! 3. What goes in comes out byte for byte, and is hashed again on every read.
//! 4. Adding the same thing twice changes nothing.
//! 5. What was reported as added survives a crash.
//! 6. Kinds know no SQL, the store knows no formats, the library knows no terminal.
//! 7. Every hash is computed in [`digest`], every canonical form in [`canonical`].
//! 8. Untrusted input is bounded in size, depth and memory.
//! 9. The same vault and the same question give the same answer.

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
