//! Keys for checking signatures: their sources and how they are read. No message contains a key or a part of one.
//! `docs/signatures.md` describes the files.

mod ring;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use runvault::artifact::{KeyError, KeyRing, SigningKey};

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
            KeySource::Variable(text) => add(&mut ring, &text, KEY_VARIABLE, None)?,
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
    let is_directory = fs::metadata(path).map_err(|error| unreadable(path, &error))?.is_dir();
    if is_directory {
        return read_directory(ring, path);
    }
    let text = read_file(path, &mut MAX_BYTES.clone())?;
    add(ring, &text, &path.display().to_string(), None)
}

/// Reads a directory in which every file is a key. Hidden files are skipped: systems that mount secrets keep their own
/// links there.
fn read_directory(ring: &mut KeyRing, path: &Path) -> Result<(), CommandError> {
    let failed = |error: &io::Error| unreadable(path, error);
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
        if !fs::metadata(&file).map_err(|error| unreadable(&file, &error))?.is_file() {
            return Err(unreadable(&file, &io::Error::other("it is not a file")));
        }
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| unreadable(&file, &io::Error::other("its name is not UTF-8")))?;
        let text = read_file(&file, &mut left)?;
        let id = name.strip_suffix(ENDING).unwrap_or(name);
        add(ring, &text, &file.display().to_string(), Some(id))?;
    }
    Ok(())
}

/// Returns the text of a file or a pipe, which must not exceed `left` bytes; its size is subtracted from `left`.
fn read_file(path: &Path, left: &mut u64) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(*left + 1).read_to_end(&mut bytes));
    let length = read.map_err(|error| unreadable(path, &error))? as u64;
    *left = left.checked_sub(length).ok_or_else(|| {
        let what = if *left == MAX_BYTES { "it has" } else { "it and the keys before it have" };
        unreadable(path, &io::Error::other(format!("{what} more than {MAX_BYTES} bytes")))
    })?;
    // The error would contain the bytes.
    String::from_utf8(bytes).map_err(|_| unreadable(path, &io::Error::other("it is not valid UTF-8")))
}

/// Adds the key in `text`, with an id if it has one, or the keys of the key ring in it.
fn add(ring: &mut KeyRing, text: &str, origin: &str, id: Option<&str>) -> Result<(), CommandError> {
    if ring::is_ring(text) {
        return ring::add(ring, text).map_err(|why| CommandError::Usage(format!("{origin} {why}")));
    }
    let key = SigningKey::new(text).and_then(|key| ring.add(id, key));
    key.map_err(|error: KeyError| CommandError::Usage(format!("{origin}: {error}")))
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::CouldNotRun(format!("cannot read the signing key {}: {error}", path.display()))
}
