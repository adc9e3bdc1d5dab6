//! Copies on this machine of what was read from object storage: without any of them, every answer is the same.

use std::path::Path;
use std::process::Command;

use super::{RUN, Ran, objects, run, with_examples};
use crate::postgres::{Database, Place};

/// The program, with copies in a directory.
fn command(database: &Database, copies: &Path) -> Command {
    let mut command = database.sandbox.command();
    command.env("RUNVAULT_VAULT", &database.address).env("RUNVAULT_OBJECT_CACHE", copies);
    command
}

/// Expects that an artifact is read, with copies in a directory.
fn expect_read(database: &Database, copies: &Path, what: &str) {
    let ran = Ran::from(command(database, copies).args(["get", RUN]).output().unwrap());
    assert_eq!((ran.status, &*ran.stderr, ran.stdout.as_bytes()), (0, "", &run()[..]), "{what}");
}

/// The copies in a directory.
fn copies_in(directory: &Path) -> Vec<std::path::PathBuf> {
    let directories = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    directories
        .flat_map(|directory| std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()))
        .collect()
}

#[test]
fn reads_need_no_copies() {
    let (place, directory) = (Place::directory(), tempfile::tempdir().unwrap());
    let Some(database) = with_examples(&place) else { return };
    let copies = directory.path().join("copies");
    std::fs::write(&copies, "a file in the place of the directory").unwrap();
    expect_read(&database, &copies, "a file in the place of the directory");
    std::fs::remove_file(&copies).unwrap();
    expect_read(&database, &copies, "no directory");
    let [copy] = &copies_in(&copies)[..] else { panic!("there is a copy of the run pack") };
    let intact = std::fs::read(copy).unwrap();
    for damage in [&b""[..], b"other", &intact[1..]] {
        std::fs::write(copy, damage).unwrap();
        expect_read(&database, &copies, "a damaged copy");
        assert_eq!(std::fs::read(copy).unwrap(), intact, "it was replaced");
    }
    std::fs::remove_file(copy).unwrap();
    std::fs::create_dir_all(copy.join("directory")).unwrap();
    expect_read(&database, &copies, "a directory in the place of the copy");
    assert_eq!(std::fs::read(copy).unwrap(), intact);
    // They are used: what is in the storage is not needed.
    for object in objects(place.path().unwrap()) {
        std::fs::remove_file(object).unwrap();
    }
    expect_read(&database, &copies, "a copy");
}

#[cfg(unix)]
#[test]
fn reads_go_on_when_no_copy_can_be_written() {
    use std::os::unix::fs::PermissionsExt as _;

    let (place, directory) = (Place::directory(), tempfile::tempdir().unwrap());
    let Some(database) = with_examples(&place) else { return };
    // No file can grow, as on a disk that is full.
    let program = database.sandbox.command();
    let script = format!("trap '' XFSZ; ulimit -f 0; exec '{}' get {RUN}", program.get_program().display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("RUNVAULT_VAULT", &database.address);
    let ran = Ran::from(shell.env("RUNVAULT_OBJECT_CACHE", directory.path()).output().unwrap());
    assert_eq!((ran.status, ran.stdout.as_bytes()), (0, &run()[..]), "{}", ran.stderr);
    assert_eq!(copies_in(directory.path()), [""; 0].map(std::path::PathBuf::from), "nothing is left of it");
    // Some users can write everything.
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
    expect_read(&database, directory.path(), "a directory that cannot be written");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
}
