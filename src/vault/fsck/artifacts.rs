//! Comparison of every artifact with its bytes.

use std::sync::Arc;

use super::options::{Depth, Options};
use super::reading::{End, Item, Reading, admit, size};
use super::report::Reporter;
use super::signatures::SignatureCounts;
use crate::artifact::{KeyRing, Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash};
use crate::intake::pipeline::{self, Event};
use crate::storage::check::finding::{self, EMBEDDED_MISSING, Finding, MENTION_INDEX_UNSORTED, Subject};
use crate::storage::check::{CheckedArtifact, Facts, Inspection, Removals};
use crate::storage::{Result, Storage, StorageError};

/// Checks the artifacts that `options` select, and, if these are all artifacts, whether lookups of digests find them.
pub(super) fn check(
    storage: &dyn Storage,
    inspection: &dyn Inspection,
    options: &Options,
    reporter: &mut Reporter<'_>,
) -> Result<()> {
    let mut findings = Vec::new();
    let is_first_part = options.after.is_none();
    let mut look_up = matches!(options.depth, Depth::Sample(_));
    if options.depth == Depth::Full {
        let (mut found, is_complete) = inspection.mentions_index()?;
        // If lookups cannot work, there is no point in trying them for each artifact.
        look_up = !is_complete && !found.iter().any(|finding| finding.info.id == MENTION_INDEX_UNSORTED.id);
        if is_first_part {
            findings.append(&mut found);
        }
    }
    let mut artifacts = inspection.artifacts(options.kind.map(crate::artifact::Kind::name), &mut findings)?;
    reporter.add_all(findings);
    artifacts.retain(|artifact| {
        let is_sampled = match options.depth {
            Depth::Sample(sample) => sample.has(artifact.core),
            Depth::Quick | Depth::Full => true,
        };
        is_sampled && options.after.is_none_or(|after| artifact.core > after)
    });
    let reading = Reading::new(storage.maintenance().inspect()?, artifacts, true);
    let mut checking = Checking { inspection, look_up, removals: None, state: State::default() };
    if !options.keys.is_empty() {
        reporter.report.signatures = Some(SignatureCounts::default());
    }
    let judge = |item, _: &dyn Fn(u64)| judge(item, &options.keys);
    pipeline::in_order(reading, Item::weighed, judge, |event| match event {
        Event::Result(judged) => checking.take(judged, reporter),
        Event::Idle => Ok(()),
    })
}

/// The result of checking an item.
enum Judged {
    Capture { findings: Vec<Finding>, admitted: Option<Found>, bytes: u64 },
    End(Arc<CheckedArtifact>, End),
    Failed(StorageError),
}

/// The data derived from an admitted capture.
struct Found {
    facts: Facts,
    embedded: Vec<(CoreHash, CaptureHash)>,
    /// The recorded state of its signature, and the result of checking it.
    signature: Option<(SignatureState, Signature)>,
}

fn judge(item: Item, keys: &KeyRing) -> Judged {
    match item {
        Item::Capture(artifact, mut capture) => {
            let bytes = size(&capture);
            let admitted = admit(&artifact, &mut capture, keys).map(|admitted| Found {
                facts: Facts::from_admitted(&admitted),
                embedded: admitted.embedded().iter().map(|part| (part.core(), part.capture())).collect(),
                signature: admitted.signature().map(|found| {
                    let stored =
                        capture.signature.as_ref().map_or(SignatureState::Unchecked, |stored| stored.state);
                    (stored, found.clone())
                }),
            });
            Judged::Capture { findings: capture.findings, admitted, bytes }
        }
        Item::End(artifact, end) => Judged::End(artifact, end),
        Item::Failed(error) => Judged::Failed(error),
    }
}

struct Checking<'i> {
    inspection: &'i dyn Inspection,
    /// Whether to test lookups for each artifact.
    look_up: bool,
    /// Loaded on first use.
    removals: Option<Removals>,
    state: State,
}

/// The state of the artifact whose captures are being read.
#[derive(Default)]
struct State {
    facts: Facts,
    admitted: usize,
    bytes: u64,
    findings: Vec<Finding>,
    embedded: Vec<(CoreHash, CaptureHash)>,
}

impl Checking<'_> {
    fn take(&mut self, judged: Judged, reporter: &mut Reporter<'_>) -> Result<()> {
        match judged {
            Judged::Capture { mut findings, admitted, bytes } => {
                self.state.findings.append(&mut findings);
                self.state.bytes += bytes;
                if let Some(Found { facts, mut embedded, signature }) = admitted {
                    if let (Some((stored, found)), Some(counts)) =
                        (signature, &mut reporter.report.signatures)
                    {
                        counts.count(&found, stored);
                    }
                    self.state.admitted += 1;
                    self.state.facts.add(facts);
                    self.state.embedded.append(&mut embedded);
                }
                Ok(())
            }
            Judged::End(artifact, end) => self.end(&artifact, end, reporter),
            Judged::Failed(error) => Err(error),
        }
    }

    fn end(&mut self, artifact: &CheckedArtifact, end: End, reporter: &mut Reporter<'_>) -> Result<()> {
        let State { facts, admitted, bytes, mut findings, embedded } = std::mem::take(&mut self.state);
        findings.extend(end.findings);
        if let Some(stored) = end.facts {
            // Entries of a capture that cannot be read may be in the index.
            let are_complete = admitted == end.captures.len();
            findings.extend(facts.compare(stored, &Subject::Artifact(artifact.core), are_complete));
        }
        for (core, capture) in embedded {
            if !self.inspection.has_capture(core, capture)? && !self.was_removed(core, capture)? {
                let detail = format!("it is part of artifact {}", artifact.core);
                findings.push(Finding::new(EMBEDDED_MISSING, Subject::Artifact(core), detail));
            }
        }
        if self.look_up {
            self.inspection.unlisted(artifact, &mut findings)?;
        }
        finding::sort(&mut findings);
        reporter.add_all(findings);
        reporter.checked(artifact.core, bytes);
        Ok(())
    }

    fn was_removed(&mut self, core: CoreHash, capture: CaptureHash) -> Result<bool> {
        if self.removals.is_none() {
            self.removals = Some(self.inspection.removals()?);
        }
        Ok(self.removals.as_ref().is_some_and(|removals| removals.has(core, capture)))
    }
}
