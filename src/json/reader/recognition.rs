//! Recognition of the kinds of documents, also of damaged ones: the names of their first members, and fragments.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

use super::{JsonReader, Limits};

/// Maximum number of member names that are read to recognize a kind.
const MAX_MEMBER_NAMES: usize = 1_000;

/// The names of the first thousand members of the root object, as far as the text can be read; none if the root is not
/// an object. A byte order mark is skipped. Serves to recognize kinds, also of damaged documents, so the text is read
/// only as far as a query requires.
pub struct MemberNames<'t> {
    reader: JsonReader<'t, 't>,
    read: Vec<Cow<'t, str>>,
    /// Whether all names have been read.
    ended: bool,
    is_object: bool,
}

impl<'t> MemberNames<'t> {
    /// Creates a reader of the names in `text`.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = JsonReader::new(text, &Limits::DEFAULT, true);
        reader.skip_whitespace();
        let is_object = reader.take(b'{');
        reader.skip_whitespace();
        Self { reader, read: Vec::new(), ended: !is_object, is_object }
    }

    /// Returns whether `name` is one of them.
    pub fn has(&mut self, name: &str) -> bool {
        if self.read.iter().any(|read| read == name) {
            return true;
        }
        while !self.ended {
            match self.next() {
                Some(next) if next == name => return true,
                Some(_) => {}
                None => self.ended = true,
            }
        }
        false
    }

    /// Returns whether the root is an object that does not end properly: it is truncated, or a defect prevents reading
    /// its members.
    pub fn break_off(&mut self) -> bool {
        while !self.ended {
            self.ended = self.next().is_none();
        }
        self.is_object && self.read.len() < MAX_MEMBER_NAMES && self.reader.peek() != Some(b'}')
    }

    /// Returns whether the root is an object and all its names could be read, so that it has no other members.
    pub fn are_all(&mut self) -> bool {
        !self.break_off() && self.is_object && self.read.len() < MAX_MEMBER_NAMES
    }

    fn next(&mut self) -> Option<&str> {
        if !self.read.is_empty() {
            self.reader.colon().ok()?;
            self.skip_value();
            self.reader.take(b',').then_some(())?;
            self.reader.skip_whitespace();
        }
        if self.reader.peek() != Some(b'"') || self.read.len() == MAX_MEMBER_NAMES {
            return None;
        }
        self.read.push(self.reader.string().ok()?);
        self.read.last().map(AsRef::as_ref)
    }

    /// Skips to the comma or bracket that ends a member's value, by matching brackets and quotes only.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.reader.peek() {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => depth += 1,
                b',' | b'}' | b']' if depth == 0 => return,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.reader.offset += 1;
        }
    }

    /// Skips from an opening quote to the closing one, or to the end of the text.
    fn skip_string(&mut self) {
        let text = self.reader.text.as_bytes();
        let mut at = self.reader.offset + 1;
        while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            at += found;
            if text.get(at) == Some(&b'"') {
                self.reader.offset = at;
                return;
            }
            at += 2;
        }
        self.reader.offset = text.len();
    }
}

/// Returns whether `name` occurs in `text` like a member name: quoted and followed by a colon. The location does not
/// matter, nor whether the text can be read.
#[must_use]
pub fn has_key(text: &str, name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    memmem::find_iter(text.as_bytes(), quoted.as_bytes()).any(|at| {
        let after = text.get(at + quoted.len()..).unwrap_or("");
        after.trim_start_matches([' ', '\t', '\n', '\r']).starts_with(':')
    })
}

/// Returns whether `text` is a JSON document, or several on separate lines, without its beginning: it begins within a
/// value, and is JSON from the first quote to the end, where more brackets are closed than opened.
#[must_use]
pub fn has_lost_beginning(text: &str) -> bool {
    let text = text.trim_matches(['\u{feff}', '\0', ' ', '\t', '\n', '\r']);
    if text.starts_with(['{', '[']) || !text.ends_with(['}', ']']) {
        return false;
    }
    let bytes = text.as_bytes();
    // The first quote opens a string if only tokens precede it.
    let opens = |first: usize| {
        let (before, from) = bytes.split_at(first);
        before.iter().all(|byte| is_between_strings(*byte)) && closes_more_than_it_opens(from)
    };
    if memchr::memchr(b'"', bytes).is_some_and(opens) {
        return true;
    }
    // Otherwise the text begins within a string, and the first unescaped quote closes it.
    for quote in memchr::memchr_iter(b'"', bytes) {
        let (before, from) = bytes.split_at(quote);
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        // The missing text may have ended in a backslash.
        let is_unknown = backslashes == quote;
        let may_close = is_unknown || backslashes % 2 == 0;
        if may_close && from.split_first().is_some_and(|(_, after)| closes_more_than_it_opens(after)) {
            return true;
        }
        if !is_unknown && may_close {
            return false;
        }
    }
    false
}

/// Returns whether a byte can occur in JSON outside strings. The letters are those of true, false, null and exponents.
fn is_between_strings(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'0'
            ..=b'9' | b'-' | b'+' | b'.'
    ) || b"truefalsnE".contains(&byte)
}

/// Returns whether `text` consists of JSON tokens and closes a bracket that it did not open.
fn closes_more_than_it_opens(text: &[u8]) -> bool {
    let (mut depth, mut lowest) = (0_i64, 0_i64);
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => match after_string(after) {
                Some(after) => rest = after,
                None => return false,
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                lowest = lowest.min(depth);
            }
            other if is_between_strings(*other) => {}
            _ => return false,
        }
    }
    lowest < 0
}

/// Returns the text after a string whose opening quote has been skipped.
fn after_string(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let at = memchr::memchr2(b'"', b'\\', rest)?;
        let (found, after) = rest.get(at..)?.split_first()?;
        match found {
            b'"' => return Some(after),
            _ => rest = after.get(1..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<Cow<'_, str>> {
        let mut names = MemberNames::new(text);
        assert!(!names.has("none"));
        assert!(names.read.clone().iter().all(|name| names.has(name)));
        names.read
    }

    #[test]
    fn names_are_read_up_to_the_damage() {
        assert_eq!(names(r#" {"a":1,"b\u0063":[2],"d":"#), ["a", "bc", "d"]);
        assert_eq!(names("\u{feff}{\"a\":{\"b\":1}"), ["a"]);
        assert_eq!(names(r#"{"a":"\\\",}","b":{"x":["]}"]},"c" "d":1}"#), ["a", "b", "c"]);
        assert_eq!(names(r#"{"a":"\"#), ["a"]);
        assert!(names("[{\"a\":1}]").is_empty());
    }

    #[test]
    fn an_object_that_is_cut_off_breaks_off() {
        for (text, breaks) in [
            ("{}", false),
            (r#"{"a":{"b":[1]}, "c": 2} "#, false),
            (r#"{"a":1,"b":[2"#, true),
            (r#"{"a":1,"b""#, true),
            (r#"{"a" 1}"#, true),
            ("[1", false),
            ("", false),
        ] {
            let mut names = MemberNames::new(text);
            assert_eq!(names.break_off(), breaks, "{text}");
            assert_eq!(names.has("a"), text.contains("\"a\""));
        }
    }

    #[test]
    fn no_more_is_read_than_is_asked_for() {
        let mut names = MemberNames::new(r#"{"a":1,"b":2,"c":3}"#);
        assert!(names.has("b"));
        assert_eq!(names.read, ["a", "b"]);
    }

    #[test]
    fn keys_are_found_wherever_they_stand() {
        assert!(has_key(r#"…"a" : 1"#, "a"));
        assert!(has_key(r#"{"b":["a"],"c":{"a"  :2}"#, "a"));
        assert!(!has_key(r#"{"b":"a","ab":1,"a"}"#, "a"));
    }

    #[test]
    fn a_lost_beginning_is_told_by_what_is_left() {
        for text in [
            r#"rd","a":[1,-2.5E+3,true,{"b":null}]}"#,
            r#": 1, "a": "}"}"#,
            r#"ab\"c","d":1}"#,
            "x\"}\n{\"a\":1}\n{\"b\":2}\n",
            "\0\0, \"a\": 1}",
        ] {
            assert!(has_lost_beginning(text), "{text}");
        }
        for text in [
            "",
            "}",
            r#"{"a":1}"#,
            r#"[{"a":1}]"#,
            r#"{"a":1"#,
            "# Title\n\n```json\n{\"a\": 1}\n```\n",
            "const a = {\n  \"a\": 1,\n  \"b\": [f(x)]\n}",
            "a = {\"b\": True}",
            "\"a\": {}",
            "SQLite format 3{\"a\": 1}}",
            "x\": \"unclosed}",
        ] {
            assert!(!has_lost_beginning(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_tail_of_an_object_after_a_member_has_lost_its_beginning(
            members in proptest::collection::vec(("[a-z\\\\\"é]{1,6}", "[a-z\\\\\":,{}é]{0,10}"), 2..6), cut in 0.0..1.0_f64,
        ) {
            let object: serde_json::Map<String, serde_json::Value> =
                members.into_iter().enumerate().map(|(index, (name, text))| (format!("{index}{name}"), text.into())).collect();
            let text = serde_json::to_string(&object).unwrap();
            // Truncating anywhere before the last name leaves a quote after which the text is JSON.
            let last = text.rfind(&format!("\"{}", object.len() - 1)).unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short text")]
            let at = 1 + (cut * (last - 1) as f64) as usize;
            if let Some(tail) = text.get(at..).filter(|tail| !tail.starts_with(['{', '[', ' ', '\u{feff}', '\0'])) {
                prop_assert!(has_lost_beginning(tail), "{}", tail);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text: String, name: String) {
            let _ = (has_lost_beginning(&text), has_key(&text, &name));
        }
    }
}
