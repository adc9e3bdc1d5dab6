//! Lists references to missing artifacts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::handle::{Vault, limit_of};
use super::links::LinkEnd;
use super::query::{self, MissingTarget, UnresolvedQuery, UnresolvedReferences};
use crate::digest::{CoreHash, Digest};
use crate::storage::{StorageError, UnresolvedTarget};

/// A request for references to missing artifacts. Everything given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UnresolvedRequest {
    /// The id of a kind: only references of artifacts of this kind.
    pub kind: Option<String>,
    /// Only references in this role, such as `reference`, or of this relation, such as `derived-from`.
    pub role: Option<String>,
    /// Whether to include references to data that no format defines, such as schemas.
    pub all: bool,
    /// Maximum number of missing artifacts; unlimited if there is none.
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    pub after: Option<String>,
}

/// References to missing artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnresolvedAnswer {
    /// What is missing: hashes in order, then names.
    pub missing: Vec<MissingArtifact>,
    /// Number of references to data that no format defines that were omitted from this page.
    pub left_out: u64,
    /// The end of this page, as long as there are more: the last hash or name that was examined.
    pub next: Option<String>,
}

/// A missing artifact, with the references to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingArtifact {
    /// Its hash or name.
    #[serde(flatten)]
    pub target: LinkEnd,
    /// The references, by artifact and place.
    pub referrers: Vec<MissingReference>,
}

/// A reference to a missing artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingReference {
    /// The artifact that refers to the missing one.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The relation of the reference.
    pub relation: String,
    /// The role; `None` for names.
    pub role: Option<String>,
    /// The location of the reference; empty for names.
    pub place: String,
}

impl Operation for UnresolvedRequest {
    type Answer = UnresolvedAnswer;
    type Error = StorageError;

    const NAME: &'static str = "unresolved";
    const SUMMARY: &'static str = "List references to missing artifacts";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<UnresolvedAnswer, StorageError> {
        let query = UnresolvedQuery {
            kind: self.kind.clone(),
            role: self.role.clone(),
            all: self.all,
            after: self.after.as_deref().map(target_at),
            limit: limit_of(self.limit),
        };
        let UnresolvedReferences { missing, left_out, next } =
            query::unresolved(&*vault.snapshot()?, &query)?;
        let missing = missing.into_iter().map(MissingArtifact::from).collect();
        Ok(UnresolvedAnswer { missing, left_out, next: next.map(end_of_page) })
    }
}

/// Returns the target at which a page ends.
fn target_at(end: &str) -> UnresolvedTarget {
    Digest::parse_prefixed(end)
        .map_or_else(|| UnresolvedTarget::Name(end.to_owned()), UnresolvedTarget::Digest)
}

/// Returns the end of a page, as [`target_at`] reads it.
fn end_of_page(last: UnresolvedTarget) -> String {
    match last {
        UnresolvedTarget::Digest(digest) => digest.to_string(),
        UnresolvedTarget::Name(name) => name,
    }
}

impl From<MissingTarget> for MissingArtifact {
    fn from(missing: MissingTarget) -> Self {
        let referrers = missing.referrers.into_iter().map(|referrer| MissingReference {
            core_hash: referrer.artifact.core,
            kind: referrer.artifact.kind,
            relation: referrer.relation,
            role: referrer.role,
            place: referrer.place,
        });
        Self { target: (&missing.target).into(), referrers: referrers.collect() }
    }
}
