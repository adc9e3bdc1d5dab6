//! Use of a contract's IO references by a run: which ones it called and attested, and which calls are not covered.

use std::collections::{BTreeMap, HashMap};

use super::rules::{MODES, REQUIRED, TARGETS};
use super::targets::CallTargets;
use crate::artifact::{RunCall, RunCallResult};
use crate::formats::{ContractTerms, IoRef};
use crate::json::reader::excerpt;
use crate::json::{Object, Value};
use crate::validation::Findings;

/// HTTP methods that read, and below those that write.
const READING: [&str; 4] = ["GET", "HEAD", "OPTIONS", "TRACE"];
const CHANGING: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// The state of all IO references.
pub(super) struct Refs<'t> {
    terms: &'t ContractTerms,
    states: Vec<RefState>,
    /// The refs that a run must attest.
    required: HashMap<&'t str, usize>,
    /// The first call of an effect on a ref that is written.
    effect_call: Option<EffectCall>,
    /// Calls of undeclared targets: their number, and the first location.
    undeclared: BTreeMap<String, (u64, String)>,
    /// Calls in another mode than the declared one, by ref and mode: their number, and the first location.
    mismatches: BTreeMap<(usize, String), (u64, String)>,
}

/// The state of an IO reference.
#[derive(Clone, Debug, Default)]
pub(super) struct RefState {
    /// The location of its first call.
    pub(super) called: Option<String>,
    /// Whether a call returned a result that counts.
    pub(super) answered: bool,
    /// The reason that the last call without such a result has none.
    pub(super) unanswered: Option<String>,
    /// The step or record at which the run first states it, or a call of it returns a result.
    attested_at: Option<usize>,
    /// The first call of it that is an effect.
    effect_call: Option<EffectCall>,
}

/// The call of an effect.
#[derive(Clone, Debug)]
struct EffectCall {
    /// The step or record at which it began.
    began: usize,
    place: String,
    /// Whether it returned a result that counts, so that it attests its target itself.
    is_answered: bool,
}

impl<'t> Refs<'t> {
    pub(super) fn new(terms: &'t ContractTerms) -> Self {
        let refs = terms.io_refs.iter().enumerate();
        let required = refs.filter(|(_, io_ref)| io_ref.is_required);
        Self {
            terms,
            states: vec![RefState::default(); terms.io_refs.len()],
            required: required.map(|(index, io_ref)| (io_ref.name.as_str(), index)).collect(),
            effect_call: None,
            undeclared: BTreeMap::new(),
            mismatches: BTreeMap::new(),
        }
    }

    /// Returns the state of the ref with this number.
    pub(super) fn state_of(&self, index: usize) -> Option<&RefState> {
        self.states.get(index)
    }

    /// Records a call.
    pub(super) fn call(&mut self, call: &RunCall<'_, '_>, tie: &CallTargets) {
        for index in &tie.refs {
            let Some(state) = self.states.get_mut(*index) else { continue };
            state.called.get_or_insert_with(|| call.place.clone());
            match &call.answer {
                RunCallResult::Result { .. } => {
                    state.answered = true;
                    state.attest(call.ended);
                }
                RunCallResult::Discounted { why, .. } => state.unanswered = Some(why.clone()),
                RunCallResult::None => state.unanswered = Some("no result is recorded".to_owned()),
            }
        }
        let names = &call.names;
        if tie.is_named && !tie.is_declared {
            let name = names.io_ref.or(names.tools.first().copied()).or(names.url).unwrap_or_default();
            count(&mut self.undeclared, name.to_owned(), &call.place);
        }
        if let Some(mode) = names.mode
            && let Some(index) = tie.refs.first()
            && !tie.refs.iter().any(|index| self.allows(*index, mode))
        {
            count(&mut self.mismatches, (*index, mode.to_owned()), &call.place);
        }
    }

    /// Records a call that may be one of `effects`, if there are any. Effects on refs that are read only observe them.
    pub(super) fn effect_call(&mut self, call: &RunCall<'_, '_>, tie: &CallTargets, effects: &[usize]) {
        let is_written = |index: &&usize| self.terms.io_refs.get(**index).is_some_and(|it| it.mode != "read");
        let written: Vec<usize> = tie.refs.iter().filter(is_written).copied().collect();
        if effects.is_empty() || written.is_empty() {
            return;
        }
        let is_answered = matches!(call.answer, RunCallResult::Result { .. });
        let this = EffectCall { began: call.began, place: call.place.clone(), is_answered };
        for index in written {
            if let Some(state) = self.states.get_mut(index) {
                state.effect_call.get_or_insert_with(|| this.clone());
            }
        }
        self.effect_call.get_or_insert(this);
    }

    /// Returns the call of an effect that began before a required ref was attested: of any effect, if the ref is only
    /// read, or of one on the ref itself that did not attest it.
    fn unattested_effect<'r>(&'r self, io_ref: &IoRef, state: &'r RefState) -> Option<&'r EffectCall> {
        let attested_at = state.attested_at?;
        let own = state.effect_call.as_ref().filter(|call| !call.is_answered);
        let first = if io_ref.mode == "read" { self.effect_call.as_ref() } else { own };
        first.filter(|call| call.began < attested_at)
    }

    /// Returns whether the contract declares calls of the stated mode. Words other than modes and methods are ignored.
    fn allows(&self, index: usize, mode: &str) -> bool {
        let declared_mode = match mode {
            "write" | "mutate" => mode,
            mode if is_reading(mode) => "read",
            method if CHANGING.contains(&method.to_uppercase().as_str()) => "write",
            _ => return true,
        };
        self.terms
            .io_refs
            .get(index)
            .is_none_or(|io_ref| io_ref.mode == "mutate" || io_ref.mode == declared_mode)
    }

    /// Records the required refs that the recorder states by full name: as a string, or as the name of a member that is
    /// not null, false or empty. `at` is the number of the step or record.
    pub(super) fn state(&mut self, value: &Value<'_>, at: usize) {
        if self.required.is_empty() {
            return;
        }
        match value {
            Value::String(text) => self.attest(text, at),
            Value::Array(elements) => elements.iter().for_each(|element| self.state(element, at)),
            Value::Object(object) => {
                for (name, member) in object.iter() {
                    if is_populated(member) {
                        self.attest(name, at);
                    }
                    self.state(member, at);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn attest(&mut self, name: &str, at: usize) {
        if let Some(state) = self.required.get(name).and_then(|index| self.states.get_mut(*index)) {
            state.attest(at);
        }
    }

    /// Reports the violations. `has_evidence` returns whether evidence of an effect on a ref was found.
    pub(super) fn report(&self, has_evidence: &dyn Fn(&str) -> bool, findings: &mut Findings) {
        let refs = self.terms.io_refs.iter().zip(&self.states).enumerate();
        for (index, (io_ref, state)) in refs.filter(|(_, (io_ref, _))| io_ref.is_required) {
            let name = excerpt(&io_ref.name);
            if let Some(call) = self.unattested_effect(io_ref, state) {
                let message =
                    format!("{name} is required, but the run attests it only after this effect began");
                findings.for_rule(REQUIRED).add(call.place.as_str(), message);
            } else if state.attested_at.is_none() && !has_evidence(&io_ref.name) {
                let message = format!("{name} is required, but the run never attests it");
                findings.for_rule(REQUIRED).add(format!("/io_refs/{index}"), message);
            }
        }
        for (name, (count, place)) in &self.undeclared {
            let message = format!("{} is called{}, but not declared", excerpt(name), times(*count));
            findings.for_rule(TARGETS).add(place.as_str(), message);
        }
        for ((index, mode), (count, place)) in &self.mismatches {
            let Some(io_ref) = self.terms.io_refs.get(*index) else { continue };
            let (name, declared) = (excerpt(&io_ref.name), &io_ref.mode);
            let message =
                format!("{} of {name}{}, which is declared as {declared}", excerpt(mode), times(*count));
            findings.for_rule(MODES).add(place.as_str(), message);
        }
        for (index, effect) in self.terms.effects.iter().enumerate() {
            if let Some(why) = effect.exceeds_reading() {
                let (name, target) = (excerpt(&effect.name), excerpt(&effect.target));
                let message =
                    format!("{name} {why}, so it does more than read; {target} is declared as read");
                findings.for_rule(MODES).add(format!("/effects/{index}"), message);
            }
        }
    }
}

impl RefState {
    fn attest(&mut self, at: usize) {
        self.attested_at = Some(self.attested_at.map_or(at, |first| first.min(at)));
    }
}

/// Returns whether a call of the stated mode or HTTP method only reads.
pub(super) fn is_reading(mode: &str) -> bool {
    mode == "read" || READING.contains(&mode.to_uppercase().as_str())
}

fn count<K: Ord>(counts: &mut BTreeMap<K, (u64, String)>, key: K, place: &str) {
    counts.entry(key).or_insert_with(|| (0, place.to_owned())).0 += 1;
}

fn times(count: u64) -> String {
    if count > 1 { format!(" ({count} times)") } else { String::new() }
}

fn is_populated(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(object) => Object::iter(object).len() > 0,
        Value::Bool(true) | Value::Number(_) => true,
    }
}
