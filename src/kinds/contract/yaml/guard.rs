//! What has to be checked beside `saphyr_parser`, because it is more lenient than YAML 1.2 or trusts its input.

use std::borrow::Cow;

use saphyr_parser::ScalarStyle;

use crate::canonical::reader::{Defect, ReadError, excerpt};

/// The most words and indicators in a YAML text. The parser keeps everything from a `[` or `{` up to its end in memory
/// before it reports the first of it, and takes nearly half a kilobyte for each.
const MAX_PIECES: usize = 1_000_000;

/// A text that the parser can be trusted with.
pub(super) struct Guarded<'t> {
    text: &'t str,
    /// The number of characters, if the last line has content and no line break.
    open_end: Option<usize>,
}

impl<'t> Guarded<'t> {
    /// # Errors
    /// A control character, a version other than 1.2, or too many pieces.
    pub(super) fn new(text: &'t str) -> Result<Self, ReadError> {
        let control = |byte: &u8| matches!(byte, 0..0x20) && !matches!(byte, b'\t' | b'\n' | b'\r');
        if let Some((offset, byte)) = text.bytes().enumerate().find(|(_, byte)| control(byte)) {
            let message =
                format!("control character U+{byte:04X} is not allowed in YAML; escape it in double quotes");
            return Err(ReadError::at(text.as_bytes(), offset, Defect::Syntax, message));
        }
        if pieces(text) > MAX_PIECES {
            let message =
                format!("more than {MAX_PIECES} words and indicators, the limit in YAML; JSON may have more");
            return Err(ReadError::at(text.as_bytes(), 0, Defect::TooLarge, message));
        }
        check_version(text)?;
        // Blanks after the last line break are no line, but the parser counts them as one in block scalars.
        let last_line = text.rfind(['\n', '\r']).map_or(0, |position| position + 1);
        let blank = |text: &str| text.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
        Ok(match text.split_at_checked(last_line) {
            Some((lines, rest)) if blank(rest) => Self { text: lines, open_end: None },
            _ => Self { text, open_end: Some(text.chars().count()) },
        })
    }

    /// What the parser gets to see.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// The content of a scalar that ends before character `end`. A block scalar has no final line feed if the text
    /// ends without one (section 8.1.1.2), but the parser adds it.
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

/// An upper bound, but for a small factor, of how many tokens the parser will find.
fn pieces(text: &str) -> usize {
    let mut after_blank = true;
    let mut pieces = 0;
    for byte in text.bytes() {
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let indicator = matches!(byte, b'[' | b']' | b'{' | b'}' | b',' | b':');
        pieces += usize::from(indicator || after_blank && !blank);
        after_blank = blank;
    }
    pieces
}

/// YAML 1.1 reads many scalars differently: what says that it is something else than 1.2 is taken at its word.
fn check_version(text: &str) -> Result<(), ReadError> {
    let mut offset = 0;
    for line in text.split_inclusive(['\n', '\r']) {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first == "%YAML" {
            let version = words.next().unwrap_or_default();
            if version != "1.2" {
                let message = format!("contracts are YAML 1.2, this says that it is {}", excerpt(version));
                return Err(ReadError::at(text.as_bytes(), offset, Defect::Syntax, message));
            }
        } else if !first.is_empty() && !first.starts_with(['#', '%']) {
            break;
        }
        offset += line.len();
    }
    Ok(())
}

/// Refuses scalars that YAML 1.2 does not have, although the parser reads them.
///
/// # Errors
/// What is wrong.
pub(super) fn scalar(content: &str, style: ScalarStyle) -> Result<(), String> {
    let quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    if quoted {
        return Ok(());
    }
    if let Some(character) = content.chars().find(|character| is_unprintable(*character)) {
        let code = u32::from(character);
        return Err(format!("character U+{code:04X} is allowed in quotes only"));
    }
    // In flow collections the parser takes these for text.
    if style == ScalarStyle::Plain && (content.starts_with(['|', '>']) || content == "?") {
        return Err(format!("{content:?} must be quoted here, it begins with an indicator"));
    }
    Ok(())
}

/// Characters beyond ASCII's controls that are not printable in YAML (section 5.1).
fn is_unprintable(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}
