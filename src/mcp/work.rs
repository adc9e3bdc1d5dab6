//! The work on a request: the vault, and whether the client still waits.

use std::sync::Arc;

use crate::digest::CoreHash;
use crate::vault::Vault;
use crate::vault::api::Operation;
use crate::vault::resolve::{LocatedCapture, ResolveRequest};
use crate::vault::view::ViewRequest;

use super::failure::ToolError;
use super::recent::{RecentReads, RecentView};

/// The work on a request.
pub(super) struct ToolContext<'w> {
    pub(super) vault: &'w Vault,
    /// Whether the vault may be changed.
    pub(super) may_write: bool,
    /// What was read last.
    pub(super) recent: &'w RecentReads,
    is_cancelled: &'w dyn Fn() -> bool,
}

impl<'w> ToolContext<'w> {
    pub(super) fn new(
        vault: &'w Vault,
        may_write: bool,
        recent: &'w RecentReads,
        is_cancelled: &'w dyn Fn() -> bool,
    ) -> Self {
        Self { vault, may_write, recent, is_cancelled }
    }

    /// Returns [`ToolError::Cancelled`] if the client cancelled the request.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if (self.is_cancelled)() { Err(ToolError::Cancelled) } else { Ok(()) }
    }

    /// Runs an operation of the vault, unless the request was cancelled.
    pub(super) fn run<O: Operation>(&self, request: &O) -> Result<O::Answer, ToolError>
    where
        ToolError: From<O::Error>,
    {
        self.check()?;
        Ok(self.vault.run(request)?)
    }

    /// Returns a part of a transcript: the one that was read last, if this is a further page of it.
    pub(super) fn view(&self, request: ViewRequest, is_further: bool) -> Result<Arc<RecentView>, ToolError> {
        if let Some(view) = self.recent.view(&request).filter(|_| is_further) {
            return Ok(view);
        }
        let answer = self.run(&request)?;
        Ok(self.recent.remember_view(request, answer))
    }

    /// Returns the artifact that a text refers to.
    pub(super) fn artifact(&self, text: &str) -> Result<CoreHash, ToolError> {
        Ok(self.locate(text)?.artifact.core)
    }

    /// Returns the artifact and the capture that a text refers to.
    pub(super) fn locate(&self, text: &str) -> Result<LocatedCapture, ToolError> {
        self.check()?;
        Ok(ResolveRequest::new(text).locate(self.vault)?)
    }
}
