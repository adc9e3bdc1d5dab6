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
fn a_size_that_asks_for_too_much_memory() {
    get_fails("UPDATE blob SET size = 1 << 50", "cannot be decompressed");
}

#[test]
fn bytes_that_are_gone() {
    get_fails("DELETE FROM payload", "has no stored bytes");
    get_fails("DELETE FROM member", "the capture has no members");
}

#[test]
fn an_index_that_lost_its_keys_finds_nothing_wrong() {
    // The key is only a hint: a mention whose digest differs is no hit.
    let (sandbox, _) = tampered("UPDATE mention SET digest = zeroblob(32)");
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
        ran.stderr.contains("schema version 99, and this runvault understands versions up to 1"),
        "{}",
        ran.stderr
    );
}
