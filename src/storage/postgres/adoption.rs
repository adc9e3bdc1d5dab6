//! Adoption of the journal of another vault. The row of the last entry, which every writer locks, says that the vault is an
//! incomplete copy.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::DateTime;

use super::change::removal::{Removal, delete};
use super::columns::value;
use super::error::PostgresResult;
use super::journal::PostgresJournalWriter;
use super::parameter::Parameter;
use super::put::{Blobs, adopt_additions};
use super::session::DatabaseTransaction;
use super::text::to_stored;
use super::vault::PostgresStorage;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::entry::EntryChange;
use crate::storage::interface::{AdoptedEntry, Adoption, CaptureTarget};
use crate::storage::recorded::{self, RecordedEntry};
use crate::storage::{BUSY_TIMEOUT, Head, Prepared, Result};

/// The pause before a transaction that others interfered with is run again.
const PAUSE: Duration = Duration::from_millis(100);

impl Adoption for PostgresStorage {
    fn is_incomplete(&self) -> Result<bool> {
        let read = || {
            let session = DatabaseTransaction::to_read(&self.server)?;
            let row = session.row("SELECT is_incomplete FROM head WHERE id = 1", &[])?;
            row.map_or(Ok(false), |row| value(&row, 0))
        };
        read().map_err(|failure| failure.at(self.server.name()))
    }

    fn begin(&self) -> Result<Head> {
        self.retry(|_| {
            let (session, recorder, is_incomplete) = self.lock()?;
            if is_incomplete {
                return Ok(recorder.head());
            }
            let has_artifacts = session.row("SELECT 1 FROM artifact LIMIT 1", &[])?.is_some();
            if recorder.head().seq > 0 || has_artifacts {
                return Err(recorded::not_empty().into());
            }
            session.execute("UPDATE head SET is_incomplete = true WHERE id = 1", &[])?;
            session.commit()?;
            Ok(recorder.head())
        })
    }

    fn adopt(&self, entries: &[AdoptedEntry<'_>]) -> Result<Head> {
        let batch: Vec<&Prepared> = entries.iter().filter_map(|entry| entry.content).collect();
        let mut blobs = Blobs::new(&batch);
        let adopted = self.retry(|attempt| {
            // Nothing is locked meanwhile.
            blobs.store_external(&self.server)?;
            self.try_to_adopt(entries, &mut blobs, attempt)
        });
        if adopted.is_err() {
            // Names that were added may not be in the database.
            self.names.set(Arc::default());
        }
        adopted
    }

    fn finish(&self, head: Head) -> Result<()> {
        self.retry(|attempt| {
            let (session, recorder, is_incomplete) = self.lock()?;
            if recorder.head() != head || !(is_incomplete || attempt > 0) {
                return Err(recorded::not_begun().into());
            }
            session.execute("UPDATE head SET is_incomplete = false WHERE id = 1", &[])?;
            session.commit()
        })
    }
}

impl PostgresStorage {
    /// Runs `work` again from the beginning if another transaction interfered or the connection was lost. It gets the
    /// number of attempts before.
    fn retry<T>(&self, mut work: impl FnMut(u32) -> PostgresResult<T>) -> Result<T> {
        let begun = Instant::now();
        let mut attempt = 0;
        loop {
            match work(attempt) {
                Err(failure) if failure.can_be_retried() && begun.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(PAUSE);
                    attempt += 1;
                }
                outcome => return outcome.map_err(|failure| failure.at(self.server.name())),
            }
        }
    }

    /// Begins a transaction that holds the writer lock. Returns whether the vault is an incomplete copy.
    fn lock(&self) -> PostgresResult<(DatabaseTransaction<'_>, PostgresJournalWriter, bool)> {
        let session = DatabaseTransaction::to_write(&self.server, BUSY_TIMEOUT)?;
        let (recorder, is_incomplete) =
            PostgresJournalWriter::lock_any(&session, None, DateTime::UNIX_EPOCH)?;
        Ok((session, recorder, is_incomplete))
    }

    fn try_to_adopt(
        &self,
        entries: &[AdoptedEntry<'_>],
        blobs: &mut Blobs<'_>,
        attempt: u32,
    ) -> PostgresResult<Head> {
        let (session, mut recorder, is_incomplete) = self.lock()?;
        if !is_incomplete {
            return Err(recorded::not_begun().into());
        }
        // The answer to the commit of an earlier attempt may have been lost.
        if attempt > 0 && entries.last().is_some_and(|last| last.entry.head() == recorder.head()) {
            return Ok(recorder.head());
        }
        let head = recorded::check(recorder.head(), entries)?;
        let mut names = None;
        let mut rest = entries;
        while let [first, others @ ..] = rest {
            let run = run(rest);
            if run.is_empty() {
                recorder.adopt(first.entry)?;
                recorder.flush(&session)?;
                apply(&session, first.entry)?;
                rest = others;
            } else {
                names = Some(adopt_additions(&session, &self.names, &mut recorder, (&run, &mut *blobs))?);
                rest = rest.get(run.len()..).unwrap_or_default();
            }
        }
        session.commit()?;
        if let Some(names) = names {
            self.names.set(names);
        }
        Ok(head)
    }
}

/// Returns the first entries, up to one that does more than to add a capture which those before it do not add, or to record
/// the signature of one that they add.
fn run<'e, 'p>(entries: &'e [AdoptedEntry<'p>]) -> Vec<&'e AdoptedEntry<'p>> {
    let mut added = BTreeSet::new();
    let belongs = |entry: &&AdoptedEntry<'_>| match &entry.entry.change {
        EntryChange::Add { capture, core, .. } => {
            entry.content.is_none() || added.insert(CaptureTarget { capture: *capture, artifact: *core })
        }
        EntryChange::Signature { capture, core, .. } => {
            added.contains(&CaptureTarget { capture: *capture, artifact: *core })
        }
        EntryChange::Gc {} | EntryChange::Reindex {} | EntryChange::Repair {} => true,
        _ => false,
    };
    entries.iter().take_while(belongs).collect()
}

/// Makes the change of an entry that adds no capture.
fn apply(session: &DatabaseTransaction<'_>, entry: &RecordedEntry) -> PostgresResult<()> {
    let at = entry.at.timestamp_millis();
    match &entry.change {
        EntryChange::Seen { captures, cores } => see(session, entry, captures, cores),
        EntryChange::Signature { capture, core, key_id, state } => run_for(
            session,
            "UPDATE capture c SET signature = $3, key_id = $4 FROM artifact a
              WHERE a.id = c.artifact AND a.core = $1 AND c.digest = $2",
            &[core, capture, &to_stored(state), &key_id.as_deref().map(to_stored)],
        ),
        EntryChange::Remove { captures, core, kind, reason, size, .. } => {
            let sql = "SELECT id FROM artifact WHERE core = $1";
            if let Some(row) = session.row(sql, &[core])? {
                delete(session, value(&row, 0)?, entry.at)?;
            }
            let (seq, actor, reason) = (entry.record.seq, entry.actor.as_deref(), reason.as_deref());
            Removal { seq, at, actor, core: *core, kind, captures, reason, size: *size }
                .add_tombstones(session)
        }
        EntryChange::AllowRemoved { core } => {
            run_for(session, "DELETE FROM tombstone WHERE core = $1", &[core])
        }
        EntryChange::Tag { .. } | EntryChange::Untag { .. } => apply_tag(session, entry),
        EntryChange::Note { .. } | EntryChange::Pin { .. } | EntryChange::Unpin { .. } => {
            apply_text(session, entry)
        }
        EntryChange::Label { .. } | EntryChange::Unlabel { .. } => apply_labels(session, entry),
        EntryChange::Link { .. } | EntryChange::Unlink { .. } => apply_link(session, entry),
        EntryChange::Add { .. } | EntryChange::Gc {} | EntryChange::Reindex {} | EntryChange::Repair {} => {
            Ok(())
        }
    }
}

fn run_for(
    session: &DatabaseTransaction<'_>,
    sql: &str,
    parameters: &[&dyn Parameter],
) -> PostgresResult<()> {
    session.execute(sql, parameters).map(drop)
}

/// Captures were seen again. The position of an artifact is that of its last capture in the entry.
fn see(
    session: &DatabaseTransaction<'_>,
    entry: &RecordedEntry,
    captures: &[CaptureHash],
    cores: &[CoreHash],
) -> PostgresResult<()> {
    let at = entry.at.timestamp_millis();
    let base = (entry.record.seq << 20).cast_signed();
    let parameters: [&dyn Parameter; 4] = [&captures, &cores, &at, &base];
    let seen = "unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS n (digest, core, position)
                JOIN artifact b ON b.core = n.core JOIN capture d ON d.artifact = b.id AND d.digest = n.digest";
    let sql =
        format!("UPDATE capture c SET seen_at = $3 FROM (SELECT d.id FROM {seen}) AS s WHERE c.id = s.id");
    run_for(session, &sql, &parameters[..3])?;
    let sql = format!(
        "UPDATE artifact a SET seen_at = $3, arrival = $4 + s.position - 1
           FROM (SELECT b.id, max(n.position) AS position FROM {seen} GROUP BY b.id) AS s WHERE a.id = s.id"
    );
    run_for(session, &sql, &parameters)
}

fn apply_tag(session: &DatabaseTransaction<'_>, entry: &RecordedEntry) -> PostgresResult<()> {
    let (EntryChange::Tag { name, .. } | EntryChange::Untag { name }) = &entry.change else { return Ok(()) };
    let name = to_stored(name);
    run_for(session, "DELETE FROM tag WHERE name = $1", &[&name])?;
    let EntryChange::Tag { core, .. } = &entry.change else { return Ok(()) };
    let at = entry.at.timestamp_millis();
    run_for(
        session,
        "INSERT INTO tag (name, artifact, at) SELECT $1, id, $3 FROM artifact WHERE core = $2",
        &[&name, core, &at],
    )
}

fn apply_text(session: &DatabaseTransaction<'_>, entry: &RecordedEntry) -> PostgresResult<()> {
    let (table, core) = match &entry.change {
        EntryChange::Note { core, .. } => ("note", core),
        EntryChange::Pin { core, .. } | EntryChange::Unpin { core } => ("pin", core),
        _ => return Ok(()),
    };
    let of_core = format!("DELETE FROM {table} t USING artifact a WHERE a.id = t.artifact AND a.core = $1");
    run_for(session, &of_core, &[core])?;
    let at = entry.at.timestamp_millis();
    match &entry.change {
        EntryChange::Note { note: Some(text), .. } => run_for(
            session,
            "INSERT INTO note (artifact, text, folded, at) SELECT id, $2, $3, $4 FROM artifact WHERE core = $1",
            &[core, &to_stored(text), &text.to_lowercase().into_bytes(), &at],
        ),
        EntryChange::Pin { note, .. } => run_for(
            session,
            "INSERT INTO pin (artifact, note, at) SELECT id, $2, $3 FROM artifact WHERE core = $1",
            &[core, &note.as_deref().map(to_stored), &at],
        ),
        _ => Ok(()),
    }
}

fn apply_labels(session: &DatabaseTransaction<'_>, entry: &RecordedEntry) -> PostgresResult<()> {
    match &entry.change {
        EntryChange::Label { cores, labels } => {
            let keys: Vec<_> = labels.keys().map(|key| to_stored(key)).collect();
            let values: Vec<_> = labels.values().map(|value| to_stored(value)).collect();
            let at = entry.at.timestamp_millis();
            run_for(
                session,
                "INSERT INTO label (artifact, key, value, at)
                 SELECT a.id, n.key, n.value, $4 FROM artifact a, unnest($2::text[], $3::text[]) AS n (key, value)
                  WHERE a.core = ANY($1)
                 ON CONFLICT (artifact, key) DO UPDATE SET value = excluded.value, at = excluded.at",
                &[&cores, &keys, &values, &at],
            )
        }
        EntryChange::Unlabel { cores, keys } => {
            let keys: Vec<_> = keys.iter().map(|key| to_stored(key)).collect();
            run_for(
                session,
                "DELETE FROM label l USING artifact a WHERE a.id = l.artifact AND a.core = ANY($1) AND l.key = ANY($2)",
                &[&cores, &keys],
            )
        }
        _ => Ok(()),
    }
}

fn apply_link(session: &DatabaseTransaction<'_>, entry: &RecordedEntry) -> PostgresResult<()> {
    let (EntryChange::Link { relation, source, target, .. }
    | EntryChange::Unlink { relation, source, target }) = &entry.change
    else {
        return Ok(());
    };
    let relation = to_stored(relation);
    run_for(
        session,
        "DELETE FROM link l USING artifact s, artifact t
          WHERE s.core = $1 AND t.core = $3 AND l.source = s.id AND l.relation = $2 AND l.target = t.id",
        &[source, &relation, target],
    )?;
    let EntryChange::Link { note, .. } = &entry.change else { return Ok(()) };
    run_for(
        session,
        "INSERT INTO link (source, relation, target, note, at)
         SELECT s.id, $2, t.id, $4, $5 FROM artifact s, artifact t WHERE s.core = $1 AND t.core = $3",
        &[source, &relation, target, &note.as_deref().map(to_stored), &entry.at.timestamp_millis()],
    )
}
