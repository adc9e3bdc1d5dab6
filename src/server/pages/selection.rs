//! The selection of steps that the address of a page of an artifact states.

use serde::Deserialize;

use crate::digest::CoreHash;
use crate::server::address::{self, STEPS};
use crate::server::visit::{Medium, PageError, PageRequest};
use crate::vault::view::{ViewFilter, ViewRequest};

/// Maximum number of characters of each text; more if a single step is requested.
const TEXT: u64 = 4_000;
const FULL_TEXT: u64 = 200_000;

/// The parameters of the address that select steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TranscriptSelection {
    pub(super) from: u64,
    pub(super) to: Option<u64>,
    pub(super) only: Option<ViewFilter>,
    /// Whether the steps of a run are shown as they are recorded, instead of as a conversation.
    pub(super) raw: bool,
    /// The last run on the previous page of audits.
    pub(super) audits_after: Option<CoreHash>,
    /// Whether the page is written to a file, which has no page for a single step.
    #[serde(skip)]
    pub(super) is_file: bool,
}

impl TranscriptSelection {
    /// Returns the parameters of a page that the request selects.
    pub(super) fn new(visit: &PageRequest<'_>) -> Result<Self, PageError> {
        Ok(Self { is_file: visit.medium == Medium::File, ..visit.parameters()? })
    }

    /// Returns the request for the selected steps.
    pub(super) fn request(self, artifact: CoreHash) -> ViewRequest {
        ViewRequest {
            from: self.from,
            to: self.to,
            only: self.only,
            limit: Some(STEPS),
            max_text: Some(if self.is_complete() { FULL_TEXT } else { TEXT }),
            conversation: !self.raw,
            partial: true,
            ..ViewRequest::new(artifact)
        }
    }

    /// Returns whether long texts are shown too.
    pub(super) fn is_complete(self) -> bool {
        self.is_file || self.to == Some(self.from)
    }

    /// Returns the address of the page of an artifact with these steps.
    pub(super) fn address(self, artifact: CoreHash) -> String {
        let from = (self.from > 0 || self.to.is_some()).then(|| self.from.to_string());
        let to = self.to.map(|to| to.to_string());
        let only = self.only.map(|only| match only {
            ViewFilter::Tools => "tools",
            ViewFilter::Errors => "errors",
        });
        let parameters = [
            ("from", from.as_deref()),
            ("to", to.as_deref()),
            ("only", only),
            ("raw", self.raw.then_some("true")),
        ];
        address::with_query(&address::artifact(artifact), &parameters)
    }

    /// Returns the address of a step on the page without a filter.
    pub(super) fn step_address(self, artifact: CoreHash, index: u64) -> String {
        let page = Self { from: index / STEPS * STEPS, to: None, only: None, ..self };
        format!("{}#step-{index}", page.address(artifact))
    }

    /// Returns the same selection from its first step on, with this filter.
    pub(super) fn filtered(self, only: Option<ViewFilter>) -> Self {
        Self { from: 0, to: None, only, ..self }
    }

    /// Returns the selection of one step alone.
    pub(super) fn alone(self, index: u64) -> Self {
        Self { from: index, to: Some(index), only: None, ..self }
    }

    /// Returns the selection of the steps from one on.
    pub(super) fn starting_at(self, from: u64) -> Self {
        Self { from, to: None, ..self }
    }
}
