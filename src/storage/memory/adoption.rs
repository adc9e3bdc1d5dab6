//! Adoption of the journal of another vault.

use std::sync::Arc;

use super::state::MemoryState;
use super::vault::MemoryStorage;
use crate::storage::interface::{Adoption, AppendedEntry};
use crate::storage::{BUSY_TIMEOUT, Head, Result, recorded};

impl Adoption for MemoryStorage {
    fn is_incomplete(&self) -> Result<bool> {
        Ok(self.view().0.is_incomplete)
    }

    fn begin(&self) -> Result<Head> {
        self.change(|state| {
            let is_empty = state.journal.is_empty() && state.artifacts.is_empty();
            if !(state.is_incomplete || is_empty) {
                return Err(recorded::not_empty());
            }
            state.is_incomplete = true;
            Ok(state.head())
        })
    }

    fn adopt(&self, entries: &[AppendedEntry<'_>]) -> Result<Head> {
        self.change(|state| {
            if !state.is_incomplete {
                return Err(recorded::not_begun());
            }
            let head = recorded::check(state.head(), entries)?;
            state.append(entries);
            Ok(head)
        })
    }

    fn finish(&self, head: Head) -> Result<()> {
        self.change(|state| {
            if !state.is_incomplete || state.head() != head {
                return Err(recorded::not_begun());
            }
            state.is_incomplete = false;
            Ok(())
        })
    }
}

impl MemoryStorage {
    /// Changes the content, unless `work` fails.
    fn change<T>(&self, work: impl FnOnce(&mut MemoryState) -> Result<T>) -> Result<T> {
        let _turn = self.writer.take(BUSY_TIMEOUT)?;
        let mut view = self.view();
        let outcome = work(Arc::make_mut(&mut view.0))?;
        self.replace(view);
        Ok(outcome)
    }
}
