//! The interface of reads.

use rusqlite::Connection;

use super::super::read::SqliteSnapshot;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::interface::{EngineStatistics, FullTextSnapshot, Snapshot};
use crate::storage::sql::SqlSnapshot;
use crate::storage::sqlite::error::{PayloadDefect, ReadFailure};
use crate::storage::sqlite::ids::blob_id;
use crate::storage::sqlite::schema;
use crate::storage::sqlite::stats::engine_statistics;
use crate::storage::{Result, StorageError};

impl SqlSnapshot for SqliteSnapshot<'_> {
    type Session = Connection;

    fn session(&self) -> &Connection {
        self.connection()
    }

    fn answer<T>(&self, outcome: rusqlite::Result<T>) -> Result<T> {
        Self::answer(self, outcome)
    }

    fn bytes(&self, core: CoreHash, capture: CaptureHash, blob: BlobHash) -> Result<Vec<u8>> {
        let damaged = |defect| StorageError::damaged(core, capture, defect);
        let id = self.answer(blob_id(self.connection(), blob))?;
        let id = id.ok_or_else(|| damaged(PayloadDefect::Missing { blob }))?;
        self.payloads().bytes(id, blob).map_err(|failure| match failure {
            ReadFailure::Defect(defect) => damaged(defect),
            ReadFailure::Database(error) => self.failed(error),
        })
    }

    fn expect_journal_texts(&self) -> Result<()> {
        self.answer(schema::expect_journal_view(self.connection()))
    }
}

impl Snapshot for SqliteSnapshot<'_> {
    fn engine_statistics(&self) -> Result<Option<EngineStatistics>> {
        self.answer(engine_statistics(self.connection()).map(Some))
    }

    fn full_text(&self) -> Result<&dyn FullTextSnapshot> {
        Ok(self)
    }
}
