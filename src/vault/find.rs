//! Finds artifacts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::{ArtifactSummary, PlaceSummary, SignatureName, Timestamp};
use super::details::{ArtifactDetails, Detail};
use super::query::{self, Hit, Match};
use super::{Vault, limit_of};
use crate::artifact::{FINISHED_AT, Kind};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::formats;
use crate::json::reader::excerpt;
use crate::storage::{
    self, ArtifactRecord, HitPage, Order, Page, Snapshot, StorageError, TimeBasis, TimePeriod,
};

pub use crate::storage::{Condition, Cursor};

/// A filter of artifacts. Everything given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArtifactFilter {
    /// The ids of the kinds; any if empty.
    pub kinds: Vec<String>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// The period of one of the times of an artifact. Artifacts without that time do not match.
    pub period: Option<FindPeriod>,
    /// The first digits of the core hash; any if there are none.
    pub digits: Option<String>,
}

impl ArtifactFilter {
    /// Returns whether every artifact matches.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

impl Condition {
    /// Returns the condition of an attribute: a pattern if the value contains `*`, else this value.
    #[must_use]
    pub fn attribute(name: &str, value: &str) -> Self {
        let (name, value) = (name.to_owned(), value.to_owned());
        if value.contains('*') {
            Self::AttributeLike { name, pattern: value }
        } else {
            Self::Attribute { name, value }
        }
    }

    /// Returns the condition of a label: a pattern if the value contains `*`, else this value, or any if there is none.
    #[must_use]
    pub fn label(key: &str, value: Option<&str>) -> Self {
        let key = key.to_owned();
        match value {
            Some(value) if value.contains('*') => Self::LabelLike { key, pattern: value.to_owned() },
            value => Self::Label { key, value: value.map(str::to_owned) },
        }
    }
}

/// A period of one of the times of an artifact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FindPeriod {
    /// The time.
    pub by: TimeBasis,
    /// The beginning, inclusive.
    pub since: Option<Timestamp>,
    /// The end, exclusive.
    pub until: Option<Timestamp>,
}

/// The order of artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindOrder {
    /// Last added or seen again, newest first.
    LastSeen,
    /// First added, newest first.
    FirstSeen,
    /// Created, newest first; artifacts that state no time come last.
    #[default]
    Created,
    /// By core hash.
    Core,
    /// By kind, then last added or seen again, newest first.
    Kind,
    /// By the values of an attribute, the largest or latest first; artifacts without it come last.
    Attribute {
        /// The name. The values must have an order: they are times, durations, counts or amounts.
        name: String,
    },
}

/// A request for artifacts.
///
/// ```
/// # use runvault::{Vault, digest::Digest, intake::ExamineOptions};
/// use runvault::vault::find::{ArtifactFilter, Condition, FindRequest};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
/// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
/// let digest = Digest::from_content(b"Summarise ticket 4711 in one sentence.");
/// let conditions = vec![Condition::Mention { group: Some("prompt".to_owned()), digest }];
/// let filter = ArtifactFilter { conditions, ..ArtifactFilter::default() };
/// let answer = vault.run(&FindRequest { filter, ..FindRequest::default() })?;
/// assert_eq!(answer.hits.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FindRequest {
    /// What the artifacts must match. If it is of packs only, a pack also matches where the session in it does.
    pub filter: ArtifactFilter,
    /// The order of the artifacts.
    pub order: FindOrder,
    /// Whether to include artifacts that another matching artifact extends, such as earlier versions of a trace.
    pub all_versions: bool,
    /// Maximum number of artifacts; unlimited if there is none.
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    pub after: Option<Cursor>,
    /// What to return of each artifact besides its times and its matches.
    pub details: Vec<Detail>,
}

/// Artifacts that match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindAnswer {
    /// The artifacts in the requested order.
    pub hits: Vec<FoundArtifact>,
    /// The end of this page; `None` if it is the last one.
    pub next: Option<Cursor>,
    /// Number of matching artifacts from the beginning of this page on.
    pub found: u64,
    /// Whether there are more than `found`: matches beyond the page are counted up to 1000.
    pub is_more: bool,
    /// Number of artifacts that were omitted because another matching artifact extends them, as far as artifacts were
    /// read: all of them unless there are more than `found`.
    pub hidden: u64,
}

/// An artifact that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundArtifact {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// Its creation time and the requested details.
    #[serde(flatten)]
    pub details: ArtifactDetails,
    /// Where it matches, in the order of the conditions.
    pub matches: Vec<ArtifactMatch>,
}

/// A match of a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ArtifactMatch {
    /// A mention of a digest.
    Mention {
        /// The role of the digest.
        role: String,
        /// The location.
        #[serde(flatten)]
        place: PlaceSummary,
        /// The digest.
        digest: Digest,
    },
    /// The core hash, or the hash of a capture.
    Hash {
        /// The hash.
        hash: Digest,
    },
    /// An attribute.
    Attribute {
        /// The name.
        name: String,
        /// The value.
        value: String,
    },
    /// A capture with a signature of the requested state, or without one.
    Signature {
        /// The state of the signature.
        signature: SignatureName,
        /// The key id that the capture states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_id: Option<String>,
        /// The capture, if it is signed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capture_hash: Option<CaptureHash>,
    },
    /// A note.
    Note {
        /// The full text.
        note: String,
    },
    /// A tag.
    Tag {
        /// The tag.
        tag: String,
    },
    /// A pin.
    Pinned {
        /// True.
        pinned: bool,
    },
    /// A label.
    Label {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
}

/// The number up to which matches are counted if fewer are returned.
const COUNTED: usize = 1_000;

/// Maximum number of matches that are read at a time.
const READ: usize = 50_000;

/// Number of artifacts whose details are read at a time.
const BATCH: usize = 1_000;

impl FindRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if the order is by an attribute that
    /// no kind has or that has no order, and another one if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<FindAnswer, StorageError> {
        let mut hits = Vec::new();
        let answer = self.visit::<StorageError>(vault, &mut |hit| {
            hits.push(hit);
            Ok(())
        })?;
        Ok(FindAnswer { hits, ..answer })
    }
}

impl Vault {
    /// Returns the number of artifacts that match `filter`.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn count(&self, filter: &ArtifactFilter) -> Result<u64, StorageError> {
        self.snapshot()?.count(&storage::Filter::from(filter))
    }
}

impl FindRequest {
    /// Runs the request, and passes the artifacts to `visit` one at a time, so that they need not be in memory together. The
    /// answer contains everything else.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read, and any error that `visit` returns.
    pub fn visit<E: From<StorageError>>(
        &self,
        vault: &Vault,
        visit: &mut dyn FnMut(FoundArtifact) -> Result<(), E>,
    ) -> Result<FindAnswer, E> {
        let snapshot = vault.snapshot()?;
        let (filter, order) = (storage::Filter::from(&self.filter), self.order.to_order()?);
        let limit = limit_of(self.limit);
        // The search stops after the limit or `COUNTED`, whichever is larger.
        let most = limit.max(COUNTED);
        let versions = if self.all_versions { Vec::new() } else { formats::versions() };
        let (mut found, mut hidden, mut is_versioned, mut last) = (0, 0, false, None);
        let mut page = Page { limit: most.min(READ), after: self.after.clone() };
        let is_more = loop {
            let HitPage { items: mut hits, next } = snapshot.find(&filter, order, &page)?;
            let is_everything = next.is_none() && page.after.is_none();
            let artifacts = hits.iter().map(|hit| &hit.artifact);
            let extended = if is_everything {
                query::extended(&*snapshot, &artifacts, &versions)?
            } else {
                // An artifact of any other page can extend one of this page.
                query::extended_by_matching(&*snapshot, &artifacts, &filter, &versions)?
            };
            is_versioned |=
                hits.iter().any(|hit| versions.iter().any(|(kind, _)| *kind == hit.artifact.kind));
            let read = hits.len();
            hits.retain(|hit| !extended.contains(&hit.artifact.core));
            hidden += read - hits.len();
            let shown = hits.get(..limit.saturating_sub(found).min(hits.len())).unwrap_or_default();
            last = shown.last().map(|hit| hit.artifact.clone()).or(last);
            for batch in shown.chunks(BATCH) {
                let cores: Vec<CoreHash> = batch.iter().map(|hit| hit.artifact.core).collect();
                let details = ArtifactDetails::read(&*snapshot, &cores, &self.details)?;
                for (Hit { artifact, matches }, details) in batch.iter().zip(details) {
                    let matches = matches.iter().map(ArtifactMatch::from).collect();
                    visit(FoundArtifact { artifact: artifact.into(), details, matches })?;
                }
            }
            found += hits.len();
            // Where some are extended by others, all of the following ones may be.
            if found > most || next.is_none() || (found == most && !is_versioned) {
                break found > most || next.is_some();
            }
            page.after = next;
        };
        let found = found.min(most);
        let last = last.filter(|_| is_more || limit < found);
        let next = last.map(|artifact| self.order.cursor(&*snapshot, &artifact)).transpose()?;
        Ok(FindAnswer { hits: Vec::new(), next, found: found as u64, is_more, hidden: hidden as u64 })
    }
}

impl FindOrder {
    /// Returns the place of an artifact in the order.
    pub(super) fn cursor(
        &self,
        snapshot: &dyn Snapshot,
        artifact: &ArtifactRecord,
    ) -> Result<Cursor, StorageError> {
        let arrival = artifact.arrival;
        let (kind, time, number, position) = match self.to_order()? {
            Order::Core => (None, None, None, 0),
            Order::Kind => (Some(artifact.kind.clone()), None, None, arrival),
            Order::Newest(TimeBasis::FirstSeen) => (None, Some(artifact.added_at), None, artifact.addition),
            Order::Newest(basis) => (None, snapshot.time_of(artifact, basis)?, None, arrival),
            Order::Largest(name) => (None, None, snapshot.number_of(artifact.core, name)?, arrival),
        };
        Ok(Cursor { kind, time, number, position, core: artifact.core })
    }

    /// Returns the order of the storage interface, or an error of the kind
    /// [`Invalid`](crate::storage::ErrorKind::Invalid) if no kind has the attribute or it has no order.
    pub(super) fn to_order(&self) -> Result<Order, StorageError> {
        Ok(match self {
            Self::LastSeen => Order::Newest(TimeBasis::LastSeen),
            Self::FirstSeen => Order::Newest(TimeBasis::FirstSeen),
            Self::Created => Order::Newest(TimeBasis::Created),
            Self::Core => Order::Core,
            Self::Kind => Order::Kind,
            Self::Attribute { name } => {
                let info = formats::attribute(name).ok_or_else(|| unknown_attribute(name))?;
                if !info.values.is_ordered() {
                    let message = format!("the values of the attribute {name} are text, which has no order");
                    return Err(StorageError::invalid(message));
                }
                Order::Largest(info.name)
            }
        })
    }
}

/// Returns the error that no kind has an attribute of this name.
pub(super) fn unknown_attribute(name: &str) -> StorageError {
    StorageError::invalid(format!("no kind of artifacts has an attribute {}", excerpt(name)))
}

impl From<TimeBasis> for FindOrder {
    /// Returns the order by this time, newest first.
    fn from(basis: TimeBasis) -> Self {
        match basis {
            TimeBasis::FirstSeen => Self::FirstSeen,
            TimeBasis::LastSeen => Self::LastSeen,
            TimeBasis::Created => Self::Created,
            TimeBasis::Finished => Self::Attribute { name: FINISHED_AT.to_owned() },
        }
    }
}

impl From<&ArtifactFilter> for storage::Filter {
    fn from(filter: &ArtifactFilter) -> Self {
        let is_of_directories = |kind: &String| formats::named(kind).is_some_and(Kind::is_of_directories);
        Self {
            kinds: filter.kinds.clone(),
            conditions: filter.conditions.clone(),
            through_members: !filter.kinds.is_empty() && filter.kinds.iter().all(is_of_directories),
            period: filter.period.map(|FindPeriod { by, since, until }| TimePeriod {
                basis: by,
                since: since.map(|time| time.0),
                until: until.map(|time| time.0),
            }),
            digits: filter.digits.as_ref().map(|digits| digits.to_ascii_lowercase()),
            among: None,
        }
    }
}

impl From<&Match> for ArtifactMatch {
    fn from(found: &Match) -> Self {
        match found {
            Match::Mention(mention) => Self::Mention {
                role: mention.role.to_string(),
                place: PlaceSummary::new(&mention.unit, &mention.place),
                digest: mention.digest,
            },
            Match::Hash(digest) => Self::Hash { hash: *digest },
            Match::Attribute { name, value } => Self::Attribute { name: name.clone(), value: value.clone() },
            Match::Signature { capture, signature } => Self::Signature {
                signature: Some(signature.state).into(),
                key_id: signature.key_id.clone(),
                capture_hash: Some(*capture),
            },
            Match::Unsigned => {
                Self::Signature { signature: SignatureName::Unsigned, key_id: None, capture_hash: None }
            }
            Match::Note(text) => Self::Note { note: text.clone() },
            Match::Tag(name) => Self::Tag { tag: name.clone() },
            Match::Pinned => Self::Pinned { pinned: true },
            Match::Label { key, value } => Self::Label { key: key.clone(), value: value.clone() },
        }
    }
}
