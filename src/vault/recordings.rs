//! Recordings in a vault: loading one for replay, and finding those that contain a prompt.

use chrono::{DateTime, Utc};

use super::{Located, LookupError, Vault};
use crate::artifact::{Playback, group};
use crate::digest::Digest;
use crate::formats;
use crate::json::reader::Limits;
use crate::storage::{Condition, Filter, Period, Snapshot, StorageError, TimeBasis};
use crate::vault::query::{self, Hit, Query};
use crate::vault::replay::{NotPlayable, Player};

/// A filter of the recordings of a prompt.
#[derive(Clone, Debug, Default)]
pub struct RecordingFilter {
    /// Attributes that a recording must have, by name and value.
    pub attributes: Vec<(String, String)>,
    /// Last seen at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Last seen before this time.
    pub until: Option<DateTime<Utc>>,
    /// Maximum number of recordings; unlimited if `None`.
    pub limit: Option<usize>,
}

impl Vault {
    /// Returns a player of a located artifact: by prompt for a session, in sequence for a run.
    ///
    /// ```
    /// # use runvault::{Vault, intake::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// let mut player = vault.player(&vault.locate(&"4df877dec7f4".parse()?)?)?;
    /// assert_eq!(player.respond("Which label fits ticket 4711: bug, question or billing?")?, "bug");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`LookupError::NoRecording`] if its kind records no responses; otherwise the same as [`Vault::read`].
    pub fn player(&self, located: &Located) -> Result<Player, LookupError> {
        let (core, kind) = (located.artifact.core, &located.artifact.kind);
        let none = || LookupError::NoRecording { core, kind: kind.clone() };
        let known = formats::named(kind).filter(|kind| kind.playback().is_some()).ok_or_else(none)?;
        let document = self.read(located)?;
        Player::with_limits(known, &document, &Limits::most()).map_err(|error| match error {
            NotPlayable::RecordsNothing(_) => none(),
            error => LookupError::Unreadable { core, message: error.to_string() },
        })
    }

    /// Returns the recordings in which this prompt can be looked up, last seen first, with the locations of the prompt.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn recordings_of(&self, prompt: Digest, wanted: &RecordingFilter) -> Result<Vec<Hit>, StorageError> {
        let snapshot = self.snapshot()?;
        let asked = Condition::Mention { group: Some(group::PROMPT.to_owned()), digest: prompt };
        let (since, until) = (wanted.since, wanted.until);
        let has_period = since.is_some() || until.is_some();
        let period = has_period.then_some(Period { basis: TimeBasis::LastSeen, since, until });
        let filter = Filter { period, ..asked.into() };
        let mut recordings = Vec::new();
        let query = Query { filter, ..Query::default() };
        let most = wanted.limit.unwrap_or(usize::MAX);
        query::find_until::<StorageError>(&*snapshot, &query, &mut |hit| {
            // Few artifacts have the prompt, but very many may have an attribute.
            if is_by_prompt(&hit) && has_attributes(&*snapshot, &hit, &wanted.attributes)? {
                recordings.push(hit);
            }
            Ok(recordings.len() < most)
        })?;
        Ok(recordings)
    }
}

fn is_by_prompt(hit: &Hit) -> bool {
    let kind = formats::named(&hit.artifact.kind);
    kind.is_some_and(|kind| kind.playback() == Some(Playback::ByPrompt))
}

fn has_attributes(
    snapshot: &dyn Snapshot,
    hit: &Hit,
    wanted: &[(String, String)],
) -> Result<bool, StorageError> {
    if wanted.is_empty() {
        return Ok(true);
    }
    let attributes = snapshot.attributes_of(hit.artifact.core)?;
    let has = |(name, value): &(String, String)| {
        attributes.iter().any(|attribute| attribute.name == *name && attribute.value == *value)
    };
    Ok(wanted.iter().all(has))
}
