//! What leads in a circle in a damaged vault, or out of it, ends with a finding.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{bytes_of, examples, of_bytes, siblings, sql};
use crate::sandbox::{Ran, Sandbox};

/// Far more than any of this takes; what never ends must not keep the tests.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Runs to the end; nothing if that does not come.
fn ended(sandbox: &Sandbox, arguments: &[&str]) -> Option<Ran> {
    let mut command = sandbox.command();
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(child.wait_with_output().unwrap().into())
}

/// Every command that goes through all of a vault comes to an end, and says what is wrong if it is asked for that.
fn every_command_ends(damaged: &dyn Fn() -> Sandbox, what: &str) {
    for arguments in [
        &["fsck"][..],
        &["fsck", "--quick"],
        &["fsck", "--repair"],
        &["index", "rebuild"],
        &["index", "build"],
        &["search", "label"],
        &["find", "--prompt", "prompt 3"],
        &["unresolved"],
        &["stats"],
        &["gc"],
        &["backup", "b.vault"],
        &["rm", "4df877dec7f4", "--force"],
    ] {
        let sandbox = damaged();
        let ran = ended(&sandbox, arguments).unwrap_or_else(|| panic!("{what}: {arguments:?} does not end"));
        assert!((0..=2).contains(&ran.status), "{what}: {arguments:?} {}\n{}", ran.status, ran.stderr);
        if arguments[0] == "fsck" && !arguments.contains(&"--quick") {
            // A repair may have repaired all of it.
            assert!(!ran.stdout.is_empty(), "{what}: {arguments:?} {}", ran.stderr);
        }
    }
}

#[test]
fn differences_that_lead_in_a_circle_are_a_finding() {
    let bytes = bytes_of(&siblings());
    for change in [
        "UPDATE payload SET base = blob WHERE base IS NOT NULL",
        "UPDATE payload SET base = 5 - blob WHERE blob IN (2, 3)",
        "UPDATE payload SET base = 2, encoding = 3 WHERE base IS NULL",
    ] {
        let damaged = || {
            let sandbox = of_bytes(&bytes);
            sql(&sandbox).execute_batch(change).unwrap();
            sandbox
        };
        every_command_ends(&damaged, change);
        let report = super::findings(&damaged(), &[]);
        assert!(report.contains("payload: its delta base is not stored whole"), "{change}\n{report}");
    }
}

/// The vault with the number of the first row of `table` raised by so much where it stands in the page, out of order.
fn out_of_order(original: &Sandbox, table: &str, by: u8) -> Sandbox {
    let connection = sql(original);
    let page: usize = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0))
        .unwrap();
    let size: usize = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let mut bytes = bytes_of(original);
    let start = (page - 1) * size;
    assert_eq!(bytes[start], 0x0d, "the table has one page, with its rows");
    let cell = start + usize::from(u16::from_be_bytes([bytes[start + 8], bytes[start + 9]]));
    // The size of the row, in one byte or two, then its number.
    let at = cell + if bytes[cell] < 0x80 { 1 } else { 2 };
    bytes[at] += by;
    assert!(bytes[at] < 0x80);
    of_bytes(&bytes)
}

#[test]
fn rows_that_are_out_of_order_are_a_finding() {
    let original = examples();
    original.run(["index", "build"]).expect(0);
    for table in ["capture", "artifact", "blob", "payload", "mention_list", "search_capture", "journal"] {
        for by in [1, 2, 9, 100] {
            let damaged = || out_of_order(&original, table, by);
            if by == 2 {
                every_command_ends(&damaged, &format!("{table} {by}"));
                continue;
            }
            for arguments in [&["fsck", "--repair"][..], &["index", "build"]] {
                let what = format!("{table} {by}: {arguments:?}");
                let ran = ended(&damaged(), arguments).unwrap_or_else(|| panic!("{what} does not end"));
                assert!((0..=2).contains(&ran.status), "{what} {}", ran.stderr);
            }
        }
    }
}

#[test]
fn what_says_that_it_is_endless_is_a_finding() {
    let bytes = bytes_of(&{
        let sandbox = examples();
        sandbox.run(["index", "build"]).expect(0);
        sandbox
    });
    for change in [
        "UPDATE search_capture SET passages = 1 << 60 WHERE capture = 2",
        "UPDATE search_capture SET first = -(1 << 60) WHERE capture = 2",
        "UPDATE search_state SET capture = 9223372036854775807, next = 9223372036854775807",
        // No own digests; then, for the role 1, one run of 2^40 entries that are all the same, or one place apart.
        "UPDATE mention_list SET bytes = x'00 01 01 8080808080800100 00' WHERE capture = 2",
        "UPDATE mention_list SET bytes = x'00 01 01 8080808080800102 00' WHERE capture = 2",
        "INSERT INTO mention_segment VALUES (1, 24, 1 << 62), (2, 24, 1 << 62), (3, 24, 1 << 62), (4, 24, 1 << 62)",
        "UPDATE blob SET size = 1 << 60",
        "UPDATE journal SET seq = 9223372036854775807 WHERE seq = (SELECT max(seq) FROM journal)",
        "UPDATE artifact SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM artifact)",
        "UPDATE blob SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM blob)",
        "UPDATE capture SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM capture)",
    ] {
        let change =
            change.replace("x'00 01 01 ", "x'000101").replace("00 00'", "0000'").replace("02 00'", "0200'");
        let damaged = || {
            let sandbox = of_bytes(&bytes);
            sql(&sandbox).execute_batch(&change).unwrap();
            sandbox
        };
        every_command_ends(&damaged, &change);
    }
}
