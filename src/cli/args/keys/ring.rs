//! Key rings: TOML with one table, `[keys]`, of ids and keys.

use runvault::artifact::{KeyRing, SigningKey};
use toml_edit::{Document, Item, Key};

const TABLE: &str = "keys";

/// Returns whether a text is a key ring rather than a key: its first line that is neither empty nor a comment is
/// `[keys]`.
pub(super) fn is_ring(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next() == Some("[keys]")
}

/// Adds the keys of a key ring. Error messages contain the line number but no contents.
pub(super) fn add(ring: &mut KeyRing, text: &str) -> Result<(), String> {
    let document = Document::parse(text).map_err(|error| {
        wrong(text, error.span(), "invalid TOML or duplicate id; a key ring has lines like KEY_ID = \"key\"")
    })?;
    let mut count = 0;
    for (name, item) in document.iter() {
        let at = document.as_table().key(name).and_then(Key::span);
        let Some(table) = item.as_table().filter(|_| name == TABLE) else {
            return Err(wrong(text, at, "a key ring can only have the table [keys]"));
        };
        for (id, item) in table {
            let at = table.key(id).and_then(Key::span);
            let key = item.as_str().ok_or_else(|| {
                let what = if matches!(item, Item::Table(_)) { "quote an id with dots: " } else { "" };
                wrong(text, at.clone(), &format!("{what}a key ring has lines like KEY_ID = \"key\""))
            })?;
            let added = SigningKey::new(key).and_then(|key| ring.add(Some(id), key));
            added.map_err(|error| wrong(text, at, &error.to_string()))?;
            count += 1;
        }
    }
    if count == 0 { Err(wrong(text, None, "the key ring has no keys")) } else { Ok(()) }
}

fn wrong(text: &str, at: Option<std::ops::Range<usize>>, what: &str) -> String {
    let before = at.and_then(|at| text.get(..at.start)).unwrap_or_default();
    format!("line {}: {what}", before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use runvault::artifact::KeyRing;

    use super::*;

    fn ring(text: &str) -> Result<KeyRing, String> {
        let mut ring = KeyRing::default();
        add(&mut ring, text).map(|()| ring)
    }

    #[test]
    fn a_key_ring_begins_with_its_table() {
        assert!(is_ring("[keys]\nci = 'a'"));
        assert!(is_ring("\n# of the team\n  [keys] \n"));
        for key in ["", "secret", "a = \"b\"", "[key]\nci = 'a'", "secret\n[keys]\n", "[keys]x"] {
            assert!(!is_ring(key), "{key}");
        }
    }

    #[test]
    fn ids_may_be_quoted() {
        let ring = ring("# ours\n[keys]\nci-2026 = \"a\"\n\"team/laptop 1.5\" = 'b\"c'\n").unwrap();
        assert!(ring.has_key_for("ci-2026") && ring.has_key_for("team/laptop 1.5"));
        assert!(!ring.has_key_for("other"));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line_and_never_quoted() {
        for (text, why) in [
            ("[keys]\nci = s3cret\n", "line 2: invalid TOML"),
            ("[keys]\nci = 's3cret'\nci = 's3cret'\n", "invalid TOML or duplicate id"),
            ("[keys]\n\nci = 5\n", "line 3: a key ring has lines like"),
            ("[keys]\na.b = 's3cret'\n", "a key ring has lines like"),
            ("[keys]\nci = ['s3cret']\n", "line 2: a key ring has lines like"),
            ("[keys]\nci = ' '\n", "line 2: the signing key is empty"),
            ("[keys]\n'' = 's3cret'\n", "line 2: a key id must have"),
            ("[keys]\n[s3cret]\na = 's3cret'\n", "line 2: a key ring can only have"),
            ("[keys]\n# nothing\n", "line 1: the key ring has no keys"),
        ] {
            let error = ring(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("s3cret"), "{text}: {error}");
        }
        let long = format!("[keys]\nci = '{}'\n", "k".repeat(9000));
        assert_eq!(ring(&long).unwrap_err(), "line 2: the signing key has more than 8192 bytes");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail_or_tell(text in "\\[keys\\]\n(([a-z]|'|\"|=| |\n|\\.|\\[|\\]|s3cret){0,40}\n){0,4}") {
            if let Err(error) = ring(&text) {
                prop_assert!(!error.contains("s3cret"), "{}", error);
            }
        }

        #[test]
        fn every_id_and_key_can_be_written(id in "\\PC{1,40}", key in "\\PC{0,40}[a-z]") {
            let mut document = toml_edit::DocumentMut::new();
            document[TABLE] = toml_edit::table();
            document[TABLE][&id] = toml_edit::value(&key);
            let text = document.to_string();
            prop_assert!(is_ring(&text), "{}", text);
            prop_assert!(ring(&text).unwrap().has_key_for(&id));
        }
    }
}
