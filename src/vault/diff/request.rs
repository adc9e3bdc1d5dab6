//! Compares two artifacts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Counts, Diff, PartChange, compare};
use crate::artifact::{AdmitOptions, Admitted, AttributeInfo, Kind, Part};
use crate::digest::{CaptureHash, CoreHash};
use crate::display::brief;
use crate::formats;
use crate::json::pointer::PointerPattern;
use crate::json::reader::Limits;
use crate::storage::{ErrorKind, Snapshot, StorageError, StoredMember};
use crate::vault::resolve::LookupError;
use crate::vault::{Vault, query};

/// An artifact with its files, stored or not, and the further parts of the run of which it is the first.
#[derive(Debug)]
pub struct Side {
    /// What answers say of it.
    shown: ComparedSide,
    kind: Kind,
    /// The files of the artifact and of each further part.
    documents: Vec<Vec<StoredMember>>,
    /// Whether only what happened in a run is compared.
    without_circumstances: bool,
}

impl Side {
    /// Reads a capture of a stored artifact. If there is none, reads its preferred one, and those of the other parts of the
    /// run of which it is the first part.
    ///
    /// # Errors
    /// Returns [`LookupError::Unreadable`] if the kind is not supported, and [`LookupError::Store`] if the bytes cannot be
    /// read: of the kind [`Gone`](ErrorKind::Gone) if the artifact or the capture is not in the vault.
    pub fn stored(
        vault: &Vault,
        artifact: CoreHash,
        capture: Option<CaptureHash>,
    ) -> Result<Self, LookupError> {
        Self::read(&*vault.snapshot()?, artifact, capture)
    }

    /// Returns an artifact that is not stored.
    #[must_use]
    pub fn admitted(admitted: &Admitted) -> Self {
        let members = admitted.members().iter();
        let members = members
            .map(|member| StoredMember { name: member.name().to_owned(), bytes: member.bytes().to_vec() });
        let (kind, core) = (admitted.kind(), admitted.core());
        let (shown, documents) = (ComparedSide::new(core, None), vec![members.collect()]);
        Self { shown, kind, documents, without_circumstances: false }
    }

    pub(super) fn read(
        snapshot: &dyn Snapshot,
        core: CoreHash,
        capture: Option<CaptureHash>,
    ) -> Result<Self, LookupError> {
        let artifact = snapshot.expect_artifact(core)?;
        let kind = formats::named(&artifact.kind).ok_or_else(|| LookupError::Unreadable {
            core,
            message: format!("it does not know the kind {}", artifact.kind),
        })?;
        let captures = if let Some(capture) = capture {
            let missing = || StorageError::new(ErrorKind::Gone, format!("{core} has no capture {capture}"));
            vec![(core, snapshot.capture(core, capture)?.ok_or_else(missing)?.capture)]
        } else {
            let parts = query::from_first(snapshot, core)?.into_iter();
            let preferred = parts.map(|part| {
                let record = snapshot.preferred_capture(part)?;
                Ok((part, record.ok_or_else(|| StorageError::gone(part))?.capture))
            });
            preferred.collect::<Result<Vec<_>, StorageError>>()?
        };
        let documents = captures.iter().map(|(part, capture)| snapshot.read_members(*part, *capture));
        let documents = documents.collect::<Result<_, _>>()?;
        let mut shown = ComparedSide::new(core, captures.first().map(|(_, capture)| *capture));
        if captures.len() > 1 {
            shown.parts = captures.into_iter().map(|(part, _)| part).collect();
        }
        Ok(Self { shown, kind, documents, without_circumstances: false })
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the core hash.
    #[must_use]
    pub fn core(&self) -> CoreHash {
        self.shown.core_hash
    }

    /// Returns the artifact with this name in answers, and the bytes of the name if it is a path that is not UTF-8. By
    /// default, the name is the core hash.
    #[must_use]
    pub fn named(self, name: String, name_bytes: Option<String>) -> Self {
        Self { shown: ComparedSide { name, name_bytes, ..self.shown }, ..self }
    }

    /// Returns the artifact without the circumstances of a run, such as its environment, which are then not compared.
    #[must_use]
    pub fn without_circumstances(self) -> Self {
        Self { without_circumstances: true, ..self }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shown.name
    }

    /// Returns the total latency that the artifact, or all parts of the run, state, in milliseconds.
    #[must_use]
    pub fn latency_ms(&self) -> Option<i64> {
        let options = AdmitOptions { limits: Limits::most(), ..AdmitOptions::default() };
        let stated = self.documents.iter().map(|members| {
            let [document] = members.as_slice() else { return None };
            let admitted = self.kind.admit(document.bytes.clone(), &options).ok()?;
            let name = AttributeInfo::LATENCY_MS.name;
            admitted.draft().attributes.iter().find(|attribute| attribute.name == name)?.number
        });
        stated.reduce(|total, next| total?.checked_add(next?))?
    }

    /// Returns the parts of the documents. They were within the limits when they were admitted.
    fn parts(&self, ignored: &[PointerPattern]) -> Result<Vec<Part<'_>>, LookupError> {
        let mut all = Vec::new();
        for (number, members) in self.documents.iter().enumerate() {
            let parts = self.kind.parts(&StoredMember::borrowed(members));
            let parts = parts
                .map_err(|error| LookupError::Unreadable { core: self.core(), message: error.to_string() })?;
            let compared =
                parts.into_iter().filter(|part| !(self.without_circumstances && part.is_circumstance));
            all.extend(compared.map(|part| {
                let mut part = part.without(ignored);
                if number > 0 {
                    part.label = format!("{} of part {}", part.label, number + 1);
                }
                part
            }));
        }
        Ok(all)
    }
}

/// A request for the differences between two stored artifacts of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffRequest {
    /// The first artifact.
    pub one: ComparedArtifact,
    /// The second artifact.
    pub other: ComparedArtifact,
    /// Whether to include values that vary between identical runs, and values with the same canonical form.
    #[serde(default)]
    pub all: bool,
    /// Values that are not compared: JSON Pointers into steps and other parts, in which `*` is any name or index.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Which changes to return.
    #[serde(default)]
    pub extent: DiffExtent,
    /// Maximum number of changes; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    #[serde(default)]
    pub after: Option<u64>,
}

/// A stored artifact to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedArtifact {
    /// The artifact.
    pub core_hash: CoreHash,
    /// The capture; if there is none, the preferred one, and those of the other parts of the run of which the artifact is the
    /// first part.
    #[serde(default)]
    pub capture_hash: Option<CaptureHash>,
}

/// Which changes an answer contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiffExtent {
    /// All.
    #[default]
    All,
    /// The first one.
    First,
    /// None, only their counts.
    Counts,
}

/// The differences between two artifacts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiffAnswer {
    /// The id of the kind of both.
    pub kind: String,
    /// Whether there are differences.
    pub different: bool,
    /// Whether the core hashes are equal.
    pub same_core: bool,
    /// The first artifact.
    pub one: ComparedSide,
    /// The second artifact.
    pub other: ComparedSide,
    /// The first change that is not ephemeral.
    pub first_divergence: Option<PartChange>,
    /// Number of parts by type of change.
    pub counts: Counts,
    /// The changes in the order of the artifacts, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<PartChange>>,
    /// The end of this page; none if it is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A compared artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComparedSide {
    /// Its name: as given, or its core hash.
    pub name: String,
    /// The bytes of the name, as hex digits, if it is a path that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_bytes: Option<String>,
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The capture; `None` if it is not stored.
    pub capture_hash: Option<CaptureHash>,
    /// The artifacts that were compared, in their order, if the run of which this one is the first part is stored as several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CoreHash>,
}

impl ComparedSide {
    /// Creates the description of an artifact that is named by its core hash.
    fn new(core_hash: CoreHash, capture_hash: Option<CaptureHash>) -> Self {
        Self { name: core_hash.to_string(), name_bytes: None, core_hash, capture_hash, parts: Vec::new() }
    }
}

impl DiffRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`LookupError::KindMismatch`] if the artifacts are of different kinds, [`LookupError::Unreadable`] if this
    /// program cannot interpret one of them, and [`LookupError::Store`] if they cannot be read: of the kind
    /// [`Gone`](crate::storage::ErrorKind::Gone) if they are not in the vault, and of the kind
    /// [`Invalid`](crate::storage::ErrorKind::Invalid) if what to ignore is not a JSON Pointer.
    pub fn run(&self, vault: &Vault) -> Result<DiffAnswer, LookupError> {
        let snapshot = vault.snapshot()?;
        let side = |of: ComparedArtifact| Side::read(&*snapshot, of.core_hash, of.capture_hash);
        let (one, other) = (side(self.one)?, side(self.other)?);
        let invalid = |text: &String| {
            let message = format!("{} is not a JSON Pointer", brief(text));
            LookupError::Store(StorageError::new(ErrorKind::Invalid, message))
        };
        let pattern = |text: &String| PointerPattern::parse(text).ok_or_else(|| invalid(text));
        let ignored = self.ignore.iter().map(pattern).collect::<Result<Vec<_>, _>>()?;
        let comparison = ArtifactComparison::new(&one, &other, self.all, &ignored)?;
        let answer = comparison.answer();
        let after = self.after.unwrap_or(0);
        let limit = match self.extent {
            DiffExtent::All => self.limit.unwrap_or(u64::MAX),
            DiffExtent::First => 1,
            DiffExtent::Counts => return Ok(answer),
        };
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let mut left = comparison.changes().skip(count(after));
        let changes: Vec<PartChange> = left.by_ref().take(count(limit)).collect();
        let is_more = self.extent == DiffExtent::All && left.next().is_some();
        let next = is_more.then_some(after.saturating_add(limit));
        Ok(DiffAnswer { changes: Some(changes), next, ..answer })
    }
}

/// A comparison of two artifacts, stored or not.
pub struct ArtifactComparison<'s> {
    one: &'s Side,
    other: &'s Side,
    diff: Diff<'s>,
    all: bool,
}

impl<'s> ArtifactComparison<'s> {
    /// Compares two artifacts, with values that vary between identical runs and values with the same canonical form if
    /// `all`, and without those at the places `ignored` in each part.
    ///
    /// # Errors
    /// Returns [`LookupError::KindMismatch`] if they are of different kinds, and [`LookupError::Unreadable`] if this
    /// program cannot interpret one of them.
    pub fn new(
        one: &'s Side,
        other: &'s Side,
        all: bool,
        ignored: &[PointerPattern],
    ) -> Result<Self, LookupError> {
        if one.kind() != other.kind() {
            let (expected, found) = (one.kind().name(), other.kind().name().to_owned());
            return Err(LookupError::KindMismatch { core: other.core(), expected, found });
        }
        let diff = compare(one.parts(ignored)?, other.parts(ignored)?);
        Ok(Self { one, other, diff, all })
    }

    /// Returns the answer without the changes.
    #[must_use]
    pub fn answer(&self) -> DiffAnswer {
        DiffAnswer {
            kind: self.one.kind().name().to_owned(),
            different: self.diff.changes(self.all).next().is_some(),
            same_core: self.one.core() == self.other.core(),
            one: self.one.shown.clone(),
            other: self.other.shown.clone(),
            first_divergence: self.diff.changes(false).next(),
            counts: self.diff.counts(),
            changes: None,
            next: None,
        }
    }

    /// Returns the changes in the order of the artifacts. They are computed as the iterator advances, because there may be
    /// very many.
    pub fn changes(&self) -> impl Iterator<Item = PartChange> {
        self.diff.changes(self.all)
    }
}
