use super::directory::Member;
use super::{Completeness, Draft, Kind, Signature};
use crate::digest::{CaptureHash, CoreHash};
use crate::secrets::SecretMatch;
use crate::validation::Report;

/// A verified artifact: proof that it breaks no rule of severity error. Only [`Kind::admit`] and
/// [`Kind::admit_directory`] create one.
#[derive(Debug)]
pub struct Admitted {
    pub(super) kind: Kind,
    pub(super) capture: CaptureHash,
    pub(super) members: Vec<Member>,
    /// The manifest of a directory.
    pub(super) manifest: Option<Member>,
    pub(super) draft: Draft,
    pub(super) report: Report,
    pub(super) secrets: Vec<SecretMatch>,
}

impl Admitted {
    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns its core hash, which identifies the artifact.
    #[must_use]
    pub fn core(&self) -> CoreHash {
        self.draft.core
    }

    /// Returns its capture hash, which identifies its byte form.
    #[must_use]
    pub fn capture(&self) -> CaptureHash {
        self.capture
    }

    /// Returns its files.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the manifest of a directory, whose digest is the capture hash. It has no name.
    #[must_use]
    pub fn manifest(&self) -> Option<&Member> {
        self.manifest.as_ref()
    }

    /// Returns its files and its manifest: all of its bytes that are stored.
    pub fn stored(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().chain(&self.manifest)
    }

    /// Returns the total size of its files in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.members.iter().map(|member| member.bytes().len() as u64).sum()
    }

    /// Returns its indexed data. Mentions, attributes and names are sorted and unique.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Returns whether the file that it was read from may still grow.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        self.draft.completeness
    }

    /// Returns the artifacts that are contained in it.
    #[must_use]
    pub fn embedded(&self) -> &[Admitted] {
        &self.draft.embedded
    }

    /// Adds artifacts that are to be stored with it.
    pub(crate) fn attach(&mut self, artifacts: Vec<Admitted>) {
        self.draft.embedded.extend(artifacts);
    }

    /// Adds what looks like a secret in an artifact that is stored with it.
    pub(crate) fn add_secrets(&mut self, secrets: Vec<SecretMatch>) {
        self.secrets.extend(secrets);
    }

    /// Removes and returns the artifacts that are contained in it.
    #[must_use]
    pub fn take_embedded(&mut self) -> Vec<Admitted> {
        std::mem::take(&mut self.draft.embedded)
    }

    /// Returns the result of checking its signature, or `None` if it is not signed.
    #[must_use]
    pub fn signature(&self) -> Option<&Signature> {
        self.draft.signature.as_ref()
    }

    /// Returns what looks like a secret in it, if that was to be reported ([`SecretPolicy`](crate::secrets::SecretPolicy)).
    /// The places in artifacts of several files begin with the name of the file.
    #[must_use]
    pub fn secrets(&self) -> &[SecretMatch] {
        &self.secrets
    }

    /// Returns its report, which contains only warnings.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl AsRef<Admitted> for Admitted {
    fn as_ref(&self) -> &Admitted {
        self
    }
}
