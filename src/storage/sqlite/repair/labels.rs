//! Restoring labels from the journal.

use rusqlite::Transaction;

use crate::storage::check::journal_state::{JournalState, LabelEntry};
use crate::storage::check::{Repair, Subject};
use crate::storage::sqlite::annotations::put_label;
use crate::storage::sqlite::ids::artifact_id;
use crate::storage::sqlite::repair::changed;

/// Restores the labels that the journal records. Those of missing artifacts are skipped.
pub(super) fn restore(
    transaction: &Transaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> rusqlite::Result<()> {
    // A new value could get the number of a missing one.
    let strays = "DELETE FROM label WHERE value NOT IN (SELECT id FROM label_value)";
    if changed(transaction, strays, [])? {
        let subject = Subject::Table("label".to_owned());
        repaired.push(Repair { subject, did: "removed rows that refer to missing values" });
    }
    for ((core, key), LabelEntry { value, at, .. }) in &state.labels {
        let (Some(artifact), Some(at)) = (artifact_id(transaction, *core)?, *at) else { continue };
        let stored: Vec<(String, Option<i64>)> = transaction
            .prepare_cached(
                "SELECT v.value, l.at FROM label l CROSS JOIN label_value v ON v.id = l.value
                  WHERE l.artifact = ?1 AND v.key = ?2",
            )?
            .query_map((artifact, key), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        if !matches!(stored.as_slice(), [(known, set)] if *known == **value && *set == Some(at)) {
            put_label(transaction, artifact, (key, value), at)?;
            let subject = Subject::Label { core: *core, key: key.to_string() };
            repaired.push(Repair { subject, did: "restored from the journal" });
        }
    }
    Ok(())
}
