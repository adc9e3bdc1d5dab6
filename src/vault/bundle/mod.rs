//! Portable bundles: artifacts with all their captures, and the manual links between them, in one file.
//!
//! A bundle is a tar file in a zstd frame: first `manifest.json`, which lists the contents, then every blob once, in
//! the order of the digests that the entries are named by. `docs/bundle.md` specifies the format. The same vault and
//! the same selection give the same bytes.
//!
//! Bundles are untrusted input. A bundle that does not match its manifest is rejected as a whole, before anything is
//! stored, with the entry and the violated rule ([`RULES`]). Its contents are admitted like all other artifacts:
//! invalid ones are reported, and the valid ones stored.

mod container;
mod import;
mod manifest;
mod read;
mod write;

pub use super::merging::MergeOutcome;
pub use import::{
    BundleImportOptions, BundleImportResult, ImportOutcome, ImportedAnnotations, ImportedLabelSummary,
    ImportedLinkSummary, ImportedNoteSummary, ImportedTagSummary, dry_run,
};
pub use manifest::{BundledArtifact, BundledCapture, BundledLink, BundledMember, Manifest, RULES};
pub use read::{Bundle, BundleError, read};
pub use write::{ArtifactSelection, BundleRequest, BundleStatistics, BundleWriteError, LinkScope};
