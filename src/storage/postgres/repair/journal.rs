//! Repairs of the record of where the journal ends, and of what is stored beside the texts of entries.

use crate::storage::check::{JournalReplay, Repair, Subject};
use crate::storage::entry::EntryText;
use crate::storage::postgres::check::rows::replay;
use crate::storage::postgres::columns::{text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;

/// Restores the row that says where the journal ends, if the journal goes on beyond it, or has another chain value there. A row
/// that names a later entry stays: the end of the journal is lost.
pub(super) fn restore_end(session: &DatabaseTransaction<'_>) -> PostgresResult<Option<Repair>> {
    session.rows("SELECT seq FROM head WHERE id = 1 FOR UPDATE", &[])?;
    let Some(replay) = replay(session)?.filter(|replay| replay.check.defect.is_none()) else {
        return Ok(None);
    };
    let head = replay.check.head;
    let sql = "UPDATE head h SET seq = j.seq, at = j.at, chain = j.chain FROM journal j
                WHERE h.id = 1 AND j.seq = $1 AND h.seq <= j.seq
                  AND (h.seq, h.at, h.chain) IS DISTINCT FROM (j.seq, j.at, j.chain)";
    let is_changed = session.execute(sql, &[&head.seq.cast_signed()])? > 0;
    let subject = Subject::Table("head".to_owned());
    Ok(is_changed.then_some(Repair { subject, did: "set to the last entry" }))
}

/// Returns whether no entry is missing at the end.
pub(super) fn is_whole(session: &DatabaseTransaction<'_>, replay: &JournalReplay) -> PostgresResult<bool> {
    let head = replay.check.head;
    let sql = "SELECT 1 FROM head WHERE seq = $1 AND chain = $2";
    Ok(session.row(sql, &[&head.seq.cast_signed(), &head.chain])?.is_some())
}

/// Gives entries the times and actions in their texts, which are chained. Returns whether some had others.
pub(super) fn restore_columns(session: &DatabaseTransaction<'_>) -> PostgresResult<bool> {
    let mut different: Vec<(i64, i64, String)> = Vec::new();
    session.each("SELECT seq, at, action, entry FROM journal", &[], &mut |row| {
        let text = text(row, 3)?;
        if let (Ok(entry), Ok(action)) = (EntryText::parse(&text), EntryText::action(&text))
            && let Some(at) = entry.milliseconds()
            && (value::<i64>(row, 1).ok() != Some(at) || value::<&str>(row, 2).ok() != Some(action.as_str()))
        {
            different.push((value(row, 0)?, at, action));
        }
        Ok(())
    })?;
    for (seq, at, action) in &different {
        session.execute("UPDATE journal SET at = $2, action = $3 WHERE seq = $1", &[seq, at, action])?;
    }
    Ok(!different.is_empty())
}
