//! Evidence of effects: the assignment of values to effects that share a source, and checks of nonces and keys in retries.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::judge::ObservedValue;
use super::refs::{KEYS, NONCES};
use super::targets::Targets;
use crate::artifact::RunCall;
use crate::formats::{ContractTerms, Effect, KeyPath};
use crate::json::reader::excerpt;
use crate::json::{Object, Value};
use crate::validation::Findings;

/// The known origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Scope {
    /// A call of the ref with this number.
    Ref(usize),
    /// A call of the tool with this number, which effects declare as their own.
    Tool(usize),
    /// An unknown call.
    Any,
}

/// The effects that a value may be evidence of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A single effect.
    One(usize),
    /// Several effects that cannot be distinguished.
    Several(EffectGroup),
}

/// The effects of a pool that a value may be evidence of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum EffectGroup {
    /// Those that list this value.
    WithValue(String),
    /// Those that are not the rollback of another effect of the pool.
    Forward,
}

/// The effects of a scope that share a source of evidence.
#[derive(Debug, Default)]
pub(super) struct EvidencePool {
    members: Vec<usize>,
    forward: HashSet<usize>,
    by_value: HashMap<String, Vec<usize>>,
}

/// All pools of a contract.
pub(super) struct EvidencePools {
    all: Vec<EvidencePool>,
    by_scope: HashMap<(Scope, usize), usize>,
    /// The pools of each effect in named calls, and below in unnamed ones.
    named: Vec<Vec<usize>>,
    unnamed: Vec<Vec<usize>>,
}

impl EvidencePools {
    /// Creates the pools. `sources` contains the numbers of the sources of each effect.
    pub(super) fn new(terms: &ContractTerms, targets: &Targets<'_>, sources: &[Vec<usize>]) -> Self {
        let count = terms.effects.len();
        let mut pools = Self {
            all: Vec::new(),
            by_scope: HashMap::new(),
            named: vec![Vec::new(); count],
            unnamed: vec![Vec::new(); count],
        };
        for (index, (effect, sources)) in terms.effects.iter().zip(sources).enumerate() {
            let by_tool = effect.tools.iter().filter_map(|tool| targets.tool(tool)).map(Scope::Tool);
            let by_ref = targets.io_ref(&effect.target).filter(|_| effect.tools.is_empty()).map(Scope::Ref);
            let scopes: BTreeSet<Scope> = by_tool.chain(by_ref).collect();
            for source in sources {
                let named: Vec<usize> =
                    scopes.iter().map(|scope| pools.join(index, *scope, *source)).collect();
                let unnamed = pools.join(index, Scope::Any, *source);
                pools.named.get_mut(index).into_iter().for_each(|pools| pools.extend(&named));
                pools.unnamed.get_mut(index).into_iter().for_each(|pools| pools.push(unnamed));
            }
        }
        for pool in &mut pools.all {
            pool.distinguish(&terms.effects);
        }
        pools
    }

    fn join(&mut self, effect: usize, scope: Scope, source: usize) -> usize {
        let next = self.all.len();
        let pool = *self.by_scope.entry((scope, source)).or_insert(next);
        if pool == next {
            self.all.push(EvidencePool::default());
        }
        self.all.get_mut(pool).into_iter().for_each(|pool| pool.members.push(effect));
        pool
    }

    /// Returns the number of the pool of a scope and a source.
    pub(super) fn position(&self, scope: Scope, source: usize) -> Option<usize> {
        self.by_scope.get(&(scope, source)).copied()
    }

    /// Returns the pools that contain an effect.
    pub(super) fn with(&self, effect: usize, named: bool) -> &[usize] {
        let pools = if named { &self.named } else { &self.unnamed };
        pools.get(effect).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the effects of a pool that `seen` may be evidence of.
    pub(super) fn owner(&self, pool: usize, seen: &ObservedValue) -> Option<Owner> {
        self.all.get(pool).and_then(|pool| pool.owner(seen))
    }

    /// Returns an effect of a pool other than `effect`.
    pub(super) fn another(&self, pool: usize, effect: usize) -> Option<usize> {
        self.all.get(pool)?.members.iter().copied().find(|other| *other != effect)
    }

    /// Returns the classes of a pool that contain an effect.
    pub(super) fn classes_of(&self, pool: usize, effect: usize, terms: &ContractTerms) -> Vec<EffectGroup> {
        let Some(pool) = self.all.get(pool) else { return Vec::new() };
        let values = terms.effects.get(effect).into_iter().flat_map(listed_values);
        let mut classes: Vec<EffectGroup> =
            values.map(|value| EffectGroup::WithValue(value.clone())).collect();
        classes.extend(pool.forward.contains(&effect).then_some(EffectGroup::Forward));
        classes
    }
}

impl EvidencePool {
    fn distinguish(&mut self, effects: &[Effect]) {
        let member = |index: &usize| effects.get(*index);
        let undoing: HashSet<&str> = self
            .members
            .iter()
            .filter_map(member)
            .filter_map(|effect| effect.rollback.as_deref().filter(|rollback| *rollback != effect.name))
            .collect();
        let undoes =
            |index: &&usize| member(index).is_some_and(|effect| undoing.contains(effect.name.as_str()));
        self.forward = self.members.iter().filter(|index| !undoes(index)).copied().collect();
        if self.forward.is_empty() {
            // Effects that roll each other back in a cycle.
            self.forward = self.members.iter().copied().collect();
        }
        for index in &self.members {
            let values: HashSet<&String> = member(index).into_iter().flat_map(listed_values).collect();
            for value in values {
                self.by_value.entry(value.clone()).or_default().push(*index);
            }
        }
    }

    fn owner(&self, seen: &ObservedValue) -> Option<Owner> {
        if let [only] = self.members.as_slice() {
            return Some(Owner::One(*only));
        }
        let text = seen.comparable();
        let stating = text.as_ref().and_then(|text| Some((text, self.by_value.get(text)?.as_slice())));
        match stating {
            Some((_, [only])) => return Some(Owner::One(*only)),
            Some((text, _)) => return Some(Owner::Several(EffectGroup::WithValue(text.clone()))),
            None => {}
        }
        let mut forward = self.forward.iter();
        match (forward.next(), forward.next()) {
            (Some(only), None) => Some(Owner::One(*only)),
            (Some(_), Some(_)) => Some(Owner::Several(EffectGroup::Forward)),
            (None, _) => None,
        }
    }
}

/// Returns the success and failure values that a contract defines for an effect.
fn listed_values(effect: &Effect) -> impl Iterator<Item = &String> {
    let evidence = effect.evidence.as_ref();
    let members = evidence.into_iter().flat_map(|evidence| [&evidence.success, &evidence.failure]);
    members.filter_map(|member| member.value()).flatten()
}

/// The names of nonces, in lower case and without hyphens and underscores.
const NONCE_NAMES: [&str; 9] = [
    "nonce",
    "idempotencykey",
    "xidempotencykey",
    "idempotencytoken",
    "clienttoken",
    "clientrequesttoken",
    "dedupid",
    "deduplicationid",
    "messagededuplicationid",
];

/// Maximum work of all checks of one audit, in comparisons of a name with a member.
const MAX_WORK: u64 = 50_000_000;

/// What a call lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    Nonce,
    KeyField(String),
    /// It was not checked, and why.
    NonceUnknown(&'static str),
    KeyFieldsUnknown(&'static str),
}

const NO_NAMES: &str = "the arguments are not recorded with their names";
const TOO_MUCH: &str = "the arguments of the calls are too many or too large";

/// The checks of a run.
pub(super) struct RetryChecks<'t> {
    terms: &'t ContractTerms,
    /// What calls of an effect lack: the number of calls, and the location of the first.
    gaps: BTreeMap<(usize, Gap), (u64, String)>,
    work_left: u64,
}

impl<'t> RetryChecks<'t> {
    pub(super) fn new(terms: &'t ContractTerms) -> Self {
        Self { terms, gaps: BTreeMap::new(), work_left: MAX_WORK }
    }

    /// Checks a call that is one of `effects`. If they are of different idempotency, nothing is known of the call.
    pub(super) fn check(&mut self, call: &RunCall<'_, '_>, effects: &[usize]) {
        let candidates = effects.iter().filter_map(|index| Some((*index, self.terms.effects.get(*index)?)));
        let candidates: Vec<(usize, &Effect)> = candidates.collect();
        let Some((first, _)) = candidates.first().copied() else { return };
        let all =
            |sort: &str| candidates.iter().all(|(_, effect)| effect.idempotency.as_deref() == Some(sort));
        let (is_nonce, is_keyed) = (all("non-idempotent"), all("keyed"));
        let candidates = candidates.iter().map(|(_, effect)| *effect);
        let is_possible = self.spend(call, candidates.clone());
        let gap = match (is_nonce, is_keyed) {
            (true, _) if is_possible => missing_nonce(call, candidates),
            (true, _) => Some(Gap::NonceUnknown(TOO_MUCH)),
            (_, true) if is_possible => missing_key_field(call, candidates),
            (_, true) => Some(Gap::KeyFieldsUnknown(TOO_MUCH)),
            _ => None,
        };
        if let Some(gap) = gap {
            self.gaps.entry((first, gap)).or_insert_with(|| (0, call.place.clone())).0 += 1;
        }
    }

    /// Counts the work of a check; returns false if it is too much.
    fn spend<'e>(&mut self, call: &RunCall<'_, '_>, effects: impl Iterator<Item = &'e Effect>) -> bool {
        let places = call.arguments.as_deref().into_iter().chain(call.envelope.iter().copied());
        let members: u64 = places.map(count_values).sum();
        let paths = effects.flat_map(|effect| effect.key_fields.iter().chain(&effect.nonce));
        let work = members.saturating_mul(1 + paths.map(KeyPath::work).sum::<u64>());
        let left = self.work_left.checked_sub(work);
        self.work_left = left.unwrap_or_default();
        left.is_some()
    }

    /// Reports what calls lack.
    pub(super) fn report(&self, findings: &mut Findings) {
        for ((effect, gap), (count, place)) in &self.gaps {
            let Some(effect) = self.terms.effects.get(*effect) else { continue };
            let calls = if *count == 1 { "call".to_owned() } else { format!("{count} calls") };
            let (name, has) = (excerpt(&effect.name), if *count == 1 { "has" } else { "have" });
            match gap {
                Gap::Nonce => {
                    let named = effect.nonce.as_ref().map(|nonce| format!(" {}", excerpt(nonce.text())));
                    let message = format!("{calls} of {name}, which is not idempotent, {has} no nonce");
                    findings.for_rule(NONCES).add(place.as_str(), message + &named.unwrap_or_default());
                }
                Gap::KeyField(field) => {
                    let message = format!("{calls} of {name} {has} no key field {}", excerpt(field));
                    findings.for_rule(KEYS).add(place.as_str(), message);
                }
                Gap::NonceUnknown(why) => {
                    findings
                        .for_rule(NONCES)
                        .warn(place.as_str(), format!("{calls} of {name} not checked: {why}"));
                }
                Gap::KeyFieldsUnknown(why) => {
                    findings
                        .for_rule(KEYS)
                        .warn(place.as_str(), format!("{calls} of {name} not checked: {why}"));
                }
            }
        }
    }
}

fn missing_nonce<'e>(
    call: &RunCall<'_, '_>,
    mut effects: impl Iterator<Item = &'e Effect> + Clone,
) -> Option<Gap> {
    if effects.clone().any(|effect| effect.has_reason) {
        return None;
    }
    let arguments = call.arguments.as_deref();
    let mut places = arguments.into_iter().chain(call.envelope.iter().copied());
    let has_nonce = |place: &Value<'_>| {
        let is_at = |path: &KeyPath| path.values(place).into_iter().any(is_usable);
        has_named_nonce(place) || effects.any(|effect| effect.nonce.as_ref().is_some_and(is_at))
    };
    if places.any(has_nonce) {
        None
    } else if arguments.is_some_and(|arguments| arguments.as_object().is_some()) {
        Some(Gap::Nonce)
    } else {
        Some(Gap::NonceUnknown(NO_NAMES))
    }
}

/// Returns a key field that is missing; that of the first effect, if the call may be one of several and fits none.
fn missing_key_field<'e>(call: &RunCall<'_, '_>, effects: impl Iterator<Item = &'e Effect>) -> Option<Gap> {
    let Some(arguments) = call.arguments.as_deref().filter(|it| it.as_object().is_some()) else {
        return Some(Gap::KeyFieldsUnknown(NO_NAMES));
    };
    let missing = |effect: &Effect| {
        let is_missing = |path: &&KeyPath| !path.values(arguments).into_iter().any(is_usable);
        effect.key_fields.iter().find(is_missing).map(|path| Gap::KeyField(path.text().to_owned()))
    };
    let missing: Option<Vec<Gap>> = effects.map(missing).collect();
    missing?.into_iter().next()
}

/// Returns whether an object, or a list of names with values such as that of headers, has a nonce.
fn has_named_nonce(place: &Value<'_>) -> bool {
    let is_nonce = |name: &str, value: &Value<'_>| {
        let name: String = name.chars().filter(|it| !matches!(it, '-' | '_')).collect();
        NONCE_NAMES.contains(&name.to_ascii_lowercase().as_str()) && is_usable(value)
    };
    let pairs = place.as_array().unwrap_or_default().iter().filter_map(Value::as_array);
    let mut pairs = pairs.filter_map(|pair| Some((pair.first()?.as_str()?, pair.get(1)?)));
    let mut members = place.as_object().into_iter().flat_map(Object::iter);
    members.any(|(name, value)| is_nonce(name, value)) || pairs.any(|(name, value)| is_nonce(name, value))
}

/// Returns whether a value can identify a request.
fn is_usable(value: &Value<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

/// Returns the number of values within a value, and itself.
fn count_values(value: &Value<'_>) -> u64 {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count_values).sum(),
        Value::Object(object) => object.iter().map(|(_, member)| count_values(member)).sum(),
        _ => 0_u64,
    }
}
