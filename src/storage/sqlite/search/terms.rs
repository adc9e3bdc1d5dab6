//! The FTS5 expression of a query.

use crate::storage::full_text::{FullTextQuery, Phrase};

/// Returns the FTS5 expression of a query that is not empty. The forms of words consist of letters and digits, so that
/// nothing in them has a meaning in it.
pub(super) fn expression(query: &FullTextQuery) -> String {
    let alternative = |phrases: &Vec<Phrase>| {
        let phrases: Vec<String> = phrases.iter().map(phrase).collect();
        format!("({})", phrases.join(" "))
    };
    let alternatives: Vec<String> = query.alternatives.iter().map(alternative).collect();
    let any = alternatives.join(" OR ");
    match query.fields() {
        [] => any,
        fields => {
            let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
            format!("{{{}}} : ({any})", names.join(" "))
        }
    }
}

fn phrase(phrase: &Phrase) -> String {
    format!("\"{}\"{}", phrase.words.join(" "), if phrase.is_prefix { "*" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::{Connection, OpenFlags};

    use super::*;
    use crate::artifact::Field;
    use crate::storage::full_text::{separated, words};
    use crate::storage::interface::{Term, Terms};

    fn term(text: &str, is_prefix: bool) -> Term {
        Term { text: text.to_owned(), is_prefix }
    }

    fn expression_of(alternatives: Vec<Vec<Term>>, fields: Vec<Field>) -> String {
        expression(&FullTextQuery::new(&Terms { alternatives, fields }))
    }

    #[test]
    fn only_the_words_of_a_query_are_in_its_expression() {
        let alternatives = vec![
            vec![term("a\" OR b", false), term("五十c", true)],
            Vec::new(),
            vec![term("NEAR(\0", false)],
        ];
        assert_eq!(
            expression_of(alternatives.clone(), Vec::new()),
            "(\"a or b\" \"五 十 c\"*) OR (\"near\")"
        );
        assert_eq!(
            expression_of(alternatives, vec![Field::TOOL, Field::STEP]),
            "{tool step} : ((\"a or b\" \"五 十 c\"*) OR (\"near\"))"
        );
    }

    /// Returns the words of texts as a tokenizer of SQLite finds them.
    fn words_in_sqlite(tokenizer: &str, texts: &[String]) -> Vec<Vec<String>> {
        let connection =
            Connection::open_with_flags("", OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX).unwrap();
        let schema = format!(
            "CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = '{tokenizer}');
             CREATE VIRTUAL TABLE v USING fts5vocab (t, instance); BEGIN"
        );
        connection.execute_batch(&schema).unwrap();
        let mut insert = connection.prepare("INSERT INTO t (rowid, x) VALUES (?1, ?2)").unwrap();
        for (row, text) in texts.iter().enumerate() {
            insert.execute((i64::try_from(row).unwrap(), text)).unwrap();
        }
        let mut found = vec![Vec::new(); texts.len()];
        let mut select = connection.prepare("SELECT doc, offset, term FROM v ORDER BY doc, offset").unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            found[row.get::<_, usize>(0).unwrap()].push(row.get(2).unwrap());
        }
        found
    }

    fn ours(text: &str) -> Vec<String> {
        words(text).map(|word| word.form).collect()
    }

    /// Texts with every character, between letters and beside itself. Where nothing is assigned, some have to do.
    fn texts_of_all_characters(is_included: impl Fn(char) -> bool) -> Vec<String> {
        let blocks = [
            '\0'..='\u{32fff}',
            '\u{e0000}'..='\u{e0fff}',
            '\u{f0000}'..='\u{f0fff}',
            '\u{10ff00}'..=char::MAX,
        ];
        let all: Vec<char> = blocks.into_iter().flatten().filter(|it| is_included(*it)).collect();
        let text =
            |chunk: &[char]| chunk.iter().map(|it| format!("x{it}y {it}{it}z ")).collect::<Vec<_>>().concat();
        all.chunks(64).map(text).collect()
    }

    #[test]
    fn characters_of_other_scripts_are_treated_as_by_the_tokenizer_of_sqlite() {
        let is_compared = |character: char| {
            let is_word = words(&format!("x{character}y")).count() == 3;
            !is_word && !('\u{ff10}'..='\u{ff5a}').contains(&character)
        };
        let texts = texts_of_all_characters(is_compared);
        let found = words_in_sqlite("unicode61 remove_diacritics 2", &texts);
        for (found, text) in found.iter().zip(&texts) {
            assert_eq!(*found, ours(text), "{text:?}");
        }
    }

    #[test]
    fn sqlite_indexes_the_words_of_every_character() {
        let texts = texts_of_all_characters(|_| true);
        let separated: Vec<String> = texts.iter().map(|text| separated(text)).collect();
        for (found, text) in words_in_sqlite("ascii", &separated).iter().zip(&texts) {
            assert_eq!(*found, ours(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn sqlite_indexes_the_words_of_any_text(text in any::<String>()) {
            prop_assert_eq!(words_in_sqlite("ascii", &[separated(&text)]).remove(0), ours(&text));
        }
    }
}
