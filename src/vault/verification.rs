//! Verification of stored artifacts.

use super::{LookupError, Vault};
use crate::artifact::{AdmitOptions, Kind, Signature};
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::storage::{ArtifactRecord, CaptureRecord, ErrorKind, Snapshot};
use crate::validation::Report;
use crate::vault::fsck;

/// A capture that was read from the vault, hashed and admitted again.
#[derive(Clone, Debug)]
pub struct CheckedCapture {
    /// The capture, with its previous signature state.
    pub capture: CaptureRecord,
    /// The damage of its bytes. If there is any, nothing else could be checked.
    pub damage: Option<String>,
    /// The violations of the rules, warnings included.
    pub report: Report,
    /// The core hash of its bytes; `None` if they are damaged or violate a rule.
    pub core: Option<CoreHash>,
    /// The result of checking its signature; `None` if it is not signed, is damaged or violates a rule.
    pub signature: Option<Signature>,
}

impl Vault {
    /// Reads the captures of an artifact, or only the one with the hash `only`, in the order in which they were added,
    /// hashes their bytes and admits them again with the keys and the signature policy of `options`. Changes nothing.
    ///
    /// ```
    /// # use runvault::{Vault, artifact::AdmitOptions, intake::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let located = vault.locate(&"4df877dec7f4".parse()?)?;
    /// let checked = vault.verify(&located.artifact, None, &AdmitOptions::default())?;
    /// assert!(checked.iter().all(|capture| capture.core == Some(located.artifact.core)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`LookupError::Unreadable`] if the kind is not supported, and [`LookupError::Store`] if the vault cannot
    /// be read. Damaged bytes are not an error.
    pub fn verify(
        &self,
        artifact: &ArtifactRecord,
        only: Option<CaptureHash>,
        options: &AdmitOptions,
    ) -> Result<Vec<CheckedCapture>, LookupError> {
        let kind = formats::named(&artifact.kind).ok_or_else(|| LookupError::Unreadable {
            core: artifact.core,
            message: format!("it does not know the kind {}", artifact.kind),
        })?;
        let snapshot = self.snapshot()?;
        let artifact = snapshot.expect_artifact(artifact.core)?;
        let mut captures = snapshot.captures_of(artifact.core)?;
        captures.retain(|capture| only.is_none_or(|only| only == capture.capture));
        let check = |capture| check(&*snapshot, kind, artifact.core, capture, options);
        captures.into_iter().map(check).collect()
    }
}

fn check(
    snapshot: &dyn Snapshot,
    kind: Kind,
    core: CoreHash,
    capture: CaptureRecord,
    options: &AdmitOptions,
) -> Result<CheckedCapture, LookupError> {
    let mut checked =
        CheckedCapture { capture, damage: None, report: Report::default(), core: None, signature: None };
    let files = match snapshot.read_members(core, checked.capture.capture) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::Damaged => {
            return Ok(CheckedCapture { damage: Some(error.cause()), ..checked });
        }
        Err(error) => return Err(error.into()),
    };
    match fsck::admit_stored(kind, kind.is_of_directories(), &files, options.clone()) {
        Ok(admitted) => {
            checked.core = Some(admitted.core());
            checked.signature = admitted.signature().cloned();
            checked.report = admitted.report().clone();
        }
        Err(report) => checked.report = report,
    }
    Ok(checked)
}
