//! Escaping of text from artifacts and file names, for terminals and pages.

use std::fmt::{self, Display, Formatter};

/// Longer texts are shown without their middle, which could be megabytes.
const SHOWN_CHARACTERS: usize = 1000;

/// Maximum characters of a text that shares a line with others.
const BRIEF_CHARACTERS: usize = 120;

/// Untrusted text. Control characters and those that reorder or hide text are shown as escapes, and the middle of long
/// texts is replaced by a mark with the number of omitted characters.
pub struct EscapedText<'t> {
    text: &'t str,
    most: usize,
}

/// Returns `text` for display, up to 1,000 characters.
#[must_use]
pub fn escaped(text: &str) -> EscapedText<'_> {
    EscapedText { text, most: SHOWN_CHARACTERS }
}

/// Returns `text` for display on a line with other text.
#[must_use]
pub fn brief(text: &str) -> EscapedText<'_> {
    escaped(text).up_to(BRIEF_CHARACTERS)
}

/// Returns all of `text` escaped, where the output is limited in another way.
#[must_use]
pub fn whole(text: &str) -> String {
    escaped(text).up_to(usize::MAX).to_string()
}

impl EscapedText<'_> {
    /// Limits the display to `most` characters, half from the start and half from the end.
    #[must_use]
    pub fn up_to(self, most: usize) -> Self {
        Self { most, ..self }
    }
}

impl Display for EscapedText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let half = self.most / 2;
        let head = self.text.char_indices().nth(half).map_or(self.text.len(), |(at, _)| at);
        let tail = self.text.char_indices().nth_back(half - 1).map_or(0, |(at, _)| at);
        match (self.text.get(..head), self.text.get(head..tail), self.text.get(tail..)) {
            (Some(head), Some(left_out), Some(tail)) if !left_out.is_empty() => {
                escape(head, f)?;
                write!(f, "…[{} characters]…", left_out.chars().count())?;
                escape(tail, f)
            }
            _ => escape(self.text, f),
        }
    }
}

fn escape(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some((at, character)) = rest.char_indices().find(|(_, character)| is_hidden(*character)) {
        let (plain, hidden) = rest.split_at_checked(at).unwrap_or((rest, ""));
        f.write_str(plain)?;
        write_escape(character, f)?;
        rest = hidden.get(character.len_utf8()..).unwrap_or_default();
    }
    f.write_str(rest)
}

/// Writes a character as an escape, such as `\n` or `\u{202e}`.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write_escape(character: char, out: &mut dyn fmt::Write) -> fmt::Result {
    match character {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        other => write!(out, "\\u{{{:x}}}", u32::from(other)),
    }
}

/// Returns whether a character controls a terminal, or makes text look like other text.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    controls(character) || is_invisible(character)
}

/// Returns whether a character controls a terminal: C0, DEL and C1, line and paragraph separators, and directional
/// formatting characters.
fn controls(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character is invisible: Unicode's `Default_Ignorable_Code_Point`, and interlinear annotation
/// characters.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether `bytes` are text that a terminal only displays. Joiners and variation selectors are permitted: emoji
/// and several scripts use them.
#[must_use]
pub fn is_plain(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let part_of_text = |character| matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    // A carriage return can overwrite a line on the terminal, unless it is part of a line ending.
    let lone_return = text.replace("\r\n", "\n").contains('\r');
    !lone_return
        && text.chars().all(|character| {
            matches!(character, '\n' | '\r' | '\t') || part_of_text(character) || !is_hidden(character)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_terminal_remains() {
        let text = "a\u{1b}[31m\u{9b}2J\u{7f}\n\u{202e}b\u{feff}é😀";
        assert_eq!(escaped(text).to_string(), "a\\u{1b}[31m\\u{9b}2J\\u{7f}\\n\\u{202e}b\\u{feff}é😀");
    }

    #[test]
    fn what_is_not_seen_is_told() {
        for hidden in [
            '\0',
            '\u{85}',
            '\u{9f}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{2028}',
            '\u{2029}',
            '\u{202d}',
            '\u{2066}',
            '\u{2069}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{fff9}',
            '\u{e0001}',
            '\u{e007f}',
            '\u{e0100}',
        ] {
            let shown = escaped(&format!("a{hidden}b")).to_string();
            assert_eq!(shown, format!("a\\u{{{:x}}}b", u32::from(hidden)));
        }
        let seen = "aé漢\u{301}😀\u{a0}\u{3000}\u{e000}\\";
        assert_eq!(escaped(seen).to_string(), seen);
    }

    #[test]
    fn long_texts_lose_their_middle_and_say_so() {
        let whole = "é".repeat(SHOWN_CHARACTERS);
        assert_eq!(escaped(&whole).to_string(), whole);
        let longer = format!("{whole}é");
        assert!(escaped(&longer).to_string().contains("é…[1 characters]…é"));
        let long = format!("/a{}/z", "\u{1b}".repeat(1 << 20));
        let shown = escaped(&long).to_string();
        assert!(shown.starts_with("/a\\u{1b}") && shown.ends_with("\\u{1b}/z"));
        assert!(shown.contains(&format!("…[{} characters]…", (1 << 20) + 4 - SHOWN_CHARACTERS)));
        assert!(shown.len() < 7 * SHOWN_CHARACTERS);
        assert_eq!(brief("short").to_string(), "short");
        assert!(brief(&whole).to_string().chars().count() < 150);
        assert_eq!(brief("").to_string(), "");
    }

    #[test]
    fn plain_text_has_nothing_that_controls() {
        for plain in ["", "{\n\t\"a\": \"é😀\"}\r\n", "❤\u{fe0f} 👩\u{200d}💻 می\u{200c}خواهم"]
        {
            assert!(is_plain(plain.as_bytes()), "{plain:?}");
        }
        for other in
            ["a\u{1b}[2J", "a\rb", "\u{9b}", "\u{202e}", "\u{2066}", "\u{200b}", "\u{7}", "\0", "\u{e0041}"]
        {
            assert!(!is_plain(other.as_bytes()), "{other:?}");
        }
        assert!(!is_plain(b"\xff"));
    }
}
