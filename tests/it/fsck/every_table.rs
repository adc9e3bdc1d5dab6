//! Every row of every table and every column of it: a change is found, or makes no difference to any answer.
//!
//! The tables are those that the schema names, so that a new one is covered from its first day. Of large tables, some rows
//! are changed: `RUNVAULT_DAMAGE_ROWS` says how many of each table, 0 for all.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::vault::fsck::{Finding, FsckMonitor, FsckOptions};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::questions::{Answers, answers};
use super::{bytes_of, of_bytes, sql};
use crate::sandbox::{Sandbox, repository, session};

/// What no answer depends on, and why. Nothing else may stay unnoticed, and the answers are compared all the same.
const WITHOUT_A_MEANING: &[(&str, &str)] = &[
    ("role.kind", "who reads a role finds it by its number, which lists of mentions have"),
    ("mention_list.blob", "not looked at if the list has all digests itself"),
    ("payload.encoding", "every encoding that gives the bytes with the right hash gives the right bytes"),
    ("search_capture.first", "not looked at if the capture has no passages"),
    ("search_state.next", "the next passage gets a higher number than all others"),
    ("search_state.version", "an index of another version is made again before it is asked"),
    ("search_text_config.v", "what FTS5 was configured with for later writing"),
    ("mention_bucket", "an empty bucket that is missing is an empty bucket"),
    ("mention_bucket.id", "the same"),
    (
        "search_text_data.block",
        "some bytes of FTS5's structures are not read: numbers of writes, unused ends of pages",
    ),
    ("search_text_idx", "words are found from the first page of a segment on as well"),
    ("search_text_idx.segid", "the same"),
    ("search_text_idx.term", "the beginning of a word from which on a page is looked at; it may be shorter"),
    (
        "sqlite_sequence",
        "the highest number of a dictionary: one process could mistake a new one for an old one",
    ),
    ("sqlite_sequence.seq", "the same; a higher number than the last one is right as well"),
];

/// Tables that SQLite keeps for itself.
fn is_sqlites_own(table: &str) -> bool {
    table.starts_with("sqlite_stat")
}

/// A vault of all kinds, with differences, a search index, all that people set, and tombstones.
pub(crate) fn small() -> Sandbox {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| bytes_of(&make_small()));
    of_bytes(&BYTES)
}

/// What [`small`] answers.
pub(super) static ANSWERS: LazyLock<Answers> = LazyLock::new(|| answers(&small(), true));

fn make_small() -> Sandbox {
    let mut sandbox = steady("2020-01-01T10:00:00Z");
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    sandbox.add([sandbox.write("referring.json", crate::unresolved::session())]);
    sandbox.set_clock("2020-01-02T10:00:00Z");
    for adapter in ["a", "b"] {
        let exchanges: Vec<(String, String)> =
            (0..20).map(|n| (format!("prompt {n}"), format!("response {n} {}", "text ".repeat(n)))).collect();
        let exchanges: Vec<(&str, &str)> =
            exchanges.iter().map(|(prompt, response)| (prompt.as_str(), response.as_str())).collect();
        sandbox.add([sandbox.write(&format!("{adapter}.json"), session(adapter, &exchanges))]);
    }
    let keys = crate::signatures::ring(&sandbox, "keys.toml", &[("ours", "secret")]);
    let run = sandbox.write("signed.rpk", crate::signatures::signed("ours", "secret"));
    sandbox.run(["add".as_ref(), run.as_os_str(), "--signing-key-file".as_ref(), keys.as_os_str()]).expect(0);
    sandbox.set_clock("2020-01-03T10:00:00Z");
    let (contract, trace, small) = ("5c496a37feba", "7c8de5910f63", "103ef1c54b58");
    for arguments in [
        &["index", "build"][..],
        &["tag", "set", trace, "golden"],
        &["tag", "set", contract, "agreed"],
        &["note", "set", contract, "a note"],
        &["note", "set", trace, "another"],
        &["pin", "add", contract, "--note", "keep"],
        &["pin", "add", trace],
        &["link", "add", contract, "governs", trace, "--note", "agreed"],
        &["link", "add", trace, "follows", contract],
        &["rm", small, "--force", "--reason", "small"],
        &["label", "set", contract, "commit=4f2a", "branch=main"],
        &["label", "set", trace, "commit=4f2a", "branch=fix"],
    ] {
        sandbox.run(arguments).expect(0);
    }
    sandbox
}

/// A sandbox whose vault has the same bytes whenever and wherever it is made.
fn steady(time: &'static str) -> Sandbox {
    let sandbox = Sandbox::at(time);
    sandbox.write("config.toml", "actor = \"tests\"\n");
    sandbox
}

/// A vault with what only larger ones have: a dictionary, and several segments of the index of mentions.
pub(crate) fn large() -> Sandbox {
    let sandbox = steady("2020-01-01T10:00:00Z");
    for number in 0..200 {
        let texts: Vec<String> = (0..5).map(|part| format!("text {part} of {number}")).collect();
        let exchanges: Vec<(&str, &str)> = texts.iter().map(|text| ("p", text.as_str())).collect();
        sandbox.write(&format!("d/{number:04}.json"), session(&format!("adapter-{number}"), &exchanges));
    }
    sandbox.run(["add", "d"]).expect(0);
    for arguments in [["tag", "set", "latest", "golden"], ["tag", "set", "latest~1", "agreed"]] {
        sandbox.run(arguments).expect(0);
    }
    sandbox
}

#[derive(Default)]
struct Count(usize);

impl FsckMonitor for Count {
    fn found(&mut self, _: &Finding) {
        self.0 += 1;
    }

    fn checked(&mut self, _: CoreHash, _: u64) {}
}

/// Whether a check finds anything, or cannot even look.
pub(super) fn is_noticed(vault: &Path) -> bool {
    let Ok(vault) = Vault::open(vault) else { return true };
    let mut count = Count::default();
    vault.fsck(&FsckOptions::default(), &mut count).is_err() || count.0 > 0
}

struct Table {
    name: String,
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// The tables of the vault with some of their rows, those that begin and end them among them.
fn tables(connection: &Connection) -> Vec<Table> {
    let sample = std::env::var("RUNVAULT_DAMAGE_ROWS").map_or(3, |rows| rows.parse().unwrap());
    let names: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let table = |name: String| {
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
        let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let read = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|at| row.get(at)).collect();
        let mut rows: Vec<Vec<Value>> = statement.query_map([], read).unwrap().map(Result::unwrap).collect();
        if sample > 0 && rows.len() > sample {
            let last = rows.len() - 1;
            let wanted: Vec<usize> = (0..sample).map(|at| last * at / (sample - 1).max(1)).collect();
            rows = wanted.into_iter().map(|at| rows[at].clone()).collect();
        }
        Table { name, columns, rows }
    };
    names.into_iter().filter(|name| !is_sqlites_own(name)).map(table).collect()
}

/// Other values than `value`, of which the first that the table takes is used.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![Value::Integer(1), Value::Text("x".into()), Value::Blob(vec![1; 32])],
        Value::Integer(number) => [number + 1, number - 1, number + 1000].map(Value::Integer).into(),
        Value::Real(number) => vec![Value::Real(number + 1.0)],
        Value::Text(text) => vec![Value::Text(format!("{text}x")), Value::Text(String::new())],
        Value::Blob(bytes) => {
            let mut flipped = bytes.clone();
            match flipped.last_mut() {
                Some(last) => *last ^= 1,
                None => flipped.push(1),
            }
            vec![Value::Blob(flipped)]
        }
    }
}

fn condition(columns: &[String], from: usize) -> String {
    let wanted: Vec<String> =
        columns.iter().zip(from..).map(|(name, at)| format!("\"{name}\" IS ?{at}")).collect();
    wanted.join(" AND ")
}

/// Every change of `table` in this vault, one at a time. Gives those that no check noticed, each with the vault as it is
/// then.
fn unnoticed(bytes: &[u8], table: &Table, seen: &mut usize) -> Vec<(String, Sandbox)> {
    let Table { name, columns, rows } = table;
    let mut unnoticed = Vec::new();
    let mut look = |what: String, sandbox: Sandbox| {
        *seen += 1;
        if !is_noticed(&sandbox.vault()) {
            unnoticed.push((what, sandbox));
        }
    };
    for row in rows {
        let sandbox = of_bytes(bytes);
        let delete = format!("DELETE FROM \"{name}\" WHERE {}", condition(columns, 1));
        open(&sandbox).execute(&delete, params_from_iter(row)).unwrap();
        look(format!("{name}: without {row:?}"), sandbox);
        for (at, column) in columns.iter().enumerate() {
            let update = format!("UPDATE \"{name}\" SET \"{column}\" = ?1 WHERE {}", condition(columns, 2));
            for other in others(&row[at]) {
                let sandbox = of_bytes(bytes);
                let parameters: Vec<&Value> = std::iter::once(&other).chain(row).collect();
                if open(&sandbox).execute(&update, params_from_iter(parameters)).is_ok() {
                    look(format!("{name}.{column}: {:?} becomes {other:?} {row:?}", row[at]), sandbox);
                    break;
                }
            }
        }
    }
    unnoticed
}

/// The vault with nothing that would refuse a change but the types of columns.
fn open(sandbox: &Sandbox) -> Connection {
    let connection = sql(sandbox);
    connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
    connection
}

/// Changes every table of a vault that `is_wanted`, and gives the names of those that have no rows. `before` is what the
/// vault answers.
fn check(
    (original, before): (&Sandbox, &Answers),
    has_examples: bool,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<String> {
    let bytes = bytes_of(original);
    assert!(!is_noticed(&original.vault()));
    let (mut seen, mut empty, mut wrong) = (0, Vec::new(), Vec::new());
    let mut harmless: BTreeMap<String, usize> = BTreeMap::new();
    for table in tables(&sql(original)).into_iter().filter(|table| is_wanted(&table.name)) {
        if table.rows.is_empty() {
            empty.push(table.name.clone());
        }
        for (change, sandbox) in unnoticed(&bytes, &table, &mut seen) {
            let after = answers(&sandbox, has_examples);
            let pairs = before.iter().zip(&after);
            let different: Vec<&String> =
                pairs.filter(|(one, other)| one != other).map(|(one, _)| &one.0).collect();
            if different.is_empty() {
                *harmless.entry(change.split(": ").next().unwrap().to_owned()).or_default() += 1;
            } else {
                wrong.push(format!("{change}\n    answered otherwise: {different:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
    let known = |what: &String| WITHOUT_A_MEANING.iter().any(|(known, _)| known == what);
    let unknown: Vec<&String> = harmless.keys().filter(|what| !known(what)).collect();
    assert!(unknown.is_empty(), "not noticed, and no answer depends on it: {unknown:?}");
    empty
}

/// Where the tables are divided: there are several tests, so that they run beside each other.
const FIRST: &str = "mention";
const SECOND: &str = "search";

#[test]
fn a_change_of_any_row_or_column_of_any_table_is_found_or_makes_no_difference() {
    let empty = check((&small(), &ANSWERS), true, |table| table < FIRST);
    // Those are in the other vault.
    assert_eq!(empty, ["dictionary"]);
}

#[test]
fn a_change_of_any_row_or_column_of_tables_from_mentions_to_roles_is_found_or_makes_no_difference() {
    let empty = check((&small(), &ANSWERS), true, |table| (FIRST..SECOND).contains(&table));
    assert_eq!(empty, ["mention_segment"]);
}

#[test]
fn a_change_of_any_row_or_column_of_tables_from_search_to_tombstones_is_found_or_makes_no_difference() {
    assert_eq!(check((&small(), &ANSWERS), true, |table| table >= SECOND), ["sqlite_sequence"]);
}

#[test]
fn a_change_of_what_only_large_vaults_have_is_found_or_makes_no_difference() {
    let large = large();
    let wanted = ["dictionary", "mention_bucket", "mention_segment", "sqlite_sequence"];
    assert_eq!(check((&large, &answers(&large, false)), false, |table| wanted.contains(&table)), [""; 0]);
}
