//! Lists artifacts with the measurements that they state, those of one run together.

mod row;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::details::Detail;
use super::find::{ArtifactFilter, FindCursor, FindOrder};
use super::handle::{Vault, limit_of};
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{self, ArtifactRecord, Order, Page, Snapshot, StorageError};
use crate::vault::query::RunGroups;
use row::PendingListRow;

pub use row::{ListAttribute, ListMember, ListRow};

/// A request for a list of runs and other artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListRequest {
    /// What the artifacts must match. A row is listed if one of its artifacts matches.
    pub filter: ArtifactFilter,
    /// The only artifacts that can match; any if empty.
    pub artifacts: Vec<CoreHash>,
    /// The order of the rows: that of the first matching artifact of each.
    pub order: FindOrder,
    /// Whether each artifact has a row of its own. Otherwise the artifacts of one run are one row.
    pub flat: bool,
    /// The names of further attributes to return.
    pub attributes: Vec<String>,
    /// The details of each artifact to return.
    pub details: Vec<Detail>,
    /// Maximum number of rows; unlimited if there is none.
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    pub after: Option<FindCursor>,
}

/// A page of a list of runs and other artifacts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListAnswer {
    /// The rows in the requested order.
    pub rows: Vec<ListRow>,
    /// The end of this page; `None` if it is the last one.
    pub next: Option<FindCursor>,
}

/// Numbers of artifacts that are read at a time: the first and the largest one.
const READ: (usize, usize) = (64, 1_024);

impl Operation for ListRequest {
    type Answer = ListAnswer;
    type Error = StorageError;

    const NAME: &'static str = "list";
    const SUMMARY: &'static str = "List runs and other artifacts with their measurements";

    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if no kind has one of the attributes
    /// or it has no order, and another one if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<ListAnswer, StorageError> {
        for name in &self.attributes {
            formats::attribute(name).ok_or_else(|| super::find::unknown_attribute(name))?;
        }
        let order = self.order.to_order()?;
        let snapshot = vault.snapshot()?;
        let among = (!self.artifacts.is_empty()).then(|| self.artifacts.clone());
        let filter = storage::Filter { among, ..(&self.filter).into() };
        Lister { request: self, filter, order, snapshot: &*snapshot }.answer()
    }
}

struct Lister<'l> {
    request: &'l ListRequest,
    filter: storage::Filter,
    order: Order,
    snapshot: &'l dyn Snapshot,
}

impl Lister<'_> {
    fn answer(&self) -> Result<ListAnswer, StorageError> {
        let limit = limit_of(self.request.limit);
        // One row more than requested shows whether there is another page.
        let needed = limit.saturating_add(1);
        let mut unread: Vec<PendingListRow> = Vec::new();
        let mut page = Page {
            limit: needed.clamp(READ.0, READ.1),
            after: self.request.after.clone().map(storage::Cursor::from),
        };
        while unread.len() < needed {
            let found = self.snapshot.find(&self.filter, self.order, &page)?;
            let hits: Vec<ArtifactRecord> = found.items.into_iter().map(|hit| hit.artifact).collect();
            unread.append(&mut self.first_of_rows(hits)?);
            let Some(next) = found.next else { break };
            page = Page { limit: (page.limit * 2).min(READ.1), after: Some(next) };
        }
        let is_more = unread.len() > limit;
        unread.truncate(limit);
        let last = unread.last().filter(|_| is_more);
        let next = last.map(|last| self.request.order.cursor(self.snapshot, &last.first)).transpose()?;
        let mut rows = Vec::with_capacity(unread.len());
        for batch in unread.chunks(READ.1) {
            rows.append(&mut row::read(
                self.snapshot,
                batch,
                &self.request.attributes,
                &self.request.details,
            )?);
        }
        Ok(ListAnswer { rows, next })
    }

    /// Returns the rows whose first matching artifact is one of these hits.
    fn first_of_rows(&self, hits: Vec<ArtifactRecord>) -> Result<Vec<PendingListRow>, StorageError> {
        let cores: Vec<CoreHash> = hits.iter().map(|hit| hit.core).collect();
        let groups = if self.request.flat {
            RunGroups::single(&cores)
        } else {
            RunGroups::find(self.snapshot, &cores)?
        };
        let mut matching: Vec<Vec<CoreHash>> = Vec::new();
        let is_listed =
            |core: &CoreHash| self.request.artifacts.is_empty() || self.request.artifacts.contains(core);
        let grouped = groups.grouped().into_iter().filter(is_listed).collect();
        let among = storage::Filter { among: Some(grouped), ..self.filter.clone() };
        for hit in self.snapshot.find(&among, self.order, &Page::all())?.items {
            let Some(number) = groups.number_of(hit.artifact.core) else { continue };
            if matching.len() <= number {
                matching.resize(number + 1, Vec::new());
            }
            matching.get_mut(number).into_iter().for_each(|group| group.push(hit.artifact.core));
        }
        let mut rows = Vec::new();
        for hit in hits {
            let Some(number) = groups.number_of(hit.core) else { continue };
            let members = groups.members(number).to_vec();
            let matching = matching.get(number).filter(|found| !found.is_empty()).cloned();
            let matching = matching.unwrap_or_else(|| vec![hit.core]);
            if matching.first() == Some(&hit.core) {
                rows.push(PendingListRow { members, matching, first: hit });
            }
        }
        Ok(rows)
    }
}
