//! Annotations of artifacts: valid tags, notes, manual links and labels, and which artifacts a change of labels changes.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::Entry;
use super::{Label, Result, StorageError};
use crate::digest::CoreHash;

/// Maximum length of a tag in bytes.
pub const MAX_TAG_BYTES: usize = 100;

/// Maximum length of a note in bytes: about a page.
pub const MAX_NOTE_BYTES: usize = 4096;

/// Maximum length in bytes of the note of a manual link.
pub const MAX_LINK_NOTE_BYTES: usize = 1 << 20;

/// Maximum length in bytes of the relation of a manual link.
pub const MAX_RELATION_BYTES: usize = 40;

/// The tables of annotations, with the columns that refer to artifacts.
pub(in crate::storage) const ENDS: [(&str, &str); 6] = [
    ("tag", "artifact"),
    ("note", "artifact"),
    ("pin", "artifact"),
    ("label", "artifact"),
    ("link", "source"),
    ("link", "target"),
];

/// Returns whether `name` is a valid tag: 1 to 100 of the letters a-z and A-Z, digits, and `-`, `_`, `.`, `/`.
#[must_use]
pub fn is_tag(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    (1..=MAX_TAG_BYTES).contains(&name.len()) && name.bytes().all(fits)
}

/// Returns whether `text` is a valid note: not only white space, and at most 4,096 bytes.
#[must_use]
pub fn is_note(text: &str) -> bool {
    text.len() <= MAX_NOTE_BYTES && !text.trim().is_empty()
}

/// Returns whether `text` is a valid relation of a manual link: a lowercase letter, followed by at most 39 of a-z, 0-9
/// and `-`.
#[must_use]
pub fn is_relation(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= MAX_RELATION_BYTES
        && text.bytes().all(fits)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns why `name` is not a valid tag, or `None` if it is.
pub(super) fn tag_defect(name: &str) -> Option<String> {
    (!is_tag(name)).then(|| format!("{name:?} cannot be a tag"))
}

/// Returns why `text` is not a valid note, or `None` if it is.
pub(super) fn note_defect(text: &str) -> Option<String> {
    (!is_note(text)).then(|| format!("a note must not be blank, and has at most {MAX_NOTE_BYTES} bytes"))
}

/// Returns why a manual link is not valid, or `None` if it is.
pub(super) fn link_defect(
    source: CoreHash,
    relation: &str,
    target: CoreHash,
    note: Option<&str>,
) -> Option<String> {
    if !is_relation(relation) {
        return Some(format!("{relation:?} cannot be the relation of a link"));
    }
    if source == target {
        return Some(format!("{source} cannot be linked to itself"));
    }
    let bytes = note.map_or(0, str::len);
    let is_too_long = bytes > MAX_LINK_NOTE_BYTES;
    is_too_long
        .then(|| format!("the note of a link has at most {MAX_LINK_NOTE_BYTES} bytes, this one has {bytes}"))
}

/// Maximum length in bytes of the key of a label.
pub const MAX_LABEL_KEY_BYTES: usize = 100;

/// Maximum length in bytes of the value of a label: a long address of a web page.
pub const MAX_LABEL_VALUE_BYTES: usize = 1_024;

/// Maximum number of labels of an artifact.
pub const MAX_LABELS: usize = 100;

/// Maximum number of artifacts in one journal entry about labels.
const MAX_LABELED: usize = 1_000;

/// Returns whether `key` is a valid key of a label: a letter a-z or A-Z or a digit, followed by at most 99 of these and
/// `-`, `_`, `.`, `/`.
#[must_use]
pub fn is_label_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    key.len() <= MAX_LABEL_KEY_BYTES
        && key.bytes().all(fits)
        && key.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Returns whether `value` is a valid value of a label: at most 1,024 bytes without control characters. It may be empty.
#[must_use]
pub fn is_label_value(value: &str) -> bool {
    value.len() <= MAX_LABEL_VALUE_BYTES && !value.chars().any(char::is_control)
}

/// Checks that labels are valid.
///
/// # Errors
/// Returns an error of the kind [`Invalid`](super::ErrorKind::Invalid) if a label is not valid.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<()> {
    let defect = labels.iter().find_map(|(key, value)| label_defect(key, value));
    defect.map_or(Ok(()), |defect| Err(StorageError::invalid(defect)))
}

/// The artifacts of a change with their labels before it, without duplicates.
pub(super) struct LabeledArtifacts(pub(super) Vec<(CoreHash, Vec<Label>)>);

impl LabeledArtifacts {
    /// Returns the entries by which the artifacts get `labels`. They are ordered by the labels that change, with the
    /// artifacts in their order, so that every engine records the same.
    ///
    /// # Errors
    /// Returns an error of the kind `Invalid` if a label is not valid, or an artifact would have too many.
    pub(super) fn set(self, labels: &BTreeMap<String, String>) -> Result<Vec<Entry>> {
        check_labels(labels)?;
        let mut groups: BTreeMap<BTreeMap<String, String>, Vec<CoreHash>> = BTreeMap::new();
        for (core, known) in self.0 {
            let known: BTreeMap<&str, &str> =
                known.iter().map(|label| (label.key.as_str(), label.value.as_str())).collect();
            let is_news =
                |(key, value): &(&String, &String)| known.get(key.as_str()) != Some(&value.as_str());
            let news: BTreeMap<String, String> =
                labels.iter().filter(is_news).map(|(key, value)| (key.clone(), value.clone())).collect();
            let added = news.keys().filter(|key| !known.contains_key(key.as_str())).count();
            if known.len() + added > MAX_LABELS {
                return Err(StorageError::invalid(format!(
                    "{core} would have more than {MAX_LABELS} labels"
                )));
            }
            groups.entry(news).or_default().push(core);
        }
        groups.remove(&BTreeMap::new());
        Ok(in_entries(groups, |cores, labels| Entry::Label { cores, labels }))
    }

    /// Returns the entries by which the artifacts lose the labels with these keys, ordered in the same way.
    pub(super) fn remove(self, keys: &BTreeSet<String>) -> Vec<Entry> {
        let mut groups: BTreeMap<BTreeSet<String>, Vec<CoreHash>> = BTreeMap::new();
        for (core, known) in self.0 {
            let lost = known.into_iter().map(|label| label.key).filter(|key| keys.contains(key));
            groups.entry(lost.collect()).or_default().push(core);
        }
        groups.remove(&BTreeSet::new());
        in_entries(groups, |cores, keys| Entry::Unlabel { cores, keys })
    }
}

/// Returns the entries for groups of artifacts, each with no more of them than one entry records.
fn in_entries<T: Clone>(
    groups: BTreeMap<T, Vec<CoreHash>>,
    entry: impl Fn(Vec<CoreHash>, T) -> Entry,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (change, cores) in groups {
        entries.extend(cores.chunks(MAX_LABELED).map(|part| entry(part.to_vec(), change.clone())));
    }
    entries
}

/// Returns why a label is not valid, or `None` if it is.
fn label_defect(key: &str, value: &str) -> Option<String> {
    if !is_label_key(key) {
        return Some(format!("{key:?} cannot be the key of a label"));
    }
    (!is_label_value(value)).then(|| {
        format!(
            "the value of the label {key} has control characters or more than {MAX_LABEL_VALUE_BYTES} bytes"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use chrono::DateTime;

    #[test]
    fn notes_have_something_to_say_and_an_end() {
        assert!(is_note("a") && is_note(&"a".repeat(MAX_NOTE_BYTES)) && is_note("two\nlines"));
        assert!(!is_note("") && !is_note(" \n\t") && !is_note(&"a".repeat(MAX_NOTE_BYTES + 1)));
    }

    fn core(text: &str) -> CoreHash {
        CoreHash(Digest::from_content(text.as_bytes()))
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn labeled(artifacts: &[(&str, &[(&str, &str)])]) -> LabeledArtifacts {
        let at = DateTime::UNIX_EPOCH;
        let label = |(key, value): (String, String)| Label { key, value, at };
        let artifact = |(name, known): &(&str, &[(&str, &str)])| {
            (core(name), labels(known).into_iter().map(label).collect())
        };
        LabeledArtifacts(artifacts.iter().map(artifact).collect())
    }

    #[test]
    fn keys_and_values_are_bounded() {
        assert!(is_label_key("commit") && is_label_key("ci.example.com/Job_2") && is_label_key("7"));
        assert!(is_label_key(&"k".repeat(MAX_LABEL_KEY_BYTES)));
        for key in ["", "-x", ".x", "with space", "k=v", "ä", &"k".repeat(MAX_LABEL_KEY_BYTES + 1)] {
            assert!(!is_label_key(key), "{key:?}");
        }
        assert!(
            is_label_value("") && is_label_value("https://ci/job?a=b&c") && is_label_value("ÄRGER, 100 %")
        );
        assert!(is_label_value(&"v".repeat(MAX_LABEL_VALUE_BYTES)));
        for value in ["two\nlines", "\u{1b}[2J", "\u{85}", &"v".repeat(MAX_LABEL_VALUE_BYTES + 1)] {
            assert!(!is_label_value(value), "{value:?}");
        }
    }

    #[test]
    fn artifacts_that_change_in_the_same_way_are_one_change() {
        let of = || labeled(&[("a", &[]), ("b", &[("k", "v")]), ("c", &[("k", "w"), ("x", "y")])]);
        let changes = of().set(&labels(&[("k", "v"), ("l", "m")])).unwrap();
        let both =
            Entry::Label { cores: vec![core("a"), core("c")], labels: labels(&[("k", "v"), ("l", "m")]) };
        let only = Entry::Label { cores: vec![core("b")], labels: labels(&[("l", "m")]) };
        assert_eq!(changes, [both, only]);
        assert!(of().set(&BTreeMap::new()).unwrap().is_empty());
        let changes = of().remove(&["k", "none"].map(str::to_owned).into());
        let expected = Entry::Unlabel { cores: vec![core("b"), core("c")], keys: ["k".to_owned()].into() };
        assert_eq!(changes, [expected]);
    }

    #[test]
    fn large_changes_are_split_and_too_many_labels_are_rejected() {
        let artifacts = (0..=MAX_LABELED).map(|number| (core(&number.to_string()), Vec::new()));
        let entries = LabeledArtifacts(artifacts.collect()).set(&labels(&[("k", "v")])).unwrap();
        let sizes = entries.iter().map(|entry| match entry {
            Entry::Label { cores, .. } => cores.len(),
            _ => 0,
        });
        assert_eq!(sizes.collect::<Vec<_>>(), [MAX_LABELED, 1]);
        let many: BTreeMap<String, String> =
            (0..=MAX_LABELS).map(|number| (format!("k{number}"), String::new())).collect();
        assert!(labeled(&[("a", &[])]).set(&many).is_err());
        assert!(labeled(&[("a", &[("x", "")])]).set(&many.into_iter().skip(1).collect()).is_err());
    }
}
