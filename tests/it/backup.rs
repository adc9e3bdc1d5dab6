//! A backup is the vault of one moment, or is not there.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::sandbox::{Ran, Sandbox, repository, session};

fn with_examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    sandbox
}

fn sessions(sandbox: &Sandbox, count: usize) {
    for number in 0..count {
        let text = session(&format!("adapter-{number}"), &[("p", &"text ".repeat(100))]);
        sandbox.write(&format!("d/{number:04}.json"), text);
    }
}

fn on(sandbox: &Sandbox, vault: &str, arguments: &[&str]) -> Ran {
    sandbox.command().arg("--vault").arg(vault).args(arguments).output().unwrap().into()
}

fn opened(path: PathBuf) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap()
}

/// What is in the directory beside what was put there.
fn leftovers(sandbox: &Sandbox) -> Vec<String> {
    let names = std::fs::read_dir(sandbox.path("")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("unfinished")).collect()
}

#[test]
fn a_backup_is_the_same_vault() {
    let sandbox = with_examples();
    let line = sandbox.run(["backup", "b.vault", "--json"]).expect(0).json().remove(0);
    assert_eq!(line["path"], "b.vault");
    assert_eq!([&line["artifacts"], &line["captures"], &line["journal_entries"]], [7, 8, 8]);
    assert_eq!(line["blobs"], line["blobs_checked"]);
    assert_eq!(line["bytes"], std::fs::metadata(sandbox.path("b.vault")).unwrap().len());
    let head = "SELECT 'sha256:' || lower(hex(chain)) FROM journal ORDER BY seq DESC LIMIT 1";
    for vault in ["v.vault", "b.vault"] {
        let connection = opened(sandbox.path(vault));
        let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(line["journal_head"], text(head));
        assert_eq!(text("PRAGMA journal_mode"), "wal");
    }
    let everything = |vault: &str| {
        let found = on(&sandbox, vault, &["find", "--json"]).expect(0);
        let cores = found.json();
        let show =
            |line: &Value| on(&sandbox, vault, &["show", "--json", line["core_hash"].as_str().unwrap()]);
        cores.iter().map(|line| show(line).expect(0).stdout).fold(found.stdout, |all, next| all + &next)
    };
    assert_eq!(everything("v.vault"), everything("b.vault"));
    // It takes up where the original was left.
    on(
        &sandbox,
        "b.vault",
        &["add", sandbox.write("s.json", session("new", &[("p", "r")])).to_str().unwrap()],
    )
    .expect(0);
    assert!(leftovers(&sandbox).is_empty());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(sandbox.path("b.vault")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn nothing_is_replaced_unless_it_is_wanted() {
    let sandbox = with_examples();
    std::fs::create_dir(sandbox.path("directory")).unwrap();
    sandbox.write("there", "mine");
    sandbox.write("used.vault-wal", "the log of a vault");
    let mut refusals = String::new();
    for arguments in [
        ["there"].as_slice(),
        &["there", "--sample", "1"],
        &["v.vault", "--force"],
        &["directory", "--force"],
        &["used.vault"],
        &["no/such/b.vault"],
        &[".."],
    ] {
        let ran = sandbox.run(["backup"].iter().chain(arguments)).expect(2);
        refusals += &format!("{}\n{}{}", arguments.join(" "), ran.stdout, ran.stderr);
    }
    insta::assert_snapshot!(refusals);
    assert_eq!(std::fs::read_to_string(sandbox.path("there")).unwrap(), "mine");
    sandbox.run(["backup", "there", "--force"]).expect(0);
    assert_eq!(on(&sandbox, "there", &["find", "--all-versions", "--json"]).expect(0).json().len(), 7);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("v.vault", sandbox.path("link")).unwrap();
        sandbox.run(["backup", "link", "--force"]).expect(2);
        std::os::unix::fs::symlink("there", sandbox.path("other")).unwrap();
        sandbox.run(["backup", "other", "--force"]).expect(0);
        assert!(!sandbox.path("other").is_symlink(), "a link is replaced, not followed");
    }
    assert!(leftovers(&sandbox).is_empty());
}

#[test]
fn a_backup_is_restored_like_it_was_made() {
    let sandbox = with_examples();
    let head = |ran: Ran| ran.expect(0).json().remove(0)["journal_head"].clone();
    let made = head(sandbox.run(["backup", "b.vault", "--json"]));
    sandbox.add([sandbox.write("s.json", session("mistake", &[("p", "r")]))]);
    {
        let open = runvault::Vault::open(&sandbox.vault()).unwrap();
        let _snapshot = open.snapshot().unwrap();
        let refused = on(&sandbox, "b.vault", &["backup", "v.vault", "--force"]).expect(2);
        assert!(refused.stderr.contains("is in use"), "{}", refused.stderr);
    }
    let restored = head(on(&sandbox, "b.vault", &["backup", "v.vault", "--force", "--json"]));
    assert_eq!(made, restored);
    assert_eq!(sandbox.run(["find", "--all-versions", "--json"]).expect(0).json().len(), 7);
}

fn adding(sandbox: &Sandbox) -> Child {
    let mut command = sandbox.command();
    command.args(["add", "--json", "d"]).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_backup_is_made_while_others_add() {
    let sandbox = with_examples();
    sessions(&sandbox, 1_500);
    let mut writer = adding(&sandbox);
    let mut sizes = Vec::new();
    loop {
        let name = format!("b{}.vault", sizes.len());
        let line = sandbox.run(["backup", &name, "--json"]).expect(0).json().remove(0);
        let artifacts = line["artifacts"].as_u64().unwrap();
        // The journal of a vault in which nothing was linked has as many entries as captures.
        assert_eq!(line["journal_entries"], line["captures"]);
        assert_eq!(
            on(&sandbox, &name, &["find", "--all-versions", "--json"]).expect(0).json().len() as u64,
            artifacts
        );
        sizes.push(artifacts);
        if writer.try_wait().unwrap().is_some() {
            break;
        }
    }
    let output = writer.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(sizes.is_sorted(), "{sizes:?}");
    let line = sandbox.run(["backup", "last.vault", "--json"]).expect(0).json().remove(0);
    assert_eq!(line["artifacts"], 1_507);
}

/// A process that was killed while it read a backup leaves a log, which no process uses.
#[test]
fn a_backup_with_a_log_that_nobody_uses_is_replaced() {
    let sandbox = with_examples();
    sandbox.run(["backup", "b.vault"]).expect(0);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let reader = rusqlite::Connection::open_with_flags(sandbox.path("b.vault"), flags).unwrap();
    reader.query_row("SELECT count(*) FROM artifact", [], |_| Ok(())).unwrap();
    assert!(sandbox.path("b.vault-wal").exists());
    let refused = sandbox.run(["backup", "b.vault", "--force"]).expect(2);
    assert!(refused.stderr.contains("b.vault-wal exists"), "{}", refused.stderr);
    let log = std::fs::read(sandbox.path("b.vault-wal")).unwrap();
    drop(reader);
    sandbox.write("b.vault-wal", log);
    sandbox.run(["backup", "b.vault", "--force"]).expect(0);
    assert!(!sandbox.path("b.vault-wal").exists());
}

#[test]
fn a_killed_backup_leaves_nothing_under_its_name() {
    let sandbox = Sandbox::new();
    sessions(&sandbox, 1_500);
    sandbox.run(["add", "d"]).expect(0);
    for round in 0..20 {
        let mut command = sandbox.command();
        command.args(["backup", "b.vault"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 4));
        child.kill().unwrap();
        child.wait().unwrap();
        if sandbox.path("b.vault").exists() {
            assert_eq!(on(&sandbox, "b.vault", &["find", "--json"]).expect(0).json().len(), 1_500);
            std::fs::remove_file(sandbox.path("b.vault")).unwrap();
        }
    }
    // One that was killed while it was being made, and one whose removal was.
    for (name, files) in [("one", &["copy", "lock"][..]), ("two", &["copy"]), ("three", &[])] {
        std::fs::create_dir(sandbox.path(&format!(".runvault-unfinished-{name}"))).unwrap();
        for file in files {
            sandbox.write(&format!(".runvault-unfinished-{name}/{file}"), "");
        }
    }
    assert!(leftovers(&sandbox).len() >= 3);
    sandbox.run(["backup", "b.vault"]).expect(0);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
}

#[test]
fn backups_to_one_place_do_not_take_each_others_work_away() {
    let sandbox = with_examples();
    let spawn = |_| {
        let mut command = sandbox.command();
        command.args(["backup", "b.vault", "--force"]).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<Child> = (0..8).map(spawn).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(on(&sandbox, "b.vault", &["find", "--all-versions", "--json"]).expect(0).json().len(), 7);
    sandbox.run(["backup", "b.vault", "--force"]).expect(0);
    assert_eq!(leftovers(&sandbox), Vec::<String>::new());
}

#[test]
fn a_damaged_vault_gives_no_backup() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("s.json", session("a", &[("p", &"text ".repeat(100))]))]);
    let change = "UPDATE payload SET encoding = 0, bytes = CAST('{\"another\": \"document\"}' AS BLOB)";
    assert_eq!(opened(sandbox.vault()).execute(change, []).unwrap(), 1);
    let refused = sandbox.run(["backup", "b.vault"]).expect(2);
    assert!(refused.stderr.contains("now has the hash sha256:"), "{}", refused.stderr);
    assert!(refused.stderr.contains("the vault itself is damaged"), "{}", refused.stderr);
    assert!(!sandbox.path("b.vault").exists() && leftovers(&sandbox).is_empty());
    // Who asks for fewer checks gets fewer, and is told so.
    let unchecked = sandbox.run(["backup", "b.vault", "--sample", "0%"]).expect(0);
    assert!(unchecked.stdout.contains("\npassed: SQLite's integrity check, 0 of "), "{}", unchecked.stdout);
    opened(sandbox.vault()).execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM blob").unwrap();
    let refused = sandbox.run(["backup", "c.vault"]).expect(2);
    assert!(refused.stderr.contains("refers to one of blob that does not exist"), "{}", refused.stderr);
}

#[test]
fn a_backup_is_called_sound_only_if_its_catalog_is_what_the_journal_says() {
    let sandbox = with_examples();
    sandbox.run(["tag", "set", "5c496a37feba", "golden"]).expect(0);
    let sound = sandbox.run(["backup", "b.vault"]).expect(0);
    let expected = "\nsound: SQLite's integrity check, all blobs read back and hashed, journal chain, catalog matches \
                    the journal\n";
    assert!(sound.stdout.contains(expected), "{}", sound.stdout);
    opened(sandbox.vault()).execute("DELETE FROM tag", []).unwrap();
    let other = sandbox.run(["backup", "c.vault"]).expect(1);
    assert!(!other.stdout.contains("sound") && !other.stdout.contains("equal"), "{}", other.stdout);
    assert!(other.stderr.contains("missing-row tag golden"), "{}", other.stderr);
    assert!(other.stderr.contains("the vault does not match its journal: 1 finding"), "{}", other.stderr);
    // A copy of a vault that is not whole is better than none.
    assert_eq!(on(&sandbox, "c.vault", &["find", "--all-versions", "--json"]).expect(0).json().len(), 7);
    let line = sandbox.run(["backup", "d.vault", "--json"]).expect(1).json().remove(0);
    assert_eq!(line["findings"], 1);
}
