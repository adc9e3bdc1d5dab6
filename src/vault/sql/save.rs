//! Saving of all views for other programs.

use std::path::Path;

use super::datasette::DatasetteMetadata;
use super::tables::saved_tables;
use crate::files::{FileWriteError, WriteOptions};
use crate::storage::{RowProgress, SaveSummary, SqlError, SqlReader, StorageError};

/// The form in which views are saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveForm {
    /// One SQLite file, and a file [`METADATA`](super::METADATA) beside it.
    #[default]
    Sqlite,
    /// A directory with a Parquet file for each view, if the library was built with the feature `parquet`.
    Parquet,
}

/// Options for saving.
#[derive(Clone, Copy, Debug)]
pub struct SaveOptions<'p> {
    /// The path of the file or directory.
    pub path: &'p Path,
    /// The form.
    pub form: SaveForm,
    /// Whether existing files are replaced. Of a directory, only one that contains nothing but Parquet files.
    pub force: bool,
}

/// Writes all views that queries can use as tables, readable by their owner only: completely or not at all. Each table has
/// a key; tables of artifacts have a title. `watch` is called after each row, and can interrupt it.
///
/// An existing [`METADATA`](super::METADATA) that describes other databases is extended.
///
/// # Errors
/// Returns [`SqlError::Exists`] if a file exists and may not be replaced, [`SqlError::Interrupted`] if `watch`
/// interrupted it, [`SqlError::Unsupported`] if this build does not have the form, and another [`SqlError`] otherwise.
pub fn save(
    reader: &dyn SqlReader,
    options: &SaveOptions<'_>,
    watch: &mut RowProgress<'_>,
) -> Result<SaveSummary, SqlError> {
    let tables = saved_tables(reader.views());
    let write =
        WriteOptions { replace: options.force, vault: Some(reader.vault_path()), ..WriteOptions::default() };
    match options.form {
        SaveForm::Sqlite => {
            // Before the work begins.
            let metadata = DatasetteMetadata::new(options.path, &tables, &write)?;
            let saved = reader.write_file(&tables, options.path, options.force, watch)?;
            metadata.write(&write)?;
            Ok(saved)
        }
        #[cfg(feature = "parquet")]
        SaveForm::Parquet => super::parquet::write(reader, &tables, options.path, &write, watch),
        #[cfg(not(feature = "parquet"))]
        SaveForm::Parquet => Err(SqlError::Unsupported(
            "this build cannot write Parquet: it lacks the feature parquet".to_owned(),
        )),
    }
}

impl From<FileWriteError> for SqlError {
    fn from(error: FileWriteError) -> Self {
        match error {
            FileWriteError::Exists { path } => Self::Exists { path },
            FileWriteError::Refused { path, reason } => Self::Place { path, reason },
            FileWriteError::Io { path, source } => StorageError::io(&path, source).into(),
        }
    }
}
