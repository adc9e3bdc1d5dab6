//! Replaces text that must not be stored, or that must be another one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;
use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;

use super::body::{self, BodyPart, BodyString, ContinuedText, PartData};
use super::target::percent_decoded;
use crate::conversation::events;
use crate::conversation::providers::is_named;
use crate::json::{Object, Value, compact};

/// The replacement of text that must not be stored.
const REDACTED: &str = "[REDACTED]";

/// The reason that a body must not be stored: what is to be redacted cannot be found in it, or not be removed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unredactable {
    /// Some of it begins as JSON, and is not JSON.
    Unreadable,
    /// Without the matches, what is left has others.
    Remains,
}

impl fmt::Display for Unredactable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => {
                "it begins as JSON but cannot be decoded, so that text to be redacted could not be found in it"
            }
            Self::Remains => "text to be redacted could not be removed from it",
        })
    }
}

/// A pattern of text that must not be stored.
#[derive(Clone, Debug)]
struct RedactedPattern {
    regex: Regex,
    /// Compiled when a text was broken off.
    unfinished: OnceLock<Option<UnfinishedSearch>>,
}

impl RedactedPattern {
    fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        self.regex.find_iter(text).map(|found| found.range()).filter(|range| !range.is_empty())
    }

    /// Returns the end of a text that can be the beginning of a match.
    fn unfinished(&self, text: &str) -> Option<Range<usize>> {
        // A character that was broken off is no part of a match.
        let text = text.trim_end_matches('\u{fffd}');
        let search = self.unfinished.get_or_init(|| UnfinishedSearch::new(self.regex.as_str()));
        search.as_ref()?.start(text).map(|start| start..text.len())
    }
}

/// The patterns of text that must not be stored, and what takes its place.
#[derive(Clone, Debug)]
pub(super) struct Redaction {
    patterns: Vec<RedactedPattern>,
    replacement: Cow<'static, str>,
}

impl Default for Redaction {
    fn default() -> Self {
        Self { patterns: Vec::new(), replacement: Cow::Borrowed(REDACTED) }
    }
}

/// The strings of a body without matches.
struct RedactedStrings {
    texts: Vec<String>,
    has_changed: bool,
}

impl Redaction {
    /// Returns the replacement of what matches a pattern by a text that does not match it.
    pub(super) fn with(pattern: Regex, replacement: String) -> Self {
        let mut replaced = Self { replacement: Cow::Owned(replacement), ..Self::default() };
        replaced.add(pattern);
        replaced
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(super) fn add(&mut self, pattern: Regex) {
        self.patterns.push(RedactedPattern { regex: pattern, unfinished: OnceLock::new() });
    }

    /// Returns the number of patterns.
    pub(super) fn count(&self) -> usize {
        self.patterns.len()
    }

    /// Returns where the patterns match, without overlaps.
    fn matches(&self, text: &str) -> Vec<Range<usize>> {
        self.merged(text, self.patterns.iter().flat_map(|pattern| pattern.find(text)).collect())
    }

    /// Returns a text as it may be stored.
    pub(super) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let matches = self.matches(text);
        if matches.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(self.replaced_in(text, &matches))
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

    /// Returns a value as it may be stored: strings, names and numbers without what must be redacted, also where it is
    /// split over several strings of a conversation, or in a string that contains JSON.
    pub(super) fn value(&self, value: &Value<'_>) -> Value<'static> {
        if self.patterns.is_empty() {
            return value.to_owned_value();
        }
        let strings = self.strings(&body::strings_of(value), false);
        self.writer(&strings, strings.has_changed).write(value)
    }

    /// Returns the body of a response as it may be stored: neither its text nor the strings that it contains, nor the
    /// texts that these make together, have a match. If it was broken off, no text ends with the beginning of a match,
    /// and data that cannot be decoded is replaced completely.
    ///
    /// # Errors
    /// Returns an error if data of a body that was not broken off cannot be decoded, or if matches remain.
    pub(super) fn body<'b>(&self, body: &'b str, is_broken_off: bool) -> Result<Cow<'b, str>, Unredactable> {
        if self.patterns.is_empty() {
            return Ok(Cow::Borrowed(body));
        }
        let parts = body::parts(body);
        let is_unreadable = parts.iter().any(|part| matches!(part.data, PartData::Unreadable));
        if is_unreadable && !is_broken_off {
            return Err(Unredactable::Unreadable);
        }
        let strings = body::strings(&parts);
        let is_unfinished = is_broken_off || body::is_cut_off(&parts, &strings);
        let redacted = self.strings(&strings, is_unfinished);
        let written = self.written(&parts, &redacted, is_unreadable);
        if redacted.has_changed {
            let parts = body::parts(&written);
            if self.strings(&body::strings(&parts), is_unfinished).has_changed {
                return Err(Unredactable::Remains);
            }
        }
        let mut stored = self.text(&written).into_owned();
        if is_unfinished && !parts.iter().any(|part| matches!(part.data, PartData::Json(_))) {
            stored = self.without_beginning(&stored);
        }
        Ok(if stored == body { Cow::Borrowed(body) } else { Cow::Owned(stored) })
    }

    /// Returns a text without the beginning of a match at its end.
    fn without_beginning(&self, text: &str) -> String {
        let found = self.patterns.iter().filter_map(|pattern| pattern.unfinished(text)).collect();
        self.replaced_in(text, &self.merged(text, found))
    }

    /// Redacts strings: each of them, the texts that they make together, and what is encoded in these.
    fn strings(&self, strings: &[BodyString<'_>], is_unfinished: bool) -> RedactedStrings {
        let mut redacted = RedactedStrings { texts: vec![String::new(); strings.len()], has_changed: false };
        for conversation in body::conversations(strings) {
            let is_unfinished = is_unfinished && conversation.is_continued;
            let matches = self.matches_in(&conversation, is_unfinished);
            let places: Vec<Range<usize>> =
                conversation.strings.iter().map(|(_, place)| place.clone()).collect();
            let mut texts = self.replaced(&conversation.text, &places, &matches);
            let mut has_changed = !matches.is_empty();
            for text in &conversation.texts {
                let original = conversation.text.get(conversation.place(text)).unwrap_or_default();
                let Some(parts) = texts.get_mut(text.clone()) else { continue };
                if let Some(decoded) = self.decoded(original, &parts.concat(), is_unfinished) {
                    has_changed = true;
                    parts.fill(String::new());
                    if let Some(first) = parts.first_mut() {
                        *first = decoded;
                    }
                }
            }
            redacted.has_changed |= has_changed;
            for ((position, _), text) in conversation.strings.iter().zip(texts) {
                if let Some(place) = redacted.texts.get_mut(*position) {
                    *place = text;
                }
            }
        }
        redacted
    }

    /// Returns what matches in a conversation: in a string, in a text, or across texts.
    fn matches_in(&self, conversation: &ContinuedText, is_unfinished: bool) -> Vec<Range<usize>> {
        let ContinuedText { text, strings, texts, .. } = conversation;
        let mut all = Vec::new();
        for pattern in &self.patterns {
            for strings_of_text in texts {
                let place = conversation.place(strings_of_text);
                let part = text_at(text, &place);
                let end = if is_unfinished { pattern.unfinished(part) } else { None };
                all.extend(pattern.find(part).chain(end).map(|found| shifted(&found, place.start)));
                // A pattern can say that a match is all of a string.
                let parts = strings.get(strings_of_text.clone()).filter(|parts| parts.len() > 1);
                for (_, place) in parts.unwrap_or_default() {
                    all.extend(pattern.find(text_at(text, place)).map(|found| shifted(&found, place.start)));
                }
            }
            if texts.len() > 1 {
                all.extend(across(pattern, conversation));
                all.extend(if is_unfinished { pattern.unfinished(text) } else { None });
            }
        }
        self.merged(text, all)
    }

    /// Returns what takes the place of a text of which the encoded content has a match that is not in its characters;
    /// `None` if there is none. `redacted` is the text without the matches in its characters.
    fn decoded(&self, original: &str, redacted: &str, is_unfinished: bool) -> Option<String> {
        if body::begins_as_json(original)
            && let Some(value) = body::read(original)
        {
            let inside = self.value(&value);
            let is_same = inside == value || body::read(redacted).is_some_and(|redacted| redacted == inside);
            return (!is_same).then(|| self.text(&compact::text(&inside)).into_owned());
        }
        let text = redacted.contains('\\').then(|| body::unescaped(redacted))?;
        let has_match = !self.matches(&text).is_empty()
            || is_unfinished && self.patterns.iter().any(|pattern| pattern.unfinished(&text).is_some());
        has_match.then(|| self.replacement.clone().into_owned())
    }

    /// Returns ranges in their order and without overlaps. What replaced a match is none, even if a pattern matches it.
    fn merged(&self, text: &str, mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
        if ranges.is_empty() {
            return ranges;
        }
        let mut markers: Vec<Range<usize>> = Vec::new();
        for (start, replacement) in text.match_indices(&*self.replacement) {
            let end = start + replacement.len();
            match markers.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => markers.push(start..end),
            }
        }
        ranges.retain(|range| {
            let after = markers.partition_point(|marker| marker.end < range.end);
            markers.get(after).is_none_or(|marker| range.start < marker.start || marker.end < range.end)
        });
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// Returns a text with the replacement in the place of the matches.
    fn replaced_in(&self, text: &str, matches: &[Range<usize>]) -> String {
        self.replaced(text, std::slice::from_ref(&(0..text.len())), matches).concat()
    }

    /// Returns the parts of a text at `places`, which follow each other, with the replacement in the place of the matches. Of
    /// a match that begins in an earlier part, only the end is removed.
    fn replaced(&self, text: &str, places: &[Range<usize>], matches: &[Range<usize>]) -> Vec<String> {
        let mut matches = matches.iter().peekable();
        let mut parts = Vec::with_capacity(places.len());
        for place in places {
            let mut part = String::new();
            let mut at = place.start;
            while let Some(found) = matches.peek() {
                if found.end <= place.start {
                    matches.next();
                    continue;
                }
                if found.start >= place.end {
                    break;
                }
                if found.start >= place.start {
                    part.push_str(text_at(text, &(at..found.start)));
                    part.push_str(&self.replacement);
                }
                at = found.end.min(place.end);
                if found.end > place.end {
                    break;
                }
                matches.next();
            }
            part.push_str(text_at(text, &(at..place.end)));
            parts.push(part);
        }
        parts
    }

    fn writer<'r>(&'r self, strings: &'r RedactedStrings, has_matches: bool) -> BodyWriter<'r> {
        BodyWriter { redaction: self, texts: strings.texts.iter(), has_matches }
    }

    /// Returns the body of which these are the parts, with these strings.
    fn written(&self, parts: &[BodyPart<'_>], strings: &RedactedStrings, is_unreadable: bool) -> String {
        let mut writer = self.writer(strings, strings.has_changed || is_unreadable);
        let mut written = String::new();
        for part in parts {
            written.push_str(part.before);
            match &part.data {
                PartData::Json(value) => {
                    let redacted = writer.write(value);
                    if redacted == *value {
                        written.push_str(part.text);
                    } else {
                        written.push_str(&events::with_escaped_halves(compact::text(&redacted)));
                    }
                }
                PartData::Text => written.push_str(&writer.next()),
                PartData::Other => written.push_str(part.text),
                PartData::Unreadable => written.push_str(&self.replacement),
            }
            written.push_str(part.after);
        }
        written
    }
}

/// Writes values with other strings, in the order in which [`body::strings`] reads them.
struct BodyWriter<'r> {
    redaction: &'r Redaction,
    texts: std::slice::Iter<'r, String>,
    /// Whether something was redacted, so that the probabilities of tokens are left out, which spell it.
    has_matches: bool,
}

impl BodyWriter<'_> {
    fn next(&mut self) -> String {
        self.texts.next().cloned().unwrap_or_default()
    }

    fn write(&mut self, value: &Value<'_>) -> Value<'static> {
        match value {
            Value::String(_) => Value::String(Cow::Owned(self.next())),
            Value::Number(number) => match self.redaction.text(number.literal()) {
                Cow::Owned(redacted) => Value::String(Cow::Owned(redacted)),
                Cow::Borrowed(_) => value.to_owned_value(),
            },
            Value::Array(elements) => match body::spelled(elements) {
                Some(text) if text != self.next() => Value::Array(Vec::new()),
                Some(_) => value.to_owned_value(),
                None => Value::Array(elements.iter().map(|element| self.write(element)).collect()),
            },
            Value::Object(members) => {
                // Two names can become the same one.
                let mut names = HashSet::new();
                let mut written = Vec::new();
                for (name, member) in members.iter() {
                    let member = self.member(name, member);
                    let name = self.redaction.text(name).into_owned();
                    if names.insert(name.clone()) {
                        written.push((Cow::Owned(name), member));
                    }
                }
                Value::Object(Object::from_members(written))
            }
            other => other.to_owned_value(),
        }
    }

    fn member(&mut self, name: &str, member: &Value<'_>) -> Value<'static> {
        let spells_text = self.has_matches && is_named(name, |names| names.probabilities);
        match self.write(member) {
            Value::Array(_) if spells_text => Value::Array(Vec::new()),
            Value::Object(_) if spells_text => Value::Null,
            other => other,
        }
    }
}

fn shifted(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

fn text_at<'t>(text: &'t str, place: &Range<usize>) -> &'t str {
    text.get(place.clone()).unwrap_or_default()
}

/// Returns the matches of a pattern that begin in one text of a conversation and end in another. One that is complete in
/// the first text ends there: a pattern without an end would match what others say after it.
fn across(pattern: &RedactedPattern, conversation: &ContinuedText) -> Vec<Range<usize>> {
    let text = &conversation.text;
    let ends: Vec<usize> = conversation.texts.iter().map(|strings| conversation.place(strings).end).collect();
    let is_across = |found: &Range<usize>| {
        let index = ends.partition_point(|end| *end <= found.start);
        let Some(end) = ends.get(index).filter(|end| **end < found.end) else { return false };
        let first = text_at(text, &(found.start..*end));
        pattern.regex.find(first).is_none_or(|complete| complete.start() > 0)
    };
    pattern.find(text).filter(is_across).collect()
}

/// How much of the end of a text is searched. No secret is longer.
const SEARCHED: usize = 1 << 20;

/// A pattern as an automaton, which knows after each character whether a match is still possible.
#[derive(Clone, Debug)]
struct UnfinishedSearch(NFA);

impl UnfinishedSearch {
    /// Returns `None` if the pattern cannot be compiled.
    fn new(pattern: &str) -> Option<Self> {
        NFA::new(pattern).ok().map(Self)
    }

    /// Returns where the longest end of a text begins that another text could continue to a match. Conditions about
    /// the characters around a match, such as `\b`, count as met.
    fn start(&self, text: &str) -> Option<usize> {
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
mod tests;
