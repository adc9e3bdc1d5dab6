//! The indentation of quoted scalars of several lines. `PyYAML` accepts lines that are indented less than YAML 1.2 requires.

use std::borrow::Cow;

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
