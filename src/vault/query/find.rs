use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use chrono::{DateTime, Utc};

use crate::artifact::{Place, Signature, SignatureState};
use crate::digest::{CaptureHash, Digest};
use crate::storage::{ArtifactId, ArtifactRow, MentionRow, Result, Snapshot, StorageError, TimeBasis};

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

/// The order of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Newest first by this time, as by [`Chronology::newest_first`](crate::storage::Chronology::newest_first).
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

/// A matching artifact.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// The matches, in the order of the filters.
    pub matches: Vec<Match>,
}

/// A match of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// A mention of the digest.
    Mention {
        /// The role.
        role: String,
        /// The unit of the location; empty if it is a pointer.
        unit: String,
        /// The location.
        place: Place,
        /// The digest.
        digest: Digest,
    },
    /// The attribute.
    Attribute {
        /// The name.
        name: String,
        /// The value.
        value: String,
    },
    /// A signed capture.
    Signature {
        /// The capture.
        capture: CaptureHash,
        /// The state of its signature.
        signature: Signature,
    },
    /// The artifact has an unsigned capture.
    Unsigned,
    /// The note.
    Note {
        /// Its full text.
        text: String,
    },
}

/// Returns the artifacts that match `query`.
///
/// # Errors
/// Returns an error if the database cannot be read.
pub fn find(snapshot: &Snapshot<'_>, query: &Query) -> Result<Vec<Hit>> {
    let mut hits: Vec<Hit> = if let Some(matches) = matching(snapshot, query)? {
        let hit = |(id, matches)| Ok(Hit { artifact: snapshot.artifact_by_id(id)?, matches });
        matches.into_iter().map(hit).collect::<Result<_>>()?
    } else {
        let artifacts = snapshot.artifacts(query.kind.as_deref())?.into_iter();
        artifacts.map(|artifact| Hit { artifact, matches: Vec::new() }).collect()
    };
    hits.retain(|hit| query.kind.as_ref().is_none_or(|kind| *kind == hit.artifact.kind));
    if query.since.is_some() || query.until.is_some() {
        let times = snapshot.chronology(query.by)?;
        hits.retain(|hit| {
            times.time(&hit.artifact).is_some_and(|time| {
                query.since.is_none_or(|since| time >= since) && query.until.is_none_or(|until| time < until)
            })
        });
    }
    sort(snapshot, &mut hits, query.sort)?;
    hits.truncate(query.limit.unwrap_or(usize::MAX));
    Ok(hits)
}

/// Passes the artifacts that match `query` to `visit`, in its order, until it returns false. If the order is that of
/// the journal and the only filter is one mention or the kind, no more is read than needed.
///
/// # Errors
/// Returns the error of `visit`, or one if the database cannot be read.
pub fn find_until<E: From<StorageError>>(
    snapshot: &Snapshot<'_>,
    query: &Query,
    visit: &mut dyn FnMut(Hit) -> std::result::Result<bool, E>,
) -> std::result::Result<(), E> {
    let by_arrival = query.sort == Sort::Newest(TimeBasis::LastSeen);
    let times_are_plain = query.by == TimeBasis::LastSeen || (query.since.is_none() && query.until.is_none());
    let mention = match query.filters.as_slice() {
        _ if !by_arrival || !times_are_plain || query.through_members => None,
        [] => Some(None),
        [Filter::Mention { group, digest }] => {
            let captures = snapshot.candidate_captures(*digest)?;
            let artifacts = snapshot.last_artifact()?;
            let are_dense = captures.len() > FEW && captures.len() as u64 >= artifacts / SPARSE;
            are_dense.then_some(Some((*group, *digest, captures)))
        }
        _ => None,
    };
    let Some(mention) = mention else {
        for hit in find(snapshot, query)? {
            if !visit(hit)? {
                break;
            }
        }
        return Ok(());
    };
    let mut left = query.limit.unwrap_or(usize::MAX);
    let mut last: Option<ArtifactRow> = None;
    loop {
        let page = snapshot.newest(query.kind.as_deref(), last.as_ref(), PAGE)?;
        let Some(end) = page.last() else { return Ok(()) };
        last = Some(end.clone());
        for artifact in page {
            let is_within = query.since.is_none_or(|since| artifact.seen_at >= since)
                && query.until.is_none_or(|until| artifact.seen_at < until);
            let matches = match &mention {
                _ if !is_within => continue,
                None => Vec::new(),
                Some((group, digest, captures)) => {
                    let rows = snapshot.mentions_in(artifact.id, captures, *digest, *group)?;
                    rows.into_iter().map(|row| mention_match(row).1).collect()
                }
            };
            if mention.is_some() && matches.is_empty() {
                continue;
            }
            if left == 0 || !visit(Hit { artifact, matches })? {
                return Ok(());
            }
            left -= 1;
        }
    }
}

/// If no more artifacts than this may mention something, they are examined individually,
const FEW: usize = 1_000;

/// and also if they are fewer than one in this many artifacts.
const SPARSE: u64 = 16;

/// Number of artifacts read at a time.
const PAGE: u32 = 256;

fn sort(snapshot: &Snapshot<'_>, hits: &mut [Hit], sort: Sort) -> Result<()> {
    match sort {
        Sort::Core => hits.sort_by_key(|hit| hit.artifact.core),
        Sort::Newest(basis) => {
            let times = snapshot.chronology(basis)?;
            hits.sort_by(|one, other| times.newest_first(&one.artifact, &other.artifact));
        }
        Sort::Kind => hits.sort_by(|one, other| {
            let key = |hit: &Hit| Reverse(hit.artifact.arrival);
            one.artifact.kind.cmp(&other.artifact.kind).then_with(|| key(one).cmp(&key(other)))
        }),
    }
    Ok(())
}

/// Returns the artifacts that match all filters, with their matches; `None` if there are no filters.
fn matching(snapshot: &Snapshot<'_>, query: &Query) -> Result<Option<BTreeMap<ArtifactId, Vec<Match>>>> {
    let mut all: Option<BTreeMap<ArtifactId, Vec<Match>>> = None;
    for filter in &query.filters {
        let mut found: BTreeMap<ArtifactId, Vec<Match>> = BTreeMap::new();
        let mut containers: BTreeMap<ArtifactId, Vec<ArtifactId>> = BTreeMap::new();
        for (artifact, place) in matches_of(snapshot, filter)? {
            if query.through_members {
                let containers = match containers.entry(artifact) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => unknown.insert(snapshot.containers_of(artifact)?),
                };
                for container in containers {
                    found.entry(*container).or_default().push(place.clone());
                }
            }
            found.entry(artifact).or_default().push(place);
        }
        all = Some(match all {
            None => found,
            Some(before) => both(before, found),
        });
    }
    Ok(all)
}

fn both(
    before: BTreeMap<ArtifactId, Vec<Match>>,
    mut found: BTreeMap<ArtifactId, Vec<Match>>,
) -> BTreeMap<ArtifactId, Vec<Match>> {
    let join = |(artifact, mut matches): (ArtifactId, Vec<Match>)| {
        matches.append(&mut found.remove(&artifact)?);
        Some((artifact, matches))
    };
    before.into_iter().filter_map(join).collect()
}

fn matches_of(snapshot: &Snapshot<'_>, filter: &Filter) -> Result<Vec<(ArtifactId, Match)>> {
    match filter {
        Filter::Mention { group, digest } => {
            let mentions = snapshot.mentioning(*digest, *group)?.into_iter();
            Ok(mentions.map(mention_match).collect())
        }
        Filter::Attribute { name, value } => {
            let place = || Match::Attribute { name: name.clone(), value: value.clone() };
            let artifacts = snapshot.with_attribute(name, value)?.into_iter();
            Ok(artifacts.map(|artifact| (artifact, place())).collect())
        }
        Filter::Signature { state, key_id } => {
            let captures = snapshot.with_signature(*state, key_id.as_deref())?.into_iter();
            Ok(captures
                .filter_map(|row| {
                    let (capture, signature) = (row.capture, row.signature?);
                    Some((row.artifact, Match::Signature { capture, signature }))
                })
                .collect())
        }
        Filter::Unsigned => {
            let artifacts = snapshot.unsigned_artifacts()?.into_iter();
            Ok(artifacts.map(|artifact| (artifact, Match::Unsigned)).collect())
        }
        Filter::Note { text } => {
            let sought = text.to_lowercase();
            let notes = snapshot.notes()?.into_iter();
            let found = notes.filter(|note| note.text.to_lowercase().contains(&sought));
            Ok(found.map(|note| (note.artifact, Match::Note { text: note.text })).collect())
        }
    }
}

fn mention_match(row: MentionRow) -> (ArtifactId, Match) {
    let MentionRow { artifact, role, unit, place, digest } = row;
    (artifact, Match::Mention { role, unit, place, digest })
}
