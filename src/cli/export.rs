//! Writing artifacts to the disk: whole or not at all, and never over anything unless it is wanted.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use runvault::Located;
use runvault::archive::{self, Format};
use runvault::artifact::{Kind, MemberBytes};
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
fn parent(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes `bytes` to the file `path`, or to what it points to if it is a link.
pub(crate) fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    let failed = failed(path);
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let existing = target.metadata().ok();
    match &existing {
        Some(existing) if !existing.is_file() => {
            return Err(failed(io::Error::other("it is there and is not a file")));
        }
        Some(_) if !force => return Err(exists(path)),
        _ => {}
    }
    let directory = parent(&target);
    if !directory.is_dir() {
        return Err(failed(io::Error::other("there is no such directory")));
    }
    // Under its own name only when it is complete: nobody reads half an artifact.
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(directory).map_err(&failed)?;
    file.write_all(bytes).map_err(&failed)?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions()).map_err(&failed)?;
    }
    let placed = if force { file.persist(&target) } else { file.persist_noclobber(&target) };
    placed.map(drop).map_err(|error| match error.error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => failed(error.error),
    })
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
    let files: Vec<MemberBytes<'_>> =
        members.iter().map(|member| MemberBytes { name: &member.name, bytes: &member.bytes }).collect();
    let mut packed = Vec::new();
    archive::write(format, &files, &mut packed).map_err(failed(path))?;
    write_file(path, &packed, force)
}

fn write_directory(
    path: &Path,
    allowed: &[&str],
    members: &[StoredMember],
    force: bool,
) -> Result<(), Failure> {
    match fs::symlink_metadata(path) {
        Ok(_) if !force => Err(exists(path)),
        // A link is not followed: it could lead anywhere.
        Ok(metadata) if !metadata.is_dir() => {
            Err(failed(path)(io::Error::other("it is there already and is not a directory")))
        }
        Ok(_) => replace_files(path, allowed, members),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create_directory(path, members).map_err(failed(path))
        }
        Err(error) => Err(failed(path)(error)),
    }
}

/// Makes a directory under another name, and gives it its own when it is complete.
fn create_directory(path: &Path, members: &[StoredMember]) -> io::Result<()> {
    let workplace = tempfile::Builder::new().prefix(".runvault-").tempdir_in(parent(path))?;
    let directory = workplace.path().join("new");
    fs::create_dir(&directory)?;
    for member in members {
        fs::File::create_new(directory.join(&member.name))?.write_all(&member.bytes)?;
    }
    fs::rename(directory, path)
}

/// Makes the files in a directory those of the artifact. Files of other names are left alone.
fn replace_files(path: &Path, allowed: &[&str], members: &[StoredMember]) -> Result<(), Failure> {
    for member in members {
        let file = path.join(&member.name);
        // A link there could lead anywhere, so it is replaced, not followed.
        if fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_symlink()) {
            fs::remove_file(&file).map_err(failed(&file))?;
        }
        write_file(&file, &member.bytes, true)?;
    }
    for name in allowed.iter().filter(|name| members.iter().all(|member| member.name != **name)) {
        match fs::remove_file(path.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(path)(error)),
            _ => {}
        }
    }
    Ok(())
}
