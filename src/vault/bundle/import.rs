//! Import of a bundle into a vault.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::labels::{self, ImportedLabel};
use super::manifest::{BundledArtifact, BundledCapture, BundledLink};
use super::notes::{self, ImportedNote};
use super::plan::carry_out;
use super::read::Bundle;
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};
use crate::intake::{ExamineOptions, SourceError};
use crate::storage::{Annotation, BUSY_TIMEOUT, ManualLink, Result, Snapshot, SourcePath, Storage};
use crate::vault::add::{
    self, AddMonitor, CommonAnnotations, DocumentOutcome, DocumentResult, Recorded, SourcePaths, Summary,
};
use crate::vault::handle::Vault;
use crate::vault::resolve;

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleImportResult {
    /// The summary of the captures.
    pub summary: Summary,
    /// The results for the links, in the order of the manifest.
    pub links: Vec<ImportedLink>,
    /// The results for the tags, in the order of the manifest.
    pub tags: Vec<ImportedTag>,
    /// The results for the notes, in the order of the manifest.
    pub notes: Vec<ImportedNote>,
    /// The results for the labels, in the order of the manifest.
    pub labels: Vec<ImportedLabel>,
    /// Whether the import was interrupted before the last capture. Links, tags, notes and labels were then not imported.
    pub is_interrupted: bool,
}

/// A tag of a bundle and its import result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedTag {
    /// The tag.
    pub name: String,
    /// The artifact that it names in the bundle.
    pub core: CoreHash,
    /// The result.
    pub outcome: TagOutcome,
}

/// The import result of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagOutcome {
    /// The tag was set on the artifact.
    Set,
    /// The artifact already had it.
    Present,
    /// Another artifact in the vault already has it, and keeps it.
    Conflict(CoreHash),
    /// The name could also be a hash or the id of a run in the vault.
    Reserved,
    /// The artifact is not in the vault.
    Missing,
}

/// A link of a bundle and its import result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedLink {
    /// The link.
    pub link: BundledLink,
    /// The result.
    pub outcome: LinkOutcome,
}

/// The import result of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOutcome {
    /// The link was added to the vault.
    Added,
    /// The link already existed; its note, if any, was kept.
    Present,
    /// The link was not added: these of its ends are not in the vault.
    Missing(Vec<CoreHash>),
}

/// Adds the artifacts in `bundle` as usual, and then its links, tags, notes and labels, until `is_stopped` returns true.
///
/// # Errors
/// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
fn add(
    storage: &dyn Storage,
    bundle: &Bundle,
    options: (&ExamineOptions, &CommonAnnotations),
    is_stopped: &(dyn Fn() -> bool + Sync),
    monitor: &mut dyn AddMonitor,
) -> Result<BundleImportResult> {
    let is_interrupted = AtomicBool::new(false);
    let items = bundle.items().take_while(|_| {
        is_interrupted.fetch_or(is_stopped(), Ordering::Relaxed);
        !is_interrupted.load(Ordering::Relaxed)
    });
    let (options, annotations) = options;
    let source_paths = if options.without_source_path { HashMap::new() } else { source_paths(bundle) };
    let recorded = Recorded { annotations, source_paths: SourcePaths::Of(&source_paths) };
    let summary = add::add(storage, items, options, recorded, monitor)?;
    if is_interrupted.into_inner() {
        let (links, tags, notes, labels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        return Ok(BundleImportResult { summary, links, tags, notes, labels, is_interrupted: true });
    }
    if !storage.is_created() {
        // Nothing was admitted, so there is nothing to link or tag.
        return relate(None, bundle, &HashSet::new(), summary);
    }
    let links = bundle.manifest().links.iter();
    let links = links.map(|link| state(storage, link)).collect::<Result<_>>()?;
    let tags = give_tags(storage, bundle)?;
    let (notes, labels) = (notes::give(storage, bundle)?, labels::give(storage, bundle)?);
    Ok(BundleImportResult { summary, links, tags, notes, labels, is_interrupted: false })
}

/// Examines everything in `bundle` without storing it, and returns what an import would do to the vault in `snapshot`, or to
/// a new one.
///
/// # Errors
/// Returns an error if the vault cannot be read.
pub fn dry_run(
    snapshot: Option<&dyn Snapshot>,
    bundle: &Bundle,
    options: &ExamineOptions,
    monitor: &mut dyn AddMonitor,
) -> Result<BundleImportResult> {
    let mut witness = BundleImportMonitor { monitor, cores: HashSet::new() };
    let summary = add::dry_run(snapshot, bundle.items(), options, &mut witness)?;
    relate(snapshot, bundle, &witness.cores, summary)
}

/// Returns the import results for the links, tags, notes and labels of `bundle` if the vault also contained `cores`.
fn relate(
    snapshot: Option<&dyn Snapshot>,
    bundle: &Bundle,
    cores: &HashSet<CoreHash>,
    summary: Summary,
) -> Result<BundleImportResult> {
    let would = |link: &BundledLink| {
        let mut missing = Vec::new();
        for end in [link.source, link.target] {
            if !cores.contains(&end) && !has(snapshot, end)? {
                missing.push(end);
            }
        }
        let outcome = match (missing.is_empty(), snapshot) {
            (false, _) => LinkOutcome::Missing(missing),
            (true, Some(snapshot)) if has_manual_link(snapshot, link)? => LinkOutcome::Present,
            (true, _) => LinkOutcome::Added,
        };
        Ok(ImportedLink { link: link.clone(), outcome })
    };
    let links = bundle.manifest().links.iter().map(would).collect::<Result<_>>()?;
    let tags = planned_tags(snapshot, bundle, cores)?;
    let is_there = |core| Ok(cores.contains(&core) || has(snapshot, core)?);
    let notes = notes::dry_run(snapshot, bundle, is_there)?;
    let labels = labels::dry_run(snapshot, bundle, is_there)?;
    Ok(BundleImportResult { summary, links, tags, notes, labels, is_interrupted: false })
}

/// Returns the outcomes for the tags of `bundle` if the vault also contained `cores`.
fn planned_tags(
    snapshot: Option<&dyn Snapshot>,
    bundle: &Bundle,
    cores: &HashSet<CoreHash>,
) -> Result<Vec<ImportedTag>> {
    let mut set: HashMap<&str, CoreHash> = HashMap::new();
    let mut planned = Vec::new();
    for (artifact, name) in tags(bundle) {
        let core = artifact.core_hash;
        let tagged = snapshot.map(|snapshot| snapshot.with_tag(name)).transpose()?.flatten();
        let outcome = match tagged.or_else(|| set.get(name).copied()) {
            Some(tagged) if tagged == core => TagOutcome::Present,
            Some(tagged) => TagOutcome::Conflict(tagged),
            None if resolve::reserved_for(snapshot, name)?.is_some() => TagOutcome::Reserved,
            None if cores.contains(&core) || has(snapshot, core)? => {
                set.insert(name, core);
                TagOutcome::Set
            }
            None => TagOutcome::Missing,
        };
        planned.push(ImportedTag { name: name.to_owned(), core, outcome });
    }
    Ok(planned)
}

/// Returns the source paths that a bundle states.
fn source_paths(bundle: &Bundle) -> HashMap<(CoreHash, CaptureHash), SourcePath> {
    let artifacts = bundle.manifest().artifacts.iter();
    let captures =
        artifacts.flat_map(|artifact| artifact.captures.iter().map(|capture| (artifact.core_hash, capture)));
    let path = |(core, capture): (CoreHash, &BundledCapture)| {
        let path = SourcePath::new(OsStr::new(capture.source_path.as_deref()?))?;
        Some(((core, capture.capture_hash), path))
    };
    captures.filter_map(path).collect()
}

fn has(snapshot: Option<&dyn Snapshot>, core: CoreHash) -> Result<bool> {
    snapshot.map_or(Ok(false), |snapshot| Ok(snapshot.artifact(core)?.is_some()))
}

fn tags(bundle: &Bundle) -> impl Iterator<Item = (&BundledArtifact, &str)> {
    let artifacts = bundle.manifest().artifacts.iter();
    artifacts.flat_map(|artifact| artifact.tags.iter().map(move |tag| (artifact, tag.as_str())))
}

/// Sets the tags of a bundle on the artifacts in the vault, unless others have them.
fn give_tags(storage: &dyn Storage, bundle: &Bundle) -> Result<Vec<ImportedTag>> {
    carry_out(
        storage,
        |snapshot| planned_tags(Some(snapshot), bundle, &HashSet::new()),
        |tag| tag.outcome == TagOutcome::Set,
        |change, tags| {
            tags.into_iter().try_for_each(|ImportedTag { name, core, .. }| {
                change.annotate(&Annotation::SetTag { core: *core, name }).map(drop)
            })
        },
    )
}

fn state(storage: &dyn Storage, link: &BundledLink) -> Result<ImportedLink> {
    let snapshot = storage.snapshot()?;
    let (source, target) = (snapshot.artifact(link.source)?, snapshot.artifact(link.target)?);
    let outcome = match (source, target) {
        (Some(_), Some(_)) if has_manual_link(&*snapshot, link)? => LinkOutcome::Present,
        (Some(_), Some(_)) => {
            drop(snapshot);
            let BundledLink { source, relation, target, note } = link;
            let (source, target, note) = (*source, *target, note.as_deref());
            let mut change = storage.transaction(clock::now(), BUSY_TIMEOUT)?;
            change.annotate(&Annotation::AddLink { source, relation, target, note })?;
            change.commit()?;
            LinkOutcome::Added
        }
        (source, target) => {
            let ends = [(source.is_none(), link.source), (target.is_none(), link.target)];
            LinkOutcome::Missing(ends.into_iter().filter(|(gone, _)| *gone).map(|(_, end)| end).collect())
        }
    };
    Ok(ImportedLink { link: link.clone(), outcome })
}

/// Returns whether the vault has the link, with any note.
fn has_manual_link(snapshot: &dyn Snapshot, link: &BundledLink) -> Result<bool> {
    let is_it = |known: ManualLink| {
        (known.source, known.relation.as_str(), known.target)
            == (link.source, link.relation.as_str(), link.target)
    };
    Ok(snapshot.manual_links_of(link.source)?.into_iter().any(is_it))
}

/// A monitor that collects what would be in the vault, and forwards all events.
struct BundleImportMonitor<'m> {
    monitor: &'m mut dyn AddMonitor,
    cores: HashSet<CoreHash>,
}

impl AddMonitor for BundleImportMonitor<'_> {
    fn examined(&mut self, examined: &DocumentResult) {
        if examined.outcome != DocumentOutcome::Rejected {
            self.cores.extend(examined.core);
        }
        self.monitor.examined(examined);
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.monitor.unreadable(error);
    }
}

impl Vault {
    /// Adds the contents of a bundle, verified like all other artifacts, and its manual links.
    ///
    /// ```
    /// # use runvault::{Vault, vault::bundle, vault::add::{AddMonitor, DocumentResult}, intake::{ExamineOptions, SourceError}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Silent;
    /// # impl AddMonitor for Silent {
    /// #     fn examined(&mut self, _: &DocumentResult) {}
    /// #     fn unreadable(&mut self, _: &SourceError) {}
    /// # }
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let mut packed = Vec::new();
    /// vault.export(&bundle::BundleRequest::default(), &mut packed)?;
    ///
    /// let other = Vault::open_or_create(&directory.path().join("other.vault"))?;
    /// let options = ExamineOptions::default();
    /// let bundle = bundle::read(packed.as_slice(), "runs.rvz", options.admit.limits.bytes)?;
    /// let imported = other.import(&bundle, &options, &mut Silent)?;
    /// assert_eq!(imported.summary.added, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
    pub fn import(
        &self,
        bundle: &Bundle,
        options: &ExamineOptions,
        monitor: &mut dyn AddMonitor,
    ) -> Result<BundleImportResult> {
        self.import_until(bundle, (options, &CommonAnnotations::NONE), &|| false, monitor)
    }

    /// Imports like [`Vault::import`], and sets annotations on every artifact, until `is_stopped` returns true. It is
    /// called before each capture, by any thread. What was stored until then stays; importing the bundle again continues.
    ///
    /// # Errors
    /// Same as [`Vault::import`].
    pub fn import_until(
        &self,
        bundle: &Bundle,
        options: (&ExamineOptions, &CommonAnnotations),
        is_stopped: &(dyn Fn() -> bool + Sync),
        monitor: &mut dyn AddMonitor,
    ) -> Result<BundleImportResult> {
        add(&*self.storage, bundle, options, is_stopped, monitor)
    }
}
