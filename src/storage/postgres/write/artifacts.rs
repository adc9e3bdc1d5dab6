//! Changes of the rows of artifacts.

use std::collections::{BTreeMap, HashMap};

use crate::artifact::CREATED_AT;
use crate::digest::CoreHash;
use crate::storage::catalog::Row;
use crate::storage::postgres::columns::{core, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::session::DatabaseTransaction;

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
        let (mut added, mut changed) = (ArtifactColumns::default(), ArtifactColumns::default());
        for (core, change) in self.0 {
            let ArtifactChange { row, arrival, created_at } = change;
            let columns = if let Some(NewArtifact { entry, kind, added_at }) = row {
                let missing = || PostgresError::damaged("a kind was not added");
                added.ids.push(entry.cast_signed());
                added.kinds.push(names.kind_id(&kind).ok_or_else(missing)?);
                added.added.push(added_at);
                &mut added
            } else {
                &mut changed
            };
            columns.cores.push(core);
            columns.seen.push(arrival.map(|(at, _)| at));
            columns.arrivals.push(arrival.map(|(_, arrival)| arrival));
            columns.created.push(created_at);
        }
        changed.update(session)?;
        added.insert(session)
    }
}

#[derive(Default)]
struct ArtifactColumns {
    cores: Vec<CoreHash>,
    seen: Vec<Option<i64>>,
    arrivals: Vec<Option<i64>>,
    created: Vec<Option<i64>>,
    ids: Vec<i64>,
    kinds: Vec<i16>,
    added: Vec<i64>,
}

impl ArtifactColumns {
    /// Inserts those that are new, and updates the others. Returns their numbers.
    fn insert(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<HashMap<CoreHash, i64>> {
        if self.cores.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = session.rows(
            "INSERT INTO artifact AS a (core, seen_at, arrival, created_at, id, kind, added_at)
             SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::smallint[],
                                  $7::bigint[])
             ON CONFLICT (core) DO UPDATE SET seen_at = excluded.seen_at, arrival = excluded.arrival,
               created_at = greatest(a.created_at, excluded.created_at)
             RETURNING a.core, a.id",
            &[
                &self.cores,
                &self.seen,
                &self.arrivals,
                &self.created,
                &self.ids,
                &self.kinds,
                &self.added,
            ],
        )?;
        rows.iter().map(|row| Ok((core(row, 0)?, value(row, 1)?))).collect()
    }

    fn update(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.cores.is_empty() {
            return Ok(());
        }
        session.execute(
            "UPDATE artifact a SET seen_at = coalesce(n.seen_at, a.seen_at), arrival = coalesce(n.arrival, a.arrival),
               created_at = greatest(a.created_at, n.created_at)
               FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[])
                 AS n (core, seen_at, arrival, created_at)
              WHERE a.core = n.core",
            &[&self.cores, &self.seen, &self.arrivals, &self.created],
        )?;
        Ok(())
    }
}
