//! Comparison of every artifact with its bytes.

use std::collections::BTreeSet;

use super::reader::{ArtifactTrailer, FsckItem, FsckReader, JudgedCapture, JudgedItem};
use super::report::{Depth, FsckOptions, FsckReporter};
use super::signatures::SignatureCounts;
use crate::artifact::{Admitted, Kind, Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::intake::pipeline::{self, PipelineEvent};
use crate::storage::check::finding::{self, Finding, INDEX_DIFFERS, MISSING_ROW, Subject, UNREADABLE};
use crate::storage::check::{
    CheckedArtifact, Inspection, IntegrityLevel, ReadCapture, Row, compare_rows, rows_of,
};
use crate::storage::{Result, Storage};

/// Checks the artifacts that `options` select, and, if these are all artifacts, whether lookups of digests find them.
pub(super) fn check(
    storage: &dyn Storage,
    inspection: &dyn Inspection,
    options: &FsckOptions,
    reporter: &mut FsckReporter<'_>,
) -> Result<()> {
    let mut findings = Vec::new();
    let is_first_part = options.after.is_none();
    let mut look_up = matches!(options.depth, Depth::Sample(_));
    if options.depth == Depth::Full {
        let (mut found, is_complete) = inspection.mentions_index(IntegrityLevel::Full)?;
        // If lookups cannot work, there is no point in trying them for each artifact.
        look_up = !is_complete && !found.iter().any(|finding| finding.info == INDEX_DIFFERS);
        if is_first_part {
            findings.append(&mut found);
        }
    }
    let kind = options.kind.map(Kind::name);
    let is_selected = |artifact: &CheckedArtifact| {
        (kind.is_none() || artifact.kind.as_deref() == kind)
            && options.after.is_none_or(|after| artifact.core > after)
    };
    let reading = storage.inspect()?;
    let reading = if let Depth::Sample(sample) = options.depth {
        let mut artifacts = inspection.artifacts_in(&sample.ranges(), &mut findings)?;
        artifacts.retain(is_selected);
        FsckReader::new(reading, artifacts, true)
    } else {
        FsckReader::of_all(reading, &is_selected, true, &mut findings)?
    };
    reporter.add_all(findings);
    let mut checking =
        ArtifactChecker { inspection, look_up, removed: None, state: ArtifactCheckState::default() };
    if !options.keys.is_empty() {
        reporter.report.signatures = Some(SignatureCounts::default());
    }
    let judge = |item: Result<FsckItem>, _: &dyn Fn(u64)| {
        let make = |capture: &ReadCapture, admitted| DerivedCaptureData::new(capture, &admitted);
        item.map(|item| item.judge(&options.keys, make))
    };
    pipeline::in_order(reading, FsckItem::weighed, judge, |event| match event {
        PipelineEvent::Result(judged) => checking.take(judged?, reporter),
        PipelineEvent::Idle => Ok(()),
    })
}

/// The data derived from an admitted capture.
struct DerivedCaptureData {
    rows: Vec<Row>,
    embedded: Vec<(CoreHash, CaptureHash)>,
    /// The recorded state of its signature, and the result of checking it.
    signature: Option<(SignatureState, Signature)>,
}

impl DerivedCaptureData {
    fn new(capture: &ReadCapture, admitted: &Admitted) -> Self {
        Self {
            rows: rows_of(admitted),
            embedded: admitted.embedded().iter().map(|part| (part.core(), part.capture())).collect(),
            signature: admitted.signature().map(|found| {
                let stored = capture.signature.as_ref().map(|stored| stored.state);
                (stored.unwrap_or(SignatureState::Unchecked), found.clone())
            }),
        }
    }
}

struct ArtifactChecker<'i> {
    inspection: &'i dyn Inspection,
    /// Whether to test lookups for each artifact.
    look_up: bool,
    /// The hashes of what was removed, loaded on first use.
    removed: Option<BTreeSet<Digest>>,
    state: ArtifactCheckState,
}

/// The state of the artifact whose captures are being read.
#[derive(Default)]
struct ArtifactCheckState {
    rows: Vec<Row>,
    admitted: usize,
    bytes: u64,
    findings: Vec<Finding>,
    embedded: Vec<(CoreHash, CaptureHash)>,
}

impl ArtifactChecker<'_> {
    fn take(
        &mut self,
        judged: JudgedItem<DerivedCaptureData>,
        reporter: &mut FsckReporter<'_>,
    ) -> Result<()> {
        let JudgedItem { artifact, capture, end } = judged;
        if let Some(JudgedCapture { mut capture, size, admitted }) = capture {
            self.state.findings.append(&mut capture.findings);
            self.state.bytes += size;
            if let Some(DerivedCaptureData { mut rows, mut embedded, signature }) = admitted {
                if let (Some((stored, found)), Some(counts)) = (signature, &mut reporter.report.signatures) {
                    counts.count(&found, stored);
                }
                self.state.admitted += 1;
                self.state.rows.append(&mut rows);
                self.state.embedded.append(&mut embedded);
            }
        }
        end.map_or(Ok(()), |end| self.end(&artifact, end, reporter))
    }

    fn end(
        &mut self,
        artifact: &CheckedArtifact,
        end: ArtifactTrailer,
        reporter: &mut FsckReporter<'_>,
    ) -> Result<()> {
        let ArtifactCheckState { rows, admitted, bytes, mut findings, embedded } =
            std::mem::take(&mut self.state);
        findings.extend(end.findings);
        if let Some(stored) = end.rows {
            findings.extend(compare_rows(rows, stored, admitted == end.captures.len()));
        }
        for (core, capture) in embedded {
            let (info, detail) = match self.is_missing(core, capture) {
                Ok(false) => continue,
                Ok(true) => (MISSING_ROW, format!("artifact: it is part of artifact {}", artifact.core)),
                Err(error) if error.is_of_damaged_file() => (UNREADABLE, error.to_string()),
                Err(error) => return Err(error),
            };
            findings.push(Finding::new(info, Subject::Artifact(core), detail));
        }
        if self.look_up {
            self.inspection.unlisted(artifact, &mut findings)?;
        }
        finding::sort(&mut findings);
        reporter.add_all(findings);
        reporter.checked(artifact.core, bytes);
        Ok(())
    }

    fn is_missing(&mut self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        Ok(!self.inspection.has_capture(core, capture)? && !self.was_removed(core, capture)?)
    }

    fn was_removed(&mut self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        if self.removed.is_none() {
            let replay = self.inspection.replay(None, &mut Vec::new())?;
            self.removed = Some(replay.map(|replay| replay.catalog.removed()).unwrap_or_default());
        }
        let is_removed = |digest| self.removed.as_ref().is_some_and(|removed| removed.contains(digest));
        Ok(is_removed(&core.0) || is_removed(&capture.0))
    }
}
