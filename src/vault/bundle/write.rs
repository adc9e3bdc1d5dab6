//! Export of a vault to a bundle: the selection of artifacts, and the writing.

use std::collections::BTreeMap;
use std::io::{self, Write};

use chrono::SecondsFormat;
use serde::{Deserialize, Serialize};

use super::container::Packer;
use super::manifest::{self, BundledArtifact, BundledCapture, BundledLink, BundledMember, Manifest};
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::files;
use crate::storage::{
    ArtifactRecord, CaptureRecord, Filter, ManualLink, MemberRecord, Order, Page, Snapshot, StorageError,
    TimeBasis,
};
use crate::vault::find::ArtifactFilter;
use crate::vault::{Vault, query};

/// The name of the first entry.
pub(super) const MANIFEST: &str = "manifest.json";

/// Returns the name of the entry of a blob.
pub(super) fn entry_of(blob: BlobHash) -> String {
    format!("blobs/{}", blob.0.hex())
}

/// A selection of artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArtifactSelection {
    /// The core hashes of artifacts; if there are none, all artifacts that match the filter.
    pub artifacts: Vec<CoreHash>,
    /// The filter, which does not apply to `artifacts`. An empty filter selects all artifacts.
    pub filter: ArtifactFilter,
    /// Which linked artifacts are selected too.
    pub links: LinkScope,
    /// Whether coincident links are followed as well, if all links are.
    pub coincident: bool,
}

/// Which artifacts are selected because of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkScope {
    /// None.
    #[default]
    None,
    /// The sessions, traces, run packs and export packs of the same run, and what all of these state, by hashes, names and
    /// manual links; never what only states one of them too.
    Stated,
    /// Everything that can be reached along links, derived or manual, in either direction.
    All,
}

impl ArtifactSelection {
    /// Returns the selected artifacts: those that are named in their order, those of a filter in the order in which they
    /// were last seen, newest first, and with links by core hash, each once.
    pub(super) fn records(&self, snapshot: &dyn Snapshot) -> Result<Vec<ArtifactRecord>, StorageError> {
        let selected = if self.artifacts.is_empty() {
            let order = Order::Newest(TimeBasis::LastSeen);
            let hits = snapshot.find(&Filter::from(&self.filter), order, &Page::all())?.items;
            hits.into_iter().map(|hit| hit.artifact).collect()
        } else {
            snapshot.expect_artifacts(&self.artifacts)?
        };
        match self.links {
            LinkScope::None => Ok(selected),
            LinkScope::Stated => query::stated(snapshot, &selected),
            LinkScope::All => query::reachable(snapshot, selected, self.coincident),
        }
    }
}

/// The statistics of a written bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleStatistics {
    /// Number of artifacts.
    pub artifacts: u64,
    /// Number of captures.
    pub captures: u64,
    /// Number of manual links.
    pub links: u64,
    /// Number of blobs.
    pub blobs: u64,
    /// Total size of the blobs in bytes.
    pub bytes: u64,
    /// The size of the largest capture in bytes. An import with a lower limit rejects it.
    pub largest: u64,
}

/// The reason that a bundle was not completed.
#[derive(Debug, thiserror::Error)]
pub enum BundleWriteError {
    /// No artifact is selected.
    #[error("no artifact matches the conditions; nothing was written")]
    Empty,
    /// The bundle would be too large.
    #[error(
        "the manifest would have {0} bytes, more than the limit of {limit}; export in several parts",
        limit = manifest::MAX_BYTES
    )]
    TooLarge(u64),
    /// The vault contains something that no bundle can contain, so it is damaged.
    #[error("the vault is damaged: {0}")]
    Inconsistent(String),
    /// A store error.
    #[error(transparent)]
    Store(#[from] StorageError),
    /// The bundle cannot be written.
    #[error("cannot write the bundle: {}", files::describe(.0))]
    Io(#[from] io::Error),
}

/// A capture that contains a blob, which errors about the blob name.
struct BundleBlobSource {
    core: CoreHash,
    capture: CaptureHash,
    size: u64,
}

/// A request to write a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BundleRequest {
    /// The artifacts.
    pub selection: ArtifactSelection,
    /// Whether the source paths of captures are left out.
    pub without_source_paths: bool,
}

impl Vault {
    /// Returns the core hashes of the selected artifacts: those that are named in their order, those of a filter in the
    /// order in which they were last seen, newest first, and with links by core hash, each once.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if an artifact that is named is not in the
    /// vault, and another one if the vault cannot be read.
    pub fn select(&self, selection: &ArtifactSelection) -> Result<Vec<CoreHash>, StorageError> {
        let artifacts = selection.records(&*self.snapshot()?)?;
        Ok(artifacts.into_iter().map(|artifact| artifact.core).collect())
    }

    /// Writes the selected artifacts to `out`, each with all its captures and annotations, and the manual links from or to
    /// them. Every byte is hashed again. The same vault and the same request give the same bytes.
    ///
    /// ```
    /// # use runvault::{Vault, intake::ExamineOptions, vault::bundle::BundleRequest};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let mut bundle = Vec::new();
    /// let written = vault.export(&BundleRequest::default(), &mut bundle)?;
    /// assert_eq!((written.artifacts, written.captures), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`BundleWriteError::Empty`] if no artifact is selected, and then writes nothing;
    /// [`BundleWriteError::Store`] if the vault cannot be read, of the kind
    /// [`Gone`](crate::storage::ErrorKind::Gone) if an artifact that is named is not in it; and otherwise the other
    /// conditions of [`BundleWriteError`]. The output is then not a valid bundle.
    pub fn export(
        &self,
        request: &BundleRequest,
        out: &mut dyn Write,
    ) -> Result<BundleStatistics, BundleWriteError> {
        let snapshot = self.snapshot()?;
        let artifacts = request.selection.records(&*snapshot)?;
        if artifacts.is_empty() {
            return Err(BundleWriteError::Empty);
        }
        write_artifacts(&*snapshot, &artifacts, request.without_source_paths, out)
    }
}

/// Writes a bundle of `artifacts`.
fn write_artifacts(
    snapshot: &dyn Snapshot,
    artifacts: &[ArtifactRecord],
    without_source_paths: bool,
    out: &mut dyn Write,
) -> Result<BundleStatistics, BundleWriteError> {
    let by_core: BTreeMap<CoreHash, &ArtifactRecord> =
        artifacts.iter().map(|artifact| (artifact.core, artifact)).collect();
    let mut needed = BTreeMap::new();
    let mut bundled = Vec::with_capacity(by_core.len());
    for artifact in by_core.values() {
        let mut described = bundled_artifact(snapshot, artifact, &mut needed)?;
        if without_source_paths {
            described.captures.iter_mut().for_each(|capture| capture.source_path = None);
        }
        bundled.push(described);
    }
    let manifest = Manifest::new(bundled, links_of(snapshot, by_core.values().copied())?);
    // Do not write a bundle that an import would reject.
    manifest.check().map_err(|(_, message)| BundleWriteError::Inconsistent(message))?;
    let text = manifest.to_bytes().map_err(io::Error::from)?;
    if text.len() as u64 > manifest::MAX_BYTES {
        return Err(BundleWriteError::TooLarge(text.len() as u64));
    }
    let sizes = needed.values().map(|needed| needed.size);
    let mut packer = Packer::new(out, sizes.chain([text.len() as u64]))?;
    packer.entry(MANIFEST, &text)?;
    for (blob, BundleBlobSource { core, capture, .. }) in &needed {
        packer.entry(&entry_of(*blob), &snapshot.read(*core, *capture, *blob)?)?;
    }
    packer.finish()?.flush()?;
    let captures = manifest.artifacts.iter().flat_map(|artifact| &artifact.captures);
    Ok(BundleStatistics {
        largest: captures.map(|capture| capture.size).max().unwrap_or(0),
        artifacts: manifest.artifacts.len() as u64,
        captures: manifest.artifacts.iter().map(|artifact| artifact.captures.len() as u64).sum(),
        links: manifest.links.len() as u64,
        blobs: needed.len() as u64,
        bytes: needed.values().map(|needed| needed.size).sum(),
    })
}

fn bundled_artifact(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    needed: &mut BTreeMap<BlobHash, BundleBlobSource>,
) -> Result<BundledArtifact, StorageError> {
    let core = artifact.core;
    let mut captures = Vec::new();
    for CaptureRecord { capture, added_at, source_path, .. } in snapshot.captures_of(core)? {
        let members: Vec<BundledMember> =
            snapshot.members(core, capture)?.into_iter().map(BundledMember::from).collect();
        for BundledMember { blob, size, .. } in &members {
            needed.entry(*blob).or_insert(BundleBlobSource { core, capture, size: *size });
        }
        let size = members.iter().map(|member| member.size).sum();
        let added_at = added_at.to_rfc3339_opts(SecondsFormat::Millis, true);
        captures.push(BundledCapture { added_at, capture_hash: capture, members, size, source_path });
    }
    let annotations = snapshot.annotations_of(core)?;
    Ok(BundledArtifact {
        captures,
        core_hash: core,
        kind: artifact.kind.clone(),
        labels: annotations.labels.into_iter().map(|label| (label.key, label.value)).collect(),
        note: annotations.note.map(|note| note.text),
        tags: annotations.tags.into_iter().map(|tag| tag.name).collect(),
    })
}

impl From<MemberRecord> for BundledMember {
    fn from(row: MemberRecord) -> Self {
        let MemberRecord { name, blob, size } = row;
        Self { blob, name, size }
    }
}

/// Returns the manual links from or to `artifacts`, sorted.
fn links_of<'a>(
    snapshot: &dyn Snapshot,
    artifacts: impl Iterator<Item = &'a ArtifactRecord>,
) -> Result<Vec<BundledLink>, StorageError> {
    let mut links = BTreeMap::new();
    for artifact in artifacts {
        for ManualLink { source, relation, target, note } in snapshot.manual_links_of(artifact.core)? {
            links.insert((source, relation.clone(), target), BundledLink { note, relation, source, target });
        }
    }
    Ok(links.into_values().collect())
}
