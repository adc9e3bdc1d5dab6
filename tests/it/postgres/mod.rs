//! Vaults in a PostgreSQL database, with the program. Without a database, the tests say that they are skipped.

mod backup;
mod damage;
mod faults;
mod growing;
#[cfg(feature = "objects")]
mod objects;
#[cfg(feature = "objects")]
mod place;
mod pooler;
mod proxy;
mod repair;
mod roles;
mod round_trips;
mod schema;
mod search;
mod server;
#[cfg(all(feature = "objects", feature = "server"))]
mod serving;
mod sql;
mod tls;

use std::ffi::OsStr;
use std::path::Path;

#[cfg(feature = "objects")]
pub(crate) use place::Place;
pub(crate) use schema::Schema;

use crate::sandbox::{Ran, Sandbox, repository};

const CLOCK: &str = "2026-03-01T12:00:00Z";

/// A sandbox, and the address of a vault in a database that does not exist yet.
struct Database {
    sandbox: Sandbox,
    address: String,
    schema: Schema,
}

impl Database {
    fn new() -> Option<Self> {
        let schema = Schema::new()?;
        Some(Self { sandbox: Sandbox::at(CLOCK), address: schema.address(), schema })
    }

    /// One with a vault that has the examples.
    fn with_examples() -> Option<Self> {
        let database = Self::new()?;
        database.run(["init"]).expect(0);
        database.run([OsStr::new("add"), repository("examples").as_os_str()]).expect(0);
        Some(database)
    }

    /// Adds every artifact of a directory by itself to both vaults, with the same outcome. How many transactions an addition
    /// of several takes, and so what the journal has of artifacts that are seen again, depends on how fast files are read.
    fn add_each(&self, directory: &Path) {
        let verify = [OsStr::new("verify"), OsStr::new("--json"), directory.as_os_str()];
        for verified in self.run_on_file(verify).json() {
            self.compare(&["add", "--json", verified["path"].as_str().unwrap()]);
        }
    }

    /// Runs a command on both vaults, which must print the same with the same status, and returns the status.
    fn compare(&self, arguments: &[&str]) -> i32 {
        let (expected, found) = (self.run_on_file(arguments), self.run(arguments));
        assert_eq!(
            (found.status, &found.stdout),
            (expected.status, &expected.stdout),
            "{arguments:?}\n{}\n{}",
            expected.stderr,
            found.stderr
        );
        expected.status
    }

    /// Copies the vault in the file into the database, which is faster than adding each of its artifacts by itself.
    fn copy_file(&self) {
        let file = self.sandbox.vault();
        self.run_on_file(["copy", file.to_str().unwrap(), &self.address]).expect(0);
    }

    /// Runs the program on the vault in the database.
    fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        let mut command = self.sandbox.command();
        command.env("RUNVAULT_VAULT", &self.address).args(["--actor", "tester"]).args(arguments);
        // The credentials of the bucket of the tests, if there is one.
        command.envs(std::env::vars().filter(|(name, _)| name.starts_with("AWS_")));
        command.output().unwrap().into()
    }

    /// Runs the program on the vault in a file.
    fn run_on_file<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        let mut command = self.sandbox.command();
        command.args(["--actor", "tester"]).args(arguments).output().unwrap().into()
    }
}

#[cfg(not(feature = "objects"))]
#[test]
fn object_storage_needs_a_feature() {
    let sandbox = Sandbox::at(CLOCK);
    let mut command = sandbox.command();
    command.env("RUNVAULT_VAULT", "postgres:///runs?blobs=s3://ann:s3cret@bucket/prefix").arg("init");
    let refused = Ran::from(command.output().unwrap()).expect(2);
    assert!(
        refused.stderr.contains("built without support for bytes in object storage"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
}

#[test]
fn a_vault_is_created_once_in_a_database() {
    let Some(database) = Database::new() else { return };
    let missing = database.run(["find"]).expect(2);
    assert!(missing.stderr.contains("there is no vault at postgresql://"), "{}", missing.stderr);
    let created = database.run(["init"]).expect(0);
    assert!(created.stderr.contains("created postgresql://"), "{}", created.stderr);
    let again = database.run(["init"]).expect(2);
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    assert_eq!(database.run(["find", "--json"]).expect(1).stdout, "");
}

#[test]
fn adding_creates_a_vault_in_a_database_if_asked() {
    let Some(database) = Database::new() else { return };
    let example = repository("examples/session.json");
    let example = example.to_str().unwrap();
    database.run(["add", "--create", "--dry-run", example]).expect(0);
    database.run(["find"]).expect(2);
    database.run(["add", example]).expect(2);
    database.run(["add", "--create", example]).expect(0);
    let found = database.run(["find", "--json"]).expect(0).json();
    assert_eq!(found.len(), 1);
}

/// Commands whose answers are the same, wherever the vault is.
const COMMANDS: &[(&[&str], i32)] = &[
    (&["find", "--json"], 0),
    (&["find"], 0),
    (&["find", "--sort", "tokens", "--json"], 0),
    (&["find", "--prompt", "Summarise ticket 4711 in one sentence.", "--json"], 0),
    (&["list", "--json"], 0),
    (&["list", "--group-by", "day", "--json"], 0),
    (&["stats", "--by", "model"], 0),
    (&["show", "3941d389b337", "--history"], 0),
    (&["show", "3941d389b337", "--json"], 0),
    (&["show", "4df877dec7f4"], 0),
    (&["show", "54490aab8b3f"], 0),
    (&["get", "4df877dec7f4"], 0),
    (&["get", "54490aab8b3f", "--member", "run.json"], 0),
    (&["links", "5c496a37feba", "--json"], 0),
    (&["links", "4df877dec7f4", "--depth", "3"], 0),
    (&["path", "54490aab8b3f", "4df877dec7f4"], 0),
    (&["unresolved", "--json"], 0),
    (&["forks"], 0),
    (&["view", "3941d389b337"], 0),
    (&["diff", "4df877dec7f4", "103ef1c54b58"], 1),
    (&["verify", "4df877dec7f4", "3941d389b337", "54490aab8b3f"], 0),
    (&["tag", "set", "4df877dec7f4", "best"], 0),
    (&["tag", "list", "--json"], 0),
    (&["note", "set", "4df877dec7f4", "Ein Ärgernis"], 0),
    (&["find", "--note", "ärger", "--json"], 0),
    (&["pin", "add", "5c496a37feba"], 0),
    (&["pin", "list"], 0),
    (&["link", "add", "4df877dec7f4", "about", "5c496a37feba"], 0),
    (&["rm", "5c496a37feba"], 1),
    (&["rm", "--force", "--reason", "names a customer", "7c8de5910f63"], 0),
    (&["tombstones", "--json"], 0),
    (&["show", "7c8de5910f63"], 1),
    (&["log", "--json"], 0),
    (&["log", "--head"], 0),
];

#[test]
fn commands_answer_the_same_as_on_a_file() {
    let Some(database) = Database::new() else { return };
    database.run(["init"]).expect(0);
    database.add_each(&repository("examples"));
    for (arguments, status) in COMMANDS {
        assert_eq!(database.compare(arguments), *status, "{arguments:?}");
    }
}

#[test]
fn the_corpus_is_stored_alike_in_a_database_and_in_a_file() {
    let Some(database) = Database::new() else { return };
    database.run(["init"]).expect(0);
    let corpus = repository("tests/corpus");
    let add = [OsStr::new("add"), OsStr::new("--json"), corpus.as_os_str()];
    let (expected, found) = (database.run_on_file(add), database.run(add));
    assert_eq!((found.status, &found.stdout), (expected.status, &expected.stdout), "{}", found.stderr);
    assert!(expected.stdout.lines().count() > 200);
    for arguments in [["unresolved", "--json"], ["forks", "--json"]] {
        database.compare(&arguments);
    }
}

#[test]
fn the_corpus_has_the_same_journal_in_a_database_and_in_a_file() {
    let Some(database) = Database::new() else { return };
    database.run(["init"]).expect(0);
    database.add_each(&repository("tests/corpus"));
    for arguments in [["find", "--json"], ["log", "--head"]] {
        database.compare(&arguments);
    }
}

#[test]
fn what_a_database_cannot_do_is_said() {
    let Some(database) = Database::with_examples() else { return };
    let ran = database.run(["backup", "copy.vault"]).expect(2);
    assert!(ran.stderr.contains("does not support"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    let removed = database.run(["rm", "--force", "7c8de5910f63"]).expect(0);
    assert!(
        removed.stderr.contains("may still be in the files of the database server"),
        "{}",
        removed.stderr
    );
    database.run(["stats"]).expect(0);
}

#[test]
fn passwords_are_in_no_output() {
    let Some(database) = Database::with_examples() else { return };
    let with_password = format!("{}&password=s3cret", database.address);
    let elsewhere = "postgres://ann:s3cret@127.0.0.1:1/runs".to_owned();
    let invalid = "postgres://ann:s3cret@127.0.0.1:port/runs".to_owned();
    let example = repository("examples/session.json");
    for address in [&with_password, &elsewhere, &invalid] {
        for arguments in [
            &["-v", "find"][..],
            &["-v", "add", example.to_str().unwrap()],
            &["init"],
            &["stats"],
            &["fsck"],
            &["config", "list"],
        ] {
            let mut command = database.sandbox.command();
            let ran: Ran = command.env("RUNVAULT_VAULT", address).args(arguments).output().unwrap().into();
            assert!(!ran.stdout.contains("s3cret"), "{arguments:?}: {}", ran.stdout);
            assert!(!ran.stderr.contains("s3cret"), "{arguments:?}: {}", ran.stderr);
        }
    }
    let mut command = database.sandbox.command();
    let refused: Ran = command.env("RUNVAULT_VAULT", elsewhere).arg("find").output().unwrap().into();
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("postgresql://ann@127.0.0.1:1/runs"), "{}", refused.stderr);
}

#[test]
fn addresses_in_place_of_paths_are_refused_without_their_passwords() {
    let Some(database) = Database::with_examples() else { return };
    for address in ["postgres://ann:s3cret@127.0.0.1:1/runs", "postgres:/ann:s3cret@db/runs"] {
        for arguments in [
            &["add", address][..],
            &["get", "7c8de5910f63", "-o", address],
            &["fsck", "--repair", "--from", address],
            &["--vault", address, "find"],
        ] {
            let refused = database.run(arguments).expect(2);
            assert!(!refused.stderr.contains("s3cret"), "{arguments:?}: {}", refused.stderr);
            assert!(!refused.stdout.contains("s3cret"), "{arguments:?}: {}", refused.stdout);
        }
    }
}

#[test]
fn another_database_or_an_address_of_a_file_is_a_source_of_repairs() {
    let Some(database) = Database::with_examples() else { return };
    let Some(other) = Database::with_examples() else { return };
    let file = other.sandbox.path("other.vault");
    other.run(["copy", &other.address, file.to_str().unwrap()]).expect(0);
    for source in [other.address.clone(), format!("sqlite:{}", file.display())] {
        database.schema.client().batch_execute("UPDATE blob SET bytes = 'x', base = NULL").unwrap();
        database.run(["fsck", "--repair", "--from", &source]).expect(0);
    }
}

#[test]
fn a_missing_database_is_reported_with_how_to_create_it() {
    let Some(database) = Database::new() else { return };
    let address = database.address.replacen("/runvault?", "/no_such_database?", 1);
    if address == database.address {
        return;
    }
    let refused = database.run(["--vault", &address, "init"]).expect(2);
    assert!(refused.stderr.contains("createdb"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("runvault init"), "{}", refused.stderr);
}

#[cfg(unix)]
#[test]
fn a_password_file_that_others_can_read_is_reported() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = Sandbox::at(CLOCK);
    let file = sandbox.write("passwords", "*:*:*:*:s3cret");
    for (mode, is_reported) in [(0o600, false), (0o644, true)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = sandbox.command();
        command.env("RUNVAULT_VAULT", "postgres://ann@127.0.0.1:1/runs").env("PGPASSFILE", &file);
        let refused: Ran = command.env_remove("PGPASSWORD").arg("find").output().unwrap().into();
        assert_eq!(refused.status, 2);
        assert_eq!(refused.stderr.contains("must be 0600 or less"), is_reported, "{}", refused.stderr);
        assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
    }
}

#[test]
fn damaged_bytes_are_reported() {
    let Some(database) = Database::with_examples() else { return };
    let changed = database
        .schema
        .client()
        .execute("UPDATE blob SET encoding = 0, bytes = 'other', base = NULL WHERE size > 100", &[])
        .unwrap();
    assert!(changed > 0);
    let ran = database.run(["get", "4df877dec7f4"]).expect(2);
    assert!(ran.stderr.contains("damaged") && ran.stderr.contains("now has the hash"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
}
