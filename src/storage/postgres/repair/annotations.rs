//! Restoring tags, notes, pins, labels and manual links from the journal. Those of missing artifacts are skipped, and those
//! that the journal does not have are kept.

use postgres::Row;

use crate::storage::check::journal_state::{JournalState, LabelEntry};
use crate::storage::check::{Repair, Subject};
use crate::storage::entry::Entry;
use crate::storage::postgres::check::entries::entries;
use crate::storage::postgres::columns::{core, text};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::write::annotations::{ANNOTATIONS, AnnotationColumns};

impl AnnotationColumns {
    /// Inserts those rows that are missing, and corrects those that differ. `sql` has them as `n`, and returns what
    /// `subject` reads.
    fn restore(
        &self,
        session: &DatabaseTransaction<'_>,
        sql: &str,
        subject: impl Fn(&Row) -> PostgresResult<Subject>,
        repaired: &mut Vec<Repair>,
    ) -> PostgresResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        for row in session.rows(&format!("{ANNOTATIONS} {sql}"), &self.parameters())? {
            repaired.push(Repair { subject: subject(&row)?, did: "restored from the journal" });
        }
        Ok(())
    }
}

/// Restores what the journal records.
pub(super) fn restore(
    session: &DatabaseTransaction<'_>,
    state: &JournalState,
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    rows(session, state.tags.values())?.restore(
        session,
        "INSERT INTO tag AS t (name, artifact, at) SELECT name, artifact, at FROM n
         ON CONFLICT (name) DO UPDATE SET artifact = excluded.artifact, at = excluded.at
          WHERE (t.artifact, t.at) <> (excluded.artifact, excluded.at) RETURNING t.name",
        |row| text(row, 0).map(Subject::Tag),
        repaired,
    )?;
    rows(session, state.notes.values())?.restore(
        session,
        "INSERT INTO note AS t (artifact, text, folded, at) SELECT artifact, text, folded, at FROM n
         ON CONFLICT (artifact) DO UPDATE SET text = excluded.text, folded = excluded.folded, at = excluded.at
          WHERE (t.text, t.folded, t.at) <> (excluded.text, excluded.folded, excluded.at)
         RETURNING (SELECT core FROM artifact a WHERE a.id = t.artifact)",
        |row| core(row, 0).map(Subject::Note),
        repaired,
    )?;
    rows(session, state.pins.values())?.restore(
        session,
        "INSERT INTO pin AS t (artifact, note, at) SELECT artifact, text, at FROM n
         ON CONFLICT (artifact) DO UPDATE SET note = excluded.note, at = excluded.at
          WHERE (t.note, t.at) IS DISTINCT FROM (excluded.note, excluded.at)
         RETURNING (SELECT core FROM artifact a WHERE a.id = t.artifact)",
        |row| core(row, 0).map(Subject::Pin),
        repaired,
    )?;
    labels(state).restore(
        session,
        "INSERT INTO label AS t (artifact, key, value, at) SELECT artifact, name, text, at FROM n
         ON CONFLICT (artifact, key) DO UPDATE SET value = excluded.value, at = excluded.at
          WHERE (t.value, t.at) <> (excluded.value, excluded.at)
         RETURNING (SELECT core FROM artifact a WHERE a.id = t.artifact), t.key",
        |row| Ok(Subject::Label { core: core(row, 0)?, key: text(row, 1)? }),
        repaired,
    )?;
    rows(session, state.links.values())?.restore(
        session,
        "INSERT INTO link AS t (source, relation, target, note, at)
         SELECT n.artifact, n.name, b.id, n.text, n.at FROM n JOIN artifact b ON b.core = n.target
         ON CONFLICT (source, relation, target) DO UPDATE SET note = excluded.note, at = excluded.at
          WHERE (t.note, t.at) IS DISTINCT FROM (excluded.note, excluded.at)
         RETURNING (SELECT core FROM artifact a WHERE a.id = t.source), t.relation,
                   (SELECT core FROM artifact a WHERE a.id = t.target)",
        |row| Ok(Subject::Link { source: core(row, 0)?, relation: text(row, 1)?, target: core(row, 2)? }),
        repaired,
    )
}

/// Returns the rows that entries set.
fn rows<'s>(
    session: &DatabaseTransaction<'_>,
    seqs: impl Iterator<Item = &'s i64>,
) -> PostgresResult<AnnotationColumns> {
    let mut rows = AnnotationColumns::default();
    for entry in entries(session, seqs.copied().collect())?.into_values() {
        let Some(at) = entry.milliseconds() else { continue };
        match &entry.change {
            Entry::Tag { core, name } => rows.add((*core, *core), name, None, at),
            Entry::Note { core, note } | Entry::Pin { core, note } => {
                rows.add((*core, *core), "", note.as_deref(), at);
            }
            Entry::Link { source, relation, target, note } => {
                rows.add((*source, *target), relation, note.as_deref(), at);
            }
            _ => {}
        }
    }
    Ok(rows)
}

fn labels(state: &JournalState) -> AnnotationColumns {
    let mut rows = AnnotationColumns::default();
    for ((core, key), LabelEntry { value, at, .. }) in &state.labels {
        if let Some(at) = at {
            rows.add((*core, *core), key, Some(value), *at);
        }
    }
    rows
}
