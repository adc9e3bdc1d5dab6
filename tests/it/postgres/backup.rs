//! Backups with the tools of the server.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::CLOCK;
use super::server::Server;
use crate::sandbox::{Ran, Sandbox, repository};

/// A program of the server. The packages from npm have none, and those of the system are of another version.
fn program(name: &str) -> Option<PathBuf> {
    if std::env::var_os("RUNVAULT_CI_POSTGRES").is_some() {
        let reason = b"skipped: backups; RUNVAULT_CI_POSTGRES names another server than that of the system\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), reason);
        return None;
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let found = versions.flatten().map(|version| version.path().join("bin").join(name));
    let found = found.filter(|path| path.exists()).max();
    if found.is_none() {
        let reason = format!("skipped: backups; there is no {name}\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), reason.as_bytes());
    }
    found
}

fn run(sandbox: &Sandbox, address: &str, arguments: &[&OsStr]) -> Ran {
    let mut command = sandbox.command();
    command.env("RUNVAULT_VAULT", address).args(["--actor", "tester"]);
    command.args(arguments).output().unwrap().into()
}

fn words(text: &str) -> Vec<&OsStr> {
    text.split(' ').map(OsStr::new).collect()
}

fn expect_success(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A server with a vault that has the examples.
fn with_examples(sandbox: &Sandbox) -> Option<Server> {
    let server = Server::start(&[])?;
    run(sandbox, &server.address, &words("init")).expect(0);
    run(sandbox, &server.address, &[OsStr::new("add"), repository("examples").as_os_str()]).expect(0);
    for arguments in ["tag set 5c496a37feba agreed", "rm --force 103ef1c54b58", "label set 7c8de5910f63 a=b"]
    {
        run(sandbox, &server.address, &words(arguments)).expect(0);
    }
    Some(server)
}

/// Expects that a copy is a vault without findings that answers as the original.
fn expect_same(sandbox: &Sandbox, original: &str, copy: &str) {
    let fsck = run(sandbox, copy, &words("fsck --full --json"));
    assert_eq!((fsck.status, fsck.stdout.as_str()), (0, ""), "{}", fsck.stderr);
    for question in ["find --json", "log --json", "tag list --json", "label list --json", "tombstones --json"]
    {
        let (one, other) = (run(sandbox, original, &words(question)), run(sandbox, copy, &words(question)));
        assert_eq!((one.status, one.stdout), (other.status, other.stdout), "{question}");
    }
    // It can be written to.
    run(sandbox, copy, &words("tag set 7c8de5910f63 new")).expect(0);
    run(sandbox, copy, &words("fsck --full")).expect(0);
}

#[test]
fn a_dump_restored_into_another_database_is_the_same_vault() {
    let (Some(dump), Some(restore)) = (program("pg_dump"), program("pg_restore")) else { return };
    let sandbox = Sandbox::at(CLOCK);
    let Some(server) = with_examples(&sandbox) else { return };
    let mut client = postgres::Client::connect(&server.address, postgres::NoTls).unwrap();
    client.batch_execute("CREATE DATABASE restored ENCODING 'UTF8' TEMPLATE template0").unwrap();
    let file = sandbox.path("vault.dump");
    expect_success(
        Command::new(dump)
            .args(["--format=custom", "--schema=runvault", "--dbname", &server.address, "--file"])
            .arg(&file),
    );
    let copy = server.address.replace("///runvault?", "///restored?");
    expect_success(Command::new(restore).args(["--exit-on-error", "--dbname", &copy]).arg(&file));
    expect_same(&sandbox, &server.address, &copy);
}

#[test]
fn a_base_backup_is_the_same_vault() {
    let Some(backup) = program("pg_basebackup") else { return };
    let sandbox = Sandbox::at(CLOCK);
    let Some(server) = with_examples(&sandbox) else { return };
    let copied = |directory: &Path| {
        expect_success(
            Command::new(&backup)
                .args(["--host", &server.directory(), "--username=runvault", "--checkpoint=fast", "--pgdata"])
                .arg(directory.join("data")),
        );
    };
    let copy = Server::start_from(copied, &server.address.replace(&server.directory(), "DIRECTORY"));
    expect_same(&sandbox, &server.address, &copy.address);
}
