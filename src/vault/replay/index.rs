//! Index of the requests of a recording.

use std::collections::HashMap;

use crate::artifact::{Exchange, Responder};
use crate::digest::Digest;

/// The key of a lookup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReplayLookupKey {
    Prompt(Digest),
    Call { tool: Option<String>, arguments: Digest },
}

/// The recorded exchanges of a request, in order.
#[derive(Debug, Default)]
pub(super) struct RecordedOccurrences {
    pub(super) at: Vec<usize>,
    /// All exchanges before this one are used.
    next: usize,
}

impl RecordedOccurrences {
    /// Returns the number of the first unused exchange, from 0.
    pub(super) fn first_left(&mut self, is_used: impl Fn(usize) -> bool) -> Option<usize> {
        let used = self.at.get(self.next..)?.iter().take_while(|at| is_used(**at)).count();
        self.next += used;
        (self.next < self.at.len()).then_some(self.next)
    }
}

/// The index of all recorded requests.
#[derive(Debug, Default)]
pub(super) struct ReplayIndex {
    occurrences: HashMap<ReplayLookupKey, RecordedOccurrences>,
    /// Number of recorded calls by tool.
    calls: HashMap<Option<String>, usize>,
}

impl ReplayIndex {
    /// Builds the index. A request can contain several texts. It is indexed by the last one; other texts, such as
    /// instructions or earlier messages, are indexed only if no other request has them as its last.
    pub(super) fn new<'e>(exchanges: impl Iterator<Item = &'e Exchange> + Clone) -> Self {
        let mut index = Self::default();
        for (at, exchange) in exchanges.clone().enumerate() {
            if let Some(last) = exchange.prompts.last() {
                index.add(ReplayLookupKey::Prompt(*last), at);
            }
            if exchange.responder == Responder::Tool {
                *index.calls.entry(exchange.tool.clone()).or_default() += 1;
            }
            if let Some(arguments) = &exchange.arguments {
                let (tool, arguments) = (exchange.tool.clone(), arguments.digest());
                index.add(ReplayLookupKey::Call { tool, arguments }, at);
            }
        }
        let mut carried: HashMap<ReplayLookupKey, RecordedOccurrences> = HashMap::new();
        for (at, exchange) in exchanges.enumerate() {
            let others = exchange.prompts.split_last().map_or(&[][..], |(_, others)| others);
            for prompt in others.iter().map(|prompt| ReplayLookupKey::Prompt(*prompt)) {
                if !index.occurrences.contains_key(&prompt) {
                    carried.entry(prompt).or_default().at.push(at);
                }
            }
        }
        index.occurrences.extend(carried);
        index
    }

    fn add(&mut self, key: ReplayLookupKey, at: usize) {
        self.occurrences.entry(key).or_default().at.push(at);
    }

    pub(super) fn get(&self, key: &ReplayLookupKey) -> &[usize] {
        self.occurrences.get(key).map(|places| places.at.as_slice()).unwrap_or_default()
    }

    pub(super) fn get_mut(&mut self, key: &ReplayLookupKey) -> Option<&mut RecordedOccurrences> {
        self.occurrences.get_mut(key)
    }

    /// Returns the number of recorded calls of a tool, with any arguments.
    pub(super) fn calls_of(&self, tool: Option<&str>) -> usize {
        self.calls.get(&tool.map(str::to_owned)).copied().unwrap_or_default()
    }
}
