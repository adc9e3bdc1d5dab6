//! Line templates: text with names in double braces.

use std::str::FromStr;

use crate::cli::output::columns::{self, Column, Subject};
use crate::cli::output::escape::{brief, whole};

/// A template of a line, such as `{{core}}\t{{model_id}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Column(Column),
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else {
                return Err(format!("{{{{ without }}}} at {}", brief(after)));
            };
            pieces.push(Piece::Text(unescaped(before)?));
            pieces.push(Piece::Column(columns::named(name)?));
            rest = after;
        }
        pieces.push(Piece::Text(unescaped(rest)?));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Ok(Self(pieces))
    }
}

/// Replaces `\n` by a line feed, `\t` by a tab and `\\` by a backslash in `text`.
fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('\\') => '\\',
                _ => return Err("expected n, t or \\ after \\".to_owned()),
            },
            other => other,
        });
    }
    Ok(plain)
}

impl Template {
    /// Returns the text for an artifact. Values are always escaped: a pipe often ends at a terminal, and a line feed in
    /// a value would split the line. `--json` contains them unchanged.
    pub(crate) fn fill(&self, subject: &Subject<'_>) -> String {
        let mut line = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Column(column) => line.push_str(&whole(&subject.text(*column))),
            }
        }
        line
    }

    /// Returns the columns that it shows.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Column> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Column(column) => Some(*column),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn names_and_escapes_are_read() {
        let read = |text: &str| text.parse::<Template>().map(|template| template.0);
        let both = vec![Piece::Column(Column::Core), text("\t"), Piece::Column(Column::Attribute("tool"))];
        assert_eq!(read(r"{{core}}\t{{ tool }}"), Ok(both));
        assert_eq!(read(r"a\n\\n{b}}"), Ok(vec![text("a\n\\n{b}}")]));
        assert_eq!(read(""), Ok(vec![]));
        assert!(read("{{core").unwrap_err().contains("without }} at core"));
        assert!(read("{{}}").unwrap_err().contains("known names: core, hash"));
        assert!(read(r"\e[1m").is_err());
        assert!(read("\\").is_err());
    }

    proptest! {
        #[test]
        fn what_names_nothing_stands_for_itself(before in "[^\\\\{]{0,20}", after in any::<String>()) {
            prop_assert_eq!(before.parse(), Ok(Template(if before.is_empty() { vec![] } else { vec![text(&before)] })));
            // Any text must either be parsed or rejected.
            let named: Result<Template, String> = format!("{before}{{{{core}}}}{after}").parse();
            if let Ok(Template(pieces)) = named {
                prop_assert!(pieces.contains(&Piece::Column(Column::Core)));
            }
        }
    }
}
