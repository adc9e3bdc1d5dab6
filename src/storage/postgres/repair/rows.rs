//! The rows of the catalog that follow from the journal alone.

use std::collections::{BTreeMap, HashMap};

use crate::artifact::Kind;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::annotations::ENDS;
use crate::storage::catalog::Row;
use crate::storage::check::{ExpectedCatalog, Repair, Subject};
use crate::storage::postgres::columns::{text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;
use crate::storage::seal::seal;
use crate::storage::sql::{self, AnnotationChanges};

/// The number of rows that are written at once.
const ROWS: usize = 2_000;

/// Writes the rows that follow from the journal, and deletes those that were in their place. Other rows are kept. `kinds` are
/// all that this program knows.
pub(super) fn write(
    session: &DatabaseTransaction<'_>,
    catalog: &ExpectedCatalog,
    kinds: &[Kind],
) -> PostgresResult<()> {
    let (mut artifacts, mut captures) = (ArtifactRows::default(), CaptureRows::default());
    let (mut annotations, mut tombstones) = (AnnotationChanges::default(), Vec::new());
    let numbers = kind_numbers(session, catalog, kinds)?;
    for row in catalog.rows() {
        match row {
            Row::Artifact { .. } => artifacts.add(&row, &numbers),
            Row::Capture { .. } => captures.add(row),
            Row::Signature { state, key_id, .. } => captures.sign(&state, key_id.as_deref()),
            Row::Tombstone(tombstone) => tombstones.push(tombstone),
            row => annotations.put(row),
        }
        if artifacts.ids.len() >= ROWS {
            std::mem::take(&mut artifacts).write(session)?;
        }
    }
    artifacts.write(session)?;
    captures.write(session)?;
    annotations.write(session)?;
    let digests: Vec<Digest> = tombstones.iter().map(|tombstone| tombstone.digest).collect();
    session.execute("DELETE FROM tombstone WHERE digest = ANY($1)", &[&digests])?;
    sql::put_tombstones(session, tombstones)
}

/// Returns the numbers of kinds by name, after inserting those of artifacts that are missing. They get the number that an
/// artifact of the kind has, so that roles still refer to them.
fn kind_numbers(
    session: &DatabaseTransaction<'_>,
    catalog: &ExpectedCatalog,
    kinds: &[Kind],
) -> PostgresResult<HashMap<String, i16>> {
    let mut first: BTreeMap<String, CoreHash> = BTreeMap::new();
    for row in catalog.rows() {
        if let Row::Artifact { core, kind, .. } = row {
            first.entry(kind).or_insert(core);
        }
    }
    for (name, core) in &first {
        let sql = "INSERT INTO kind (id, name, is_directory)
                   SELECT coalesce(
                     (SELECT kind FROM artifact WHERE core = $2 AND kind NOT IN (SELECT id FROM kind)),
                     greatest((SELECT max(id) FROM kind), (SELECT max(kind) FROM artifact), 0) + 1), $1, false
                    WHERE NOT EXISTS (SELECT 1 FROM kind WHERE name = $1)";
        session.execute(sql, &[name, core])?;
    }
    for kind in kinds {
        let sql = "UPDATE kind SET stated_by = $2, is_directory = $3
                    WHERE name = $1 AND (stated_by, is_directory) IS DISTINCT FROM ($2, $3)";
        session.execute(sql, &[&kind.name(), &kind.inverse_relation(), &kind.is_of_directories()])?;
    }
    let rows = session.rows("SELECT name, id FROM kind", &[])?;
    rows.iter().map(|row| Ok((text(row, 0)?, value(row, 1)?))).collect()
}

#[derive(Default)]
struct ArtifactRows {
    ids: Vec<i64>,
    cores: Vec<CoreHash>,
    kinds: Vec<i16>,
    added: Vec<i64>,
    seen: Vec<i64>,
    arrivals: Vec<i64>,
}

impl ArtifactRows {
    fn add(&mut self, row: &Row, numbers: &HashMap<String, i16>) {
        let Row::Artifact { core, entry, kind, added_at, seen_at, arrival } = row else { return };
        let Some(kind) = numbers.get(kind) else { return };
        self.ids.push(entry.cast_signed());
        self.cores.push(*core);
        self.kinds.push(*kind);
        self.added.push(*added_at);
        self.seen.push(*seen_at);
        self.arrivals.push(*arrival);
    }

    fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        let moved = "DELETE FROM artifact a USING unnest($1::bigint[], $2::bytea[]) AS n (id, core)
                      WHERE a.core = n.core AND a.id <> n.id";
        session.execute(moved, &[&self.ids, &self.cores])?;
        for action in [
            "UPDATE artifact a SET core = n.core, kind = n.kind, added_at = n.added_at, seen_at = n.seen_at,
               arrival = n.arrival FROM n
              WHERE a.id = n.id AND (a.core, a.kind, a.added_at, a.seen_at, a.arrival)
                    IS DISTINCT FROM (n.core, n.kind, n.added_at, n.seen_at, n.arrival)",
            "INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival)
             SELECT * FROM n WHERE NOT EXISTS (SELECT 1 FROM artifact a WHERE a.id = n.id)",
        ] {
            let sql = format!(
                "WITH n (id, core, kind, added_at, seen_at, arrival) AS (SELECT * FROM
                   unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[])) {action}"
            );
            session.execute(
                &sql,
                &[&self.ids, &self.cores, &self.kinds, &self.added, &self.seen, &self.arrivals],
            )?;
        }
        Ok(())
    }
}

/// Captures with their signatures.
#[derive(Default)]
struct CaptureRows {
    ids: Vec<i64>,
    cores: Vec<CoreHash>,
    hashes: Vec<CaptureHash>,
    sizes: Vec<i64>,
    added: Vec<i64>,
    seen: Vec<i64>,
    paths: Vec<Option<String>>,
    seals: Vec<Vec<u8>>,
    states: Vec<Option<String>>,
    keys: Vec<Option<String>>,
}

impl CaptureRows {
    fn add(&mut self, row: Row) {
        let Row::Capture { core, capture, entry, size, added_at, seen_at, source_path } = row else { return };
        self.ids.push(entry.cast_signed());
        self.cores.push(core);
        self.hashes.push(capture);
        self.sizes.push(size.cast_signed());
        self.added.push(added_at);
        self.seen.push(seen_at);
        self.paths.push(source_path.as_deref().map(|path| to_stored(path).into_owned()));
        self.seals.push(seal(core, capture).to_vec());
        self.states.push(None);
        self.keys.push(None);
    }

    /// Signs the capture that was added last.
    fn sign(&mut self, state: &str, key_id: Option<&str>) {
        if let (Some(last), Some(key)) = (self.states.last_mut(), self.keys.last_mut()) {
            *last = Some(to_stored(state).into_owned());
            *key = key_id.map(|key| to_stored(key).into_owned());
        }
    }

    /// Writes them without their warnings, which are derived from their bytes. Those whose bytes are missing are left out.
    fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let n = "WITH n (id, artifact, digest, size, added_at, seen_at, source_path, seal, signature, key_id) AS
                   (SELECT n.id, a.id, n.digest, n.size, n.added_at, n.seen_at, n.path, n.seal, n.state, n.key FROM
                      unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[],
                             $8::bytea[], $9::text[], $10::text[])
                        AS n (id, core, digest, size, added_at, seen_at, path, seal, state, key)
                      JOIN artifact a ON a.core = n.core WHERE EXISTS (SELECT 1 FROM blob b WHERE b.digest = n.digest))";
        for action in [
            // A row with another number than that of its entry was one of these.
            "DELETE FROM member m USING capture c, n
              WHERE m.capture = c.id AND c.artifact = n.artifact AND c.digest = n.digest AND c.id <> n.id",
            "DELETE FROM capture c USING n WHERE c.artifact = n.artifact AND c.digest = n.digest AND c.id <> n.id",
            "UPDATE capture c SET artifact = n.artifact, digest = n.digest, size = n.size, added_at = n.added_at,
               seen_at = n.seen_at, source_path = n.source_path, seal = n.seal, signature = n.signature, key_id = n.key_id
               FROM n WHERE c.id = n.id AND (c.artifact, c.digest, c.size, c.added_at, c.seen_at, c.source_path, c.seal,
                 c.signature, c.key_id) IS DISTINCT FROM (n.artifact, n.digest, n.size, n.added_at, n.seen_at,
                 n.source_path, n.seal, n.signature, n.key_id)",
            "INSERT INTO capture (id, artifact, digest, size, added_at, seen_at, source_path, seal, signature, key_id)
             SELECT * FROM n WHERE NOT EXISTS (SELECT 1 FROM capture c WHERE c.id = n.id)",
        ] {
            session.execute(
                &format!("{n} {action}"),
                &[
                    &self.ids,
                    &self.cores,
                    &self.hashes,
                    &self.sizes,
                    &self.added,
                    &self.seen,
                    &self.paths,
                    &self.seals,
                    &self.states,
                    &self.keys,
                ],
            )?;
        }
        Ok(())
    }
}

/// Deletes rows that refer to artifacts and captures that do not exist: others that are added could get their numbers.
pub(super) fn drop_strays(
    session: &DatabaseTransaction<'_>,
    repaired: &mut Vec<Repair>,
) -> PostgresResult<()> {
    let captures = ["member", "mention_list"].map(|table| (table, "capture", "capture"));
    let artifacts = ENDS.iter().map(|(table, column)| (*table, *column, "artifact"));
    for (table, column, parent) in artifacts.chain(captures) {
        let sql = format!(
            "DELETE FROM {table} x WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = x.{column})"
        );
        if session.execute(&sql, &[])? > 0 {
            let subject = Subject::Table(table.to_owned());
            repaired.push(Repair { subject, did: "removed rows that refer to missing ones" });
        }
    }
    Ok(())
}
