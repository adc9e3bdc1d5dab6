//! The search index: the words of passages as `tsvector`, made by the tokenizer that all engines share.
//!
//! A vector has no room for every word and place of a long text. Then all words of the text are stored beside it, the
//! vector finds more than what matches, and the words decide.

mod compare;
pub(super) mod index;
mod search;

use std::time::Duration;

use super::error::{PostgresError, PostgresResult};
use super::session::DatabaseTransaction;
use super::snapshot::PostgresSnapshot;
use super::vault::PostgresStorage;
use crate::digest::CoreHash;
use crate::storage::interface::{
    CapturePassages, FoundPassage, FullText, FullTextSnapshot, IndexComparison, PassageGrouping, SearchIndex,
    SearchableCapture, Terms,
};
use crate::storage::sql::{SqlSnapshot as _, captures_between};
use crate::storage::{BUSY_TIMEOUT, Result};

impl FullText for PostgresStorage {
    fn begin_index(&self, busy_timeout: Duration) -> Result<()> {
        self.change(busy_timeout, |session| index::begin(session).map(|()| true)).map(drop)
    }

    fn index_passages(&self, batch: &[CapturePassages], busy_timeout: Duration) -> Result<bool> {
        self.change(busy_timeout, |session| index::add(session, batch))
    }

    fn drop_index(&self) -> Result<bool> {
        self.change(BUSY_TIMEOUT, index::drop)
    }

    fn has_index_parts(&self) -> Result<bool> {
        let session = DatabaseTransaction::to_read(&self.server);
        let has_rows = session.and_then(|session| index::has_rows(&session));
        has_rows.map_err(|failure| failure.at(self.server.name()))
    }
}

impl PostgresStorage {
    /// Makes a change of the index, and commits it if it returns true.
    fn change(
        &self,
        busy_timeout: Duration,
        change: impl FnOnce(&DatabaseTransaction<'_>) -> PostgresResult<bool>,
    ) -> Result<bool> {
        let session = DatabaseTransaction::to_write(&self.server, busy_timeout);
        let outcome = session.and_then(|session| {
            let is_changed = change(&session)?;
            if is_changed {
                session.commit()?;
            }
            Ok(is_changed)
        });
        outcome.map_err(|failure| failure.at(self.server.name()))
    }
}

impl FullTextSnapshot for PostgresSnapshot<'_> {
    fn unindexed(&self, limit: u32) -> Result<Vec<SearchableCapture>> {
        match self.answer(index::state(&self.session))?.filter(|state| state.version == index::VERSION) {
            None => Ok(Vec::new()),
            Some(state) => captures_between(self, state.capture, i64::MAX, limit),
        }
    }

    fn indexed(&self, after: Option<&SearchableCapture>, limit: u32) -> Result<Vec<SearchableCapture>> {
        let Some(state) = self.answer(index::state(&self.session))? else { return Ok(Vec::new()) };
        captures_between(self, after.map_or(0, |after| after.id), state.capture, limit)
    }

    fn search(
        &self,
        terms: &Terms,
        among: Option<&[CoreHash]>,
        grouping: PassageGrouping,
        limit: usize,
    ) -> Result<Vec<FoundPassage>> {
        self.answer(Self::search(self, terms, among, grouping, limit))
    }

    fn search_index(&self) -> Result<Option<SearchIndex>> {
        self.answer(index::describe(&self.session))
    }

    fn search_index_size(&self) -> Result<u64> {
        self.answer(size(&self.session))
    }

    fn compare_search_index(
        &self,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Box<dyn IndexComparison>>> {
        let begun = self.answer(compare::begin(&self.session, watch))?;
        Ok(begun.map(|comparison| -> Box<dyn IndexComparison> { Box::new(comparison) }))
    }
}

/// Returns the number of bytes that the tables of an index take; 0 if there is none.
fn size(session: &DatabaseTransaction<'_>) -> PostgresResult<u64> {
    if index::state(session)?.is_none() {
        return Ok(0);
    }
    let sql = "SELECT pg_total_relation_size('search_passage') + pg_total_relation_size('search_capture')
                 + pg_total_relation_size('search_state')";
    let row = session.row(sql, &[])?.ok_or_else(|| PostgresError::damaged("a size has no row"))?;
    Ok(row.count(0)?)
}
