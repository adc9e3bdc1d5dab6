//! What is wrong with a vault is found, and repaired where that needs no guessing.

mod damage;
pub(crate) mod every_table;
mod flips;
mod indexes;
mod loops;
mod many;
pub(crate) mod questions;
mod recorded;
mod reindex;
mod repair;
mod rows;
pub(crate) mod shared_pages;

use std::sync::LazyLock;

use rusqlite::Connection;

use crate::journal;
use crate::sandbox::{Sandbox, repository, session};

/// The examples: artifacts of every kind, one with two captures, one within another.
pub(crate) fn examples() -> Sandbox {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let sandbox = Sandbox::new();
        sandbox.run(["add".into(), repository("examples")]).expect(0);
        bytes_of(&sandbox)
    });
    of_bytes(&BYTES)
}

/// Recordings of one run: one payload is stored whole, and the others as differences to it.
pub(crate) fn siblings() -> Sandbox {
    let sandbox = Sandbox::new();
    for adapter in ["a", "b", "c"] {
        let exchanges: Vec<(String, String)> =
            (0..40).map(|n| (format!("prompt {n}"), format!("response {n} {}", "text ".repeat(n)))).collect();
        let exchanges: Vec<(&str, &str)> =
            exchanges.iter().map(|(prompt, response)| (prompt.as_str(), response.as_str())).collect();
        sandbox.add([sandbox.write(&format!("{adapter}.json"), session(adapter, &exchanges))]);
    }
    let whole: i64 = sql(&sandbox)
        .query_row("SELECT count(*) FROM payload WHERE base IS NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(whole, 1);
    sandbox
}

/// The bytes of a vault, all of them in its file.
pub(crate) fn bytes_of(sandbox: &Sandbox) -> Vec<u8> {
    sql(sandbox).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    std::fs::read(sandbox.vault()).unwrap()
}

/// The same with pages of 512 bytes: trees of several levels, rows that continue in other pages, and little empty space.
pub(crate) fn small_pages(sandbox: &Sandbox) -> Vec<u8> {
    sql(sandbox)
        .execute_batch(
            "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM; PRAGMA journal_mode = WAL;",
        )
        .unwrap();
    bytes_of(sandbox)
}

/// A vault that is a copy of these bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> Sandbox {
    let sandbox = Sandbox::without_vault();
    sandbox.write("v.vault", bytes);
    // Whatever the settings of who runs the tests are.
    #[cfg(unix)]
    std::fs::set_permissions(sandbox.vault(), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    sandbox
}

/// The vault, behind the program's back, in which nothing needs to fit.
pub(crate) fn sql(sandbox: &Sandbox) -> Connection {
    let connection = journal::sql(sandbox);
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection
}

/// What a check finds: a line for each finding, and the exit status.
pub(crate) fn findings(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let ran = sandbox.run([&["fsck", "--json"], arguments].concat());
    let line = |line: &serde_json::Value| {
        let text = |member: &str| line[member].as_str().unwrap_or_default().to_owned();
        let what = if line["repaired"].is_null() {
            text("finding")
        } else {
            format!("repaired: {}", text("repaired"))
        };
        format!("{what} | {} {} | {}\n", text("about"), text("subject"), text("detail"))
    };
    let lines: String = ran.json().iter().map(line).collect();
    assert_eq!(ran.status == 0, !lines.lines().any(|line| !line.starts_with("repaired")), "{}", ran.stderr);
    lines
}

/// Makes each change to a vault, which is found with and without reading stored bytes, and repaired. Gives what is said of
/// each. `check` looks at the repaired vault.
pub(crate) fn found_and_repaired(bytes: &[u8], changes: &[&str], check: impl Fn(&str, &Sandbox)) -> String {
    let mut reports = String::new();
    for change in changes {
        let sandbox = of_bytes(bytes);
        sql(&sandbox).execute_batch(change).unwrap();
        let quick = findings(&sandbox, &["--quick"]);
        assert_ne!(quick, "", "{change}");
        assert_eq!(findings(&sandbox, &[]), quick, "{change}");
        let repaired = findings(&sandbox, &["--repair"]);
        assert!(repaired.lines().all(|line| line.starts_with("repaired")), "{change}\n{repaired}");
        assert_eq!(findings(&sandbox, &[]), "", "{change}");
        check(change, &sandbox);
        reports += &format!("{change}\n{quick}{repaired}\n");
    }
    reports
}

#[test]
fn a_vault_that_nobody_touched_is_clean() {
    let sandbox = examples();
    for arguments in [
        ["fsck", "--full"],
        ["fsck", "--quick"],
        ["fsck", "--sample=50%"],
        ["fsck", "--kind=pack"],
        ["fsck", "--repair"],
    ] {
        let ran = sandbox.run(arguments).expect(0);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
    let ran = sandbox.run(["fsck"]).expect(0);
    assert!(ran.stderr.starts_with("7 artifacts checked, 0 findings; "), "{}", ran.stderr);
    assert_eq!(findings(&siblings(), &[]), "");
}

#[test]
fn everything_that_is_admitted_is_clean() {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("tests/corpus")]).expect(1);
    assert_eq!(findings(&sandbox, &[]), "");
    sandbox.run(["index", "rebuild"]).expect(0);
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn a_sample_is_of_some_artifacts_and_seeds_give_others() {
    let sandbox = Sandbox::new();
    for number in 0..60 {
        sandbox.write(&format!("d/{number}.json"), session(&format!("a{number}"), &[("p", "r")]));
    }
    sandbox.run(["add", "d"]).expect(0);
    let count = |arguments: &[&str]| {
        let ran = sandbox.run([&["fsck"], arguments].concat()).expect(0);
        ran.stderr.split(' ').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!((count(&["--sample=100%"]), count(&["--sample=0"]), count(&["--quick"])), (60, 0, 0));
    let some = count(&["--sample=25%"]);
    assert!((5..30).contains(&some), "{some}");
    assert_eq!(count(&["--sample", "25"]), some);
    // Damage to one artifact is found by some seeds and not by others.
    sql(&sandbox).execute("DELETE FROM attribute WHERE artifact = 1", []).unwrap();
    let found = (0..20)
        .filter(|seed| !findings(&sandbox, &["--sample=25%", &format!("--seed={seed}")]).is_empty())
        .count();
    assert!((1..12).contains(&found), "{found}");
}

#[test]
fn a_check_goes_on_where_another_one_ended() {
    let sandbox = examples();
    sql(&sandbox).execute_batch("DELETE FROM attribute; DELETE FROM identity").unwrap();
    let all: Vec<String> = findings(&sandbox, &[]).lines().map(str::to_owned).collect();
    let middle = "sha256:5c496a37feba41e0f32d5f4abd4443376f9c83b122c1927efeef1c88a1153264";
    let position = format!(r#"{{"asked":"{}","after":"{middle}","artifacts":4,"findings":2}}"#, asked());
    sandbox.write("position", &position);
    let rest: Vec<String> =
        findings(&sandbox, &["--resume", "position"]).lines().map(str::to_owned).collect();
    let expected: Vec<String> = all
        .iter()
        .filter(|line| line.split("artifact ").nth(1).is_some_and(|hash| hash > middle))
        .cloned()
        .collect();
    assert!(!rest.is_empty() && rest.len() < all.len());
    assert!(rest.iter().all(|line| all.contains(line)) && rest.len() <= expected.len(), "{rest:#?}");
    // It came to its end, so the next one starts from the beginning.
    assert!(!sandbox.path("position").exists());
    sandbox.write("position", position);
    let ran = sandbox.run(["fsck", "--quick", "--resume", "position"]).expect(2);
    assert!(ran.stderr.contains("remove it to start over"), "{}", ran.stderr);
}

fn asked() -> String {
    "Options { depth: Full, kind: None, after: None }".to_owned()
}

#[test]
fn what_cannot_be_looked_at_is_not_clean() {
    let sandbox = Sandbox::without_vault();
    sandbox.run(["fsck"]).expect(2);
    sandbox
        .write("v.vault", "no database, but a text that is long enough to have a header of one".repeat(40));
    sandbox.run(["fsck"]).expect(2);
    sandbox.run(["fsck", "--from", "."]).expect(3);
    sandbox.run(["fsck", "--sample", "101%"]).expect(3);
    sandbox.run(["fsck", "--quick", "--full"]).expect(3);
}
