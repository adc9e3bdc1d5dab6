//! The request for a transcript.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{Kind, StepClass, TranscriptStep};
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::storage::Snapshot;
use crate::vault::resolve::{LocatedCapture, LookupError};

/// A request for the transcript of an artifact, or for a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub struct ViewRequest {
    /// The artifact.
    pub artifact: CoreHash,
    /// One of its captures; the preferred one if there is none.
    #[serde(default)]
    pub capture: Option<CaptureHash>,
    /// The number of the first step, from 0.
    #[serde(default)]
    pub from: u64,
    /// The number of the last step; the last one of the artifact if there is none.
    #[serde(default)]
    pub to: Option<u64>,
    /// Only steps of this sort.
    #[serde(default)]
    pub only: Option<ViewFilter>,
    /// Maximum number of steps; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Maximum number of characters of each text; unlimited if there is none.
    #[serde(default)]
    pub max_text: Option<u64>,
    /// Whether to include each step as it is recorded.
    #[serde(default)]
    pub recorded: bool,
    /// Whether to read a run as a conversation instead of as steps, if it has the bodies of its calls.
    #[serde(default)]
    pub conversation: bool,
    /// Whether to compute the core hash of the artifact from the bytes that are read for the answer.
    #[serde(default)]
    pub check_core: bool,
    /// Whether the calls of a conversation after those of the answer may be left unread. If there is a next page, or `to` is
    /// given, failures are counted, and threads listed, only as far as it was read then.
    #[serde(default)]
    pub partial: bool,
}

impl ViewRequest {
    /// Creates a request for the whole transcript.
    #[must_use]
    pub fn new(artifact: CoreHash) -> Self {
        Self {
            artifact,
            capture: None,
            from: 0,
            to: None,
            only: None,
            limit: None,
            max_text: None,
            recorded: false,
            conversation: false,
            check_core: false,
            partial: false,
        }
    }
}

/// A selection of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ViewFilter {
    /// Calls of tools and their results.
    Tools,
    /// Steps that record a failure.
    Errors,
}

impl ViewFilter {
    /// Returns whether it selects a step.
    pub(super) fn takes(self, step: &TranscriptStep<'_>) -> bool {
        match self {
            Self::Tools => step.class == StepClass::Tool,
            Self::Errors => step.failed,
        }
    }
}

impl ViewRequest {
    /// Returns the artifact and its capture.
    pub(super) fn locate(&self, snapshot: &dyn Snapshot) -> Result<LocatedCapture, LookupError> {
        let core = self.artifact;
        let artifact = snapshot.expect_artifact(core)?;
        let capture = match self.capture {
            Some(capture) => snapshot.capture(core, capture)?,
            None => snapshot.preferred_capture(core)?,
        };
        let missing = self.capture.unwrap_or(CaptureHash(core.0)).0.into();
        let capture = capture.ok_or(LookupError::CaptureNotFound { core, capture: missing })?;
        Ok(LocatedCapture { artifact, capture })
    }

    /// Returns the maximum number of characters of each text.
    pub(super) fn max_text(&self) -> u64 {
        self.max_text.unwrap_or(u64::MAX)
    }
}

/// What was counted of a transcript, and where the pages beside the requested one begin.
#[derive(Debug, Default)]
pub(super) struct PageCount {
    /// Number of all steps.
    pub(super) total: u64,
    /// Number of those that failed.
    pub(super) failed: u64,
    /// Number of those that match.
    pub(super) matching: u64,
    /// Number of those on the page.
    pub(super) shown: u64,
    pub(super) previous: PreviousPage,
    pub(super) next: Option<u64>,
    /// Whether the core hash of the artifact was computed from the bytes that were read.
    pub(super) core_checked: bool,
}

impl PageCount {
    /// Counts the next step that matches, and returns whether it is on the page.
    pub(super) fn admits(&mut self, request: &ViewRequest, index: u64) -> bool {
        self.matching += 1;
        if index < request.from {
            self.previous.add(request, index);
            return false;
        }
        if request.to.is_some_and(|to| index > to) {
            return false;
        }
        if request.limit.is_some_and(|limit| self.shown >= limit) {
            self.next.get_or_insert(index);
            return false;
        }
        self.shown += 1;
        true
    }
}

/// Finds where the page before the requested one begins, which is the number of matching steps of a page before it.
#[derive(Debug, Default)]
pub(super) struct PreviousPage {
    /// The numbers of the last matching steps before the requested page, at most as many as a page has.
    last: VecDeque<u64>,
    /// Whether further steps match before those.
    is_preceded: bool,
}

impl PreviousPage {
    /// Learns the number of the next matching step before the requested page.
    fn add(&mut self, request: &ViewRequest, index: u64) {
        self.last.push_back(index);
        // Without a limit, there are no pages.
        if request.limit.is_none_or(|limit| self.last.len() as u64 > limit) {
            self.last.pop_front();
            self.is_preceded = true;
        }
    }

    /// Returns the number of the first step of the page: 0 if it is the first, so that this has one address.
    pub(super) fn start(&self) -> Option<u64> {
        let first = self.last.front().copied();
        if self.is_preceded { first } else { first.map(|_| 0) }
    }
}

/// Returns the kind of a located artifact.
pub(super) fn located_kind(located: &LocatedCapture) -> Result<Kind, LookupError> {
    let name = &located.artifact.kind;
    formats::named(name).ok_or_else(|| LookupError::Unreadable {
        core: located.artifact.core,
        message: format!("it does not know the kind {name}"),
    })
}
