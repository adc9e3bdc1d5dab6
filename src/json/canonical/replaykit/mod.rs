//! The profile of rpk documents: values are normalized, then serialized like Python's `json.dumps` in ASCII.
//!
//! Normalization depends on the name of the member that directly contains a value: line endings in all strings, paths
//! and timestamps in members with certain names, the order of a few lists. See `docs/formats.md`, "Canonical profiles".

mod timestamp;

use std::borrow::Cow;

use crate::digest::{Digest, Hasher};
use crate::json::Value;
use crate::json::number::round_to_12_digits;
use crate::json::pointer::{self, Token};

pub use timestamp::strip_white_space;

/// Members that [`VolatilePolicy::Omit`] omits, by their lower-case names, at any depth.
pub const VOLATILE_NAMES: [&str; 10] = [
    "duration_ms",
    "latency_ms",
    "wall_time_ms",
    "request_id",
    "trace_id",
    "span_id",
    "captured_at",
    "captured_ns",
    "thread_id",
    "pid",
];

const PATH_NAMES: [&str; 8] =
    ["path", "file", "filepath", "file_path", "cwd", "dir", "directory", "working_directory"];
const PATH_ENDINGS: [&str; 2] = ["_path", "_dir"];
const TIMESTAMP_NAMES: [&str; 6] =
    ["timestamp", "created_at", "updated_at", "started_at", "ended_at", "captured_at"];
const UNORDERED_NAMES: [&str; 3] = ["tags", "labels", "capabilities"];

/// The treatment of members that differ between identical runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolatilePolicy {
    /// They are included: checksums and signatures.
    Include,
    /// They are omitted: step hashes.
    Omit,
}

/// The error for a value without a canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {defect}")]
pub struct NonCanonicalValue {
    /// The location, as a JSON Pointer from the serialized value.
    pub pointer: String,
    /// The defect.
    pub defect: CanonicalizationDefect,
}

/// A defect that prevents a value from having a canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalizationDefect {
    /// A number overflows to infinity. The reader rejects such documents earlier.
    #[error("a number overflows to infinity")]
    Number,
    /// A timestamp is outside the years 1 to 9999 after conversion to UTC.
    #[error("the timestamp {0:?} is outside years 1 to 9999 in UTC")]
    Timestamp(String),
}

/// Returns the canonical bytes of an object with exactly these `members`.
///
/// # Errors
/// Returns the values without a canonical form, in the order of the canonical text, at most a hundred.
pub fn object(
    members: &[(&str, &Value<'_>)],
    volatile: VolatilePolicy,
) -> Result<Vec<u8>, Vec<NonCanonicalValue>> {
    ReplaykitWriter::written(members, volatile, false).map(|writer| writer.out)
}

/// Returns the digest of the canonical bytes of an object with exactly these `members`, which can have as many bytes as a
/// document, and are not in memory together.
///
/// # Errors
/// Returns what [`object`] does.
pub fn digest(
    members: &[(&str, &Value<'_>)],
    volatile: VolatilePolicy,
) -> Result<Digest, Vec<NonCanonicalValue>> {
    let ReplaykitWriter { mut hasher, out, .. } = ReplaykitWriter::written(members, volatile, true)?;
    hasher.update(&out);
    Ok(hasher.finish())
}

/// Number of bytes that are hashed at a time.
const HASHED: usize = 64 << 10;

/// Maximum number of defects that are reported.
const MAX_DEFECTS: usize = 100;

struct ReplaykitWriter<'v> {
    volatile: VolatilePolicy,
    /// The text, without the beginning that was hashed.
    out: Vec<u8>,
    hasher: Hasher,
    is_hashed: bool,
    /// The number of lists around a value whose elements are sorted afterwards.
    unordered: usize,
    place: Vec<Token<'v>>,
    defects: Vec<NonCanonicalValue>,
}

impl<'v> ReplaykitWriter<'v> {
    /// Writes an object, and hashes what is complete if only its digest is needed.
    fn written(
        members: &[(&'v str, &'v Value<'_>)],
        volatile: VolatilePolicy,
        is_hashed: bool,
    ) -> Result<Self, Vec<NonCanonicalValue>> {
        // As long as most steps of runs.
        let (out, hasher) = (Vec::with_capacity(1 << 10), Hasher::new());
        let mut writer =
            Self { volatile, out, hasher, is_hashed, unordered: 0, place: Vec::new(), defects: Vec::new() };
        let mut members = members.to_vec();
        members.sort_unstable_by_key(|(key, _)| *key);
        writer.members(&members);
        if writer.defects.is_empty() { Ok(writer) } else { Err(writer.defects) }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        if self.is_hashed && self.out.len() >= HASHED && self.unordered == 0 {
            self.hasher.update(&self.out);
            self.out.clear();
        }
    }

    /// Writes `value`, which is the member `key`; elements of lists have no key.
    fn value(&mut self, value: &'v Value<'_>, key: Option<&str>) {
        match value {
            Value::Null => self.push(b"null"),
            Value::Bool(true) => self.push(b"true"),
            Value::Bool(false) => self.push(b"false"),
            Value::Number(number) => match number.python_text(round_to_12_digits) {
                Some(text) => self.push(text.as_bytes()),
                None => self.defect(CanonicalizationDefect::Number),
            },
            Value::String(text) => match normalized(text, key) {
                Ok(text) => self.string(&text),
                Err(defect) => self.defect(defect),
            },
            Value::Array(elements) => self.array(elements, key),
            Value::Object(object) => self.members(&object.by_code_point()),
        }
    }

    fn array(&mut self, elements: &'v [Value<'_>], key: Option<&str>) {
        let unordered = key.is_some_and(|key| UNORDERED_NAMES.contains(&&*lower_case(key)));
        self.push(b"[");
        self.unordered += usize::from(unordered);
        let start = self.out.len();
        let mut ends = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                self.push(b",");
            }
            self.place.push(Token::Index(index));
            self.value(element, None);
            self.place.pop();
            if unordered {
                ends.push(self.out.len());
            }
        }
        if unordered {
            self.sort(start, &ends);
            self.unordered -= 1;
        }
        self.push(b"]");
    }

    /// Sorts the comma-separated texts that were written from `start` on and end at `ends`.
    fn sort(&mut self, start: usize, ends: &[usize]) {
        let begins = std::iter::once(start).chain(ends.iter().map(|end| end + 1));
        let texts = begins.zip(ends).filter_map(|(begin, end)| self.out.get(begin..*end));
        let mut texts: Vec<&[u8]> = texts.collect();
        // They are usually sorted already; then nothing is copied, however deeply such lists are nested.
        if !texts.is_sorted() {
            texts.sort_unstable();
            let sorted = texts.join(&b',');
            self.out.truncate(start);
            self.out.extend(sorted);
        }
    }

    fn members(&mut self, sorted: &[(&'v str, &'v Value<'_>)]) {
        self.push(b"{");
        let mut separate = false;
        for (key, value) in sorted {
            if self.volatile == VolatilePolicy::Omit && is_volatile(key) {
                continue;
            }
            if separate {
                self.push(b",");
            }
            separate = true;
            self.string(key);
            self.push(b":");
            self.place.push(Token::Name(key));
            self.value(value, Some(key));
            self.place.pop();
        }
        self.push(b"}");
    }

    fn string(&mut self, text: &str) {
        self.push(b"\"");
        // A loop without early exit is vectorized.
        if text.bytes().fold(0, |found, byte| found | u8::from(is_escaped(byte))) > 0 {
            self.escaped(text);
        } else {
            text.as_bytes().chunks(HASHED).for_each(|piece| self.push(piece));
        }
        self.push(b"\"");
    }

    fn escaped(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.bytes().position(is_escaped) {
            let (plain, from_escape) = rest.split_at(at);
            self.push(plain.as_bytes());
            let mut characters = from_escape.chars();
            let Some(character) = characters.next() else { break };
            rest = characters.as_str();
            match character {
                '"' => self.push(b"\\\""),
                '\\' => self.push(b"\\\\"),
                '\n' => self.push(b"\\n"),
                '\r' => self.push(b"\\r"),
                '\t' => self.push(b"\\t"),
                '\u{c}' => self.push(b"\\f"),
                '\u{8}' => self.push(b"\\b"),
                other => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        self.push(format!("\\u{unit:04x}").as_bytes());
                    }
                }
            }
        }
        self.push(rest.as_bytes());
    }

    fn defect(&mut self, defect: CanonicalizationDefect) {
        // Each defect carries its pointer, which may be long, and a thousand defects are enough.
        if self.defects.len() >= MAX_DEFECTS {
            return;
        }
        self.defects.push(NonCanonicalValue { pointer: pointer::format(&self.place), defect });
    }
}

fn is_volatile(key: &str) -> bool {
    VOLATILE_NAMES.contains(&&*lower_case(key))
}

/// Returns whether the byte begins or continues a character that is not written as it is.
fn is_escaped(byte: u8) -> bool {
    !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\')
}

/// Returns `text` in lower case, without a copy if it is in ASCII and so already, as nearly all names are.
fn lower_case(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.to_lowercase())
    }
}

fn normalized<'t>(text: &'t str, key: Option<&str>) -> Result<Cow<'t, str>, CanonicalizationDefect> {
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let Some(key) = key.map(lower_case) else {
        return Ok(text);
    };
    if PATH_NAMES.contains(&&*key) || PATH_ENDINGS.iter().any(|ending| key.ends_with(ending)) {
        Ok(Cow::Owned(normalized_path(&text)))
    } else if TIMESTAMP_NAMES.contains(&&*key) {
        match timestamp::normalize(&text) {
            Ok(utc) => Ok(Cow::Owned(utc)),
            // Such a text is a timestamp and therefore short.
            Err(timestamp::TimestampOutOfRange) => Err(CanonicalizationDefect::Timestamp(text.into_owned())),
        }
    } else {
        Ok(text)
    }
}

/// Returns `text` with forward slashes, a drive letter as first component, and no redundant components. A trailing
/// slash is kept.
fn normalized_path(text: &str) -> String {
    let mut text = with_drive_as_component(text.replace('\\', "/"));
    while text.contains("//") {
        text = text.replace("//", "/");
    }
    let root = if text.starts_with('/') { "/" } else { "" };
    let mut path = root.to_owned();
    // The prefix that `..` cannot remove: the root, and earlier `..` components that were kept.
    let mut fixed = path.len();
    for component in text.split('/') {
        match component {
            "" | "." => {}
            ".." if path.len() > fixed => {
                let end = path.rfind('/').unwrap_or(0);
                path.truncate(end.max(fixed));
            }
            ".." if !root.is_empty() => {}
            other => {
                if !path.is_empty() && !path.ends_with('/') {
                    path.push('/');
                }
                path.push_str(other);
                if other == ".." {
                    fixed = path.len();
                }
            }
        }
    }
    if path.is_empty() {
        path.push('.');
    }
    if text.ends_with('/') && path != "/" {
        path.push('/');
    }
    path
}

/// Converts `C:/rest` to `/c/rest` if the rest is one line; a line feed at its end is removed.
fn with_drive_as_component(text: String) -> String {
    let Some((drive, rest)) = text.split_once(":/") else {
        return text;
    };
    let rest = rest.strip_suffix('\n').unwrap_or(rest);
    match drive.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() && !rest.contains('\n') => {
            format!("/{}/{rest}", drive.to_ascii_lowercase())
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    fn canonical(text: &str, volatile: VolatilePolicy) -> Result<String, Vec<NonCanonicalValue>> {
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let members: Vec<_> = value.as_object().unwrap().iter().collect();
        let bytes = object(&members, volatile);
        let digest = digest(&members, volatile);
        assert_eq!(digest, bytes.as_ref().map(|bytes| Digest::from_content(bytes)).map_err(Clone::clone));
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn long_texts_are_hashed_in_pieces() {
        let long = ["a", "\\n", "\u{e4}"].map(|text| text.repeat(2 * HASHED));
        let tags = format!(r#"["{}","b",{{"tags":["d","c"]}}]"#, long[0]);
        let text =
            format!(r#"{{"a":"{}","b":["{}",1],"tags":{tags},"c":{{"{}":[]}}}}"#, long[0], long[1], long[2]);
        assert!(canonical(&text, VolatilePolicy::Include).unwrap().contains(r#","b",{"tags":["c","d"]}]"#));
    }

    #[test]
    fn exact_bytes_and_hash() {
        let text = r#"{"\uE000": "a\r\nb\rc\u007f", "\ud83d\ude00": 0.1234567890125, "Cwd": "C:\\x\\..\\y\\",
            "file_dir": ["C:\\x"], "tags": [2, 10, [3, 1], "b"], "latency_ms": 1, "in": {"PID": 2, "captured_at":
            "2026-01-01T01:00:00+01:00"}, "n": [1, 1.0, -0, 36893488147419103232]}"#;
        let kept = canonical(text, VolatilePolicy::Include).unwrap();
        let expected = concat!(
            r#"{"Cwd":"/c/y/","file_dir":["C:\\x"],"in":{"PID":2,"captured_at":"2026-01-01T00:00:00.000000Z"},"#,
            r#""latency_ms":1,"n":[1,1.0,0,36893488147419103232],"tags":["b",10,2,[3,1]],"#,
            r#""\ue000":"a\nb\nc\u007f","\ud83d\ude00":0.123456789012}"#
        );
        assert_eq!(kept, expected);
        assert_eq!(
            Digest::from_content(kept.as_bytes()).to_string(),
            "sha256:54e974222113044e58b71661eb29a69d4061a148a17c203097a41e3dceef0b81"
        );
        let dropped = canonical(text, VolatilePolicy::Omit).unwrap();
        assert!(dropped.contains(r#""in":{},"n""#) && !dropped.contains("latency"), "{dropped}");
    }

    #[test]
    fn timestamps_out_of_range_are_all_placed() {
        let text = r#"{"a": [{"x/y": {"timestamp": "0001-01-01T00:00:00+01:00"}}],
            "ended_at": "9999-12-31T23:00:00-01:00"}"#;
        let defects = canonical(text, VolatilePolicy::Include).unwrap_err();
        let found: Vec<String> = defects.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "/a/0/x~1y/timestamp: the timestamp \"0001-01-01T00:00:00+01:00\" is outside years 1 to 9999 in UTC",
                "/ended_at: the timestamp \"9999-12-31T23:00:00-01:00\" is outside years 1 to 9999 in UTC",
            ]
        );
    }

    #[test]
    fn paths_of_all_systems() {
        for (text, expected) in [
            ("", "."),
            ("./", "./"),
            ("x/../", "./"),
            ("/..", "/"),
            ("../../a/..", "../.."),
            ("C:\\", "/c/"),
            ("C:", "C:"),
            ("C:foo", "C:foo"),
            ("D:/a/b\n", "/d/a/b"),
            ("D:/a\nb", "D:/a\nb"),
            ("\\\\srv\\x", "/srv/x"),
            ("a//b/./c/", "a/b/c/"),
            ("/", "/"),
            ("é:/x", "é:/x"),
        ] {
            assert_eq!(normalized_path(text), expected, "{text:?}");
        }
    }
}
