//! Roles that may only read, and standbys, which cannot write.

use std::ffi::OsStr;
use std::sync::Once;

use super::Database;
use crate::sandbox::{READING, Ran, repository};

/// A role with privileges for the tables of one vault, which may not create temporary tables. It is dropped with the vault.
struct Role {
    database: Database,
    name: String,
}

impl Role {
    /// A vault with the examples and a search index, and a role with these privileges for its tables.
    fn with(privileges: &str) -> Option<Self> {
        let database = Database::with_examples()?;
        database.run(["index", "build"]).expect(0);
        let name = format!("role_{}", database.schema.name());
        let schema = database.schema.name();
        // By default, every role may create temporary tables. Roles that revoke it at the same time disturb each other.
        static REVOKED: Once = Once::new();
        let revoke = "DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END $$";
        REVOKED.call_once(|| database.schema.client().batch_execute(revoke).unwrap());
        let grants = format!(
            "CREATE ROLE {name} LOGIN;
             GRANT USAGE ON SCHEMA {schema} TO {name}; GRANT {privileges} ON ALL TABLES IN SCHEMA {schema} TO {name}"
        );
        database.schema.client().batch_execute(&grants).unwrap();
        Some(Self { database, name })
    }

    fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        let address = self.database.address.replace("user=runvault", &format!("user={}", self.name));
        let mut command = self.database.sandbox.command();
        command.env("RUNVAULT_VAULT", address).args(["--actor", "tester"]).args(arguments);
        command.output().unwrap().into()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let Self { database, name } = self;
        let drop = format!("DROP OWNED BY {name}; DROP ROLE {name}");
        database.schema.client().batch_execute(&drop).unwrap();
    }
}

#[test]
fn a_role_that_may_only_read_can_use_every_read_command() {
    let Some(reader) = Role::with("SELECT") else { return };
    for (arguments, status) in READING {
        let (expected, found) = (reader.database.run(*arguments), reader.run(*arguments));
        assert_eq!(found.status, *status, "{arguments:?}: {}{}", found.stdout, found.stderr);
        assert_eq!(found.stdout, expected.stdout, "{arguments:?}");
    }
    let refused = reader.run([OsStr::new("add"), repository("examples/session.json").as_os_str()]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("permission denied"), "{}", refused.stderr);
}

#[test]
fn a_role_that_may_only_read_can_query_every_view() {
    let Some(reader) = Role::with("SELECT") else { return };
    let tables = reader.run(["sql", "--tables", "--json"]).expect(0).json();
    assert!(!tables.is_empty());
    for table in tables {
        let name = table["name"].as_str().unwrap();
        for query in [
            format!("SELECT * FROM {name} ORDER BY 1, 2, 3"),
            format!(
                "WITH own AS (SELECT * FROM {name}) SELECT count(*) FROM own WHERE artifact > CAST(:one AS integer)"
            ),
        ] {
            let mut arguments = vec!["sql", "--json", query.as_str()];
            if query.contains(":one") {
                arguments.extend(["--param", "one=1"]);
            }
            let (expected, found) = (reader.database.run(&arguments), reader.run(&arguments));
            assert_eq!(
                (found.status, &found.stdout),
                (expected.status, &expected.stdout),
                "{}",
                found.stderr
            );
        }
    }
    reader.run(["sql", "EXPLAIN SELECT * FROM mentions"]).expect(0);
}

#[test]
fn a_check_says_what_its_role_does_not_permit_to_check() {
    let Some(reader) = Role::with("SELECT") else { return };
    let checked = reader.run(["fsck"]).expect(0);
    assert_eq!(checked.stdout, "");
    let expected = "not checked: the definitions of tables, indexes and views: permission denied";
    assert!(checked.stderr.contains(expected), "{}", checked.stderr);
    assert!(checked.stderr.contains("0 findings, 1 check not possible"), "{}", checked.stderr);
}

#[test]
fn a_role_that_writes_needs_no_other_privileges() {
    let Some(writer) = Role::with("SELECT, INSERT, UPDATE, DELETE") else { return };
    let session =
        writer.database.sandbox.write("new.json", crate::sandbox::session("new", &[("p", "quokka")]));
    let added = writer.run([OsStr::new("add"), OsStr::new("--json"), session.as_os_str()]).expect(0).json();
    let core = added[0]["core_hash"].as_str().unwrap();
    for arguments in [
        &["search", "quokka"][..],
        &["tag", "set", core, "new"],
        &["label", "set", core, "a=b"],
        &["note", "set", core, "n"],
        &["pin", "add", core],
        &["pin", "remove", core],
        &["link", "add", core, "about", "5c496a37feba"],
        &["rm", "--force", core],
        &["gc"],
        &["forget", "--keep-last", "1", "--kind", "session"],
        &["fsck"],
    ] {
        writer.run(arguments).expect(0);
    }
}
