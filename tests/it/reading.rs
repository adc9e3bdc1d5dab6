//! Vaults that can only be read, and disks that are full.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::sandbox::{Ran, Sandbox, repository};

/// What only reads, with the exit status that it has on the examples.
const READING: &[(&[&str], i32)] = &[
    (&["find"], 0),
    (&["find", "--prompt", "Summarise ticket 4711 in one sentence."], 0),
    (&["get", "4df877dec7f4"], 0),
    (&["show", "3941d389b337"], 0),
    (&["links", "5c496a37feba"], 0),
    (&["search", "cut off by mistake"], 0),
    (&["sql", "SELECT count(*) FROM artifacts"], 0),
    (&["diff", "4df877dec7f4", "103ef1c54b58", "--first"], 1),
    (&["log"], 0),
    (&["log", "--head"], 0),
    (&["stats"], 0),
    (&["fsck"], 0),
    (&["tags"], 0),
];

/// A vault with the examples and a search index, in a directory of its own that everybody may enter.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox.run(["search", "--build"]).expect(0);
    fs::set_permissions(sandbox.path(""), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(sandbox.path("of-another")).unwrap();
    fs::rename(sandbox.vault(), sandbox.path("of-another/v.vault")).unwrap();
    // Where the tests are built, others may not be allowed to look.
    fs::copy(env!("CARGO_BIN_EXE_runvault"), sandbox.path("runvault")).unwrap();
    sandbox
}

/// Runs the program as a user who does not own the vault; as the same one if the tests do not run as root.
fn as_another(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command = Command::new(sandbox.path("runvault"));
    command.current_dir(sandbox.path("")).env_clear().args(arguments);
    command.env("RUNVAULT_VAULT", "of-another/v.vault").env("RUNVAULT_CONFIG", "none.toml");
    if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
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
    for arguments in
        [&["tag", "4df877dec7f4", "x"][..], &["add", "of-another/v.vault"], &["gc"], &["reindex"]]
    {
        let ran = as_another(&sandbox, arguments);
        assert!([1, 2].contains(&ran.status), "{arguments:?}: {}", ran.stderr);
    }
    let refused = as_another(&sandbox, &["tag", "4df877dec7f4", "x"]).expect(2).stderr;
    assert!(refused.contains("of-another/v.vault can only be read"), "{refused}");
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
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
    for arguments in ["tag 4df877dec7f4 x", "gc", "reindex"] {
        let ran = full(arguments).expect(2);
        assert!(ran.stderr.contains("the disk is full"), "{arguments}: {}", ran.stderr);
    }
    // As soon as there is room again, everything is as it was.
    let vault = ["--vault", "of-another/v.vault"];
    sandbox.run([&vault[..], &["tag", "4df877dec7f4", "x"]].concat()).expect(0);
    sandbox.run([&vault[..], &["fsck"]].concat()).expect(0);
}
