//! What a bundle is held to.

use crate::source::STATED;
use crate::verify::{RuleInfo, Severity};

const fn rule(id: &'static str, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { id, severity: Severity::Error, summary, why }
}

pub(super) const CONTAINER: RuleInfo = rule(
    "BU1",
    "A bundle is a tar file, by itself or in zstd frames, and is whole.",
    "A bundle that breaks off, or whose checksums fail, was damaged on its way or is still being written; nothing of it \
     is stored. Fetch it again.",
);
pub(super) const ENTRIES: RuleInfo = rule(
    "BU2",
    "The entries of a bundle are manifest.json, then every blob of the manifest once, in the order of their names.",
    "Nothing is unpacked to a path, so no name can lead anywhere; but a bundle with other entries, with two of one name, \
     or without one that it promises, means different things to different programs. Blobs are regular files with names \
     of the form blobs/<64 lowercase hex digits>.",
);
pub(super) const FORM: RuleInfo = rule(
    "BU3",
    "The manifest is the RFC 8785 text of what version 1 of the format defines, and nothing else.",
    "There is one way to write a manifest, so there is one way to read it. A manifest of a later version needs a later \
     runvault.",
);
pub(super) const CONTENT: RuleInfo = rule(
    "BU4",
    "The manifest agrees with itself.",
    "Artifacts, members, links and tags are sorted and listed once; the hash and the size of every capture follow from \
     its members; every link has an end in the bundle. Where that does not hold, somebody changed the manifest by hand.",
);
pub(super) const BLOBS: RuleInfo = rule(
    "BU5",
    "Every blob has the size that the manifest states, and the SHA-256 in its name.",
    "That is what makes a bundle checkable with sha256sum. A blob with other bytes was changed or damaged; nothing of \
     the bundle is stored. Fetch it again.",
);
pub(super) const LIMITS: RuleInfo = rule(
    "BU7",
    "A bundle stays within the limits.",
    "Whoever feeds an archive must not be able to exhaust its memory or its disk. A manifest has at most 256 MiB; a \
     capture at most what --max-size allows; what is compressed grows to at most 200 times its size, beyond the first 64 \
     MiB. One that is to grow more and can be trusted can be decompressed first: zstd -dc FILE | runvault import -.",
);

/// The rules of bundles. The artifacts in them are held to those of their kinds.
pub const RULES: [RuleInfo; 7] = [CONTAINER, ENTRIES, FORM, CONTENT, BLOBS, STATED, LIMITS];
