//! Verifies stored artifacts.
//!
//! ```
//! # use runvault::{Vault, intake::ExamineOptions, vault::verify::VerifyRequest};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
//! # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
//! let mut request = VerifyRequest::default();
//! loop {
//!     let page = vault.run(&request)?;
//!     assert!(page.captures.iter().all(|capture| capture.ok));
//!     request.after = page.next;
//!     if page.next.is_none() {
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::fsck::{self, Sample};
use super::resolve::LookupError;
use crate::artifact::{AdmitOptions, KeyRing, Kind, Signature, SignaturePolicy};
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::storage::{
    ArtifactRecord, CaptureRecord, Cursor, ErrorKind, Filter, Order, Page, Snapshot, StorageError,
};
use crate::validation::Violation;

/// A request to read captures of stored artifacts, to hash their bytes, and to admit them again. Changes nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyRequest {
    /// Only these artifacts; all artifacts of the vault if empty.
    pub artifacts: Vec<CoreHash>,
    /// Only captures with this hash.
    pub capture: Option<CaptureHash>,
    /// The id of a kind: only artifacts of this kind.
    pub kind: Option<String>,
    /// Only a sample of the artifacts.
    pub sample: Option<Sample>,
    /// Whether captures without a signature are rejected, and, if there is a key, those whose signature has no matching
    /// key. Captures with a wrong signature are always rejected.
    pub require_signature: bool,
    /// The keys that signatures are checked with. They are secret, so a request as a document has none.
    #[serde(skip)]
    pub keys: KeyRing,
    /// The last artifact of the previous page.
    pub after: Option<CoreHash>,
    /// Maximum number of artifacts of this page; 100 if there is none.
    pub limit: Option<u32>,
}

/// A page of verified captures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyAnswer {
    /// The captures: by core hash, and those of an artifact in the order in which they were added.
    pub captures: Vec<VerifiedCapture>,
    /// The last artifact of this page; `None` if it is the last page.
    pub next: Option<CoreHash>,
}

/// A capture that was read, hashed and admitted again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifiedCapture {
    /// The id of the kind of its artifact.
    pub kind: String,
    /// Whether its bytes are those that were stored, break no rule, and have the core hash of the artifact.
    pub ok: bool,
    /// The core hash of its artifact.
    pub core_hash: CoreHash,
    /// Its hash.
    pub capture_hash: CaptureHash,
    /// Its size in bytes.
    pub size: u64,
    /// The damage of its bytes. If there is any, nothing else could be checked.
    pub damage: Option<String>,
    /// The core hash of its bytes; `None` if they are damaged or break a rule.
    pub computed_core_hash: Option<CoreHash>,
    /// The result of checking its signature; missing if it is not signed, is damaged or breaks a rule.
    #[serde(flatten)]
    #[schema(value_type = Signature)]
    pub signature: Option<Signature>,
    /// The violations of the rules, warnings included.
    pub violations: Vec<Violation>,
    /// Number of violations that are not listed; missing if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violations_omitted: Option<u64>,
}

/// Number of artifacts of a page if none is requested.
const LIMIT: u32 = 100;

/// Number of artifacts that are looked up at a time.
const BATCH: usize = 1_000;

impl VerifyRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`LookupError::Unreadable`] if a kind is not supported, and [`LookupError::Store`] if a requested artifact
    /// is not in the vault or the vault cannot be read. Damaged bytes are not an error.
    pub fn run(&self, vault: &Vault) -> Result<VerifyAnswer, LookupError> {
        let snapshot = vault.snapshot()?;
        let options = self.options();
        let (artifacts, next) = self.page(&*snapshot)?;
        let mut captures = Vec::new();
        for artifact in artifacts {
            let kind = formats::named(&artifact.kind).ok_or_else(|| LookupError::Unreadable {
                core: artifact.core,
                message: format!("it does not know the kind {}", artifact.kind),
            })?;
            let mut stored = snapshot.captures_of(artifact.core)?;
            stored.retain(|stored| self.capture.is_none_or(|only| only == stored.capture));
            for capture in &stored {
                captures.push(check(&*snapshot, kind, capture, &options)?);
            }
        }
        Ok(VerifyAnswer { captures, next })
    }

    fn options(&self) -> AdmitOptions {
        let signature_policy =
            if self.require_signature { SignaturePolicy::Require } else { SignaturePolicy::RejectWrong };
        AdmitOptions { signing_keys: self.keys.clone(), signature_policy, ..AdmitOptions::default() }
    }

    /// Returns the artifacts of the page, and the last of them if there is another page.
    fn page(&self, snapshot: &dyn Snapshot) -> Result<(Vec<ArtifactRecord>, Option<CoreHash>), StorageError> {
        let limit = self.limit.unwrap_or(LIMIT).max(1) as usize;
        let mut artifacts: Vec<ArtifactRecord> = Vec::new();
        let mut after = self.after;
        loop {
            let (batch, is_last) = self.batch(snapshot, after)?;
            after = batch.last().map(|artifact| artifact.core);
            for artifact in batch.into_iter().filter(|artifact| self.selects(artifact)) {
                if artifacts.len() == limit {
                    let last = artifacts.last().map(|artifact| artifact.core);
                    return Ok((artifacts, last));
                }
                artifacts.push(artifact);
            }
            if is_last {
                return Ok((artifacts, None));
            }
        }
    }

    /// Returns artifacts after a core hash, in the order of their core hashes, and whether they are the last.
    fn batch(
        &self,
        snapshot: &dyn Snapshot,
        after: Option<CoreHash>,
    ) -> Result<(Vec<ArtifactRecord>, bool), StorageError> {
        if !self.artifacts.is_empty() {
            let named: BTreeSet<CoreHash> = self.artifacts.iter().copied().collect();
            let named = named.into_iter().filter(|core| after.is_none_or(|after| *core > after));
            return Ok((snapshot.expect_artifacts(&named.collect::<Vec<_>>())?, true));
        }
        let filter = Filter { kinds: self.kind.iter().cloned().collect(), ..Filter::default() };
        let after = after.map(|core| Cursor { kind: None, time: None, number: None, position: 0, core });
        let found = snapshot.find(&filter, Order::Core, &Page { limit: BATCH, after })?;
        Ok((found.items.into_iter().map(|hit| hit.artifact).collect(), found.next.is_none()))
    }

    fn selects(&self, artifact: &ArtifactRecord) -> bool {
        self.kind.as_ref().is_none_or(|kind| *kind == artifact.kind)
            && self.sample.is_none_or(|sample| sample.has(artifact.core))
    }
}

fn check(
    snapshot: &dyn Snapshot,
    kind: Kind,
    stored: &CaptureRecord,
    options: &AdmitOptions,
) -> Result<VerifiedCapture, LookupError> {
    let core = stored.artifact;
    let mut checked = VerifiedCapture {
        kind: kind.name().to_owned(),
        ok: false,
        core_hash: core,
        capture_hash: stored.capture,
        size: stored.size,
        damage: None,
        computed_core_hash: None,
        signature: None,
        violations: Vec::new(),
        violations_omitted: None,
    };
    let files = match snapshot.read_members(core, stored.capture) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::Damaged => {
            return Ok(VerifiedCapture { damage: Some(error.cause()), ..checked });
        }
        Err(error) => return Err(error.into()),
    };
    let admitted = fsck::admit_stored(kind, kind.is_of_directories(), &files, options.clone());
    let report = match &admitted {
        Ok(admitted) => {
            checked.ok = admitted.core() == core;
            checked.computed_core_hash = Some(admitted.core());
            checked.signature = admitted.signature().cloned();
            admitted.report()
        }
        Err(report) => report,
    };
    checked.violations = report.violations().to_vec();
    checked.violations_omitted = Some(report.omitted() as u64).filter(|omitted| *omitted > 0);
    Ok(checked)
}
