//! Every answer takes a fixed number of round trips to the server, whatever the number of keys and of hits.

use super::Schema;
use crate::digest::{CoreHash, Digest};
use crate::storage::check::IntegrityLevel;
use crate::storage::conformance::kinds::{TestDocument, core, note, sheet};
use crate::storage::conformance::{acting, digest, start, unknown};
use crate::storage::interface::{
    Annotation, Condition, Containment, Direction, Filter, Maintenance as _, Order, Page, PutOptions,
    Snapshot, Storage,
};
use crate::storage::postgres::PostgresStorage;
use crate::storage::{BUSY_TIMEOUT, CreationPolicy, JournalQuery, Prepared, RemovedPolicy, TimeBasis};

/// Stores a batch of this many artifacts, and returns the round trips that it took.
fn fill(storage: &PostgresStorage, from: usize, count: usize) -> u64 {
    let preparer = storage.preparer().unwrap();
    let batch = (from..from + count).map(|number| {
        let document = TestDocument::new(&format!("n{number}"))
            .mention("prompt", 0, digest("p"))
            .mention("reference", number, core(note(), "n0").0)
            .mention("reference", number, unknown().0)
            .attribute("model", "m")
            .named("run")
            .names("missing");
        preparer.prepare(document.admit(if number % 2 == 0 { note() } else { sheet() }))
    });
    let batch: Vec<Prepared> = batch.collect();
    let options = PutOptions { policy: RemovedPolicy::Refuse, at: start(), busy_timeout: BUSY_TIMEOUT };
    let before = storage.round_trips();
    storage.put(&batch.iter().collect::<Vec<_>>(), &options).unwrap();
    storage.round_trips() - before
}

type SnapshotCall<'q> = Box<dyn Fn(&dyn Snapshot) + 'q>;

type NamedCall<'q> = (&'static str, SnapshotCall<'q>);

fn filter() -> Filter {
    let conditions = vec![
        Condition::Mention { group: Some("prompt".to_owned()), digest: digest("p") },
        Condition::Attribute { name: "model".to_owned(), value: "m".to_owned() },
    ];
    Filter { conditions, through_members: true, ..Filter::default() }
}

fn questions<'q>(cores: &'q [CoreHash], digests: &'q [Digest]) -> Vec<NamedCall<'q>> {
    let ask = |question: &'static str, answer: SnapshotCall<'q>| (question, answer);
    vec![
        ask("artifacts", Box::new(|it| drop(it.artifacts(cores).unwrap()))),
        ask("captures", Box::new(|it| drop(it.captures(cores).unwrap()))),
        ask("attributes", Box::new(|it| drop(it.attributes(cores).unwrap()))),
        ask("annotations", Box::new(|it| drop(it.annotations(cores).unwrap()))),
        ask("mentions", Box::new(|it| drop(it.mentions(cores, None).unwrap()))),
        ask("mention_counts", Box::new(|it| drop(it.mention_counts(cores).unwrap()))),
        ask("mentioning", Box::new(|it| drop(it.mentioning(digests, None).unwrap()))),
        ask("candidates", Box::new(|it| drop(it.candidates(digests, &["note".to_owned()]).unwrap()))),
        ask("references out", Box::new(|it| drop(it.references(cores, Direction::Out).unwrap()))),
        ask("references in", Box::new(|it| drop(it.references(cores, Direction::In).unwrap()))),
        ask("names", Box::new(|it| drop(it.names(cores).unwrap()))),
        ask("named", Box::new(|it| drop(it.named(&["test:run".to_owned()]).unwrap()))),
        ask("has_namesake", Box::new(|it| drop(it.has_namesake(cores).unwrap()))),
        ask("shared_names", Box::new(|it| drop(it.shared_names("prompt").unwrap()))),
        ask("shared_files", Box::new(|it| drop(it.shared_files(cores).unwrap()))),
        ask("containers", Box::new(|it| drop(it.containers(cores, Containment::Bytes).unwrap()))),
        ask("related_among", Box::new(|it| drop(it.related_among(cores, "references", "model").unwrap()))),
        ask("manual_links", Box::new(|it| drop(it.manual_links(cores).unwrap()))),
        ask("preferred", Box::new(|it| drop(it.preferred_captures(cores).unwrap()))),
        ask("journal", Box::new(|it| drop(it.journal(&JournalQuery::default(), 0, 1_000).unwrap()))),
        ask("check_journal", Box::new(|it| assert_eq!(it.check_journal(None).unwrap().defect, None))),
        ask("unresolved", Box::new(|it| assert!(!it.unresolved(None, usize::MAX).unwrap().is_empty()))),
        ask("count", Box::new(|it| assert_eq!(it.count(&filter()).unwrap(), cores.len() as u64))),
        ask("statistics", Box::new(|it| drop(it.statistics(TimeBasis::FirstSeen).unwrap()))),
        ask(
            "find",
            Box::new(|it| {
                let found = it.find(&filter(), Order::default(), &Page::all()).unwrap();
                assert_eq!(found.items.len(), cores.len());
            }),
        ),
    ]
}

/// The most that an answer takes.
const MOST: u64 = 9;

#[test]
fn answers_take_a_fixed_number_of_round_trips() {
    let Some(schema) = Schema::new() else { return };
    let storage = acting(PostgresStorage::open(&schema.address(), None, CreationPolicy::New).unwrap());
    // The first batch brings the names of kinds and roles. Statements are prepared when they are run a second time.
    fill(&storage, 0, 2);
    fill(&storage, 2, 1);
    let few = fill(&storage, 3, 2);
    let cores = |count: usize| -> Vec<CoreHash> {
        (0..count)
            .map(|number| core(if number % 2 == 0 { note() } else { sheet() }, &format!("n{number}")))
            .collect()
    };
    let count = |cores: &[CoreHash], digests: &[Digest]| -> Vec<(&'static str, u64)> {
        let snapshot = storage.snapshot().unwrap();
        let trips = |(question, answer): NamedCall<'_>| {
            let before = storage.round_trips();
            answer(&*snapshot);
            (question, storage.round_trips() - before)
        };
        questions(cores, digests).into_iter().map(trips).collect()
    };
    for _ in 0..2 {
        count(&cores(5), &[digest("p")]);
    }
    let with_few = count(&cores(5), &[digest("p")]);
    let many = fill(&storage, 5, 95);
    assert_eq!(few, many, "a batch takes a fixed number of round trips");
    assert!(many <= 30, "{many}");
    let digests: Vec<Digest> =
        (0..50).map(|number| digest(&number.to_string())).chain([digest("p")]).collect();
    assert_eq!(with_few, count(&cores(100), &digests));
    assert!(with_few.iter().all(|(_, trips)| (1..=MOST).contains(trips)), "{with_few:?}");
}

/// Sets a label on artifacts, and returns the round trips that it took.
fn label(storage: &PostgresStorage, cores: &[CoreHash], value: &str) -> u64 {
    let labels = [("k".to_owned(), value.to_owned())].into();
    let before = storage.round_trips();
    let mut transaction = storage.transaction(start(), BUSY_TIMEOUT).unwrap();
    transaction.annotate(&Annotation::SetLabels { cores, labels: &labels }).unwrap();
    transaction.commit().unwrap();
    storage.round_trips() - before
}

#[test]
fn a_change_takes_a_fixed_number_of_round_trips() {
    let Some(schema) = Schema::new() else { return };
    let storage = acting(PostgresStorage::open(&schema.address(), None, CreationPolicy::New).unwrap());
    fill(&storage, 0, 100);
    let cores: Vec<CoreHash> = (0..50).map(|number| core(note(), &format!("n{}", 2 * number))).collect();
    // Statements are prepared when they are run a second time.
    label(&storage, &cores[..2], "a");
    label(&storage, &cores[..2], "b");
    let few = label(&storage, &cores[..2], "c");
    assert_eq!(label(&storage, &cores, "d"), few);
    assert!(few <= 10, "{few}");
}

/// Checks everything that there is, and returns the round trips that it took.
fn check(storage: &PostgresStorage) -> u64 {
    let before = storage.round_trips();
    let inspection = storage.inspect().unwrap();
    let mut findings = inspection.structures(IntegrityLevel::Full).unwrap();
    findings.extend(inspection.compare_journal(None).unwrap().findings);
    findings.extend(inspection.unreferenced().unwrap());
    let (of_mentions, is_complete) = inspection.mentions_index(IntegrityLevel::Full).unwrap();
    findings.extend(of_mentions);
    let artifacts = inspection.artifacts(&|_| true, &mut findings).unwrap();
    for (number, artifact) in artifacts.iter().enumerate() {
        inspection.read_ahead(&artifacts[number..]).unwrap();
        for id in inspection.capture_ids(artifact, &mut findings).unwrap() {
            let read = inspection.read(artifact, id, None, &mut findings).unwrap().unwrap();
            assert!(read.files.is_some());
            findings.extend(read.findings);
        }
        assert!(inspection.derived_rows(artifact, &mut findings).unwrap().is_some());
    }
    assert_eq!((findings.len(), is_complete), (0, true), "{findings:?}");
    storage.round_trips() - before
}

#[test]
fn a_check_takes_a_fixed_number_of_round_trips_for_a_batch_of_artifacts() {
    let Some(schema) = Schema::new() else { return };
    let storage = acting(PostgresStorage::open(&schema.address(), None, CreationPolicy::New).unwrap());
    fill(&storage, 0, 10);
    // Statements are prepared when they are run a second time.
    check(&storage);
    check(&storage);
    let few = check(&storage);
    fill(&storage, 10, 150);
    let more = check(&storage);
    // The lists of mentions, of which each artifact has two, are read 200 at a time, however many there are.
    assert!(more <= few + 1, "{few} {more}");
}
