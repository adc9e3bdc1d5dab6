//! The answers that engines are compared by.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::Index;
use runvault::Vault;
use runvault::artifact::SignatureState;
use runvault::digest::{BlobHash, CoreHash, DigestPrefix};
use runvault::storage::interface::{
    CaptureTarget, Condition, Containment, Direction, Filter, NeighborsQuery, Order, Page, Snapshot,
    TimePeriod,
};
use runvault::storage::{JournalQuery, PassageGrouping, Term, Terms, TimeBasis};

use super::queries;
use super::steps::time;
use super::universe::UNIVERSE;

/// Answers, by question.
pub(super) type Answers = BTreeMap<String, String>;

/// A question of random content.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    filter: FilterProbe,
    order: Order,
    limit: usize,
    digest: Index,
    digits: usize,
    kinds: Vec<Index>,
    from: u64,
    action: Option<&'static str>,
    last: Option<u32>,
    /// Two artifacts, and a distance.
    path: (Index, Index, u8),
    search: Vec<Vec<(&'static str, bool)>>,
}

/// Words and phrases of the inputs, and one that none of them has.
const WORDS: [&str; 9] = ["a", "e", "r", "p", "tool", "step", "the", "x y", "nothing-has-this"];

#[derive(Clone, Debug)]
struct FilterProbe {
    kinds: Vec<Index>,
    conditions: Vec<ConditionProbe>,
    through_members: bool,
    period: Option<(TimeBasis, Option<i64>, Option<i64>)>,
    digits: Option<(Index, usize)>,
    among: Option<Vec<Index>>,
}

#[derive(Clone, Debug)]
enum ConditionProbe {
    Mention(Option<Index>, Index),
    Attribute(Index),
    Signature(SignatureState, Option<&'static str>),
    Unsigned,
    Note(&'static str),
    Tagged(Option<&'static str>),
    Pinned,
    Label(&'static str, Option<&'static str>),
    Range(&'static str, Option<i64>, Option<i64>),
    About(Index),
    AttributeLike(Index, &'static str),
    LabelLike(&'static str),
}

fn condition() -> impl Strategy<Value = ConditionProbe> {
    let index = any::<Index>;
    prop_oneof![
        4 => (prop::option::of(index()), index()).prop_map(|(group, digest)| ConditionProbe::Mention(group, digest)),
        3 => index().prop_map(ConditionProbe::Attribute),
        2 => (prop::sample::select(&SignatureState::ALL[..]), prop::option::of(Just("ours")))
            .prop_map(|(state, key)| ConditionProbe::Signature(state, key)),
        1 => Just(ConditionProbe::Unsigned),
        2 => prop::sample::select(&["", "a n", "ärger", "N", "%"][..]).prop_map(ConditionProbe::Note),
        2 => prop::option::of(Just("best")).prop_map(ConditionProbe::Tagged),
        1 => Just(ConditionProbe::Pinned),
        2 => (prop::sample::select(&["commit", "ci/job"][..]), prop::option::of(Just("main")))
            .prop_map(|(key, value)| ConditionProbe::Label(key, value)),
        2 => (prop::sample::select(&["steps", "errors", "tool"][..]), prop::option::of(0..4_i64), prop::option::of(0..4_i64))
            .prop_map(|(name, least, most)| ConditionProbe::Range(name, least, most)),
        1 => index().prop_map(ConditionProbe::About),
        1 => (index(), prop::sample::select(&["*", "*1*", "a*", "*_"][..]))
            .prop_map(|(attribute, pattern)| ConditionProbe::AttributeLike(attribute, pattern)),
        1 => prop::sample::select(&["*", "m*n", "*x"][..]).prop_map(ConditionProbe::LabelLike),
    ]
}

fn basis() -> impl Strategy<Value = TimeBasis> {
    prop::sample::select(
        &[TimeBasis::FirstSeen, TimeBasis::LastSeen, TimeBasis::Created, TimeBasis::Finished][..],
    )
}

fn filter() -> impl Strategy<Value = FilterProbe> {
    let seconds = || prop::option::of(-10..30_i64);
    (
        prop::collection::vec(any::<Index>(), 0..3),
        prop::collection::vec(condition(), 0..3),
        any::<bool>(),
        prop::option::weighted(0.3, (basis(), seconds(), seconds())),
        prop::option::weighted(0.2, (any::<Index>(), 0..3_usize)),
        prop::option::weighted(0.2, prop::collection::vec(any::<Index>(), 0..8)),
    )
        .prop_map(|(kinds, conditions, through_members, period, digits, among)| FilterProbe {
            kinds,
            conditions,
            through_members,
            period,
            digits,
            among,
        })
}

pub(super) fn probe() -> impl Strategy<Value = Probe> {
    let attribute = prop::sample::select(&["created_at", "steps", "interactions", "errors", "tool"][..]);
    let order = prop_oneof![
        basis().prop_map(Order::Newest),
        attribute.prop_map(Order::Largest),
        Just(Order::Core),
        Just(Order::Kind)
    ];
    let action = prop::option::of(prop::sample::select(&["add", "seen", "tag", "remove", "none"][..]));
    (
        (filter(), order, 1..6_usize),
        (any::<Index>(), 6..65_usize, prop::collection::vec(any::<Index>(), 0..3)),
        (0..12_u64, action, prop::option::of(0..9_u32)),
        (any::<Index>(), any::<Index>(), 1..4_u8),
        prop::collection::vec(
            prop::collection::vec((prop::sample::select(&WORDS[..]), any::<bool>()), 1..3),
            1..3,
        ),
    )
        .prop_map(
            |((filter, order, limit), (digest, digits, kinds), (from, action, last), path, search)| Probe {
                filter,
                order,
                limit,
                digest,
                digits,
                kinds,
                from,
                action,
                last,
                path,
                search,
            },
        )
}

impl FilterProbe {
    fn filter(&self) -> Filter {
        let time_of = |seconds: i64| time(0) + TimeDelta::seconds(seconds);
        let period = self.period.map(|(basis, since, until)| TimePeriod {
            basis,
            since: since.map(time_of),
            until: until.map(time_of),
        });
        Filter {
            kinds: self.kinds.iter().map(|kind| kind.get(&UNIVERSE.kinds).clone()).collect(),
            conditions: self.conditions.iter().map(ConditionProbe::condition).collect(),
            through_members: self.through_members,
            period,
            digits: self.digits.map(|(core, length)| core.get(&UNIVERSE.cores).0.hex()[..length].to_owned()),
            among: self
                .among
                .as_ref()
                .map(|cores| cores.iter().map(|core| *core.get(&UNIVERSE.cores)).collect()),
        }
    }
}

impl ConditionProbe {
    fn condition(&self) -> Condition {
        match self {
            Self::Mention(group, digest) => Condition::Mention {
                group: group.map(|group| group.get(&UNIVERSE.groups).clone()),
                digest: *digest.get(&UNIVERSE.digests),
            },
            Self::Attribute(attribute) => {
                let (name, value) = attribute.get(&UNIVERSE.attributes).clone();
                Condition::Attribute { name, value }
            }
            Self::About(digest) => Condition::About { digest: *digest.get(&UNIVERSE.digests) },
            Self::AttributeLike(attribute, pattern) => {
                let (name, _) = attribute.get(&UNIVERSE.attributes).clone();
                Condition::AttributeLike { name, pattern: (*pattern).to_owned() }
            }
            Self::LabelLike(pattern) => {
                Condition::LabelLike { key: "commit".to_owned(), pattern: (*pattern).to_owned() }
            }
            Self::Signature(state, key_id) => {
                Condition::Signature { state: Some(*state).into(), key_id: key_id.map(str::to_owned) }
            }
            Self::Unsigned => Condition::Signature { state: None.into(), key_id: None },
            Self::Note(text) => Condition::Note { text: (*text).to_owned() },
            Self::Tagged(name) => Condition::Tagged { name: name.map(str::to_owned) },
            Self::Pinned => Condition::Pinned,
            Self::Label(key, value) => {
                Condition::Label { key: (*key).to_owned(), value: value.map(str::to_owned) }
            }
            Self::Range(name, least, most) => {
                Condition::Range { name: (*name).to_owned(), least: *least, most: *most }
            }
        }
    }
}

/// Returns the answers to the questions that depend on a probe.
fn probed(snapshot: &dyn Snapshot, probe: &Probe) -> Answers {
    let mut answers = Answers::new();
    let mut answer = |question: String, text: String| {
        answers.insert(question, text);
    };
    let filter = probe.filter.filter();
    answer(format!("count {filter:?}"), format!("{:?}", snapshot.count(&filter).unwrap()));
    for basis in [TimeBasis::FirstSeen, TimeBasis::LastSeen, TimeBasis::Created, TimeBasis::Finished] {
        let days = snapshot.count_by_day(&filter, basis).unwrap();
        answer(format!("days by {basis:?} of {filter:?}"), format!("{days:?}"));
    }
    let attributes = ["model_id", "errors", "run_id"].map(str::to_owned);
    let counts = snapshot.count_by_value(&filter, &attributes).unwrap();
    answer(format!("counts by value of {filter:?}"), format!("{counts:?}"));
    let not_alone = snapshot.not_alone(&filter, &["pack".to_owned()]).unwrap();
    answer(format!("not alone of {filter:?}"), format!("{not_alone:?}"));
    for relation in &UNIVERSE.relations {
        for attribute in ["trace_id", "run_id"] {
            let related =
                snapshot.related_to_matching(&UNIVERSE.cores, &filter, relation, attribute).unwrap();
            answer(format!("related to {filter:?} by {relation} {attribute}"), format!("{related:?}"));
        }
    }
    let mut after = None;
    for number in 0.. {
        let page = snapshot.find(&filter, probe.order, &Page { limit: probe.limit, after }).unwrap();
        answer(
            format!("find {filter:?} {:?} page {number} of {}", probe.order, probe.limit),
            format!("{page:?}"),
        );
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let digest = *probe.digest.get(&UNIVERSE.digests);
    let prefix: DigestPrefix = digest.hex()[..probe.digits].parse().unwrap();
    answer(format!("resolve {prefix}"), format!("{:?}", snapshot.resolve(&prefix, probe.limit).unwrap()));
    let group = probe.kinds.first().map(|group| group.get(&UNIVERSE.groups).as_str());
    let found = snapshot.mentioned_with_prefix(&prefix, group, probe.limit).unwrap();
    answer(format!("mentioned {prefix} {group:?}"), format!("{found:?}"));
    let query =
        JournalQuery { since: None, until: None, action: probe.action.map(str::to_owned), limit: probe.last };
    let entries = snapshot.journal(&query, probe.from, probe.limit).unwrap();
    answer(format!("journal {query:?} from {}", probe.from), format!("{entries:?}"));
    let kinds: Vec<String> = probe.kinds.iter().map(|kind| kind.get(&UNIVERSE.kinds).clone()).collect();
    // An engine may return artifacts that do not mention the digest, but not miss one that does.
    let candidates = snapshot.candidates(&[digest], &kinds).unwrap().remove(0);
    assert!(candidates.is_sorted());
    let mentioning = snapshot.mentioning(&[digest], None).unwrap().remove(0);
    let found: Vec<_> = mentioning.iter().filter(|mention| candidates.contains(&mention.artifact)).collect();
    answer(format!("candidates {digest} {kinds:?}"), format!("{found:?}"));
    let (name, value) = probe.digest.get(&UNIVERSE.attributes);
    let beginning: String = value.chars().take(probe.limit - 1).collect();
    let values = snapshot.attribute_values(name, &beginning, probe.limit).unwrap();
    answer(format!("values {name} {beginning:?}"), format!("{values:?}"));
    search(snapshot, probe, &mut answers);
    answers
}

/// Adds what a search finds. The order of what it finds is the engine's.
fn search(snapshot: &dyn Snapshot, probe: &Probe, answers: &mut Answers) {
    let index = snapshot.full_text().unwrap();
    let state = index.search_index().unwrap();
    answers.insert("search index".to_owned(), format!("{state:?}"));
    if state.is_none() {
        return;
    }
    let term = |(word, is_prefix): &(&str, bool)| Term { text: (*word).to_owned(), is_prefix: *is_prefix };
    let alternatives = probe.search.iter().map(|terms| terms.iter().map(term).collect()).collect();
    let terms = Terms { alternatives, fields: Vec::new() };
    let among = probe.filter.among.as_ref();
    let among: Option<Vec<CoreHash>> =
        among.map(|among| among.iter().map(|core| *core.get(&UNIVERSE.cores)).collect());
    let found = index.search(&terms, among.as_deref(), PassageGrouping::Passage, usize::MAX).unwrap();
    let passages: BTreeSet<_> = found.iter().map(|it| (it.artifact, it.capture, it.number)).collect();
    assert_eq!(passages.len(), found.len(), "each passage is found once");
    answers.insert(format!("passages {terms:?} {among:?}"), format!("{passages:?}"));
    let found = index.search(&terms, among.as_deref(), PassageGrouping::Artifact, usize::MAX).unwrap();
    let artifacts: BTreeSet<_> = found.iter().map(|found| (found.artifact, found.more)).collect();
    answers.insert(format!("artifacts with {terms:?} {among:?}"), format!("{artifacts:?}"));
}

/// Returns all answers of a vault as it is now.
pub(super) fn now(vault: &Vault, probe: &Probe) -> Answers {
    let snapshot = vault.snapshot().unwrap();
    let mut answers = all(&*snapshot);
    answers.extend(probed(&*snapshot, probe));
    answers.extend(queries::all(vault));
    let (one, other, depth) = &probe.path;
    answers.extend(queries::probed(vault, one, other, *depth));
    answers
}

/// Returns some answers, to compare what transactions and held snapshots see.
pub(super) fn brief(snapshot: &dyn Snapshot) -> Answers {
    let mut answers = Answers::new();
    let cores = &UNIVERSE.cores;
    answers.insert("artifacts".to_owned(), format!("{:?}", snapshot.artifacts(cores).unwrap()));
    answers.insert("annotations".to_owned(), format!("{:?}", snapshot.annotations(cores).unwrap()));
    answers.insert("manual links".to_owned(), format!("{:?}", snapshot.manual_links(cores).unwrap()));
    let keys = snapshot.label_keys().unwrap();
    for key in &keys {
        for (text, limit) in [("", 9), ("", 1), ("m", 9)] {
            let values = snapshot.label_values(&key.key, text, limit).unwrap();
            answers.insert(format!("label values {} {text} {limit}", key.key), format!("{values:?}"));
        }
    }
    answers.insert("label keys".to_owned(), format!("{keys:?}"));
    answers
        .insert("tombstones".to_owned(), format!("{:?}", snapshot.tombstones(None, 0, usize::MAX).unwrap()));
    answers.insert("head".to_owned(), format!("{:?}", snapshot.journal_head().unwrap()));
    answers.insert("unresolved".to_owned(), format!("{:?}", snapshot.unresolved(None, usize::MAX).unwrap()));
    answers
}

/// Returns the answers about everything.
pub(super) fn all(snapshot: &dyn Snapshot) -> Answers {
    let universe = &*UNIVERSE;
    let cores = &universe.cores;
    let mut answers = brief(snapshot);
    let mut answer = |question: String, text: String| {
        answers.insert(question, text);
    };
    answer("preferred captures".to_owned(), format!("{:?}", snapshot.preferred_captures(cores).unwrap()));
    answer("attributes".to_owned(), format!("{:?}", snapshot.attributes(cores).unwrap()));
    answer("mention counts".to_owned(), format!("{:?}", snapshot.mention_counts(cores).unwrap()));
    answer("names".to_owned(), format!("{:?}", snapshot.names(cores).unwrap()));
    answer("namesakes".to_owned(), format!("{:?}", snapshot.has_namesake(cores).unwrap()));
    answer("shared files".to_owned(), format!("{:?}", snapshot.shared_files(cores).unwrap()));
    answer("attribute names".to_owned(), format!("{:?}", snapshot.attribute_names().unwrap()));
    for basis in [TimeBasis::FirstSeen, TimeBasis::LastSeen, TimeBasis::Created, TimeBasis::Finished] {
        let mut statistics = snapshot.statistics(basis).unwrap();
        // A question of its own, because a rebuild of the indexes adds one.
        answer("journal entries".to_owned(), std::mem::take(&mut statistics.journal_entries).to_string());
        answer(format!("statistics by {basis:?}"), format!("{statistics:?}"));
    }
    for direction in [Direction::In, Direction::Out] {
        let references = snapshot.references(cores, direction).unwrap();
        for (core, references) in cores.iter().zip(references) {
            answer(format!("references {direction:?} {core}"), format!("{references:?}"));
        }
    }
    for by in [Containment::Declared, Containment::Bytes] {
        answer(format!("containers {by:?}"), format!("{:?}", snapshot.containers(cores, by).unwrap()));
    }
    for name in &universe.names {
        let used = snapshot.named(std::slice::from_ref(name)).unwrap();
        answer(format!("named {name}"), format!("{used:?}"));
    }
    neighborhood(snapshot, &mut answers);
    let mut answer = |question: String, text: String| {
        answers.insert(question, text);
    };
    for group in universe.groups.iter().map(Some).chain([None]) {
        let group = group.map(String::as_str);
        answer(format!("mentions {group:?}"), format!("{:?}", snapshot.mentions(cores, group).unwrap()));
        answer(
            format!("mentioning {group:?}"),
            format!("{:?}", snapshot.mentioning(&universe.digests, group).unwrap()),
        );
        if let Some(group) = group {
            let kinds = kinds_of_group(snapshot, group);
            answer(format!("kinds with {group}"), format!("{kinds:?}"));
            let names = names_of_group(snapshot, group, &kinds);
            answer(format!("shared names {group}"), format!("{names:?}"));
            answer(
                format!("shared first {group}"),
                format!("{:?}", snapshot.shared_first_mentions(group).unwrap()),
            );
        }
    }
    for relation in &universe.relations {
        for attribute in ["trace_id", "run_id", "model_id"] {
            let related = snapshot.related_among(cores, relation, attribute).unwrap();
            answer(format!("related by {relation} {attribute}"), format!("{related:?}"));
        }
    }
    bytes(snapshot, &mut answers);
    answers
}

/// Adds what links are derived from.
fn neighborhood(snapshot: &dyn Snapshot, answers: &mut Answers) {
    let groups: Vec<&str> = UNIVERSE.groups.iter().map(String::as_str).collect();
    let known = BTreeSet::new();
    let query = NeighborsQuery { of: &UNIVERSE.cores, groups: &groups, namesakes: true, known: &known };
    let found = snapshot.neighborhood(&query).unwrap();
    for (core, artifact) in found.artifacts {
        answers.insert(format!("neighbor {core}"), format!("{artifact:?}"));
    }
    for (core, neighbors) in found.neighbors {
        answers.insert(format!("neighbors of {core}"), format!("{neighbors:?}"));
    }
    for (name, used) in found.uses {
        answers.insert(format!("uses of {name}"), format!("{used:?}"));
    }
}

/// Returns the kinds with mentions in the roles of a group. An engine may also return kinds whose artifacts with such
/// mentions were removed, but not miss one.
fn kinds_of_group(snapshot: &dyn Snapshot, group: &str) -> Vec<String> {
    let mut kinds = snapshot.kinds_with_group(group).unwrap();
    assert!(kinds.is_sorted());
    let artifacts = snapshot.artifacts(&UNIVERSE.cores).unwrap();
    let mentions = snapshot.mentions(&UNIVERSE.cores, Some(group)).unwrap();
    let mentioning: Vec<_> =
        artifacts.iter().zip(&mentions).filter(|(_, mentions)| !mentions.is_empty()).collect();
    let is_mentioning = |kind: &String| {
        mentioning
            .iter()
            .any(|(artifact, _)| artifact.as_ref().is_some_and(|artifact| artifact.kind == *kind))
    };
    kinds.retain(is_mentioning);
    kinds
}

/// Returns the names that several originals of these kinds have, in the same way.
fn names_of_group(snapshot: &dyn Snapshot, group: &str, kinds: &[String]) -> Vec<String> {
    let mut names = snapshot.shared_names(group).unwrap();
    assert!(names.is_sorted());
    names.retain(|name| {
        let originals = snapshot.named(std::slice::from_ref(name)).unwrap().remove(0).originals;
        let originals = snapshot.artifacts(&originals).unwrap().into_iter().flatten();
        originals.filter(|artifact| kinds.contains(&artifact.kind)).count() > 1
    });
    names
}

/// Adds the captures with their bytes, and the files.
fn bytes(snapshot: &dyn Snapshot, answers: &mut Answers) {
    let universe = &*UNIVERSE;
    let captures = snapshot.captures(&universe.cores).unwrap();
    for (core, captures) in universe.cores.iter().zip(captures) {
        for capture in &captures {
            let members = snapshot.members(*core, capture.capture).unwrap();
            for member in &members {
                let bytes = snapshot.read(*core, capture.capture, member.blob).unwrap();
                let hash = runvault::digest::Digest::from_content(&bytes);
                assert_eq!((hash, bytes.len() as u64), (member.blob.0, member.size));
            }
            answers.insert(format!("members of {core} {}", capture.capture), format!("{members:?}"));
        }
        answers.insert(format!("captures of {core}"), format!("{captures:?}"));
    }
    let blobs: Vec<BlobHash> = universe.digests.iter().map(|digest| BlobHash(*digest)).collect();
    answers.insert("files".to_owned(), format!("{:?}", snapshot.files(&blobs).unwrap()));
    let target = |capture| universe.cores.iter().map(move |core| CaptureTarget { capture, artifact: *core });
    let targets: Vec<CaptureTarget> = universe.captures.iter().copied().flat_map(target).collect();
    let with: Vec<_> = snapshot.captures_with(&targets).unwrap().into_iter().flatten().collect();
    answers.insert("captures with".to_owned(), format!("{with:?}"));
    for admitted in &universe.admitted {
        let tombstones = snapshot.tombstones_of(admitted).unwrap();
        answers.insert(format!("tombstones of {}", admitted.capture()), format!("{tombstones:?}"));
    }
}
