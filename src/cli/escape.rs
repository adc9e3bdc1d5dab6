//! Text from artifacts and file names, made harmless for terminals.

use std::fmt::{self, Display, Formatter, Write};

/// Text that somebody else wrote. Control characters and those that reorder or hide text are shown as escapes.
pub(crate) struct Escaped<'t>(pub(crate) &'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                hidden if is_hidden(hidden) => write!(f, "\\u{{{:x}}}", u32::from(hidden))?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Whether a character controls a terminal, or makes text look like other text.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_terminal_remains() {
        let text = "a\u{1b}[31m\u{9b}2J\u{7f}\n\u{202e}b\u{feff}é😀";
        assert_eq!(Escaped(text).to_string(), "a\\u{1b}[31m\\u{9b}2J\\u{7f}\\n\\u{202e}b\\u{feff}é😀");
    }
}
