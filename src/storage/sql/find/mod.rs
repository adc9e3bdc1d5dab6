//! Finding artifacts by conditions, in an order, page by page.
//!
//! Neither database can know how many artifacts match conditions together, and may read all that match one of them to fill a
//! page of ten. So the artifacts with each condition are counted first, up to a limit. If few can match one, these are read
//! and sorted. Otherwise artifacts are read in the order of the page, by an index, and the conditions are examined for each,
//! until the page is full. If as many are examined before that, the artifacts are counted up to a larger limit, and if very
//! many are, all that match are read after all.

mod conditions;
mod matches;
mod numbers;
mod order;
mod queries;
mod statements;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{SqlRow, SqlSession, SqlSnapshot, StatementParameters};
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::{Condition, Cursor, Filter, Hit, HitPage, MentionRecord, Order, Page};

pub(in crate::storage) use conditions::ConditionRows;
#[cfg(feature = "postgres")]
pub(in crate::storage) use order::{PAGE_COLUMNS, SortExpression, page_artifact};
#[cfg(feature = "postgres")]
pub(in crate::storage) use queries::matching;

/// Number of artifacts that are all read for one page, if no more can match a condition, without trying anything else, and
/// that are examined in the order of the page before more are counted.
const FEW: usize = if cfg!(test) { 40 } else { 2_000 };

/// Maximum number of artifacts that are examined in the order of the page, or that are all read instead.
const BUDGET: usize = if cfg!(test) { 200 } else { 50_000 };

/// Maximum number of artifacts on a page that is filled by examining artifacts in its order.
const MAX_PAGE: usize = if cfg!(test) { 100 } else { 1_000 };

/// Numbers of artifacts that are read at a time: the first and the largest one.
const READ: (usize, usize) = if cfg!(test) { (2, 8) } else { (16, 4_096) };

/// A mention that a condition requires, with what an engine looked up for it.
pub(in crate::storage) struct RequiredMention<'q> {
    pub(in crate::storage) group: Option<&'q str>,
    pub(in crate::storage) digest: Digest,
    /// The captures that may have it, sorted, once they are known; empty if statements find them.
    captures: OnceCell<Vec<i64>>,
}

impl RequiredMention<'_> {
    /// Returns the captures that may have it, sorted: nothing if these are many and were not needed so far.
    pub(in crate::storage) fn known_captures(&self) -> Option<&[i64]> {
        self.captures.get().map(Vec::as_slice)
    }

    /// Returns all captures that may have it, sorted.
    pub(in crate::storage) fn captures(&self, snapshot: &impl FindSnapshot) -> Result<&[i64]> {
        if let Some(known) = self.captures.get() {
            return Ok(known);
        }
        let all = snapshot.captures_mentioning(self.digest, usize::MAX)?.unwrap_or_default();
        Ok(self.captures.get_or_init(|| all))
    }
}

/// An artifact with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::storage) struct NumberedArtifact {
    pub(in crate::storage) core: CoreHash,
    pub(in crate::storage) number: i64,
}

/// A snapshot in which a database finds artifacts: what engines do with the structures that only they have.
pub(in crate::storage) trait FindSnapshot: SqlSnapshot {
    /// Whether statements find exactly the artifacts that mention a digest, and those that contain others.
    const FINDS_MENTIONS: bool;

    /// Returns the rows of a query that is planned for these parameters.
    fn rows_planned_for(&self, sql: &str, parameters: &StatementParameters) -> Result<Vec<SqlRow>> {
        self.answer(self.session().rows(sql, parameters.values()))
    }

    /// Returns the captures that may mention a digest, sorted, or `None` if they are more than `limit`. There are none if
    /// statements find them.
    fn captures_mentioning(&self, digest: Digest, limit: usize) -> Result<Option<Vec<i64>>>;

    /// Returns the rows of the artifacts that have a mention, or that may have it.
    fn mention_rows(
        &self,
        mention: &RequiredMention<'_>,
        parameters: &mut StatementParameters,
    ) -> Result<ConditionRows>;

    /// Returns the mentions that each of these artifacts has, by role and place.
    fn mentions_among(
        &self,
        of: &[NumberedArtifact],
        mention: &RequiredMention<'_>,
    ) -> Result<HashMap<CoreHash, Vec<MentionRecord>>>;

    /// Returns each of these artifacts with those that it contains.
    fn with_contained(&self, of: &[NumberedArtifact]) -> Result<ContainedArtifacts>;

    /// Returns the query for the artifacts of a query and those that contain one of them; `None` if no statement finds them.
    fn with_containers_query(&self, artifacts: &str, parameters: &mut StatementParameters) -> Option<String>;

    /// Adds the artifacts that contain one of these, by number.
    fn add_containers(&self, artifacts: &mut Vec<i64>) -> Result<()>;

    /// Returns a page of the artifacts that have a mention, if the engine has a faster way to it.
    fn page_mentioning(
        &self,
        mention: (Option<&str>, Digest),
        order: Order,
        page: &Page,
    ) -> Result<Option<HitPage<Hit>>> {
        let _ = (mention, order, page);
        Ok(None)
    }
}

/// Artifacts with those that they contain and themselves.
pub(in crate::storage) type ContainedArtifacts = BTreeMap<CoreHash, BTreeSet<NumberedArtifact>>;

/// A condition with what was looked up for it.
struct ResolvedCondition<'q> {
    condition: &'q Condition,
    /// The mention, if it is about one.
    mention: Option<RequiredMention<'q>>,
}

/// A hit with its place in the order.
type PlacedHit = (Hit, Cursor);

/// A query with what was looked up for it.
struct ResolvedQuery<'q, S> {
    snapshot: &'q S,
    filter: &'q Filter,
    order: Order,
    conditions: Vec<ResolvedCondition<'q>>,
    /// Number of artifacts that are examined in the order of the page at most.
    budget: usize,
}

/// The artifacts among which a page is looked for.
enum SearchedArtifacts {
    /// Those of the filter.
    Among,
    /// Those that can match the condition at this position.
    Matching(usize),
    /// Those with these numbers.
    Numbered(Vec<i64>),
    /// Those whose hashes begin with the digits of the filter.
    WithDigits,
    /// Those of the kinds of the filter.
    OfKinds,
    /// All that match, in whatever way the database finds them.
    All,
}
