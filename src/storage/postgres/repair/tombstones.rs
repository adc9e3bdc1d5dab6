//! Restoring the records of removals from the journal.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::{CaptureHash, Digest};
use crate::storage::check::journal_state::JournalState;
use crate::storage::check::{Repair, Subject};
use crate::storage::entry::{EntryChange, EntryText};
use crate::storage::postgres::change::removal::Removal;
use crate::storage::postgres::check::catalog::is_recorded;
use crate::storage::postgres::check::entries::entries;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::snapshot::tombstones::{TOMBSTONE, tombstone};

/// A removed digest and the entry that removed it.
type TombstoneRowKey = (Digest, i64);

/// Replaces the tombstones that are not what the journal says, and those that are missing.
pub(super) fn restore(
    session: &DatabaseTransaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    let recorded: BTreeSet<TombstoneRowKey> =
        state.tombstones.iter().map(|((digest, _), seq)| (*digest, *seq)).collect();
    let entries = entries(session, recorded.iter().map(|(_, seq)| *seq).collect())?;
    let (mut right, mut wrong) = (BTreeSet::new(), BTreeSet::new());
    for row in session.rows(&format!("SELECT {TOMBSTONE} FROM tombstone t"), &[])? {
        let stored = tombstone(&row)?;
        let key = (stored.digest, stored.entry.cast_signed());
        let is_right =
            recorded.contains(&key) && entries.get(&key.1).is_some_and(|entry| is_recorded(&stored, entry));
        if is_right {
            right.insert(key)
        } else {
            wrong.insert(key)
        };
    }
    for (digest, seq) in &wrong {
        session.execute("DELETE FROM tombstone WHERE digest = $1 AND entry = $2", &[&digest, seq])?;
    }
    let mut missing: BTreeMap<i64, Vec<Digest>> = BTreeMap::new();
    for (digest, seq) in recorded.difference(&right) {
        missing.entry(*seq).or_default().push(*digest);
    }
    for (seq, digests) in &missing {
        if let Some(entry) = entries.get(seq) {
            add(session, (*seq, entry), digests)?;
        }
    }
    let missing = missing.into_values().flatten();
    let changed: BTreeSet<Digest> = wrong.into_iter().map(|(digest, _)| digest).chain(missing).collect();
    let restored = |digest| Repair { subject: Subject::Tombstone(digest), did: "restored from the journal" };
    repaired.extend(changed.into_iter().map(restored));
    Ok(())
}

/// Adds the tombstones of some of the digests that an entry removed.
fn add(
    session: &DatabaseTransaction<'_>,
    (seq, entry): (i64, &EntryText),
    digests: &[Digest],
) -> PostgresResult<()> {
    let (EntryChange::Remove { core, kind, reason, size, .. }, Some(at)) =
        (&entry.change, entry.milliseconds())
    else {
        return Ok(());
    };
    let captures: Vec<CaptureHash> = digests.iter().copied().map(CaptureHash).collect();
    let removal = Removal {
        seq: seq.cast_unsigned(),
        at,
        actor: entry.actor.as_deref(),
        core: *core,
        kind,
        captures: &captures,
        reason: reason.as_deref(),
        size: *size,
    };
    removal.add_tombstones_of(session, digests)
}
