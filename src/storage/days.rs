//! Counting artifacts by day, for engines that cannot.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};

use super::interface::{ArtifactRecord, Filter, Order, Page, Snapshot, declared_time};
use super::{Result, TimeBasis};
use crate::digest::CoreHash;

/// Number of artifacts that are read at a time.
const PAGE: usize = 1_000;

/// Counts the artifacts that match by reading all of them, page by page.
pub(super) fn count(
    snapshot: &dyn Snapshot,
    filter: &Filter,
    by: TimeBasis,
) -> Result<Vec<(NaiveDate, u64)>> {
    let mut counts: BTreeMap<NaiveDate, u64> = BTreeMap::new();
    let mut page = Page::first(PAGE);
    loop {
        let found = snapshot.find(filter, Order::Core, &page)?;
        let artifacts: Vec<ArtifactRecord> = found.items.into_iter().map(|hit| hit.artifact).collect();
        for time in times(snapshot, &artifacts, by)? {
            *counts.entry(time.date_naive()).or_default() += 1;
        }
        page.after = found.next;
        if page.after.is_none() {
            return Ok(counts.into_iter().collect());
        }
    }
}

/// Returns the time of each artifact that has one.
fn times(snapshot: &dyn Snapshot, artifacts: &[ArtifactRecord], by: TimeBasis) -> Result<Vec<DateTime<Utc>>> {
    Ok(match by {
        TimeBasis::FirstSeen => artifacts.iter().map(|artifact| artifact.added_at).collect(),
        TimeBasis::LastSeen => artifacts.iter().map(|artifact| artifact.seen_at).collect(),
        TimeBasis::Created | TimeBasis::Finished => {
            let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
            snapshot
                .attributes(&cores)?
                .iter()
                .filter_map(|attributes| declared_time(attributes, by))
                .collect()
        }
    })
}
