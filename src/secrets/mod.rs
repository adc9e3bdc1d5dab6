//! Recognizes what looks like a key or a card number in bytes that are to be stored.
//!
//! One pass over the bytes looks for the words that keys contain, another one for long runs of digits; only what they find
//! is compared with the rules. A match is described by its rule and its place, and never contains more
//! than the first characters of what was found.

mod card;
mod rules;
mod words;

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use rules::SecretSpan;

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
    let mut spans = spans(bytes);
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
            place: place_of(bytes, span.start),
            beginning: text.chars().take(SHOWN).collect(),
        }
    };
    spans.into_iter().map(describe).collect()
}

/// Returns what looks like a secret in `bytes`: keys, then card numbers.
fn spans(bytes: &[u8]) -> Vec<SecretSpan> {
    let mut spans = words::find(bytes);
    spans.extend(card::find(bytes));
    spans
}

/// Longer names are not shown in full.
const LONGEST_NAME: usize = 60;

/// A level of a JSON text.
enum JsonLevel<'b> {
    /// An object, with the name of its current member.
    Object(&'b [u8]),
    /// An array, with the index of its current element.
    Array(usize),
}

/// Returns the place of the byte at `offset`: a JSON Pointer; in JSON Lines, `line 7` and a pointer into it; a line of
/// any other text. Nothing is validated: the pointer is what the text looks like up to there.
fn place_of(bytes: &[u8], offset: usize) -> String {
    let line_start = |line: &[u8]| matches!(line.trim_ascii_start().first(), Some(b'{' | b'['));
    if !line_start(bytes) {
        return format!("line {}", line_of(bytes, offset));
    }
    let before = bytes.get(..offset).unwrap_or(bytes);
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // In JSON Lines, every line is a text of its own; in other JSON, the first line is not.
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_lines = first.len() < bytes.len()
        && levels(first).is_empty()
        && line_start(bytes.get(start..).unwrap_or_default());
    let text = if is_lines { bytes.get(start..offset).unwrap_or_default() } else { before };
    let mut pointer = String::new();
    for level in levels(text) {
        pointer.push('/');
        pointer.push_str(&level_name(&level));
    }
    let is_only = bytes.get(first.len()..).is_none_or(|rest| rest.trim_ascii().is_empty());
    if is_lines && !is_only {
        return format!("line {} {pointer}", line_of(bytes, offset));
    }
    pointer
}

fn line_of(bytes: &[u8], offset: usize) -> usize {
    memchr::memchr_iter(b'\n', bytes.get(..offset).unwrap_or(bytes)).count() + 1
}

/// Returns the name of a member or the index of an element, as in a pointer. A name that is a secret itself is not shown.
fn level_name(level: &JsonLevel<'_>) -> String {
    match level {
        JsonLevel::Array(index) => index.to_string(),
        JsonLevel::Object(name) if name.len() > LONGEST_NAME || !spans(name).is_empty() => "…".to_owned(),
        JsonLevel::Object(name) => String::from_utf8_lossy(name).replace('~', "~0").replace('/', "~1"),
    }
}

/// Returns the levels that are open at the end of a beginning of a JSON text.
fn levels(text: &[u8]) -> Vec<JsonLevel<'_>> {
    let mut levels: Vec<JsonLevel<'_>> = Vec::new();
    let mut string: &[u8] = &[];
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, levels.last_mut()) {
            (b'"', _) => {
                let rest = text.get(at + 1..).unwrap_or_default();
                let length = string_length(rest);
                string = rest.get(..length).unwrap_or_default();
                at += length + 1;
            }
            (b'{', _) => levels.push(JsonLevel::Object(b"")),
            (b'[', _) => levels.push(JsonLevel::Array(0)),
            (b'}' | b']', _) => drop(levels.pop()),
            (b':', Some(JsonLevel::Object(name))) => *name = string,
            (b',', Some(JsonLevel::Array(index))) => *index += 1,
            (b',', Some(JsonLevel::Object(name))) => *name = b"",
            _ => {}
        }
        at += 1;
    }
    levels
}

/// Returns the number of bytes up to the quotation mark that ends a string.
fn string_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = rest.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if rest.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    rest.len()
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

    #[test]
    fn places_are_pointers_or_lines() {
        for (text, place) in [
            (r#"{"a":{"b":[1,{"c":"@"}]}}"#, "/a/b/1/c"),
            (r#"{"x\"y":"\\","a/b~c":["@"]}"#, "/a~1b~0c/0"),
            (r#"["{[\"", {"a":1}, "@"]"#, "/2"),
            ("{\n  \"a\": 1,\n  \"b\": [\n    \"@\"\n  ]\n}\n", "/b/0"),
            ("{\"a\":1}\n{\"b\":[2,\"@\"]}\n", "line 2 /b/1"),
            ("{\"b\":\"@\"}\n{\"c\":1}\n", "line 1 /b"),
            ("{\"b\":\"@\"}\n", "/b"),
            ("a: 1\nb: @\n", "line 2"),
            ("@", "line 1"),
            ("{\"@\":1}", "/"),
            ("{{{\"@", "///"),
        ] {
            assert_eq!(place_of(text.as_bytes(), text.find('@').unwrap()), place, "{text}");
        }
    }
}
