//! Copies into and from a vault with object storage, which end in the middle.

use super::{Behind, Ran};
use crate::postgres::{Database, Place};
use crate::sandbox::session;

/// More captures than one transaction copies.
const CAPTURES: usize = 1_100;

fn on(behind: &Behind, vault: &str, arguments: &[&str]) -> Ran {
    behind.command(arguments).env("RUNVAULT_VAULT", vault).output().unwrap().into()
}

/// Expects an incomplete copy, and that it is a copy once it was continued.
fn expect_continues(behind: &Behind, [from, to]: [&str; 2]) {
    let incomplete = on(behind, to, &["find"]).expect(2);
    assert!(incomplete.stderr.contains("incomplete copy"), "{}", incomplete.stderr);
    let copied = on(behind, "none", &["copy", from, to, "--json"]).expect(0).json().remove(0);
    assert_eq!((&copied["mode"], &copied["is_complete"]), (&"verbatim".into(), &true.into()));
    for arguments in [&["find", "--json"][..], &["log", "--head"], &["tag", "list", "--json"]] {
        assert_eq!(on(behind, to, arguments).expect(0).stdout, on(behind, from, arguments).expect(0).stdout);
    }
    on(behind, to, &["fsck", "--full"]).expect(0);
}

#[test]
fn copies_that_are_killed_are_continued() {
    let (Some(place), Some(proxy)) = (Place::bucket(), super::S3Proxy::start()) else { return };
    let Some(mut database) = Database::new() else { return };
    database.address = place.address_with(&database.address);
    let behind = Behind { database, proxy };
    let sandbox = &behind.database.sandbox;
    for number in 0..CAPTURES {
        sandbox.write(&format!("d/{number:04}.json"), session(&format!("adapter-{number}"), &[("p", "r")]));
    }
    on(&behind, "v.vault", &["add", "--create", "d"]).expect(0);
    let address = behind.database.address.clone();
    // The bytes of the second transaction are there, but the catalog does not have them.
    behind.kill_at(1, "PUT", &["copy", "v.vault", &address]);
    expect_continues(&behind, ["v.vault", &address]);
    let near_the_end = u32::try_from(CAPTURES).unwrap() - 50;
    behind.kill_at(near_the_end, "GET", &["copy", &address, "back.vault"]);
    expect_continues(&behind, [&address, "back.vault"]);
}
