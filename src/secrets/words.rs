//! Keys that contain a word: one search for the words of all rules, then the patterns of those that were found.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind, packed};
use regex::bytes::Regex;

use super::rules::{RULES, SecretRule};
use super::span::SecretSpan;

/// No key is longer.
const LONGEST: usize = 12_000;

/// The name of the rule of tokens without a format of their own.
const BEARER: &str = "bearer-token";

/// Least number of different characters of a key. Those of placeholders are fewer.
const DIFFERENT: usize = 8;

/// Parts of placeholders.
const PLACEHOLDERS: [&str; 9] =
    ["example", "xxxx", "your", "placeholder", "redacted", "dummy", "not-a", "not_a", "....."];

/// What is searched for.
struct SecretSearch {
    words: WordSearcher,
    /// The rules of each word.
    rules: Vec<Vec<&'static SecretRule>>,
}

/// A search for several words. Both sorts are quick to build, which matters for a process that adds one document.
enum WordSearcher {
    /// By vector instructions.
    Packed(packed::Searcher),
    /// On processors without them.
    Automaton(AhoCorasick),
}

impl WordSearcher {
    /// Returns `None` if the words are not valid.
    fn new(words: &[&str]) -> Option<Self> {
        let packed = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostFirst)
            .builder()
            .extend(words)
            .build();
        packed.map(Self::Packed).or_else(|| Self::automaton(words))
    }

    fn automaton(words: &[&str]) -> Option<Self> {
        let mut builder = AhoCorasick::builder();
        builder.kind(Some(AhoCorasickKind::ContiguousNFA)).match_kind(MatchKind::LeftmostFirst);
        builder.build(words).ok().map(Self::Automaton)
    }

    /// Returns the first word at or after `start`.
    fn find(&self, bytes: &[u8], start: usize) -> Option<Match> {
        match self {
            Self::Packed(packed) => packed.find_in(bytes, (start..bytes.len()).into()),
            Self::Automaton(automaton) => automaton.find(Input::new(bytes).range(start..)),
        }
    }
}

static SEARCH: LazyLock<Option<SecretSearch>> = LazyLock::new(SecretSearch::new);

/// The patterns of the rules, in their order. Each is compiled when its word is found: most documents need none.
static PATTERNS: [OnceLock<Option<Regex>>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];

impl SecretSearch {
    /// Returns `None` if the words are not valid, which the tests exclude.
    fn new() -> Option<Self> {
        let mut words: Vec<&str> = RULES.iter().flat_map(|rule| rule.words.iter().copied()).collect();
        words.sort_unstable();
        words.dedup();
        let rules_of = |word: &&str| RULES.iter().filter(|rule| rule.words.contains(word)).collect();
        let rules = words.iter().map(rules_of).collect();
        Some(Self { words: WordSearcher::new(&words)?, rules })
    }
}

/// Returns the compiled pattern of a rule.
fn pattern(rule: &'static SecretRule) -> Option<&'static Regex> {
    let at = RULES.iter().position(|other| other.name == rule.name)?;
    let compile = || Regex::new(&format!("^(?-u:{})", rule.pattern)).ok();
    PATTERNS.get(at)?.get_or_init(compile).as_ref()
}

/// Returns the keys in `bytes`, in order.
pub(super) fn find(bytes: &[u8]) -> Vec<SecretSpan> {
    let Some(search) = &*SEARCH else { return Vec::new() };
    let mut spans = Vec::new();
    let mut start = 0;
    while let Some(word) = search.words.find(bytes, start) {
        let rules = search.rules.get(word.pattern().as_usize()).into_iter().flatten();
        let span = rules.copied().find_map(|rule| span(bytes, word.start(), rule));
        // A key may contain the words of others.
        start = span.as_ref().map_or(0, |key| key.end).max(word.end());
        spans.extend(span);
    }
    spans
}

/// Returns the key that begins at `start`, if the pattern of the rule matches there.
fn span(bytes: &[u8], start: usize, rule: &'static SecretRule) -> Option<SecretSpan> {
    if rule.is_word && is_within_word(bytes.get(..start)?) {
        return None;
    }
    let rest = bytes.get(start..bytes.len().min(start + LONGEST))?;
    let end = start + pattern(rule)?.find(rest)?.end();
    if !rule.is_word {
        return Some(SecretSpan { rule, start, end });
    }
    let text = std::str::from_utf8(bytes.get(start..end)?).ok()?;
    let is_cut = bytes.get(end).is_some_and(|next| is_of_key(*next));
    // Only one rule has no format that others do not have.
    let is_key = !is_cut && !is_placeholder(text) && (rule.name != BEARER || is_random(text));
    is_key.then_some(SecretSpan { rule, start, end })
}

/// Returns whether a word continues after `before`. The letter of an escape, such as `\n`, is no part of it.
fn is_within_word(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] | [] => false,
        [.., last] => last.is_ascii_alphanumeric() || *last == b'_',
    }
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut different: Vec<u8> = lower.bytes().collect();
    different.sort_unstable();
    different.dedup();
    different.len() < DIFFERENT || PLACEHOLDERS.iter().any(|part| lower.contains(part))
}

/// Returns whether a token without a format of its own looks random: letters and several digits, not words with hyphens.
fn is_random(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let longest = text.split(|character: char| !character.is_ascii_alphanumeric()).map(str::len).max();
    digits >= 4 && longest.is_some_and(|longest| longest >= 16) && text.len() - digits > 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::rules::CARD;

    #[test]
    fn every_rule_finds_its_examples_and_nothing_else() {
        assert!(SEARCH.is_some() && RULES.iter().all(|rule| pattern(rule).is_some()));
        assert!(RULES.iter().any(|rule| rule.name == BEARER));
        for rule in RULES.iter().chain([&CARD]) {
            for example in rule.examples {
                let example = example.concat();
                for text in [example.clone(), format!("{{\"a\":\"{example}\"}}"), format!("\\n{example}\\n")]
                {
                    let found = super::super::find(text.as_bytes());
                    assert_eq!(found.len(), 1, "{}: {text}", rule.name);
                    assert_eq!(found[0].rule, rule.name, "{text}");
                    assert!(example.starts_with(&found[0].beginning) && found[0].beginning.len() <= 4);
                }
            }
            for other in rule.others {
                let text = other.concat();
                assert_eq!(super::super::find(text.as_bytes()), [], "{text}");
            }
        }
    }

    #[test]
    fn both_searches_find_the_same_words() {
        let words: Vec<&str> = RULES.iter().flat_map(|rule| rule.words).copied().collect();
        let searches = [WordSearcher::new(&words).unwrap(), WordSearcher::automaton(&words).unwrap()];
        let text =
            words.iter().flat_map(|word| [&word[..word.len() / 2], word, " ", word]).collect::<String>();
        let found = searches.map(|search| {
            let mut found = Vec::new();
            while let Some(word) = search.find(text.as_bytes(), found.last().map_or(0, |(_, end)| *end)) {
                found.push((word.pattern().as_usize(), word.end()));
            }
            found
        });
        assert!(found[0].len() >= 2 * words.len());
        assert_eq!(found[0], found[1]);
    }

    #[test]
    fn names_are_unique_and_no_word_hides_another() {
        let words: Vec<&str> = RULES.iter().flat_map(|rule| rule.words).copied().collect();
        for (at, rule) in RULES.iter().enumerate() {
            assert!(RULES[..at].iter().all(|other| other.name != rule.name), "{}", rule.name);
            for word in rule.words {
                let hides = |other: &&&str| other.len() > word.len() && other.contains(word);
                assert_eq!(words.iter().find(hides), None, "{word}");
            }
        }
    }
}
