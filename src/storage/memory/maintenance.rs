//! Maintenance of a vault in memory. Nothing of removed artifacts remains, and there is nothing to check or rebuild.

use chrono::{DateTime, Utc};

use super::vault::MemoryStorage;
use crate::storage::Result;
use crate::storage::interface::{Erasure, Maintenance, ReclaimResult, ReclaimableSpace};

impl Maintenance for MemoryStorage {
    fn reclaimable(&self) -> Result<ReclaimableSpace> {
        Ok(ReclaimableSpace::default())
    }

    fn reclaim(&self, _: DateTime<Utc>) -> Result<Option<ReclaimResult>> {
        Ok(None)
    }

    fn erase(&self) -> Erasure {
        Erasure::default()
    }
}
