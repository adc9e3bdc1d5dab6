//! Recognition of repeated calls of effects: by a nonce, or by their key fields.

use std::collections::BTreeMap;

use super::rules::{KEYS, NONCES};
use crate::artifact::RunCall;
use crate::formats::{ContractTerms, Effect, KeyPath};
use crate::json::reader::excerpt;
use crate::json::{Object, Value};
use crate::validation::Findings;

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
