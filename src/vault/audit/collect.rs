//! Collection of evidence, in one pass over the calls and results of a run.

use std::collections::HashMap;

use super::judge::ObservedValue;
use super::pools::{EffectGroup, EvidencePools, Owner, RetryChecks, Scope};
use super::refs::{Refs, is_reading};
use super::schema::PayloadValidator;
use super::sources::{EvidenceLocations, EvidenceMatch, at_pointer};
use super::targets::{CallTargets, Targets};
use crate::artifact::{RunCall, RunCallResult, RunEvent};
use crate::digest::Digest;
use crate::formats::{ContractTerms, Effect, KeyPath};
use crate::json::{Value, compact};

/// Maximum number of key fields that identify a call: with more, all arguments do.
const MAX_KEY_FIELDS: usize = 64;

/// A value found as evidence of an effect.
#[derive(Clone, Debug)]
pub(super) struct EvidenceValue {
    /// The number of the call, in ascending order.
    pub(super) call: usize,
    pub(super) place: String,
    pub(super) seen: ObservedValue,
    /// The identity of the attempt: the values of the key fields, or the complete request.
    pub(super) attempt: Digest,
    /// Whether the contract defines the identity of attempts.
    pub(super) is_keyed: bool,
    /// The content that a digest must have been computed from, according to the contract or the run.
    pub(super) expected: Option<ExpectedContent>,
}

/// The expected content of a digest.
#[derive(Clone, Debug)]
pub(super) struct ExpectedContent {
    pub(super) what: String,
    /// The digests of the content; empty if it is not recorded.
    pub(super) digests: Vec<Digest>,
}

/// The evidence found.
#[derive(Debug, Default)]
pub(super) struct CollectedEvidence {
    /// Evidence by effect.
    pub(super) own: HashMap<usize, Vec<EvidenceValue>>,
    /// The last value of a pool that may be evidence of several effects.
    pub(super) shared: HashMap<(usize, EffectGroup), EvidenceValue>,
    /// The last location in a pool with evidence of a single effect, and that effect.
    pub(super) owned: HashMap<usize, (usize, String)>,
    /// The first value of a pool that does not count, and the reason.
    pub(super) discounted: HashMap<usize, String>,
}

/// A collector of the events of a run.
pub(super) struct EvidenceCollector<'t> {
    pub(super) terms: &'t ContractTerms,
    pub(super) targets: Targets<'t>,
    pub(super) sources: EvidenceLocations,
    sources_of: Vec<Vec<usize>>,
    pub(super) pools: EvidencePools,
    /// The files of the run by name, each with the digests that identify it.
    members: HashMap<String, Vec<Digest>>,
    pub(super) refs: Refs<'t>,
    pub(super) payloads: PayloadValidator<'t>,
    pub(super) retries: RetryChecks<'t>,
    calls: usize,
    /// Whether the run names any call.
    pub(super) is_named: bool,
    pub(super) of_named: CollectedEvidence,
    pub(super) of_unnamed: CollectedEvidence,
}

impl<'t> EvidenceCollector<'t> {
    pub(super) fn new(
        terms: &'t ContractTerms,
        members: &[(String, Digest)],
        payloads: PayloadValidator<'t>,
    ) -> Self {
        let targets = Targets::new(terms);
        let (sources, sources_of) = EvidenceLocations::new(terms);
        let pools = EvidencePools::new(terms, &targets, &sources_of);
        let mut by_name: HashMap<String, Vec<Digest>> = HashMap::new();
        for (name, digest) in members {
            by_name.entry(name.clone()).or_default().push(*digest);
        }
        Self {
            terms,
            targets,
            sources,
            sources_of,
            pools,
            members: by_name,
            refs: Refs::new(terms),
            payloads,
            retries: RetryChecks::new(terms),
            calls: 0,
            is_named: false,
            of_named: CollectedEvidence::default(),
            of_unnamed: CollectedEvidence::default(),
        }
    }

    /// Processes the next event.
    pub(super) fn take(&mut self, event: &RunEvent<'_, '_>) {
        match event {
            RunEvent::Statement { at, value } => self.refs.state(value, *at),
            RunEvent::Call(call) => {
                let tie = self.targets.tie(&call.names);
                if tie.is_named || !call.is_part {
                    self.call(call, &tie);
                }
            }
        }
    }

    fn call(&mut self, call: &RunCall<'_, '_>, tie: &CallTargets) {
        self.calls += 1;
        if tie.is_named && !self.is_named {
            self.is_named = true;
            // In a run that names its calls, unnamed calls do not count.
            self.of_unnamed = CollectedEvidence::default();
        }
        self.refs.call(call, tie);
        if !call.names.mode.is_some_and(is_reading) {
            let effects = self.targets.effects(tie);
            self.refs.effect_call(call, tie, &effects);
            self.retries.check(call, &effects);
        }
        if let [only] = tie.refs.as_slice() {
            self.payloads.check(*only, call);
        }
        if tie.is_named || !self.is_named {
            self.evidence(call, tie);
        }
    }

    fn evidence(&mut self, call: &RunCall<'_, '_>, tie: &CallTargets) {
        match &call.answer {
            RunCallResult::None | RunCallResult::Discounted { value: None, .. } => {}
            RunCallResult::Result { place, value } => {
                for found in self.sources.find(value) {
                    self.assign(call, tie, place, &found);
                }
            }
            RunCallResult::Discounted { place, value: Some(value), why } => {
                for found in self.sources.find(value) {
                    let shown = ObservedValue::new(found.value).shown();
                    for pool in self.pools_for(tie, found.source) {
                        let message = || format!("{shown} at {place} does not count: {why}");
                        self.sightings(tie).discounted.entry(pool).or_insert_with(message);
                    }
                }
            }
        }
    }

    fn sightings(&mut self, tie: &CallTargets) -> &mut CollectedEvidence {
        if tie.is_named { &mut self.of_named } else { &mut self.of_unnamed }
    }

    /// Returns the pools of a value of `source` from such a call: if effects declare the tool as their own, only
    /// theirs.
    fn pools_for(&self, tie: &CallTargets, source: usize) -> Vec<usize> {
        let of = |scope| self.pools.position(scope, source);
        if !tie.is_named {
            return of(Scope::Any).into_iter().collect();
        }
        let by_tool: Vec<usize> = tie.tools.iter().filter_map(|tool| of(Scope::Tool(*tool))).collect();
        let by_ref = || tie.refs.iter().filter_map(|index| of(Scope::Ref(*index))).collect();
        if by_tool.is_empty() { by_ref() } else { by_tool }
    }

    fn assign(
        &mut self,
        call: &RunCall<'_, '_>,
        tie: &CallTargets,
        place: &str,
        found: &EvidenceMatch<'_, '_>,
    ) {
        let seen = ObservedValue::new(found.value);
        if let Some(effect) = tie.effect {
            let is_its_source = self.sources_of.get(effect).is_some_and(|of| of.contains(&found.source));
            if is_its_source {
                let sighting = self.sighting(effect, call, place, seen, found);
                self.of_named.own.entry(effect).or_default().push(sighting);
            }
            return;
        }
        for pool in self.pools_for(tie, found.source) {
            match self.pools.owner(pool, &seen) {
                Some(Owner::One(effect)) => {
                    let sighting = self.sighting(effect, call, place, seen.clone(), found);
                    let sightings = self.sightings(tie);
                    sightings.owned.insert(pool, (effect, place.to_owned()));
                    sightings.own.entry(effect).or_default().push(sighting);
                }
                Some(Owner::Several(class)) => {
                    let sighting = EvidenceValue {
                        call: self.calls,
                        place: place.to_owned(),
                        seen: seen.clone(),
                        attempt: Digest::from_content(b""),
                        is_keyed: false,
                        expected: None,
                    };
                    self.sightings(tie).shared.insert((pool, class), sighting);
                }
                None => {}
            }
        }
    }

    fn sighting(
        &self,
        effect: usize,
        call: &RunCall<'_, '_>,
        place: &str,
        seen: ObservedValue,
        found: &EvidenceMatch<'_, '_>,
    ) -> EvidenceValue {
        let effect = self.terms.effects.get(effect);
        let key = effect.and_then(|effect| key(effect, call.arguments.as_deref()?));
        let once = effect.is_some_and(Effect::is_non_idempotent);
        EvidenceValue {
            call: self.calls,
            place: place.to_owned(),
            seen,
            is_keyed: key.is_some() || once && !call.attempt_at.is_empty(),
            attempt: key.unwrap_or_else(|| Digest::from_content(call.attempt_at.as_bytes())),
            expected: effect.and_then(|effect| self.expected(effect, call, found)),
        }
    }

    /// Returns the expected content of a digest: that which the contract defines, or the file of the run that is named
    /// next to it.
    fn expected(
        &self,
        effect: &Effect,
        call: &RunCall<'_, '_>,
        found: &EvidenceMatch<'_, '_>,
    ) -> Option<ExpectedContent> {
        let evidence = effect.evidence.as_ref().filter(|evidence| evidence.sort == "hash")?;
        if let Some(of) = &evidence.of {
            let digest = text_at_call_pointer(of, call).map(|text| Digest::from_content(text.as_bytes()));
            let what = format!("the text at {of} of the call at {}", call.place);
            return Some(ExpectedContent { what, digests: digest.into_iter().collect() });
        }
        let parent = found.parent?;
        let name_members = ["file", "path", "member", "name"].into_iter();
        let mut named = name_members.filter_map(|name| parent.get(name).and_then(Value::as_str));
        named.find_map(|name| {
            let digests = self.members.get(name)?.clone();
            Some(ExpectedContent { what: format!("the file {name} of the run"), digests })
        })
    }
}

/// Returns the text at a pointer below `/arguments` or `/result` of a call.
fn text_at_call_pointer<'v>(of: &str, call: &'v RunCall<'_, '_>) -> Option<&'v str> {
    let value = match of.strip_prefix("/arguments") {
        Some(rest) => at_pointer(call.arguments.as_deref()?, rest),
        None => match &call.answer {
            RunCallResult::Result { value, .. } => at_pointer(value, of.strip_prefix("/result")?),
            _ => None,
        },
    };
    value?.as_str()
}

/// Returns the digest of the values of an effect's key fields in `arguments`; `None` if one is missing.
fn key(effect: &Effect, arguments: &Value<'_>) -> Option<Digest> {
    if effect.key_fields.is_empty() || effect.key_fields.len() > MAX_KEY_FIELDS {
        return None;
    }
    let value = |path: &KeyPath| -> Option<String> {
        let values: Vec<String> = path.values(arguments).into_iter().map(compact::text).collect();
        (!values.is_empty()).then(|| values.join(" "))
    };
    let values: Option<Vec<String>> = effect.key_fields.iter().map(value).collect();
    Some(Digest::from_content(values?.join("\n").as_bytes()))
}
