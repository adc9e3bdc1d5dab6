//! Recording of the signature states of captures.

use super::SqliteWriter;
use crate::artifact::{Admitted, Signature, SignatureState};
use crate::storage::sqlite::journal::JournalEvent;
use crate::storage::sqlite::signatures::{store, stored};

impl SqliteWriter<'_> {
    /// Records the signature state found when admitting the capture with the row id `id`, in the journal only if it
    /// changed. A signature that was not checked this time does not replace the result of an earlier check.
    pub(in crate::storage::sqlite) fn record_signature(
        &mut self,
        id: i64,
        admitted: &Admitted,
    ) -> rusqlite::Result<()> {
        let Some(found) = admitted.signature() else { return Ok(()) };
        let stored = stored(self.transaction, id)?;
        let key = (admitted.core(), admitted.capture());
        let lost = self.recorded.as_ref().filter(|(lost, _)| *lost == key).map(|(_, recorded)| recorded);
        let state = match stored.as_ref().or(lost) {
            Some(known) if found.state == SignatureState::Unchecked => known.state,
            _ => found.state,
        };
        let news = Signature { state, key_id: found.key_id.clone() };
        if stored.as_ref() == Some(&news) {
            return Ok(());
        }
        store(self.transaction, id, &news)?;
        let event = JournalEvent::Signature {
            capture: admitted.capture(),
            core: admitted.core(),
            key_id: news.key_id.as_deref(),
            state: state.name(),
        };
        self.journal.append(self.transaction, &event)
    }
}
