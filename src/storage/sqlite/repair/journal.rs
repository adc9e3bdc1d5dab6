//! Numbers of the journal's entries, which the chain proves.

use rusqlite::Transaction;

use crate::digest::Digest;
use crate::storage::check::{Repair, Subject};
use crate::storage::journal::next;
use crate::storage::sqlite::schema;

/// Maximum number of entries that are tried at each number.
const ATTEMPTS: usize = 64;

/// Gives the entry that follows the first entries, according to the chain, the next number, as long as it has another one.
pub(super) fn renumber(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    schema::expect_journal_view(transaction)?;
    for _ in 0..ATTEMPTS {
        let Some((seq, own)) = moved_entry(transaction)? else { return Ok(()) };
        transaction.execute("UPDATE journal SET seq = ?2 WHERE seq = ?1", (seq, own))?;
        repaired.push(Repair { subject: Subject::Entry(own), did: "given its number again" });
    }
    Ok(())
}

/// Returns the number of the entry that follows the first entries without a gap, and the number that it should have.
fn moved_entry(transaction: &Transaction<'_>) -> rusqlite::Result<Option<(i64, i64)>> {
    let (last, chain): (i64, rusqlite::Result<Digest>) = transaction.query_row(
        "WITH first (seq) AS (SELECT min(seq) FROM journal j WHERE seq >= 1
                AND NOT EXISTS (SELECT 1 FROM journal n WHERE n.seq = j.seq + 1)
                AND EXISTS (SELECT 1 FROM journal WHERE seq = 1))
         SELECT coalesce(f.seq, 0), iif(f.seq IS NULL, zeroblob(32), j.chain)
           FROM first f LEFT JOIN journal j ON j.seq = f.seq",
        [],
        |row| Ok((row.get(0)?, row.get(1))),
    )?;
    let (Ok(chain), Some(own)) = (chain, last.checked_add(1)) else { return Ok(None) };
    let mut moved = transaction.prepare_cached(
        "SELECT j.seq, e.entry, j.chain FROM journal j JOIN journal_entries e ON e.seq = j.seq
          WHERE j.seq NOT BETWEEN 1 AND ?1 AND NOT EXISTS (SELECT 1 FROM journal p WHERE p.seq = j.seq - 1) LIMIT ?2",
    )?;
    let mut moved = moved.query((last, ATTEMPTS as u64))?;
    while let Some(row) = moved.next()? {
        // Damaged values prove nothing.
        let (Ok(text), Ok(follows)) = (row.get::<_, String>(1), row.get::<_, Digest>(2)) else { continue };
        if next(&chain, &text) == follows {
            return Ok(Some((row.get(0)?, own)));
        }
    }
    Ok(None)
}
