//! Computes the core hash of an artifact from the bytes that are read for its transcript.

use std::panic::resume_unwind;
use std::thread;

use super::request::ViewRequest;
use crate::artifact::Kind;
use crate::digest::CoreHash;
use crate::json::Value;
use crate::storage::StoredMember;
use crate::vault::resolve::{LookupError, core_of_members};

/// An artifact whose bytes were read.
#[derive(Clone, Copy)]
pub(super) struct CoreOfBytes<'v> {
    pub(super) core: CoreHash,
    pub(super) kind: Kind,
    pub(super) members: &'v [StoredMember],
    /// The document, if it was parsed already.
    pub(super) root: Option<&'v Value<'v>>,
}

impl CoreOfBytes<'_> {
    /// Runs `read`, and computes the core hash at the same time if the request is for the artifact and asks for that: in a
    /// large run, either takes about as long.
    ///
    /// # Errors
    /// Returns [`LookupError::Unreadable`] if the bytes have another core hash, and the error of `read`.
    pub(super) fn check_while<T>(
        self,
        request: &ViewRequest,
        read: impl FnOnce() -> Result<T, LookupError>,
    ) -> Result<T, LookupError> {
        if !request.check_core || self.core != request.artifact {
            return read();
        }
        thread::scope(|scope| {
            let check = scope.spawn(|| self.check());
            let read = read();
            check.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            read
        })
    }

    /// Returns an error unless the bytes have the core hash.
    fn check(self) -> Result<(), LookupError> {
        if let Some(found) = self.root.and_then(|root| self.kind.core_of(root))
            && found == self.core
        {
            return Ok(());
        }
        core_of_members(self.core, self.kind, self.members).map(drop)
    }
}
