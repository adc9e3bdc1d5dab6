use std::io;

use super::document::{examine_document, examine_named};
use super::error::SourceError;
use super::file::OpenFile;
use super::item::InputItem;
use super::options::ExamineOptions;
use super::original::InputLocation;
use super::verdict::{DocumentVerdict, Rejection, admitted};
use super::{declared_capture, directory, found};
use crate::files;

impl InputItem {
    /// Opens a file, so that its size is known; other items are not accessed.
    #[must_use]
    pub fn open(self) -> OpenedInput {
        let file = match &self {
            Self::Named(path) => Some(OpenFile::open_named(path)),
            Self::Found(path) => Some(OpenFile::open_found(path)),
            Self::NotAFile(_)
            | Self::Directory { .. }
            | Self::End { .. }
            | Self::Document { .. }
            | Self::Declared(_) => None,
        };
        OpenedInput { item: self, file }
    }
}

/// An item ready to be examined.
#[derive(Debug)]
pub struct OpenedInput {
    item: InputItem,
    /// The file if the item is one, or the error of opening it.
    file: Option<io::Result<OpenFile>>,
}

impl OpenedInput {
    /// Creates an item that is not accessed before it is examined.
    pub(super) fn later(item: InputItem) -> Self {
        Self { item, file: None }
    }

    /// Returns the approximate memory needed to examine it, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match (&self.item, &self.file) {
            (_, Some(file)) => file.as_ref().map_or(0, OpenFile::weight),
            (InputItem::Directory { path, kind, .. }, _) => directory::weigh(path, *kind),
            (InputItem::Document { bytes, .. }, _) => bytes.len() as u64,
            (InputItem::Declared(declared), _) => declared.size(),
            (
                InputItem::Named(_) | InputItem::Found(_) | InputItem::NotAFile(_) | InputItem::End { .. },
                _,
            ) => 0,
        }
    }

    /// Reads and examines it.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub fn examine(self, options: &ExamineOptions) -> Result<DocumentVerdict, SourceError> {
        self.examine_in_place(options).map(|(verdict, _)| verdict)
    }

    /// Like [`examine`](Self::examine), and also returns the file or directory that it was read from, if any.
    pub(crate) fn examine_in_place(
        self,
        options: &ExamineOptions,
    ) -> Result<(DocumentVerdict, Option<InputLocation>), SourceError> {
        match self.item {
            InputItem::Document { name, bytes } => Ok((examine_document(bytes, &name, options).into(), None)),
            InputItem::Declared(declared) => Ok((declared_capture::examine(declared, options).into(), None)),
            InputItem::Named(path) => {
                let at = SourceError::at(&path);
                let file = self.file.unwrap_or_else(|| OpenFile::open_named(&path)).map_err(at)?;
                let place = InputLocation::from_file(path.clone(), file.directory, true);
                let verdict = examine_named(&path, file, options).map_err(SourceError::at(&path))?;
                Ok((verdict, Some(place)))
            }
            InputItem::Found(path) => {
                let file = match self.file.unwrap_or_else(|| OpenFile::open_found(&path)) {
                    Err(error) if files::is_in_use(&error) => {
                        return Ok((found::examine_own(&error, options), None));
                    }
                    file => file.map_err(SourceError::at(&path))?,
                };
                let place = InputLocation::from_file(path.to_path_buf(), file.directory, false);
                let verdict = found::examine(&path, file, options).map_err(SourceError::at(&path))?;
                Ok((verdict, Some(place)))
            }
            InputItem::NotAFile(path) => Ok((found::examine_other(&path, options), None)),
            InputItem::End { .. } => Ok((DocumentVerdict::NoArtifact, None)),
            InputItem::Directory { path, kind, .. } => {
                let read = directory::read(&path, kind, options)?;
                let verdict = match read.contents {
                    Ok(directory) => admitted(kind, kind.admit_directory(directory, &options.admit)).into(),
                    Err(report) => DocumentVerdict::Rejected(Rejection::new(Some(kind), report)),
                };
                Ok((verdict, Some(InputLocation::from_directory(path.into(), read.id))))
            }
        }
    }
}

/// Reads and examines `item`.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn examine(item: InputItem, options: &ExamineOptions) -> Result<DocumentVerdict, SourceError> {
    OpenedInput::later(item).examine(options)
}
