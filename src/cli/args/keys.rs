//! Keys for checking signatures: their sources and how they are read. No message contains a key or a part of one.
//! `docs/signatures.md` describes the files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use runvault::artifact::{KeyError, KeyRing, SigningKey};
use toml_edit::{Document, Item, Key};

use crate::cli::args::settings;
use crate::cli::output::exit::CommandError;

/// Which keys signatures are checked with.
#[derive(Args)]
pub(crate) struct KeyArgs {
    /// Check run pack signatures with the keys in this file or directory; may be given several times. A file holds a
    /// key or, if it begins with [keys], a key ring with lines like `KEY_ID = "key"`; in a directory, the name of a
    /// file is the id of its key. Default: the key in `RUNVAULT_SIGNING_KEY`, else the setting signing-key-file
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    signing_key_file: Vec<PathBuf>,
}

/// The variable that contains a key, or a key ring.
const KEY_VARIABLE: &str = "RUNVAULT_SIGNING_KEY";

/// Maximum bytes read from one path.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of files in a directory of keys.
const MAX_FILES: usize = 10_000;

/// The extension of a key file in a directory that is not part of the key's id.
const ENDING: &str = ".key";

impl KeyArgs {
    /// Returns the keys; none if no source is given.
    pub(crate) fn ring(&self) -> Result<KeyRing, CommandError> {
        let mut ring = KeyRing::default();
        match self.source()? {
            KeySource::Variable(text) => add_keys(&mut ring, &text, KEY_VARIABLE, None)?,
            KeySource::Paths(paths) => paths.iter().try_for_each(|path| read_path(&mut ring, path))?,
        }
        Ok(ring)
    }

    /// Returns the source: the argument takes precedence over the variable with the key, and that over the setting.
    fn source(&self) -> Result<KeySource, CommandError> {
        if !self.signing_key_file.is_empty() {
            return Ok(KeySource::Paths(self.signing_key_file.clone()));
        }
        match std::env::var(KEY_VARIABLE) {
            // Many systems pass an unset secret as an empty variable.
            Ok(text) if text.is_empty() => {}
            Ok(text) => return Ok(KeySource::Variable(text)),
            Err(std::env::VarError::NotPresent) => {}
            // The error would contain the key.
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(CommandError::Usage(format!("{KEY_VARIABLE} is not valid UTF-8")));
            }
        }
        Ok(KeySource::Paths(settings::SIGNING_KEY_FILE.get_paths()?))
    }
}

/// The source of keys.
enum KeySource {
    Variable(String),
    Paths(Vec<PathBuf>),
}

fn read_path(ring: &mut KeyRing, path: &Path) -> Result<(), CommandError> {
    let is_directory = fs::metadata(path).map_err(|error| unreadable_key(path, &error))?.is_dir();
    if is_directory {
        return read_directory(ring, path);
    }
    let text = read_file(path, &mut MAX_BYTES.clone())?;
    add_keys(ring, &text, &path.display().to_string(), None)
}

/// Reads a directory in which every file is a key. Hidden files are skipped: systems that mount secrets keep their own
/// links there.
fn read_directory(ring: &mut KeyRing, path: &Path) -> Result<(), CommandError> {
    let failed = |error: &io::Error| unreadable_key(path, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| failed(&error))? {
        let file = entry.map_err(|error| failed(&error))?.path();
        let name = file.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if files.len() == MAX_FILES {
            return Err(failed(&io::Error::other(format!("it has more than {MAX_FILES} files"))));
        }
        files.push(file);
    }
    if files.is_empty() {
        return Err(CommandError::Usage(format!("{}: the directory has no keys", path.display())));
    }
    files.sort_unstable();
    let mut left = MAX_BYTES;
    for file in files {
        if !fs::metadata(&file).map_err(|error| unreadable_key(&file, &error))?.is_file() {
            return Err(unreadable_key(&file, &io::Error::other("it is not a file")));
        }
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| unreadable_key(&file, &io::Error::other("its name is not UTF-8")))?;
        let text = read_file(&file, &mut left)?;
        let id = name.strip_suffix(ENDING).unwrap_or(name);
        add_keys(ring, &text, &file.display().to_string(), Some(id))?;
    }
    Ok(())
}

/// Returns the text of a file or a pipe, which must not exceed `left` bytes; its size is subtracted from `left`.
fn read_file(path: &Path, left: &mut u64) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(*left + 1).read_to_end(&mut bytes));
    let length = read.map_err(|error| unreadable_key(path, &error))? as u64;
    *left = left.checked_sub(length).ok_or_else(|| {
        let what = if *left == MAX_BYTES { "it has" } else { "it and the keys before it have" };
        unreadable_key(path, &io::Error::other(format!("{what} more than {MAX_BYTES} bytes")))
    })?;
    // The error would contain the bytes.
    String::from_utf8(bytes).map_err(|_| unreadable_key(path, &io::Error::other("it is not valid UTF-8")))
}

/// Adds the key in `text`, with an id if it has one, or the keys of the key ring in it.
fn add_keys(ring: &mut KeyRing, text: &str, origin: &str, id: Option<&str>) -> Result<(), CommandError> {
    if is_ring(text) {
        return add_key_ring(ring, text).map_err(|why| CommandError::Usage(format!("{origin} {why}")));
    }
    let key = SigningKey::new(text).and_then(|key| ring.add(id, key));
    key.map_err(|error: KeyError| CommandError::Usage(format!("{origin}: {error}")))
}

fn unreadable_key(path: &Path, error: &io::Error) -> CommandError {
    CommandError::CouldNotRun(format!("cannot read the signing key {}: {error}", path.display()))
}

const TABLE: &str = "keys";

/// Returns whether a text is a key ring rather than a key: its first line that is neither empty nor a comment is
/// `[keys]`.
fn is_ring(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next() == Some("[keys]")
}

/// Adds the keys of a key ring. Error messages contain the line number but no contents.
fn add_key_ring(ring: &mut KeyRing, text: &str) -> Result<(), String> {
    let document = Document::parse(text).map_err(|error| {
        key_ring_error(
            text,
            error.span(),
            "invalid TOML or duplicate id; a key ring has lines like KEY_ID = \"key\"",
        )
    })?;
    let mut count = 0;
    for (name, item) in document.iter() {
        let at = document.as_table().key(name).and_then(Key::span);
        let Some(table) = item.as_table().filter(|_| name == TABLE) else {
            return Err(key_ring_error(text, at, "a key ring can only have the table [keys]"));
        };
        for (id, item) in table {
            let at = table.key(id).and_then(Key::span);
            let key = item.as_str().ok_or_else(|| {
                let what = if matches!(item, Item::Table(_)) { "quote an id with dots: " } else { "" };
                key_ring_error(text, at.clone(), &format!("{what}a key ring has lines like KEY_ID = \"key\""))
            })?;
            let added = SigningKey::new(key).and_then(|key| ring.add(Some(id), key));
            added.map_err(|error| key_ring_error(text, at, &error.to_string()))?;
            count += 1;
        }
    }
    if count == 0 { Err(key_ring_error(text, None, "the key ring has no keys")) } else { Ok(()) }
}

fn key_ring_error(text: &str, at: Option<std::ops::Range<usize>>, what: &str) -> String {
    let before = at.and_then(|at| text.get(..at.start)).unwrap_or_default();
    format!("line {}: {what}", before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use runvault::artifact::KeyRing;

    fn ring(text: &str) -> Result<KeyRing, String> {
        let mut ring = KeyRing::default();
        add_key_ring(&mut ring, text).map(|()| ring)
    }

    #[test]
    fn a_key_ring_begins_with_its_table() {
        assert!(is_ring("[keys]\nci = 'a'"));
        assert!(is_ring("\n# of the team\n  [keys] \n"));
        for key in ["", "secret", "a = \"b\"", "[key]\nci = 'a'", "secret\n[keys]\n", "[keys]x"] {
            assert!(!is_ring(key), "{key}");
        }
    }

    #[test]
    fn ids_may_be_quoted() {
        let ring = ring("# ours\n[keys]\nci-2026 = \"a\"\n\"team/laptop 1.5\" = 'b\"c'\n").unwrap();
        assert!(ring.has_key_for("ci-2026") && ring.has_key_for("team/laptop 1.5"));
        assert!(!ring.has_key_for("other"));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line_and_never_quoted() {
        for (text, why) in [
            ("[keys]\nci = s3cret\n", "line 2: invalid TOML"),
            ("[keys]\nci = 's3cret'\nci = 's3cret'\n", "invalid TOML or duplicate id"),
            ("[keys]\n\nci = 5\n", "line 3: a key ring has lines like"),
            ("[keys]\na.b = 's3cret'\n", "a key ring has lines like"),
            ("[keys]\nci = ['s3cret']\n", "line 2: a key ring has lines like"),
            ("[keys]\nci = ' '\n", "line 2: the signing key is empty"),
            ("[keys]\n'' = 's3cret'\n", "line 2: a key id must have"),
            ("[keys]\n[s3cret]\na = 's3cret'\n", "line 2: a key ring can only have"),
            ("[keys]\n# nothing\n", "line 1: the key ring has no keys"),
        ] {
            let error = ring(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("s3cret"), "{text}: {error}");
        }
        let long = format!("[keys]\nci = '{}'\n", "k".repeat(9000));
        assert_eq!(ring(&long).unwrap_err(), "line 2: the signing key has more than 8192 bytes");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail_or_tell(text in "\\[keys\\]\n(([a-z]|'|\"|=| |\n|\\.|\\[|\\]|s3cret){0,40}\n){0,4}") {
            if let Err(error) = ring(&text) {
                prop_assert!(!error.contains("s3cret"), "{}", error);
            }
        }

        #[test]
        fn every_id_and_key_can_be_written(id in "\\PC{1,40}", key in "\\PC{0,40}[a-z]") {
            let mut document = toml_edit::DocumentMut::new();
            document[TABLE] = toml_edit::table();
            document[TABLE][&id] = toml_edit::value(&key);
            let text = document.to_string();
            prop_assert!(is_ring(&text), "{}", text);
            prop_assert!(ring(&text).unwrap().has_key_for(&id));
        }
    }
}
