//! The steps of the model test, and how they are generated.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::sample::Index;
use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::storage::interface::{Annotation, PutOptions, Storage, Transaction};
use runvault::storage::{Prepared, RemovedPolicy, Result, TimeBasis};
use runvault::vault::retention::{self, GroupKey, LabelRule, Period, PeriodRule, Plan};
use runvault::vault::search::{BuildSearchIndexRequest, DropSearchIndexRequest};

use super::universe::UNIVERSE;

/// A step. An index is one of the artifacts or inputs of the universe, stored or not.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Stores a batch.
    Add { inputs: Vec<Index>, policy: Policy },
    /// Makes changes of annotations in one transaction.
    Annotate(Vec<Change>),
    /// Removes artifacts in one transaction, which may be dropped.
    Remove { artifacts: Vec<Index>, reason: Option<&'static str>, is_committed: bool },
    /// Removes what a retention policy does not keep.
    Forget(Retention),
    /// Builds the search index, or drops it.
    Index { is_built: bool },
    /// Takes a snapshot, which must not change while it is held.
    Hold,
    /// Closes and opens the vault.
    Reopen,
}

/// A retention policy.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate rule")]
pub(super) struct Retention {
    keep_last: Option<usize>,
    keep_days: Option<usize>,
    keep_tag: bool,
    keep_label: bool,
    only_label: bool,
    by: TimeBasis,
    is_by_run: bool,
    ignores_links: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Policy {
    Refuse,
    RefuseAndStop,
    TakeBack,
}

/// A change of annotations.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Tag(Index, &'static str),
    Untag(&'static str),
    Note(Index, Option<&'static str>),
    Pin(Index, Option<&'static str>),
    Unpin(Index),
    Link(Index, &'static str, Index, Option<&'static str>),
    Unlink(Index, &'static str, Index),
    Label(Vec<Index>, BTreeMap<String, String>),
    Unlabel(Vec<Index>, BTreeSet<String>),
}

/// Valid and invalid ones.
const TAGS: [&str; 4] = ["best", "v1/x", "Z", "not valid"];
const NOTES: [&str; 4] = ["A note", "ÄRGER", "two\nlines \"quoted\"", " "];
const KEYS: [&str; 4] = ["commit", "ci/job", "B", "not valid"];
const VALUES: [&str; 4] = ["", "main", "ÄRGER 100 %", "two\nlines"];
const RELATIONS: [&str; 3] = ["governs", "about", "Not-Valid"];

fn tag() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&TAGS[..])
}

fn note() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::weighted(0.7, prop::sample::select(&NOTES[..]))
}

fn relation() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&RELATIONS[..])
}

/// Mostly valid ones: one that is not rejects the whole change.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![12 => prop::sample::select(&KEYS[..3]), 1 => Just(KEYS[3])].prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![12 => prop::sample::select(&VALUES[..3]), 1 => Just(VALUES[3])].prop_map(str::to_owned)
}

/// Artifacts that are changed together. One that is not stored rejects the whole change.
fn several() -> impl Strategy<Value = Vec<Index>> {
    prop_oneof![2 => prop::collection::vec(any::<Index>(), 1..2), 1 => prop::collection::vec(any::<Index>(), 0..4)]
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    prop_oneof![
        3 => (index(), tag()).prop_map(|(core, name)| Change::Tag(core, name)),
        1 => tag().prop_map(Change::Untag),
        2 => (index(), note()).prop_map(|(core, text)| Change::Note(core, text)),
        1 => (index(), note()).prop_map(|(core, note)| Change::Pin(core, note)),
        1 => index().prop_map(Change::Unpin),
        3 => (index(), relation(), index(), note())
            .prop_map(|(source, relation, target, note)| Change::Link(source, relation, target, note)),
        1 => (index(), relation(), index())
            .prop_map(|(source, relation, target)| Change::Unlink(source, relation, target)),
        4 => (several(), prop::collection::btree_map(key(), value(), 0..3))
            .prop_map(|(cores, labels)| Change::Label(cores, labels)),
        1 => (several(), prop::collection::btree_set(key(), 0..3))
            .prop_map(|(cores, keys)| Change::Unlabel(cores, keys)),
    ]
}

fn retention() -> impl Strategy<Value = Retention> {
    let bases = [TimeBasis::FirstSeen, TimeBasis::LastSeen, TimeBasis::Created, TimeBasis::Finished];
    let by = prop::sample::select(bases.to_vec());
    let keep_last = prop::option::of(0..4_usize);
    (keep_last, prop::option::of(1..3_usize), any::<[bool; 5]>(), by).prop_map(
        |(keep_last, keep_days, [keep_tag, keep_label, only_label, is_by_run, ignores_links], by)| {
            Retention { keep_last, keep_days, keep_tag, keep_label, only_label, by, is_by_run, ignores_links }
        },
    )
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let inputs = prop::collection::vec(any::<Index>(), 0..8);
    let policy =
        prop_oneof![3 => Just(Policy::Refuse), 1 => Just(Policy::RefuseAndStop), 2 => Just(Policy::TakeBack)];
    let reason = prop::option::of(prop::sample::select(&["names a customer", ""][..]));
    let artifacts = prop::collection::vec(any::<Index>(), 1..5);
    prop_oneof![
        6 => (inputs, policy).prop_map(|(inputs, policy)| Step::Add { inputs, policy }),
        4 => prop::collection::vec(change(), 1..5).prop_map(Step::Annotate),
        3 => (artifacts, reason, prop::bool::weighted(0.8)).prop_map(|(artifacts, reason, is_committed)| {
            Step::Remove { artifacts, reason, is_committed }
        }),
        1 => retention().prop_map(Step::Forget),
        1 => prop::bool::weighted(0.8).prop_map(|is_built| Step::Index { is_built }),
        1 => Just(Step::Hold),
        1 => Just(Step::Reopen),
    ]
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "steps are passed by reference")]
fn core(index: &Index) -> CoreHash {
    *index.get(&UNIVERSE.cores)
}

impl Change {
    /// Makes the change, and describes what the engine returned.
    fn make(&self, transaction: &mut dyn Transaction) -> String {
        let cores: Vec<CoreHash> = match self {
            Self::Label(indexes, _) | Self::Unlabel(indexes, _) => indexes.iter().map(core).collect(),
            _ => Vec::new(),
        };
        described(transaction.annotate(&self.annotation(&cores)))
    }

    fn annotation<'a>(&'a self, cores: &'a [CoreHash]) -> Annotation<'a> {
        match self {
            Self::Label(_, labels) => Annotation::SetLabels { cores, labels },
            Self::Unlabel(_, keys) => Annotation::RemoveLabels { cores, keys },
            Self::Tag(index, name) => Annotation::SetTag { core: core(index), name },
            Self::Untag(name) => Annotation::RemoveTag { name },
            Self::Note(index, text) => Annotation::SetNote { core: core(index), text: *text },
            Self::Pin(index, note) => Annotation::Pin { core: core(index), note: *note },
            Self::Unpin(index) => Annotation::Unpin { core: core(index) },
            Self::Link(source, relation, target, note) => {
                Annotation::AddLink { source: core(source), relation, target: core(target), note: *note }
            }
            Self::Unlink(source, relation, target) => {
                Annotation::RemoveLink { source: core(source), relation, target: core(target) }
            }
        }
    }
}

/// Does a step, and returns what the engine returned, as text.
pub(super) fn run(step: &Step, vault: &Vault, at: DateTime<Utc>) -> String {
    let storage = vault.storage();
    match step {
        Step::Add { inputs, policy } => add(inputs, *policy, storage, at),
        Step::Annotate(changes) => annotate(changes, storage, at),
        Step::Remove { artifacts, reason, is_committed } => {
            remove(artifacts, *reason, *is_committed, storage, at)
        }
        Step::Forget(retention) => forget(retention, storage, at),
        Step::Index { is_built: true } => {
            // Its size depends on the engine.
            described(vault.run(&BuildSearchIndexRequest {}).map(|built| (built.captures, built.damaged)))
        }
        Step::Index { is_built: false } => described(vault.run(&DropSearchIndexRequest {})),
        Step::Hold | Step::Reopen => String::new(),
    }
}

fn add(inputs: &[Index], policy: Policy, storage: &dyn Storage, at: DateTime<Utc>) -> String {
    let preparer = storage.preparer().unwrap();
    let admitted = inputs.iter().map(|index| index.get(&UNIVERSE.inputs).admit());
    let batch: Vec<Prepared> = admitted.map(|admitted| preparer.prepare(admitted)).collect();
    let policy = match policy {
        Policy::Refuse => RemovedPolicy::Refuse,
        Policy::RefuseAndStop => RemovedPolicy::RefuseAndStop,
        Policy::TakeBack => RemovedPolicy::Readmit,
    };
    let options = PutOptions { policy, at, busy_timeout: Duration::from_mins(1) };
    let mut outcomes = storage.put(&batch.iter().collect::<Vec<_>>(), &options).unwrap();
    // Whether bytes are stored once is a matter of the engine.
    for outcome in &mut outcomes {
        outcome.reuses_bytes = false;
    }
    format!("{outcomes:?}")
}

/// Describes a result: of an error, what callers can act on, and the message.
fn described<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}: {error}", error.kind()),
    }
}

fn annotate(changes: &[Change], storage: &dyn Storage, at: DateTime<Utc>) -> String {
    let mut transaction = storage.transaction(at, runvault::storage::BUSY_TIMEOUT).unwrap();
    let outcomes: Vec<String> = changes.iter().map(|change| change.make(&mut *transaction)).collect();
    format!("{outcomes:?} {:?}", transaction.commit().unwrap())
}

fn remove(
    artifacts: &[Index],
    reason: Option<&str>,
    is_committed: bool,
    storage: &dyn Storage,
    at: DateTime<Utc>,
) -> String {
    let cores: Vec<CoreHash> = artifacts.iter().map(core).collect();
    let mut transaction = storage.transaction(at, runvault::storage::BUSY_TIMEOUT).unwrap();
    while !transaction.prepare_removal(&cores).unwrap() {
        transaction.commit().unwrap();
        transaction = storage.transaction(at, runvault::storage::BUSY_TIMEOUT).unwrap();
    }
    let removed: Vec<String> =
        cores.iter().map(|core| described(transaction.remove(*core, reason))).collect();
    let within = super::answers::brief(transaction.snapshot());
    if is_committed {
        format!("{removed:?} {within:?} {:?}", transaction.commit().unwrap())
    } else {
        format!("{removed:?} {within:?}")
    }
}

fn forget(retention: &Retention, storage: &dyn Storage, at: DateTime<Utc>) -> String {
    let group = match (retention.is_by_run, retention.only_label) {
        (true, _) => GroupKey::Attribute("run_id".to_owned()),
        (false, true) => GroupKey::Label("ci/job".to_owned()),
        (false, false) => GroupKey::Kind,
    };
    let rule =
        |key: &str, value: Option<&str>| LabelRule { key: key.to_owned(), value: value.map(str::to_owned) };
    let days = retention.keep_days.map(|count| PeriodRule { period: Period::Day, count });
    let policy = retention::Policy {
        keep_last: retention.keep_last,
        keep_periods: days.into_iter().collect(),
        keep_tags: retention.keep_tag.then(|| "best".parse().unwrap()).into_iter().collect(),
        keep_labels: retention.keep_label.then(|| rule("commit", Some("main"))).into_iter().collect(),
        labels: retention.only_label.then(|| rule("commit", None)).into_iter().collect(),
        by: retention.by,
        group_by: vec![group],
        ignore_links: retention.ignores_links,
        ..retention::Policy::default()
    };
    let plan = Plan::new(&*storage.snapshot().unwrap(), policy, at).unwrap();
    let mut transaction = storage.transaction(at, runvault::storage::BUSY_TIMEOUT).unwrap();
    let leaving: Vec<CoreHash> = plan.removed().map(|decision| decision.artifact.core).collect();
    while !transaction.prepare_removal(&leaving).unwrap() {
        transaction.commit().unwrap();
        transaction = storage.transaction(at, runvault::storage::BUSY_TIMEOUT).unwrap();
    }
    for core in leaving {
        transaction.remove(core, Some("retention policy")).unwrap();
    }
    format!("{:#?} {:?}", plan.decisions, transaction.commit().unwrap())
}

/// The time of a step, which may be before that of the previous one.
pub(super) fn time(milliseconds: i64) -> DateTime<Utc> {
    let start: DateTime<Utc> = "2026-03-01T12:00:00Z".parse().unwrap();
    start + TimeDelta::milliseconds(milliseconds)
}
