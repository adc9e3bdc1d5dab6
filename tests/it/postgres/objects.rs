//! Vaults with object storage beside a database, with the program.

#[path = "object_cache.rs"]
mod cache;
#[path = "copied_objects.rs"]
mod copied;
#[path = "large_objects.rs"]
mod large;
#[path = "losing_store.rs"]
mod losing_store;
#[path = "s3_proxy.rs"]
mod s3_proxy;

use std::path::Path;
use std::process::{Command, Stdio};

use losing_store::{Lapse, LosingStore};
use s3_proxy::{Fault, S3Proxy};

use super::{Database, Place};
use crate::sandbox::{Ran, repository};

/// A vault in a database with its bytes in a place.
fn with_examples(place: &Place) -> Option<Database> {
    let mut database = Database::new()?;
    database.address = place.address_with(&database.address);
    database.run(["init"]).expect(0);
    database.run(["add", repository("examples").to_str().unwrap()]).expect(0);
    Some(database)
}

fn session() -> String {
    repository("examples/session.json").to_str().unwrap().to_owned()
}

/// A run pack among the examples.
const RUN: &str = "3941d389b337";

fn run() -> Vec<u8> {
    std::fs::read(repository("examples/run.rpk")).unwrap()
}

/// Expects that all artifacts are read and verified.
fn verify_all(database: &Database) {
    let found = database.run(["find", "--json"]).expect(0).json();
    let hashes = found.iter().map(|artifact| artifact["core_hash"].as_str().unwrap().to_owned());
    database.run(std::iter::once("verify".to_owned()).chain(hashes)).expect(0);
}

fn places() -> impl Iterator<Item = Place> {
    [Some(Place::directory()), Place::bucket()].into_iter().flatten()
}

pub(super) fn objects(directory: &Path) -> Vec<std::path::PathBuf> {
    let directories = std::fs::read_dir(directory.join("blobs")).unwrap();
    let files = directories.flat_map(|directory| std::fs::read_dir(directory.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn what_goes_in_comes_out_of_object_storage() {
    for place in places() {
        let Some(database) = with_examples(&place) else { return };
        let found = database.run(["find", "--json"]).expect(0).json();
        assert!(found.len() > 3);
        verify_all(&database);
        let stored = database.run(["get", RUN]).expect(0);
        assert_eq!(stored.stdout.as_bytes(), run());
    }
}

#[test]
fn the_address_must_name_the_storage_of_the_vault() {
    for place in places() {
        let Some(mut database) = with_examples(&place) else { return };
        let address = std::mem::replace(&mut database.address, database.schema.address());
        let without = database.run(["find"]).expect(2);
        assert!(without.stderr.contains("must name with blobs="), "{}", without.stderr);
        let other = Place::directory();
        database.address = other.address_with(&database.schema.address());
        let elsewhere = database.run(["add", &session()]).expect(2);
        assert!(elsewhere.stderr.contains("the bytes of the vault are not here"), "{}", elsewhere.stderr);
        database.address = address;
        database.run(["find"]).expect(0);
    }
}

#[test]
fn removing_says_what_stays_in_object_storage() {
    let place = Place::directory();
    let Some(database) = with_examples(&place) else { return };
    let removed = database.run(["rm", RUN, "--force", "--with-containers"]).expect(0);
    assert!(removed.stderr.contains("removed bytes are still in object storage"), "{}", removed.stderr);
    assert!(removed.stderr.contains("versions of objects"), "{}", removed.stderr);
}

#[test]
fn damage_is_reported_with_the_object() {
    let place = Place::directory();
    let Some(database) = with_examples(&place) else { return };
    let mut names = Vec::new();
    for object in objects(place.path().unwrap()) {
        let mut bytes = std::fs::read(&object).unwrap();
        for byte in &mut bytes {
            *byte ^= 0x55;
        }
        std::fs::write(&object, bytes).unwrap();
        names.push(object.file_name().unwrap().to_str().unwrap().to_owned());
    }
    let damaged = database.run(["get", RUN]).expect(2);
    assert_eq!(damaged.stdout, "");
    assert!(names.iter().any(|name| damaged.stderr.contains(name)), "{}", damaged.stderr);
}

/// What a full check finds, with copies of what was read before: the type and the detail of each finding.
fn findings(database: &Database, copies: &Path) -> Vec<(String, String)> {
    let mut command = database.sandbox.command();
    command.env("RUNVAULT_VAULT", &database.address).env("RUNVAULT_OBJECT_CACHE", copies);
    command.args(["get", RUN]).output().unwrap();
    let mut command = database.sandbox.command();
    command.env("RUNVAULT_VAULT", &database.address).env("RUNVAULT_OBJECT_CACHE", copies);
    let ran = Ran::from(command.args(["fsck", "--full", "--json"]).output().unwrap());
    let found = ran.json();
    assert_eq!(ran.status, i32::from(!found.is_empty()), "{}", ran.stderr);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    found.iter().map(|finding| (text(&finding["finding"]), text(&finding["detail"]))).collect()
}

#[test]
fn a_check_names_lost_and_damaged_objects() {
    let (place, copies) = (Place::directory(), tempfile::tempdir().unwrap());
    let Some(database) = with_examples(&place) else { return };
    assert_eq!(findings(&database, copies.path()), []);
    for object in objects(place.path().unwrap()) {
        let intact = std::fs::read(&object).unwrap();
        let mut changed = intact.clone();
        changed[0] ^= 1;
        let shortened = &intact[..intact.len() - 1];
        for (bytes, expected) in [
            (None, "missing-bytes"),
            (Some(&changed[..]), "damaged-bytes"),
            (Some(shortened), "missing-bytes"),
        ] {
            match bytes {
                Some(bytes) => std::fs::write(&object, bytes).unwrap(),
                None => std::fs::remove_file(&object).unwrap(),
            }
            let found = findings(&database, copies.path());
            let name = object.file_name().unwrap().to_str().unwrap();
            let is_named = |(id, detail): &(String, String)| id == expected && detail.contains(name);
            assert!(found.iter().any(is_named), "{expected}: {found:?}");
        }
        std::fs::write(&object, &intact).unwrap();
    }
    // What was removed, and is to be deleted later, is no finding.
    database.run(["rm", RUN, "--force", "--with-containers"]).expect(0);
    assert_eq!(findings(&database, &copies.path().join("others")), []);
}

#[test]
fn a_check_finds_rows_of_objects_that_contradict_others() {
    let place = Place::directory();
    let Some(database) = with_examples(&place) else { return };
    let mut client = database.schema.client();
    for (change, back, (id, about)) in [
        (
            "UPDATE object SET size = size - 1",
            "UPDATE object SET size = size + 1",
            ("different-row", "table object"),
        ),
        (
            "UPDATE blob SET start = start + 1",
            "UPDATE blob SET start = start - 1",
            ("damaged-bytes", "blob sha256:"),
        ),
        (
            "UPDATE blob SET length = length - 1",
            "UPDATE blob SET length = length + 1",
            ("damaged-bytes", "blob sha256:"),
        ),
    ] {
        client.batch_execute(change).unwrap();
        let found = database.run(["fsck", "--full", "--json"]).expect(1).json();
        let is_named = |finding: &serde_json::Value| {
            let subject = ["about", "subject"].map(|member| finding[member].as_str().unwrap()).join(" ");
            finding["finding"] == id && subject.starts_with(about)
        };
        assert!(found.iter().any(is_named), "{change}: {found:#?}");
        client.batch_execute(back).unwrap();
        assert_eq!(database.run(["fsck", "--full", "--json"]).expect(0).stdout, "");
    }
}

#[test]
fn credentials_in_an_address_are_refused_and_not_shown() {
    let Some(mut database) = Database::new() else { return };
    for blobs in ["s3://ann:s3cret@bucket/x", "s3://bucket/x?key=s3cret", "s3cret://bucket"] {
        database.address = format!("{}&blobs={blobs}", database.schema.address());
        for arguments in [&["init"][..], &["find"], &["config"]] {
            let ran = database.run(arguments);
            assert!(
                !ran.stderr.contains("s3cret") && !ran.stdout.contains("s3cret"),
                "{} {}",
                ran.stderr,
                ran.stdout
            );
        }
        let refused = database.run(["init"]).expect(2);
        assert!(
            refused.stderr.contains("the address of the object storage is not valid"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn storage_where_several_writers_create_an_object_is_refused() {
    for lapse in [Lapse::Ignored, Lapse::Overtaken] {
        let Some(database) = Database::new() else { return };
        let store = LosingStore::start(lapse);
        let address = format!("{}&blobs=s3://bucket/prefix", database.schema.address());
        let mut command = database.sandbox.command();
        command.env("RUNVAULT_VAULT", &address).envs(store.settings()).arg("init");
        let refused = Ran::from(command.output().unwrap()).expect(2);
        let reason = "s3://bucket/prefix: of 8 writers that created an object at the same time, ";
        assert!(refused.stderr.contains(reason), "{lapse:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("needs a storage where exactly one does"), "{}", refused.stderr);
        // Nothing is left, neither there nor in the database.
        assert_eq!(store.objects(), [""; 0]);
        let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = $1";
        let schemas = database.schema.client().query_one(schemas, &[&database.schema.name()]).unwrap();
        assert_eq!(schemas.get::<_, i64>(0), 0);
        let (created, refused) = store.created();
        assert!(created == 40 && (refused > 0 || lapse == Lapse::Ignored), "{created} {refused}");
    }
}

/// A vault in a bucket behind a proxy, and the hash of an artifact in it.
struct Behind {
    database: Database,
    proxy: S3Proxy,
}

impl Behind {
    fn new() -> Option<Self> {
        let (place, proxy) = (Place::bucket()?, S3Proxy::start()?);
        Some(Self { database: with_examples(&place)?, proxy })
    }

    /// The program, with the proxy in the place of the server. Requests time out after a short time.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.database.sandbox.command();
        command.env("RUNVAULT_VAULT", &self.database.address);
        command.envs(std::env::vars().filter(|(name, _)| name.starts_with("AWS_")));
        command.env("AWS_ENDPOINT_URL", self.proxy.url()).env("AWS_TIMEOUT", "4 seconds");
        command.args(["--actor", "tester"]).args(arguments);
        command
    }

    /// Kills the program when an answer about an object is withheld, after `spared` others.
    fn kill_at(&self, spared: u32, method: &'static str, arguments: &[&str]) {
        self.proxy.spoil_after(spared, method, Fault::Silent);
        let mut program = self.command(arguments);
        let mut program = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.proxy.wait();
        program.kill().unwrap();
        program.wait().unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// Writes a new attachment.
    fn document(&self, name: &str) -> String {
        self.attachment(name, format!("the bytes of {name}").as_bytes())
    }

    fn attachment(&self, name: &str, bytes: &[u8]) -> String {
        self.database.sandbox.write(name, bytes).to_str().unwrap().to_owned()
    }

    fn count(&self) -> usize {
        self.database.run(["find", "--json"]).expect(0).json().len()
    }

    /// Expects that everything in the vault comes back, without the proxy.
    fn expect_intact(&self) {
        verify_all(&self.database);
    }
}

#[test]
fn reads_are_repeated_when_answers_are_spoiled() {
    let Some(behind) = Behind::new() else { return };
    for (count, fault) in [
        (2, Fault::Status(500)),
        (2, Fault::Status(503)),
        (1, Fault::Short),
        (1, Fault::Wrong),
        (1, Fault::Silent),
    ] {
        behind.proxy.spoil(count, "GET", fault);
        let read = behind.run(&["get", RUN]).expect(0);
        assert_eq!(read.stdout.as_bytes(), run(), "{fault:?}");
        assert_eq!(behind.proxy.left(), 0, "{fault:?}");
    }
}

#[test]
fn reads_that_stay_spoiled_are_errors_that_show_nothing_of_the_answer() {
    let Some(behind) = Behind::new() else { return };
    behind.proxy.spoil(u32::MAX, "GET", Fault::Wrong);
    let damaged = behind.run(&["get", RUN]).expect(2);
    assert!(damaged.stderr.contains("object s3://") && damaged.stdout.is_empty(), "{}", damaged.stderr);
    behind.proxy.spoil(u32::MAX, "GET", Fault::Status(403));
    let refused = behind.run(&["get", RUN]).expect(2);
    assert!(refused.stderr.contains("access is denied") && refused.stdout.is_empty(), "{}", refused.stderr);
    assert!(
        !refused.stderr.contains("s3cret") && !refused.stderr.contains("127.0.0.1"),
        "{}",
        refused.stderr
    );
    behind.proxy.spoil(0, "GET", Fault::Wrong);
    behind.run(&["get", RUN]).expect(0);
}

#[test]
fn writes_are_repeated_when_they_are_refused_or_answers_are_lost() {
    let Some(behind) = Behind::new() else { return };
    let before = behind.count();
    let faults = [
        (2, Fault::Status(500)),
        (2, Fault::Status(503)),
        (1, Fault::StatusAfter(500)),
        (1, Fault::Silent),
        (1, Fault::Short),
    ];
    for (number, (count, fault)) in faults.into_iter().enumerate() {
        let document = behind.document(&format!("document {number}"));
        behind.proxy.spoil(count, "PUT", fault);
        behind.run(&["add", "--as", "attachment", &document]).expect(0);
        assert_eq!(behind.proxy.left(), 0, "{fault:?}");
        assert_eq!(behind.count(), before + number + 1, "{fault:?}");
    }
    behind.expect_intact();
}

#[test]
fn nothing_is_stored_when_the_storage_refuses() {
    let Some(behind) = Behind::new() else { return };
    let before = behind.count();
    let document = behind.document("refused");
    behind.proxy.spoil(u32::MAX, "PUT", Fault::Status(403));
    let refused = behind.run(&["add", "--as", "attachment", &document]).expect(2);
    assert!(refused.stderr.contains("access is denied"), "{}", refused.stderr);
    assert_eq!(behind.count(), before);
    behind.expect_intact();
    behind.proxy.spoil(0, "PUT", Fault::Wrong);
    behind.run(&["add", "--as", "attachment", &document]).expect(0);
    assert_eq!(behind.count(), before + 1);
}

#[test]
fn clients_killed_after_an_upload_leave_nothing_visible() {
    let Some(behind) = Behind::new() else { return };
    let before = behind.count();
    for round in 0..3 {
        let document = behind.document(&format!("killed {round}"));
        // The object is there, and the client does not know.
        behind.kill_at(0, "PUT", &["add", "--as", "attachment", &document]);
        assert_eq!(behind.count(), before + round);
        behind.expect_intact();
        // What it was about to store can be stored.
        behind.run(&["add", "--as", "attachment", &document]).expect(0);
        assert_eq!(behind.count(), before + round + 1);
    }
    // The objects without a catalog are new, so that they could still be those of a client.
    behind.database.run(["gc"]).expect(0);
    behind.expect_intact();
}
