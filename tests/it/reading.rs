//! Vaults that can only be read, and disks that are full.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::sandbox::{READING, Ran, Sandbox, program, repository, session};

/// A vault with the examples and a search index, in a directory of its own that everybody may enter.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox.run(["index", "build"]).expect(0);
    fs::set_permissions(sandbox.path(""), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(sandbox.path("of-another")).unwrap();
    fs::rename(sandbox.vault(), sandbox.path("of-another/v.vault")).unwrap();
    copy_program(&sandbox);
    sandbox
}

/// Copies the program into the sandbox: others may not be allowed to look where the tests are built.
fn copy_program(sandbox: &Sandbox) {
    // Not in this process: a program that another test starts meanwhile would have the copy open for writing, and a file
    // that is written to cannot be run.
    let mut copied = Command::new("cp");
    copied.args([program(), "runvault"]).current_dir(sandbox.path(""));
    assert!(copied.status().unwrap().success());
}

/// The same, as it is when the program was killed: what was added is in the log.
fn examples_in_log() -> Sandbox {
    let sandbox = Sandbox::new();
    let open = runvault::Vault::open(&sandbox.vault()).unwrap();
    sandbox.add([repository("examples")]);
    sandbox.run(["index", "build"]).expect(0);
    fs::set_permissions(sandbox.path(""), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(sandbox.path("of-another")).unwrap();
    // Not in this process: closing the file would drop the locks of the vault that is open.
    let mut copied = Command::new("cp");
    copied.args(["v.vault", "v.vault-wal", "of-another"]).current_dir(sandbox.path(""));
    assert!(copied.status().unwrap().success());
    assert!(fs::metadata(sandbox.path("of-another/v.vault-wal")).unwrap().len() > 0);
    drop(open);
    copy_program(&sandbox);
    sandbox
}

/// Whether the tests run as a user whom no permissions keep from anything.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Runs the program as a user who does not own the vault; as the same one if the tests do not run as root.
fn as_another(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command = Command::new(sandbox.path("runvault"));
    command.current_dir(sandbox.path("")).env_clear().args(arguments);
    command.env("RUNVAULT_VAULT", "of-another/v.vault").env("RUNVAULT_CONFIG", "none.toml");
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    command.output().unwrap().into()
}

/// The files of a directory, by name.
fn files(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_vault_that_can_only_be_read_is_read() {
    let sandbox = examples();
    let directory = sandbox.path("of-another");
    fs::set_permissions(directory.join("v.vault"), Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o555)).unwrap();
    for (arguments, status) in READING {
        let ran = as_another(&sandbox, arguments);
        assert_eq!(ran.status, *status, "{arguments:?}: {}", ran.stderr);
        assert_eq!(files(&directory), ["v.vault"], "{arguments:?}");
    }
    for arguments in [
        &["tag", "set", "4df877dec7f4", "x"][..],
        &["add", "of-another/v.vault"],
        &["gc"],
        &["index", "rebuild"],
    ] {
        let ran = as_another(&sandbox, arguments);
        assert!([1, 2].contains(&ran.status), "{arguments:?}: {}", ran.stderr);
    }
    let refused = as_another(&sandbox, &["tag", "set", "4df877dec7f4", "x"]).expect(2).stderr;
    assert!(refused.contains("of-another/v.vault is read-only"), "{refused}");
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
}

/// In a directory in which everybody can create files. A log of another user would keep the owner from writing.
#[test]
fn a_vault_whose_file_can_only_be_read_is_read_without_a_file_beside_it() {
    let sandbox = examples();
    let directory = sandbox.path("of-another");
    fs::set_permissions(&directory, Permissions::from_mode(0o1777)).unwrap();
    for mode in [0o444, 0o644] {
        fs::set_permissions(directory.join("v.vault"), Permissions::from_mode(mode)).unwrap();
        for (arguments, status) in READING {
            let ran = as_another(&sandbox, arguments);
            assert_eq!(ran.status, *status, "{arguments:?}: {}", ran.stderr);
        }
        if is_root() {
            assert_eq!(files(&directory), ["v.vault"]);
            let refused = as_another(&sandbox, &["tag", "set", "4df877dec7f4", "x"]).expect(2).stderr;
            assert!(refused.contains("of-another/v.vault is read-only"), "{refused}");
            assert_eq!(files(&directory), ["v.vault"]);
        }
    }
}

/// The owner has it open, and has added something that is only in the log.
#[test]
fn a_vault_that_its_owner_uses_is_read() {
    let sandbox = examples();
    let directory = sandbox.path("of-another");
    fs::set_permissions(directory.join("v.vault"), Permissions::from_mode(0o644)).unwrap();
    let open = runvault::Vault::open(&directory.join("v.vault")).unwrap();
    let text = session("new", &[("p", "r")]);
    let added = open.add_document(text.into_bytes(), &runvault::intake::ExamineOptions::default()).unwrap();
    for (arguments, status) in READING {
        let ran = as_another(&sandbox, arguments);
        assert_eq!(ran.status, *status, "{arguments:?}: {}", ran.stderr);
    }
    as_another(&sandbox, &["get", &added.core.to_string()]).expect(0);
    if is_root() {
        as_another(&sandbox, &["tag", "set", "4df877dec7f4", "x"]).expect(2);
    }
    drop(open);
    assert_eq!(files(&directory), ["v.vault"]);
}

/// A process was killed, and its log can only be read by the owner.
#[test]
fn a_log_that_cannot_be_read_is_named() {
    let sandbox = examples_in_log();
    let directory = sandbox.path("of-another");
    fs::set_permissions(directory.join("v.vault"), Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(directory.join("v.vault-wal"), Permissions::from_mode(0o600)).unwrap();
    if is_root() {
        let refused = as_another(&sandbox, &["find"]).expect(2).stderr;
        assert!(
            refused.contains("of-another/v.vault-wal: ") && refused.contains("the last changes"),
            "{refused}"
        );
    }
}

#[test]
fn a_vault_with_a_log_that_can_only_be_read_is_read() {
    let sandbox = examples_in_log();
    let directory = sandbox.path("of-another");
    for file in ["v.vault", "v.vault-wal"] {
        fs::set_permissions(directory.join(file), Permissions::from_mode(0o444)).unwrap();
    }
    fs::set_permissions(&directory, Permissions::from_mode(0o555)).unwrap();
    for (arguments, status) in READING {
        let ran = as_another(&sandbox, arguments);
        assert_eq!(ran.status, *status, "{arguments:?}: {}", ran.stderr);
        assert_eq!(files(&directory), ["v.vault", "v.vault-wal"], "{arguments:?}");
    }
    let refused = as_another(&sandbox, &["tag", "set", "4df877dec7f4", "x"]).expect(2).stderr;
    assert!(refused.contains("of-another/v.vault is read-only"), "{refused}");
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
}

/// Runs a line of a shell in the sandbox, where the program is `./runvault`.
fn shell(sandbox: &Sandbox, script: &str) -> Ran {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(sandbox.path("")).env_clear();
    command.env("RUNVAULT_VAULT", "of-another/v.vault").env("RUNVAULT_CONFIG", "none.toml");
    command.output().unwrap().into()
}

fn quoted(arguments: &[&str]) -> String {
    arguments.iter().map(|argument| format!("'{argument}'")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_full_disk_does_not_keep_from_reading_what_is_in_the_log() {
    let sandbox = examples_in_log();
    let directory = sandbox.path("of-another");
    let contents = || ["v.vault", "v.vault-wal"].map(|name| fs::read(directory.join(name)).unwrap());
    let before = contents();
    let full =
        |arguments: &str| shell(&sandbox, &format!("trap '' XFSZ; ulimit -f 0; exec ./runvault {arguments}"));
    for (arguments, status) in READING {
        let ran = full(&quoted(arguments));
        assert_eq!(ran.status, *status, "{arguments:?}: {}", ran.stderr);
    }
    assert!(full("tag set 4df877dec7f4 x").expect(2).stderr.contains("the disk is full"));
    assert!(contents() == before, "reading changed the vault");
    let vault = ["--vault", "of-another/v.vault"];
    sandbox.run([&vault[..], &["tag", "set", "4df877dec7f4", "x"]].concat()).expect(0);
    sandbox.run([&vault[..], &["fsck"]].concat()).expect(0);
}

/// On a file system that is full, and on one that takes no writes, if one can be made: in a namespace of its own.
#[test]
fn full_and_read_only_file_systems_are_named_and_do_not_keep_from_reading() {
    let sandbox = examples_in_log();
    fs::create_dir(sandbox.path("small")).unwrap();
    let mounted = |then: &str| {
        let script = "mount -t tmpfs -o size=4m tmpfs small && cp of-another/* examples.json small && cd small && \
                      RUNVAULT_VAULT=v.vault && export RUNVAULT_VAULT";
        shell(&sandbox, &format!("exec unshare -rm sh -c '{script} && {then}'"))
    };
    fs::copy(repository("examples/session.json"), sandbox.path("examples.json")).unwrap();
    if mounted("true").status != 0 {
        println!("skipped: no file system can be mounted here");
        return;
    }
    let fill = "{ cat /dev/zero > fill; true; } 2>/dev/null";
    let read_only = "mount -o remount,ro small . 2>/dev/null || mount -o remount,ro .";
    for (state, why) in [(fill, "the disk is full"), (read_only, "")] {
        for (arguments, status) in READING {
            let arguments: Vec<String> =
                arguments.iter().map(|argument| format!("\"{}\"", argument.replace('(', "\\("))).collect();
            let arguments = arguments.join(" ").replace("\\(", "(");
            let ran = mounted(&format!("{state}; ../runvault {arguments}"));
            assert_eq!(ran.status, *status, "{state}: {arguments}: {}", ran.stderr);
        }
        for arguments in [
            "add examples.json ../v.vault",
            "tag set 4df877dec7f4 x",
            "gc",
            "index rebuild",
            "backup b.vault",
            "get 4df877dec7f4 -o o.json",
            "get 54490aab8b3f -o out",
            "get 54490aab8b3f -o out.zip",
            "export --all -o all.rvz",
            "sql --save saved.db",
            "man --all man",
            "init --vault new.vault",
        ] {
            let ran = mounted(&format!("{state}; ../runvault {arguments}"));
            assert_eq!(ran.status, 2, "{state}: {arguments}: {}", ran.stderr);
            assert!(ran.stderr.contains(why), "{arguments}: {}", ran.stderr);
            assert!(!ran.stderr.contains(".runvault-"), "{arguments}: {}", ran.stderr);
        }
        let ran = mounted(&format!("{state}; RUNVAULT_CONFIG=c.toml ../runvault config set actor me"));
        assert!(ran.status == 2 && ran.stderr.contains(why), "{}", ran.stderr);
    }
    for arguments in
        ["get 4df877dec7f4", "find", "export --all -o -", "log --json", "man", "--help", "help add"]
    {
        let ran = shell(&sandbox, &format!("./runvault {arguments} > /dev/full"));
        assert!(ran.status == 2 && ran.stderr.contains("the disk is full"), "{arguments}: {}", ran.stderr);
    }
}

#[test]
fn a_full_disk_is_named_and_does_not_keep_from_reading() {
    let sandbox = examples();
    // No file may grow: neither the log of the vault nor the memory that processes share.
    let full = |arguments: &str| -> Ran {
        let script = format!("trap '' XFSZ; ulimit -f 0; exec ./runvault {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(sandbox.path("")).env_clear();
        command.env("RUNVAULT_VAULT", "of-another/v.vault").env("RUNVAULT_CONFIG", "none.toml");
        command.output().unwrap().into()
    };
    for (arguments, status) in READING {
        let quoted: Vec<String> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
        let ran = full(&quoted.join(" "));
        assert_eq!(ran.status, *status, "{arguments:?}: {}", ran.stderr);
    }
    for arguments in ["tag set 4df877dec7f4 x", "gc", "index rebuild"] {
        let ran = full(arguments).expect(2);
        assert!(ran.stderr.contains("the disk is full"), "{arguments}: {}", ran.stderr);
    }
    // As soon as there is room again, everything is as it was.
    let vault = ["--vault", "of-another/v.vault"];
    sandbox.run([&vault[..], &["tag", "set", "4df877dec7f4", "x"]].concat()).expect(0);
    sandbox.run([&vault[..], &["fsck"]].concat()).expect(0);
}
