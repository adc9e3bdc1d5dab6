//! Setting what a bundle states of the artifacts in a vault.

use crate::clock;
use crate::storage::{BUSY_TIMEOUT, Result, Snapshot, Storage, Transaction};

/// Makes a plan and does it, in one transaction. Returns the plan, of which only those that satisfy `is_set` are done.
pub(super) fn carry_out<T>(
    storage: &dyn Storage,
    plan: impl Fn(&dyn Snapshot) -> Result<Vec<T>>,
    is_set: impl Fn(&T) -> bool,
    set: impl FnOnce(&mut dyn Transaction, Vec<&T>) -> Result<()>,
) -> Result<Vec<T>> {
    // If nothing changes, there is no need to wait for other writers.
    let planned = plan(&*storage.snapshot()?)?;
    if !planned.iter().any(&is_set) {
        return Ok(planned);
    }
    let mut change = storage.transaction(clock::now(), BUSY_TIMEOUT)?;
    let planned = plan(change.snapshot())?;
    set(&mut *change, planned.iter().filter(|one| is_set(one)).collect())?;
    change.commit()?;
    Ok(planned)
}
