//! Texts of several lines.

use crate::cli::output::escape::whole;
use crate::cli::output::fit;

/// The number of columns that replace a tab.
const TAB: &str = "    ";

/// Returns the lines of an untrusted text, escaped and wrapped at `room` columns: at most `most` of them, and whether
/// there are more.
pub(crate) fn folded(text: &str, room: usize, most: usize) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let escaped = whole(&line.replace('\t', TAB));
        for line in fit::fold(&escaped, room) {
            if lines.len() == most {
                return (lines, true);
            }
            lines.push(line.into_owned());
        }
    }
    (lines, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_and_control_nothing() {
        let (lines, is_cut) = folded("one two\n\tthree\u{1b}[2J\r\n\u{202e}four\n", 8, 9);
        let expected = ["one two", "", "three\\u{", "1b}[2J\\r", "\\u{202e}", "four", ""];
        assert_eq!((lines, is_cut), (expected.map(str::to_owned).to_vec(), false));
        assert_eq!(folded("a\nb\nc", 8, 2), (vec!["a".to_owned(), "b".to_owned()], true));
        assert_eq!(folded("\tab", 8, 2), (vec!["    ab".to_owned()], false));
        assert!(!folded("a\nb", usize::MAX, 2).1);
    }
}
