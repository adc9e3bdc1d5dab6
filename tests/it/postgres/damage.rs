//! Rows that are changed behind the program's back: each change is found, or makes no difference to any answer.
//!
//! The tables and columns are those that the database names, so that new ones are covered from their first day. Nothing in
//! the database refuses a change: its constraints are dropped.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use postgres::Client;
use runvault::Vault;
use runvault::artifact::KeyRing;
use runvault::digest::{CoreHash, DigestPrefix};
use runvault::vault::fsck::{Finding, FsckMonitor, FsckOptions};

use super::Database;
use crate::sandbox::{repository, session};

/// Changes of columns that no answer depends on, and why. The answers are compared all the same.
const WITHOUT_A_MEANING: &[(&str, &str)] = &[
    ("search_state.version", "an index of another version is rebuilt before it is searched"),
    ("blob_store.url", "it is for messages only"),
    (
        "blob_store.is_claimed",
        "when the vault is opened, the claim is found in the storage and recorded again",
    ),
    ("object.size", "a blob that is stored twice at the same time makes an object larger than its blobs"),
    ("blob.condemned_at", "bytes are only deleted if nothing needs them, whatever the mark says"),
];

/// How many rows of each table are changed: the first, the last and those between them. As for vaults in files,
/// `RUNVAULT_DAMAGE_ROWS` says how many.
fn sample(count: i64) -> BTreeSet<i64> {
    let sample = std::env::var("RUNVAULT_DAMAGE_ROWS").map_or(2, |rows| rows.parse().unwrap());
    match sample {
        0 => (0..count).collect(),
        1 => BTreeSet::from([0]),
        _ => (0..sample).map(|at| (count - 1) * at / (sample - 1)).collect(),
    }
}

struct Collect(Vec<Finding>);

impl FsckMonitor for Collect {
    fn found(&mut self, finding: &Finding) {
        self.0.push(finding.clone());
    }

    fn checked(&mut self, _: CoreHash, _: u64) {}
}

/// A vault with rows in every table, which can be damaged and restored.
struct Damaged {
    database: Database,
    client: RefCell<Client>,
    tables: BTreeMap<String, Vec<Column>>,
    /// What is found because there are no constraints.
    findings: BTreeSet<String>,
    bytes: Vec<(DigestPrefix, Vec<u8>)>,
}

struct Column {
    name: String,
    data_type: String,
}

impl Damaged {
    /// A vault with its bytes in the database.
    fn new() -> Option<Self> {
        Some(Self::begin(full(Database::new()?)))
    }

    #[cfg(feature = "objects")]
    fn with_objects(place: &super::Place) -> Option<Self> {
        let mut database = Database::new()?;
        database.address = place.address_with(&database.address);
        Some(Self::begin(full(database)))
    }

    fn begin(database: Database) -> Self {
        let mut client = database.schema.client();
        let tables = tables(&mut client);
        for table in tables.keys() {
            // They end with the connection.
            client.batch_execute(&format!("CREATE TEMP TABLE copy_{table} AS TABLE {table}")).unwrap();
        }
        drop_constraints(&mut client, &tables);
        let mut damaged = Self {
            database,
            client: RefCell::new(client),
            tables,
            findings: BTreeSet::new(),
            bytes: Vec::new(),
        };
        damaged.findings = damaged.findings().unwrap();
        let other = damaged.findings.iter().find(|finding| !finding.starts_with("schema-differs"));
        assert_eq!(other, None);
        let vault = damaged.vault().unwrap();
        let found = damaged.database.run(["find", "--json", "--all-versions"]).expect(0).json();
        for artifact in found {
            let prefix: DigestPrefix = artifact["core_hash"].as_str().unwrap().parse().unwrap();
            // Directories have no single bytes.
            if let Ok(bytes) = vault.get(&prefix) {
                damaged.bytes.push((prefix, bytes));
            }
        }
        assert!(damaged.bytes.len() > 5);
        damaged
    }

    fn vault(&self) -> Result<Vault, String> {
        Vault::open(Path::new(&self.database.address)).map_err(|error| error.to_string())
    }

    /// What a full check finds, without the times and numbers that details name.
    fn findings(&self) -> Result<BTreeSet<String>, String> {
        let mut found = Collect(Vec::new());
        let report =
            self.vault()?.fsck(&FsckOptions::default(), &mut found).map_err(|error| error.to_string())?;
        assert_eq!(report.findings.len(), found.0.len());
        let shown =
            |finding: &Finding| format!("{} | {} | {}", finding.info.id, finding.subject, finding.detail);
        Ok(found.0.iter().map(shown).collect())
    }

    /// What a full check finds beyond what the missing constraints are. That it cannot look is a line too.
    fn new_findings(&self) -> Vec<String> {
        match self.findings() {
            Ok(findings) => findings.difference(&self.findings).cloned().collect(),
            Err(error) => vec![format!("error | {error}")],
        }
    }

    fn execute(&self, sql: &str) -> u64 {
        self.client.borrow_mut().execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    fn restore_table(&self, table: &str) {
        let sql = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM copy_{table}");
        self.client.borrow_mut().batch_execute(&sql).unwrap();
    }

    fn restore(&self) {
        self.tables.keys().for_each(|table| self.restore_table(table));
    }

    /// The artifacts whose bytes are given back, and are not theirs.
    fn wrong_bytes(&self) -> Vec<String> {
        let Ok(vault) = self.vault() else { return Vec::new() };
        let is_wrong =
            |(prefix, bytes): &&(DigestPrefix, Vec<u8>)| vault.get(prefix).is_ok_and(|got| got != *bytes);
        self.bytes.iter().filter(is_wrong).map(|(prefix, _)| format!("{prefix:?}")).collect()
    }

    /// Every answer of the program to questions that differ from kind to kind and from table to table.
    fn answers(&self) -> Vec<(i32, String)> {
        let answer = |arguments: &&[&str]| {
            let ran = self.database.run(*arguments);
            assert!((0..=2).contains(&ran.status), "{arguments:?}: {}", ran.stderr);
            if arguments[0] != "index" {
                return (ran.status, ran.stdout);
            }
            // How much space the server takes for the same rows is its own affair.
            let status = ran.json().into_iter().map(|mut line| {
                line.as_object_mut().unwrap().remove("bytes");
                line.to_string()
            });
            (ran.status, status.collect())
        };
        QUESTIONS.iter().map(answer).collect()
    }
}

/// Questions whose answers depend on every table.
const QUESTIONS: &[&[&str]] = &[
    &["find", "--json", "--all-versions"],
    &["find", "--json", "--sort", "created", "--by", "created"],
    &["find", "--json", "--prompt", "prompt 3"],
    &["find", "--json", "--attr", "interactions>=2"],
    &["find", "--json", "--attr", "mode=record"],
    &["find", "--json", "--run-id", "run-triage-4711"],
    &["find", "--json", "--note", "a note"],
    &["find", "--json", "--label", "branch=main"],
    &["find", "--json", "--signature", "verified"],
    &["find", "--json", "--mentions", "3941d389b337"],
    &["list", "--json"],
    &["show", "5c496a37feba", "--json"],
    &["show", "7c8de5910f63", "--json"],
    &["show", "3941d389b337", "--json"],
    &["links", "5c496a37feba", "--json"],
    &["links", "4df877dec7f4", "--depth", "3"],
    &["unresolved", "--json"],
    &["forks", "--json"],
    &["tombstones", "--json"],
    &["log", "--json"],
    &["log", "--action", "add", "--json"],
    &["label", "list", "--json"],
    &["tag", "list", "--json"],
    &["search", "--all", "--json", "prompt"],
    &["index", "status", "--json"],
];

/// A vault with rows in every table of a database.
pub(super) fn full(mut database: Database) -> Database {
    database.run(["init"]).expect(0);
    database.run(["add".as_ref(), repository("examples").as_os_str()]).expect(0);
    for adapter in ["a", "b"] {
        let exchanges: Vec<(String, String)> =
            (0..20).map(|n| (format!("prompt {n}"), format!("response {n} {}", "text ".repeat(n)))).collect();
        let exchanges: Vec<(&str, &str)> =
            exchanges.iter().map(|(prompt, response)| (prompt.as_str(), response.as_str())).collect();
        let document = database.sandbox.write(&format!("{adapter}.json"), session(adapter, &exchanges));
        database.run(["add".as_ref(), document.as_os_str()]).expect(0);
    }
    let keys = crate::signatures::ring(&database.sandbox, "keys.toml", &[("ours", "secret")]);
    let run = database.sandbox.write("signed.rpk", crate::signatures::signed("ours", "secret"));
    database
        .run(["add".as_ref(), run.as_os_str(), "--signing-key-file".as_ref(), keys.as_os_str()])
        .expect(0);
    database.sandbox.set_clock("2026-03-02T12:00:00Z");
    let (contract, trace, small) = ("5c496a37feba", "7c8de5910f63", "103ef1c54b58");
    for arguments in [
        &["tag", "set", trace, "golden"][..],
        &["tag", "set", contract, "agreed"],
        &["note", "set", contract, "A note"],
        &["note", "set", trace, "another"],
        &["pin", "add", contract, "--note", "keep"],
        &["pin", "add", trace],
        &["link", "add", contract, "governs", trace, "--note", "agreed"],
        &["link", "add", trace, "follows", contract],
        &["rm", small, "--force", "--reason", "small"],
        &["label", "set", contract, "commit=4f2a", "branch=main"],
        &["label", "set", trace, "commit=4f2a", "branch=fix"],
    ] {
        database.run(arguments).expect(0);
    }
    database.run(["index", "build"]).expect(0);
    database
}

fn tables(client: &mut Client) -> BTreeMap<String, Vec<Column>> {
    let sql = "SELECT c.table_name::text, c.column_name::text, c.data_type::text FROM information_schema.columns c
                 JOIN information_schema.tables t USING (table_schema, table_name)
                WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' ORDER BY c.ordinal_position";
    let mut tables: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    for row in client.query(sql, &[]).unwrap() {
        tables.entry(row.get(0)).or_default().push(Column { name: row.get(1), data_type: row.get(2) });
    }
    tables
}

fn drop_constraints(client: &mut Client, tables: &BTreeMap<String, Vec<Column>>) {
    let sql = "SELECT format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', n.conrelid::regclass, n.conname)
                 FROM pg_constraint n WHERE n.connamespace = current_schema()::regnamespace AND n.contype IN ('f', 'p', 'u', 'c')
                ORDER BY n.contype <> 'f'";
    for row in client.query(sql, &[]).unwrap() {
        client.batch_execute(row.get(0)).unwrap();
    }
    for (table, columns) in tables {
        for Column { name, .. } in columns {
            client.batch_execute(&format!("ALTER TABLE {table} ALTER \"{name}\" DROP NOT NULL")).unwrap();
        }
    }
}

/// Other values than that of a column.
fn others(Column { name, data_type }: &Column) -> Vec<String> {
    let name = format!("\"{name}\"");
    match data_type.as_str() {
        "bytea" => vec![
            format!(
                "CASE WHEN coalesce(octet_length({name}), 0) = 0 THEN '\\x01'::bytea
                      ELSE set_byte({name}, octet_length({name}) - 1, get_byte({name}, octet_length({name}) - 1) # 1) END"
            ),
            format!("substr({name}, 1, octet_length({name}) - 1)"),
            "NULL".to_owned(),
        ],
        "text" => vec![format!("coalesce({name}, '') || 'x'"), "''".to_owned(), "NULL".to_owned()],
        "boolean" => vec![format!("NOT {name}"), "NULL".to_owned()],
        "bigint" | "integer" | "smallint" => {
            vec![format!("coalesce({name}, 0) + 1"), format!("coalesce({name}, 0) - 1"), "NULL".to_owned()]
        }
        "tsvector" => vec!["'another:1'::tsvector".to_owned(), "NULL".to_owned()],
        other => panic!("the tests know no other values of the type {other}"),
    }
}

/// Every change of a row of a table, each as a description and a statement.
fn changes(table: &str, columns: &[Column], row: i64) -> Vec<(String, String)> {
    let at = format!("ctid = (SELECT ctid FROM {table} ORDER BY {table}::text OFFSET {row} LIMIT 1)");
    let mut changes = vec![
        (table.to_owned(), format!("DELETE FROM {table} WHERE {at}")),
        (table.to_owned(), format!("INSERT INTO {table} SELECT * FROM {table} WHERE {at}")),
    ];
    for column in columns {
        for other in others(column) {
            let name = &column.name;
            let sql = format!(
                "UPDATE {table} SET \"{name}\" = {other} WHERE {at} AND \"{name}\" IS DISTINCT FROM ({other})"
            );
            changes.push((format!("{table}.{name}"), sql));
        }
    }
    changes
}

/// Changes every table that `is_wanted` of a vault with its bytes in the database.
fn check(is_wanted: impl Fn(&str) -> bool) {
    let Some(damaged) = Damaged::new() else { return };
    check_tables(&damaged, is_wanted);
}

/// Changes every table that `is_wanted`.
fn check_tables(damaged: &Damaged, is_wanted: impl Fn(&str) -> bool) {
    let before = damaged.answers();
    let (mut seen, mut wrong, mut harmless) = (0, Vec::new(), BTreeSet::new());
    for (table, columns) in damaged.tables.iter().filter(|(table, _)| is_wanted(table)) {
        let count: i64 = damaged
            .client
            .borrow_mut()
            .query_one(&format!("SELECT count(*) FROM {table}"), &[])
            .unwrap()
            .get(0);
        // Bytes are in the database; those beside it have their own test.
        assert!(count > 0 || ["blob_store", "object"].contains(&table.as_str()), "{table} has no rows");
        if count == 0 {
            continue;
        }
        let rows = sample(count);
        for (what, sql) in rows.iter().flat_map(|row| changes(table, columns, *row)) {
            if damaged.execute(&sql) == 0 {
                continue;
            }
            seen += 1;
            if damaged.new_findings().is_empty() {
                let answers = damaged.answers();
                let different: Vec<_> = QUESTIONS
                    .iter()
                    .zip(before.iter().zip(&answers))
                    .filter(|(_, (one, other))| one != other)
                    .collect();
                if !different.is_empty() {
                    wrong.push(format!("{sql}\n    answered otherwise: {:?}", different[0].0));
                }
                harmless.insert(what);
            }
            wrong.extend(
                damaged.wrong_bytes().into_iter().map(|core| format!("{sql}\n    wrong bytes of {core}")),
            );
            damaged.restore_table(table);
        }
    }
    assert_eq!(damaged.new_findings(), [""; 0]);
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
    let known = |what: &String| WITHOUT_A_MEANING.iter().any(|(known, _)| known == what);
    let unknown: Vec<_> = harmless.iter().filter(|what| !known(what)).collect();
    assert!(unknown.is_empty(), "not noticed, and no answer depends on it: {unknown:?}");
    assert!(seen > 10);
}

#[test]
fn a_change_of_tables_from_artifacts_to_edges_is_found_or_makes_no_difference() {
    check(|table| table < "head");
}

#[test]
fn a_change_of_tables_from_the_head_to_links_is_found_or_makes_no_difference() {
    check(|table| ("head".."member").contains(&table));
}

#[test]
fn a_change_of_tables_from_members_to_pins_is_found_or_makes_no_difference() {
    check(|table| ("member".."role").contains(&table));
}

#[test]
fn a_change_of_tables_from_roles_to_the_version_is_found_or_makes_no_difference() {
    check(|table| table >= "role");
}

#[cfg(feature = "objects")]
#[test]
fn a_change_of_rows_about_objects_is_found_or_makes_no_difference() {
    let place = super::Place::directory();
    let Some(damaged) = Damaged::with_objects(&place) else { return };
    check_tables(&damaged, |table| ["blob", "blob_store", "object"].contains(&table));
}

/// What is changed, and the beginnings of lines that say so, in which digests have twelve digits.
const DAMAGE: &[(&str, &[&str])] = &[
    ("UPDATE blob SET bytes = 'other'", &["damaged-bytes | blob sha256:1296f0687666 | "]),
    ("UPDATE blob SET encoding = 7", &["damaged-bytes | blob sha256:1296f0687666 | "]),
    (
        "UPDATE blob SET size = size + 1 WHERE encoding = 0",
        &["different-row | blob sha256:0d8fcaf1fdda | blob: size should be 41 but is 42"],
    ),
    (
        "DELETE FROM blob WHERE size > 1000",
        &[
            "missing-bytes | blob sha256:75fd2afea79f | ",
            "surplus-row | table capture | 8 of its rows refer to rows of blob",
            "surplus-row | table member | 9 of its rows refer to rows of blob",
        ],
    ),
    (
        "INSERT INTO blob SELECT * FROM blob",
        &["surplus-row | table blob | 2 of its rows have the key \\x0d8fcaf1"],
    ),
    (
        "DELETE FROM member WHERE name = 'policy.json'",
        &[
            "missing-row | artifact sha256:54490aab8b3f | member policy.json of capture sha256:566427045898",
            "surplus-row | blob sha256:0d8fcaf1fdda | blob: no capture has it",
        ],
    ),
    (
        "UPDATE artifact SET core = sha256(core) WHERE id = 1",
        &[
            "different-row | capture sha256:1296f0687666 | artifact: core: ",
            "different-row | capture sha256:1296f0687666 | capture: seal is not that of its artifact",
            "missing-row | artifact sha256:5c496a37feba | artifact: ",
            "missing-row | capture sha256:1296f0687666 | capture: ",
        ],
    ),
    (
        "UPDATE artifact SET kind = 1 + kind % 2 WHERE id = 1",
        &[
            "different-row | artifact sha256:5c496a37feba | artifact: kind differs from the journal",
            "different-row | capture sha256:1296f0687666 | artifact: kind: it is a contract",
        ],
    ),
    (
        "UPDATE artifact SET arrival = arrival + 1",
        &["different-row | artifact sha256:5c496a37feba | artifact: arrival differs from the journal"],
    ),
    (
        "UPDATE artifact SET created_at = 0",
        &[
            "different-row | artifact sha256:5c496a37feba | artifact: created_at does not match its attributes",
        ],
    ),
    (
        "INSERT INTO artifact SELECT * FROM artifact WHERE id = 2",
        &[
            "surplus-row | artifact sha256:4df877dec7f4 | artifact: ",
            "surplus-row | table artifact | 2 of its rows have the key 2",
        ],
    ),
    (
        "DELETE FROM artifact WHERE id = 1",
        &[
            "missing-row | artifact sha256:5c496a37feba | artifact: ",
            "missing-row | capture sha256:1296f0687666 | capture: ",
            "surplus-row | table capture | 1 of its rows refer to rows of artifact",
        ],
    ),
    (
        "DELETE FROM capture WHERE id = 1",
        &[
            "missing-row | capture sha256:1296f0687666 | capture: ",
            "surplus-row | artifact sha256:5c496a37feba | attribute ",
        ],
    ),
    (
        "UPDATE capture SET artifact = 2 WHERE artifact = 1",
        &[
            "different-row | capture sha256:1296f0687666 | capture: seal is not that of its artifact",
            "missing-row | capture sha256:1296f0687666 | capture: ",
            "surplus-row | capture sha256:1296f0687666 | capture: ",
        ],
    ),
    (
        "UPDATE capture SET seal = substr(sha256(seal), 1, 16)",
        &["different-row | capture sha256:1296f0687666 | capture: seal is not that of its artifact"],
    ),
    (
        "UPDATE capture SET size = size + 1",
        &[
            "different-row | capture sha256:1296f0687666 | capture: size differs from the journal",
            "different-row | capture sha256:1296f0687666 | capture: size should be 835 but is 836",
        ],
    ),
    (
        "UPDATE capture SET warnings = '[]x'",
        &["different-row | capture sha256:1296f0687666 | capture: warnings: a new check gives 0"],
    ),
    (
        "UPDATE capture SET added_at = 0",
        &["different-row | capture sha256:1296f0687666 | capture: added_at differs from the journal"],
    ),
    (
        "UPDATE capture SET seen_at = 0",
        &["different-row | capture sha256:1296f0687666 | capture: seen_at differs from the journal"],
    ),
    (
        "UPDATE capture SET source_path = 'another'",
        &["different-row | capture sha256:1296f0687666 | capture: source_path differs from the journal"],
    ),
    (
        "UPDATE capture SET signature = 'wrong' WHERE signature IS NOT NULL",
        &["different-row | capture sha256:f7d0637901b3 | signature: state differs from the journal"],
    ),
    (
        "INSERT INTO capture SELECT * FROM capture WHERE id = 3",
        &[
            "surplus-row | capture sha256:566427045898 | capture: ",
            "surplus-row | table capture | 2 of its rows have the key 3",
        ],
    ),
    (
        "UPDATE kind SET name = 'another' WHERE id = 1",
        &[
            "different-row | artifact sha256:5c496a37feba | artifact: kind differs from the journal",
            "different-row | capture sha256:1296f0687666 | artifact: kind: it is a contract",
        ],
    ),
    (
        "UPDATE kind SET is_directory = NOT is_directory",
        &["different-row | table kind | this program defines the kind contract differently"],
    ),
    (
        "UPDATE role SET relation = 'another' WHERE relation IS NOT NULL",
        &[
            "missing-row | artifact sha256:3941d389b337 | mention reference /metadata/contract ",
            "surplus-row | artifact sha256:3941d389b337 | mention reference /metadata/contract ",
        ],
    ),
    (
        "UPDATE role SET group_id = group_id + 1",
        &["different-row | table role | group_id of the role bundle of pack "],
    ),
    (
        "DELETE FROM mention_list",
        &[
            "missing-row | artifact sha256:4df877dec7f4 | mention prompt 0 ",
            "surplus-row | index mentions | 163 entries",
        ],
    ),
    (
        "UPDATE mention_list SET entries = '\\xff'",
        &["unreadable | artifact sha256:4df877dec7f4 | a row: the vault is damaged: a list of mentions "],
    ),
    (
        "UPDATE mention_list SET firsts = NULL",
        &[
            "different-row | artifact sha256:4df877dec7f4 | mention_list: its lists are not those that are written ",
        ],
    ),
    (
        "DELETE FROM mention_key",
        &["index-differs | artifact sha256:4df877dec7f4 | 12 of the digests it mentions"],
    ),
    ("INSERT INTO mention_key VALUES (1, 1, 1)", &["surplus-row | index mentions | 1 entries"]),
    (
        "DELETE FROM edge",
        &[
            "missing-row | artifact sha256:3941d389b337 | edge: mention reference /metadata/contract sha256:5c496a37feba",
        ],
    ),
    (
        "UPDATE edge SET target = sha256(target)",
        &[
            "missing-row | artifact sha256:3941d389b337 | edge: mention reference /metadata/contract sha256:5c496a37feba",
            "surplus-row | artifact sha256:3941d389b337 | edge: mention reference /metadata/contract ",
        ],
    ),
    (
        "UPDATE attribute SET value = 'another'",
        &[
            "missing-row | artifact sha256:3941d389b337 | attribute agent \"triage\" and 18 more",
            "surplus-row | artifact sha256:3941d389b337 | attribute agent \"another\" and 18 more",
        ],
    ),
    (
        "UPDATE attribute SET key = 0",
        &[
            "different-row | artifact sha256:3941d389b337 | attribute agent \"triage\": key is not that of its text",
        ],
    ),
    (
        "UPDATE identity SET handle = 'run:another'",
        &[
            "missing-row | artifact sha256:3941d389b337 | name run:run-triage-4711",
            "surplus-row | artifact sha256:3941d389b337 | name run:another",
        ],
    ),
    (
        "DELETE FROM name_mention",
        &["missing-row | artifact sha256:66c2f87e8153 | reference records-run run:run-triage-4711 "],
    ),
    (
        "UPDATE note SET text = 'another'",
        &[
            "different-row | artifact sha256:5c496a37feba | note: text differs from the journal",
            "different-row | artifact sha256:5c496a37feba | note: folded, ",
        ],
    ),
    ("UPDATE note SET folded = ''", &["different-row | artifact sha256:5c496a37feba | note: folded, "]),
    ("DELETE FROM tag", &["missing-row | tag agreed | tag: ", "missing-row | tag golden | tag: "]),
    ("UPDATE tag SET artifact = 1", &["different-row | tag golden | tag: artifact differs from the journal"]),
    ("INSERT INTO tag VALUES ('mine', 1, 0)", &["surplus-row | tag mine | tag: "]),
    (
        "UPDATE pin SET note = 'another'",
        &["different-row | artifact sha256:5c496a37feba | pin: note differs from the journal"],
    ),
    (
        "UPDATE label SET value = 'another'",
        &["different-row | artifact sha256:5c496a37feba | label \"branch\": value differs from the journal"],
    ),
    (
        "DELETE FROM label WHERE key = 'branch'",
        &["missing-row | artifact sha256:5c496a37feba | label \"branch\": "],
    ),
    (
        "UPDATE link SET at = 0",
        &[
            "different-row | artifact sha256:5c496a37feba | link \"governs\" to sha256:7c8de5910f63: at differs from the journal",
        ],
    ),
    (
        "DELETE FROM tombstone",
        &["missing-row | tombstone sha256:103ef1c54b58 | tombstone: entry 21 removed it"],
    ),
    (
        "UPDATE tombstone SET reason = 'another'",
        &["different-row | tombstone sha256:103ef1c54b58 | tombstone: reason differs from the journal"],
    ),
    (
        "UPDATE journal SET entry = replace(entry, 'tester', 'other') WHERE seq = 2",
        &["broken-chain | entry 2 | it or the chain before it was changed"],
    ),
    (
        "UPDATE journal SET action = 'another' WHERE seq = 2",
        &["different-row | entry 2 | journal: action differs from the one in its text"],
    ),
    (
        "UPDATE journal SET at = 0 WHERE seq = 2",
        &["different-row | entry 2 | journal: at differs from the time in its text"],
    ),
    (
        "DELETE FROM journal WHERE seq = 2",
        &[
            "broken-chain | entry 3 | it follows entry 1",
            "surplus-row | capture sha256:9321ac8ef141 | capture: ",
        ],
    ),
    (
        "DELETE FROM search_capture",
        &["index-differs | index search | captures recorded as indexed that are missing: 10"],
    ),
    (
        "DELETE FROM search_passage",
        &["index-differs | index search | it does not match the documents of artifact sha256:4df877dec7f4"],
    ),
    (
        "UPDATE search_passage SET words = 'another:1'",
        &["index-differs | index search | it does not match the documents of artifact sha256:4df877dec7f4"],
    ),
    (
        "UPDATE search_state SET capture = capture + 1",
        &["index-differs | index search | captures recorded as indexed that do not exist yet: 1"],
    ),
    (
        "DELETE FROM search_state",
        &["index-differs | index search | captures indexed but not recorded as indexed: 10"],
    ),
    (
        "UPDATE blob SET object = digest",
        &[
            "damaged-bytes | blob sha256:1296f0687666 | its row does not say where its bytes are",
            "surplus-row | table blob | 14 of its rows refer to rows of object ",
        ],
    ),
    (
        "UPDATE head SET seq = seq + 1",
        &["broken-chain | table head | it does not name entry 23, the last one"],
    ),
    ("DELETE FROM head", &["broken-chain | table head | it does not name entry 23, the last one"]),
];

/// Writes digests with twelve digits.
fn shortened(finding: &str) -> String {
    let mut parts = finding.split("sha256:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| format!("{text}sha256:{}{}", &part[..12], &part[64..]))
}

#[test]
fn damage_is_named() {
    let Some(damaged) = Damaged::new() else { return };
    let mut wrong = Vec::new();
    for (sql, expected) in DAMAGE {
        assert!(damaged.execute(sql) > 0, "{sql}");
        let found: Vec<String> = damaged.new_findings().iter().map(|finding| shortened(finding)).collect();
        let is_named = |expected: &&str| found.iter().any(|finding| finding.starts_with(expected));
        if !expected.iter().all(is_named) {
            wrong.push(format!("{sql}\n    expected {expected:#?}, found {found:#?}"));
        }
        damaged.restore();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Damage that follows from the stored bytes, which the journal and other tables do not record.
const DERIVED: &[&str] = &[
    "UPDATE artifact SET created_at = 0",
    "UPDATE capture SET seal = substr(sha256(seal), 1, 16)",
    "UPDATE capture SET size = size + 1",
    "UPDATE capture SET warnings = '[]x'",
    "UPDATE kind SET name = 'another' WHERE id = 1",
    "UPDATE kind SET is_directory = NOT is_directory",
    "UPDATE role SET relation = 'another' WHERE relation IS NOT NULL",
    "UPDATE role SET group_id = group_id + 1",
    "DELETE FROM mention_list",
    "UPDATE mention_list SET entries = '\\xff'",
    "UPDATE mention_list SET firsts = NULL",
    "INSERT INTO mention_list SELECT * FROM mention_list",
    "DELETE FROM mention_key",
    "INSERT INTO mention_key VALUES (1, 1, 1)",
    "UPDATE mention_key SET key = key + 1",
    "DELETE FROM edge",
    "UPDATE edge SET target = sha256(target)",
    "INSERT INTO edge SELECT * FROM edge",
    "UPDATE edge SET artifact = 1000",
    "UPDATE attribute SET value = 'another'",
    "UPDATE attribute SET key = 0",
    "DELETE FROM identity",
    "DELETE FROM name_mention",
];

#[test]
fn what_is_derived_is_rebuilt_from_the_stored_bytes() {
    let Some(damaged) = Damaged::new() else { return };
    let before = damaged.answers();
    for sql in DERIVED {
        assert!(damaged.execute(sql) > 0, "{sql}");
        assert!(!damaged.new_findings().is_empty(), "{sql}");
        let vault = damaged.vault().unwrap();
        let report = vault.reindex(&KeyRing::default(), &mut Collect(Vec::new())).unwrap();
        assert!(report.is_clean(), "{sql}: {report:?}");
        assert_eq!(damaged.new_findings(), [""; 0], "{sql}");
        damaged.restore();
    }
    // A vault that is not damaged answers as before.
    damaged.vault().unwrap().reindex(&KeyRing::default(), &mut Collect(Vec::new())).unwrap();
    assert_eq!(damaged.new_findings(), [""; 0]);
    let after = damaged.answers();
    for ((question, one), other) in QUESTIONS.iter().zip(before).zip(after) {
        // The journal says that the indexes were rebuilt.
        assert!(one == other || question[0] == "log", "{question:?}");
    }
}

#[test]
fn what_is_lost_and_damaged_is_named_by_its_hash() {
    let Some(database) = Database::with_examples() else { return };
    let fsck = || database.run(["fsck", "--full", "--json"]);
    assert_eq!(fsck().expect(0).stdout, "");
    let mut client = database.schema.client();
    let change = "UPDATE blob SET bytes = 'other' WHERE digest IN
                    (SELECT m.blob FROM member m JOIN capture c ON c.id = m.capture JOIN artifact a ON a.id = c.artifact
                      WHERE encode(a.core, 'hex') LIKE '5c496a37feba%')";
    assert!(client.execute(change, &[]).unwrap() > 0);
    let found = fsck().expect(1).json();
    assert_eq!(found[0]["finding"], "damaged-bytes", "{found:?}");
    assert!(database.run(["get", "5c496a37feba"]).expect(2).stderr.contains("damaged"));
    database.run(["get", "4df877dec7f4"]).expect(0);
    for table in ["edge", "identity", "name_mention", "attribute"] {
        client.execute(&format!("DELETE FROM {table} WHERE artifact = 1"), &[]).unwrap();
    }
    client
        .batch_execute(
            "DELETE FROM member WHERE capture IN (SELECT id FROM capture WHERE artifact = 1);
             DELETE FROM mention_list WHERE capture IN (SELECT id FROM capture WHERE artifact = 1);
             DELETE FROM capture WHERE artifact = 1; DELETE FROM artifact WHERE id = 1;",
        )
        .unwrap();
    let found = fsck().expect(1).json();
    let is_lost =
        |finding: &&serde_json::Value| finding["finding"] == "missing-row" && finding["about"] == "capture";
    let lost = found.iter().find(is_lost).unwrap();
    assert!(lost["detail"].as_str().unwrap().contains("(artifact sha256:"), "{lost}");
}

#[test]
fn definitions_that_differ_are_named() {
    let Some(database) = Database::with_examples() else { return };
    let mut client = database.schema.client();
    for (change, subject) in [
        ("DROP INDEX edge_by_target", "edge"),
        ("ALTER TABLE identity ALTER handle TYPE text COLLATE \"POSIX\"", "identity"),
        ("ALTER TABLE tag DROP CONSTRAINT tag_artifact_fkey", "tag"),
        ("CREATE TABLE mine (id integer)", "mine"),
        ("CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'", "nothing"),
        ("CREATE TRIGGER mine BEFORE INSERT ON note FOR EACH ROW EXECUTE FUNCTION nothing()", "note"),
        ("DROP TABLE mention_key", "mention_key"),
    ] {
        client.batch_execute(change).unwrap();
        let found = database.run(["fsck", "--quick", "--json"]).expect(1).json();
        let is_it = |finding: &serde_json::Value| {
            finding["finding"] == "schema-differs" && finding["subject"] == subject
        };
        assert!(found.iter().any(is_it), "{change}: {found:#?}");
    }
}
