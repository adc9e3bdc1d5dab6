//! The limits of requests.

/// Returns the maximum number of items that a request asks for; unlimited if it states none.
pub(super) fn limit_of(limit: Option<u64>) -> usize {
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
