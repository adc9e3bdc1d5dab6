//! Reading and readmission of stored artifacts.

use std::collections::VecDeque;
use std::sync::Arc;

use super::signatures;
use crate::artifact::{
    AdmitOptions, Admitted, Directory, DirectoryEntry, EntryContent, KeyRing, Kind, SignaturePolicy,
};
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::json::reader::Limits;
use crate::storage::check::finding::{DIFFERENT_ROW, Finding, NOT_ADMITTED, Subject};
use crate::storage::check::{CaptureId, CheckedArtifact, Inspection, MOST_ARTIFACTS, ReadCapture, Row};
use crate::storage::{CaptureTarget, Result, StoredMember};
use crate::validation::{Report, Severity};

/// A part of an artifact, read from the vault: one of its captures, and with the last of them what follows these.
pub(super) struct FsckItem {
    artifact: Arc<CheckedArtifact>,
    /// `None` if none of the captures that are left can be read.
    capture: Option<ReadCapture>,
    end: Option<ArtifactTrailer>,
}

/// A part of an artifact after its capture was admitted again.
pub(super) struct JudgedItem<T> {
    pub(super) artifact: Arc<CheckedArtifact>,
    pub(super) capture: Option<JudgedCapture<T>>,
    pub(super) end: Option<ArtifactTrailer>,
}

/// A capture that was admitted again, or not.
pub(super) struct JudgedCapture<T> {
    /// The capture without its files.
    pub(super) capture: ReadCapture,
    /// The size of its files, in bytes.
    pub(super) size: u64,
    /// What is made of it if it was admitted.
    pub(super) admitted: Option<T>,
}

/// The data that follows the captures of an artifact.
pub(super) struct ArtifactTrailer {
    /// All of its captures, including those whose rows cannot be read.
    pub(super) captures: Vec<CaptureId>,
    /// The rows that follow from the bytes of its captures.
    pub(super) rows: Option<Vec<Row>>,
    pub(super) findings: Vec<Finding>,
}

/// The condition for artifacts that are read.
pub(super) type CheckedArtifactFilter<'s> = &'s (dyn Fn(&CheckedArtifact) -> bool + Sync);

/// A reader of artifacts, in order.
pub(super) struct FsckReader<'s> {
    inspection: Box<dyn Inspection + 's>,
    artifacts: std::vec::IntoIter<CheckedArtifact>,
    /// What selects further artifacts, and the position after which they are.
    rest: Option<(CheckedArtifactFilter<'s>, Option<(CoreHash, i64)>)>,
    current: Option<ArtifactReadState>,
    /// Whether to read the rows that follow from bytes.
    with_rows: bool,
}

struct ArtifactReadState {
    artifact: Arc<CheckedArtifact>,
    captures: Vec<CaptureId>,
    waiting: VecDeque<CaptureId>,
    findings: Vec<Finding>,
}

impl<'s> FsckReader<'s> {
    /// Creates a reader of `artifacts`.
    pub(super) fn new(
        inspection: Box<dyn Inspection + 's>,
        artifacts: Vec<CheckedArtifact>,
        with_rows: bool,
    ) -> Self {
        Self { inspection, artifacts: artifacts.into_iter(), rest: None, current: None, with_rows }
    }

    /// Creates a reader of all artifacts that `filter` selects. Damage that prevents reading their rows is added to `findings`.
    pub(super) fn of_all(
        inspection: Box<dyn Inspection + 's>,
        filter: CheckedArtifactFilter<'s>,
        with_rows: bool,
        findings: &mut Vec<Finding>,
    ) -> Result<Self> {
        let rest = Some((filter, None));
        let mut reader = Self { rest, ..Self::new(inspection, Vec::new(), with_rows) };
        reader.list(findings)?;
        Ok(reader)
    }

    /// Lists further artifacts, if there may be some.
    fn list(&mut self, findings: &mut Vec<Finding>) -> Result<()> {
        let Some((filter, last)) = self.rest.take() else { return Ok(()) };
        let is_left = |artifact: &CheckedArtifact| Some(artifact.position()) > last && filter(artifact);
        let artifacts = self.inspection.artifacts(&is_left, findings)?;
        if artifacts.len() >= MOST_ARTIFACTS {
            self.rest = Some((filter, artifacts.last().map(CheckedArtifact::position)));
        }
        self.artifacts = artifacts.into_iter();
        Ok(())
    }

    /// Returns the next artifact.
    fn next_artifact(&mut self) -> Result<Option<CheckedArtifact>> {
        if self.artifacts.as_slice().is_empty() {
            // What cannot be read was found before.
            self.list(&mut Vec::new())?;
        }
        self.inspection.read_ahead(self.artifacts.as_slice())?;
        Ok(self.artifacts.next())
    }

    fn read(&mut self) -> Result<Option<FsckItem>> {
        let mut current = if let Some(current) = self.current.take() {
            current
        } else {
            let Some(artifact) = self.next_artifact()? else { return Ok(None) };
            self.begin(artifact)?
        };
        let artifact = current.artifact.clone();
        let kind = artifact.kind.as_deref().and_then(formats::named);
        let is_directory = kind.map(Kind::is_of_directories);
        let mut capture = None;
        while capture.is_none()
            && let Some(next) = current.waiting.pop_front()
        {
            capture = self.inspection.read(&artifact, next, is_directory, &mut current.findings)?;
        }
        if !current.waiting.is_empty() {
            self.current = Some(current);
            return Ok(Some(FsckItem { artifact, capture, end: None }));
        }
        let ArtifactReadState { captures, mut findings, .. } = current;
        let rows =
            if self.with_rows { self.inspection.derived_rows(&artifact, &mut findings)? } else { None };
        Ok(Some(FsckItem { artifact, capture, end: Some(ArtifactTrailer { captures, rows, findings }) }))
    }

    fn begin(&self, artifact: CheckedArtifact) -> Result<ArtifactReadState> {
        let mut findings = Vec::new();
        let captures = self.inspection.capture_ids(&artifact, &mut findings)?;
        let waiting = captures.iter().copied().collect();
        Ok(ArtifactReadState { artifact: Arc::new(artifact), captures, waiting, findings })
    }
}

impl Iterator for FsckReader<'_> {
    /// An error if the check cannot continue.
    type Item = Result<FsckItem>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl FsckItem {
    /// Returns the size of its files in memory, in bytes.
    fn size(&self) -> u64 {
        self.capture.as_ref().map_or(0, size)
    }

    /// Returns an item with its size.
    pub(super) fn weighed(read: Result<Self>) -> (Result<Self>, u64) {
        let size = read.as_ref().map_or(0, Self::size);
        (read, size)
    }

    /// Admits the capture again, and returns what `make` makes of it.
    pub(super) fn judge<T>(
        self,
        keys: &KeyRing,
        make: impl FnOnce(&ReadCapture, Admitted) -> T,
    ) -> JudgedItem<T> {
        let Self { artifact, capture, end } = self;
        let capture = capture.map(|mut capture| {
            let size = size(&capture);
            let admitted = admit(&artifact, &mut capture, keys).map(|admitted| make(&capture, admitted));
            JudgedCapture { capture, size, admitted }
        });
        JudgedItem { artifact, capture, end }
    }
}

fn size(capture: &ReadCapture) -> u64 {
    capture.files.iter().flatten().map(|file| file.bytes.len() as u64).sum()
}

/// Admits a capture again. Returns `None` if it does not match the catalog; the findings are in `capture`.
fn admit(artifact: &CheckedArtifact, capture: &mut ReadCapture, keys: &KeyRing) -> Option<Admitted> {
    let files = capture.files.take()?;
    let subject = || Subject::Capture(capture.capture);
    let known = artifact.kind.as_deref().and_then(formats::named);
    let outcome = known.map(|kind| admit_as(kind, capture.is_directory, &files, keys));
    let finding = match outcome {
        Some(Ok(admitted)) if admitted.core() == artifact.core => {
            if capture.warnings.as_deref() != Some(admitted.report().violations()) {
                let detail =
                    format!("capture: warnings: a new check gives {}", admitted.report().violations().len());
                capture.findings.push(Finding::new(DIFFERENT_ROW, subject(), detail));
            }
            let differs = signatures::compare(capture.signature.as_ref(), admitted.signature());
            capture.findings.extend(differs.map(|(info, detail)| Finding::new(info, subject(), detail)));
            return Some(admitted);
        }
        Some(Ok(admitted)) => {
            let detail = format!(
                "artifact: core: the bytes are those of {}, not of {}",
                admitted.core(),
                artifact.core
            );
            Finding::new(DIFFERENT_ROW, subject(), detail)
        }
        Some(Err(report)) => Finding::new(NOT_ADMITTED, subject(), first_of(&report)),
        None => {
            let kind = artifact.kind.as_deref().unwrap_or("that the vault does not record");
            Finding::new(NOT_ADMITTED, subject(), format!("this program does not know the kind {kind}"))
        }
    };
    // The core hash proves what an artifact is, whatever kind the vault records.
    let others = formats::ALL.into_iter().filter(|kind| Some(*kind) != known);
    for admitted in others.filter_map(|kind| admit_as(kind, capture.is_directory, &files, keys).ok()) {
        if admitted.core() == artifact.core {
            let detail = format!("artifact: kind: it is {}", formats::noun(admitted.kind().name()));
            capture.findings.push(Finding::new(DIFFERENT_ROW, subject(), detail));
            return Some(admitted);
        }
    }
    capture.findings.push(finding);
    None
}

/// Admits files from a vault as an artifact of `kind`, and checks signatures with `keys`. A wrong signature does not
/// cause a rejection.
pub(super) fn admit_as(
    kind: Kind,
    is_directory: bool,
    files: &[StoredMember],
    keys: &KeyRing,
) -> std::result::Result<Admitted, Report> {
    let options = AdmitOptions {
        signing_keys: keys.clone(),
        signature_policy: SignaturePolicy::Record,
        ..AdmitOptions::default()
    };
    admit_stored(kind, is_directory, files, options)
}

/// Admits files from a vault as an artifact of `kind`.
pub(crate) fn admit_stored(
    kind: Kind,
    is_directory: bool,
    files: &[StoredMember],
    options: AdmitOptions,
) -> std::result::Result<Admitted, Report> {
    // Artifacts in the vault were within the limits when they were added.
    let options = AdmitOptions { limits: Limits::most(), ..options };
    match files {
        [only] if !is_directory => kind.admit(only.bytes.clone(), &options),
        _ => {
            let entries = files.iter().map(|file| DirectoryEntry {
                name: file.name.clone(),
                content: EntryContent::File(file.bytes.clone()),
            });
            kind.admit_directory(Directory { entries: entries.collect() }, &options)
        }
    }
}

/// Admits the stored files of a capture, as an artifact of the kind with this name, or of any kind if it is not known. Returns
/// `None` if it is not the artifact that `target` names.
pub(crate) fn admit_target(
    inspection: &dyn Inspection,
    target: CaptureTarget,
    kind: Option<&str>,
) -> Result<Option<Admitted>> {
    let known = kind.and_then(formats::named);
    for is_directory in [false, true] {
        let kinds = formats::ALL.into_iter().filter(|kind| {
            kind.is_of_directories() == is_directory && known.is_none_or(|known| known.name() == kind.name())
        });
        let mut kinds = kinds.peekable();
        if kinds.peek().is_none() {
            continue;
        }
        let Some(files) = inspection.files(target.capture, is_directory)? else { continue };
        let admitted = kinds.find_map(|kind| {
            let admitted = admit_as(kind, is_directory, &files, &KeyRing::default()).ok()?;
            (admitted.capture() == target.capture && admitted.core() == target.artifact).then_some(admitted)
        });
        if admitted.is_some() {
            return Ok(admitted);
        }
    }
    Ok(None)
}

/// Admits the stored files of a directory with this capture hash. Returns `None` if it is not one of a known kind.
pub(crate) fn admit_directory(inspection: &dyn Inspection, capture: CaptureHash) -> Result<Option<Admitted>> {
    let Some(files) = inspection.files(capture, true)? else { return Ok(None) };
    let mut kinds = formats::ALL.into_iter().filter(|kind| kind.is_of_directories());
    Ok(kinds.find_map(|kind| admit_as(kind, true, &files, &KeyRing::default()).ok()))
}

fn first_of(report: &Report) -> String {
    let first = report.violations().iter().find(|violation| violation.severity == Severity::Error);
    // Paths and messages contain parts of the document, which may be megabytes long.
    first.map(ToString::to_string).unwrap_or_default().chars().take(1000).collect()
}
