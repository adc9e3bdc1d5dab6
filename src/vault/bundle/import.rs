//! Import of a bundle into a vault.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::imported::ImportedAnnotations;
use super::manifest::BundledCapture;
use super::read::Bundle;
use crate::digest::{CaptureHash, CoreHash};
use crate::intake::{ExamineOptions, SourceError};
use crate::storage::{Result, Snapshot, SourcePath};
use crate::vault::add::{
    self, AddMonitor, CommonAnnotations, DocumentOutcome, ExaminedDocument, Recorded, SourcePaths, Summary,
};
use crate::vault::handle::Vault;

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleImportResult {
    /// The summary of the captures.
    pub summary: Summary,
    /// What was done with its links, tags, notes and labels.
    pub annotations: ImportedAnnotations,
    /// Whether the import was interrupted before the last capture. Links, tags, notes and labels were then not imported.
    pub is_interrupted: bool,
}

/// The options of an import.
#[derive(Clone, Copy)]
pub struct BundleImportOptions<'o> {
    /// The options for examining its captures.
    pub examine: &'o ExamineOptions,
    /// Annotations that are set on every artifact.
    pub annotations: &'o CommonAnnotations,
    /// Returns whether to stop. It is called before each capture, by any thread.
    pub is_stopped: &'o (dyn Fn() -> bool + Sync),
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
    let annotations = ImportedAnnotations::dry_run(snapshot, bundle, &witness.cores)?;
    Ok(BundleImportResult { summary, annotations, is_interrupted: false })
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

/// A monitor that collects what would be in the vault, and forwards all events.
struct BundleImportMonitor<'m> {
    monitor: &'m mut dyn AddMonitor,
    cores: HashSet<CoreHash>,
}

impl AddMonitor for BundleImportMonitor<'_> {
    fn examined(&mut self, examined: &ExaminedDocument) {
        if examined.outcome != DocumentOutcome::Rejected {
            self.cores.extend(examined.core_hash);
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
    /// # use runvault::{Vault, vault::bundle, vault::add::{AddMonitor, ExaminedDocument}, intake::{ExamineOptions, SourceError}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Silent;
    /// # impl AddMonitor for Silent {
    /// #     fn examined(&mut self, _: &ExaminedDocument) {}
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
        let annotations = &CommonAnnotations::NONE;
        let options = BundleImportOptions { examine: options, annotations, is_stopped: &|| false };
        self.import_until(bundle, &options, monitor)
    }

    /// Adds the artifacts in `bundle` like [`Vault::import`], and then its links, tags, notes and labels, until it is
    /// stopped. What was stored until then stays; importing the bundle again continues.
    ///
    /// # Errors
    /// Same as [`Vault::import`].
    pub fn import_until(
        &self,
        bundle: &Bundle,
        options: &BundleImportOptions<'_>,
        monitor: &mut dyn AddMonitor,
    ) -> Result<BundleImportResult> {
        let (storage, is_interrupted) = (&*self.storage, AtomicBool::new(false));
        let BundleImportOptions { examine, annotations, is_stopped } = *options;
        let items = bundle.items().take_while(|_| {
            is_interrupted.fetch_or(is_stopped(), Ordering::Relaxed);
            !is_interrupted.load(Ordering::Relaxed)
        });
        let source_paths = if examine.without_source_path { HashMap::new() } else { source_paths(bundle) };
        let recorded = Recorded { annotations, source_paths: SourcePaths::Of(&source_paths) };
        let summary = add::add(storage, items, examine, recorded, monitor)?;
        let is_interrupted = is_interrupted.into_inner();
        let annotations = if is_interrupted {
            ImportedAnnotations::default()
        } else if storage.is_created() {
            ImportedAnnotations::set(storage, bundle)?
        } else {
            // Nothing was admitted, so there is nothing to link or tag.
            ImportedAnnotations::dry_run(None, bundle, &HashSet::new())?
        };
        Ok(BundleImportResult { summary, annotations, is_interrupted })
    }
}
