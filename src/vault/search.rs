//! Full-text search, and the index that it needs.

use super::Vault;
use crate::search::{self, Indexed, Progress, SearchError, SearchHit, SearchIndex, SearchQuery};
use crate::store::StoreError;

impl Vault {
    /// The passages that match, the best first. What was added since the last question is put into the index before.
    ///
    /// ```
    /// # use runvault::{Vault, search::SearchQuery, source::ExamineOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
    /// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
    /// vault.build_search(&mut |_| {})?;
    /// let hits = vault.search(&SearchQuery::new("export CSV".parse()?))?;
    /// assert_eq!(hits[0].place.to_string(), "0");
    /// assert_eq!(hits[0].snippet.text, "The export to CSV stops after 1,000 rows since the last update.");
    /// assert_eq!(hits[0].snippet.highlights, [4..10, 14..17]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SearchError::NoIndex`] if nobody called [`Vault::build_search`], [`SearchError::Differs`], or what the store says.
    pub fn search(&self, query: &SearchQuery) -> Result<Vec<SearchHit>, SearchError> {
        search::bring_in_step(&self.store, &mut |_| {})?.ok_or(SearchError::NoIndex)?;
        search::search(&self.store, query)
    }

    /// The search index; nothing if the vault has none.
    ///
    /// # Errors
    /// What the store says.
    pub fn search_index(&self) -> Result<Option<SearchIndex>, StoreError> {
        self.snapshot()?.search_index()
    }

    /// Makes the search index, anew if there is one. Others can use the vault meanwhile. Whoever interrupts it leaves an
    /// index that the next question completes.
    ///
    /// # Errors
    /// What the store says.
    pub fn build_search(&self, watch: &mut dyn FnMut(Progress)) -> Result<Indexed, StoreError> {
        search::build(&self.store, watch)
    }

    /// Puts into the search index what was added since. Gives nothing if there is no index.
    ///
    /// # Errors
    /// What the store says.
    pub fn update_search(&self, watch: &mut dyn FnMut(Progress)) -> Result<Option<Indexed>, StoreError> {
        search::bring_in_step(&self.store, watch)
    }

    /// Takes the search index out of the vault; false if there is none. [`Vault::reclaim`] gives the space back.
    ///
    /// # Errors
    /// What the store says.
    pub fn drop_search(&self) -> Result<bool, StoreError> {
        self.store.drop_search_index()
    }
}
