//! Bytes that are not what they were are never returned as right.

use std::path::Path;

use runvault::digest::Digest;
use rusqlite::Connection;

use crate::fsck::{examples, sql};
use crate::sandbox::{Sandbox, repository, session};

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
fn what_cannot_be_opened_is_not_referred_to_the_check() {
    let (sandbox, _) = tampered("UPDATE blob SET size = size");
    let bytes = std::fs::read(sandbox.vault()).unwrap();
    std::fs::write(sandbox.vault(), &bytes[..5_000]).unwrap();
    assert!(sandbox.run(["list"]).expect(2).stderr.contains("\"runvault fsck\""));
    for arguments in [&["fsck"][..], &["fsck", "--repair"]] {
        let refused = sandbox.run(arguments).expect(2).stderr;
        assert!(
            refused.contains("restore it from a backup") && !refused.contains("\"runvault fsck"),
            "{refused}"
        );
    }
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
        assert!(
            checked.contains("different-row blob sha256:") && checked.contains(": blob: size should be "),
            "{checked}"
        );
    }
}

#[test]
fn bytes_that_are_gone() {
    get_fails("DELETE FROM payload", "has no stored bytes");
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
        ran.stderr.contains("schema version 99, but this version of runvault supports versions up to 1"),
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
        sandbox.run(["fsck"]).expect(1);
    }
}

/// Changes of the catalog behind the program's back: rows that are gone, that have the values of others, and foreign ones.
pub(crate) const CATALOG: &[&str] = &[
    "DELETE FROM artifact",
    "DELETE FROM capture",
    "DELETE FROM kind",
    "DELETE FROM attribute; DELETE FROM attribute_value; DELETE FROM identity; DELETE FROM name_mention",
    "DELETE FROM mention_list; DELETE FROM mention_bucket; DELETE FROM mention_segment; DELETE FROM role",
    "DELETE FROM artifact; DELETE FROM journal; DELETE FROM tombstone",
    "DELETE FROM artifact; DELETE FROM capture; DELETE FROM kind",
    "UPDATE artifact SET core = zeroblob(32)",
    "UPDATE artifact SET kind = 1",
    "UPDATE artifact SET kind = (SELECT max(id) FROM kind)",
    "UPDATE artifact SET kind = 1000, added_at = -1 << 62, seen_at = 1 << 62, arrival = -1",
    "UPDATE capture SET artifact = 1",
    "UPDATE capture SET artifact = 1000",
    "UPDATE capture SET seal = zeroblob(16)",
    "UPDATE capture SET blob = 1",
    "UPDATE capture SET blob = (SELECT max(blob) FROM capture)",
    "UPDATE capture SET blob = (SELECT blob FROM member) WHERE id IN (SELECT capture FROM member)",
    "UPDATE capture SET warnings = '{', added_at = 1 << 62, seen_at = -1 << 62, source_entry = 1000",
    "UPDATE kind SET name = 'k' || id, member = NULL",
    "UPDATE kind SET id = id + 1000",
    "UPDATE journal SET actor = CAST(x'ff' AS TEXT)",
    "UPDATE attribute_value SET value = value || CAST(x'ff' AS TEXT)",
    "INSERT INTO artifact SELECT id + 1000, core, 1, added_at, seen_at, arrival, created_at FROM artifact",
    "INSERT INTO artifact SELECT id - 1000, core, kind, added_at, seen_at, arrival, created_at FROM artifact",
    "INSERT INTO capture (artifact, blob, size, added_at, seen_at, seal) SELECT artifact, 1, 1, 1, 1, zeroblob(16) FROM capture",
    "INSERT INTO signature SELECT id, 'wrong', CAST(x'ff' AS TEXT) FROM capture WHERE true
      ON CONFLICT DO UPDATE SET key_id = excluded.key_id",
];

#[test]
fn intact_bytes_are_returned_by_their_hash_whatever_the_catalog_says() {
    let whole = examples();
    let mut hashes = Vec::new();
    for artifact in whole.run(["find", "--json", "--all-versions"]).expect(0).json() {
        let core = artifact["core_hash"].as_str().unwrap().to_owned();
        let document = whole.run(["get", &core]);
        if document.status == 0 {
            let blob = Digest::from_content(document.stdout.as_bytes()).to_string();
            hashes.push((core, document.stdout.clone()));
            hashes.push((blob, document.stdout));
        } else {
            for member in ["run.json", "policy.json", "evidence.json"] {
                let bytes = whole.run(["get", &core, "--member", member]).expect(0).stdout;
                hashes.push((Digest::from_content(bytes.as_bytes()).to_string(), bytes));
            }
        }
    }
    assert!(hashes.len() > 12);
    for change in CATALOG {
        let sandbox = examples();
        sql(&sandbox).execute_batch(change).unwrap();
        for (hash, bytes) in &hashes {
            let ran = sandbox.run(["get", hash]);
            assert!(ran.status == 0, "{change}: {hash}: {}", ran.stderr);
            assert_eq!(&ran.stdout, bytes, "{change}: {hash}");
        }
    }
}

#[test]
fn the_files_of_a_pack_are_returned_by_its_hash_whatever_the_catalog_says() {
    for change in CATALOG {
        let sandbox = examples();
        let pack = "54490aab8b3f";
        let [shown] = &sandbox.run(["show", pack, "--json"]).expect(0).json()[..] else { panic!() };
        let core = shown["core_hash"].as_str().unwrap();
        sql(&sandbox).execute_batch(change).unwrap();
        sandbox.run(["get", core, "-o", "pack"]).expect(0);
        let read = |directory: &Path| std::fs::read(directory.join("run.json")).unwrap();
        assert!(read(&sandbox.path("pack")) == read(&repository("examples/pack")), "{change}");
        let evidence = sandbox.run(["get", core, "--member", "evidence.json"]).expect(0).stdout;
        assert_eq!(evidence, std::fs::read_to_string(repository("examples/pack/evidence.json")).unwrap());
    }
}

#[test]
fn bytes_that_were_removed_are_not_returned_by_their_hash() {
    let sandbox = examples();
    let [shown] = &sandbox.run(["show", "5c496a37feba", "--json"]).expect(0).json()[..] else { panic!() };
    let core = shown["core_hash"].as_str().unwrap();
    sandbox.run(["rm", core, "--force"]).expect(0);
    let ran = sandbox.run(["get", core]).expect(1);
    assert!(ran.stderr.contains("removed"), "{}", ran.stderr);
}
