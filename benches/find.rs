//! The first ten artifacts of a vault of a million, by kind, time and attribute.
//!
//! `cargo bench --bench find`; `benches/README.md` says how to read it. The rows are written directly: only their catalog
//! is read.

#![allow(clippy::expect_used, missing_docs, reason = "a bench fails by panicking")]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use runvault::Vault;
use runvault::artifact::timestamp_text;
use runvault::digest::Digest;
use runvault::intake::ExamineOptions;
use runvault::storage::TimeBasis;
use runvault::storage::{Condition, Filter, Order, Page, TimePeriod};
use rusqlite::Connection;

const ARTIFACTS: i64 = 1_000_000;

/// One of this many artifacts is of the rare kind, and has the rare attribute.
const RARE: i64 = 100_000;

/// More than any number in the examples.
const MANY: i64 = 1_000;

/// Number of different numbers of tokens.
const TOKENS: i64 = 10_000;

/// The time of the first artifact in milliseconds since 1970; each next one is a second later.
const BEGIN: i64 = 1_600_000_000_000;

fn time(number: i64) -> chrono::DateTime<chrono::Utc> {
    chrono::DateTime::from_timestamp_millis(BEGIN + number * 1_000).expect("a time")
}

#[expect(clippy::disallowed_methods, reason = "it writes rows faster than the library adds artifacts")]
fn filled(path: &Path) -> Vault {
    let vault = Vault::create(path).expect("a vault");
    for example in ["session.json", "run.rpk"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example);
        let document = std::fs::read(path).expect("an example");
        vault.add_document(document, &ExamineOptions::default()).expect("added");
    }
    let mut connection = Connection::open(path).expect("the database");
    fill(&mut connection).expect("filled");
    vault
}

fn fill(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let kind = |name: &str| {
        transaction.query_row("SELECT id FROM kind WHERE name = ?1", [name], |row| row.get::<_, i64>(0))
    };
    let (common, rare) = (kind("model_io")?, kind("rpk")?);
    let value = |name: &str, value: &str, number: Option<i64>| {
        transaction
            .prepare_cached("INSERT INTO attribute_value (name, value, number) VALUES (?1, ?2, ?3)")?
            .execute((name, value, number))
            .map(|_| transaction.last_insert_rowid())
    };
    let half = value("model_id", "half", None)?;
    let few = value("model_id", "few", None)?;
    let count = |name, number: i64| value(name, &(number + MANY).to_string(), Some(number + MANY));
    let tokens = (0..TOKENS).map(|number| count("tokens", number)).collect::<Result<Vec<_>, _>>()?;
    let [correct, failed] = [count("errors", 0)?, count("errors", 1)?];
    for number in 1..=ARTIFACTS {
        let is_rare = number % RARE == 7;
        let at = time(number).timestamp_millis();
        transaction
            .prepare_cached(
                "INSERT INTO artifact (core, kind, added_at, seen_at, arrival) VALUES (?1, ?2, ?3, ?3, ?4)",
            )?
            .execute((
                Digest::from_content(&number.to_le_bytes()).as_bytes(),
                if is_rare { rare } else { common },
                at,
                (number + 1_000) << 20,
            ))?;
        let artifact = transaction.last_insert_rowid();
        let created = value("created_at", &timestamp_text(time(number)), Some(at))?;
        let tokens = usize::try_from(number % TOKENS).ok().and_then(|number| tokens.get(number)).copied();
        let errors = if is_rare { failed } else { correct };
        let values =
            [Some(created), (number % 2 == 0).then_some(half), is_rare.then_some(few), tokens, Some(errors)];
        for value in values.into_iter().flatten() {
            transaction
                .prepare_cached("INSERT INTO attribute (value, artifact) VALUES (?1, ?2)")?
                .execute((value, artifact))?;
        }
    }
    transaction.commit()
}

/// The artifacts to find, and their order.
#[derive(Clone, Default)]
struct Query {
    filter: Filter,
    order: Order,
}

fn queries() -> Vec<(&'static str, Query)> {
    let newest = |basis| Query { order: Order::Newest(basis), ..Query::default() };
    let kind = |name: &str| {
        let filter = Filter { kinds: vec![name.to_owned()], ..Filter::default() };
        Query { filter, ..Query::default() }
    };
    let model = |value: &str| {
        let filter = Condition::Attribute { name: "model_id".to_owned(), value: value.to_owned() }.into();
        Query { filter, ..Query::default() }
    };
    let (since, until) = (Some(time(300_000)), Some(time(300_100)));
    let period = |basis| {
        let filter = Filter { period: Some(TimePeriod { basis, since, until }), ..Filter::default() };
        Query { filter, ..newest(basis) }
    };
    vec![
        ("last seen", newest(TimeBasis::LastSeen)),
        ("first seen", newest(TimeBasis::FirstSeen)),
        ("created", newest(TimeBasis::Created)),
        ("by core hash", Query { order: Order::Core, ..Query::default() }),
        ("most tokens", Query { order: Order::Largest("tokens"), ..Query::default() }),
        // The tenth is followed by those without errors, which are nearly all.
        ("most errors", Query { order: Order::Largest("errors"), ..Query::default() }),
        ("by kind", Query { order: Order::Kind, ..Query::default() }),
        ("of a common kind", kind("model_io")),
        ("of a rare kind", kind("rpk")),
        ("of a rare kind, first seen", Query { order: Order::Newest(TimeBasis::FirstSeen), ..kind("rpk") }),
        ("with a common attribute", model("half")),
        ("with a rare attribute", model("few")),
        ("seen in a period", period(TimeBasis::LastSeen)),
        ("first seen in a period", period(TimeBasis::FirstSeen)),
        ("created in a period", period(TimeBasis::Created)),
    ]
}

fn find(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let vault = filled(&directory.path().join("bench.vault"));
    let mut group = criterion.benchmark_group("find ten of a million");
    group.sample_size(10);
    for (name, query) in queries() {
        let find = || {
            let snapshot = vault.snapshot().expect("a snapshot");
            snapshot.find(&query.filter, query.order, &Page::first(10)).expect("an answer").items
        };
        let found = find().len();
        assert!(found > 0 && found <= 10, "{name}: {found}");
        group.bench_function(name, |bencher| bencher.iter(|| black_box(find())));
    }
    group.finish();
}

criterion_group!(benches, find);
criterion_main!(benches);
