//! The work on a request: the vault, and whether the client still waits.

use crate::digest::CoreHash;
use crate::vault::Vault;
use crate::vault::api::Operation;
use crate::vault::resolve::ResolveRequest;

use super::failure::ToolError;

/// The work on a request.
pub(super) struct ToolContext<'w> {
    pub(super) vault: &'w Vault,
    /// Whether the vault may be changed.
    pub(super) may_write: bool,
    is_cancelled: &'w dyn Fn() -> bool,
}

impl<'w> ToolContext<'w> {
    pub(super) fn new(vault: &'w Vault, may_write: bool, is_cancelled: &'w dyn Fn() -> bool) -> Self {
        Self { vault, may_write, is_cancelled }
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

    /// Returns the artifact that a text refers to.
    pub(super) fn artifact(&self, text: &str) -> Result<CoreHash, ToolError> {
        self.check()?;
        Ok(ResolveRequest::new(text).locate(self.vault)?.artifact.core)
    }
}
