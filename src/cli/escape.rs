//! Text from artifacts and file names, made harmless for terminals.

use std::fmt::{self, Display, Formatter};

/// Text that somebody else wrote. Control characters and those that reorder or hide text are shown as escapes.
pub(crate) struct Escaped<'t>(pub(crate) &'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, character)) = rest.char_indices().find(|(_, character)| is_hidden(*character)) {
            let (plain, hidden) = rest.split_at_checked(at).unwrap_or((rest, ""));
            f.write_str(plain)?;
            match character {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                other => write!(f, "\\u{{{:x}}}", u32::from(other))?,
            }
            rest = hidden.get(character.len_utf8()..).unwrap_or_default();
        }
        f.write_str(rest)
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
