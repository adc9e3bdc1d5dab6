use chrono::{DateTime, Utc};

use crate::artifact::SignatureState;
use crate::digest::Digest;
use crate::storage::{self, Condition, Order, Page, Period, Result, Snapshot, StorageError, TimeBasis};

pub use crate::storage::{Hit, Match};

/// A query for artifacts. All conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The name of the kind; any if `None`.
    pub kind: Option<String>,
    /// The filters, all of which must match.
    pub filters: Vec<Filter>,
    /// Whether an artifact also matches where an artifact that it contains does, such as the session of a pack.
    pub through_members: bool,
    /// The time that must be within `since` and `until`.
    pub by: TimeBasis,
    /// The earliest time, inclusive. Artifacts without a time by `by` do not match.
    pub since: Option<DateTime<Utc>>,
    /// The end of the period, exclusive. Artifacts without a time by `by` do not match.
    pub until: Option<DateTime<Utc>>,
    /// The order of the results.
    pub sort: Sort,
    /// Maximum number of results; unlimited if `None`.
    pub limit: Option<usize>,
}

/// A condition on artifacts.
#[derive(Clone, Debug)]
pub enum Filter {
    /// The artifact mentions this digest.
    Mention {
        /// The group of the role, such as `prompt`; any if `None`.
        group: Option<&'static str>,
        /// The digest.
        digest: Digest,
    },
    /// The artifact has this attribute.
    Attribute {
        /// The name.
        name: String,
        /// The value.
        value: String,
    },
    /// The artifact has a signed capture.
    Signature {
        /// The signature state.
        state: SignatureState,
        /// The key id that the capture states; any if `None`.
        key_id: Option<String>,
    },
    /// The artifact has an unsigned capture.
    Unsigned,
    /// The artifact has a note that contains this text, ignoring case.
    Note {
        /// The text; every note contains an empty text.
        text: String,
    },
}

impl From<&Filter> for Condition {
    fn from(filter: &Filter) -> Self {
        match filter.clone() {
            Filter::Mention { group, digest } => Self::Mention { group: group.map(str::to_owned), digest },
            Filter::Attribute { name, value } => Self::Attribute { name, value },
            Filter::Signature { state, key_id } => Self::Signature { state, key_id },
            Filter::Unsigned => Self::Unsigned,
            Filter::Note { text } => Self::Note { text },
        }
    }
}

impl From<Sort> for Order {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Newest(basis) => Self::Newest(basis),
            Sort::Core => Self::Core,
            Sort::Kind => Self::Kind,
        }
    }
}

impl Query {
    /// Returns the query as a filter of the storage.
    fn filter(&self) -> storage::Filter {
        let Self { kind, filters, through_members, by, since, until, .. } = self;
        let has_period = since.is_some() || until.is_some();
        storage::Filter {
            kinds: kind.iter().cloned().collect(),
            conditions: filters.iter().map(Condition::from).collect(),
            through_members: *through_members,
            period: has_period.then_some(Period { basis: *by, since: *since, until: *until }),
            digits: None,
        }
    }
}

/// The order of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Newest first by this time, as by [`Order::Newest`].
    Newest(TimeBasis),
    /// By core hash.
    Core,
    /// By kind, then by when they were last seen, newest first.
    Kind,
}

impl Default for Sort {
    /// Returns the order of the journal, newest first.
    fn default() -> Self {
        Self::Newest(TimeBasis::LastSeen)
    }
}

/// Returns the artifacts that match `query`.
///
/// # Errors
/// Returns an error if the database cannot be read.
pub fn find(snapshot: &dyn Snapshot, query: &Query) -> Result<Vec<Hit>> {
    let page = Page::first(query.limit.unwrap_or(usize::MAX));
    Ok(snapshot.find(&query.filter(), query.sort.into(), &page)?.items)
}

/// The number of artifacts of the first page that [`find_until`] reads, and of the largest.
const PAGES: (usize, usize) = (64, 4_096);

/// Passes the artifacts that match `query` to `visit`, in its order, until it returns false. They are read in pages, so
/// that little more is read than needed.
///
/// # Errors
/// Returns the error of `visit`, or one if the database cannot be read.
pub fn find_until<E: From<StorageError>>(
    snapshot: &dyn Snapshot,
    query: &Query,
    visit: &mut dyn FnMut(Hit) -> std::result::Result<bool, E>,
) -> std::result::Result<(), E> {
    let filter = query.filter();
    let mut left = query.limit.unwrap_or(usize::MAX);
    let mut page = Page::first(PAGES.0.min(left));
    while left > 0 {
        let found = snapshot.find(&filter, query.sort.into(), &page)?;
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
