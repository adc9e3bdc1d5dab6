//! Questions in SQL: the views agree with the artifacts, queries only read, and what is saved is the same.

mod documented;
mod hostile;
mod programs;
mod saved;
mod shown;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use runvault::Vault;
use runvault::artifact::{Cell, ColumnType, MemberBytes};
use runvault::formats::{self, model_io::Session};
use runvault::json::reader::Limits;
use runvault::storage::ArtifactRecord;
use runvault::vault::audit::ContractTerms;
use runvault::vault::details::AttributeSummary;
use runvault::vault::links::{Direction, LinkEnd};
use runvault::vault::show::ShowRequest;
use runvault::vault::sql::{self, VaultSqlReader};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::sandbox::{Sandbox, repository, session};

/// A sandbox with the shipped examples in a vault.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox
}

/// A vault with the examples, and everything in the corpus that is admitted.
fn everything() -> (Sandbox, Vault) {
    let sandbox = examples();
    sandbox.run(["add".into(), repository("tests/corpus")]).expect(1);
    let vault = Vault::open(&sandbox.vault()).unwrap();
    (sandbox, vault)
}

/// All rows of an answer.
fn ask(reader: &VaultSqlReader<'_>, query: &str) -> Vec<Vec<Cell>> {
    let mut statement = reader.prepare(query, &[]).unwrap_or_else(|error| panic!("{query}: {error}"));
    statement.rows().map(|row| row.unwrap_or_else(|error| panic!("{query}: {error}"))).collect()
}

fn number(reader: &VaultSqlReader<'_>, query: &str) -> i64 {
    match ask(reader, query).remove(0).remove(0) {
        Cell::Integer(number) => number,
        other => panic!("{other:?}"),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "so that it is called with whatever there is")]
fn text(text: impl ToString) -> Cell {
    Cell::Text(text.to_string())
}

fn open(sandbox: &Sandbox, flags: OpenFlags) -> Connection {
    Connection::open_with_flags(sandbox.vault(), flags).unwrap()
}

#[test]
fn every_view_has_the_columns_that_it_is_said_to_have() {
    let (sandbox, vault) = everything();
    let reader = vault.sql().unwrap();
    assert_eq!(reader.views(), sql::views());
    let names: BTreeSet<&str> = reader.views().iter().map(|view| view.name).collect();
    assert_eq!(names.len(), reader.views().len());
    for view in reader.views() {
        let statement = format!("SELECT * FROM \"{}\"", view.name);
        let mut statement = reader.prepare(&statement, &[]).unwrap();
        let columns: Vec<&str> = view.columns.iter().map(|column| column.name).collect();
        assert_eq!(statement.columns(), columns, "{}", view.name);
        for row in statement.rows() {
            for (cell, column) in row.unwrap().iter().zip(&view.columns) {
                check(cell, column.sort, &format!("{}.{}", view.name, column.name));
            }
        }
    }
    // None of the file's own is left out, and nothing of it is hidden by others.
    let connection = open(&sandbox, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let mut objects =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = ?1 ORDER BY name").unwrap();
    let mut of_type = |sort: &str| -> Vec<String> {
        objects.query_map([sort], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let plain: BTreeSet<&str> =
        reader.views().iter().filter(|view| view.is_plain).map(|view| view.name).collect();
    assert_eq!(of_type("view"), plain.into_iter().collect::<Vec<_>>());
    assert!(of_type("table").iter().all(|table| !names.contains(table.as_str())));
}

fn check(cell: &Cell, sort: ColumnType, place: &str) {
    let fits = match (cell, sort) {
        (Cell::Null, _)
        | (Cell::Integer(_), ColumnType::Number | ColumnType::Any)
        | (Cell::Real(_), ColumnType::Real)
        | (Cell::Text(_), ColumnType::Text | ColumnType::Hash | ColumnType::Any) => true,
        (Cell::Text(time), ColumnType::Time) => {
            time.len() == 24 && chrono::DateTime::parse_from_rfc3339(time).is_ok()
        }
        (Cell::Text(json), ColumnType::Json) => {
            runvault::json::reader::read_keeping_overflow(json.as_bytes(), &Limits::most()).is_ok()
        }
        _ => false,
    };
    assert!(fits, "{place}: {cell:?}");
}

/// Returns what the view of links has of the end of a link.
fn end(target: &LinkEnd) -> String {
    let digest = target.core_hash.map(|core| core.0).or(target.digest);
    digest.map(|digest| digest.to_string()).or_else(|| target.name.clone()).unwrap()
}

#[test]
fn views_have_what_show_tells() {
    let (_sandbox, vault) = everything();
    let reader = vault.sql().unwrap();
    let snapshot = vault.snapshot().unwrap();
    let artifacts = snapshot.all_artifacts(None).unwrap();
    assert!(artifacts.len() > 80);
    assert_eq!(number(&*reader, "SELECT count(*) FROM artifacts"), i64::try_from(artifacts.len()).unwrap());
    let mut seen = BTreeSet::new();
    for artifact in &artifacts {
        let told = vault.run(&ShowRequest { artifact: artifact.core }).unwrap();
        let of_this = format!("WHERE core_hash = '{}'", artifact.core);
        let counts = ask(
            &*reader,
            &format!("SELECT role, count(*) FROM mentions {of_this} GROUP BY role ORDER BY role"),
        );
        let expected = told
            .mentions
            .iter()
            .map(|count| vec![text(&count.role), Cell::Integer(i64::try_from(count.count).unwrap())]);
        assert_eq!(counts, expected.collect::<Vec<_>>());
        let links = told.links.iter().filter(|link| link.direction == Direction::Out);
        let expected: Vec<_> =
            links.map(|link| vec![text(&link.relation), text(end(&link.target))]).collect();
        seen.extend(expected.iter().map(|link| format!("{:?}", link[0])));
        assert_eq!(ask(&*reader, &format!("SELECT relation, target FROM links {of_this}")), expected);
        contents_agree(&*reader, &vault, artifact, &told.attributes);
    }
    assert!(seen.len() > 6, "{seen:?}");
}

/// The rows of an artifact are as many as it says itself, and those that its kind makes of its first capture.
fn contents_agree(
    reader: &VaultSqlReader<'_>,
    vault: &Vault,
    artifact: &ArtifactRecord,
    attributes: &[AttributeSummary],
) {
    let members = vault.members(&vault.locate(&artifact.core.0.into()).unwrap()).unwrap();
    let members: Vec<MemberBytes<'_>> =
        members.iter().map(|member| MemberBytes { name: &member.name, bytes: &member.bytes }).collect();
    let here = formats::named(&artifact.kind).unwrap().info().tables;
    for table in formats::ALL.into_iter().flat_map(|kind| kind.info().tables) {
        let query = format!("SELECT * FROM {} WHERE core_hash = '{}'", table.name, artifact.core);
        let rows = ask(reader, &query);
        if !here.iter().any(|own| own.name == table.name) {
            assert!(rows.is_empty());
            continue;
        }
        let stated = attributes.iter().find(|attribute| attribute.name == table.name).unwrap();
        assert_eq!(rows.len().to_string(), stated.value);
        let made = (table.rows)(&members).unwrap();
        let beginning = vec![Cell::Integer(artifact.addition.cast_signed()), text(artifact.core)];
        let made: Vec<_> = made.into_iter().map(|row| [beginning.clone(), row].concat()).collect();
        assert_eq!(rows, made);
    }
}

/// The rows of a view that are of one artifact, by column.
fn objects(
    reader: &VaultSqlReader<'_>,
    view: &str,
    artifact: &ArtifactRecord,
) -> Vec<BTreeMap<String, Cell>> {
    let query =
        format!("SELECT * FROM {view} WHERE artifact = {} ORDER BY i", artifact.addition.cast_signed());
    let mut statement = reader.prepare(&query, &[]).unwrap();
    let columns = statement.columns().to_vec();
    statement.rows().map(|row| columns.iter().cloned().zip(row.unwrap()).collect()).collect()
}

/// A member as a cell that is not JSON.
fn member(value: &Value, name: &str) -> Cell {
    value[name].as_str().map_or(Cell::Null, text)
}

fn json(cell: &Cell) -> Value {
    let Cell::Text(text) = cell else { panic!("{cell:?}") };
    serde_json::from_str(text).unwrap()
}

#[test]
fn contents_are_those_of_the_documents() {
    let (_sandbox, vault) = everything();
    let reader = vault.sql().unwrap();
    let mut seen = BTreeMap::new();
    for artifact in vault.snapshot().unwrap().all_artifacts(None).unwrap() {
        if ["attachment", "pack"].contains(&artifact.kind.as_str()) {
            continue;
        }
        let document = vault.read(&vault.locate(&artifact.core.0.into()).unwrap()).unwrap();
        let checked = match artifact.kind.as_str() {
            "model_io" => check_interactions(&document, &objects(&*reader, "interactions", &artifact)),
            "rpk" => check_steps(&document, &objects(&*reader, "steps", &artifact)),
            "trace" => check_records(&document, &objects(&*reader, "records", &artifact)),
            _ => check_effects(&document, &objects(&*reader, "effects", &artifact)),
        };
        *seen.entry(artifact.kind).or_insert(0) += checked;
    }
    assert!(seen.values().all(|checked| *checked > 10) && seen.len() == 4, "{seen:?}");
}

fn check_interactions(document: &[u8], rows: &[BTreeMap<String, Cell>]) -> usize {
    let session = Session::read(document).unwrap().unwrap();
    assert_eq!(rows.len(), session.interactions.len());
    for (row, interaction) in rows.iter().zip(&session.interactions) {
        assert_eq!(row["prompt_hash"], text(interaction.prompt_hash));
        assert_eq!(row["response_hash"], text(interaction.response_hash));
        assert_eq!(row["response_content"], text(&interaction.response_content));
    }
    rows.len()
}

fn check_steps(document: &[u8], rows: &[BTreeMap<String, Cell>]) -> usize {
    let run: Value = serde_json::from_slice(document).unwrap();
    let steps = run["payload"]["run"]["steps"].as_array().unwrap();
    assert_eq!(rows.len(), steps.len());
    for (row, step) in rows.iter().zip(steps) {
        for name in ["id", "type", "hash"] {
            assert_eq!(row[name], member(step, name), "{name}");
        }
        for name in ["input", "output", "metadata"] {
            assert_eq!(json(&row[name]), step[name], "{name}");
        }
    }
    rows.len()
}

fn check_records(document: &[u8], rows: &[BTreeMap<String, Cell>]) -> usize {
    let lines: Vec<&str> = std::str::from_utf8(document).unwrap().lines().collect();
    assert_eq!(rows.len(), lines.len());
    let mut before = Cell::Null;
    for (row, line) in rows.iter().zip(lines) {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["record"], text(line));
        assert_eq!(row["type"], member(&record, "type"));
        let stated = record["record_hash"].as_str().unwrap();
        assert_eq!(row["record_hash"], text(format!("sha256:{}", stated.trim_start_matches("sha256:"))));
        assert_eq!(row["prev_hash"], before);
        before = row["record_hash"].clone();
        for name in ["step", "status", "started_at", "finished_at"] {
            assert_eq!(row[name], member(&record["result"], name), "{name}");
        }
    }
    rows.len()
}

fn check_effects(document: &[u8], rows: &[BTreeMap<String, Cell>]) -> usize {
    let effects = ContractTerms::read(document).unwrap().effects;
    assert_eq!(rows.len(), effects.len());
    let optional = |value: &Option<String>| value.as_ref().map_or(Cell::Null, text);
    for (row, effect) in rows.iter().zip(effects) {
        assert_eq!(row["name"], text(&effect.name));
        assert_eq!(row["target"], text(&effect.target));
        assert_eq!(row["mode"], optional(&effect.mode));
        assert_eq!(row["idempotency"], optional(&effect.idempotency));
        let evidence = effect.evidence.as_ref();
        assert_eq!(row["evidence"], evidence.map_or(Cell::Null, |evidence| text(&evidence.sort)));
        assert_eq!(row["evidence_path"], evidence.map_or(Cell::Null, |evidence| optional(&evidence.path)));
        assert_eq!(
            row["evidence_metric"],
            evidence.map_or(Cell::Null, |evidence| optional(&evidence.metric))
        );
    }
    rows.len()
}

#[test]
fn numbers_have_all_their_digits() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("tests/corpus/rpk/big-integers.rpk")]);
    let document = std::fs::read_to_string(repository("tests/corpus/rpk/big-integers.rpk")).unwrap();
    let digits: Vec<&str> = document
        .split(|character: char| !character.is_ascii_digit())
        .filter(|digits| digits.len() > 19 && digits.len() < 60)
        .collect();
    assert!(!digits.is_empty());
    let query = "SELECT group_concat(input || output || metadata) AS told FROM steps";
    let told = sandbox.run(["sql", "--json", query]).expect(0).stdout;
    for digits in digits {
        assert!(told.contains(digits), "{digits}: {told}");
    }
}

#[test]
fn the_members_of_an_interaction_that_are_not_hashed_are_extra() {
    let sandbox = examples();
    let query = "SELECT extra FROM interactions WHERE i = 0 ORDER BY artifact LIMIT 1";
    assert_eq!(
        sandbox.run(["sql", "--json", query]).expect(0).stdout,
        "{\"extra\":\"{\\\"latency_ms\\\":812}\"}\n"
    );
    let plain = sandbox.write("s.json", session("a", &[("p", "r")]));
    let core = sandbox.add([plain]).remove(0);
    let query = format!("SELECT extra FROM interactions WHERE core_hash = '{core}'");
    assert_eq!(sandbox.run(["sql", "--json", &query]).expect(0).stdout, "{\"extra\":null}\n");
}

fn strange_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        proptest::collection::vec(
            prop_oneof![
                Just('\0'),
                Just('\u{1b}'),
                Just('\u{2028}'),
                Just('"'),
                Just('\\'),
                Just('\u{ffff}'),
                any::<char>()
            ],
            0..20
        )
        .prop_map(|characters| characters.into_iter().collect()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What a query gives is what the documents say, character for character.
    #[test]
    fn interactions_are_those_of_the_documents(
        sessions in proptest::collection::vec(proptest::collection::vec((strange_text(), strange_text()), 0..5), 1..5),
    ) {
        let sandbox = Sandbox::new();
        let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
        let mut expected = BTreeMap::new();
        for exchanges in &sessions {
            let exchanges: Vec<(&str, &str)> = exchanges.iter().map(|(p, r)| (p.as_str(), r.as_str())).collect();
            let document = session("a", &exchanges).into_bytes();
            let read = Session::read(&document).unwrap().unwrap();
            // A prompt that was answered in two ways is refused.
            let Ok(put) = vault.add_document(document, &runvault::intake::ExamineOptions::default()) else { continue };
            expected.insert(put.core.to_string(), read);
        }
        let reader = vault.sql().unwrap();
        let mut found: BTreeMap<String, Vec<Vec<Cell>>> = BTreeMap::new();
        for mut row in ask(&*reader, "SELECT core_hash, i, prompt_hash, response_hash, response_content FROM interactions") {
            let Cell::Text(core) = row.remove(0) else { panic!("{row:?}") };
            found.entry(core).or_default().push(row);
        }
        for (core, session) in expected {
            let rows: Vec<Vec<Cell>> = session.interactions.iter().zip(0..).map(|(interaction, index)| {
                vec![Cell::Integer(index), text(interaction.prompt_hash), text(interaction.response_hash),
                    text(&interaction.response_content)]
            }).collect();
            prop_assert_eq!(found.remove(&core).unwrap_or_default(), rows);
        }
        prop_assert!(found.is_empty());
    }
}

/// A vault of sessions of which only some can still be read.
fn mostly_damaged(good: &[usize]) -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    let files: Vec<_> = (0..20)
        .map(|n| {
            sandbox.write(&format!("{n}.json"), session(&format!("adapter-{n}"), &[(&format!("p{n}"), "r")]))
        })
        .collect();
    let cores = sandbox.add(files);
    let connection = open(&sandbox, OpenFlags::SQLITE_OPEN_READ_WRITE);
    for (n, core) in cores.iter().enumerate().filter(|(n, _)| !good.contains(n)) {
        let damage = "UPDATE payload SET bytes = zeroblob(length(bytes)) WHERE blob IN (
            SELECT c.blob FROM capture c JOIN artifacts a ON a.artifact = c.artifact WHERE a.core_hash = ?1)";
        assert_eq!(connection.execute(damage, [core]).unwrap(), 1, "{n}");
    }
    (sandbox, cores)
}

#[test]
fn nothing_is_read_but_what_a_query_needs() {
    let (sandbox, cores) = mostly_damaged(&[0, 1, 12]);
    let core = &cores[12];
    for query in [
        format!("SELECT i FROM interactions WHERE core_hash = '{core}'"),
        format!("SELECT i FROM interactions WHERE core_hash IN ('{core}', 'x') AND i = 0"),
        format!(
            "SELECT i.i FROM artifacts a JOIN interactions i USING (artifact) WHERE a.core_hash = '{core}'"
        ),
        "SELECT i FROM interactions WHERE artifact = 13".to_owned(),
        "SELECT i.i FROM interactions i JOIN sessions s USING (artifact) WHERE s.adapter_id = 'adapter-12'"
            .to_owned(),
        "SELECT i FROM interactions JOIN sessions USING (core_hash) WHERE adapter_id = 'adapter-12'"
            .to_owned(),
        "SELECT i FROM interactions WHERE artifact IN (
           SELECT artifact FROM attributes WHERE name = 'adapter_id' AND value = 'adapter-12')"
            .to_owned(),
        "SELECT i FROM interactions ORDER BY artifact LIMIT 1".to_owned(),
        "SELECT count(*) FROM (SELECT i FROM interactions LIMIT 2)".to_owned(),
        "SELECT EXISTS (SELECT 1 FROM interactions WHERE i = 0)".to_owned(),
        "SELECT sum(interactions) FROM sessions".to_owned(),
    ] {
        let ran = sandbox.run(["sql", "--json", &query]).expect(0);
        assert_eq!(ran.json().len(), 1, "{query}");
    }
    // What is damaged is named, and what was read before it is there.
    let ran = sandbox.run(["sql", "--json", "SELECT core_hash FROM interactions"]).expect(2);
    let read: Vec<String> =
        ran.json().iter().map(|row| row["core_hash"].as_str().unwrap().to_owned()).collect();
    assert_eq!(read, cores[..2]);
    assert!(ran.stderr.contains(&cores[2]) && ran.stderr.contains("damaged"), "{}", ran.stderr);
    let ran = sandbox.run(["sql", "SELECT core_hash FROM interactions"]).expect(2);
    assert!(ran.stdout.contains(&cores[1]) && !ran.stdout.contains(&cores[2]), "{}", ran.stdout);
}

#[test]
fn nothing_is_left_beside_the_vault_but_its_empty_log() {
    let sandbox = examples();
    sandbox.run(["sql", "SELECT count(*) FROM interactions"]).expect(0);
    sandbox.run(["sql", "--save", "saved.db"]).expect(0);
    let mut names: Vec<_> =
        std::fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["metadata.json", "saved.db", "v.vault"]);
}

#[test]
fn a_reader_sees_one_state_whatever_others_write() {
    let sandbox = Sandbox::new();
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    let add = |n: usize| {
        let document = session("a", &[(&format!("prompt {n}"), "r")]).into_bytes();
        vault.add_document(document, &runvault::intake::ExamineOptions::default()).unwrap();
    };
    add(0);
    let before = vault.sql().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..150).for_each(add));
        while !writer.is_finished() {
            let reader = vault.sql().unwrap();
            let sessions = number(&*reader, "SELECT count(*) FROM sessions");
            assert_eq!(number(&*reader, "SELECT count(*) FROM interactions"), sessions);
            assert_eq!(number(&*reader, "SELECT count(*) FROM mentions WHERE role = 'prompt'"), sessions);
            assert_eq!(number(&*reader, "SELECT max(seq) FROM journal_entries"), sessions);
        }
    });
    assert_eq!(number(&*before, "SELECT count(*) FROM interactions"), 1);
    assert_eq!(number(&*vault.sql().unwrap(), "SELECT count(*) FROM interactions"), 150);
}

#[test]
fn who_reads_the_same_again_and_again_is_told_how_not_to() {
    let sandbox = Sandbox::new();
    let exchanges: Vec<(String, String)> = (0..10).map(|n| (format!("p{n}"), "r".to_owned())).collect();
    let exchanges: Vec<(&str, &str)> = exchanges.iter().map(|(p, r)| (p.as_str(), r.as_str())).collect();
    sandbox.add((0..4).map(|n| sandbox.write(&format!("{n}.json"), session(&format!("a{n}"), &exchanges))));
    let again = "SELECT count(*) AS n FROM interactions a, interactions b, interactions c, interactions d WHERE d.i < 0";
    let ran = sandbox.run(["sql", "--json", again]).expect(0);
    assert_eq!(ran.stdout, "{\"n\":0}\n");
    assert_eq!(ran.stderr.matches("AS MATERIALIZED").count(), 1, "{}", ran.stderr);
    let once = "WITH x AS MATERIALIZED (SELECT i FROM interactions)
        SELECT count(*) AS n FROM x a, x b, x c, x d WHERE d.i < 0";
    assert!(sandbox.run(["sql", "--json", once]).expect(0).stderr.is_empty());
}
