//! Portable bundles: artifacts with all their captures, and the links that people stated between them, in one file.
//!
//! A bundle is a tar file in a zstd frame: first `manifest.json`, which says what there is, then every blob once, in the
//! order of the digests after which the entries are named. `docs/bundle.md` has the format, exact enough for another
//! program. The same vault and the same selection give the same bytes.
//!
//! What is read may come from anybody. A bundle that is not what its manifest says is refused as a whole, before anything
//! is stored, naming the entry and the rule ([`RULES`]). What it contains is admitted like anything else: bad artifacts
//! are named, and the good ones stored.

mod container;
mod import;
mod manifest;
mod notes;
mod read;
mod rules;
mod select;
mod write;

pub use import::{Imported, ImportedLink, ImportedTag, LinkOutcome, TagOutcome, add, rehearse};
pub use manifest::{BundledArtifact, BundledCapture, BundledLink, BundledMember, Manifest};
pub use notes::{ImportedNote, NoteOutcome};
pub use read::{Bundle, BundleError, read};
pub use rules::RULES;
pub use select::with_links;
pub use write::{WriteError, Written, write};
