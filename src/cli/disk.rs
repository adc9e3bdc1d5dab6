//! Writing artifacts to the disk: whole or not at all, and never over anything unless it is wanted.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use runvault::Located;
use runvault::archive::{self, Format};
use runvault::artifact::Kind;
use runvault::kinds;
use runvault::store::StoredMember;

use super::exit::Failure;

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::CouldNotRun(format!("cannot write {}: {error}", path.display()))
}

fn exists(path: &Path) -> Failure {
    Failure::CouldNotRun(format!(
        "cannot write {}: it exists already; use --force to overwrite it",
        path.display()
    ))
}

/// The directory that `path` is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes `bytes` to the file `path`. A link there could lead anywhere, so it is replaced, not followed.
pub(crate) fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    write_with(path, force, |out| out.write_all(bytes).map_err(failed(path)))
}

/// Writes to the file `path` what `write` writes, if that succeeds.
pub(crate) fn write_with<T>(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = failed(path);
    let existing = fs::symlink_metadata(path).ok();
    match &existing {
        Some(existing) if !existing.is_file() && !existing.is_symlink() => {
            return Err(failed(io::Error::other("it is there and is not a file")));
        }
        Some(_) if !force => return Err(exists(path)),
        _ => {}
    }
    let directory = parent(path);
    if !directory.is_dir() {
        return Err(failed(io::Error::other("there is no such directory")));
    }
    // Under its own name only when it is complete: nobody reads half an artifact.
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(directory).map_err(|error| failed(unnamed(&error)))?;
    let written = write(&mut file)?;
    if let Some(existing) = existing.filter(fs::Metadata::is_file) {
        file.as_file().set_permissions(existing.permissions()).map_err(&failed)?;
    }
    let placed = if force { file.persist(path) } else { file.persist_noclobber(path) };
    match placed {
        Ok(_) => Ok(written),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) => Err(failed(error.error)),
    }
}

/// The error without the name of the file that could not be made: nobody gave it that name.
fn unnamed(error: &io::Error) -> io::Error {
    io::Error::other(format!("nothing can be written into its directory: {}", error.kind()))
}

/// Writes the files of an artifact to `path`: as an archive if its name says so, otherwise as a directory.
pub(crate) fn write(
    path: &Path,
    located: &Located,
    members: &[StoredMember],
    force: bool,
) -> Result<(), Failure> {
    let allowed = kinds::named(&located.artifact.kind).map(Kind::members).unwrap_or_default();
    // What is written where is decided by the kind's own names, whatever the database says.
    if let Some(other) = members.iter().find(|member| !allowed.contains(&member.name.as_str())) {
        let message =
            format!("{} has a member {:?}, which no artifact has", located.artifact.core, other.name);
        return Err(Failure::CouldNotRun(message));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(format) = Format::named(&name) else {
        return write_directory(path, allowed, members, force);
    };
    let mut packed = Vec::new();
    archive::write(format, &StoredMember::borrowed(members), &mut packed).map_err(failed(path))?;
    write_file(path, &packed, force)
}

fn write_directory(
    path: &Path,
    allowed: &[&str],
    members: &[StoredMember],
    force: bool,
) -> Result<(), Failure> {
    // Without a slash at the end, behind which a link would be followed.
    let path: &Path = &path.components().collect::<PathBuf>();
    let failed = failed(path);
    let refused = |reason: &str| Err(failed(io::Error::other(reason)));
    let existing = match fs::symlink_metadata(path) {
        Ok(_) if !force => return Err(exists(path)),
        Ok(metadata) if !metadata.is_dir() => return refused("it is there already and is not a directory"),
        Ok(_) if path.file_name().is_none() => {
            return refused("it cannot be replaced under this name; name it from outside");
        }
        Ok(metadata) => {
            check_replaceable(path, allowed)?;
            Some(metadata)
        }
        Err(_) if !parent(path).is_dir() => return refused("there is no such directory"),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    place_directory(path, existing.as_ref(), members).map_err(failed)
}

/// Refuses to take away what a directory has beside the files of an artifact.
fn check_replaceable(path: &Path, allowed: &[&str]) -> Result<(), Failure> {
    for entry in fs::read_dir(path).map_err(failed(path))? {
        let entry = entry.map_err(failed(path))?;
        let file_type = entry.file_type().map_err(failed(path))?;
        let name = entry.file_name();
        let is_member = name.to_str().is_some_and(|name| allowed.contains(&name));
        if !is_member || !(file_type.is_file() || file_type.is_symlink()) {
            let name = name.to_string_lossy();
            let reason =
                format!("it contains {name}, which is no file of an artifact; remove it, or name another");
            return Err(failed(path)(io::Error::other(reason)));
        }
    }
    Ok(())
}

/// Makes a directory under another name and gives it its own when it is complete, in the place of the one that has it.
fn place_directory(path: &Path, existing: Option<&fs::Metadata>, members: &[StoredMember]) -> io::Result<()> {
    let workplace = tempfile::Builder::new()
        .prefix(".runvault-")
        .tempdir_in(parent(path))
        .map_err(|error| unnamed(&error))?;
    let directory = workplace.path().join("new");
    fs::create_dir(&directory)?;
    for member in members {
        fs::File::create_new(directory.join(&member.name))?.write_all(&member.bytes)?;
    }
    let Some(existing) = existing else { return fs::rename(directory, path) };
    fs::set_permissions(&directory, existing.permissions())?;
    let old = workplace.path().join("old");
    fs::rename(path, &old)?;
    fs::rename(directory, path).inspect_err(|_| {
        // The error that matters is the one that led here.
        let _ = fs::rename(&old, path);
    })
}
