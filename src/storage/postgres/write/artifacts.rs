//! Changes of the rows of artifacts.

use std::collections::{BTreeMap, HashMap};

use crate::artifact::CREATED_AT;
use crate::digest::CoreHash;
use crate::storage::catalog::Row;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::parameters::ParameterRows;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlType::{Bytes, Integer};
use crate::storage::sql::{SqlSession as _, SqlType, SqlValue};

/// Changes of artifacts.
#[derive(Default)]
pub(super) struct ArtifactChanges(BTreeMap<CoreHash, ArtifactChange>);

#[derive(Default)]
struct ArtifactChange {
    /// The row, which is inserted unless there is one.
    row: Option<NewArtifact>,
    /// When it was last added or seen, and its position in the order of that.
    arrival: Option<(i64, i64)>,
    /// The latest creation time that a new capture states.
    created_at: Option<i64>,
}

struct NewArtifact {
    entry: u64,
    kind: String,
    added_at: i64,
}

impl ArtifactChanges {
    pub(super) fn insert(&mut self, row: &Row) {
        if let Row::Artifact { core, entry, kind, added_at, seen_at, arrival } = row {
            let change = self.0.entry(*core).or_default();
            let new = || NewArtifact { entry: *entry, kind: kind.clone(), added_at: *added_at };
            change.row.get_or_insert_with(new);
            change.arrival.get_or_insert((*seen_at, *arrival));
        }
    }

    pub(super) fn arrive(&mut self, core: CoreHash, at: i64, arrival: i64) {
        self.0.entry(core).or_default().arrival = Some((at, arrival));
    }

    /// Takes the creation time from an attribute that has it.
    pub(super) fn date(&mut self, attribute: &Row) {
        if let Row::Attribute { core, name, number, .. } = attribute
            && name == CREATED_AT
        {
            let change = self.0.entry(*core).or_default();
            change.created_at = change.created_at.max(*number);
        }
    }

    /// Writes the changes. Returns the numbers of the artifacts to which captures are added.
    pub(super) fn write(
        self,
        session: &DatabaseTransaction<'_>,
        names: &NameRegistry,
    ) -> PostgresResult<HashMap<CoreHash, i64>> {
        let (mut added, mut changed) = (Vec::new(), Vec::new());
        for (core, change) in self.0 {
            let ArtifactChange { row, arrival, created_at } = change;
            let (seen_at, arrival) = arrival.unzip();
            let mut values = vec![core.into(), seen_at.into(), arrival.into(), created_at.into()];
            if let Some(NewArtifact { entry, kind, added_at }) = row {
                let missing = || PostgresError::damaged("a kind was not added");
                let kind = names.kind_id(&kind).ok_or_else(missing)?;
                values.extend([entry.into(), kind.into(), added_at.into()]);
                added.push(values);
            } else {
                changed.push(values);
            }
        }
        update(session, changed)?;
        insert(session, added)
    }
}

/// The columns of artifacts, of which an update has the first ones.
const ARTIFACT: &[(&str, SqlType)] = &[
    ("core", Bytes),
    ("seen_at", Integer),
    ("arrival", Integer),
    ("created_at", Integer),
    ("id", Integer),
    ("kind", Integer),
    ("added_at", Integer),
];
const CHANGED: usize = 4;

/// Inserts artifacts that are new, and updates the others. Returns their numbers.
fn insert(
    session: &DatabaseTransaction<'_>,
    rows: Vec<Vec<SqlValue>>,
) -> PostgresResult<HashMap<CoreHash, i64>> {
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = ParameterRows::new(ARTIFACT, rows);
    let sql = format!(
        "INSERT INTO artifact AS a ({}) SELECT * FROM {}
         ON CONFLICT (core) DO UPDATE SET seen_at = excluded.seen_at, arrival = excluded.arrival,
           created_at = greatest(a.created_at, excluded.created_at)
         RETURNING a.core, a.id",
        rows.names(),
        rows.source()
    );
    let rows = session.rows(&sql, rows.parameters())?;
    rows.iter().map(|row| Ok((row.core(0)?, row.integer(1)?))).collect()
}

fn update(session: &DatabaseTransaction<'_>, rows: Vec<Vec<SqlValue>>) -> PostgresResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows = ParameterRows::new(ARTIFACT.get(..CHANGED).unwrap_or_default(), rows);
    let sql = format!(
        "UPDATE artifact a SET seen_at = coalesce(n.seen_at, a.seen_at), arrival = coalesce(n.arrival, a.arrival),
           created_at = greatest(a.created_at, n.created_at)
           FROM {} WHERE a.core = n.core",
        rows.source()
    );
    session.execute(&sql, rows.parameters()).map(drop)
}
