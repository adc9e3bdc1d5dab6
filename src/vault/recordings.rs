//! Recordings in a vault: loading one for replay, and finding those that contain a prompt.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Timestamp;
use super::details::{ArtifactDetails, AttributeSummary, Detail};
use super::find::{ArtifactMatch, Cursor, FindOrder, FoundArtifact};
use super::query::{self, FindQuery, Hit};
use super::{Vault, limit_of};
use crate::artifact::{Playback, group};
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::storage::{Condition, Filter, Snapshot, StorageError, TimeBasis, TimePeriod};

/// A filter of the recordings of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecordingFilter {
    /// Attributes that a recording must have.
    pub attributes: Vec<AttributeSummary>,
    /// Last seen at this time or later.
    pub since: Option<Timestamp>,
    /// Last seen before this time.
    pub until: Option<Timestamp>,
}

/// A request for the recordings in which a prompt can be looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordingsRequest {
    /// The SHA-256 of the prompt.
    pub prompt: Digest,
    /// What the recordings must match.
    #[serde(default)]
    pub filter: RecordingFilter,
    /// Maximum number of recordings; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    #[serde(default)]
    pub after: Option<Cursor>,
    /// What to return of each artifact besides its times and its matches.
    #[serde(default)]
    pub details: Vec<Detail>,
}

/// Recordings of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordingsAnswer {
    /// The recordings, last seen first, with the locations of the prompt.
    pub recordings: Vec<FoundArtifact>,
    /// The end of this page; `None` if it is the last one.
    pub next: Option<Cursor>,
}

impl RecordingsRequest {
    /// Creates a request for all recordings of a prompt.
    #[must_use]
    pub fn new(prompt: Digest) -> Self {
        Self { prompt, filter: RecordingFilter::default(), limit: None, after: None, details: Vec::new() }
    }

    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<RecordingsAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let limit = limit_of(self.limit);
        // One more shows whether there is another page.
        let after = self.after.clone();
        let mut hits = recordings(&*snapshot, self.prompt, &self.filter, after, limit.saturating_add(1))?;
        let is_more = hits.len() > limit;
        hits.truncate(limit);
        let last = hits.last().filter(|_| is_more);
        let next = last.map(|hit| FindOrder::LastSeen.cursor(&*snapshot, &hit.artifact)).transpose()?;
        let cores: Vec<CoreHash> = hits.iter().map(|hit| hit.artifact.core).collect();
        let details = ArtifactDetails::read(&*snapshot, &cores, &self.details)?;
        let recordings = hits.iter().zip(details).map(|(Hit { artifact, matches }, details)| FoundArtifact {
            artifact: artifact.into(),
            details,
            matches: matches.iter().map(ArtifactMatch::from).collect(),
        });
        Ok(RecordingsAnswer { recordings: recordings.collect(), next })
    }
}

/// Returns up to `limit` of the recordings in which this prompt can be looked up, last seen first, from a position on.
pub(super) fn recordings(
    snapshot: &dyn Snapshot,
    prompt: Digest,
    filter: &RecordingFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<Vec<Hit>, StorageError> {
    let mention = Condition::Mention { group: Some(group::PROMPT.to_owned()), digest: prompt };
    let (since, until) = (filter.since.map(|time| time.0), filter.until.map(|time| time.0));
    let has_period = since.is_some() || until.is_some();
    let period = has_period.then_some(TimePeriod { basis: TimeBasis::LastSeen, since, until });
    let query = FindQuery { filter: Filter { period, ..mention.into() }, ..FindQuery::default() };
    let mut recordings = Vec::new();
    query::find_until::<StorageError>(snapshot, &query, after, &mut |hit| {
        // Few artifacts have the prompt, but very many may have an attribute.
        if is_by_prompt(&hit) && has_attributes(snapshot, &hit, &filter.attributes)? {
            recordings.push(hit);
        }
        Ok(recordings.len() < limit)
    })?;
    Ok(recordings)
}

fn is_by_prompt(hit: &Hit) -> bool {
    let kind = formats::named(&hit.artifact.kind);
    kind.is_some_and(|kind| kind.info().playback == Some(Playback::ByPrompt))
}

fn has_attributes(
    snapshot: &dyn Snapshot,
    hit: &Hit,
    required: &[AttributeSummary],
) -> Result<bool, StorageError> {
    if required.is_empty() {
        return Ok(true);
    }
    let attributes = snapshot.attributes_of(hit.artifact.core)?;
    let has = |required: &AttributeSummary| {
        attributes
            .iter()
            .any(|attribute| attribute.name == required.name && attribute.value == required.value)
    };
    Ok(required.iter().all(has))
}
