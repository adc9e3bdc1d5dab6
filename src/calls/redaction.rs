//! Replaces text that must not be stored.

use std::borrow::Cow;
use std::ops::Range;

use regex::Regex;

use super::assembled;
use super::body::{self, BodyPart, BodyString, PartData};
use super::url::percent_decoded;
use crate::json::{Object, Value, compact};

/// The replacement of text that must not be stored.
const REDACTED: &str = "[REDACTED]";

/// The patterns of text that must not be stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Redaction {
    patterns: Vec<Regex>,
}

impl Redaction {
    pub(super) fn add(&mut self, pattern: Regex) {
        self.patterns.push(pattern);
    }

    /// Returns the number of patterns.
    pub(super) fn count(&self) -> usize {
        self.patterns.len()
    }

    /// Returns where the patterns match, without overlaps. What replaced a match is none, even if a pattern matches it.
    fn matches(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for pattern in &self.patterns {
            found.extend(
                pattern
                    .find_iter(text)
                    .map(|found| found.start()..found.end())
                    .filter(|range| !range.is_empty()),
            );
        }
        if found.is_empty() {
            return found;
        }
        let replaced: Vec<Range<usize>> =
            text.match_indices(REDACTED).map(|(start, _)| start..start + REDACTED.len()).collect();
        found.retain(|range| !replaced.iter().any(|old| old.start <= range.start && range.end <= old.end));
        found.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// Returns a text as it may be stored.
    pub(super) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let matches = self.matches(text);
        if matches.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(replaced(text, 0, &matches))
    }

    /// Returns a value as it may be stored: strings, names and numbers without what must be redacted.
    pub(super) fn value(&self, value: &Value<'_>) -> Value<'static> {
        if self.patterns.is_empty() {
            return value.to_owned_value();
        }
        match value {
            Value::String(text) => Value::String(Cow::Owned(self.text(text).into_owned())),
            Value::Number(number) => match self.text(number.literal()) {
                Cow::Owned(redacted) => Value::String(Cow::Owned(redacted)),
                Cow::Borrowed(_) => value.to_owned_value(),
            },
            Value::Array(elements) => {
                Value::Array(elements.iter().map(|element| self.value(element)).collect())
            }
            Value::Object(members) => {
                let redacted = members
                    .iter()
                    .map(|(name, member)| (Cow::Owned(self.text(name).into_owned()), self.value(member)));
                let mut unique: Vec<(Cow<'static, str>, Value<'static>)> = Vec::new();
                for (name, member) in redacted {
                    // Two names can become the same one.
                    if !unique.iter().any(|(other, _)| *other == name) {
                        unique.push((name, member));
                    }
                }
                Value::Object(Object::from_members(unique))
            }
            other => other.to_owned_value(),
        }
    }

    /// Returns a path as it may be stored. A segment is also compared in its decoded form.
    pub(super) fn path(&self, path: &str) -> String {
        let segments = path.split('/').map(|segment| {
            let decoded = percent_decoded(segment);
            match self.text(&decoded) {
                Cow::Owned(redacted) => redacted,
                Cow::Borrowed(_) => segment.to_owned(),
            }
        });
        let path = segments.collect::<Vec<String>>().join("/");
        self.text(&path).into_owned()
    }

    /// Returns the body of a response as it may be stored: neither its text nor the strings that it contains, nor the
    /// texts that its parts make together, have a match. Data that cannot be decoded is replaced completely.
    pub(super) fn body<'b>(&self, body: &'b str) -> Cow<'b, str> {
        if self.patterns.is_empty() {
            return Cow::Borrowed(body);
        }
        let parts = body::parts(body);
        let mut strings = body::strings(&parts);
        for string in &mut strings {
            string.text = self.text(&string.text).into_owned();
        }
        self.redact_across(&mut strings, |string| &string.location);
        let mut redacted = self.written(&parts, &strings);
        if self.is_in_text_of(&redacted) {
            // The text of an answer can also be continued at another location, such as the next block.
            self.redact_across(&mut strings, |string| &string.name);
            redacted = self.written(&parts, &strings);
        }
        if self.is_in_text_of(&redacted) {
            REDACTED.clone_into(&mut redacted);
        }
        if redacted == body { Cow::Borrowed(body) } else { Cow::Owned(redacted) }
    }

    /// Returns whether the patterns match the text that is assembled from a body.
    fn is_in_text_of(&self, body: &str) -> bool {
        assembled::in_all_forms(body).any(|text| !self.matches(&text).is_empty())
    }

    /// Redacts what matches the text that strings with the same key make together. The first of the strings that contain
    /// a part of a match gets the replacement, the others lose their parts.
    fn redact_across(&self, strings: &mut [BodyString], key: impl Fn(&BodyString) -> &String) {
        for group in body::groups(strings, key) {
            let continued =
                group.into_iter().filter(|at| strings.get(*at).is_some_and(BodyString::is_continued));
            let continued: Vec<usize> = continued.collect();
            let texts = continued.iter().filter_map(|at| strings.get(*at)).map(|string| string.text.as_str());
            let matches = self.matches(&texts.collect::<String>());
            let mut start = 0;
            for at in continued {
                let Some(string) = strings.get_mut(at) else { continue };
                let length = string.text.len();
                string.text = replaced(&string.text, start, &matches);
                start += length;
            }
        }
    }

    /// Returns the body of which these are the parts, with these strings.
    fn written(&self, parts: &[BodyPart<'_>], strings: &[BodyString]) -> String {
        let mut strings = strings.iter();
        let mut next = || strings.next().map(|string| string.text.clone()).unwrap_or_default();
        let mut written = String::new();
        for part in parts {
            written.push_str(part.before);
            match &part.data {
                PartData::Json(value) => {
                    let redacted = self.value(&body::mapped(value, &mut |_, _, _| next()));
                    if redacted == *value {
                        written.push_str(part.text);
                    } else {
                        written.push_str(&compact::text(&redacted));
                    }
                }
                PartData::Text => written.push_str(&next()),
                PartData::Other => written.push_str(part.text),
                PartData::Unreadable => written.push_str(REDACTED),
            }
            written.push_str(part.after);
        }
        self.text(&written).into_owned()
    }
}

/// Returns a text that begins at `start` of a longer one, with the replacement in the place of the matches in that one. Of
/// a match that begins before the text, only the end is removed.
fn replaced(text: &str, start: usize, matches: &[Range<usize>]) -> String {
    let end = start + text.len();
    let mut replaced = String::new();
    let mut at = start;
    let copy = |from: usize, to: usize, replaced: &mut String| {
        replaced.push_str(text.get(from - start..to - start).unwrap_or_default());
    };
    for range in matches.iter().filter(|range| range.start < end && start < range.end) {
        if range.start >= start {
            copy(at, range.start, &mut replaced);
            replaced.push_str(REDACTED);
        }
        at = range.end.min(end);
    }
    copy(at, end, &mut replaced);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    fn redaction(patterns: &[&str]) -> Redaction {
        Redaction { patterns: patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect() }
    }

    #[test]
    fn what_is_redacted_is_in_no_string_name_or_number() {
        let redaction = redaction(&["sk-[a-z]+", "4111[0-9]+"]);
        let value = br#"{"sk-abc":["x sk-def y",1],"sk-ghi":2,"n":41111111}"#;
        let value = reader::read(value, &Limits::default()).unwrap();
        let stored = compact::text(&redaction.value(&value));
        assert_eq!(stored, r#"{"[REDACTED]":["x [REDACTED] y",1],"n":"[REDACTED]"}"#);
        assert_eq!(redaction.text("sk-a, sk-b"), "[REDACTED], [REDACTED]");
        assert_eq!(redaction.path("/v1/sk%2Dabc/sk-d:x"), "/v1/[REDACTED]/[REDACTED]:x");
    }

    #[test]
    fn a_replacement_is_not_replaced_again() {
        let redaction = redaction(&["[A-Z]{4,}", "RED[A-Z]+"]);
        assert_eq!(redaction.text(&redaction.text("an ABCD")), "an [REDACTED]");
        assert_eq!(
            redaction.body(r#"{"content":[{"text":"ABCD"}]}"#),
            r#"{"content":[{"text":"[REDACTED]"}]}"#
        );
    }

    #[test]
    fn matches_that_are_escaped_or_split_are_redacted() {
        let redaction = redaction(&["sk-[A-Z]+", "M\u{fc}ller"]);
        for (body, expected) in [
            (r#"{ "a": "M\u00fcller" }"#, r#"{"a":"[REDACTED]"}"#),
            (r#"{ "a": "M\u00fcner" }"#, r#"{ "a": "M\u00fcner" }"#),
            (
                "data: {\"delta\":{\"text\":\"a sk\"}}\r\n\r\ndata: {\"delta\":{\"text\":\"-AB\"}}\n\ndata: {\"delta\":{\"text\":\"C d\"}}\n\n",
                "data: {\"delta\":{\"text\":\"a [REDACTED]\"}}\r\n\r\ndata: {\"delta\":{\"text\":\"\"}}\n\ndata: {\"delta\":{\"text\":\" d\"}}\n\n",
            ),
            ("data: sk-\ndata: AB c\n", "data: [REDACTED]\ndata:  c\n"),
            (
                r#"{"content":[{"type":"text","text":"sk-"},{"type":"text","text":"AB"}]}"#,
                r#"{"content":[{"type":"text","text":"[REDACTED]"},{"type":"text","text":""}]}"#,
            ),
            ("{\"a\":\"M\\u00fc", "[REDACTED]"),
            ("M\u{fc}ller <b>", "[REDACTED] <b>"),
        ] {
            assert_eq!(redaction.body(body), expected);
        }
    }
}
