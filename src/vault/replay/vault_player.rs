//! Players of recordings in a vault.

use super::{Player, PlayerError};
use crate::formats;
use crate::json::reader::Limits;
use crate::storage::Snapshot;
use crate::vault::handle::Vault;
use crate::vault::resolve::{LocatedCapture, LookupError, document};

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
    pub fn player(&self, located: &LocatedCapture) -> Result<Player, LookupError> {
        player(&*self.snapshot()?, located)
    }
}

/// Returns a player of a located artifact.
pub(super) fn player(snapshot: &dyn Snapshot, located: &LocatedCapture) -> Result<Player, LookupError> {
    let (core, kind) = (located.artifact.core, &located.artifact.kind);
    let none = || LookupError::NoRecording { core, kind: kind.clone() };
    let known = formats::named(kind).filter(|kind| kind.playback().is_some()).ok_or_else(none)?;
    let document = document(snapshot, located)?;
    Player::with_limits(known, &document, &Limits::most()).map_err(|error| match error {
        PlayerError::RecordsNothing(_) => none(),
        error => LookupError::Unreadable { core, message: error.to_string() },
    })
}
