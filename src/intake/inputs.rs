use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::item::{Input, InputItem};
use super::packed;
use super::tree::{self, FileKind, FoundPath, OpenDir};
use super::verdict::SourceError;
use crate::artifact::Kind;

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
            && let Some(kind) = packed::recognize_directory(&opened, &entries)
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
