//! Inputs: items to examine, and the search for them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::file;
use super::tree::{self, FileKind, FoundPath, OpenDir};
use super::verdict::{ExamineOptions, Rejection, SourceError};
use crate::artifact::{Admitted, Directory, DirectoryEntry, EntryContent, Kind, document};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::formats;
use crate::validation::{Report, RuleInfo, Violation};

/// An input to examine.
#[derive(Debug)]
pub enum Input {
    /// A file, or a directory with everything below it.
    Path(PathBuf),
    /// A directory with everything below it, in which nothing need be recognized.
    Directory(PathBuf),
    /// A document that was already read, with the name for reports.
    Document {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// A file or document that [`Inputs`] found.
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
pub const DECLARED_IDENTITY: RuleInfo = RuleInfo::error(
    "BU6",
    "An artifact in a bundle has the kind, the core hash and the capture hashes stated in the manifest.",
    "Imported artifacts are verified again, like added ones. An artifact other than \
          the one that the bundle states is not stored under either hash: the bundle was \
          changed, or was written by a program that computes hashes in another way.",
);

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
        let kind = formats::of_any_bytes();
        let member = kind.document_member().unwrap_or_default();
        Self {
            name,
            kind: kind.name().to_owned(),
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

/// An iterator over inputs: directories recursively in the order of names, links not followed.
#[derive(Debug)]
pub struct Inputs {
    waiting: VecDeque<QueuedInput>,
    /// The directory that was entered last. It remains open for the files in it.
    entered: Option<Arc<OpenDir>>,
    kind: Option<Kind>,
    /// Whether the ends of directories are returned.
    with_ends: bool,
    /// Whether files that an interrupted move has set aside are recovered.
    recovers: bool,
    /// The number of items, or errors in their place, returned so far.
    given: u64,
}

#[derive(Debug)]
enum QueuedInput {
    Input(Input),
    Entry(FoundPath, FileKind),
    /// The end of a directory, and the number of items before it.
    End(PathBuf, u64),
}

impl Inputs {
    /// Creates an iterator over all of `inputs`, in their order.
    #[must_use]
    pub fn new(inputs: Vec<Input>) -> Self {
        let waiting = inputs.into_iter().map(QueuedInput::Input).collect();
        Self { waiting, entered: None, kind: None, with_ends: false, recovers: false, given: 0 }
    }

    /// Restricts the iterator to artifacts of one kind. If its artifacts are directories, every directory that was
    /// named explicitly is taken for one; if they are documents, all directories are entered.
    #[must_use]
    pub fn with_kind(self, kind: Option<Kind>) -> Self {
        Self { kind, ..self }
    }

    /// Also returns an [`InputItem::End`] after everything in a directory that was named explicitly and is not an
    /// artifact itself.
    #[must_use]
    pub fn with_ends(self) -> Self {
        Self { with_ends: true, ..self }
    }

    /// Recovers the files that a killed process was [moving](super::ArtifactSource::remove_all), in the directories
    /// that are entered or that contain named files: they get their names back, or are removed if their artifact is
    /// stored and another of its files was already removed. For use before files are moved.
    #[must_use]
    pub fn recovering(self) -> Self {
        Self { recovers: true, ..self }
    }

    fn named(&mut self, path: PathBuf) -> Result<Option<InputItem>, SourceError> {
        // Unlike links found in directories, named links are followed.
        let mut metadata = fs::metadata(&path);
        let is_missing = metadata.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if self.recovers && (is_missing || self.kind.is_some_and(Kind::is_of_directories)) {
            let directory = if is_missing { tree::parent(&path) } else { &path };
            // If it cannot be read, reading the input fails too.
            let _ = OpenDir::open(directory).and_then(|opened| opened.all_entries(true));
            metadata = fs::metadata(&path);
        }
        if let Some(kind) = self.kind.filter(|kind| kind.is_of_directories())
            && !metadata.as_ref().is_ok_and(fs::Metadata::is_file)
        {
            return Ok(Some(InputItem::Directory { path: path.into(), kind, named: true }));
        }
        let metadata = metadata.map_err(SourceError::at(&path))?;
        if metadata.is_dir() {
            let opened = OpenDir::open(&path).map_err(SourceError::at(&path))?;
            self.enter(path.into(), opened, true)
        } else if metadata.is_file() {
            Ok(Some(InputItem::Named(path)))
        } else {
            let reason = "is neither a file nor a directory; to read from a pipe, use - and redirect it";
            Err(SourceError { path, source: io::Error::new(io::ErrorKind::InvalidInput, reason) })
        }
    }

    fn found(&mut self, path: FoundPath, kind: FileKind) -> Result<Option<InputItem>, SourceError> {
        match kind {
            FileKind::Directory => {
                let opened = open_found(&path).map_err(SourceError::at(&path))?;
                self.enter(path, opened, false)
            }
            FileKind::File => Ok(Some(InputItem::Found(path))),
            FileKind::Link | FileKind::Other => Ok(Some(InputItem::NotAFile(path.into()))),
        }
    }

    /// Returns a directory that is one artifact; for any other, queues its entries.
    fn enter(
        &mut self,
        path: FoundPath,
        opened: OpenDir,
        named: bool,
    ) -> Result<Option<InputItem>, SourceError> {
        let mut entries = opened.all_entries(self.recovers).map_err(SourceError::at(&path))?;
        if self.kind.is_none_or(Kind::is_of_directories)
            && let Some(kind) = file::recognize_directory(&opened, &entries)
        {
            return Ok(Some(InputItem::Directory { path, kind, named }));
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        if named && self.with_ends {
            self.waiting.push_front(QueuedInput::End(path.to_path_buf(), self.given));
        }
        // No others remain open: there may be very many directories.
        let opened = self.entered.insert(Arc::new(opened));
        for entry in entries.into_iter().rev() {
            let found = FoundPath::within_open(opened, &entry.name);
            self.waiting.push_front(QueuedInput::Entry(found, entry.kind));
        }
        Ok(None)
    }
}

/// Opens a directory that was found in another one. Fails unless it is still a directory in the same location.
pub(super) fn open_found(path: &FoundPath) -> io::Result<OpenDir> {
    let Some(name) = path.file_name() else { return OpenDir::open(path) };
    OpenDir::parent_of(path)?
        .open_directory(name)
        .map_err(|error| if tree::is_no_directory(&error) { tree::replaced() } else { error })
}

impl Iterator for Inputs {
    type Item = Result<InputItem, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let item = match self.waiting.pop_front()? {
                QueuedInput::Input(Input::Document { name, bytes }) => {
                    Ok(Some(InputItem::Document { name, bytes }))
                }
                QueuedInput::Input(Input::Path(path)) => self.named(path),
                QueuedInput::Input(Input::Directory(path)) => OpenDir::open(&path)
                    .map_err(SourceError::at(&path))
                    .and_then(|opened| self.enter(path.into(), opened, false)),
                QueuedInput::Entry(path, kind) => self.found(path, kind),
                // It is not counted as an item.
                QueuedInput::End(path, before) => {
                    return Some(Ok(InputItem::End { path, items: self.given.saturating_sub(before) }));
                }
            };
            if let Some(item) = item.transpose() {
                self.given += 1;
                return Some(item);
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // How many items there are in a directory is not known before it is entered.
        (0, self.waiting.is_empty().then_some(0))
    }
}
