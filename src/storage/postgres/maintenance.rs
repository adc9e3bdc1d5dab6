//! Maintenance of a vault in a database. Its files are the server's, whose own tools check, back up and vacuum them.

use chrono::{DateTime, Utc};

use super::columns::count;
use super::error::{Failure, Outcome};
use super::journal::Recorder;
use super::session::Session;
use super::vault::PostgresStorage;
use crate::storage::interface::{Erasure, Maintenance, Reclaimable, Reclaimed, Remnant};
use crate::storage::journal::Event;
use crate::storage::{PATIENCE, Result};

/// Blobs that nothing has: those of a batch whose artifacts were removed while it was stored.
const UNREFERENCED: &str = "FROM blob b WHERE NOT EXISTS (SELECT 1 FROM member m WHERE m.blob = b.digest)";

impl PostgresStorage {
    fn count_reclaimable(session: &Session<'_>) -> Outcome<Reclaimable> {
        let sql = format!("SELECT count(*), coalesce(sum(octet_length(b.bytes)), 0)::bigint {UNREFERENCED}");
        let row = session.row(&sql, &[])?.ok_or_else(|| Failure::damaged("a count has no row"))?;
        Ok(Reclaimable { blobs: count(&row, 0)?, blob_bytes: count(&row, 1)?, ..Reclaimable::default() })
    }

    fn reclaim_blobs(&self, at: DateTime<Utc>) -> Outcome<Option<Reclaimed>> {
        let session = Session::to_write(&self.server, PATIENCE)?;
        let mut recorder = Recorder::lock(&session, self.actor(), at)?;
        let found = Self::count_reclaimable(&session)?;
        if found.blobs == 0 {
            return Ok(None);
        }
        session.execute(&format!("DELETE {UNREFERENCED}"), &[])?;
        let event = Event::Gc {
            blobs: found.blobs,
            bytes_after: 0,
            bytes_before: found.blob_bytes,
            dictionaries: 0,
            recompressed: 0,
        };
        recorder.append(&event)?;
        recorder.flush(&session)?;
        session.commit()?;
        let (blobs, bytes_before) = (found.blobs, found.blob_bytes);
        Ok(Some(Reclaimed { blobs, bytes_before, is_complete: true, ..Reclaimed::default() }))
    }
}

impl Maintenance for PostgresStorage {
    fn reclaimable(&self) -> Result<Reclaimable> {
        let found = Session::to_read(&self.server).and_then(|session| Self::count_reclaimable(&session));
        found.map_err(|failure| failure.at(self.server.name()))
    }

    fn reclaim(&self, at: DateTime<Utc>) -> Result<Option<Reclaimed>> {
        self.reclaim_blobs(at).map_err(|failure| failure.at(self.server.name()))
    }

    fn erase(&self) -> Erasure {
        Erasure { remnants: vec![Remnant::Database] }
    }
}
