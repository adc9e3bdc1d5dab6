//! The events of a body: those of a stream of server-sent events, or the JSON documents on lines of their own.

use super::providers::answer_forms;
use crate::json::Value;
use crate::json::reader::{self, Defect, Limits};
use crate::json::tokens::{DocumentBuilder, JsonToken};

/// An event of a stream.
#[derive(Debug, PartialEq)]
pub(super) enum StreamEvent<'b> {
    /// A JSON document, with the name that the stream gives the event.
    Json(Option<&'b str>, Value<'b>),
    /// A text that is not JSON, with the name that the stream gives the event.
    Text(Option<&'b str>, &'b str),
    /// The mark after the last event.
    Done,
    /// A JSON document without its end.
    CutOff,
}

/// The first code point that stands for a half of a surrogate pair. 2,048 code points at the end of the last plane, which
/// is for private use, are as many as there are halves.
const FIRST_HALF: u32 = 0x0010_f800;

/// The end of the first halves of surrogate pairs.
const FIRST_LOW_HALF: u32 = FIRST_HALF + 0x400;

/// Returns whether a body is a stream of events, by its beginning.
pub(crate) fn begins_as_events(body: &str) -> bool {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body).trim_start();
    ["data:", "event:", ":"].iter().any(|field| body.starts_with(field))
}

/// Returns whether a body is a stream of JSON documents on lines of their own, by its beginning.
pub(super) fn begins_as_lines(body: &str) -> bool {
    let mut lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_document = |line: &str| line.starts_with('{') && JsonScan::from_text(line) == JsonScan::COMPLETE;
    lines.next().is_some_and(is_document) && lines.next().is_some_and(|line| line.starts_with('{'))
}

/// Returns whether a text begins as a JSON document and ends before its end.
pub(crate) fn is_cut_off(text: &str) -> bool {
    begins_as_json(text) && JsonScan::from_text(text) != JsonScan::COMPLETE
}

/// Reads a JSON document in which half a character may stand, as it does where a stream splits a surrogate pair. Returns
/// `None` if it is not JSON, or is not permitted.
pub(crate) fn read(text: &str) -> Option<Value<'_>> {
    match reader::read(text.trim().as_bytes(), &Limits::most()) {
        Ok(value) => Some(value),
        Err(error) if error.defect == Defect::Surrogate => {
            let text = with_halves(text.trim());
            reader::read(text.as_bytes(), &Limits::most()).ok().map(Value::into_owned_value)
        }
        Err(_) => None,
    }
}

/// Reads a JSON document in which half a character may stand, as it does where a program cuts a text. What has no other half
/// becomes U+FFFD. Returns `None` if it is not JSON, or is not permitted.
pub(crate) fn read_cut_text(text: &str) -> Option<Value<'static>> {
    let [value] = <[_; 1]>::try_from(read_cut_texts(text)?).ok()?;
    Some(value)
}

/// Like [`read_cut_text`], for one or more documents without anything between them.
pub(crate) fn read_cut_texts(text: &str) -> Option<Vec<Value<'static>>> {
    let text: String = with_halves(text)
        .chars()
        .map(|character| half(character).map_or(character, |_| char::REPLACEMENT_CHARACTER))
        .collect();
    let values = reader::read_sequence(text.as_bytes(), &Limits::most()).ok()?;
    Some(values.into_iter().map(Value::into_owned_value).collect())
}

/// Passes the tokens of a JSON document to `add`, with what `new` returns, and returns that. It takes little memory beside the
/// document, and returns `None` where [`read`] does.
pub(crate) fn collect<'b, T>(
    text: &'b str,
    new: impl Fn() -> T,
    add: impl Fn(&mut T, JsonToken<'b>),
) -> Option<T> {
    let text = text.trim();
    let mut read = new();
    let visited = reader::visit(text.as_bytes(), &Limits::most(), &mut |token| add(&mut read, token));
    match visited {
        Ok(()) => Some(read),
        Err(error) if error.defect == Defect::Surrogate => {
            let (text, mut read) = (with_halves(text), new());
            let mut add = |token: JsonToken<'_>| add(&mut read, token.into_owned());
            reader::visit(text.as_bytes(), &Limits::most(), &mut add).ok()?;
            Some(read)
        }
        Err(_) => None,
    }
}

/// The most bytes of an event of which more than an outline is read if that is all that is needed.
const LONG_EVENT: usize = 1 << 20;

/// Reads an event, or its outline if it is a long object.
fn read_event(text: &str, is_outline: bool) -> Option<Value<'_>> {
    if !(is_outline && text.len() > LONG_EVENT && text.trim_start().starts_with('{')) {
        return read(text);
    }
    let new = || (DocumentBuilder::outline(), None);
    collect(text, new, |(builder, event), token| *event = builder.add(token))?.1
}

/// Returns the half of a surrogate pair that a code point stands for, from 0.
fn half(character: char) -> Option<u32> {
    u32::from(character).checked_sub(FIRST_HALF)
}

/// Returns a text with the surrogate pairs of which it has the halves one after the other. Other halves become U+FFFD.
pub(crate) fn with_characters(text: String) -> String {
    if !text.chars().any(|character| half(character).is_some()) {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let Some(high) = half(character) else {
            whole.push(character);
            continue;
        };
        let low = characters.peek().and_then(|next| u32::from(*next).checked_sub(FIRST_LOW_HALF));
        let pair = low.filter(|_| high < 0x400).and_then(|low| char::from_u32(0x10000 + (high << 10) + low));
        if pair.is_some() {
            characters.next();
        }
        whole.push(pair.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    whole
}

/// Returns a JSON text in which the escape of each half of a surrogate pair without the other half is that of the code
/// point that stands for it.
fn with_halves(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        written.push_str(before);
        let length = match (unit(escape), unit(escape.get(6..).unwrap_or_default())) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(half @ 0xd800..0xe000), _) => {
                written.extend(char::from_u32(FIRST_HALF + half - 0xd800));
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => 6,
            // The character after the backslash, such as another one.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (copied, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        written.push_str(copied);
        rest = after;
    }
    written + rest
}

/// Returns a JSON text in which the code points that stand for halves are the escapes that [`read`] found in their place.
pub(crate) fn with_escaped_halves(text: String) -> String {
    if !text.chars().any(|character| half(character).is_some()) {
        return text;
    }
    let written = |character: char| match half(character) {
        Some(half) => format!("\\u{:04x}", 0xd800 + half),
        None => character.to_string(),
    };
    text.chars().map(written).collect::<Vec<String>>().concat()
}

/// Returns the unit of UTF-16 whose escape a text begins with.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

fn begins_as_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// How far a JSON document has been read, as far as its end depends on that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct JsonScan {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonScan {
    /// The state after a complete document.
    const COMPLETE: Self = Self { depth: 0, is_in_string: false, is_escaped: false };

    fn from_text(text: &str) -> Self {
        let mut scan = Self::COMPLETE;
        scan.read(text);
        scan
    }

    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match (self.is_in_string, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (_, b'"') => self.is_in_string = !self.is_in_string,
                (false, b'{' | b'[') => self.depth += 1,
                (false, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

/// Calls `visit` with the events of a body, in their order. Documents that cannot be read are left out. Of long ones, the
/// outline can be read.
///
/// Lines with data that is a document, or that is not JSON, are events of their own: not all servers write an empty line
/// between events.
pub(super) fn visit<'b>(body: &'b str, is_outline: bool, mut visit: impl FnMut(StreamEvent<'b>)) {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let lines = body.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'));
    let mut pending = PendingDocument { is_outline, ..PendingDocument::default() };
    let mut name = None;
    for line in lines {
        if line.is_empty() {
            if pending.take_if_data() {
                visit(StreamEvent::CutOff);
            }
            name = None;
        } else if let Some(text) = line.strip_prefix("event:") {
            name = Some(text.trim());
        } else if let Some(data) = line.strip_prefix("data:") {
            let data = data.trim();
            if data == "[DONE]" {
                visit(StreamEvent::Done);
            } else if pending.parts.is_empty() && !begins_as_json(data) {
                visit(StreamEvent::Text(name, data));
            } else if let Some(document) = pending.read(data, true) {
                visit(StreamEvent::Json(name, document));
            }
        } else if (begins_as_json(line) || !pending.parts.is_empty())
            && let Some(document) = pending.read(line, false)
        {
            visit(StreamEvent::Json(None, document));
        }
    }
    if !pending.parts.is_empty() {
        visit(StreamEvent::CutOff);
    }
}

/// The lines of a document of which the end has not been read yet.
#[derive(Default)]
struct PendingDocument<'b> {
    parts: Vec<&'b str>,
    scan: JsonScan,
    /// Whether the lines are the data of an event, which ends at an empty line.
    is_data: bool,
    /// Whether only the outline of long documents is read.
    is_outline: bool,
}

impl<'b> PendingDocument<'b> {
    /// Adds a line, and returns the document if the line ends it.
    fn read(&mut self, line: &'b str, is_data: bool) -> Option<Value<'b>> {
        self.is_data = is_data;
        self.parts.push(line);
        self.scan.read(line);
        if self.scan != JsonScan::COMPLETE {
            return None;
        }
        match std::mem::take(&mut self.parts).as_slice() {
            [only] => read_event(only, self.is_outline),
            parts => read_event(&parts.join("\n"), self.is_outline).map(Value::into_owned_value),
        }
    }

    /// Forgets a document that is the data of an event. Returns false if there is none.
    fn take_if_data(&mut self) -> bool {
        let is_cut_off = self.is_data && !self.parts.is_empty();
        if is_cut_off {
            *self = Self { is_outline: self.is_outline, ..Self::default() };
        }
        is_cut_off
    }
}

/// The line that ends a stream of events by itself. A line break in a value is escaped, so no text can imitate it.
const LAST_DATA: &[u8] = b"data: [DONE]";

/// None of these lines is longer.
const LONGEST: usize = 32;

/// How much of the end of a stream has arrived.
#[derive(Debug, Default)]
pub(crate) struct StreamEnd {
    /// The beginning of the last line, which can have more bytes: at most [`LONGEST`] bytes, because streams can have long
    /// lines.
    line: Vec<u8>,
    /// Whether more than white space follows it in the line.
    has_more: bool,
    has_begun: bool,
    is_complete: bool,
}

impl StreamEnd {
    /// Continues with the next part of the body.
    pub(crate) fn update(&mut self, data: &[u8]) {
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = part.last() == Some(&b'\n');
            let (kept, rest) = part.split_at(part.len().min(LONGEST - self.line.len()));
            self.line.extend_from_slice(kept);
            self.has_more = self.has_more || !rest.trim_ascii_start().is_empty();
            if !self.has_more {
                self.update_line(is_whole);
            }
            if is_whole {
                self.line.clear();
                self.has_more = false;
            }
        }
    }

    fn update_line(&mut self, is_whole: bool) {
        let text = self.line.trim_ascii_end();
        if text == LAST_DATA {
            (self.has_begun, self.is_complete) = (true, true);
        }
        // The data of the event is in other lines, and an empty one ends it.
        self.is_complete |= self.has_begun && is_whole && text.is_empty();
        self.has_begun |= is_last_event(text);
    }

    /// Returns whether the event that ends the stream has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns whether all of this event has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

/// Returns whether a line is the first one of an event that ends a stream.
fn is_last_event(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"event: ").and_then(|name| std::str::from_utf8(name).ok());
    name.is_some_and(|name| answer_forms().any(|form| form.is_last_event(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;

    fn events(body: &str) -> Vec<String> {
        let mut events = Vec::new();
        visit(body, false, |event| {
            events.push(match event {
                StreamEvent::Json(name, value) => format!("{name:?} {}", compact::text(&value)),
                other => format!("{other:?}"),
            });
        });
        events
    }

    #[test]
    fn events_have_one_or_several_lines_of_data() {
        for (body, expected) in [
            ("data: {\"a\":1}\n\ndata: [DONE]\n\n", &["None {\"a\":1}", "Done"][..]),
            ("data: {\"a\":1}\ndata: {\"a\":2}\n", &["None {\"a\":1}", "None {\"a\":2}"]),
            ("\u{feff}event: x\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n", &["Some(\"x\") {\"a\":1}"]),
            ("event: x\rdata: {}\r\rdata: {}\r\r", &["Some(\"x\") {}", "None {}"]),
            (": ping\n\nid: 1\ndata: busy\n\n", &["Text(None, \"busy\")"]),
            ("{\"a\":1}\n\n{\"a\":2}\n", &["None {\"a\":1}", "None {\"a\":2}"]),
            ("{\n \"a\":\n\n 1\n}\n", &["None {\"a\":1}"]),
            ("data: {\"a\":\"}", &["CutOff"]),
            ("data: {\"a\":[1\n\ndata: {}\n\n", &["CutOff", "None {}"]),
            ("{\"a\":1}\n{\"a\":", &["None {\"a\":1}", "CutOff"]),
            ("data: {\"a\":1,\"a\":2}\n\n", &[]),
        ] {
            assert_eq!(events(body), expected, "{body}");
        }
    }

    #[test]
    fn halves_of_characters_are_put_together() {
        for (first, second, expected) in [
            (r#""a\ud83d""#, r#""\ude00b""#, "a\u{1f600}b"),
            (r#""\\ud83d\ud83d""#, r#""\ude00\ud83d\ude00""#, "\\ud83d\u{1f600}\u{1f600}"),
            (r#""\ud83d""#, r#""x\n\ude00\u00e4""#, "\u{fffd}x\n\u{fffd}\u{e4}"),
            (r#""\ude00\ud83d""#, r#""""#, "\u{fffd}\u{fffd}"),
        ] {
            let texts = [first, second].map(|text| read(text).unwrap().as_str().unwrap().to_owned());
            assert_eq!(with_characters(texts.concat()), expected);
        }
        assert_eq!(read(r#""\ud8""#), None);
        let cut = read_cut_text(r#"["a\ud83d","\ud83d\ude00","\\ud83d"]"#).unwrap();
        assert_eq!(compact::text(&cut), "[\"a\u{fffd}\",\"\u{1f600}\",\"\\\\ud83d\"]");
    }

    #[test]
    fn streams_are_recognized_by_their_beginning() {
        for body in ["data: {}", "\u{feff}event: x\ndata: {}", ": ping\n", "\n\ndata: x"] {
            assert!(begins_as_events(body), "{body}");
        }
        assert!(!begins_as_events("{\"data\":1}") && !begins_as_events("text"));
        assert!(begins_as_lines("{\"a\":1}\n{\"a\":"));
        assert!(!begins_as_lines("{\"a\":1}\n") && !begins_as_lines("{\n\"a\":1}\n{}"));
    }

    /// The states after each part of a body.
    fn states(parts: &[&str]) -> Vec<(bool, bool)> {
        let mut end = StreamEnd::default();
        let state = |part: &&str| {
            end.update(part.as_bytes());
            (end.has_begun(), end.is_complete())
        };
        parts.iter().map(state).collect()
    }

    #[test]
    fn an_event_ends_with_an_empty_line() {
        let (no, begun, complete) = ((false, false), (true, false), (true, true));
        let slow = ["data: {}\n\n", "event: message_", "stop\n", "data: {\"a\"", ":1}\n", "\n"];
        assert_eq!(states(&slow), [no, no, begun, begun, begun, complete]);
        let windows = ["event: response.completed\r", "\n", "data: {}\r\n", "\r", "\n"];
        assert_eq!(states(&windows), [begun, begun, begun, begun, complete]);
        assert_eq!(states(&["event: response.failed\ndata: {}\n\n"]), [complete]);
        assert_eq!(states(&["data: [DO", "NE]"]), [no, complete]);
        assert_eq!(states(&["data: \"event: message_stop\"\n\n"]), [no]);
    }

    /// Each part is passed once, so that the time for a line is proportional to its length if none of it is examined again.
    #[test]
    fn only_the_beginning_of_a_line_is_kept() {
        let part = "a".repeat(8_192);
        let mut end = StreamEnd::default();
        end.update(b"data: \"");
        for _ in 0..100 {
            end.update(part.as_bytes());
            assert!(end.line.len() <= LONGEST);
        }
        assert!(!end.has_begun());
        end.update(b"\"\n\ndata: [DONE]\n\n");
        assert!(end.is_complete());
        let last = answer_forms().flat_map(|form| form.last_events);
        assert!(
            last.map(|name| "event: ".len() + name.len()).chain([LAST_DATA.len()]).all(|len| len <= LONGEST)
        );
    }

    #[test]
    fn the_last_line_can_end_with_white_space_only() {
        let (no, complete) = ((false, false), (true, true));
        let space = " ".repeat(100);
        assert_eq!(states(&[&format!("data: [DONE]{space}"), &space, "\r\n"]), [complete; 3]);
        assert_eq!(states(&[&format!("data: [DONE]{space}x\n")]), [no]);
        assert_eq!(
            states(&[&format!("data: {space}"), "[DONE]", "\n", "data: [DONE]"]),
            [no, no, no, complete]
        );
    }
}
