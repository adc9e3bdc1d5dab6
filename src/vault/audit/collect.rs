//! Collection of evidence, in one pass over the calls and results of a run.

use std::collections::HashMap;

use super::judge::Seen;
use super::payloads::Payloads;
use super::pools::{Class, Owner, Pools, Scope};
use super::refs::Refs;
use super::sources::{Found, Sources, at_pointer};
use super::targets::{Targets, Tie};
use crate::artifact::{Answer, Call, RunEvent};
use crate::digest::Digest;
use crate::formats::{Effect, Terms};
use crate::json::{Value, compact};

/// Maximum number of key fields that identify a call: with more, all arguments do.
const MAX_KEY_FIELDS: usize = 64;

/// A value found as evidence of an effect.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    /// The number of the call, in ascending order.
    pub(super) call: usize,
    pub(super) place: String,
    pub(super) seen: Seen,
    /// The identity of the attempt: the values of the key fields, or the complete request.
    pub(super) attempt: Digest,
    /// Whether the contract defines the identity of attempts.
    pub(super) is_keyed: bool,
    /// The content that a digest must have been computed from, according to the contract or the run.
    pub(super) expected: Option<Expected>,
}

/// The expected content of a digest.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) what: String,
    /// The digests of the content; empty if it is not recorded.
    pub(super) digests: Vec<Digest>,
}

/// The evidence found.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    /// Evidence by effect.
    pub(super) own: HashMap<usize, Vec<Sighting>>,
    /// The last value of a pool that may be evidence of several effects.
    pub(super) shared: HashMap<(usize, Class), Sighting>,
    /// The last location in a pool with evidence of a single effect, and that effect.
    pub(super) owned: HashMap<usize, (usize, String)>,
    /// The first value of a pool that does not count, and the reason.
    pub(super) discounted: HashMap<usize, String>,
}

/// A collector of the events of a run.
pub(super) struct Collector<'t> {
    pub(super) terms: &'t Terms,
    pub(super) targets: Targets<'t>,
    pub(super) sources: Sources,
    sources_of: Vec<Vec<usize>>,
    pub(super) pools: Pools,
    /// The files of the run by name, each with the digests that identify it.
    members: HashMap<String, Vec<Digest>>,
    pub(super) refs: Refs<'t>,
    pub(super) payloads: Payloads<'t>,
    calls: usize,
    /// Whether the run names any call.
    pub(super) is_named: bool,
    pub(super) of_named: Sightings,
    pub(super) of_unnamed: Sightings,
}

impl<'t> Collector<'t> {
    pub(super) fn new(terms: &'t Terms, members: &[(String, Digest)], payloads: Payloads<'t>) -> Self {
        let targets = Targets::new(terms);
        let (sources, sources_of) = Sources::new(terms);
        let pools = Pools::new(terms, &targets, &sources_of);
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
            calls: 0,
            is_named: false,
            of_named: Sightings::default(),
            of_unnamed: Sightings::default(),
        }
    }

    /// Processes the next event.
    pub(super) fn take(&mut self, event: &RunEvent<'_, '_>) {
        match event {
            RunEvent::Statement(value) => self.refs.state(value),
            RunEvent::Call(call) => {
                let tie = self.targets.tie(&call.names);
                if tie.is_named || !call.is_part {
                    self.call(call, &tie);
                }
            }
        }
    }

    fn call(&mut self, call: &Call<'_, '_>, tie: &Tie) {
        self.calls += 1;
        if tie.is_named && !self.is_named {
            self.is_named = true;
            // In a run that names its calls, unnamed calls do not count.
            self.of_unnamed = Sightings::default();
        }
        self.refs.call(call, tie);
        if let [only] = tie.refs.as_slice() {
            self.payloads.check(*only, call);
        }
        if tie.is_named || !self.is_named {
            self.evidence(call, tie);
        }
    }

    fn evidence(&mut self, call: &Call<'_, '_>, tie: &Tie) {
        match &call.answer {
            Answer::None | Answer::Discounted { value: None, .. } => {}
            Answer::Result { place, value } => {
                for found in self.sources.find(value) {
                    self.assign(call, tie, place, &found);
                }
            }
            Answer::Discounted { place, value: Some(value), why } => {
                for found in self.sources.find(value) {
                    let shown = Seen::new(found.value).shown();
                    for pool in self.pools_for(tie, found.source) {
                        let told = || format!("{shown} at {place} does not count: {why}");
                        self.sightings(tie).discounted.entry(pool).or_insert_with(told);
                    }
                }
            }
        }
    }

    fn sightings(&mut self, tie: &Tie) -> &mut Sightings {
        if tie.is_named { &mut self.of_named } else { &mut self.of_unnamed }
    }

    /// Returns the pools of a value of `source` from such a call: if effects declare the tool as their own, only
    /// theirs.
    fn pools_for(&self, tie: &Tie, source: usize) -> Vec<usize> {
        let of = |scope| self.pools.position(scope, source);
        if !tie.is_named {
            return of(Scope::Any).into_iter().collect();
        }
        let by_tool: Vec<usize> = tie.tools.iter().filter_map(|tool| of(Scope::Tool(*tool))).collect();
        let by_ref = || tie.refs.iter().filter_map(|index| of(Scope::Ref(*index))).collect();
        if by_tool.is_empty() { by_ref() } else { by_tool }
    }

    fn assign(&mut self, call: &Call<'_, '_>, tie: &Tie, place: &str, found: &Found<'_, '_>) {
        let seen = Seen::new(found.value);
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
                    let sighting = Sighting {
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
        call: &Call<'_, '_>,
        place: &str,
        seen: Seen,
        found: &Found<'_, '_>,
    ) -> Sighting {
        let effect = self.terms.effects.get(effect);
        let key = effect.and_then(|effect| key(effect, call.arguments.as_deref()?));
        let once = effect.is_some_and(|effect| effect.idempotency.as_deref() == Some("non-idempotent"));
        Sighting {
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
    fn expected(&self, effect: &Effect, call: &Call<'_, '_>, found: &Found<'_, '_>) -> Option<Expected> {
        let evidence = effect.evidence.as_ref().filter(|evidence| evidence.sort == "hash")?;
        if let Some(of) = &evidence.of {
            let digest = stated_text(of, call).map(|text| Digest::from_content(text.as_bytes()));
            let what = format!("the text at {of} of the call at {}", call.place);
            return Some(Expected { what, digests: digest.into_iter().collect() });
        }
        let parent = found.parent?;
        let beside = ["file", "path", "member", "name"].into_iter();
        let mut named = beside.filter_map(|name| parent.get(name).and_then(Value::as_str));
        named.find_map(|name| {
            let digests = self.members.get(name)?.clone();
            Some(Expected { what: format!("the file {name} of the run"), digests })
        })
    }
}

/// Returns the text at a pointer below `/arguments` or `/result` of a call.
fn stated_text<'v>(of: &str, call: &'v Call<'_, '_>) -> Option<&'v str> {
    let value = match of.strip_prefix("/arguments") {
        Some(rest) => at_pointer(call.arguments.as_deref()?, rest),
        None => match &call.answer {
            Answer::Result { value, .. } => at_pointer(value, of.strip_prefix("/result")?),
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
    let values: Option<Vec<String>> = effect
        .key_fields
        .iter()
        .map(|field| {
            let dotted = || field.split('.').try_fold(arguments, |value, name| value.get(name));
            arguments.get(field).or_else(dotted).map(compact::text)
        })
        .collect();
    Some(Digest::from_content(values?.join("\n").as_bytes()))
}
