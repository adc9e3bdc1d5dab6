//! Descriptions of a saved file for Datasette: <https://docs.datasette.io/en/stable/metadata.html>.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{TITLE, saved_tables};
use crate::artifact::Column;
use crate::files::{self, FileWriteError, WriteOptions};
use crate::storage::{RowProgress, SaveSummary, SavedTable, SqlError, SqlReader};

/// The name of the file, beside a saved SQLite file.
pub const METADATA: &str = "metadata.json";

/// Maximum size of an existing file that is extended. A larger one is not Datasette's.
const MAX_BYTES: u64 = 16 << 20;

/// The content of a metadata file.
struct DatasetteMetadata {
    path: PathBuf,
    text: String,
    /// Whether it contains everything that an existing file has.
    is_extended: bool,
}

impl DatasetteMetadata {
    /// Describes `tables` of the database that will be at `database`, in addition to what a metadata file beside it
    /// describes.
    pub(super) fn new(
        database: &Path,
        tables: &[SavedTable],
        options: &WriteOptions<'_>,
    ) -> Result<Self, SqlError> {
        let path = database.with_file_name(METADATA);
        // Datasette names databases so.
        let name = database.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let described = json!({ "tables": tables.iter().map(described).collect::<Map<_, _>>() });
        let extended = existing(&path).and_then(|root| extended(root, &name, &described, options.replace));
        let is_extended = extended.is_some();
        let replaced = || json!({ "databases": { name: described } });
        let root = extended.unwrap_or_else(replaced);
        let metadata = Self { path, text: format!("{root:#}\n"), is_extended };
        files::check_target(&metadata.path, &metadata.options(options))?;
        Ok(metadata)
    }

    /// Writes the file.
    pub(super) fn write(&self, options: &WriteOptions<'_>) -> Result<(), FileWriteError> {
        files::write(&self.path, &self.options(options), self.text.as_bytes())
    }

    fn options<'v>(&self, options: &WriteOptions<'v>) -> WriteOptions<'v> {
        WriteOptions { replace: options.replace || self.is_extended, ..*options }
    }
}

/// Returns the content of an existing metadata file that can be extended.
fn existing(path: &Path) -> Option<Value> {
    fs::metadata(path).ok().filter(|file| file.is_file() && file.len() <= MAX_BYTES)?;
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Adds what is `described` of the database `name` to existing metadata. Returns `None` if it is not Datasette's, or has
/// something else about this database and must not be changed.
fn extended(mut root: Value, name: &str, described: &Value, may_replace: bool) -> Option<Value> {
    let databases = root.get_mut("databases")?.as_object_mut()?;
    if databases.get(name).is_some_and(|old| old != described) && !may_replace {
        return None;
    }
    databases.insert(name.to_owned(), described.clone());
    Some(root)
}

fn described(table: &SavedTable) -> (String, Value) {
    let names = |is_meant: fn(&Column) -> bool| -> Vec<&str> {
        table.columns.iter().filter(|column| is_meant(column)).map(|column| column.name).collect()
    };
    let about = table.columns.iter().map(|column| (column.name.to_owned(), plain(column.about).into()));
    let mut object = Map::new();
    object.insert("description".to_owned(), plain(table.about).into());
    object.insert("columns".to_owned(), about.collect::<Map<_, _>>().into());
    if table.columns.iter().any(|column| column.name == TITLE) {
        object.insert("label_column".to_owned(), TITLE.into());
    }
    let facets = names(|column| column.is_facet);
    if !facets.is_empty() {
        object.insert("facets".to_owned(), facets.into());
    }
    (table.name.to_owned(), object.into())
}

/// Returns a description without its marks of code, which Datasette does not know.
fn plain(about: &str) -> String {
    about.replace('`', "")
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_other_databases_is_kept() {
        let root = || json!({ "title": "ours", "databases": { "other": { "source": "us" } } });
        let described = json!({ "tables": {} });
        let both = extended(root(), "saved", &described, false).unwrap();
        assert_eq!(both["title"], "ours");
        assert_eq!(both["databases"]["other"]["source"], "us");
        assert_eq!(both["databases"]["saved"], described);
        // Once it is there, it stays the same.
        assert_eq!(extended(both.clone(), "saved", &described, false), Some(both));
    }

    #[test]
    fn changed_metadata_is_replaced_only_if_allowed() {
        let described = json!({ "tables": {} });
        let changed = || json!({ "databases": { "saved": { "source": "us" } } });
        assert_eq!(extended(changed(), "saved", &described, false), None);
        assert_eq!(
            extended(changed(), "saved", &described, true),
            Some(json!({ "databases": { "saved": described } }))
        );
        for other in [json!([1]), json!({ "name": "a package" }), json!({ "databases": [] })] {
            assert_eq!(extended(other, "saved", &described, true), None);
        }
    }
}
