//! Keys that contain a word: one search for the words of all rules, then the patterns of those that were found.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind, packed};
use regex::bytes::Regex;

use super::rules::{RULES, SecretSpan};

/// No key is longer.
const LONGEST: usize = 12_000;

/// The name of the rule of tokens without a format of their own.
const BEARER: &str = "bearer-token";

/// The name of the rule of tokens that consist of several parts.
const WEB_TOKEN: &str = "json-web-token";

/// Characters that are examined again from every word in them.
const EXAMINED_AGAIN: usize = 256;

/// Least number of different characters of a key. Those of placeholders are fewer.
const DIFFERENT: usize = 8;

/// Parts of placeholders.
const PLACEHOLDERS: [&str; 9] =
    ["example", "xxxx", "your", "placeholder", "redacted", "dummy", "not-a", "not_a", "....."];

/// What is searched for.
struct SecretSearch {
    words: WordSearcher,
    /// The rules of each word, by their numbers.
    rules: Vec<Vec<usize>>,
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
        let rules_of = |word: &&str| {
            let numbered = RULES.iter().enumerate().filter(|(_, rule)| rule.words.contains(word));
            numbered.map(|(number, _)| number).collect()
        };
        let rules = words.iter().map(rules_of).collect();
        Some(Self { words: WordSearcher::new(&words)?, rules })
    }
}

/// Returns the compiled pattern of a rule.
fn pattern(rule: usize) -> Option<&'static Regex> {
    let compile = || Regex::new(&format!("^(?-u:{})", RULES.get(rule)?.pattern)).ok();
    PATTERNS.get(rule)?.get_or_init(compile).as_ref()
}

/// Returns the keys in `bytes`, in order.
pub(super) fn find(bytes: &[u8]) -> Vec<SecretSpan> {
    let Some(search) = &*SEARCH else { return Vec::new() };
    let mut finder = KeyFinder { bytes, rejected: [0; RULES.len()] };
    let mut spans = Vec::new();
    let mut start = 0;
    while let Some(word) = search.words.find(bytes, start) {
        let rules = search.rules.get(word.pattern().as_usize()).into_iter().flatten();
        let span = rules.copied().find_map(|rule| finder.span(word.start(), rule));
        // A key may contain the words of others.
        start = span.as_ref().map_or(0, |key| key.end).max(word.end());
        spans.extend(span);
    }
    spans
}

/// A search in bytes. A long text without spaces can contain many words, and from each of them a pattern would match or
/// fail at the same end: what was rejected because of all that follows is not examined again.
struct KeyFinder<'b> {
    bytes: &'b [u8],
    /// The position before which each rule finds nothing more.
    rejected: [usize; RULES.len()],
}

impl KeyFinder<'_> {
    /// Returns the key that begins at `start`, if the pattern of the rule matches there.
    fn span(&mut self, start: usize, number: usize) -> Option<SecretSpan> {
        let (bytes, rule) = (self.bytes, RULES.get(number)?);
        let is_rejected = self.rejected.get(number).is_some_and(|rejected| start < *rejected);
        if is_rejected || rule.is_word && is_within_word(bytes.get(..start)?) {
            return None;
        }
        let rest = bytes.get(start..bytes.len().min(start + LONGEST))?;
        let Some(found) = pattern(number)?.find(rest) else {
            if rule.name == WEB_TOKEN {
                // Its first part is followed by another one, wherever in the part it begins.
                let part = bytes.get(start..)?.iter().take_while(|byte| is_of_key(**byte)).count();
                self.reject(number, start, start + part);
            }
            return None;
        };
        let end = start + found.end();
        if !rule.is_word {
            return Some(SecretSpan { rule, start, end });
        }
        let text = std::str::from_utf8(bytes.get(start..end)?).ok()?;
        let is_cut = bytes.get(end).is_some_and(|next| is_of_key(*next));
        let (is_varied, placeholder) = (is_varied(text), last_placeholder(text));
        // Only one rule has no format that others do not have.
        if !is_cut && is_varied && placeholder.is_none() && (rule.name != BEARER || is_random(text)) {
            return Some(SecretSpan { rule, start, end });
        }
        // After the placeholder, there can be a key.
        let until = placeholder.filter(|_| is_varied && !is_cut).map_or(end, |at| start + at + 1);
        self.reject(number, start, until);
        None
    }

    /// Notes that a rule finds nothing from `start` to `end`. Short texts can contain keys of a fixed length.
    fn reject(&mut self, rule: usize, start: usize, end: usize) {
        if let Some(rejected) = self.rejected.get_mut(rule).filter(|_| end - start > EXAMINED_AGAIN) {
            *rejected = end;
        }
    }
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

/// Returns whether a text has as many different characters as a key.
fn is_varied(text: &str) -> bool {
    let mut seen = [false; 256];
    for byte in text.bytes() {
        if let Some(seen) = seen.get_mut(usize::from(byte.to_ascii_lowercase())) {
            *seen = true;
        }
    }
    seen.into_iter().filter(|seen| *seen).count() >= DIFFERENT
}

/// Returns where the last part of a placeholder begins in a text.
fn last_placeholder(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    PLACEHOLDERS.iter().filter_map(|part| lower.rfind(part)).max()
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
        assert!(SEARCH.is_some() && (0..RULES.len()).all(|rule| pattern(rule).is_some()));
        assert!([BEARER, WEB_TOKEN].iter().all(|name| RULES.iter().any(|rule| rule.name == *name)));
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
    fn keys_are_found_after_long_texts_that_are_not() {
        let key = ["sk-", "ant-", "api03-", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJk0mNo3qRs6uV"].concat();
        let token = ["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiI0NzExIn0", ".Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJ"]
            .concat();
        for before in ["sk-proj-", "eyJ-", "glpat-", "sk-ant-", "Bearer ", "xoxb-1-", "4111 "] {
            for count in [1, 100, 5_000] {
                for key in [&key, &token] {
                    let text = format!("{} {key}", before.repeat(count));
                    assert_eq!(find(text.as_bytes()).len(), 1, "{before} {count} {key}");
                }
            }
        }
        // A placeholder before a key, without a space between them.
        let text = format!("sk-proj-{}-{key}", "example-".repeat(100));
        assert_eq!(find(text.as_bytes()).len(), 1);
        assert_eq!(find(format!("sk-proj-{}", "sk-proj-".repeat(10_000)).as_bytes()), []);
    }

    /// What one word rejects is not examined again from the next one: the positions grow with each of them.
    #[test]
    fn a_long_text_is_examined_once() {
        for word in ["sk-proj-", "eyJ-", "glpat-", "Bearer-"] {
            let text = word.repeat(100_000);
            let mut finder = KeyFinder { bytes: text.as_bytes(), rejected: [0; RULES.len()] };
            let mut examined = 0;
            for start in (0..text.len()).step_by(word.len()) {
                for rule in 0..RULES.len() {
                    let before = finder.rejected[rule];
                    finder.span(start, rule);
                    examined += usize::from(finder.rejected[rule] > before);
                }
            }
            assert!(examined <= RULES.len() * (text.len() / LONGEST + 2), "{word}: {examined}");
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
