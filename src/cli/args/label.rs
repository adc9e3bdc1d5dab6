//! Labels as arguments.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use clap::Args;
use runvault::storage::{
    MAX_LABEL_KEY_BYTES, MAX_LABEL_VALUE_BYTES, MAX_NOTE_BYTES, is_label_key, is_label_value, is_note,
};
use runvault::vault::find::FindCondition;
use runvault::vault::retention::LabelRule;

use super::ci;
use crate::cli::args::completing::CandidateSource;
use crate::cli::output::exit::CommandError;
use crate::cli::output::stdout;

/// Labels for everything that is added.
#[derive(Args)]
pub(crate) struct LabelArgs {
    /// Set this label on everything that is added
    ///
    /// Artifacts that are already stored get it too. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, add = CandidateSource::Labels.completer())]
    label: Vec<(String, String)>,

    /// Set labels from the environment of a CI system
    ///
    /// The labels are ci, repository, commit, branch and job, as far as the environment states them.
    #[arg(long)]
    ci: bool,
}

impl LabelArgs {
    /// Returns the labels. Those that are given replace those of the environment.
    pub(crate) fn labels(&self) -> Result<BTreeMap<String, String>, CommandError> {
        let given = unique(&self.label)?;
        let mut labels = if self.ci { from_environment() } else { BTreeMap::new() };
        labels.extend(given);
        Ok(labels)
    }
}

/// Returns labels by key.
///
/// # Errors
/// Returns a usage error if a key has two values.
pub(crate) fn unique(labels: &[(String, String)]) -> Result<BTreeMap<String, String>, CommandError> {
    let mut unique = BTreeMap::new();
    for (key, value) in labels {
        match unique.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(value.clone());
            }
            Entry::Occupied(entry) if entry.get() == value => {}
            Entry::Occupied(_) => {
                return Err(CommandError::Usage(format!("the label {key} is given with two values")));
            }
        }
    }
    Ok(unique)
}

/// Returns the labels of the environment, and reports if there is no CI system.
fn from_environment() -> BTreeMap<String, String> {
    let labels = ci::labels(|name| std::env::var(name).ok());
    if labels.is_empty() {
        stdout::note("--ci: the environment is not that of a known CI system; no labels are taken from it");
    }
    labels
}

/// Parses the key of a label, for clap.
pub(crate) fn key(text: &str) -> Result<String, String> {
    if is_label_key(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "the key of a label is a letter a-z or A-Z or a digit, followed by at most {} of these and - _ . /",
        MAX_LABEL_KEY_BYTES - 1
    ))
}

/// Parses `KEY=VALUE`, for clap.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key(name)?, valid(value)?))
}

/// A label, or all labels with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelTest {
    key: String,
    value: Option<String>,
}

/// Parses `KEY` or `KEY=VALUE`, for clap.
pub(crate) fn test(text: &str) -> Result<LabelTest, String> {
    match text.split_once('=') {
        Some((name, value)) => Ok(LabelTest { key: key(name)?, value: Some(valid(value)?) }),
        None => Ok(LabelTest { key: key(text)?, value: None }),
    }
}

impl LabelTest {
    /// Returns the condition that an artifact has it.
    pub(crate) fn condition(&self) -> FindCondition {
        FindCondition::label(&self.key, self.value.as_deref())
    }

    /// Returns it for a retention policy.
    pub(crate) fn rule(&self) -> LabelRule {
        LabelRule { key: self.key.clone(), value: self.value.clone() }
    }
}

fn valid(value: &str) -> Result<String, String> {
    if is_label_value(value) {
        return Ok(value.to_owned());
    }
    Err(format!("the value of a label has at most {MAX_LABEL_VALUE_BYTES} bytes and no control characters"))
}

/// Parses a note, for clap.
pub(crate) fn note(text: &str) -> Result<String, String> {
    if is_note(text) {
        return Ok(text.to_owned());
    }
    Err(if text.trim().is_empty() {
        "it is blank".to_owned()
    } else {
        format!("it has {} bytes, and a note at most {MAX_NOTE_BYTES}", text.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_contain_equals_signs_and_be_empty() {
        let of = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(pair("job=https://ci/x?a=b"), of("job", "https://ci/x?a=b"));
        assert_eq!(pair("flaky="), of("flaky", ""));
        for wrong in ["job", "=x", "a b=c", "k=\u{1b}[2J"] {
            assert!(pair(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(test("commit"), Ok(LabelTest { key: "commit".to_owned(), value: None }));
        assert_eq!(test("k="), Ok(LabelTest { key: "k".to_owned(), value: Some(String::new()) }));
    }

    #[test]
    fn a_key_has_one_value() {
        let given =
            |pairs: &[&str]| unique(&pairs.iter().map(|text| pair(text).unwrap()).collect::<Vec<_>>());
        assert_eq!(given(&["a=1", "b=2", "a=1"]).unwrap().len(), 2);
        assert!(given(&["a=1", "a=2"]).is_err());
    }
}
