//! The strict JSON reader for all kinds.
//!
//! An archive must not accept a text that two programs could interpret differently. The reader therefore accepts
//! exactly RFC 8259 and rejects what it leaves open: bytes that are not UTF-8, a byte order mark, duplicate keys
//! (compared after unescaping), unpaired surrogate escapes, numbers that overflow, and texts beyond its [`Limits`].
//! Numbers stay literals, because integers of any size are hashed. No JSON crate offers all of this:
//! `serde_json` keeps the last of duplicate keys, has one fixed depth, no limit on the number of values, and gives exact
//! literals only as an object that a document can imitate; the faster readers give doubles. A property test compares this
//! reader with `serde_json` where both should agree.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memchr2;

mod recognition;

use super::tokens::JsonToken;
use super::{Number, Object, Value};

pub use recognition::{MemberNames, has_key, has_lost_beginning};

/// The limits for documents. All limits are listed in `docs/limits.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the document in bytes. Default: 256 MiB; at most [`Limits::MAX_BYTES`].
    pub bytes: u64,
    /// Maximum nesting depth of arrays and objects. Default: 128; at most [`Limits::MAX_DEPTH`].
    pub depth: usize,
    /// Maximum number of values in one JSON text, without keys. Limits the memory that a small text can claim. Default:
    /// 10,000,000.
    pub values: usize,
    /// Maximum number of entries of a directory or archive that is one artifact. Default: 10,000.
    pub entries: usize,
}

impl Limits {
    /// Upper bound of the size limit: a vault cannot store more in one piece.
    pub const MAX_BYTES: u64 = 900 << 20;

    const DEFAULT: Self = Self { bytes: 256 << 20, depth: 128, values: 10_000_000, entries: 10_000 };

    /// Upper bound of the depth limit: readers and writers recurse once per level, and the stack of a thread must
    /// suffice for all of them.
    pub const MAX_DEPTH: usize = 500;

    /// Returns the highest permitted limits: for artifacts that are already in a vault and were within the limits of
    /// their time.
    #[must_use]
    pub const fn most() -> Self {
        Self { bytes: u64::MAX, depth: Self::MAX_DEPTH, values: usize::MAX, entries: usize::MAX }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// One of the [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::bytes`].
    Bytes,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::values`].
    Values,
    /// [`Limits::entries`].
    Entries,
}

/// Maximum number of digits of a number.
pub const MAX_NUMBER_DIGITS: usize = 4_300;

/// A class of defects of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Not UTF-8, or a byte order mark.
    Encoding,
    /// Not well-formed JSON.
    Syntax,
    /// An object has two members with the same name.
    DuplicateKey,
    /// Nested more deeply than [`Limits::depth`].
    TooDeep,
    /// Exceeds [`Limits::bytes`] or [`Limits::values`].
    TooLarge,
    /// A number without a canonical form: `NaN`, infinite, or with too many digits.
    Number,
    /// An unpaired surrogate escape such as `\ud83d`.
    Surrogate,
}

/// The error for a text that cannot be read, with its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} column {column}: {message}")]
pub struct ReadError {
    /// The class of the defect.
    pub defect: Defect,
    /// The line, from 1; lines end with a line feed.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The description of the defect, without the location.
    pub message: String,
    /// The limit that the text exceeds; `None` also if that limit is fixed.
    pub limit: Option<Limit>,
}

impl ReadError {
    pub(crate) fn at(text: &[u8], offset: usize, defect: Defect, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        Self {
            defect,
            line: before.split(|byte| *byte == b'\n').count(),
            column: before
                .rsplit(|byte| *byte == b'\n')
                .next()
                .map_or(1, |line| lossy(line).chars().count() + 1),
            message: message.into(),
            limit: None,
        }
    }
}

/// Reads `bytes` as one JSON text.
///
/// # Errors
/// Returns the first defect, with its line and column.
pub fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Value<'a>, ReadError> {
    JsonReader::new(utf8(bytes, limits)?, limits, false).document()
}

/// Reads `bytes` as one JSON text, or as several of which all but the first are objects, without anything between them.
///
/// # Errors
/// Returns the first defect, with its line and column.
pub(crate) fn read_sequence<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Vec<Value<'a>>, ReadError> {
    JsonReader::new(utf8(bytes, limits)?, limits, false).documents()
}

/// Passes the tokens of `bytes` to `visit`, which must have one JSON text. They take little memory beside it: strings with
/// escapes that have more than 4 MiB are as they are written.
///
/// # Errors
/// Returns the first defect, with its line and column, after the tokens before it were passed on.
pub(crate) fn visit<'a>(
    bytes: &'a [u8],
    limits: &Limits,
    visit: &mut dyn FnMut(JsonToken<'a>),
) -> Result<(), ReadError> {
    let mut reader = JsonReader::new(utf8(bytes, limits)?, limits, false);
    reader.visit = Some(visit);
    reader.document().map(drop)
}

/// Like [`read`], but numbers that overflow to infinity are kept: `model_io` tolerates them outside its core.
///
/// # Errors
/// Returns the first defect, with its line and column.
pub fn read_keeping_overflow<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Value<'a>, ReadError> {
    JsonReader::new(utf8(bytes, limits)?, limits, true).document()
}

/// Checks the size, the encoding and the absence of a byte order mark.
///
/// # Errors
/// Returns [`Defect::TooLarge`] or [`Defect::Encoding`].
pub fn utf8<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a str, ReadError> {
    if bytes.len() as u64 > limits.bytes {
        let limit = limits.bytes;
        let message = format!("the document exceeds the limit of {limit} bytes");
        let error = ReadError::at(bytes, 0, Defect::TooLarge, message);
        return Err(ReadError { limit: Some(Limit::Bytes), ..error });
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(ReadError::at(bytes, 0, Defect::Encoding, "the text is UTF-16; save it as UTF-8"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        let message = match bytes.get(offset) {
            Some(byte) => format!("byte 0x{byte:02x} is not valid UTF-8 here"),
            None => "not valid UTF-8".to_owned(),
        };
        ReadError::at(bytes, offset, Defect::Encoding, message)
    })?;
    if text.starts_with('\u{feff}') {
        return Err(ReadError::at(
            bytes,
            0,
            Defect::Encoding,
            "the text begins with a byte order mark; remove it",
        ));
    }
    Ok(text)
}

/// Converts `bytes` to text, replacing invalid sequences. Checks for valid UTF-8 first, which is five times as fast as
/// the standard library's function of that name if nothing has to be replaced.
#[must_use]
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Objects with more members than this are checked for duplicate names with a set.
const FEW_MEMBERS: usize = 16;

/// Numbers without an exponent and with at most this many characters cannot overflow.
const SURELY_FINITE: usize = 300;

/// Maximum size in bytes of a string without escapes that is copied.
const MAX_COPIED: usize = 64 << 10;

/// The longest string whose escapes are decoded in a token, in bytes.
const MAX_DECODED: usize = 4 << 20;

struct JsonReader<'a, 'l> {
    text: &'a str,
    offset: usize,
    depth: usize,
    values: usize,
    limits: &'l Limits,
    keep_overflow: bool,
    /// Receives the tokens. If there is one, no arrays and objects are made.
    visit: Option<&'l mut dyn FnMut(JsonToken<'a>)>,
    /// The number of members of the last object, up to [`FEW_MEMBERS`]: the next one is often similar.
    usual_members: usize,
    /// The string that is being read, without escapes. Most strings are copied from it: to let each grow takes longer.
    unescaped: String,
}

type JsonReadResult<T> = Result<T, ReadError>;

impl<'a, 'l> JsonReader<'a, 'l> {
    fn new(text: &'a str, limits: &'l Limits, keep_overflow: bool) -> Self {
        let unescaped = String::new();
        let (offset, depth, values, usual_members, visit) = (0, 0, 0, 0, None);
        Self { text, offset, depth, values, limits, keep_overflow, visit, usual_members, unescaped }
    }

    fn document(mut self) -> JsonReadResult<Value<'a>> {
        self.skip_whitespace();
        let value = self.value()?;
        self.end()?;
        Ok(value)
    }

    fn documents(mut self) -> JsonReadResult<Vec<Value<'a>>> {
        self.skip_whitespace();
        let mut values = vec![self.value()?];
        while self.peek() == Some(b'{') {
            values.push(self.value()?);
        }
        self.end()?;
        Ok(values)
    }

    /// Skips white space, after which there must be nothing.
    fn end(&mut self) -> JsonReadResult<()> {
        self.skip_whitespace();
        match self.peek() {
            None => Ok(()),
            Some(_) => {
                Err(self.defect(Defect::Syntax, "unexpected text after the end of the document; remove it"))
            }
        }
    }

    fn value(&mut self) -> JsonReadResult<Value<'a>> {
        self.values += 1;
        if self.values > self.limits.values {
            let limit = self.limits.values;
            let message = format!("the document has more than {limit} values");
            let error = self.defect(Defect::TooLarge, message);
            return Err(ReadError { limit: Some(Limit::Values), ..error });
        }
        let scalar = match self.peek() {
            Some(b'{') => return self.nested(JsonToken::Object, Self::object),
            Some(b'[') => return self.nested(JsonToken::Array, Self::array),
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true", Value::Bool(true))?,
            Some(b'f') => self.literal("false", Value::Bool(false))?,
            Some(b'n') => self.literal("null", Value::Null)?,
            _ => return Err(self.no_value()),
        };
        match &mut self.visit {
            Some(visit) => {
                visit(JsonToken::Scalar(scalar));
                Ok(Value::Null)
            }
            None => Ok(scalar),
        }
    }

    fn pass(&mut self, token: JsonToken<'a>) {
        if let Some(visit) = &mut self.visit {
            visit(token);
        }
    }

    fn nested(
        &mut self,
        start: JsonToken<'a>,
        read: fn(&mut Self) -> JsonReadResult<Value<'a>>,
    ) -> JsonReadResult<Value<'a>> {
        let limit = self.limits.depth.min(Limits::MAX_DEPTH);
        if self.depth >= limit {
            let error = self.defect(Defect::TooDeep, too_deep(limit));
            return Err(ReadError { limit: Some(Limit::Depth), ..error });
        }
        self.depth += 1;
        self.offset += 1;
        self.pass(start);
        let value = read(self)?;
        self.pass(JsonToken::End);
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> JsonReadResult<Value<'a>> {
        let mut elements = Vec::new();
        self.skip_whitespace();
        if self.take(b']') {
            return Ok(Value::Array(elements));
        }
        loop {
            self.skip_whitespace();
            let value = self.value()?;
            if self.visit.is_none() {
                elements.push(value);
            }
            self.skip_whitespace();
            if self.take(b']') {
                return Ok(Value::Array(elements));
            }
            if !self.take(b',') {
                return Err(self.unexpected("\",\" or \"]\""));
            }
        }
    }

    fn object(&mut self) -> JsonReadResult<Value<'a>> {
        self.skip_whitespace();
        if self.take(b'}') {
            return Ok(Value::Object(Object::default()));
        }
        let mut members: Vec<(Cow<'a, str>, Value<'a>)> = Vec::with_capacity(self.usual_members);
        let mut seen: HashSet<Cow<'a, str>> = HashSet::new();
        loop {
            self.skip_whitespace();
            let start = self.offset;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a member name in double quotes"));
            }
            let key = self.string()?;
            if members.len() == FEW_MEMBERS {
                seen.extend(members.iter().map(|(key, _)| key.clone()));
            }
            let known = if members.len() < FEW_MEMBERS {
                members.iter().any(|(other, _)| *other == key)
            } else {
                !seen.insert(key.clone())
            };
            if known {
                self.offset = start;
                return Err(self.defect(
                    Defect::DuplicateKey,
                    format!("the object already has a member named {}", excerpt(&key)),
                ));
            }
            self.colon()?;
            if self.visit.is_some() {
                self.pass(JsonToken::Name(key.clone()));
            }
            let value = self.value()?;
            // Further names are in the set.
            if self.visit.is_none() || members.len() <= FEW_MEMBERS {
                members.push((key, value));
            }
            self.skip_whitespace();
            if self.take(b'}') {
                self.usual_members = members.len().min(FEW_MEMBERS);
                return Ok(Value::Object(Object::from_members(members)));
            }
            if !self.take(b',') {
                return Err(self.unexpected("\",\" or \"}\""));
            }
        }
    }

    fn colon(&mut self) -> JsonReadResult<()> {
        self.skip_whitespace();
        if !self.take(b':') {
            return Err(self.unexpected("\":\""));
        }
        self.skip_whitespace();
        Ok(())
    }

    /// Reads a string; the next byte is its opening quote.
    fn string(&mut self) -> JsonReadResult<Cow<'a, str>> {
        let opening = self.offset;
        self.offset += 1;
        let mut start = self.offset;
        let mut is_long = false;
        self.unescaped.clear();
        loop {
            let Some(rest) = self.rest() else { return Err(self.unexpected("a string")) };
            let end = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            let (plain, _) = rest.split_at(end);
            if has_control(plain) {
                return Err(self.control_character(plain));
            }
            if end == rest.len() {
                self.offset = opening;
                return Err(self.defect(Defect::Syntax, "this string has no closing quote"));
            }
            self.offset += end;
            let piece = self.since(start)?;
            is_long |= self.visit.is_some() && self.unescaped.len() + piece.len() > MAX_DECODED;
            if self.take(b'"') {
                if is_long {
                    let written = self.since(opening + 1)?;
                    return Ok(Cow::Borrowed(written.strip_suffix('"').unwrap_or(written)));
                }
                if self.unescaped.is_empty() {
                    return Ok(Cow::Borrowed(piece));
                }
                if self.unescaped.len() > MAX_COPIED {
                    self.unescaped.push_str(piece);
                    return Ok(Cow::Owned(std::mem::take(&mut self.unescaped)));
                }
                return Ok(Cow::Owned([&self.unescaped, piece].concat()));
            }
            let character = self.escape()?;
            if is_long {
                self.unescaped = String::new();
            } else {
                self.unescaped.push_str(piece);
                self.unescaped.push(character);
            }
            start = self.offset;
        }
    }

    /// Returns the error for the first control character in the remaining text.
    fn control_character(&mut self, plain: &[u8]) -> ReadError {
        let found = plain.iter().enumerate().find(|(_, byte)| **byte < 0x20);
        let (at, name) = match found {
            Some((at, byte)) => (at, format!(" U+{byte:04X}")),
            None => (0, String::new()),
        };
        self.offset += at;
        self.defect(Defect::Syntax, format!("control character{name} must be escaped in a string"))
    }

    /// Reads an escape; the next byte is its backslash.
    fn escape(&mut self) -> JsonReadResult<char> {
        let start = self.offset;
        self.offset += 1;
        let character = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            _ => return Err(self.unexpected("one of \" \\ / b f n r t u after the backslash")),
        };
        self.offset += 1;
        Ok(character)
    }

    fn unicode_escape(&mut self, start: usize) -> JsonReadResult<char> {
        self.offset += 1;
        let unit = self.four_hex_digits()?;
        let code = match unit {
            0xd800..0xdc00 if self.goes_on_with("\\u") => {
                self.offset += 2;
                let low = self.four_hex_digits()?;
                // A low half below 0xDC00 or above 0xDFFF is not a character.
                let offset = low.checked_sub(0xdc00).filter(|offset| *offset < 0x400);
                offset.map(|offset| 0x10000 + ((unit - 0xd800) << 10) + offset)
            }
            _ => Some(unit),
        };
        code.and_then(char::from_u32).ok_or_else(|| {
            self.offset = start;
            self.defect(Defect::Surrogate, format!("\\u{unit:04x} is an unpaired surrogate, not a character"))
        })
    }

    fn four_hex_digits(&mut self) -> JsonReadResult<u32> {
        let digits = self.rest().and_then(<[u8]>::first_chunk::<4>);
        let digit = |unit: u32, digit: &u8| Some(unit << 4 | char::from(*digit).to_digit(16)?);
        let Some(unit) = digits.and_then(|digits| digits.iter().try_fold(0, digit)) else {
            return Err(self.defect(Defect::Syntax, "\\u must be followed by four hex digits"));
        };
        self.offset += 4;
        Ok(unit)
    }

    fn number(&mut self) -> JsonReadResult<Value<'a>> {
        let start = self.offset;
        if self.take(b'-') && !matches!(self.peek(), Some(b'0'..=b'9')) {
            if self.goes_on_with("Infinity") {
                self.offset = start;
                return Err(self.no_value());
            }
            return Err(self.unexpected("a digit"));
        }
        if self.take(b'0') {
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.defect(Defect::Syntax, "a number must not have leading zeros"));
            }
        } else {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        let has_exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if has_exponent {
            self.offset += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.offset += 1;
            }
            self.digits()?;
        }
        let literal = self.since(start)?;
        let number = Number::from_literal(literal);
        if literal.len() <= SURELY_FINITE && !has_exponent {
            return Ok(Value::Number(number));
        }
        let refused = if literal.bytes().filter(u8::is_ascii_digit).count() > MAX_NUMBER_DIGITS {
            Some(format!("the number has more than {MAX_NUMBER_DIGITS} digits, the limit"))
        } else {
            let overflows = !self.keep_overflow && !number.is_integer() && number.as_f64().is_infinite();
            overflows.then(|| format!("{} overflows to infinity", excerpt(literal)))
        };
        if let Some(message) = refused {
            self.offset = start;
            return Err(self.defect(Defect::Number, message));
        }
        Ok(Value::Number(number))
    }

    fn digits(&mut self) -> JsonReadResult<()> {
        let start = self.offset;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.offset += 1;
        }
        if self.offset == start { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    fn literal(&mut self, literal: &str, value: Value<'a>) -> JsonReadResult<Value<'a>> {
        if self.goes_on_with(literal) {
            self.offset += literal.len();
            return Ok(value);
        }
        Err(self.no_value())
    }

    fn no_value(&self) -> ReadError {
        let spelling = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| self.goes_on_with(word));
        match spelling {
            Some(word) => self.defect(Defect::Number, format!("{word} is not a JSON number")),
            None => self.unexpected("a value"),
        }
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.offset += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.offset += usize::from(found);
        found
    }

    /// Returns the remaining text, or `None` if the offset is beyond the end.
    fn rest(&self) -> Option<&'a [u8]> {
        self.text.as_bytes().get(self.offset..)
    }

    fn goes_on_with(&self, word: &str) -> bool {
        self.rest().is_some_and(|rest| rest.starts_with(word.as_bytes()))
    }

    /// Returns the text from offset `start` to the current offset. Strings and numbers are hashed as returned here: a
    /// wrong offset must be an error, never a substitute value.
    fn since(&self, start: usize) -> JsonReadResult<&'a str> {
        let read = self.text.get(start..self.offset);
        read.ok_or_else(|| self.defect(Defect::Syntax, "a token ends within a character"))
    }

    fn unexpected(&self, expected: &str) -> ReadError {
        let found = match self.text.get(self.offset..).and_then(|rest| rest.chars().next()) {
            Some(character) => format!("{character:?}"),
            None => "the end of the text".to_owned(),
        };
        self.defect(Defect::Syntax, format!("expected {expected}, found {found}"))
    }

    fn defect(&self, defect: Defect, message: impl Into<String>) -> ReadError {
        ReadError::at(self.text.as_bytes(), self.offset, defect, message)
    }
}

/// Returns whether there is a control character in `bytes`. A loop without early exit is vectorized.
fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().copied().fold(u8::MAX, u8::min) < 0x20
}

/// Returns the message for a text with more than `limit` nesting levels.
pub(crate) fn too_deep(limit: usize) -> String {
    format!("nested deeper than {limit} levels")
}

/// Returns `text` quoted for a message, shortened if it is long.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text.chars().take(LONGEST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &[u8]) -> String {
        let error = read(text, &Limits::default()).unwrap_err();
        format!("{:?}: {error}", error.defect)
    }

    fn tokens(text: &str) -> Result<Vec<JsonToken<'_>>, ReadError> {
        let mut tokens = Vec::new();
        visit(text.as_bytes(), &Limits::default(), &mut |token| tokens.push(token)).map(|()| tokens)
    }

    #[test]
    fn tokens_are_passed_in_the_order_of_the_text() {
        let number = |literal| JsonToken::Scalar(Value::Number(Number::from_literal(literal)));
        let expected = [
            JsonToken::Object,
            JsonToken::Name("a\n".into()),
            JsonToken::Array,
            number("1e3"),
            JsonToken::Array,
            JsonToken::End,
            JsonToken::Scalar(Value::Null),
            JsonToken::End,
            JsonToken::End,
        ];
        assert_eq!(tokens("{\"a\\n\": [1e3, [], null]}").unwrap(), expected);
        for text in ["[1,]", "{\"a\":1,\"a\":2}", "1 2", ""] {
            assert_eq!(tokens(text).unwrap_err(), read(text.as_bytes(), &Limits::default()).unwrap_err());
        }
    }

    #[test]
    fn long_strings_are_no_decoded_tokens() {
        let [short, long] = [MAX_DECODED - 1, MAX_DECODED].map(|length| "a".repeat(length));
        let string = |text: &str| JsonToken::Scalar(Value::String(text.to_owned().into()));
        assert_eq!(tokens(&format!("\"{short}\\n\"")).unwrap(), [string(&(short.clone() + "\n"))]);
        for written in
            [format!("{long}\\n"), format!("\\n{long}"), format!("{short}\\n{short}\\\"\\u00e4"), long]
        {
            let expected = [JsonToken::Array, string(&written), string("\n"), JsonToken::End];
            assert_eq!(tokens(&format!("[\"{written}\",\"\\n\"]")).unwrap(), expected);
        }
        assert!(tokens(&format!("\"{short}\\n{short}\\x\"")).is_err());
    }

    #[test]
    fn defects_are_named_with_their_place() {
        let cases: [(&[u8], &str); 22] = [
            (b"", "Syntax: line 1 column 1: expected a value, found the end of the text"),
            (
                b"{\n  \"a\": 1,\n  \"\\u0061\": 2}",
                "DuplicateKey: line 3 column 3: the object already has a member named \"a\"",
            ),
            (b"[1,]", "Syntax: line 1 column 4: expected a value, found ']'"),
            (b"{\"a\" 1}", "Syntax: line 1 column 6: expected \":\", found '1'"),
            (b"{,}", "Syntax: line 1 column 2: expected a member name in double quotes, found ','"),
            (b"[1] x", "Syntax: line 1 column 5: unexpected text after the end of the document; remove it"),
            (b"\"abc", "Syntax: line 1 column 1: this string has no closing quote"),
            (
                "\"é\n\"".as_bytes(),
                "Syntax: line 1 column 3: control character U+000A must be escaped in a string",
            ),
            (
                b"\"\\x\"",
                "Syntax: line 1 column 3: expected one of \" \\ / b f n r t u after the backslash, found 'x'",
            ),
            (b"\"\\u12g4\"", "Syntax: line 1 column 4: \\u must be followed by four hex digits"),
            (b"\"\\ud83d\"", "Surrogate: line 1 column 2: \\ud83d is an unpaired surrogate, not a character"),
            (
                b"\"\\ud83d\\u0041\"",
                "Surrogate: line 1 column 2: \\ud83d is an unpaired surrogate, not a character",
            ),
            (b"\"\\ude00\"", "Surrogate: line 1 column 2: \\ude00 is an unpaired surrogate, not a character"),
            (b"[NaN]", "Number: line 1 column 2: NaN is not a JSON number"),
            (b"[-Infinity]", "Number: line 1 column 2: -Infinity is not a JSON number"),
            (b"1e400", "Number: line 1 column 1: \"1e400\" overflows to infinity"),
            (b"01", "Syntax: line 1 column 2: a number must not have leading zeros"),
            (b"1.", "Syntax: line 1 column 3: expected a digit, found the end of the text"),
            (b"-", "Syntax: line 1 column 2: expected a digit, found the end of the text"),
            (b"truth", "Syntax: line 1 column 1: expected a value, found 't'"),
            (b"[\"\xff\"]", "Encoding: line 1 column 3: byte 0xff is not valid UTF-8 here"),
            (
                b"\xef\xbb\xbf{}",
                "Encoding: line 1 column 1: the text begins with a byte order mark; remove it",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(refused(text), expected);
        }
    }

    #[test]
    fn limits_hold_on_both_sides() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read(nested(128).as_bytes(), &Limits::default()).is_ok());
        assert!(refused(nested(129).as_bytes()).starts_with("TooDeep: line 1 column 129:"));
        let digits = |count: usize| "1".repeat(count);
        assert!(read(digits(4_300).as_bytes(), &Limits::default()).is_ok());
        assert!(refused(digits(4_301).as_bytes()).starts_with("Number"));
        let limits = Limits { bytes: 7, values: 3, ..Limits::default() };
        assert!(read(b"[1,2]  ", &limits).is_ok());
        assert_eq!(read(b"[1,2]   ", &limits).unwrap_err().defect, Defect::TooLarge);
        assert_eq!(read(b"[1,2,3]", &limits).unwrap_err().defect, Defect::TooLarge);
    }

    #[test]
    fn duplicates_are_found_in_large_objects_too() {
        let members: Vec<String> = (0..40).map(|index| format!("\"k{index}\":0")).collect();
        assert!(read(format!("{{{}}}", members.join(",")).as_bytes(), &Limits::default()).is_ok());
        for repeated in [0, 15, 16, 17, 39] {
            let text = format!("{{{},\"k{repeated}\":0}}", members.join(","));
            assert!(refused(text.as_bytes()).starts_with("DuplicateKey"), "{repeated}");
        }
    }

    #[test]
    fn an_object_is_never_taken_for_a_number() {
        let text = br#"{"$serde_json::private::Number":"1"}"#;
        assert!(read(text, &Limits::default()).unwrap().as_object().is_some());
    }

    /// Converts the value to that of `serde_json`.
    fn as_serde(value: &Value<'_>) -> serde_json::Value {
        match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(truth) => (*truth).into(),
            Value::Number(number) => number.as_f64().into(),
            Value::String(text) => text.as_ref().into(),
            Value::Array(elements) => elements.iter().map(as_serde).collect(),
            Value::Object(object) => object.iter().map(|(key, value)| (key, as_serde(value))).collect(),
        }
    }

    fn with_doubles(value: serde_json::Value) -> serde_json::Value {
        match value {
            serde_json::Value::Number(number) => number.as_f64().into(),
            serde_json::Value::Array(elements) => elements.into_iter().map(with_doubles).collect(),
            serde_json::Value::Object(object) => {
                object.into_iter().map(|(key, value)| (key, with_doubles(value))).collect()
            }
            other => other,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// On texts composed of JSON tokens the two readers agree, except where this one is intentionally stricter.
        #[test]
        fn agrees_with_serde_json(pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "\"\\n\\u00e9\"", "\"\\ud83d\\ude00\"", "\"\\ud83d\"", "\"", "\\",
            "0", "-", "1", "12.5", "e3", "E-2", ".", "true", "false", "null", "nul", " ", "\n", "\t", "é", "\u{1}", "NaN",
        ]), 0..12)) {
            let text = pieces.concat();
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match read(text.as_bytes(), &Limits::default()) {
                Ok(value) => prop_assert_eq!(as_serde(&value), with_doubles(theirs.unwrap())),
                Err(error) if error.defect == Defect::DuplicateKey => prop_assert!(theirs.is_ok()),
                Err(_) => prop_assert!(theirs.is_err(), "{text}"),
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = read(&bytes, &Limits::default());
            let _ = MemberNames::new(&String::from_utf8_lossy(&bytes)).has("none");
        }
    }
}
