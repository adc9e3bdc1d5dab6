//! Byte forms with declared hashes, such as those in a bundle.

use std::ffi::OsString;

use super::options::ExamineOptions;
use super::verdict::Rejection;
use crate::artifact::{Admitted, Directory, DirectoryEntry, EntryContent, Kind, document};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::formats;
use crate::validation::{Report, RuleInfo, Severity, Violation};

/// The rule that such a byte form has the declared kind and hashes.
pub const DECLARED_IDENTITY: RuleInfo = RuleInfo {
    id: "BU6",
    severity: Severity::Error,
    summary: "An artifact in a bundle has the kind, the core hash and the capture hashes stated in the manifest.",
    why: "Imported artifacts are verified again, like added ones. An artifact other than \
          the one that the bundle states is not stored under either hash: the bundle was \
          changed, or was written by a program that computes hashes in another way.",
};

/// A byte form of an artifact with its declared identity.
#[derive(Debug)]
pub struct DeclaredCapture {
    /// The name for reports.
    pub name: OsString,
    /// The name of its kind.
    pub kind: String,
    /// The core hash of the artifact.
    pub core: CoreHash,
    /// The capture hash.
    pub capture: CaptureHash,
    /// Its files, by name.
    pub files: Vec<(String, Vec<u8>)>,
}

impl DeclaredCapture {
    /// Returns bytes as an artifact of the kind that takes any.
    pub(crate) fn attachment(name: OsString, bytes: Vec<u8>) -> Self {
        let digest = Digest::from_content(&bytes);
        let kind = formats::ALL.into_iter().find(|kind| kind.takes_any_bytes());
        let member = kind.and_then(Kind::document_member).unwrap_or_default();
        Self {
            name,
            kind: kind.map(Kind::name).unwrap_or_default().to_owned(),
            core: CoreHash(digest),
            capture: CaptureHash(digest),
            files: vec![(member.to_owned(), bytes)],
        }
    }

    /// Returns the total size of its files in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }
}

/// Examines a byte form, and rejects it unless it is of the declared kind and has the declared hashes.
pub(crate) fn examine(declared: DeclaredCapture, options: &ExamineOptions) -> Result<Admitted, Rejection> {
    let reject = |kind, report: Report| Err(Rejection::new(kind, report));
    let Some(kind) = formats::named(&declared.kind) else {
        let message = format!("this version of runvault does not know the kind {}", declared.kind);
        return reject(None, Violation::new(document::UNRECOGNISED, "", message).into());
    };
    let limit = options.admit.limits.bytes;
    if declared.size() > limit {
        return reject(Some(kind), document::files_too_large(limit).into());
    }
    let DeclaredCapture { core, capture, files, .. } = declared;
    let admitted = admit(kind, files, options).or_else(|report| reject(Some(kind), report))?;
    let differs = |what: &str, declared: String, found: String| {
        let message = format!("its {what} is {found}, but the bundle states {declared}");
        reject(Some(kind), Violation::new(DECLARED_IDENTITY, "", message).into())
    };
    if admitted.core() != core {
        return differs("core hash", core.to_string(), admitted.core().to_string());
    }
    if admitted.capture() != capture {
        return differs("capture hash", capture.to_string(), admitted.capture().to_string());
    }
    Ok(admitted)
}

fn admit(
    kind: Kind,
    mut files: Vec<(String, Vec<u8>)>,
    options: &ExamineOptions,
) -> Result<Admitted, Report> {
    if let Some(expected) = kind.document_member() {
        return match (files.pop(), files.is_empty()) {
            (Some((name, bytes)), true) if name == expected => kind.admit(bytes, &options.admit),
            _ => Err(Violation::new(
                DECLARED_IDENTITY,
                "",
                format!("artifacts of this kind consist of one file, {expected}"),
            )
            .into()),
        };
    }
    let is_member = |name: &str| kind.members().contains(&name);
    let entry = |(name, bytes): (String, Vec<u8>)| {
        let content = if is_member(&name) { EntryContent::File(bytes) } else { EntryContent::Unexpected };
        DirectoryEntry { name, content }
    };
    let entries = files.into_iter().map(entry).collect();
    kind.admit_directory(Directory { entries }, &options.admit)
}
