//! Checks in addition to `saphyr_parser`, which is more lenient than YAML 1.2 or trusts its input.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::str::Chars;

use saphyr_parser::{ScalarStyle, Span};

use crate::json::reader::{Defect, ReadError, excerpt};

/// Maximum number of words and indicators that the parser may read ahead, and of those in a document. It buffers everything
/// from a `[` or `{` to its end before it reports the first event, and uses nearly half a kilobyte for each.
const MAX_PIECES: usize = 1_000_000;

/// A text that is safe to parse.
pub(super) struct GuardedText<'t> {
    text: &'t str,
    /// The number of characters, if the last line has content and no line break.
    open_end: Option<usize>,
    /// The lines, if there are tabs.
    lines: Option<Vec<&'t str>>,
    /// Whether it has more pieces than the parser may read ahead.
    has_many_pieces: bool,
}

impl<'t> GuardedText<'t> {
    /// # Errors
    /// Returns an error for a control character, and if it is strict, for too many pieces or a version other than 1.2.
    pub(super) fn new(text: &'t str, is_strict: bool) -> Result<Self, ReadError> {
        let control = |byte: &u8| matches!(byte, 0..0x20) && !matches!(byte, b'\t' | b'\n' | b'\r');
        if let Some((offset, byte)) = text.bytes().enumerate().find(|(_, byte)| control(byte)) {
            let message =
                format!("control character U+{byte:04X} is not allowed in YAML; escape it in double quotes");
            return Err(ReadError::at(text.as_bytes(), offset, Defect::Syntax, message));
        }
        let has_many_pieces = pieces(text) > MAX_PIECES;
        if is_strict && has_many_pieces {
            return Err(too_many_pieces(text, ""));
        }
        if is_strict {
            check_version(text)?;
        }
        // Blanks after the last line break are not a line, but the parser counts them as one in block scalars.
        let last_line = text.rfind(['\n', '\r']).map_or(0, |position| position + 1);
        let blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
        let lines = text.contains('\t').then(|| lines(text));
        Ok(match text.split_at_checked(last_line) {
            Some((before, rest)) if blank(rest) => {
                Self { text: before, open_end: None, lines, has_many_pieces }
            }
            _ => Self { text, open_end: Some(text.chars().count()), lines, has_many_pieces },
        })
    }

    /// Returns the text for the parser.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the characters for the parser, which end where it has read ahead too far; `None` if it cannot.
    pub(super) fn limited(&self) -> Option<LimitedChars<'t>> {
        self.has_many_pieces.then(|| LimitedChars {
            chars: self.text.chars(),
            counter: PieceCounter { after_blank: true },
            read: Rc::default(),
        })
    }

    /// Checks the indentation of a collection, which the parser also accepts with tabs, and returns whether it is one with
    /// brackets. All collections inside of one with brackets are.
    pub(super) fn is_flow(&self, span: Span, is_in_flow: bool) -> Result<bool, &'static str> {
        let Some(lines) = self.lines.as_ref().filter(|_| !is_in_flow) else { return Ok(is_in_flow) };
        let line = |number: usize| number.checked_sub(1).and_then(|index| lines.get(index)).copied();
        let before_end = span.end.col().checked_sub(1);
        let last = line(span.end.line()).zip(before_end).and_then(|(line, index)| line.chars().nth(index));
        if !span.is_empty() && matches!(last, Some('[' | '{')) {
            return Ok(true);
        }
        // Tags and anchors can stand before it, on other lines.
        let before = || line(span.end.line()).unwrap_or_default().chars().take(span.end.col());
        let is_indentation = before().all(|character| matches!(character, ' ' | '\t' | '-' | '?' | ':'));
        if is_indentation && before().any(|character| character == '\t') {
            return Err("the indentation has a tab; YAML allows only spaces there");
        }
        Ok(false)
    }

    /// Returns the content of a scalar that ends before character `end`. A block scalar has no final line feed if the
    /// text ends without one (section 8.1.1.2), but the parser adds it.
    pub(super) fn scalar<'s>(&self, content: Cow<'s, str>, style: ScalarStyle, end: usize) -> Cow<'s, str> {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if !is_block || self.open_end != Some(end) {
            return content;
        }
        let mut content = content.into_owned();
        if content.ends_with('\n') {
            content.pop();
        }
        Cow::Owned(content)
    }
}

/// Returns the lines, as the parser counts them.
fn lines(text: &str) -> Vec<&str> {
    let lines = text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line));
    let lines = lines.map(|line| line.strip_suffix('\r').unwrap_or(line));
    lines.flat_map(|line| line.split('\r')).collect()
}

/// The characters of a text that a parser reads.
pub(super) struct LimitedChars<'t> {
    chars: Chars<'t>,
    counter: PieceCounter,
    read: Rc<ParserProgress>,
}

impl LimitedChars<'_> {
    /// Returns how far they were read.
    pub(super) fn read(&self) -> Rc<ParserProgress> {
        Rc::clone(&self.read)
    }
}

impl Iterator for LimitedChars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if self.read.pieces.get() > MAX_PIECES {
            return None;
        }
        let character = self.chars.next()?;
        self.read.characters.set(self.read.characters.get() + 1);
        self.read.pieces.set(self.read.pieces.get() + usize::from(self.counter.begins_piece(character)));
        Some(character)
    }
}

/// How far a parser has read.
#[derive(Default)]
pub(super) struct ParserProgress {
    characters: Cell<usize>,
    /// The number of pieces since the end of the last event that it had not read ahead of.
    pieces: Cell<usize>,
}

impl ParserProgress {
    /// The number of characters by which a parser reads ahead although it buffers no token.
    const LOOKAHEAD: usize = 64;

    /// # Errors
    /// Returns an error if the parser has read ahead too far.
    pub(super) fn check(&self, text: &str) -> Result<(), ReadError> {
        if self.pieces.get() > MAX_PIECES {
            return Err(too_many_pieces(text, " in one value"));
        }
        Ok(())
    }

    /// Notes the event that ends before character `end`.
    pub(super) fn reach(&self, end: usize) {
        if self.characters.get() <= end + Self::LOOKAHEAD {
            self.pieces.set(0);
        }
    }
}

fn too_many_pieces(text: &str, place: &str) -> ReadError {
    let message =
        format!("more than {MAX_PIECES} words and indicators{place}, the limit for YAML (JSON allows more)");
    ReadError::at(text.as_bytes(), 0, Defect::TooLarge, message)
}

/// Counts words and indicators: an upper bound, up to a small factor, of the number of tokens.
struct PieceCounter {
    after_blank: bool,
}

impl PieceCounter {
    fn begins_piece(&mut self, character: char) -> bool {
        let is_blank = matches!(character, ' ' | '\t' | '\n' | '\r');
        let is_indicator = matches!(character, '[' | ']' | '{' | '}' | ',' | ':');
        let after_blank = std::mem::replace(&mut self.after_blank, is_blank);
        is_indicator || after_blank && !is_blank
    }
}

fn pieces(text: &str) -> usize {
    let mut counter = PieceCounter { after_blank: true };
    // Bytes of characters beyond ASCII are neither blanks nor indicators.
    text.bytes().filter(|byte| counter.begins_piece(char::from(*byte))).count()
}

/// Rejects versions other than 1.2: YAML 1.1 interprets many scalars differently.
fn check_version(text: &str) -> Result<(), ReadError> {
    let mut offset = 0;
    for line in text.split_inclusive(['\n', '\r']) {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first == "%YAML" {
            let version = words.next().unwrap_or_default();
            if version != "1.2" {
                let message = format!("contracts must be YAML 1.2, but this declares {}", excerpt(version));
                return Err(ReadError::at(text.as_bytes(), offset, Defect::Syntax, message));
            }
        } else if !first.is_empty() && !first.starts_with(['#', '%']) {
            break;
        }
        offset += line.len();
    }
    Ok(())
}

/// Rejects scalars that YAML 1.2 does not allow but the parser accepts.
///
/// # Errors
/// Returns the defect as a message.
pub(super) fn scalar(content: &str, style: ScalarStyle) -> Result<(), String> {
    let quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    if quoted {
        return Ok(());
    }
    if let Some(character) = content.chars().find(|character| is_unprintable(*character)) {
        let code = u32::from(character);
        return Err(format!("character U+{code:04X} is allowed in quotes only"));
    }
    // In flow collections the parser treats these as text.
    if style == ScalarStyle::Plain && (content.starts_with(['|', '>']) || content == "?") {
        return Err(format!("{content:?} must be quoted here, it begins with an indicator"));
    }
    Ok(())
}

/// Returns whether the character is a control character outside ASCII or otherwise not printable in YAML (section 5.1).
fn is_unprintable(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// Where the beginning of a line is.
enum LineStart {
    /// Between nodes.
    Node,
    /// In a scalar in these quotes, which began in a line with this indentation.
    Quoted(char, usize),
    /// In a block scalar, whose lines are indented more than this.
    Block(usize),
}

/// Returns a text in which the lines that continue a quoted scalar are indented more than the line in which it begins. White
/// space at the beginning of these lines is not part of the scalar.
pub(super) fn indented(text: &str) -> Cow<'_, str> {
    let mut written = String::new();
    let mut start = LineStart::Node;
    for line in text.split_inclusive('\n') {
        let content = line.trim_start_matches(' ');
        let indentation = line.len() - content.len();
        let is_blank = content.trim_end().is_empty();
        if let LineStart::Block(outer) = start
            && !is_blank
            && indentation <= outer
        {
            start = LineStart::Node;
        }
        match start {
            LineStart::Quoted(quote, outer) => {
                if !is_blank && indentation <= outer {
                    written.extend(std::iter::repeat_n(' ', outer + 1 - indentation));
                }
                if let Some(end) = end_of_quoted(content, quote) {
                    start = after(content.get(end..).unwrap_or_default(), outer);
                }
            }
            LineStart::Block(_) => {}
            LineStart::Node => start = after(content, indentation),
        }
        written.push_str(line);
    }
    if written == text { Cow::Borrowed(text) } else { Cow::Owned(written) }
}

/// Returns where the line after `rest` begins, which is the rest of a line that does not begin in a scalar.
fn after(rest: &str, indentation: usize) -> LineStart {
    let mut rest = rest.trim_end();
    let (length, mut column) = (rest.len(), indentation);
    loop {
        rest = rest.trim_start_matches([' ', ':']);
        if let Some(nested) = rest.strip_prefix("- ").or_else(|| rest.strip_prefix("? ")) {
            // A mapping after it is indented as far as its first key.
            column = indentation + length - nested.trim_start().len();
            rest = nested;
        } else if rest.starts_with(['!', '&']) {
            rest = rest.split_once(' ').map_or("", |(_, after)| after);
        } else if let Some(quote @ ('\'' | '"')) = rest.chars().next() {
            match rest.get(1..).and_then(|quoted| end_of_quoted(quoted, quote)) {
                Some(end) => rest = rest.get(end + 1..).unwrap_or_default(),
                None => return LineStart::Quoted(quote, column),
            }
        } else if rest.starts_with(['|', '>']) {
            return LineStart::Block(indentation);
        } else if let Some((_, value)) = rest.split_once(": ").filter(|_| !rest.starts_with('#')) {
            rest = value;
        } else {
            return LineStart::Node;
        }
    }
}

/// Returns the position after the quote that ends a scalar, of which `text` is the rest.
fn end_of_quoted(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if quote == '"' => drop(characters.next()),
            // Two are one of the text.
            '\'' if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
            }
            character if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_continue_quoted_scalars_are_indented() {
        for (text, expected) in [
            ("a:\n  b: 'x\n  y'\n  c: 1\n", "a:\n  b: 'x\n   y'\n  c: 1\n"),
            ("- \"x\\\"\ny\"\n- z\n", "- \"x\\\"\n   y\"\n- z\n"),
            ("- a: 'x\n  y'\n", "- a: 'x\n   y'\n"),
            ("a: 'it''s\n\nb: c'\n", "a: 'it''s\n\n b: c'\n"),
            ("'a b': !!binary 'x\ny'\n", "'a b': !!binary 'x\n y'\n"),
        ] {
            assert_eq!(indented(text), expected);
        }
        for text in [
            "a: 'x\n  y'\n",
            "a: |\n  b: 'x\n  c: y\nd: e\n",
            "a: it's\nb: 'c'\n# 'x\nd: e\n",
            "a: {b: 'c', d: \"e\"}\nf: 'g'\n",
            "",
        ] {
            assert_eq!(indented(text), text);
        }
    }
}
