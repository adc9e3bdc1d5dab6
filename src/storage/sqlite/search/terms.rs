//! Search terms and their FTS5 expression.

use crate::storage::interface::{Term, Terms};

impl Terms {
    /// Returns the FTS5 expression. Only the words of a text have a meaning in it, so every text is valid.
    pub(super) fn expression(&self) -> String {
        let alternatives = self.alternatives.iter().filter(|terms| !terms.is_empty());
        let alternatives: Vec<String> = alternatives
            .map(|terms| format!("({})", terms.iter().map(Term::expression).collect::<Vec<_>>().join(" ")))
            .collect();
        let any = alternatives.join(" OR ");
        match self.fields.as_slice() {
            [] => any,
            fields => {
                let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
                format!("{{{}}} : ({any})", names.join(" "))
            }
        }
    }
}

impl Term {
    fn expression(&self) -> String {
        // A NUL character would end the query.
        let text = self.text.replace('\0', " ").replace('"', "\"\"");
        format!("\"{text}\"{}", if self.is_prefix { "*" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Field;

    fn term(text: &str, is_prefix: bool) -> Term {
        Term { text: text.to_owned(), is_prefix }
    }

    #[test]
    fn whatever_is_asked_is_quoted() {
        let alternatives =
            vec![vec![term("a\" OR b", false), term("c", true)], Vec::new(), vec![term("NEAR(\0", false)]];
        let terms = Terms { alternatives: alternatives.clone(), fields: Vec::new() };
        assert_eq!(terms.expression(), "(\"a\"\" OR b\" \"c\"*) OR (\"NEAR( \")");
        let terms = Terms { alternatives, fields: vec![Field::TOOL, Field::STEP] };
        assert_eq!(terms.expression(), "{tool step} : ((\"a\"\" OR b\" \"c\"*) OR (\"NEAR( \"))");
    }
}
