use std::io;
use std::path::PathBuf;

use super::file::OpenFile;
use super::{
    ExamineOptions, Item, Rejection, SourceError, Verdict, admitted, directory, examine_document,
    examine_named, found, stated,
};

impl Item {
    /// Opens a file, so that its size is known; of other items nothing is touched.
    #[must_use]
    pub fn open(self) -> Opened {
        let file = match &self {
            Self::Named(path) | Self::Found(path) => Some(OpenFile::open(path)),
            Self::NotAFile(_)
            | Self::Directory { .. }
            | Self::End { .. }
            | Self::Document { .. }
            | Self::Stated(_) => None,
        };
        Opened { item: self, file }
    }
}

/// An item that is ready to be examined.
#[derive(Debug)]
pub struct Opened {
    item: Item,
    /// The file if the item is one, or why it cannot be read.
    file: Option<io::Result<OpenFile>>,
}

impl Opened {
    /// An item of which nothing is touched before it is examined.
    pub(super) fn later(item: Item) -> Self {
        Self { item, file: None }
    }

    /// About how many bytes examining it takes into memory.
    #[must_use]
    pub fn size(&self) -> u64 {
        match (&self.item, &self.file) {
            (_, Some(file)) => file.as_ref().map_or(0, OpenFile::weight),
            (Item::Directory { path, kind, .. }, _) => directory::weigh(path, *kind),
            (Item::Document { bytes, .. }, _) => bytes.len() as u64,
            (Item::Stated(stated), _) => stated.size(),
            (Item::Named(_) | Item::Found(_) | Item::NotAFile(_) | Item::End { .. }, _) => 0,
        }
    }

    /// Reads and examines it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn examine(self, options: &ExamineOptions) -> Result<Verdict, SourceError> {
        let open = |path: &PathBuf| self.file.unwrap_or_else(|| OpenFile::open(path));
        match self.item {
            Item::Document { name, bytes } => Ok(examine_document(bytes, &name, options).into()),
            Item::Stated(stated) => Ok(stated::examine(stated, options).into()),
            Item::Named(path) => {
                let verdict = open(&path).and_then(|file| examine_named(&path, file, options));
                verdict.map_err(SourceError::at(&path))
            }
            Item::Found(path) => {
                let verdict = open(&path).and_then(|file| found::examine(&path, file, options));
                verdict.map_err(SourceError::at(&path))
            }
            Item::NotAFile(path) => Ok(found::examine_other(&path, options)),
            Item::End { .. } => Ok(Verdict::NoArtifact),
            Item::Directory { path, kind, .. } => Ok(match directory::read(&path, kind, options)? {
                Ok(directory) => admitted(kind, kind.admit_directory(directory, &options.admit)).into(),
                Err(report) => Verdict::Rejected(Rejection { kind: Some(kind), report }),
            }),
        }
    }
}
