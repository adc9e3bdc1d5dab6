//! Changes of the rows of captures.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::blobs::blobs_of;
use super::removal;
use crate::artifact::SignatureState;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::Prepared;
use crate::storage::catalog::Row;
use crate::storage::postgres::columns::{to_stored, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::{seal, warnings};

/// The state of a signature, and its key.
type SignatureRow = (String, Option<String>);

/// Changes of captures.
#[derive(Default)]
pub(super) struct CaptureChanges<'c>(BTreeMap<(CoreHash, CaptureHash), CaptureChange<'c>>);

#[derive(Default)]
struct CaptureChange<'c> {
    /// The row, which replaces one that is there.
    row: Option<AddedCapture>,
    content: Option<&'c Prepared>,
    seen_at: Option<i64>,
    /// Whether the signature changes.
    is_signed: bool,
    signature: Option<SignatureRow>,
}

struct AddedCapture {
    entry: u64,
    size: u64,
    added_at: i64,
    source_path: Option<String>,
}

impl<'c> CaptureChanges<'c> {
    fn change(&mut self, core: CoreHash, capture: CaptureHash) -> &mut CaptureChange<'c> {
        self.0.entry((core, capture)).or_default()
    }

    pub(super) fn add(&mut self, row: Row) {
        if let Row::Capture { core, capture, entry, size, added_at, seen_at, source_path } = row {
            let change = self.change(core, capture);
            change.row = Some(AddedCapture { entry, size, added_at, source_path });
            change.seen_at = Some(seen_at);
        }
    }

    pub(super) fn store(&mut self, core: CoreHash, capture: CaptureHash, content: &'c Prepared) {
        self.change(core, capture).content = Some(content);
    }

    pub(super) fn see(&mut self, core: CoreHash, capture: CaptureHash, at: i64) {
        self.change(core, capture).seen_at = Some(at);
    }

    pub(super) fn sign(&mut self, core: CoreHash, capture: CaptureHash, signature: Option<SignatureRow>) {
        let change = self.change(core, capture);
        change.is_signed = true;
        change.signature = signature.filter(|(state, _)| SignatureState::named(state).is_some());
    }

    /// Returns the captures that are added, each with the core hash of its artifact, its number and its content.
    pub(super) fn contents(&self) -> impl Iterator<Item = (CoreHash, i64, &'c Prepared)> {
        self.0.iter().filter_map(|((core, _), change)| {
            Some((*core, change.row.as_ref()?.entry.cast_signed(), change.content?))
        })
    }

    /// Returns the blobs of the captures that are added.
    pub(super) fn blobs(&self) -> BTreeSet<BlobHash> {
        blobs_of(self.contents().map(|(.., content)| content))
    }

    /// Writes the rows of captures of artifacts with these numbers, and changes others.
    pub(super) fn write(
        &self,
        session: &DatabaseTransaction<'_>,
        ids: &HashMap<CoreHash, i64>,
    ) -> PostgresResult<()> {
        let (mut added, mut changed) = (CaptureColumns::default(), CaptureColumns::default());
        for ((core, capture), change) in &self.0 {
            let columns = match (&change.row, ids.get(core)) {
                (Some(row), Some(artifact)) => {
                    let warnings = change.content.map_or(Ok(None), |content| warnings(content.admitted()))?;
                    added.add_row(row, *artifact, seal(*core, *capture), warnings);
                    &mut added
                }
                (Some(_), None) => continue,
                (None, _) => &mut changed,
            };
            columns.add(*core, *capture, change);
        }
        changed.update(session)?;
        added.insert(session)
    }
}

#[derive(Default)]
struct CaptureColumns<'r> {
    cores: Vec<CoreHash>,
    captures: Vec<CaptureHash>,
    seen: Vec<Option<i64>>,
    are_signed: Vec<bool>,
    states: Vec<Option<&'r str>>,
    key_ids: Vec<Option<String>>,
    ids: Vec<i64>,
    artifacts: Vec<i64>,
    sizes: Vec<i64>,
    added: Vec<i64>,
    warnings: Vec<Option<String>>,
    seals: Vec<Vec<u8>>,
    paths: Vec<Option<String>>,
}

impl<'r> CaptureColumns<'r> {
    fn add(&mut self, core: CoreHash, capture: CaptureHash, change: &'r CaptureChange<'_>) {
        let signature = change.signature.as_ref();
        self.cores.push(core);
        self.captures.push(capture);
        self.seen.push(change.seen_at);
        self.are_signed.push(change.is_signed);
        self.states.push(signature.map(|(state, _)| state.as_str()));
        let key_id = signature.and_then(|(_, key_id)| key_id.as_deref());
        self.key_ids.push(key_id.map(|key_id| to_stored(key_id).into_owned()));
    }

    fn add_row(&mut self, row: &AddedCapture, artifact: i64, seal: [u8; 16], warnings: Option<String>) {
        self.ids.push(row.entry.cast_signed());
        self.artifacts.push(artifact);
        self.sizes.push(row.size.cast_signed());
        self.added.push(row.added_at);
        self.warnings.push(warnings);
        self.seals.push(seal.to_vec());
        self.paths.push(row.source_path.as_deref().map(|path| to_stored(path).into_owned()));
    }

    fn insert(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.ids.is_empty() {
            return Ok(());
        }
        if self.try_insert(session)? < self.ids.len() as u64 {
            // A capture that was lost was added again.
            let rows = session.rows(
                "SELECT c.id FROM capture c
                   JOIN unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS n (digest, artifact, id)
                     ON c.digest = n.digest AND c.artifact = n.artifact
                  WHERE c.id <> n.id",
                &[&self.captures, &self.artifacts, &self.ids],
            )?;
            let former = rows.iter().map(|row| value(row, 0)).collect::<PostgresResult<Vec<i64>>>()?;
            removal::delete_captures(session, &former)?;
            self.try_insert(session)?;
        }
        Ok(())
    }

    /// Inserts the rows of captures that are not there, and returns their number.
    fn try_insert(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<u64> {
        session.execute(
            "INSERT INTO capture (digest, seen_at, signature, key_id, id, artifact, size, added_at, warnings, seal,
                                  source_path)
             SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[],
                                  $7::bigint[], $8::bigint[], $9::text[], $10::bytea[], $11::text[])
             ON CONFLICT (digest, artifact) DO NOTHING",
            &[
                &self.captures,
                &self.seen,
                &self.states,
                &self.key_ids,
                &self.ids,
                &self.artifacts,
                &self.sizes,
                &self.added,
                &self.warnings,
                &self.seals,
                &self.paths,
            ],
        )
    }

    fn update(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.captures.is_empty() {
            return Ok(());
        }
        session.execute(
            "UPDATE capture c SET seen_at = coalesce(n.seen_at, c.seen_at),
               signature = CASE WHEN n.is_signed THEN n.signature ELSE c.signature END,
               key_id = CASE WHEN n.is_signed THEN n.key_id ELSE c.key_id END
               FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::boolean[], $5::text[], $6::text[])
                 AS n (core, digest, seen_at, is_signed, signature, key_id) JOIN artifact a ON a.core = n.core
              WHERE c.artifact = a.id AND c.digest = n.digest",
            &[&self.cores, &self.captures, &self.seen, &self.are_signed, &self.states, &self.key_ids],
        )?;
        Ok(())
    }
}
