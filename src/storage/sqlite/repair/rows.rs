//! The rows of the catalog that follow from the journal alone.

use rusqlite::{OptionalExtension, Transaction};

use super::{blobs, types};
use crate::artifact::Kind;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::Tombstone;
use crate::storage::annotations::ENDS;
use crate::storage::catalog::{Row, RowChange};
use crate::storage::check::{ExpectedCatalog, Repair, Subject};
use crate::storage::seal::seal;
use crate::storage::sqlite::dictionaries::Dictionaries;
use crate::storage::sqlite::ids::{artifact_id, beginning, blob_id};
use crate::storage::sqlite::write::SqliteWriter;

/// Writes the rows that follow from the journal, and deletes those that were in their place. Other rows are kept. `kinds` are
/// all that this program knows.
pub(super) fn write(
    transaction: &Transaction<'_>,
    catalog: &ExpectedCatalog,
    kinds: &[Kind],
) -> rusqlite::Result<()> {
    types::drop_unreadable(transaction)?;
    for row in catalog.rows() {
        match row {
            Row::Artifact { .. } => write_artifact(transaction, &row)?,
            Row::Capture { .. } => write_capture(transaction, &row)?,
            Row::Tombstone(Tombstone { digest, .. }) => {
                let sql = "DELETE FROM tombstone WHERE digest = ?1";
                transaction.prepare_cached(sql)?.execute([digest.as_bytes()])?;
            }
            _ => {}
        }
    }
    transaction.execute("DELETE FROM capture WHERE artifact NOT IN (SELECT id FROM artifact)", [])?;
    let dictionaries = Dictionaries::default();
    let mut writer = SqliteWriter::new(transaction, &dictionaries, &|_| Ok(()))?;
    let mut is_stored = transaction.prepare("SELECT 1 FROM kind WHERE name = ?1")?;
    for kind in kinds {
        if is_stored.exists([kind.name()])? {
            writer.kind(*kind)?;
        }
    }
    for row in catalog.rows() {
        if !matches!(row, Row::Artifact { .. } | Row::Capture { .. }) {
            writer.execute(RowChange::Put(row))?;
        }
    }
    Ok(())
}

fn write_artifact(transaction: &Transaction<'_>, row: &Row) -> rusqlite::Result<()> {
    let Row::Artifact { core, entry, kind, added_at, seen_at, arrival } = row else { return Ok(()) };
    let (id, digest) = (entry.cast_signed(), core.0.as_bytes());
    transaction
        .prepare_cached("DELETE FROM artifact WHERE substr(core, 1, 8) = ?1 AND core = ?2 AND id <> ?3")?
        .execute((beginning(&core.0), digest, id))?;
    let known = transaction
        .prepare_cached("SELECT id FROM kind WHERE name = ?1")?
        .query_row([kind], |row| row.get(0))
        .optional()?;
    let kind: i64 = match known {
        Some(kind) => kind,
        // What else the program says of the kind is written with its artifacts.
        None => transaction
            .prepare_cached(
                "INSERT INTO kind (id, name) VALUES (
                   (SELECT max(kind) + 1 FROM artifact WHERE kind > (SELECT coalesce(max(id), 0) FROM kind)), ?1)
                 RETURNING id",
            )?
            .query_row([kind], |row| row.get(0))?,
    };
    transaction
        .prepare_cached(
            "INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE SET core = excluded.core, kind = excluded.kind, added_at = excluded.added_at,
               seen_at = excluded.seen_at, arrival = excluded.arrival",
        )?
        .execute((id, digest, kind, added_at, seen_at, arrival))
        .map(drop)
}

/// Writes a capture without its warnings, which are derived from its bytes.
fn write_capture(transaction: &Transaction<'_>, row: &Row) -> rusqlite::Result<()> {
    let Row::Capture { core, capture, entry, size, added_at, seen_at, source_path } = row else {
        return Ok(());
    };
    let Some(artifact) = artifact_id(transaction, *core)? else { return Ok(()) };
    let blob = BlobHash(capture.0);
    let blob = match blob_id(transaction, blob)? {
        Some(blob) => blob,
        None => blobs::insert(transaction, blob)?,
    };
    transaction
        .prepare_cached("DELETE FROM capture WHERE artifact = ?1 AND blob = ?2 AND id <> ?3")?
        .execute((artifact, blob, entry.cast_signed()))?;
    let source_entry =
        source_path.is_some().then(|| source_entry(transaction, *core, *capture)).transpose()?;
    transaction
        .prepare_cached(
            "INSERT INTO capture (id, artifact, blob, size, added_at, seen_at, seal, source_entry)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (id) DO UPDATE SET artifact = excluded.artifact, blob = excluded.blob, size = excluded.size,
               added_at = excluded.added_at, seen_at = excluded.seen_at, seal = excluded.seal,
               source_entry = excluded.source_entry",
        )?
        .execute((
            entry.cast_signed(),
            artifact,
            blob,
            size.cast_signed(),
            added_at,
            seen_at,
            seal(*core, *capture),
            source_entry.flatten(),
        ))?;
    transaction
        .prepare_cached("DELETE FROM signature WHERE capture = ?1")?
        .execute([entry.cast_signed()])
        .map(drop)
}

/// Returns the last entry that added a capture.
fn source_entry(
    transaction: &Transaction<'_>,
    core: CoreHash,
    capture: CaptureHash,
) -> rusqlite::Result<Option<i64>> {
    transaction
        .prepare_cached("SELECT max(seq) FROM journal WHERE core = ?1 AND capture = ?2")?
        .query_row((core.0.as_bytes(), capture.0.as_bytes()), |row| row.get(0))
}

/// Deletes rows that refer to artifacts and captures that do not exist.
pub(super) fn drop_strays(transaction: &Transaction<'_>, repaired: &mut Vec<Repair>) -> rusqlite::Result<()> {
    let captures = ["member", "signature", "mention_list"].map(|table| (table, "capture", "capture"));
    let derived = ["attribute", "identity", "name_mention"].map(|table| (table, "artifact"));
    let artifacts = ENDS.iter().chain(&derived).map(|(table, column)| (*table, *column, "artifact"));
    let values = [("attribute", "value", "attribute_value")];
    for (table, column, parent) in artifacts.chain(captures).chain(values) {
        let sql = format!("DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM {parent})");
        if transaction.execute(&sql, [])? > 0 {
            let subject = Subject::Table(table.to_owned());
            repaired.push(Repair { subject, did: "removed rows that refer to missing ones" });
        }
    }
    transaction.execute_batch(
        "DELETE FROM payload WHERE blob NOT IN (SELECT id FROM blob)
            AND blob NOT IN (SELECT base FROM payload WHERE base IS NOT NULL);",
    )
}
