//! Line templates: text with names in double braces.

use std::str::FromStr;

use runvault::display::{brief, whole};

use crate::cli::output::columns::{self, ArtifactColumn, ColumnContext};

/// A template of a line, such as `{{core}}\t{{model_id}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Column(ArtifactColumn),
}

impl FromStr for LineTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else {
                return Err(format!("{{{{ without }}}} at {}", brief(after)));
            };
            pieces.push(TemplatePart::Text(unescaped(before)?));
            pieces.push(TemplatePart::Column(columns::named(name)?));
            rest = after;
        }
        pieces.push(TemplatePart::Text(unescaped(rest)?));
        pieces.retain(|piece| !matches!(piece, TemplatePart::Text(text) if text.is_empty()));
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

impl LineTemplate {
    /// Returns the text for an artifact. Values are always escaped: a pipe often ends at a terminal, and a line feed in
    /// a value would split the line. `--json` contains them unchanged.
    pub(crate) fn fill(&self, subject: &ColumnContext<'_>) -> String {
        let mut line = String::new();
        for piece in &self.0 {
            match piece {
                TemplatePart::Text(text) => line.push_str(text),
                TemplatePart::Column(column) => line.push_str(&whole(&subject.text(*column))),
            }
        }
        line
    }

    /// Returns the columns that it shows.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ArtifactColumn> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Text(_) => None,
            TemplatePart::Column(column) => Some(*column),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> TemplatePart {
        TemplatePart::Text(text.to_owned())
    }

    #[test]
    fn names_and_escapes_are_read() {
        let read = |text: &str| text.parse::<LineTemplate>().map(|template| template.0);
        let both = vec![
            TemplatePart::Column(ArtifactColumn::Core),
            text("\t"),
            TemplatePart::Column(ArtifactColumn::Attribute("tool")),
        ];
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
            prop_assert_eq!(before.parse(), Ok(LineTemplate(if before.is_empty() { vec![] } else { vec![text(&before)] })));
            // Any text must either be parsed or rejected.
            let named: Result<LineTemplate, String> = format!("{before}{{{{core}}}}{after}").parse();
            if let Ok(LineTemplate(pieces)) = named {
                prop_assert!(pieces.contains(&TemplatePart::Column(ArtifactColumn::Core)));
            }
        }
    }
}
