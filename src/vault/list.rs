//! Lists artifacts with the measurements that they state, those of one run together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{ArtifactSummary, Timestamp};
use super::details::{ArtifactDetails, Detail};
use super::find::{ArtifactFilter, Cursor, FindOrder};
use super::prices::{ModelPrice, RunTokens};
use super::query::RunGroups;
use super::{Vault, limit_of};
use crate::artifact::AttributeInfo;
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::{self, ArtifactRecord, AttributeRecord, Label, Order, Page, Snapshot, StorageError};

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
    /// The prices by which the costs of runs that state none are computed.
    pub prices: Vec<ModelPrice>,
    /// Maximum number of rows; unlimited if there is none.
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    pub after: Option<Cursor>,
}

/// A page of a list of runs and other artifacts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListAnswer {
    /// The rows in the requested order.
    pub rows: Vec<ListRow>,
    /// The end of this page; `None` if it is the last one.
    pub next: Option<Cursor>,
}

/// Numbers of artifacts that are read at a time: the first and the largest one.
const READ: (usize, usize) = (64, 1_024);

impl ListRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if no kind has one of the attributes
    /// or it has no order, and another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<ListAnswer, StorageError> {
        self.read(&*vault.snapshot()?)
    }

    /// Runs the request, and passes the rows to `visit` one at a time, so that they need not be in memory together, until it
    /// returns that no more are wanted. Returns the end of the page; `None` if it is the last one or all are not wanted.
    ///
    /// # Errors
    /// Same as [`ListRequest::run`], and any error that `visit` returns.
    pub fn visit<E: From<StorageError>>(
        &self,
        vault: &Vault,
        visit: &mut dyn FnMut(ListRow) -> Result<bool, E>,
    ) -> Result<Option<Cursor>, E> {
        let snapshot = vault.snapshot()?;
        let (mut page, mut left) = (self.clone(), limit_of(self.limit));
        loop {
            // With the row that shows whether there is another page, as many as are read at a time.
            page.limit = Some(left.min(READ.1 - 1) as u64);
            let ListAnswer { rows, next } = page.read(&*snapshot)?;
            left -= rows.len();
            for row in rows {
                if !visit(row)? {
                    return Ok(None);
                }
            }
            if left == 0 || next.is_none() {
                return Ok(next);
            }
            page.after = next;
        }
    }

    /// Runs the request on a snapshot, which several pages can share.
    ///
    /// # Errors
    /// Same as [`ListRequest::run`].
    fn read(&self, snapshot: &dyn Snapshot) -> Result<ListAnswer, StorageError> {
        for name in &self.attributes {
            formats::attribute(name).ok_or_else(|| super::find::unknown_attribute(name))?;
        }
        let order = self.order.to_order()?;
        let among = (!self.artifacts.is_empty()).then(|| self.artifacts.clone());
        let filter = storage::Filter { among, ..(&self.filter).into() };
        Lister { request: self, filter, order, snapshot }.answer()
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
        let mut page = Page { limit: needed.clamp(READ.0, READ.1), after: self.request.after.clone() };
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
            rows.append(&mut read(self.snapshot, batch, self.request)?);
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
            let continuing = members.iter().copied().filter(|core| groups.is_continuing(*core)).collect();
            let matching = matching.get(number).filter(|found| !found.is_empty()).cloned();
            let matching = matching.unwrap_or_else(|| vec![hit.core]);
            if matching.first() == Some(&hit.core) {
                rows.push(PendingListRow { members, continuing, matching, first: hit });
            }
        }
        Ok(rows)
    }
}

/// A run, or another artifact, with what its artifacts state. If several state a number or a time, the largest counts, where
/// the numbers of the parts of a run are added up; of texts, those of the first one in `members` that states any. A value
/// that none states is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListRow {
    /// The first of its artifacts.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// The id of the run.
    pub run_id: Option<String>,
    /// The latest creation time.
    pub created_at: Option<Timestamp>,
    /// The latest time at which it ended.
    pub finished_at: Option<Timestamp>,
    /// The milliseconds from beginning to end.
    pub duration_ms: Option<i64>,
    /// The sum of the milliseconds that its steps or interactions took.
    pub latency_ms: Option<i64>,
    /// The models.
    pub models: Vec<String>,
    /// The agents.
    pub agents: Vec<String>,
    /// The providers of the models.
    pub providers: Vec<String>,
    /// Number of steps.
    pub steps: Option<i64>,
    /// Number of interactions.
    pub interactions: Option<i64>,
    /// Number of tool calls.
    pub tool_calls: Option<i64>,
    /// Number of input tokens.
    pub tokens_input: Option<i64>,
    /// Number of output tokens.
    pub tokens_output: Option<i64>,
    /// Number of tokens, input and output.
    pub tokens: Option<i64>,
    /// The costs in US dollars.
    pub cost_usd: Option<f64>,
    /// Whether the costs are not stated, but computed from the tokens and the prices in the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_computed: bool,
    /// Number of steps that failed or are errors.
    pub errors: Option<i64>,
    /// The result of an export pack.
    pub result: Option<String>,
    /// The tags of all its artifacts, by name.
    pub tags: Vec<String>,
    /// The labels of all its artifacts: the values of each key, sorted.
    pub labels: BTreeMap<String, BTreeSet<String>>,
    /// The requested attributes, by name.
    pub attributes: Vec<ListAttribute>,
    /// Its artifacts: recordings of the run first, those that they contain last.
    pub members: Vec<ListMember>,
}

impl ListRow {
    /// Returns the number that it states of an attribute. Those that rows do not always state must have been requested.
    #[must_use]
    pub fn number(&self, info: AttributeInfo) -> Option<i64> {
        let largest = || info.values.number(self.requested(info.name).last()?);
        self.stated_number(info.name).or_else(largest)
    }

    /// Returns the values that it states of an attribute. Those that rows do not always state must have been requested.
    #[must_use]
    pub fn values(&self, name: &str) -> Vec<String> {
        match name {
            "run_id" => self.run_id.iter().cloned().collect(),
            "model_id" => self.models.clone(),
            "agent" => self.agents.clone(),
            "provider" => self.providers.clone(),
            "result" => self.result.iter().cloned().collect(),
            _ => match self.stated_number(name) {
                Some(number) => {
                    formats::attribute(name).and_then(|info| info.values.value(number)).into_iter().collect()
                }
                None => self.requested(name).to_vec(),
            },
        }
    }

    fn stated_number(&self, name: &str) -> Option<i64> {
        match name {
            "duration_ms" => self.duration_ms,
            "latency_ms" => self.latency_ms,
            "tool_calls" => self.tool_calls,
            "tokens_input" => self.tokens_input,
            "tokens_output" => self.tokens_output,
            "tokens" => self.tokens,
            "errors" => self.errors,
            "cost_usd" => self.cost_usd.map(millionths),
            // A session has interactions in place of steps.
            _ if name == formats::STEPS.name => self.steps.or(self.interactions),
            _ => None,
        }
    }

    fn requested(&self, name: &str) -> &[String] {
        let attribute = self.attributes.iter().find(|attribute| attribute.name == name);
        attribute.map(|attribute| attribute.values.as_slice()).unwrap_or_default()
    }

    /// Returns its labels, with each of the values of a key.
    pub fn each_label(&self) -> impl Iterator<Item = (&String, &String)> {
        self.labels.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)))
    }

    /// Returns the kinds of its artifacts, the first artifact's first.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for member in &self.members {
            if !kinds.contains(&member.artifact.kind.as_str()) {
                kinds.push(&member.artifact.kind);
            }
        }
        kinds
    }
}

/// An artifact of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListMember {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// Its details.
    #[serde(flatten)]
    pub details: ArtifactDetails,
    /// Whether it matches the filter.
    pub matches: bool,
}

/// The values of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListAttribute {
    /// The name.
    pub name: String,
    /// The values of all artifacts of the row, sorted by the order of their type, without duplicates.
    pub values: Vec<String>,
}

/// A row to be: its artifacts, and those of them that match.
struct PendingListRow {
    members: Vec<CoreHash>,
    /// The parts of a run among them, except the first one.
    continuing: Vec<CoreHash>,
    matching: Vec<CoreHash>,
    /// The first matching artifact in the order of the list, which determines the position of the row.
    first: ArtifactRecord,
}

/// The attributes of the artifacts of a row, in their order, and whether the artifact is one of several parts of a run.
struct ListRowAttributes<'a>(Vec<(&'a [AttributeRecord], bool)>);

impl ListRowAttributes<'_> {
    /// Returns the largest number of an attribute, of parts of a run the sum.
    fn number(&self, name: &str) -> Option<i64> {
        let (parts, others): (Vec<_>, Vec<_>) = self.0.iter().partition(|(_, is_part)| *is_part);
        let largest = |(attributes, _): (&[AttributeRecord], bool)| largest(attributes, name);
        let sum = parts.into_iter().filter_map(largest).reduce(i64::saturating_add);
        others.into_iter().filter_map(largest).chain(sum).max()
    }

    /// Returns the latest time, by which the row is ordered if all artifacts match.
    fn time(&self, info: AttributeInfo) -> Option<Timestamp> {
        time(self.0.iter().filter_map(|(attributes, _)| largest(attributes, info.name)).max())
    }

    /// Returns the texts of the first artifact that has the attribute.
    fn texts(&self, name: &str) -> Vec<String> {
        let of = |(attributes, _): &(&[AttributeRecord], bool)| -> Vec<String> {
            let named = attributes.iter().filter(|attribute| attribute.name == name);
            named.map(|attribute| attribute.value.clone()).collect()
        };
        self.0.iter().map(of).find(|texts| !texts.is_empty()).unwrap_or_default()
    }

    /// Returns the values of all artifacts.
    fn all(&self, name: &str) -> ListAttribute {
        let all = self.0.iter().flat_map(|(attributes, _)| *attributes);
        let named = all.filter(|attribute| attribute.name == name);
        let mut values: Vec<(Option<i64>, &str)> =
            named.map(|attribute| (attribute.number, attribute.value.as_str())).collect();
        values.sort_unstable();
        values.dedup();
        let values = values.into_iter().map(|(_, value)| value.to_owned()).collect();
        ListAttribute { name: name.to_owned(), values }
    }
}

fn largest(attributes: &[AttributeRecord], name: &str) -> Option<i64> {
    let named = attributes.iter().filter(|attribute| attribute.name == name);
    named.filter_map(|attribute| attribute.number).max()
}

/// Returns millionths of a US dollar as US dollars.
#[expect(clippy::cast_precision_loss, reason = "costs of billions of dollars may be rounded")]
pub(super) fn usd(millionths: i64) -> f64 {
    millionths as f64 / 1e6
}

/// Returns the millionths of US dollars that were made of them: up to billions of dollars, the same.
#[expect(clippy::cast_possible_truncation, reason = "the number was an integer")]
fn millionths(usd: f64) -> i64 {
    (usd * 1e6).round() as i64
}

fn time(milliseconds: Option<i64>) -> Option<Timestamp> {
    milliseconds.and_then(DateTime::<Utc>::from_timestamp_millis).map(Timestamp)
}

/// The data read of an artifact.
struct ListArtifactData {
    record: ArtifactRecord,
    attributes: Vec<AttributeRecord>,
    tags: Vec<String>,
    labels: Vec<Label>,
    names: Vec<String>,
    details: ArtifactDetails,
}

/// Reads the rows of a batch.
fn read(
    snapshot: &dyn Snapshot,
    batch: &[PendingListRow],
    request: &ListRequest,
) -> Result<Vec<ListRow>, StorageError> {
    let cores: Vec<CoreHash> = batch.iter().flat_map(|row| row.members.iter().copied()).collect();
    let records = snapshot.artifacts(&cores)?;
    let of_artifacts = snapshot.attributes(&cores)?;
    let annotations = snapshot.annotations(&cores)?;
    let names = snapshot.names(&cores)?;
    let details = ArtifactDetails::read(snapshot, &cores, &request.details)?;
    let mut all: HashMap<CoreHash, ListArtifactData> = HashMap::new();
    let rest = of_artifacts.into_iter().zip(names).zip(annotations.into_iter().zip(details));
    for ((core, record), ((artifact_attributes, names), (annotations, details))) in
        cores.iter().zip(records).zip(rest)
    {
        let record = record.ok_or_else(|| StorageError::gone(*core))?;
        let tags = annotations.tags.into_iter().map(|tag| tag.name).collect();
        let labels = annotations.labels;
        let mentioned = names.mentioned.into_iter().map(|mention| mention.handle);
        let names = names.own.into_iter().chain(mentioned).collect();
        all.insert(
            *core,
            ListArtifactData { record, attributes: artifact_attributes, tags, labels, names, details },
        );
    }
    let rows = batch.iter().filter_map(|unread| row(unread, &all, request));
    Ok(rows.collect())
}

fn row(
    unread: &PendingListRow,
    all: &HashMap<CoreHash, ListArtifactData>,
    request: &ListRequest,
) -> Option<ListRow> {
    let members: Vec<&ListArtifactData> = unread.members.iter().filter_map(|core| all.get(core)).collect();
    let continuing = unread.continuing.first().and_then(|core| all.get(core));
    let is_part =
        |member: &ListArtifactData| continuing.is_some_and(|it| it.record.kind == member.record.kind);
    let row_attributes = members.iter().map(|member| (member.attributes.as_slice(), is_part(member)));
    let row_attributes = ListRowAttributes(row_attributes.collect());
    let number = |info: AttributeInfo| row_attributes.number(info.name);
    let mut tags: Vec<String> = members.iter().flat_map(|member| member.tags.iter().cloned()).collect();
    tags.sort_unstable();
    let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Label { key, value, .. } in members.iter().flat_map(|member| &member.labels) {
        labels.entry(key.clone()).or_default().insert(value.clone());
    }
    let models = row_attributes.texts(AttributeInfo::MODEL_ID.name);
    let stated_cost = number(AttributeInfo::COST_USD);
    let tokens = RunTokens {
        input: number(AttributeInfo::TOKENS_INPUT),
        output: number(AttributeInfo::TOKENS_OUTPUT),
    };
    let cost = stated_cost.or_else(|| ModelPrice::cost_of_run(&request.prices, &models, tokens));
    Some(ListRow {
        artifact: (&members.first()?.record).into(),
        run_id: members.iter().find_map(|member| run_id(&member.names)),
        created_at: row_attributes.time(AttributeInfo::CREATED_AT),
        finished_at: row_attributes.time(AttributeInfo::FINISHED_AT),
        duration_ms: number(AttributeInfo::DURATION_MS),
        latency_ms: number(AttributeInfo::LATENCY_MS),
        models,
        agents: row_attributes.texts("agent"),
        providers: row_attributes.texts("provider"),
        steps: number(formats::STEPS),
        interactions: number(formats::INTERACTIONS),
        tool_calls: number(AttributeInfo::TOOL_CALLS),
        tokens_input: tokens.input,
        tokens_output: tokens.output,
        tokens: number(AttributeInfo::TOKENS),
        cost_usd: cost.map(usd),
        cost_computed: stated_cost.is_none() && cost.is_some(),
        errors: number(AttributeInfo::ERRORS),
        result: row_attributes.texts("result").into_iter().next(),
        tags,
        labels,
        attributes: request.attributes.iter().map(|name| row_attributes.all(name)).collect(),
        members: members.iter().map(|member| listed(member, unread)).collect(),
    })
}

fn listed(member: &ListArtifactData, unread: &PendingListRow) -> ListMember {
    ListMember {
        artifact: (&member.record).into(),
        details: member.details.clone(),
        matches: unread.matching.contains(&member.record.core),
    }
}

/// Returns the id of the run that the first of these names is of.
fn run_id(names: &[String]) -> Option<String> {
    names.iter().find_map(|name| name.strip_prefix("run:")).map(str::to_owned)
}
