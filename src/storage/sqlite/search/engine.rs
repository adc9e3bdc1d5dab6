//! The interface of full-text search for vault files.

use std::time::Duration;

use crate::digest::CoreHash;
use crate::storage::interface::{
    CapturePassages, FoundPassage, FullText, FullTextSnapshot, IndexComparison, PassageGrouping, SearchIndex,
    SearchableCapture, Terms,
};
use crate::storage::sqlite::{Result, SqliteSnapshot, Store};

impl FullText for Store {
    fn begin_index(&self, busy_timeout: Duration) -> Result<()> {
        self.begin_search_index(busy_timeout)
    }

    fn index_passages(&self, batch: &[CapturePassages], busy_timeout: Duration) -> Result<bool> {
        Self::index_passages(self, batch, busy_timeout)
    }

    fn drop_index(&self) -> Result<bool> {
        self.drop_search_index()
    }

    fn has_index_parts(&self) -> Result<bool> {
        self.has_search_tables()
    }
}

impl FullTextSnapshot for SqliteSnapshot<'_> {
    fn search_index(&self) -> Result<Option<SearchIndex>> {
        Self::search_index(self)
    }

    fn search_index_size(&self) -> Result<u64> {
        Self::search_index_size(self)
    }

    fn unindexed(&self, limit: u32) -> Result<Vec<SearchableCapture>> {
        Self::unindexed(self, limit)
    }

    fn indexed(&self, after: Option<&SearchableCapture>, limit: u32) -> Result<Vec<SearchableCapture>> {
        Self::indexed(self, after, limit)
    }

    fn search(
        &self,
        terms: &Terms,
        among: Option<&[CoreHash]>,
        grouping: PassageGrouping,
        limit: usize,
    ) -> Result<Vec<FoundPassage>> {
        Self::search(self, terms, among, grouping, limit)
    }

    fn compare_search_index(
        &self,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Box<dyn IndexComparison>>> {
        let begun = self.compare_index(watch)?;
        Ok(begun.map(|comparison| -> Box<dyn IndexComparison> { Box::new(comparison) }))
    }
}
