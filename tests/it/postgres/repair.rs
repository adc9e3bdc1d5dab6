//! Damage that is repaired: what the journal and the stored bytes prove, and bytes that another copy has.

use std::path::{Path, PathBuf};

use postgres::Client;
use runvault::Vault;
use runvault::artifact::KeyRing;
use runvault::digest::CoreHash;
use runvault::vault::fsck::{Finding, FsckMonitor, FsckOptions, FsckReport};

use super::Database;
use super::damage::full;
use crate::sandbox::repository;

struct Silent;

impl FsckMonitor for Silent {
    fn found(&mut self, _: &Finding) {}

    fn checked(&mut self, _: CoreHash, _: u64) {}
}

/// A vault that is damaged and repaired again and again, and a copy of it in a file.
struct Repaired {
    database: Database,
    client: Client,
    copy: PathBuf,
}

impl Repaired {
    fn begin(database: Database) -> Self {
        let database = full(database);
        let copy = database.sandbox.path("copy.vault");
        database.run(["copy", &database.address, copy.to_str().unwrap()]).expect(0);
        let client = database.schema.client();
        Self { database, client, copy }
    }

    fn vault(&self) -> Vault {
        Vault::open(Path::new(&self.database.address)).unwrap()
    }

    fn check(&self) -> FsckReport {
        self.vault().fsck(&FsckOptions::default(), &mut Silent).unwrap()
    }

    /// Changes rows although others refer to them.
    fn damage(&mut self, sql: &str) {
        let sql =
            format!("SET session_replication_role = replica; {sql}; SET session_replication_role = origin");
        self.client.batch_execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Repairs the vault, and returns what was done, in the words of the journal.
    fn repair(&mut self, from: &[PathBuf]) -> Vec<String> {
        let last: i64 = self.client.query_one("SELECT max(seq) FROM journal", &[]).unwrap().get(0);
        let (vault, report) = (self.vault(), self.check());
        assert!(!report.is_clean());
        let done = vault.repair(&report, from, &KeyRing::default(), &mut Silent).unwrap();
        let sql =
            "SELECT entry::json ->> 'did' FROM journal WHERE seq > $1 AND action = 'repair' ORDER BY seq";
        let recorded: Vec<String> =
            self.client.query(sql, &[&last]).unwrap().iter().map(|row| row.get(0)).collect();
        let is_recorded = |did: &str| recorded.iter().any(|recorded| recorded == did);
        // Rebuilding is recorded by an entry of its own, and that of the search index by none.
        let others = ["rebuilt, with all indexes of artifacts", "rebuilt"];
        for repair in &done.repaired {
            assert!(is_recorded(repair.did) || others.contains(&repair.did), "{repair:?}");
        }
        done.repaired.into_iter().map(|repair| repair.did.to_owned()).collect()
    }

    /// Damages the vault, and expects that it is repaired completely, also by this step.
    fn expect_repaired(&mut self, sql: &str, from: &[PathBuf], did: &str) {
        self.damage(sql);
        let done = self.repair(from);
        assert!(done.iter().any(|done| done == did), "{sql}\n{done:?}");
        let left = self.check();
        assert!(left.is_clean(), "{sql}\n{done:?}\n{:#?}", left.findings);
    }

    fn answers(&self, questions: &[&[&str]]) -> Vec<String> {
        let answer = |question: &&[&str]| {
            let ran = self.database.run(*question);
            assert_eq!(ran.status, 0, "{question:?}: {}", ran.stderr);
            ran.stdout
        };
        questions.iter().map(answer).collect()
    }
}

/// Questions whose answers have the times at which artifacts were added.
const WITH_TIMES: &[&[&str]] = &[
    &["find", "--json", "--all-versions", "--sort", "core"],
    &["find", "--columns", "hash", "--sort", "added"],
    &["show", "5c496a37feba", "--json"],
    &["search", "--json", "ticket"],
    &["log", "--action", "add", "--json"],
];

/// Questions whose answers have no times at which artifacts were added.
const WITHOUT_TIMES: &[&[&str]] = &[
    &["get", "4df877dec7f4"],
    &["get", "54490aab8b3f", "--member", "run.json"],
    &["links", "5c496a37feba", "--json"],
    &["tombstones", "--json"],
    &["label", "list", "--json"],
    &["tag", "list", "--json"],
    &["pin", "list", "--json"],
];

const REBUILT: &str = "rebuilt, with all indexes of artifacts";
const JOURNAL: &str = "written from the journal again";

/// Damage that the vault itself has the remedy of, and a step of it.
const PROVEN: &[(&str, &str)] = &[
    ("DELETE FROM attribute; DELETE FROM mention_list; DELETE FROM mention_key; DELETE FROM edge", REBUILT),
    ("DELETE FROM role; DELETE FROM kind", REBUILT),
    ("DELETE FROM kind", JOURNAL),
    ("UPDATE mention_list SET digests = substr(digests, 2), entries = substr(entries, 2)", REBUILT),
    ("UPDATE capture SET seal = substr(sha256(seal), 1, 16), size = 1, warnings = 'x'", REBUILT),
    ("UPDATE blob SET size = size + 1 WHERE encoding = 0", REBUILT),
    ("UPDATE blob SET condemned_at = 1", "no longer marked for deletion"),
    ("UPDATE artifact SET kind = 1 + kind % 2 WHERE id = 1", REBUILT),
    ("UPDATE artifact SET core = sha256(core) WHERE id IN (1, 2)", JOURNAL),
    ("UPDATE capture SET digest = sha256(digest) WHERE id = 3", JOURNAL),
    ("UPDATE blob SET digest = sha256(digest) WHERE size > 1000", "given its hash again"),
    ("UPDATE capture SET artifact = 2 WHERE artifact = 1", JOURNAL),
    ("DELETE FROM artifact WHERE id = 1", JOURNAL),
    ("UPDATE capture SET id = -id WHERE id < 3; UPDATE capture SET id = 3 + id WHERE id < 0", JOURNAL),
    ("UPDATE member SET name = 'another' WHERE capture = 1", REBUILT),
    ("UPDATE capture SET added_at = 7, seen_at = 8", JOURNAL),
    ("UPDATE capture SET source_path = 'another'", JOURNAL),
    ("UPDATE capture SET signature = NULL, key_id = NULL", JOURNAL),
    ("UPDATE artifact SET added_at = 7, seen_at = 8, arrival = arrival + 1", JOURNAL),
    ("DELETE FROM tag; UPDATE note SET text = 'another'; UPDATE pin SET note = 'another'", JOURNAL),
    ("UPDATE note SET folded = ''", JOURNAL),
    ("UPDATE note SET artifact = 1000 WHERE artifact = 1", "removed rows that refer to missing ones"),
    ("DELETE FROM label; UPDATE link SET at = 7; UPDATE tag SET artifact = 1", JOURNAL),
    ("UPDATE tag SET artifact = 1000; DELETE FROM pin", JOURNAL),
    ("DELETE FROM tombstone WHERE digest = core; UPDATE tombstone SET reason = 'another'", JOURNAL),
    ("UPDATE journal SET at = 0 WHERE seq = 2", "given what the texts of its entries say"),
    ("UPDATE journal SET action = 'another' WHERE seq = 2", "given what the texts of its entries say"),
    ("UPDATE head SET chain = sha256(chain), seq = seq - 1", "set to the last entry"),
    ("DELETE FROM search_state", "rebuilt"),
    ("UPDATE search_passage SET words = 'another:1'", "rebuilt"),
];

/// Damage of captures, or that needs the bytes of another copy.
const LOST: &[(&str, &str)] = &[
    ("DELETE FROM capture WHERE id = 1", JOURNAL),
    ("UPDATE blob SET encoding = 7", "restored"),
    ("DELETE FROM blob", "restored"),
    ("UPDATE member SET blob = substr(blob, 2) WHERE capture = (SELECT min(id) FROM capture)", REBUILT),
    ("DELETE FROM member; DELETE FROM blob WHERE size > 1000", "restored"),
    ("DELETE FROM member; DELETE FROM capture; DELETE FROM artifact; DELETE FROM blob", "restored"),
];

/// Damages and repairs a vault in every way.
fn expect_repairs(repaired: &mut Repaired) {
    let (with_times, others) = (repaired.answers(WITH_TIMES), repaired.answers(WITHOUT_TIMES));
    for (sql, did) in PROVEN {
        repaired.expect_repaired(sql, &[], did);
    }
    assert!(repaired.answers(WITH_TIMES) == with_times);
    assert!(repaired.answers(WITHOUT_TIMES) == others);
    let copy = [repaired.copy.clone()];
    for (sql, did) in LOST {
        repaired.expect_repaired(sql, &copy, did);
    }
    assert!(repaired.answers(WITH_TIMES) == with_times);
    assert!(repaired.answers(WITHOUT_TIMES) == others);
}

#[test]
fn what_is_damaged_in_a_database_is_repaired() {
    let Some(database) = Database::new() else { return };
    let mut repaired = Repaired::begin(database);
    expect_repairs(&mut repaired);
    repaired.expect_repaired(
        "UPDATE blob SET bytes = 'other', base = NULL",
        &[repository("examples"), repaired.copy.clone()],
        "restored",
    );
}

#[cfg(feature = "objects")]
#[test]
fn what_is_damaged_in_object_storage_is_repaired() {
    let place = super::Place::directory();
    let Some(mut database) = Database::new() else { return };
    database.address = place.address_with(&database.address);
    let mut repaired = Repaired::begin(database);
    let (before, copy) = (repaired.answers(WITHOUT_TIMES), [repaired.copy.clone()]);
    let objects = || super::objects::objects(place.path().unwrap());
    for object in objects() {
        std::fs::write(object, "other").unwrap();
    }
    repaired.expect_repaired("UPDATE object SET size = 0", &copy, "restored");
    // Objects in which nothing is intact are not needed any more.
    repaired.database.run(["gc"]).expect(0);
    for object in objects() {
        assert_ne!(std::fs::read(object).unwrap(), b"other");
    }
    for object in objects() {
        std::fs::remove_file(object).unwrap();
    }
    repaired.expect_repaired("UPDATE blob SET start = start + 1", &copy, "restored");
    repaired.expect_repaired("DELETE FROM object", &[], REBUILT);
    repaired.expect_repaired("DELETE FROM blob", &copy, "restored");
    assert!(repaired.answers(WITHOUT_TIMES) == before);
}

#[test]
fn repairs_are_printed_and_what_remains_is_said() {
    let Some(database) = Database::with_examples() else { return };
    assert_eq!(database.run(["fsck", "--repair"]).expect(0).stdout, "");
    let mut client = database.schema.client();
    client
        .batch_execute("UPDATE blob SET bytes = 'other', base = NULL, encoding = 0; DELETE FROM attribute")
        .unwrap();
    let remaining = database.run(["fsck", "--repair"]).expect(1);
    assert!(remaining.stdout.contains("damaged-bytes blob sha256:"), "{}", remaining.stdout);
    assert!(remaining.stdout.contains("What to do: "), "{}", remaining.stdout);
    let examples = repository("examples");
    let repaired = database.run(["fsck", "--repair", "--from", examples.to_str().unwrap()]).expect(0);
    let is_printed = |line: &str| line.starts_with("repaired blob ") && line.ends_with(": restored");
    assert!(repaired.stdout.lines().any(is_printed), "{}", repaired.stdout);
    assert_eq!(database.run(["fsck", "--full"]).expect(0).stdout, "");
    // If the end of the journal is lost, what it says is not the last word.
    for core in ["4df877dec7f4", "5c496a37feba"] {
        database.run(["tag", "set", core, "best"]).expect(0);
    }
    let tags = database.run(["tag", "list", "--json"]).expect(0).stdout;
    client.batch_execute("DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)").unwrap();
    let lost = database.run(["fsck", "--repair"]).expect(1);
    assert!(lost.stdout.contains("broken-chain table head: "), "{}", lost.stdout);
    assert!(lost.stdout.contains("different-row tag best: tag: "), "{}", lost.stdout);
    assert_eq!(database.run(["tag", "list", "--json"]).expect(0).stdout, tags);
}

/// Expects that additions restore what they find damaged, and that nothing else is wrong after that.
fn expect_restored(repaired: &mut Repaired) {
    let others = repaired.answers(WITHOUT_TIMES);
    for sql in [
        "UPDATE blob SET encoding = 7",
        "UPDATE blob SET bytes = 'other', object = NULL, start = NULL, length = NULL, base = NULL",
        "UPDATE capture SET seal = substr(sha256(seal), 1, 16)",
    ] {
        repaired.damage(sql);
        let add =
            repaired.database.run(["add".as_ref(), "--json".as_ref(), repository("examples").as_os_str()]);
        let added = add.expect(1).json();
        let outcomes: Vec<&str> = added.iter().filter_map(|line| line["outcome"].as_str()).collect();
        assert!(outcomes.contains(&"restored"), "{sql}: {outcomes:?}");
        assert_eq!(repaired.answers(WITHOUT_TIMES), others, "{sql}");
    }
    // The files of a capture follow from its blob.
    for sql in
        ["DELETE FROM member", "UPDATE member SET blob = (SELECT digest FROM blob ORDER BY digest LIMIT 1)"]
    {
        repaired.damage(sql);
        assert_eq!(repaired.answers(WITHOUT_TIMES), others, "{sql}");
        assert!(repaired.repair(&[]).contains(&REBUILT.to_owned()), "{sql}");
        let left = repaired.check().findings;
        assert!(left.iter().all(|finding| finding.subject.name() != "member"), "{sql}\n{left:#?}");
    }
}

#[test]
fn additions_restore_what_is_damaged_in_a_database() {
    let Some(database) = Database::new() else { return };
    expect_restored(&mut Repaired::begin(database));
}

#[cfg(feature = "objects")]
#[test]
fn additions_restore_what_is_damaged_in_object_storage() {
    let place = super::Place::directory();
    let Some(mut database) = Database::new() else { return };
    database.address = place.address_with(&database.address);
    let mut repaired = Repaired::begin(database);
    let others = repaired.answers(WITHOUT_TIMES);
    for object in super::objects::objects(place.path().unwrap()) {
        std::fs::write(object, "other").unwrap();
    }
    let add = repaired.database.run(["add".as_ref(), repository("examples").as_os_str()]).expect(1);
    assert!(add.stderr.contains(" restored"), "{}", add.stderr);
    assert!(repaired.answers(WITHOUT_TIMES) == others);
    expect_restored(&mut repaired);
}
