use std::borrow::Cow;

use memchr::memchr2;

use super::{JsonReader, Limits};

/// Maximum number of member names that are read to recognize a kind.
const MAX_MEMBER_NAMES: usize = 1_000;

/// The names of the first thousand members of the root object, as far as the text can be read; none if the root is not
/// an object. A byte order mark is skipped. Serves to recognize kinds, also of damaged documents, so the text is read
/// only as far as a query requires.
pub struct MemberNames<'t> {
    reader: JsonReader<'t, 'static>,
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
