//! The beginning of a match at the end of a text that was broken off.

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;

/// How much of the end of a text is searched. No secret is longer.
const SEARCHED: usize = 1 << 20;

/// A pattern as an automaton, which knows after each character whether a match is still possible.
#[derive(Clone, Debug)]
pub(super) struct UnfinishedSearch(NFA);

impl UnfinishedSearch {
    /// Returns `None` if the pattern cannot be compiled.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        NFA::new(pattern).ok().map(Self)
    }

    /// Returns where the longest end of a text begins that another text could continue to a match. Conditions about
    /// the characters around a match, such as `\b`, count as met.
    pub(super) fn start(&self, text: &str) -> Option<usize> {
        let skipped = text.len().saturating_sub(SEARCHED);
        let (mut current, mut next) = (Threads::new(&self.0), Threads::new(&self.0));
        for (at, byte) in text.bytes().enumerate().skip(skipped) {
            if text.is_char_boundary(at) {
                current.add(&self.0, self.0.start_anchored(), at);
            }
            next.clear();
            for (state, start) in &current.active {
                let after = match self.0.state(*state) {
                    State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
                    State::Sparse(transitions) => transitions.matches_byte(byte),
                    State::Dense(transitions) => transitions.matches_byte(byte),
                    _ => None,
                };
                if let Some(after) = after {
                    next.add(&self.0, after, *start);
                }
            }
            std::mem::swap(&mut current, &mut next);
        }
        // Those that began first are first.
        current.active.first().map(|(_, start)| *start)
    }
}

/// The states in which an automaton can be, each with where the match began, the earliest first.
struct Threads {
    /// The states that read a character.
    active: Vec<(StateID, usize)>,
    /// The round in which each state was added.
    added: Vec<u32>,
    round: u32,
    waiting: Vec<StateID>,
}

impl Threads {
    fn new(nfa: &NFA) -> Self {
        Self { active: Vec::new(), added: vec![0; nfa.states().len()], round: 1, waiting: Vec::new() }
    }

    fn clear(&mut self) {
        self.active.clear();
        self.round += 1;
    }

    /// Adds the states that follow from one without reading a character.
    fn add(&mut self, nfa: &NFA, state: StateID, start: usize) {
        self.waiting.push(state);
        while let Some(state) = self.waiting.pop() {
            match self.added.get_mut(state.as_usize()) {
                Some(added) if *added != self.round => *added = self.round,
                _ => continue,
            }
            match nfa.state(state) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    self.active.push((state, start));
                }
                State::Look { next, .. } | State::Capture { next, .. } => self.waiting.push(*next),
                State::Union { alternates } => self.waiting.extend(alternates.iter()),
                State::BinaryUnion { alt1, alt2 } => self.waiting.extend([*alt1, *alt2]),
                State::Fail | State::Match { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_match_is_found_at_the_end_only() {
        for (pattern, text, expected) in [
            ("sk-[A-Z]{8}", "the key is sk-ABC", Some(11)),
            ("sk-[A-Z]{8}", "the key is s", Some(11)),
            ("sk-[A-Z]{8}", "the key is sk-ABC.", None),
            ("sk-[A-Z]{8}", "sk-ABCDEFGH", None),
            ("sk-[A-Z]{8}", "", None),
            (r"\bM\u{fc}ller", "Herr M\u{fc}", Some(5)),
            ("(?i)key: .*", "a KEY: b c", Some(2)),
            (r"4\d{3}( \d{4}){3}", "card 4111 1111 11", Some(5)),
            ("a|b+c", "xbb", Some(1)),
        ] {
            assert_eq!(UnfinishedSearch::new(pattern).unwrap().start(text), expected, "{pattern}: {text}");
        }
    }
}
