//! Reads an artifact as a transcript.

mod conversation;
mod core_check;
mod request;
mod step;

pub use crate::artifact::{BodyRole, StepClass};
pub use crate::conversation::message::{
    ConversationMessage, MessageMedia, MessagePart, MessageRole, MessageToolCall, MessageToolResult,
};
pub use crate::conversation::reader::{Conversation, ConversationCall, ConversationThread};
use core_check::CoreOfBytes;
use request::{PageCount, located_kind};
pub use request::{ViewFilter, ViewRequest};
pub(super) use step::prompt_texts;
pub use step::{BodyFormat, BodySource, ViewBody, ViewStep};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::ArtifactSummary;
use super::audit::LastAudit;
use super::details::AttributeSummary;
use super::resolve::{LocatedCapture, LookupError};
use super::{Vault, query};
use crate::artifact::TranscriptStep;
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::storage::{Snapshot, StoredMember};

/// The transcript of an artifact, or a part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ViewAnswer {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// The capture that was read.
    pub capture_hash: CaptureHash,
    /// The size of the capture in bytes.
    pub size: u64,
    /// The attributes of the artifact, sorted by name and value.
    pub attributes: Vec<AttributeSummary>,
    /// The labels of the artifact, by key.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The noun for a step, such as `interaction`.
    pub step_noun: String,
    /// Number of steps of the artifact.
    pub total: u64,
    /// Number of steps of the artifact that record a failure, as far as it was read.
    pub failed: u64,
    /// Number of steps of the artifact that match the request, on this page or not.
    pub matching: u64,
    /// The matching steps, in order; none if it is read as a conversation.
    pub steps: Vec<ViewStep>,
    /// The conversation, if one was requested and the artifact has the bodies of its calls. The numbers of steps above are
    /// those of calls then, and its texts are complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// The number of the first step of the previous page; `None` if this is the first, or if pages have no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<u64>,
    /// The number of the first step of the next page; `None` if this is the last.
    pub next: Option<u64>,
    /// The artifacts with the steps, in their order, if the run of which this one is the first part is stored as several. The
    /// numbers of the steps of each follow those of the one before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CoreHash>,
    /// Whether the core hash of the artifact was computed from the bytes that were read, and is this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub core_checked: bool,
    /// The last audit, if the artifact states terms. Its effects are the first steps of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<LastAudit>,
}

impl ViewRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`LookupError::CaptureNotFound`] if the artifact has no such capture, [`LookupError::Unreadable`] if this
    /// program cannot interpret the document or it has another core hash, and [`LookupError::Store`] if the artifact is not in the vault or the
    /// vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<ViewAnswer, LookupError> {
        self.answer(&*vault.snapshot()?)
    }

    fn answer(&self, snapshot: &dyn Snapshot) -> Result<ViewAnswer, LookupError> {
        let located = self.locate(snapshot)?;
        let core = self.artifact;
        let attributes = snapshot.attributes_of(core)?;
        let kind = located_kind(&located)?;
        let labels = snapshot.annotations_of(core)?.labels.into_iter();
        let mut page = ViewStepPage::default();
        let parts = query::from_first(snapshot, core)?;
        let conversation = if self.conversation { conversation::read(snapshot, self, &parts)? } else { None };
        for part in parts.iter().filter(|_| conversation.is_none()) {
            let (shown, first_index) = (page.steps.len(), page.count.total);
            if *part == core {
                self.add_steps(snapshot, &located, first_index, &mut page)?;
            } else {
                let located = ViewRequest::new(*part).locate(snapshot)?;
                self.add_steps(snapshot, &located, first_index, &mut page)?;
            }
            let added = page.steps.get_mut(shown..).unwrap_or_default();
            step::resolve_texts(snapshot, *part, added, self.max_text())?;
        }
        let mut step_noun = kind.info().step_noun;
        let conversation = conversation.map(|read| {
            step_noun = "call";
            page.count = read.count;
            read.conversation
        });
        let states_terms = kind == formats::TERMS;
        let audit = states_terms.then(|| LastAudit::new(snapshot, &located.artifact)).transpose()?;
        Ok(ViewAnswer {
            artifact: (&located.artifact).into(),
            capture_hash: located.capture.capture,
            size: located.capture.size,
            attributes: attributes.into_iter().map(AttributeSummary::from).collect(),
            labels: labels.map(|label| (label.key, label.value)).collect(),
            step_noun: step_noun.to_owned(),
            total: page.count.total,
            failed: page.count.failed,
            matching: page.count.matching,
            steps: page.steps,
            conversation,
            previous: page.count.previous.start(),
            next: page.count.next,
            core_checked: page.count.core_checked,
            parts: if parts.len() > 1 { parts } else { Vec::new() },
            audit,
        })
    }

    /// Adds the steps of an artifact to the page. Their numbers begin at `first_index`. The document is dropped before other
    /// documents are read.
    fn add_steps(
        &self,
        snapshot: &dyn Snapshot,
        located: &LocatedCapture,
        first_index: u64,
        page: &mut ViewStepPage,
    ) -> Result<(), LookupError> {
        let (core, kind) = (located.artifact.core, located_kind(located)?);
        let members = snapshot.read_members(core, located.capture.capture)?;
        let files = step::file_steps(snapshot, core, kind, &members)?;
        let mut visit = |transcribed: TranscriptStep<'_>| {
            let index = first_index + transcribed.index as u64;
            if page.count(self, index, &transcribed) {
                let mut step = ViewStep::new(&transcribed, &files, self.max_text(), self.recorded);
                step.index = index;
                step.answers = step.answers.map(|request| first_index + request);
                page.steps.push(step);
            }
        };
        CoreOfBytes { core, kind, members: &members, root: None }.check_while(self, || {
            let visited = kind.transcript(&StoredMember::borrowed(&members), &mut visit);
            visited.map_err(|error| LookupError::Unreadable { core, message: error.to_string() })
        })?;
        page.count.core_checked |= self.check_core && core == self.artifact;
        Ok(())
    }
}

/// The steps of a page, and what was counted.
#[derive(Default)]
struct ViewStepPage {
    steps: Vec<ViewStep>,
    count: PageCount,
}

impl ViewStepPage {
    /// Counts a step, and returns whether it is on the page.
    fn count(&mut self, request: &ViewRequest, index: u64, step: &TranscriptStep<'_>) -> bool {
        self.count.total += 1;
        self.count.failed += u64::from(step.failed);
        request.only.is_none_or(|only| only.takes(step)) && self.count.admits(request, index)
    }
}
