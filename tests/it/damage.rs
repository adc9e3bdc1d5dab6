//! Bytes that are not what they were are never returned as right.

use rusqlite::Connection;

use crate::sandbox::{Sandbox, session};

/// A vault with one session, changed by `sql` behind the program's back.
fn tampered(sql: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let exchange = [("hello", "hi there, this is a text that is long enough to be compressed ".repeat(20))];
    let exchange = exchange.map(|(prompt, response)| (prompt, response.leak() as &str));
    let core = sandbox.add([sandbox.write("s.json", session("a", &exchange))]).remove(0);
    let connection =
        rusqlite::Connection::open_with_flags(sandbox.vault(), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE);
    let connection: Connection = connection.unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0);
    (sandbox, core)
}

fn get_fails(sql: &str, because: &str) {
    let (sandbox, core) = tampered(sql);
    let ran = sandbox.run(["get", &core]).expect(2);
    assert!(ran.stdout.is_empty());
    assert!(ran.stderr.contains(&format!("the bytes stored for {core}")), "{}", ran.stderr);
    assert!(ran.stderr.contains(because), "{}", ran.stderr);
}

#[test]
fn changed_bytes() {
    let change = "UPDATE payload SET encoding = 0, bytes = CAST('{\"another\": \"document\"}' AS BLOB)";
    get_fails(change, "now has the hash sha256:");
}

#[test]
fn a_flipped_byte_in_a_compressed_payload() {
    for offset in [1, 5, 9, 20, 60] {
        let flip = format!(
            "UPDATE payload SET bytes = CAST(substr(bytes, 1, {offset} - 1) || \
             CASE WHEN substr(bytes, {offset}, 1) = x'41' THEN x'42' ELSE x'41' END || \
             substr(bytes, {offset} + 1) AS BLOB)"
        );
        get_fails(&flip, "damaged");
    }
}

#[test]
fn a_wrong_size_only_limits_what_is_decompressed() {
    get_fails("UPDATE blob SET size = 1", "cannot be decompressed");
    // The hash proves the bytes, and as much memory is used as they need.
    for size in ["1 << 50", "size + 1"] {
        let (sandbox, core) = tampered(&format!("UPDATE blob SET size = {size}"));
        let original = std::fs::read_to_string(sandbox.path("s.json")).unwrap();
        assert_eq!(sandbox.run(["get", &core]).expect(0).stdout, original);
        let checked = sandbox.run(["fsck"]).expect(1).stdout;
        assert!(checked.contains("size-wrong"), "{checked}");
    }
}

#[test]
fn bytes_that_are_gone() {
    get_fails("DELETE FROM payload", "has no stored bytes");
    get_fails(
        "UPDATE capture SET digest = (SELECT digest FROM blob), blob = NULL",
        "the capture has no members",
    );
}

#[test]
fn a_mention_whose_digest_changed_is_no_hit() {
    // The key is only a hint: a mention whose digest differs is no hit.
    let (sandbox, _) = tampered("UPDATE payload SET digests = zeroblob(length(digests))");
    assert!(sandbox.run(["find", "--prompt", "hello"]).expect(1).stdout.is_empty());
}

#[test]
fn a_newer_vault_is_refused_naming_both_versions() {
    let (sandbox, core) = tampered("DELETE FROM journal");
    let connection =
        Connection::open_with_flags(sandbox.vault(), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE);
    connection.unwrap().pragma_update(None, "user_version", 99).unwrap();
    let ran = sandbox.run(["get", &core]).expect(2);
    assert!(
        ran.stderr.contains("schema version 99, but this version of runvault supports versions up to 8"),
        "{}",
        ran.stderr
    );
}

/// A vault with two sessions of the same size, changed by `sql` behind the program's back.
fn mixed_up(sql: &str) -> (Sandbox, [String; 2]) {
    let sandbox = Sandbox::new();
    let one = sandbox.add([sandbox.write("1.json", session("one", &[("p", "r")]))]).remove(0);
    let two = sandbox.add([sandbox.write("2.json", session("two", &[("p", "r")]))]).remove(0);
    let connection =
        Connection::open_with_flags(sandbox.vault(), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE);
    connection.unwrap().execute_batch(sql).unwrap();
    (sandbox, [one, two])
}

#[test]
fn bytes_that_belong_to_something_else_are_never_returned() {
    for sql in [
        "UPDATE capture SET blob = 3 - blob",
        "UPDATE capture SET artifact = 3 - artifact",
        "UPDATE blob SET digest = zeroblob(32) WHERE id = 2; UPDATE blob SET digest = \
           (SELECT capture FROM journal WHERE seq = 2) WHERE id = 1; UPDATE capture SET blob = 1 WHERE id = 2;",
        "UPDATE payload SET blob = 3 WHERE blob = 1; UPDATE payload SET blob = 1 WHERE blob = 2; \
         UPDATE payload SET blob = 2 WHERE blob = 3",
        "UPDATE artifact SET core = zeroblob(32) WHERE id = 2; UPDATE artifact SET core = \
           (SELECT core FROM journal WHERE seq = 2) WHERE id = 1",
    ] {
        let (sandbox, cores) = mixed_up(&format!("PRAGMA foreign_keys = OFF; {sql}"));
        for (core, file) in cores.iter().zip(["1.json", "2.json"]) {
            let original = std::fs::read_to_string(sandbox.path(file)).unwrap();
            let ran = sandbox.run(["get", core]);
            assert!(ran.status != 0 || ran.stdout == original, "{sql}: {}", ran.stdout);
            let capture = runvault::digest::Digest::from_content(original.as_bytes()).to_string();
            let ran = sandbox.run(["get", &capture]);
            assert!(ran.status != 0 || ran.stdout == original, "{sql}: {}", ran.stdout);
        }
        let failures = cores.iter().filter(|core| sandbox.run(["get", core]).status != 0).count();
        assert!(failures > 0, "{sql}");
    }
}
