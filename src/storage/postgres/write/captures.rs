//! Changes of the rows of captures.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::artifacts;
use super::blobs::blobs_of;
use crate::artifact::SignatureState;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::Prepared;
use crate::storage::catalog::Row;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::parameters::ParameterRows;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlType::{Bytes, Flag, Integer, Text};
use crate::storage::sql::{SqlSession as _, SqlType, SqlValue, seal, warnings};

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
        let (mut added, mut changed) = (Vec::new(), Vec::new());
        for ((core, capture), change) in &self.0 {
            let (state, key_id) = change.signature.clone().unzip();
            let key_id = key_id.flatten();
            let mut values = vec![(*capture).into(), change.seen_at.into(), state.into(), key_id.into()];
            match (&change.row, ids.get(core)) {
                (Some(row), Some(artifact)) => {
                    let warnings = change.content.map_or(Ok(None), |content| warnings(content.admitted()))?;
                    values.extend([
                        row.entry.into(),
                        (*artifact).into(),
                        row.size.into(),
                        row.added_at.into(),
                        warnings.into(),
                        seal(*core, *capture).into(),
                        row.source_path.clone().into(),
                    ]);
                    added.push(values);
                }
                (Some(_), None) => {}
                (None, _) => {
                    values.extend([(*core).into(), change.is_signed.into()]);
                    changed.push(values);
                }
            }
        }
        update(session, changed)?;
        insert(session, added)
    }
}

/// The columns of captures that an insertion has, and those that an update has.
const ADDED: &[(&str, SqlType)] = &[
    ("digest", Bytes),
    ("seen_at", Integer),
    ("signature", Text),
    ("key_id", Text),
    ("id", Integer),
    ("artifact", Integer),
    ("size", Integer),
    ("added_at", Integer),
    ("warnings", Text),
    ("seal", Bytes),
    ("source_path", Text),
];
const CHANGED: &[(&str, SqlType)] = &[
    ("digest", Bytes),
    ("seen_at", Integer),
    ("signature", Text),
    ("key_id", Text),
    ("core", Bytes),
    ("is_signed", Flag),
];

fn insert(session: &DatabaseTransaction<'_>, rows: Vec<Vec<SqlValue>>) -> PostgresResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let count = rows.len() as u64;
    let rows = ParameterRows::new(ADDED, rows);
    let (names, source) = (rows.names(), rows.source());
    let sql = format!(
        "INSERT INTO capture ({names}) SELECT * FROM {source} ON CONFLICT (digest, artifact) DO NOTHING"
    );
    if session.execute(&sql, rows.parameters())? < count {
        // A capture that was lost was added again.
        let former = format!(
            "SELECT c.id FROM capture c JOIN {source} ON c.digest = n.digest AND c.artifact = n.artifact
              WHERE c.id <> n.id"
        );
        let former = session.rows(&former, rows.parameters())?;
        let former = former.iter().map(|row| Ok(row.integer(0)?)).collect::<PostgresResult<Vec<i64>>>()?;
        artifacts::delete_captures(session, &former)?;
        session.execute(&sql, rows.parameters())?;
    }
    Ok(())
}

fn update(session: &DatabaseTransaction<'_>, rows: Vec<Vec<SqlValue>>) -> PostgresResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows = ParameterRows::new(CHANGED, rows);
    let sql = format!(
        "UPDATE capture c SET seen_at = coalesce(n.seen_at, c.seen_at),
           signature = CASE WHEN n.is_signed THEN n.signature ELSE c.signature END,
           key_id = CASE WHEN n.is_signed THEN n.key_id ELSE c.key_id END
           FROM {} JOIN artifact a ON a.core = n.core
          WHERE c.artifact = a.id AND c.digest = n.digest",
        rows.source()
    );
    session.execute(&sql, rows.parameters()).map(drop)
}
