//! Restoring the records of removals from the journal.

use std::collections::BTreeSet;

use crate::digest::Digest;
use crate::storage::Tombstone;
use crate::storage::check::journal_state::JournalState;
use crate::storage::check::{Repair, Subject};
use crate::storage::entry::{Entry, EntryText};
use crate::storage::postgres::check::catalog::is_recorded;
use crate::storage::postgres::check::entries::entries;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::snapshot::tombstones::{TOMBSTONE, tombstone};
use crate::storage::postgres::write::removal::insert_tombstones;

/// A removed digest and the entry that removed it.
type TombstoneRowKey = (Digest, i64);

/// Replaces the tombstones that are not what the journal says, and those that are missing.
pub(super) fn restore(
    session: &DatabaseTransaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    let known: BTreeSet<TombstoneRowKey> =
        state.tombstones.iter().map(|((digest, _), seq)| (*digest, *seq)).collect();
    let entries = entries(session, known.iter().map(|(_, seq)| *seq).collect())?;
    let (mut right, mut wrong) = (BTreeSet::new(), BTreeSet::new());
    for row in session.rows(&format!("SELECT {TOMBSTONE} FROM tombstone t"), &[])? {
        let stored = tombstone(&row)?;
        let key = (stored.digest, stored.entry.cast_signed());
        let is_right =
            known.contains(&key) && entries.get(&key.1).is_some_and(|entry| is_recorded(&stored, entry));
        if is_right {
            right.insert(key)
        } else {
            wrong.insert(key)
        };
    }
    for (digest, seq) in &wrong {
        session.execute("DELETE FROM tombstone WHERE digest = $1 AND entry = $2", &[&digest, seq])?;
    }
    let missing: Vec<Tombstone> = known
        .difference(&right)
        .filter_map(|(digest, seq)| recorded(*digest, *seq, entries.get(seq)?))
        .collect();
    insert_tombstones(session, &missing)?;
    let missing = missing.into_iter().map(|tombstone| tombstone.digest);
    let changed: BTreeSet<Digest> = wrong.into_iter().map(|(digest, _)| digest).chain(missing).collect();
    let restored = |digest| Repair { subject: Subject::Tombstone(digest), did: "restored from the journal" };
    repaired.extend(changed.into_iter().map(restored));
    Ok(())
}

/// Returns the tombstone of a digest that an entry removed.
fn recorded(digest: Digest, seq: i64, entry: &EntryText) -> Option<Tombstone> {
    let Entry::Remove { core, kind, left, reason, size, .. } = &entry.change else { return None };
    Some(Tombstone {
        digest,
        entry: seq.cast_unsigned(),
        at: entry.at().ok()?,
        core: *core,
        kind: kind.clone(),
        actor: entry.actor.clone(),
        reason: reason.clone(),
        left: *left,
        size: *size,
    })
}
