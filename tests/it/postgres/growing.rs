//! Documents that grow, in a database and beside it: only the longest version takes room.

use std::path::PathBuf;

use super::Database;
use crate::traces::{self, Record};

/// The versions of a trace, each one record longer than the one before, with their core hashes.
fn versions() -> Vec<(String, String)> {
    let lines = traces::steps("run", 24);
    let version = |length: usize| (traces::core(&lines[length - 1]), lines[..length].concat());
    (2..=lines.len()).map(version).collect()
}

/// A vault, and the versions that it has.
struct Growing {
    database: Database,
    versions: Vec<(String, String)>,
}

impl Growing {
    fn new(database: Database) -> Self {
        database.run(["init"]).expect(0);
        Self { database, versions: versions() }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        self.database.sandbox.write(name, text)
    }

    /// Adds each version by itself.
    fn add_each(self) -> Self {
        for (_, text) in &self.versions {
            let path = self.write("trace.ndjson", text);
            self.database.run(["add", "--allow-removed", path.to_str().unwrap()]).expect(0);
        }
        self
    }

    /// Adds all versions, and another one of the same run, with one command. The longest ones are first if it is `reversed`.
    fn add_all(self, reversed: bool) -> Self {
        for (number, (_, text)) in self.versions.iter().enumerate() {
            let place = if reversed { self.versions.len() - number } else { number };
            self.write(&format!("all/{place:02}.ndjson"), text);
        }
        let fork = traces::lines("run", &[Record::Step(0), Record::Failed]);
        self.write("all/fork.ndjson", &fork.concat());
        let directory = self.database.sandbox.path("all");
        self.database.run(["add", directory.to_str().unwrap()]).expect(0);
        self
    }

    fn remove(&mut self, version: usize) {
        let (core, _) = self.versions.remove(version);
        self.database.run(["rm", "--force", &core]).expect(0);
    }

    /// The sizes of the blobs that are stored whole and needed.
    fn whole(&self) -> Vec<i64> {
        let rows = self
            .database
            .schema
            .client()
            .query("SELECT size FROM blob WHERE base IS NULL AND condemned_at IS NULL ORDER BY size", &[]);
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    }

    fn longest(&self) -> i64 {
        i64::try_from(self.versions.last().unwrap().1.len()).unwrap()
    }

    /// Expects that every version is there, byte for byte, and that nothing is found.
    fn expect_intact(&self) {
        for (core, text) in &self.versions {
            assert_eq!(&self.database.run(["get", core]).expect(0).stdout, text);
        }
        self.database.run(["fsck"]).expect(0);
    }
}

#[test]
fn only_the_longest_version_takes_room_in_a_database() {
    let Some(database) = Database::new() else { return };
    let mut growing = Growing::new(database).add_each();
    assert_eq!(growing.whole(), [growing.longest()]);
    growing.expect_intact();
    growing.remove(3);
    assert_eq!(growing.whole(), [growing.longest()]);
    growing.remove(growing.versions.len() - 1);
    assert_eq!(growing.whole(), [growing.longest()]);
    growing.expect_intact();
    // What was removed can be added again, also after a longer version.
    let growing = Growing { versions: versions(), ..growing }.add_each();
    assert_eq!(growing.whole(), [growing.longest()]);
    growing.expect_intact();
}

#[test]
fn versions_that_are_added_together_take_the_room_of_the_longest() {
    for reversed in [false, true] {
        let Some(database) = Database::new() else { return };
        let growing = Growing::new(database).add_all(reversed);
        let whole = growing.whole();
        assert_eq!((whole.len(), whole.last()), (2, Some(&growing.longest())), "{whole:?}");
        growing.expect_intact();
    }
}

#[test]
fn versions_that_are_added_after_longer_ones_take_no_room() {
    let Some(database) = Database::new() else { return };
    let mut growing = Growing::new(database);
    growing.versions.reverse();
    let mut growing = growing.add_each();
    growing.versions.reverse();
    assert_eq!(growing.whole(), [growing.longest()]);
    growing.expect_intact();
}

#[cfg(feature = "objects")]
#[test]
fn shorter_versions_leave_object_storage_a_day_later() {
    use super::Place;
    use super::objects::objects;

    let place = Place::directory();
    let Some(mut database) = Database::new() else { return };
    database.address = place.address_with(&database.address);
    let mut growing = Growing::new(database).add_each();
    let count = || objects(place.path().unwrap()).len();
    let reclaim = |growing: &Growing| growing.database.run(["gc"]).expect(0);
    let (whole, written) = (growing.whole(), count());
    assert_eq!((whole, written), (vec![growing.longest()], growing.versions.len()));
    growing.expect_intact();
    reclaim(&growing);
    assert_eq!(count(), written, "others may still read them");
    // The longest one is needed no longer, the one before it is still there.
    growing.remove(growing.versions.len() - 1);
    assert_eq!(growing.whole(), [growing.longest()]);
    growing.expect_intact();
    growing.database.sandbox.set_clock("2026-03-03T12:00:00Z");
    reclaim(&growing);
    assert_eq!((growing.whole(), count()), (vec![growing.longest()], 1));
    growing.expect_intact();
    // The one before it is a part of it only.
    growing.remove(growing.versions.len() - 1);
    assert_eq!(count(), 2);
    growing.database.sandbox.set_clock("2026-03-05T12:00:00Z");
    reclaim(&growing);
    assert_eq!((growing.whole(), count()), (vec![growing.longest()], 1));
    growing.expect_intact();
}
