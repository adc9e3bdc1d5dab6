//! Bytes beside the database.

#[path = "../../../../tests/it/postgres/place.rs"]
mod place;

use std::path::PathBuf;

use chrono::TimeDelta;
pub(super) use place::Place;

use super::Schema;
use crate::digest::CoreHash;
use crate::storage::conformance::kinds::{TestDocument, core, note};
use crate::storage::conformance::{TestVault, acting, second, start};
use crate::storage::interface::Filter;
use crate::storage::objects::{ObjectAddress, ObjectName, ObjectStore, delete_unfinished};
use crate::storage::postgres::PostgresStorage;
use crate::storage::{CreationPolicy, ErrorKind, PutOutcome, ReclaimResult, StorageError};

impl Place {
    /// Returns an empty vault in a new schema, or `None` if there is no database.
    pub(super) fn vault(self) -> Option<TestVault> {
        let schema = Schema::new()?;
        let storage = PostgresStorage::create_without_race(&self.address_with(&schema.address()));
        let storage = acting(storage.unwrap());
        Some(TestVault { storage: Box::new(storage), _cleanup: Some(Box::new((schema, self))) })
    }

    /// Returns the files of objects with blobs.
    fn objects(&self) -> Vec<PathBuf> {
        let blobs = self.path().unwrap().join("blobs");
        let Ok(directories) = std::fs::read_dir(blobs) else { return Vec::new() };
        let files = directories.flat_map(|directory| std::fs::read_dir(directory.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    }
}

/// A vault whose bytes are in a directory, and what it consists of.
struct DirectoryVault {
    vault: TestVault,
    place: Place,
    schema: Schema,
}

impl DirectoryVault {
    fn new() -> Option<Self> {
        let (schema, place) = (Schema::new()?, Place::directory());
        let address = place.address_with(&schema.address());
        let storage = acting(PostgresStorage::open(&address, None, CreationPolicy::New).unwrap());
        Some(Self { vault: TestVault { storage: Box::new(storage), _cleanup: None }, place, schema })
    }

    fn address(&self) -> String {
        self.place.address_with(&self.schema.address())
    }

    /// Returns the bytes of a document, or why there are none.
    fn bytes(&self, core: CoreHash) -> Result<Vec<u8>, StorageError> {
        let snapshot = self.vault.snapshot();
        let capture = snapshot.captures(&[core]).unwrap().remove(0).remove(0).capture;
        let member = snapshot.members(core, capture).unwrap().remove(0);
        snapshot.read(core, capture, member.blob)
    }

    fn documents(&self, count: usize) -> Vec<CoreHash> {
        let batch = (0..count).map(|number| TestDocument::new(&format!("d{number}")).admit(note())).collect();
        assert_eq!(self.vault.add_all(batch), vec![PutOutcome::Added; count]);
        (0..count).map(|number| core(note(), &format!("d{number}"))).collect()
    }
}

fn failure(address: &str) -> StorageError {
    PostgresStorage::open(address, None, CreationPolicy::Never).unwrap_err()
}

#[test]
fn a_batch_is_one_object() {
    let Some(fixture) = DirectoryVault::new() else { return };
    let cores = fixture.documents(50);
    assert_eq!(fixture.place.objects().len(), 1);
    assert!(cores.iter().all(|core| fixture.bytes(*core).is_ok()));
    // Nothing is uploaded for what is there.
    fixture.vault.add_note(&TestDocument::new("d7"));
    assert_eq!(fixture.place.objects().len(), 1);
}

#[test]
fn address_and_catalog_agree_about_object_storage() {
    let Some(fixture) = DirectoryVault::new() else { return };
    let database = fixture.schema.address();
    let error = failure(&database);
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("blobs="), "{error}");
    // Other storage is neither used nor claimed.
    let other = Place::directory();
    let error = failure(&other.address_with(&database));
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("not here"), "{error}");
    assert!(other.objects().is_empty() && std::fs::read_dir(other.path().unwrap()).unwrap().next().is_none());
    // Storage that belongs to another vault.
    let second = Schema::new().unwrap();
    let error =
        PostgresStorage::open(&fixture.place.address_with(&second.address()), None, CreationPolicy::New)
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
    assert_eq!(failure(&second.address()).kind(), ErrorKind::Missing, "nothing was created");
    let third = DirectoryVault::new().unwrap();
    assert_eq!(failure(&fixture.place.address_with(&third.schema.address())).kind(), ErrorKind::Exists);
    // A vault whose bytes are in the database.
    PostgresStorage::open(&second.address(), None, CreationPolicy::New).unwrap();
    let error = failure(&other.address_with(&second.address()));
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[test]
fn creating_is_completed_if_it_was_interrupted_before_the_claim() {
    let Some(fixture) = DirectoryVault::new() else { return };
    fixture.schema.client().batch_execute("UPDATE blob_store SET is_claimed = false").unwrap();
    let marker = fixture.place.path().unwrap().join("runvault-vault");
    let content = std::fs::read(&marker).unwrap();
    std::fs::remove_file(&marker).unwrap();
    PostgresStorage::open(&fixture.address(), None, CreationPolicy::Never).unwrap();
    assert_eq!(std::fs::read(&marker).unwrap(), content);
    // Or before the catalog knew of the claim.
    fixture.schema.client().batch_execute("UPDATE blob_store SET is_claimed = false").unwrap();
    PostgresStorage::open(&fixture.address(), None, CreationPolicy::Never).unwrap();
    std::fs::remove_file(&marker).unwrap();
    assert_eq!(failure(&fixture.address()).kind(), ErrorKind::Invalid);
}

#[test]
fn damaged_and_missing_objects_are_reported_with_their_names() {
    let Some(fixture) = DirectoryVault::new() else { return };
    let core = fixture.documents(3)[1];
    let object = fixture.place.objects().remove(0);
    let name = object.file_name().unwrap().to_str().unwrap();
    let whole = std::fs::read(&object).unwrap();
    let mut damaged = whole.clone();
    for byte in &mut damaged {
        *byte ^= 1;
    }
    for content in [damaged, whole[..1].to_vec(), Vec::new()] {
        std::fs::write(&object, content).unwrap();
        let error = fixture.bytes(core).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    std::fs::remove_file(&object).unwrap();
    let error = fixture.bytes(core).unwrap_err();
    assert!(error.kind() == ErrorKind::Damaged && error.to_string().contains(name), "{error}");
    std::fs::write(&object, whole).unwrap();
    fixture.bytes(core).unwrap();
}

#[test]
fn objects_are_deleted_a_day_after_nothing_needs_them() {
    let Some(fixture) = DirectoryVault::new() else { return };
    let maintenance = &fixture.vault.storage;
    let cores = fixture.documents(2);
    let hours = |hours: i64| start() + TimeDelta::hours(hours);
    fixture.vault.remove_at(cores[0], None, hours(1)).unwrap();
    // The pack has another blob.
    assert_eq!(maintenance.reclaim(hours(50)).unwrap(), ReclaimResult::default());
    fixture.vault.remove_at(cores[1], None, hours(60)).unwrap();
    assert_eq!(maintenance.reclaim(hours(83)).unwrap(), ReclaimResult::default());
    assert_eq!(fixture.place.objects().len(), 1);
    let reclaimed = maintenance.reclaim(hours(84)).unwrap();
    assert_eq!((reclaimed.blobs, reclaimed.orphans, fixture.place.objects().len()), (2, 0, 0));
    let rows = fixture
        .schema
        .client()
        .query_one("SELECT (SELECT count(*) FROM blob) + (SELECT count(*) FROM object)", &[]);
    assert_eq!(rows.unwrap().get::<_, i64>(0), 0);
    assert_eq!(fixture.vault.actions().last().unwrap(), "gc");
    assert_eq!(maintenance.reclaim(hours(200)).unwrap(), ReclaimResult::default());
}

#[test]
fn adding_again_takes_back_the_condemnation() {
    let Some(fixture) = DirectoryVault::new() else { return };
    let core = fixture.documents(1)[0];
    fixture.vault.remove(core);
    let admitted = TestDocument::new("d0").admit(note());
    fixture.vault.put(vec![admitted], crate::storage::RemovedPolicy::Readmit, second(60)).unwrap();
    assert_eq!(fixture.place.objects().len(), 1, "nothing is uploaded again");
    assert_eq!(
        fixture.vault.storage.reclaim(start() + TimeDelta::days(9)).unwrap(),
        ReclaimResult::default()
    );
    fixture.bytes(core).unwrap();
}

#[test]
fn orphans_are_deleted_when_they_are_old() {
    let Some(fixture) = DirectoryVault::new() else { return };
    let maintenance = &fixture.vault.storage;
    let core = fixture.documents(1)[0];
    let object = fixture.place.objects().remove(0);
    let orphan = |name: &str| {
        let path = fixture.place.path().unwrap().join("blobs").join(&name[..2]).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "interrupted").unwrap();
        path
    };
    let (new, old) = (orphan(&"ab".repeat(16)), orphan(&"cd".repeat(16)));
    let foreign = orphan("notes.txt");
    // What a program writes that is killed before the file gets its name.
    let (staged, begun) =
        (orphan(&format!("{}#1", "cd".repeat(16))), orphan(&format!("{}#1", "ab".repeat(16))));
    for path in [&old, &object, &foreign, &staged] {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(file.metadata().unwrap().modified().unwrap() - std::time::Duration::from_hours(25))
            .unwrap();
    }
    let reclaimed = maintenance.reclaim(start()).unwrap();
    assert_eq!((reclaimed.orphans, reclaimed.blobs, reclaimed.bytes_before), (2, 0, 22));
    assert!(new.exists() && begun.exists() && foreign.exists());
    assert!(!old.exists() && !staged.exists());
    fixture.bytes(core).unwrap();
    assert_eq!(fixture.vault.snapshot().count(&Filter::default()).unwrap(), 1);
}

#[test]
fn an_interrupted_deletion_is_completed() {
    let Some(fixture) = DirectoryVault::new() else { return };
    let maintenance = &fixture.vault.storage;
    let core = fixture.documents(1)[0];
    fixture.vault.remove(core);
    // The rows of the blobs are deleted, and the object is not.
    fixture.schema.client().batch_execute("DELETE FROM blob").unwrap();
    assert!(maintenance.reclaim(second(1)).unwrap().changed);
    assert!(fixture.place.objects().is_empty());
    assert_eq!(maintenance.reclaim(second(2)).unwrap(), ReclaimResult::default());
}

#[test]
fn new_object_storage_is_tested_with_writers_that_race() {
    for place in [Some(Place::directory()), Place::bucket()].into_iter().flatten() {
        let Some(schema) = Schema::new() else { return };
        let address = place.address_with(&schema.address());
        // Processes that create the vault at the same time find each other's claim.
        std::thread::scope(|scope| {
            let create = || PostgresStorage::open(&address, None, CreationPolicy::IfMissing).unwrap();
            let others: Vec<_> = (0..3).map(|_| scope.spawn(create)).collect();
            for other in others {
                other.join().unwrap();
            }
        });
        PostgresStorage::open(&address, None, CreationPolicy::Never).unwrap();
    }
}

#[test]
fn parts_of_an_upload_that_was_not_completed_are_deleted() {
    let Some(place) = Place::bucket() else { return };
    let address = place.address_with("").trim_start_matches("&blobs=").to_owned();
    let store = ObjectStore::open(&ObjectAddress::parse(&address).unwrap()).unwrap();
    let (name, hour) = (ObjectName::new().unwrap(), TimeDelta::hours(1));
    store.begin_upload(name, &vec![7; 5 << 20]).unwrap();
    let exists = || store.read(name, 0..1).unwrap().is_some() || !store.list(name.0[0]).unwrap().is_empty();
    assert!(!exists());
    let (now, count) = (store.now().unwrap(), |latest| delete_unfinished(&store, latest).unwrap().count);
    assert_eq!(count(now - hour), 0);
    assert_eq!((count(now + hour), count(now + hour)), (1, 0));
    // An upload that was completed is none.
    let bytes = vec![7; 17 << 20];
    store.write(name, &[&bytes]).unwrap();
    assert_eq!((count(now + hour), store.read(name, 0..17 << 20).unwrap() == Some(bytes)), (0, true));
    store.delete_object(name).unwrap();
    assert!(!exists());
}
