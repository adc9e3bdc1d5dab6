//! Repairs of a vault in a database.

use super::journal::{stored_entries, stored_entry};
use super::restored::{delete_strays, delete_unused, restore_kinds, restore_rows};
use super::{DamagedValue, SqlSession};
use crate::artifact::Kind;
use crate::storage::Result;
use crate::storage::annotations::ENDS;
use crate::storage::check::{EntrySelection, JournalReplay, ReadmittedArtifact, Repair, Subject};
use crate::storage::entry::Entry;

/// A vault in a database whose rows can be written again: what each database does in its own way.
pub(in crate::storage) trait SqlRepairs {
    /// A transaction that writes.
    type Session<'s>: SqlSession<Error = Self::Error>;

    /// An error of a statement or about what it returns.
    type Error: From<DamagedValue>;

    /// Runs `work` in a transaction that waits for other writers, and appends the entries that it returns to the journal.
    fn write<T>(
        &self,
        work: impl FnOnce(&Self::Session<'_>) -> std::result::Result<(T, Vec<Entry>), Self::Error>,
    ) -> Result<T>;

    /// Reads the whole journal. Returns `None` if an entry cannot be read, or if some are missing at the end.
    fn replay(session: &Self::Session<'_>) -> std::result::Result<Option<JournalReplay>, Self::Error>;

    /// Makes what is stored beside the texts of entries what they say. Returns whether something else was there.
    fn restore_entries(session: &Self::Session<'_>) -> std::result::Result<bool, Self::Error>;

    /// Replaces what is mentioned by those captures of artifacts that were admitted, and inserts the other rows that are derived
    /// from them, which were deleted.
    fn write_derived(
        session: &Self::Session<'_>,
        artifacts: &[&ReadmittedArtifact],
    ) -> std::result::Result<(), Self::Error>;

    /// Rebuilds what is derived from the rows of all artifacts.
    fn rebuild_indexes(session: &Self::Session<'_>) -> std::result::Result<(), Self::Error>;
}

/// Runs `work` and records its repairs in the journal, in one transaction.
pub(in crate::storage) fn repair<V: SqlRepairs>(
    vault: &V,
    work: impl FnOnce(&V::Session<'_>) -> std::result::Result<Vec<Repair>, V::Error>,
) -> Result<Vec<Repair>> {
    vault.write(|session| {
        let repaired = work(session)?;
        let entries = repaired.iter().map(Entry::from).collect();
        Ok((repaired, entries))
    })
}

/// Writes the rows that follow from the journal, if it proves them, and deletes those that refer to missing ones.
pub(in crate::storage) fn rebuild<V: SqlRepairs>(vault: &V, kinds: &[Kind]) -> Result<Vec<Repair>> {
    repair(vault, |session| {
        let mut repaired = Vec::new();
        let mut did =
            |table: &str, did| repaired.push(Repair { subject: Subject::Table(table.to_owned()), did });
        if let Some(JournalReplay { catalog, .. }) = V::replay(session)?.filter(JournalReplay::is_proven) {
            restore_kinds(session, &catalog, kinds)?;
            restore_rows(session, &catalog)?;
            did("catalog", "written from the journal again");
            if V::restore_entries(session)? {
                did("journal", "given what the texts of its entries say");
            }
        }
        // Others could get the numbers to which they refer.
        for table in delete_strays(session, &ENDS)? {
            did(table, "removed rows that refer to missing ones");
        }
        for table in delete_unused(session)? {
            did(table, "removed what belongs to nothing");
        }
        Ok(repaired)
    })
}

/// Reads the whole journal, or returns `None` if an entry cannot be read.
pub(in crate::storage) fn replay<S: SqlSession>(
    session: &S,
) -> std::result::Result<Option<JournalReplay>, S::Error> {
    let sql = stored_entries(S::DIALECT, &EntrySelection::All);
    let mut replay = JournalReplay::begin(None);
    let mut is_readable = true;
    session.each(&sql, &[], &mut |row| {
        match stored_entry(&row) {
            Ok(entry) => replay.take(entry),
            Err(_) => is_readable = false,
        }
        Ok(())
    })?;
    Ok(is_readable.then_some(replay))
}
