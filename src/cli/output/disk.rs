//! Atomic writing of artifacts to files and directories, which overwrites only on request.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use runvault::Vault;
use runvault::artifact::Kind;
use runvault::display::escaped;
use runvault::files::{self, FileWriteError, Permissions, StagedFile, WriteOptions};
use runvault::intake::archive::{self, ArchiveFormat};
use runvault::storage::StoredMember;

use crate::cli::output::exit::CommandError;

/// Permissions of written files.
#[derive(Args, Clone, Copy)]
pub(crate) struct ModeArgs {
    /// Permissions of written files in octal, such as 0644, regardless of the umask. Default: 0600, further restricted
    /// by the umask
    #[arg(long, value_name = "MODE", value_parser = parse_mode, hide_short_help = true)]
    mode: Option<u32>,
}

impl ModeArgs {
    /// Returns the options for writing a file without overwriting the vault at `vault`.
    pub(crate) fn options(self, force: bool, vault: &Path) -> WriteOptions<'_> {
        let permissions = self.mode.map_or(Permissions::Owner, Permissions::Exactly);
        WriteOptions { replace: force, permissions, vault: Some(vault) }
    }
}

fn parse_mode(text: &str) -> Result<u32, String> {
    let is_octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = is_octal.then(|| u32::from_str_radix(text, 8).ok()).flatten();
    mode.filter(|mode| *mode <= 0o777).ok_or_else(|| "a mode is an octal number up to 0777".to_owned())
}

impl From<FileWriteError> for CommandError {
    fn from(error: FileWriteError) -> Self {
        let hint = match error {
            FileWriteError::Exists { .. } => "; use --force to overwrite it",
            FileWriteError::Refused { .. } | FileWriteError::Io { .. } => "",
        };
        Self::CouldNotRun(format!("{error}{hint}"))
    }
}

/// Returns an error for the address of a database, and a usage error for the name by which other commands mean standard
/// output.
pub(crate) fn expect_file(path: &Path) -> Result<(), CommandError> {
    if path != Path::new("-") {
        return expect_path(path);
    }
    Err(CommandError::Usage(
        "this is written to a file, not to standard output; ./- is a file named -".to_owned(),
    ))
}

/// Returns an error for the address of a database, which may contain a password.
pub(crate) fn expect_path(path: &Path) -> Result<(), CommandError> {
    if Vault::file_of(path).is_some() {
        return Ok(());
    }
    Err(CommandError::CouldNotRun(format!(
        "{}: expected a path, but this is the address of a database, or resembles one",
        escaped(&Vault::shown_address(path).to_string_lossy())
    )))
}

/// Endings of the names of archives that are not written.
const OTHER_ARCHIVES: [&str; 10] = ["7z", "bz2", "gz", "lz4", "rar", "tbz2", "txz", "xz", "zst", "br"];

fn failed(path: &Path) -> impl Fn(io::Error) -> CommandError {
    let path = path.to_owned();
    move |source| FileWriteError::Io { path: path.clone(), source }.into()
}

/// Writes the output of `write` to the file `path`, if `write` succeeds.
pub(crate) fn write_with<T>(
    path: &Path,
    options: &WriteOptions<'_>,
    write: impl FnOnce(&mut dyn Write) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let mut file = StagedFile::create(path, options)?;
    let written = write(&mut file)?;
    file.commit()?;
    Ok(written)
}

/// Writes the files of an artifact to `path`: as an archive if the file name is that of one, otherwise as a directory.
pub(crate) fn write_files(
    path: &Path,
    kind: Option<Kind>,
    members: &[StoredMember],
    options: &WriteOptions<'_>,
) -> Result<(), CommandError> {
    let allowed = kind.map(Kind::members).unwrap_or_default();
    // The kind's own member names decide which files are written, whatever the database contains.
    if let Some(other) = members.iter().find(|member| !allowed.contains(&member.name.as_str())) {
        let message = format!("the artifact has an unexpected member {:?}", other.name);
        return Err(CommandError::CouldNotRun(message));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(format) = ArchiveFormat::named(&name) else {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if OTHER_ARCHIVES.contains(&ending.as_str()) {
            let message = format!(
                "{name}: archives are written as .zip, .tar, .tar.gz, .tgz, .tar.zst or .tzst; a name without such an \
                 ending is that of a directory"
            );
            return Err(CommandError::Usage(message));
        }
        return write_directory(path, allowed, members, options);
    };
    let mut packed = Vec::new();
    archive::write(format, &StoredMember::borrowed(members), &mut packed).map_err(failed(path))?;
    Ok(files::write(path, options, &packed)?)
}

fn write_directory(
    path: &Path,
    allowed: &[&str],
    members: &[StoredMember],
    options: &WriteOptions<'_>,
) -> Result<(), CommandError> {
    // Without a trailing slash, which would make the system follow a link.
    let path: &Path = &path.components().collect::<PathBuf>();
    if options.replace && fs::symlink_metadata(path).is_ok_and(|there| there.is_dir()) {
        check_replaceable(path, allowed)?;
    }
    let members = members.iter().map(|member| (member.name.as_str(), member.bytes.as_slice()));
    Ok(files::write_directory(path, options, members)?)
}

/// Returns an error if a directory contains anything other than the files of an artifact.
fn check_replaceable(path: &Path, allowed: &[&str]) -> Result<(), CommandError> {
    for entry in fs::read_dir(path).map_err(failed(path))? {
        let entry = entry.map_err(failed(path))?;
        let file_type = entry.file_type().map_err(failed(path))?;
        let name = entry.file_name();
        let is_member = name.to_str().is_some_and(|name| allowed.contains(&name));
        if !is_member || !(file_type.is_file() || file_type.is_symlink()) {
            let name = name.to_string_lossy();
            let reason = format!(
                "it contains {name}, which is not a file of an artifact; remove it, or choose another"
            );
            return Err(FileWriteError::Refused { path: path.to_owned(), reason }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse_mode;

    #[test]
    fn modes_are_octal() {
        for (text, expected) in
            [("0644", Some(0o644)), ("600", Some(0o600)), ("0", Some(0)), ("777", Some(0o777))]
        {
            assert_eq!(parse_mode(text).ok(), expected, "{text}");
        }
        for text in ["", "8", "0o644", "+644", "-1", "1777", "rw", "0644 ", "77777777777"] {
            assert!(parse_mode(text).is_err(), "{text}");
        }
    }
}
