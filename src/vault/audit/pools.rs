//! Assignment of values to effects that share a source of evidence.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::judge::ObservedValue;
use super::targets::Targets;
use crate::formats::{ContractTerms, Effect};

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
