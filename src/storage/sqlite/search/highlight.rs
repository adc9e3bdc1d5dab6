//! Matching parts of a text.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::columns;
use crate::artifact::Field;
use crate::storage::interface::{PassageMatcher, Terms};
use crate::storage::sqlite::{Result, StorageError};

/// Returns the statement that creates the table of the vault's index, for use in memory, so that the same words match.
fn table() -> String {
    let columns: Vec<&str> = columns().collect();
    let columns = columns.join(", ");
    format!(
        "CREATE VIRTUAL TABLE search_text USING fts5 ({columns}, tokenize = 'unicode61 remove_diacritics 2')"
    )
}

/// A matcher that finds the matching parts of a text.
pub(super) struct Fts5Matcher {
    connection: Connection,
    path: PathBuf,
}

impl Fts5Matcher {
    /// Creates a matcher for the vault at `path`, which errors name.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let connection =
            in_memory().and_then(|connection| connection.execute_batch(&table()).map(|()| connection));
        let connection = connection.map_err(|error| StorageError::from_sqlite(path, error))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Returns the text with marks before and after each match, and the marks.
    fn marked(
        &self,
        terms: &Terms,
        field: Field,
        text: &str,
    ) -> rusqlite::Result<Option<(String, [char; 2])>> {
        // SQLite returns text only up to a null character; a space has the same length and also separates words.
        let text = text.replace('\0', " ");
        let marks = marks_for(&text);
        self.connection.prepare_cached("DELETE FROM search_text")?.execute([])?;
        let insert = format!("INSERT INTO search_text (rowid, {}) VALUES (1, ?1)", field.name());
        self.connection.prepare_cached(&insert)?.execute([&text])?;
        let column = columns().position(|column| column == field.name()).unwrap_or_default();
        let [open, close] = marks.map(String::from);
        self.connection
            .prepare_cached(
                "SELECT highlight(search_text, ?1, ?2, ?3) FROM search_text WHERE search_text MATCH ?4",
            )?
            .query_row((column, open, close, terms.expression()), |row| Ok((row.get(0)?, marks)))
            .optional()
    }
}

impl PassageMatcher for Fts5Matcher {
    fn matches(&self, terms: &Terms, field: Field, text: &str) -> Result<Option<Vec<Range<usize>>>> {
        let marked =
            self.marked(terms, field, text).map_err(|error| StorageError::from_sqlite(&self.path, error))?;
        Ok(marked.map(|(text, marks)| ranges(&text, marks)))
    }
}

/// Opens a database in memory: no part of the texts may be left in files.
pub(super) fn in_memory() -> rusqlite::Result<Connection> {
    Connection::open_with_flags(":memory:", OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// Opens a database that is deleted when it is closed. What does not fit into the cache is in an unnamed file.
pub(super) fn temporary() -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags("", OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIBIBYTES)?;
    Ok(connection)
}

/// The cache size of a temporary database, in kibibytes.
const CACHE_KIBIBYTES: i64 = 64 << 10;

/// The first of the characters without an assigned meaning, of which few texts have any.
const UNUSED: char = '\u{e000}';

/// Returns two characters that are not in `text`.
fn marks_for(text: &str) -> [char; 2] {
    // Searching for each mark separately would read a text with many of them once per mark.
    let used: HashSet<char> = text.chars().filter(|character| *character >= UNUSED).collect();
    let mut unused = (UNUSED..=char::MAX).filter(|mark| !used.contains(mark));
    // No text within the limits contains all of them.
    [unused.next().unwrap_or('\u{1}'), unused.next().unwrap_or('\u{2}')]
}

/// Returns the ranges between the marks, as offsets in the text without them.
fn ranges(marked: &str, [open, close]: [char; 2]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut marks) = (0, 0);
    for (at, mark) in marked.char_indices().filter(|(_, character)| [open, close].contains(character)) {
        let at = at - marks;
        marks += mark.len_utf8();
        if mark == open {
            start = at;
        } else {
            ranges.push(start..at);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::full_text::{self, words};
    use crate::storage::interface::Term;

    fn matches(words: &[&str], text: &str) -> Option<Vec<String>> {
        let term = |word: &&str| Term {
            text: word.trim_end_matches('*').to_owned(),
            is_prefix: word.ends_with('*'),
        };
        let terms = Terms { alternatives: vec![words.iter().map(term).collect()], fields: Vec::new() };
        let matcher = Fts5Matcher::new(Path::new("v.vault")).unwrap();
        let ranges = matcher.matches(&terms, Field::TOOL, text).unwrap()?;
        Some(ranges.into_iter().map(|range| text[range].to_owned()).collect())
    }

    #[test]
    fn the_columns_are_those_of_the_schema() {
        let shared: Vec<&str> = Field::SHARED.into_iter().map(Field::name).collect();
        assert_eq!(columns().take(shared.len()).collect::<Vec<_>>(), shared);
        assert!(columns().all(|column| column.bytes().all(|byte| byte.is_ascii_lowercase())));
    }

    #[test]
    fn a_text_of_characters_that_could_be_marks_takes_no_longer_than_others() {
        let most: String = (UNUSED..='\u{10fff0}').collect();
        // Searching for each separately would take hours.
        assert_eq!(matches(&["needle"], &format!("{most} needle")).unwrap(), ["needle"]);
    }

    #[test]
    fn what_matches_is_told_by_its_place() {
        let text = "\u{e000} Refunds\0of refund (é) and ref; CAFÉ au lait\u{10ffff}";
        assert_eq!(matches(&["refund*"], text).unwrap(), ["Refunds", "refund"]);
        assert_eq!(matches(&["refund"], text).unwrap(), ["refund"]);
        assert_eq!(matches(&["cafe au", "E"], text).unwrap(), ["é", "CAFÉ au"]);
        assert_eq!(matches(&["refund", "missing"], text), None);
        assert_eq!(matches(&["of refund"], text).unwrap(), ["of refund"]);
    }

    /// Returns the words of texts as SQLite's tokenizer finds them.
    fn words_in_sqlite(texts: &[String]) -> Vec<Vec<String>> {
        let connection = in_memory().unwrap();
        let schema = "CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'unicode61 remove_diacritics 2');
                      CREATE VIRTUAL TABLE v USING fts5vocab (t, instance); BEGIN";
        connection.execute_batch(schema).unwrap();
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
        words(text).map(|word| String::from_utf8(word.form).unwrap()).collect()
    }

    #[test]
    fn every_character_is_treated_as_by_the_shared_tokenizer() {
        // Where nothing is assigned, some have to do.
        let blocks = [
            '\0'..='\u{32fff}',
            '\u{e0000}'..='\u{e0fff}',
            '\u{f0000}'..='\u{f0fff}',
            '\u{10ff00}'..=char::MAX,
        ];
        let all: Vec<char> = blocks.into_iter().flatten().collect();
        let text =
            |chunk: &[char]| chunk.iter().map(|it| format!("x{it}y {it}{it}z ")).collect::<Vec<_>>().concat();
        let texts: Vec<String> = all.chunks(64).map(text).collect();
        for (found, text) in words_in_sqlite(&texts).iter().zip(&texts) {
            assert_eq!(*found, ours(text), "{text:?}");
        }
    }

    fn any_text() -> impl Strategy<Value = String> {
        let parts = prop_oneof![
            4 => "[abÄé1 ]{1,3}",
            2 => prop::sample::select(&[" ", "a", "b", "ab", "\u{301}", "e\u{301}", "\0", "ß", "İ", "-"][..])
                .prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(parts, 0..14).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn the_shared_matcher_finds_the_same_places(
            text in any_text(),
            alternatives in prop::collection::vec(
                prop::collection::vec((any_text(), any::<bool>()), 0..3), 0..3
            ),
            is_other_field in prop::bool::weighted(0.1)
        ) {
            let term = |(text, is_prefix): (String, bool)| Term { text, is_prefix };
            let alternatives: Vec<Vec<Term>> =
                alternatives.into_iter().map(|terms| terms.into_iter().map(term).collect()).collect();
            let fields = if is_other_field { vec![Field::STEP] } else { vec![Field::TOOL, Field::OUTPUT] };
            let terms = Terms { alternatives, fields };
            prop_assert_eq!(words_in_sqlite(std::slice::from_ref(&text)).remove(0), ours(&text));
            if !terms.is_empty() {
                let expected = Fts5Matcher::new(Path::new("v.vault")).unwrap();
                let expected = expected.matches(&terms, Field::TOOL, &text).unwrap();
                prop_assert_eq!(full_text::Matcher.matches(&terms, Field::TOOL, &text).unwrap(), expected);
            }
        }
    }
}
