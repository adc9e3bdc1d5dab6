//! Lists the captures of an artifact.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{Operation, SignatureName, Timestamp};
use super::handle::{Vault, limit_of};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::{CaptureRecord, StorageError, preference};
use crate::validation::Violation;

/// A request for the captures of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CapturesRequest {
    /// The artifact.
    pub artifact: CoreHash,
    /// Maximum number of captures; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The last capture of the previous page; the first page if there is none.
    #[serde(default)]
    pub after: Option<CaptureHash>,
}

/// The captures of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapturesAnswer {
    /// The captures in the order in which they were added.
    pub captures: Vec<CaptureSummary>,
    /// Number of all captures of the artifact.
    pub count: u64,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<CaptureHash>,
}

/// A capture of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CaptureSummary {
    /// Its hash.
    pub capture_hash: CaptureHash,
    /// Whether it is the preferred capture of the artifact.
    pub preferred: bool,
    /// Its size in bytes.
    pub size: u64,
    /// The time at which it was added.
    pub added_at: Timestamp,
    /// The time at which it was last added or seen again.
    pub seen_at: Timestamp,
    /// The path that it was read from when it was first added, if that was recorded.
    #[serde(default)]
    pub source_path: Option<String>,
    /// The state of its signature.
    pub signature: SignatureName,
    /// The key id that it states.
    pub key_id: Option<String>,
    /// The warnings that were reported at its admission.
    pub violations: Vec<Violation>,
}

impl CapturesRequest {
    /// Creates a request for all captures of an artifact.
    #[must_use]
    pub fn new(artifact: CoreHash) -> Self {
        Self { artifact, limit: None, after: None }
    }
}

impl Operation for CapturesRequest {
    type Answer = CapturesAnswer;
    type Error = StorageError;

    const NAME: &'static str = "captures";
    const SUMMARY: &'static str = "List the captures of an artifact";

    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if the artifact is not in the vault, and
    /// another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<CapturesAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        snapshot.expect_artifact(self.artifact)?;
        let mut captures = CaptureSummary::all(snapshot.captures_of(self.artifact)?);
        let count = captures.len() as u64;
        if let Some(after) = self.after {
            let last = captures.iter().position(|capture| capture.capture_hash == after);
            captures.drain(..last.map_or(0, |last| last + 1));
        }
        let limit = limit_of(self.limit);
        let is_cut = captures.len() > limit;
        captures.truncate(limit);
        let next = captures.last().filter(|_| is_cut).map(|capture| capture.capture_hash);
        Ok(CapturesAnswer { captures, count, next })
    }
}

impl Vault {
    /// Returns whether a capture is stored.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn has_capture(&self, artifact: CoreHash, capture: CaptureHash) -> Result<bool, StorageError> {
        Ok(self.snapshot()?.capture(artifact, capture)?.is_some())
    }

    /// Reads and hashes all bytes of a capture, and returns whether they are those that it was stored with.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn returns_capture(&self, artifact: CoreHash, capture: CaptureHash) -> Result<bool, StorageError> {
        match self.snapshot()?.read_members(artifact, capture) {
            Err(error) if error.is_of_damage() => Ok(false),
            read => read.map(|_| true),
        }
    }
}

impl CaptureSummary {
    /// Describes all captures of an artifact.
    pub(super) fn all(captures: Vec<CaptureRecord>) -> Vec<Self> {
        let preferred = captures.iter().min_by_key(|capture| preference(capture.signature.as_ref()));
        let Some(preferred) = preferred.map(|capture| capture.capture) else { return Vec::new() };
        captures.into_iter().map(|capture| Self::new(capture, preferred)).collect()
    }

    fn new(record: CaptureRecord, preferred: CaptureHash) -> Self {
        let CaptureRecord { capture, size, added_at, seen_at, warnings, signature, source_path, .. } = record;
        Self {
            capture_hash: capture,
            preferred: capture == preferred,
            size,
            added_at: added_at.into(),
            seen_at: seen_at.into(),
            source_path,
            signature: signature.as_ref().map(|signature| signature.state).into(),
            key_id: signature.and_then(|signature| signature.key_id),
            violations: warnings,
        }
    }
}
