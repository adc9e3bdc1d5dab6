use crate::storage::{Cursor, Filter, Order, Page, Snapshot, StorageError};

pub(crate) use crate::storage::{Hit, Match};

/// A query for artifacts.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindQuery {
    /// The conditions that artifacts must match.
    pub(crate) filter: Filter,
    /// The order of the results.
    pub(crate) order: Order,
    /// Maximum number of results; unlimited if `None`.
    pub(crate) limit: Option<usize>,
}

/// The number of artifacts of the first page that [`find_until`] reads, and of the largest.
const PAGES: (usize, usize) = (64, 4_096);

/// Passes the artifacts that match `query` to `visit`, in its order from a position on, until it returns false. They are
/// read in pages, so that little more is read than needed.
///
/// # Errors
/// Returns the error of `visit`, or one if the database cannot be read.
pub(crate) fn find_until<E: From<StorageError>>(
    snapshot: &dyn Snapshot,
    query: &FindQuery,
    after: Option<Cursor>,
    visit: &mut dyn FnMut(Hit) -> std::result::Result<bool, E>,
) -> std::result::Result<(), E> {
    let mut left = query.limit.unwrap_or(usize::MAX);
    let mut page = Page { limit: PAGES.0.min(left), after };
    while left > 0 {
        let found = snapshot.find(&query.filter, query.order, &page)?;
        left -= found.items.len();
        for hit in found.items {
            if !visit(hit)? {
                return Ok(());
            }
        }
        let Some(next) = found.next else { return Ok(()) };
        page = Page { limit: (page.limit * 2).min(PAGES.1).min(left), after: Some(next) };
    }
    Ok(())
}
