//! Blobs that are uploaded in parts.

use super::{Behind, Fault, with_examples};
use crate::postgres::{Database, Place};

/// Bytes that cannot be compressed, and are more than two parts.
fn large() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..(17 << 20) / 8).flat_map(|_| next()).collect()
}

#[test]
fn large_blobs_come_back() {
    let (place, bytes) = (Place::directory(), large());
    let Some(database) = with_examples(&place) else { return };
    let document = database.sandbox.write("large", &bytes);
    database.run(["add", "--as", "attachment", document.to_str().unwrap()]).expect(0);
    expect_large(&database, &bytes);
}

/// Expects that the only large attachment comes back.
fn expect_large(database: &Database, bytes: &[u8]) {
    let mut client = database.schema.client();
    let row =
        client.query_one("SELECT encode(digest, 'hex'), size FROM blob ORDER BY size DESC LIMIT 1", &[]);
    let (hash, size): (String, i64) = row.map(|row| (row.get(0), row.get(1))).unwrap();
    assert_eq!(usize::try_from(size), Ok(bytes.len()));
    let output = database.sandbox.path("copy");
    database.run(["get", &hash, "-o", output.to_str().unwrap()]).expect(0);
    assert!(std::fs::read(output).unwrap() == bytes);
    database.run(["fsck", "--kind", "attachment"]).expect(0);
}

#[test]
fn clients_killed_within_an_upload_leave_nothing_visible() {
    let Some(behind) = Behind::new() else { return };
    let (before, bytes) = (behind.count(), large());
    let document = behind.attachment("large", &bytes);
    // The first part is there, and the client does not know.
    behind.kill_at(0, "PUT", &["add", "--as", "attachment", &document]);
    assert_eq!(behind.count(), before);
    behind.database.run(["gc"]).expect(0);
    behind.expect_intact();
    // What it was about to store can be stored, also if parts are refused.
    behind.proxy.spoil(2, "PUT", Fault::Status(503));
    behind.run(&["add", "--as", "attachment", &document]).expect(0);
    assert_eq!((behind.proxy.left(), behind.count()), (0, before + 1));
    expect_large(&behind.database, &bytes);
}
