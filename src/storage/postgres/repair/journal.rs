//! Repairs of the record of where the journal ends, and of what is stored beside the texts of entries.

use crate::storage::check::finding::DIFFERENT_ROW;
use crate::storage::check::{Finding, JournalReplay, Repair, Subject};
use crate::storage::entry::EntryText;
use crate::storage::postgres::check::rows::{entries, replay};
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

/// Gives entries the times and actions in their texts, which are chained. `defects` are those of the entries.
pub(super) fn restore_columns(
    session: &DatabaseTransaction<'_>,
    defects: &[Finding],
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    let defects = defects.iter().filter(|finding| finding.info == DIFFERENT_ROW);
    let seqs = defects.filter_map(|finding| match finding.subject {
        Subject::Entry(seq) => Some(seq),
        _ => None,
    });
    for (seq, entry) in entries(session, seqs.collect())? {
        if let Some(at) = EntryText::milliseconds(&entry) {
            session.execute("UPDATE journal SET at = $2 WHERE seq = $1", &[&seq, &at])?;
            repaired.push(Repair { subject: Subject::Entry(seq), did: "given the time of its text" });
        }
    }
    let mut different: Vec<(i64, String)> = Vec::new();
    session.each("SELECT seq, action, entry FROM journal ORDER BY seq", &[], &mut |row| {
        let written = text(row, 2).ok().and_then(|text| EntryText::action(&text).ok());
        let written = written.filter(|written| value::<&str>(row, 1).ok() != Some(written.as_str()));
        if let Some(written) = written {
            different.push((value(row, 0)?, written));
        }
        Ok(())
    })?;
    for (seq, action) in different {
        session.execute("UPDATE journal SET action = $2 WHERE seq = $1", &[&seq, &action])?;
        repaired.push(Repair { subject: Subject::Entry(seq), did: "given the action of its text" });
    }
    Ok(())
}
