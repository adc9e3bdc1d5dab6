//! Reading the rows of artifacts, many artifacts at a time.

use std::collections::{HashMap, HashSet};

use super::DatabaseInspection;
use super::ahead::{ArtifactTable, InspectionPrefetch};
use crate::digest::BlobHash;
use crate::storage::Result;
use crate::storage::check::CheckedArtifact;
use crate::storage::postgres::bytes;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::sql::{
    DerivedTable, Dialect, SqlParameter, SqlRow, SqlSession as _, captured_rows, derived_rows,
};

/// Maximum number of artifacts, and of bytes unless one artifact has more.
const ARTIFACTS: usize = 200;
const BYTES: i64 = 16_000_000;

/// Returns the query for the rows of a table. The first column is the number of the artifact.
fn query(table: ArtifactTable) -> String {
    match table {
        ArtifactTable::Captures => captured_rows(Dialect::Postgres, "c.artifact = ANY(?1)"),
        ArtifactTable::Lists => "SELECT c.artifact, l.capture, l.group_id, l.digests, l.entries, l.firsts
               FROM capture c JOIN mention_list l ON l.capture = c.id WHERE c.artifact = ANY(?1)"
            .to_owned(),
        ArtifactTable::Edges => {
            "SELECT artifact, target, role, index, pointer FROM edge WHERE artifact = ANY(?1)".to_owned()
        }
        ArtifactTable::Derived(table) => derived_rows(Dialect::Postgres, table),
    }
}

/// The size of the stored bytes and of the lists of artifacts. Each blob is found by its key, whatever the planner knows of
/// the tables.
const SIZES: &str = "SELECT least(1e15,
    coalesce((SELECT sum((SELECT greatest(coalesce(octet_length(w.bytes), 0), w.size) FROM blob b
         JOIN blob w ON w.digest = coalesce(b.base, b.digest) WHERE b.digest = f.blob))
       FROM capture c CROSS JOIN LATERAL
         (SELECT c.digest AS blob UNION SELECT m.blob FROM member m WHERE m.capture = c.id) f
      WHERE c.artifact = n.id), 0) +
    coalesce((SELECT sum(octet_length(l.digests) + octet_length(l.entries)) FROM capture c
       JOIN mention_list l ON l.capture = c.id WHERE c.artifact = n.id), 0))::bigint
  FROM unnest($1::bigint[]) WITH ORDINALITY n (id, number) ORDER BY n.number";

impl DatabaseInspection<'_> {
    /// Reads the rows of the first of these artifacts, unless they were read already, and of as many of the others as fit.
    pub(super) fn prefetch(&self, artifacts: &[CheckedArtifact]) -> Result<()> {
        let Some(first) = artifacts.first() else { return Ok(()) };
        if self.ahead.borrow().artifacts.contains(&first.id) {
            return Ok(());
        }
        // What is damaged is a finding about one artifact, so that each is read alone then.
        let few = artifacts.get(..ARTIFACTS).unwrap_or(artifacts);
        let fitting = self.attempt(|| self.fitting(few))?.unwrap_or(0);
        let mut ahead = self.load(few.get(..fitting.max(1)).unwrap_or(few), fitting > 0)?;
        if ahead.is_damaged() && fitting > 1 {
            ahead = self.load(std::slice::from_ref(first), false)?;
        }
        self.ahead.replace(ahead);
        Ok(())
    }

    /// Returns how many of the artifacts fit into memory together.
    fn fitting(&self, artifacts: &[CheckedArtifact]) -> PostgresResult<usize> {
        let (mut sum, mut fitting) = (0, 0);
        for row in self.session.rows(SIZES, &[ids(artifacts)])? {
            sum += row.integer(0)?;
            if sum > BYTES {
                break;
            }
            fitting += 1;
        }
        Ok(fitting)
    }

    /// Reads the rows of artifacts, and their bytes if that is wanted.
    fn load(&self, artifacts: &[CheckedArtifact], with_bytes: bool) -> Result<InspectionPrefetch> {
        let mut ahead = InspectionPrefetch {
            artifacts: artifacts.iter().map(|artifact| artifact.id).collect(),
            ..InspectionPrefetch::default()
        };
        for table in ArtifactTable::all() {
            let rows = self.attempt(|| self.by_artifact(&query(table), artifacts))?;
            ahead.parts.insert(table, rows);
        }
        self.forget_replaced(artifacts, &mut ahead)?;
        if with_bytes {
            let mut blobs: HashSet<BlobHash> = HashSet::new();
            let members = ArtifactTable::Derived(DerivedTable::Member);
            for (table, column) in [(ArtifactTable::Captures, 2), (members, 3)] {
                let rows = ahead.parts.get(&table).and_then(|rows| rows.as_ref().ok());
                blobs.extend(
                    rows.into_iter().flatten().flat_map(|(_, rows)| rows).flat_map(|row| row.blob(column)),
                );
            }
            let blobs = Vec::from_iter(blobs);
            // Those that are not read are read one by one.
            ahead.blobs = self.attempt(|| bytes::examine(&self.session, &blobs))?.unwrap_or_default();
        }
        Ok(ahead)
    }

    fn by_artifact(
        &self,
        query: &str,
        artifacts: &[CheckedArtifact],
    ) -> PostgresResult<HashMap<i64, Vec<SqlRow>>> {
        let mut found: HashMap<i64, Vec<SqlRow>> = HashMap::new();
        for row in self.session.rows(query, &[ids(artifacts)])? {
            found.entry(row.integer(0)?).or_default().push(row);
        }
        Ok(found)
    }

    /// Drops the rows of artifacts that were removed since they were listed, and whose numbers others got.
    fn forget_replaced(&self, artifacts: &[CheckedArtifact], ahead: &mut InspectionPrefetch) -> Result<()> {
        let sql = "SELECT id, core FROM artifact WHERE id = ANY($1)";
        let Ok(rows) = self.attempt(|| self.by_artifact(sql, artifacts))? else { return Ok(()) };
        for artifact in artifacts {
            let Some(rows) = rows.get(&artifact.id) else { continue };
            if !rows.iter().any(|row| row.core(1).is_ok_and(|stored| stored == artifact.core)) {
                ahead.forget(artifact.id);
            }
        }
        Ok(())
    }
}

fn ids(artifacts: &[CheckedArtifact]) -> SqlParameter {
    artifacts.iter().map(|artifact| artifact.id).collect()
}
