//! Rules of bundles.

use crate::intake::DECLARED_IDENTITY;
use crate::validation::{RuleInfo, Severity};

const fn rule(id: &'static str, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { id, severity: Severity::Error, summary, why }
}

pub(super) const CONTAINER: RuleInfo = rule(
    "BU1",
    "A bundle is a complete tar file, uncompressed or in zstd frames.",
    "A bundle that is truncated, or whose checksums fail, was damaged in transit or is still being written; nothing of it \
     is stored. Fetch it again.",
);
pub(super) const ENTRIES: RuleInfo = rule(
    "BU2",
    "The entries of a bundle are manifest.json, then every blob of the manifest once, in the order of their names.",
    "Nothing is unpacked to a path, so names cannot do harm; but a bundle with other entries, with duplicate names, \
     or with missing entries, is read differently by different programs. Blobs are regular files with names \
     of the form blobs/<64 lowercase hex digits>.",
);
pub(super) const FORM: RuleInfo = rule(
    "BU3",
    "The manifest is the RFC 8785 text of what version 1 of the format defines, and nothing else.",
    "There is only one way to write a manifest, so there is only one way to read it. A manifest of a later version needs a later \
     runvault.",
);
pub(super) const CONTENT: RuleInfo = rule(
    "BU4",
    "The manifest is consistent.",
    "Artifacts, members, links, tags and labels are sorted and listed once; the hash and the size of every capture follow from \
     its members; every link has an end in the bundle. Otherwise, the manifest was edited after it was written.",
);
pub(super) const BLOBS: RuleInfo = rule(
    "BU5",
    "Every blob has the size that the manifest states, and the SHA-256 in its name.",
    "This is how a bundle can be checked with sha256sum. A blob with other bytes was changed or damaged; nothing of \
     the bundle is stored. Fetch it again.",
);
pub(super) const LIMITS: RuleInfo = rule(
    "BU7",
    "A bundle stays within the limits.",
    "Untrusted input must not be able to exhaust memory or disk. A manifest has at most 256 MiB; a \
     capture at most the limit of a document; compressed data expands to at most 200 times its size, beyond the first 64 \
     MiB. A trusted bundle that expands more can be decompressed first.",
);

/// The rules of bundles. The artifacts in them are subject to the rules of their kinds.
pub const RULES: [RuleInfo; 7] = [CONTAINER, ENTRIES, FORM, CONTENT, BLOBS, DECLARED_IDENTITY, LIMITS];
