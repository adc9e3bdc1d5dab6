//! The manifest of a bundle, and the rules of bundles.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use crate::artifact::is_capture_of;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::intake::DECLARED_IDENTITY;
use crate::storage::{
    MAX_LABELS, MAX_LINK_NOTE_BYTES, SourcePath, check_labels, is_note, is_relation, is_tag,
};
use crate::validation::RuleInfo;

/// Maximum size of a manifest in bytes: enough for more than half a million artifacts.
pub(super) const MAX_BYTES: u64 = 256 << 20;
/// Maximum bytes of the name of a member, a kind or a tag, and of a time.
const MAX_NAME_BYTES: usize = 255;

const FORMAT: &str = "runvault bundle";
const VERSION: u64 = 1;

/// The contents of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object, the manifest of a bundle")]
pub struct Manifest {
    /// The artifacts, by core hash.
    pub artifacts: Vec<BundledArtifact>,
    format: String,
    /// The manual links from or to the artifacts, by source, relation and target.
    pub links: Vec<BundledLink>,
    version: u64,
}

/// An artifact of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledArtifact {
    /// Its captures, in the order in which they were added.
    pub captures: Vec<BundledCapture>,
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// Its labels, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its note, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its tags, sorted.
    pub tags: Vec<String>,
}

/// A capture of an artifact of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledCapture {
    /// The time when it was added to the original vault, as RFC 3339. Informational: an imported capture has the time
    /// of its import.
    pub added_at: String,
    /// Its capture hash.
    pub capture_hash: CaptureHash,
    /// Its files, by name.
    pub members: Vec<BundledMember>,
    /// Its size in bytes.
    pub size: u64,
    /// The path that it was read from when it was first added to a vault, if that is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
}

/// A member of a capture of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledMember {
    /// The digest of its bytes, and the name of their entry.
    pub blob: BlobHash,
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// A manual link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledLink {
    /// The note on the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The relation of the source to the target.
    pub relation: String,
    /// The source artifact.
    pub source: CoreHash,
    /// The target artifact.
    pub target: CoreHash,
}

impl BundledLink {
    pub(super) fn key(&self) -> (CoreHash, &str, CoreHash) {
        (self.source, &self.relation, self.target)
    }
}

/// The header of a manifest of any version.
#[derive(Deserialize)]
#[serde(expecting = "an object, the manifest of a bundle")]
struct BundleManifestHeader {
    format: String,
    version: u64,
}

/// The reason that a manifest is rejected.
pub(super) type ManifestDefect = (RuleInfo, String);

fn refuse<T>(rule: RuleInfo, message: impl Into<String>) -> Result<T, ManifestDefect> {
    Err((rule, message.into()))
}

impl Manifest {
    pub(super) fn new(artifacts: Vec<BundledArtifact>, links: Vec<BundledLink>) -> Self {
        Self { artifacts, format: FORMAT.to_owned(), links, version: VERSION }
    }

    /// Returns the bytes of the manifest entry, in the canonical form of RFC 8785: the fields of all types above are in
    /// its order, and their values need no other form than `serde_json` gives them.
    pub(super) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// Parses and validates the bytes of the manifest entry.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ManifestDefect> {
        let malformed = |error: serde_json::Error| (FORM, error.to_string());
        let head: BundleManifestHeader = serde_json::from_slice(bytes).map_err(malformed)?;
        if head.format != FORMAT {
            return refuse(FORM, format!("the format is {:?}, not {FORMAT:?}", head.format));
        }
        if head.version != VERSION {
            let version = head.version;
            return refuse(FORM, format!("this is version {version}; this runvault reads version {VERSION}"));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(malformed)?;
        if manifest.to_bytes().map_err(malformed)? != bytes {
            return refuse(FORM, "it is not in RFC 8785 form");
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// Checks that the manifest is consistent.
    pub(super) fn check(&self) -> Result<(), ManifestDefect> {
        let cores: BTreeSet<CoreHash> = self.artifacts.iter().map(|artifact| artifact.core_hash).collect();
        if !is_sorted(&self.artifacts, |artifact| artifact.core_hash) {
            return refuse(CONTENT, "the artifacts are not sorted by core hash, or have duplicates");
        }
        let mut captures = HashSet::new();
        for artifact in &self.artifacts {
            artifact.check()?;
            for capture in &artifact.captures {
                capture.check()?;
                // Artifacts of different kinds may have the same bytes.
                if !captures.insert((artifact.core_hash, capture.capture_hash)) {
                    return refuse(CONTENT, format!("the capture {} is listed twice", capture.capture_hash));
                }
            }
        }
        if !is_sorted(&self.links, BundledLink::key) {
            return refuse(
                CONTENT,
                "the links are not sorted by source, relation and target, or have duplicates",
            );
        }
        self.links.iter().try_for_each(|link| link.check(&cores))?;
        self.blobs().map(drop)
    }

    /// Returns every blob with its size.
    pub(super) fn blobs(&self) -> Result<BTreeMap<BlobHash, u64>, ManifestDefect> {
        let mut blobs = BTreeMap::new();
        let captures = self.artifacts.iter().flat_map(|artifact| &artifact.captures);
        for member in captures.flat_map(|capture| &capture.members) {
            if *blobs.entry(member.blob).or_insert(member.size) != member.size {
                return refuse(CONTENT, format!("the blob {} is listed with two sizes", member.blob));
            }
        }
        Ok(blobs)
    }
}

/// Returns whether the elements are sorted by `key`, without duplicates.
fn is_sorted<'e, T, K: Ord>(elements: &'e [T], key: impl Fn(&'e T) -> K) -> bool {
    elements.iter().zip(elements.iter().skip(1)).all(|(one, next)| key(one) < key(next))
}

fn check_name(what: &str, name: &str) -> Result<(), ManifestDefect> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return refuse(
            LIMITS,
            format!("{what} has {} bytes; it must have 1 to {MAX_NAME_BYTES}", name.len()),
        );
    }
    if name.chars().any(char::is_control) {
        return refuse(CONTENT, format!("{what} {name:?} has control characters"));
    }
    Ok(())
}

impl BundledArtifact {
    fn check(&self) -> Result<(), ManifestDefect> {
        check_name("the name of a kind", &self.kind)?;
        if self.captures.is_empty() {
            return refuse(CONTENT, format!("the artifact {} has no captures", self.core_hash));
        }
        if let Some(tag) = self.tags.iter().find(|tag| !is_tag(tag)) {
            return refuse(CONTENT, format!("{tag:?} cannot be a tag"));
        }
        if let Some(note) = self.note.as_ref().filter(|note| !is_note(note)) {
            let (core, bytes) = (self.core_hash, note.len());
            let message = format!("the note of {core} has {bytes} bytes and is empty or too long");
            return refuse(CONTENT, message);
        }
        if let Err(error) = check_labels(&self.labels) {
            return refuse(CONTENT, format!("of {}: {error}", self.core_hash));
        }
        if self.labels.len() > MAX_LABELS {
            let (core, count) = (self.core_hash, self.labels.len());
            return refuse(LIMITS, format!("{core} has {count} labels, more than the limit of {MAX_LABELS}"));
        }
        if !is_sorted(&self.tags, String::as_str) {
            let message = format!("the tags of {} are not sorted, or have duplicates", self.core_hash);
            return refuse(CONTENT, message);
        }
        Ok(())
    }
}

impl BundledCapture {
    fn check(&self) -> Result<(), ManifestDefect> {
        let hash = self.capture_hash;
        check_name("a time", &self.added_at)?;
        self.members.iter().try_for_each(|member| check_name("the name of a member", &member.name))?;
        if !is_sorted(&self.members, |member| member.name.as_str()) {
            return refuse(
                CONTENT,
                format!("the members of {hash} are not sorted by name, or have duplicates"),
            );
        }
        if self.source_path.as_ref().is_some_and(|path| !SourcePath::is_valid(path)) {
            return refuse(CONTENT, format!("the source path of {hash} is empty, too long or has U+0000"));
        }
        let sum = self.members.iter().try_fold(0_u64, |sum, member| sum.checked_add(member.size));
        if sum != Some(self.size) {
            return refuse(CONTENT, format!("the size of the capture {hash} does not match its members"));
        }
        let files: Vec<_> = self.members.iter().map(|member| (member.name.as_str(), member.blob)).collect();
        if files.is_empty() || !is_capture_of(hash, &files) {
            return refuse(CONTENT, format!("the capture hash {hash} does not match the members"));
        }
        Ok(())
    }
}

impl BundledLink {
    fn check(&self, cores: &BTreeSet<CoreHash>) -> Result<(), ManifestDefect> {
        let Self { note, relation, source, target } = self;
        if !is_relation(relation) {
            return refuse(CONTENT, format!("a link has the invalid relation {relation:?}"));
        }
        if source == target {
            return refuse(CONTENT, format!("{source} is linked to itself"));
        }
        if !cores.contains(source) && !cores.contains(target) {
            return refuse(
                CONTENT,
                format!("neither end of the link from {source} to {target} is in the bundle"),
            );
        }
        match note.as_ref().map_or(0, String::len) {
            bytes if bytes > MAX_LINK_NOTE_BYTES => refuse(
                LIMITS,
                format!(
                    "the note of a link of {source} has {bytes} bytes, more than the limit of {MAX_LINK_NOTE_BYTES}"
                ),
            ),
            _ => Ok(()),
        }
    }
}

pub(super) const CONTAINER: RuleInfo = RuleInfo::error(
    "BU1",
    "A bundle is a complete tar file, uncompressed or in zstd frames.",
    "A bundle that is truncated, or whose checksums fail, was damaged in transit or is still being written; nothing of it \
     is stored. Fetch it again.",
);
pub(super) const ENTRIES: RuleInfo = RuleInfo::error(
    "BU2",
    "The entries of a bundle are manifest.json, then every blob of the manifest once, in the order of their names.",
    "Nothing is unpacked to a path, so names cannot do harm; but a bundle with other entries, with duplicate names, \
     or with missing entries, is read differently by different programs. Blobs are regular files with names \
     of the form blobs/<64 lowercase hex digits>.",
);
pub(super) const FORM: RuleInfo = RuleInfo::error(
    "BU3",
    "The manifest is the RFC 8785 text of what version 1 of the format defines, and nothing else.",
    "There is only one way to write a manifest, so there is only one way to read it. A manifest of a later version needs a later \
     runvault.",
);
pub(super) const CONTENT: RuleInfo = RuleInfo::error(
    "BU4",
    "The manifest is consistent.",
    "Artifacts, members, links, tags and labels are sorted and listed once; the hash and the size of every capture follow from \
     its members; every link has an end in the bundle. Otherwise, the manifest was edited after it was written.",
);
pub(super) const BLOBS: RuleInfo = RuleInfo::error(
    "BU5",
    "Every blob has the size that the manifest states, and the SHA-256 in its name.",
    "This is how a bundle can be checked with sha256sum. A blob with other bytes was changed or damaged; nothing of \
     the bundle is stored. Fetch it again.",
);
pub(super) const LIMITS: RuleInfo = RuleInfo::error(
    "BU7",
    "A bundle stays within the limits.",
    "Untrusted input must not be able to exhaust memory or disk. A manifest has at most 256 MiB; a \
     capture at most the limit of a document; compressed data expands to at most 200 times its size, beyond the first 64 \
     MiB. A trusted bundle that expands more can be decompressed first.",
);

/// The rules of bundles. The artifacts in them are subject to the rules of their kinds.
pub const RULES: [RuleInfo; 7] = [CONTAINER, ENTRIES, FORM, CONTENT, BLOBS, DECLARED_IDENTITY, LIMITS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_bytes_are_the_canonical_form() {
        let digest = crate::digest::Digest::from_content(b"x");
        let text = || "é\u{1}\"\u{7f}/\u{10000}".to_owned();
        let member = BundledMember { blob: BlobHash(digest), name: text(), size: 1 << 53 };
        let capture = BundledCapture {
            added_at: text(),
            capture_hash: CaptureHash(digest),
            members: vec![member],
            size: 0,
            source_path: Some(text()),
        };
        let artifact = BundledArtifact {
            captures: vec![capture],
            core_hash: CoreHash(digest),
            kind: text(),
            labels: BTreeMap::from(["b", "a.b", "Z"].map(|key| (key.to_owned(), text()))),
            note: Some(text()),
            tags: vec![text()],
        };
        let core = CoreHash(digest);
        let link = BundledLink { note: Some(text()), relation: text(), source: core, target: core };
        let manifest = Manifest::new(vec![artifact], vec![link]);
        assert_eq!(manifest.to_bytes().unwrap(), serde_json_canonicalizer::to_vec(&manifest).unwrap());
    }
}
