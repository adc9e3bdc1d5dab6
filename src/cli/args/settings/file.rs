//! The configuration file: its path, contents and changes.

use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use runvault::files::{self, FileWriteError, WriteOptions};
use toml_edit::{Document, DocumentMut, Item, TomlError};

use super::list::{SettingType, named};
use crate::cli::args::environment::variable;
use crate::cli::output::exit::CommandError;

/// Maximum size of the file, larger than any plausible configuration.
const MOST_BYTES: u64 = 64 << 10;

/// Returns the path of the configuration file, which need not exist.
pub(crate) fn path() -> Result<PathBuf, CommandError> {
    if let Some(path) = variable("RUNVAULT_CONFIG") {
        return Ok(path.into());
    }
    let directories = etcetera::choose_base_strategy().map_err(|error| {
        CommandError::CouldNotRun(format!(
            "cannot determine the user's configuration directory ({error}); set RUNVAULT_CONFIG to a file"
        ))
    })?;
    Ok(directories.config_dir().join("runvault").join("config.toml"))
}

/// A line of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigLocation {
    pub(crate) path: PathBuf,
    pub(crate) line: usize,
}

impl Display for ConfigLocation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.path.display(), self.line)
    }
}

/// The reason that a configuration file cannot be used.
#[derive(Clone, Debug)]
pub(crate) enum ConfigFileError {
    /// It cannot be read.
    Unreadable(String),
    /// It has invalid contents.
    Wrong(String),
}

impl From<ConfigFileError> for CommandError {
    fn from(error: ConfigFileError) -> Self {
        match error {
            ConfigFileError::Unreadable(message) => Self::CouldNotRun(message),
            ConfigFileError::Wrong(message) => Self::Usage(message),
        }
    }
}

/// The contents of a configuration file.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    /// The names in it with their values and line numbers.
    values: Vec<(String, String, usize)>,
}

impl ConfigFile {
    /// Reads the file at `path`. A missing file is empty.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let text = match text_of(path) {
            Ok(text) => text,
            Err(error) => return Err(cannot_read(path, &error)),
        };
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ConfigFileError> {
        let document = Document::parse(text).map_err(|error| broken(path, text, &error))?;
        let mut values = Vec::new();
        for (name, item) in document.iter() {
            let key = document.as_table().key(name);
            let line = line_of(text, key.and_then(toml_edit::Key::span));
            let known = named(name);
            let is_list = known.is_some_and(|known| known.entry().values == SettingType::List);
            let value = match (if is_list { elements(item) } else { written(item) }, known) {
                (Some(value), _) => value,
                // A newer runvault may know it.
                (None, None) => String::new(),
                (None, Some(_)) => {
                    let place = ConfigLocation { path: path.to_owned(), line };
                    let expected = if is_list {
                        "a string or an array of strings without line breaks"
                    } else {
                        "a string, a whole number or a boolean"
                    };
                    let message = format!(
                        "{place}: {name} is not {expected}; \
                         \"runvault config set {name} VALUE\" corrects it"
                    );
                    return Err(ConfigFileError::Wrong(message));
                }
            };
            values.push((name.to_owned(), value, line));
        }
        Ok(Self { path: path.to_owned(), values })
    }

    /// Returns the value of the setting `name`, and its location.
    pub(crate) fn value(&self, name: &str) -> Option<(String, ConfigLocation)> {
        let (_, value, line) = self.values.iter().find(|(known, ..)| known == name)?;
        Some((value.clone(), ConfigLocation { path: self.path.clone(), line: *line }))
    }

    /// Returns the names in it that are not settings of this program.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, ConfigLocation)> {
        let unknown = self.values.iter().filter(|(name, ..)| named(name).is_none());
        unknown
            .map(|(name, _, line)| (name.as_str(), ConfigLocation { path: self.path.clone(), line: *line }))
    }
}

/// Returns the contents of the file at `path`; empty if it does not exist. Every command and every completion reads it,
/// so it must not take long or block on a pipe.
fn text_of(path: &Path) -> io::Result<String> {
    let too_large = || io::Error::other(format!("it has more than {MOST_BYTES} bytes"));
    let read = || {
        if is_pipe(fs::metadata(path)?.file_type()) {
            return Err(io::Error::other("it is a pipe, not a file"));
        }
        let mut text = String::new();
        fs::File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MOST_BYTES { Err(too_large()) } else { Ok(text) }
    };
    match read() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

#[cfg(unix)]
fn is_pipe(file: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    file.is_fifo() || file.is_socket()
}

#[cfg(not(unix))]
fn is_pipe(_: fs::FileType) -> bool {
    false
}

/// Sets the value of `name` in the file at `path`, or removes it; returns false if it had none. Comments and the order
/// of the other settings are kept.
///
/// The files of `vault` are never written.
pub(crate) fn edit(
    path: &Path,
    name: &str,
    value: Option<&str>,
    vault: Option<&Path>,
) -> Result<bool, CommandError> {
    let target = writable(path)?;
    let text = text_of(&target).map_err(|error| cannot_read(path, &error))?;
    let (changed, had) = changed(&text, name, value).map_err(|error| broken(path, &text, &error))?;
    if value.is_some() || had {
        replace(&target, changed.as_bytes(), vault).map_err(|error| cannot_write(path, &error))?;
    }
    Ok(had)
}

/// Returns the text of a file with the value of `name` set or removed, and whether it had one.
fn changed(text: &str, name: &str, value: Option<&str>) -> Result<(String, bool), TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let had = document.contains_key(name);
    match value {
        Some(value) => set(&mut document, name, value),
        None => drop(document.remove(name)),
    }
    Ok((document.to_string(), had))
}

/// Sets a value; a number is written as a number. Text next to the value, such as a comment, is kept.
fn set(document: &mut DocumentMut, name: &str, value: &str) {
    let number = value.parse::<i64>().ok().filter(|number| number.to_string() == value);
    let is_list = named(name).is_some_and(|known| known.entry().values == SettingType::List);
    let mut new = match number {
        _ if is_list => toml_edit::Value::from(value.lines().collect::<toml_edit::Array>()),
        Some(number) => toml_edit::Value::from(number),
        None => toml_edit::Value::from(value),
    };
    match document.get_mut(name).and_then(Item::as_value_mut) {
        Some(old) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        None => drop(document.insert(name, Item::Value(new))),
    }
}

/// Returns the file to write, with symbolic links resolved, because configuration files are often links to a
/// repository.
fn writable(path: &Path) -> Result<PathBuf, CommandError> {
    match fs::canonicalize(path) {
        Ok(target) if target.is_file() => Ok(target),
        Ok(_) => {
            let message = format!("{} is not a file; set RUNVAULT_CONFIG to another one", path.display());
            Err(CommandError::CouldNotRun(message))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(match fs::read_link(path) {
            Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => path.to_owned(),
        }),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

/// Replaces the file atomically, also across a power loss: readers see the old or the new content. Only its owner can
/// read it, because it says who may see what.
fn replace(path: &Path, text: &[u8], vault: Option<&Path>) -> io::Result<()> {
    let options = WriteOptions { replace: true, vault, ..WriteOptions::default() };
    let directory = path.parent().unwrap_or(Path::new(""));
    files::create_dir_all(directory)?;
    files::write(path, &options, text).map_err(|error| match error {
        FileWriteError::Io { source, .. } => source,
        FileWriteError::Refused { reason, .. } => io::Error::other(reason),
        FileWriteError::Exists { .. } => ErrorKind::AlreadyExists.into(),
    })
}

fn cannot_read(path: &Path, error: &io::Error) -> ConfigFileError {
    let path = path.display();
    let why = match error.kind() {
        ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    };
    ConfigFileError::Unreadable(format!(
        "cannot read the configuration {path}: {why}; set RUNVAULT_CONFIG to use another file"
    ))
}

fn cannot_write(path: &Path, error: &io::Error) -> CommandError {
    let path = path.display();
    CommandError::CouldNotRun(format!(
        "cannot write the configuration {path}: {}; check the permissions of its directory, or name another \
         file with RUNVAULT_CONFIG",
        files::describe(error)
    ))
}

fn broken(path: &Path, text: &str, error: &TomlError) -> ConfigFileError {
    let place = ConfigLocation { path: path.to_owned(), line: line_of(text, error.span()) };
    let what = error.message().lines().collect::<Vec<_>>().join(", ");
    ConfigFileError::Wrong(format!(
        "{place}: invalid TOML: {what}; correct the line, such as max-size = \"512M\", or name another file with \
         RUNVAULT_CONFIG"
    ))
}

fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// Formats a value as it would be given to `config set`.
fn written(item: &Item) -> Option<String> {
    let text = item.as_str().map(str::to_owned);
    let number = || item.as_integer().map(|number| number.to_string());
    let switch = || item.as_bool().map(|on| if on { "on" } else { "off" }.to_owned());
    text.or_else(number).or_else(switch)
}

/// Returns the elements of a list, one on each line; `None` if they are not strings of one line.
fn elements(item: &Item) -> Option<String> {
    let Some(array) = item.as_array() else { return written(item) };
    let elements: Option<Vec<&str>> = array.iter().map(toml_edit::Value::as_str).collect();
    let elements = elements?;
    let is_line = |element: &&str| !element.contains(['\n', '\r']);
    elements.iter().all(is_line).then(|| elements.join("\n"))
}

/// Resolves a path in the file at `file`: `~/` is the home directory, and relative paths are relative to the file's
/// directory, because the current directory can be any.
pub(super) fn absolute(text: &str, file: &Path) -> OsString {
    if let Some(path) = at_home(text) {
        return path.into();
    }
    let directory = file.parent().unwrap_or(Path::new(""));
    directory.join(text).into()
}

/// Expands a path that starts with `~/`.
pub(crate) fn at_home(text: &str) -> Option<PathBuf> {
    let rest = text.strip_prefix("~/")?;
    Some(etcetera::home_dir().ok()?.join(rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read(value in any::<String>(), other in any::<i64>()) {
            let before = format!("# mine\nmax-depth = {other} # levels\n");
            let (text, had) = changed(&before, "actor", Some(&value)).unwrap();
            prop_assert!(!had && text.starts_with(&before));
            let read = parsed(&text).ok().and_then(|file| file.value("actor"));
            prop_assert_eq!(read.map(|(value, _)| value), Some(value));
            prop_assert_eq!(changed(&text, "actor", None).unwrap(), (before, true));
        }

        #[test]
        fn no_file_can_hurt(text in any::<String>()) {
            let _ = parsed(&text);
            let _ = changed(&text, "actor", Some("a"));
        }
    }

    fn parsed(text: &str) -> Result<ConfigFile, ConfigFileError> {
        ConfigFile::parse(Path::new("/c/config.toml"), text)
    }

    fn message(text: &str) -> String {
        CommandError::from(parsed(text).unwrap_err()).to_string()
    }

    #[test]
    fn values_are_read_as_they_would_be_set() {
        let file = parsed("# mine\nmax-depth = 200\nsearch = true\n\n\"vault\" = '/v' # here\n").unwrap();
        let value = |name: &str| file.value(name).map(|(text, place)| (text, place.line));
        assert_eq!(value("max-depth"), Some(("200".to_owned(), 2)));
        assert_eq!(value("search"), Some(("on".to_owned(), 3)));
        assert_eq!(value("vault"), Some(("/v".to_owned(), 5)));
        assert_eq!(value("actor"), None);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert!(message("max-depth = 1\nmax-size 3\n").starts_with("/c/config.toml line 2: invalid TOML: "));
        assert!(message("max-depth = 1\nmax-depth = 2\n").starts_with("/c/config.toml line 2: "));
        assert!(
            message("\nmax-depth = [1]\n").starts_with("/c/config.toml line 2: max-depth is not a string")
        );
        assert!(message("max-depth = 1.5").contains("is not a string"));
        let strange = parsed("vualt = 1\n[later]\nx = 1\n").unwrap();
        let unknown: Vec<(&str, usize)> = strange.unknown().map(|(name, place)| (name, place.line)).collect();
        assert_eq!(unknown, [("vualt", 1), ("later", 2)]);
    }

    #[test]
    fn what_stands_beside_a_value_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/config.toml");
        assert!(!edit(&path, "max-depth", Some("7"), None).unwrap());
        let text = "# first\n  max-depth = 7 # levels\n\n# last\nactor = \"me\"\n[later]\nx = 1\n";
        fs::write(&path, text).unwrap();
        assert!(edit(&path, "max-depth", Some("9"), None).unwrap());
        assert!(!edit(&path, "search", Some("on"), None).unwrap());
        assert!(edit(&path, "actor", None, None).unwrap());
        assert!(!edit(&path, "actor", None, None).unwrap());
        let expected = "# first\n  max-depth = 9 # levels\nsearch = \"on\"\n[later]\nx = 1\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn paths_do_not_depend_on_where_runvault_is_called() {
        let file = Path::new("/etc/rv/config.toml");
        assert_eq!(absolute("a.vault", file), "/etc/rv/a.vault");
        assert_eq!(absolute("/a.vault", file), "/a.vault");
        let home = etcetera::home_dir().unwrap();
        assert_eq!(PathBuf::from(absolute("~/a", file)), home.join("a"));
    }
}
