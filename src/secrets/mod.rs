//! Recognizes what looks like a key or a card number in bytes that are to be stored.
//!
//! One pass over the bytes looks for the words that keys contain, another one for long runs of digits; only what they find
//! is compared with the rules. A match is described by its rule and its place, and never contains more
//! than the first characters of what was found.

mod card;
mod place;
mod rules;
mod words;

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use card::SecretSpan;

/// What is done about secrets in what is to be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretPolicy {
    /// They are not looked for.
    #[default]
    Ignore,
    /// They are reported.
    Report,
    /// What contains one is rejected.
    Refuse,
}

/// Something that looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretMatch {
    /// The name of the rule, such as `openai-api-key`.
    pub rule: String,
    /// What it looks like, with an article, such as `an API key of OpenAI`.
    pub looks_like: String,
    /// Where it is: a JSON Pointer, `line 7` and a pointer into it, or a line.
    pub place: String,
    /// Its first four characters, or fewer.
    pub beginning: String,
}

impl SecretMatch {
    /// Returns the match with its place in the file `name`, if there is a name.
    #[must_use]
    pub fn within(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.place =
                if self.place.is_empty() { name.to_owned() } else { format!("{name} {}", self.place) };
        }
        self
    }
}

impl fmt::Display for SecretMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, looks_like, place, beginning } = self;
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        write!(f, "{place}{looks_like}, beginning with {beginning} (rule {rule})")
    }
}

/// Maximum number of matches that are described for one document.
const DESCRIBED: usize = 20;

/// Number of characters that a match shows.
const SHOWN: usize = 4;

/// Returns what looks like a secret in `bytes`, at most 20 different ones, in the order of the document.
#[must_use]
pub fn find(bytes: &[u8]) -> Vec<SecretMatch> {
    let mut spans = words::spans(bytes);
    if spans.is_empty() {
        return Vec::new();
    }
    spans.sort_by_key(|span| span.start);
    let mut seen = HashSet::new();
    // Run packs contain what was sent several times.
    spans.retain(|span| seen.insert(bytes.get(span.start..span.end)));
    spans.truncate(DESCRIBED);
    let describe = |span: SecretSpan| {
        let text = String::from_utf8_lossy(bytes.get(span.start..span.end).unwrap_or_default());
        SecretMatch {
            rule: span.rule.name.to_owned(),
            looks_like: span.rule.looks_like.to_owned(),
            place: place::of(bytes, span.start),
            beginning: text.chars().take(SHOWN).collect(),
        }
    };
    spans.into_iter().map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> String {
        ["sk-ant-", "api03-", &"aB3_dE6-gH9jK2mN5pQ8".repeat(3)].concat()
    }

    #[test]
    fn a_match_says_where_and_shows_four_characters() {
        let document =
            format!(r#"{{"steps":[{{"input":{{"key":"{0}"}}}},{{"output":"again {0}"}}]}}"#, key());
        let found = find(document.as_bytes());
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((only.rule.as_str(), only.place.as_str()), ("anthropic-api-key", "/steps/0/input/key"));
        let text = only.to_string();
        assert_eq!(
            text,
            "/steps/0/input/key: an API key of Anthropic, beginning with sk-a (rule anthropic-api-key)"
        );
        let lines = format!("{{\"a\":1}}\n{{\"b\":[\"x\",\"{}\"]}}\n", key());
        assert_eq!(find(lines.as_bytes())[0].place, "line 2 /b/1");
        let text = format!("one\ntwo\nKEY={}\n", key());
        assert_eq!(find(text.as_bytes())[0].place, "line 3");
    }

    #[test]
    fn a_secret_in_the_name_of_a_member_is_not_in_the_place() {
        let document =
            format!(r#"{{"a":{{"{}":{{"x":"{}"}}}}}}"#, key(), ["AKIA", "Q3EGRTUVW4567ABC"].concat());
        let found = find(document.as_bytes());
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|one| !format!("{one:?}").contains("api03")), "{found:?}");
        assert_eq!(found[1].place, "/a/…/x");
    }

    #[test]
    fn many_matches_are_counted_once_each_and_bounded() {
        let many: Vec<String> = (0..100).map(|number| format!("{}{number:03}", key())).collect();
        assert_eq!(find(many.join("\n").as_bytes()).len(), DESCRIBED);
        assert_eq!(find(vec![key(); 100].join("\n").as_bytes()).len(), 1);
        assert!(find(b"").is_empty());
    }
}
