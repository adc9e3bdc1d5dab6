//! Values similar to those of conditions that no artifact matches.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::api::PlaceSummary;
use super::find::ArtifactFilter;
use super::search::{SearchError, SearchRequest};
use crate::artifact::{Field, group};
use crate::digest::{CoreHash, Digest};
use crate::display::similar;
use crate::storage::{Condition, ErrorKind, Order, Page, Snapshot, StorageError};

/// A request for what is similar to the conditions of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NearRequest {
    /// The filter. Only its conditions on attributes, labels and tags are considered.
    pub filter: ArtifactFilter,
    /// The text of a prompt, if its hash is one of the conditions.
    pub prompt: Option<String>,
}

/// What is similar to the conditions of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NearAnswer {
    /// The conditions that no artifact matches, with similar values.
    pub values: Vec<NearValues>,
    /// The form in which artifacts mention the prompt, if it differs only in line feeds at the end.
    pub prompt: Option<NearPrompt>,
    /// Longer prompts that contain it, if there is a search index: the best ones.
    pub longer_prompts: Vec<LongerPrompt>,
}

/// The values that artifacts have in place of one that none has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NearValues {
    /// The name of an attribute, `label` or `label:` and a key, or `tag`.
    pub name: String,
    /// The value that no artifact has.
    pub value: String,
    /// Similar ones, the most similar first; some others if none is similar and there are few.
    pub similar: Vec<String>,
}

/// A prompt that differs from the requested one only in line feeds at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NearPrompt {
    /// Its hash.
    pub digest: Digest,
    /// Whether it has a line feed at the end that the requested one does not have. Otherwise it is the other way round.
    pub has_line_feed: bool,
    /// Number of artifacts that mention it.
    pub count: u64,
}

/// A longer prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LongerPrompt {
    /// The artifact.
    pub core_hash: CoreHash,
    /// Its location.
    pub place: PlaceSummary,
}

/// Maximum number of similar values, and of others if none is similar.
const SIMILAR: usize = 5;

/// Maximum number of values that are compared.
const COMPARED: usize = 100_000;

/// Maximum number of words of a prompt that are searched for.
const WORDS: usize = 16;

impl NearRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<NearAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let mut answer = NearAnswer::default();
        for condition in &self.filter.conditions {
            if matches_none(&*snapshot, condition.clone())? {
                answer.values.extend(near_values(&*snapshot, condition)?);
            }
        }
        if let Some(prompt) = &self.prompt
            && matches_none(&*snapshot, mention_of(Digest::from_content(prompt.as_bytes())))?
        {
            answer.prompt = other_ending(&*snapshot, prompt)?;
            drop(snapshot);
            answer.longer_prompts = longer_prompts(vault, prompt)?;
        }
        Ok(answer)
    }
}

/// Returns what is similar to the value of a condition, if it has one.
fn near_values(snapshot: &dyn Snapshot, condition: &Condition) -> Result<Option<NearValues>, StorageError> {
    let (name, value, known) = match condition {
        Condition::Attribute { name, value } | Condition::AttributeLike { name, pattern: value } => {
            (name.clone(), value.clone(), snapshot.attribute_values(name, "", COMPARED)?)
        }
        Condition::Label { key, value: Some(value) } | Condition::LabelLike { key, pattern: value } => {
            let values = snapshot.label_values(key, "", COMPARED)?;
            if values.is_empty() {
                ("label".to_owned(), key.clone(), label_keys(snapshot)?)
            } else {
                let values = values.into_iter().map(|label| label.value).collect();
                (format!("label:{key}"), value.clone(), values)
            }
        }
        Condition::Label { key, value: None } => ("label".to_owned(), key.clone(), label_keys(snapshot)?),
        Condition::Tagged { name: Some(name) } => {
            let tags = snapshot.tags()?.into_iter().map(|(tag, _)| tag.name).collect();
            ("tag".to_owned(), name.clone(), tags)
        }
        _ => return Ok(None),
    };
    Ok(Some(NearValues { similar: similar_or_few(&value, &known), name, value }))
}

fn label_keys(snapshot: &dyn Snapshot) -> Result<Vec<String>, StorageError> {
    Ok(snapshot.label_keys()?.into_iter().map(|label| label.key).collect())
}

/// Returns the similar ones of the known values, or all if none is similar and there are few.
fn similar_or_few(value: &str, known: &[String]) -> Vec<String> {
    let similar = similar(value, known.iter().map(String::as_str), SIMILAR);
    if similar.is_empty() && known.len() <= SIMILAR {
        return known.to_vec();
    }
    similar.into_iter().map(str::to_owned).collect()
}

/// Returns whether no artifact matches a condition. Counting those that do would take long.
fn matches_none(snapshot: &dyn Snapshot, condition: Condition) -> Result<bool, StorageError> {
    let first = snapshot.find(&condition.into(), Order::Core, &Page::first(1))?;
    Ok(first.items.is_empty())
}

/// Returns the condition that a prompt is mentioned.
fn mention_of(digest: Digest) -> Condition {
    Condition::Mention { group: Some(group::PROMPT.to_owned()), digest }
}

/// Returns the prompt without its line feeds at the end, or with one, if artifacts mention it.
fn other_ending(snapshot: &dyn Snapshot, prompt: &str) -> Result<Option<NearPrompt>, StorageError> {
    let bare = prompt.trim_end_matches(['\r', '\n']);
    let others = [bare.to_owned(), format!("{bare}\n"), format!("{bare}\r\n")];
    for other in others.into_iter().filter(|other| other != prompt) {
        let digest = Digest::from_content(other.as_bytes());
        let count = snapshot.count(&mention_of(digest).into())?;
        if count > 0 {
            let has_line_feed = other.len() > prompt.len();
            return Ok(Some(NearPrompt { digest, has_line_feed, count }));
        }
    }
    Ok(None)
}

/// Returns prompts that contain the words of a prompt as a phrase.
fn longer_prompts(vault: &Vault, prompt: &str) -> Result<Vec<LongerPrompt>, StorageError> {
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let words = prompt.split_whitespace().filter(is_word).take(WORDS);
    let phrase = words.map(|word| word.replace('"', " ")).collect::<Vec<_>>().join(" ");
    let request = SearchRequest {
        words: format!("\"{phrase}\""),
        fields: vec![Field::PROMPT.name().to_owned()],
        limit: SIMILAR as u64,
        ..SearchRequest::default()
    };
    match vault.run(&request) {
        Ok(answer) => Ok(answer
            .hits
            .into_iter()
            .map(|hit| LongerPrompt { core_hash: hit.artifact.core_hash, place: hit.place })
            .collect()),
        Err(SearchError::Store(error)) if error.kind() != ErrorKind::Unsupported => Err(error),
        // Without an index, or of words that cannot be searched for, nothing longer is known.
        Err(_) => Ok(Vec::new()),
    }
}
