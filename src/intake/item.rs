//! Items that are examined.

use std::ffi::OsString;
use std::path::PathBuf;

use super::tree::FoundPath;
use super::verdict::{ExamineOptions, Rejection};
use crate::artifact::{Admitted, Directory, DirectoryEntry, EntryContent, Kind, document};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::formats;
use crate::validation::{Report, RuleInfo, Severity, Violation};

/// An input to examine.
#[derive(Debug)]
pub enum Input {
    /// A file, or a directory with everything below it.
    Path(PathBuf),
    /// A document that was already read, with the name for reports.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// A file or document that [`Inputs`](super::Inputs) found.
#[derive(Debug)]
pub enum InputItem {
    /// A file that was named explicitly: it is an artifact or rejected.
    Named(PathBuf),
    /// A file in a directory: it need not be an artifact.
    Found(FoundPath),
    /// The end of a directory that was named explicitly, after all its items. Its verdict is that it is not an
    /// artifact; the caller counts whether the directory contained any.
    End {
        /// Its path.
        path: PathBuf,
        /// The number of items found in it.
        items: u64,
    },
    /// A link, device or pipe in a directory: never opened. It is rejected if it has a name defined by a format.
    NotAFile(PathBuf),
    /// A directory that is intended to be one artifact.
    Directory {
        /// Its path.
        path: FoundPath,
        /// Its kind.
        kind: Kind,
        /// Whether it was named explicitly.
        named: bool,
    },
    /// A document that was already read.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A byte form with declared hashes.
    Declared(DeclaredCapture),
}

impl InputItem {
    /// Returns the number of items in the directory whose end it is, or `None` if it is not an end.
    pub(crate) fn items(&self) -> Option<u64> {
        match self {
            Self::End { items, .. } => Some(*items),
            _ => None,
        }
    }

    /// Returns the name for reports. The name of a file need not be UTF-8.
    #[must_use]
    pub fn name(&self) -> OsString {
        match self {
            Self::Named(path) | Self::NotAFile(path) | Self::End { path, .. } => {
                path.clone().into_os_string()
            }
            Self::Found(path) | Self::Directory { path, .. } => path.as_os_str().to_owned(),
            Self::Document { name, .. } => name.into(),
            Self::Declared(DeclaredCapture { name, .. }) => name.clone(),
        }
    }
}

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
