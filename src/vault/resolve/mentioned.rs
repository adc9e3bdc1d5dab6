//! Hashes that artifacts only mention, such as those of prompts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::Digest;
use crate::vault::api::ArtifactSummary;
use crate::vault::find::ArtifactMatch;

/// A hash that artifacts mention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MentionedHash {
    /// The hash.
    pub digest: Digest,
    /// The artifacts that were last added or seen again, newest first.
    pub artifacts: Vec<MentioningArtifact>,
    /// Number of artifacts that mention it, counted up to 1000.
    pub count: u64,
    /// Whether there are more.
    pub is_more: bool,
}

/// An artifact that mentions a hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MentioningArtifact {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// Where it mentions it.
    pub matches: Vec<ArtifactMatch>,
}

/// Describes how many artifacts mention a hash.
pub(super) fn mentioning(mentioned: &MentionedHash) -> String {
    match mentioned {
        MentionedHash { is_more: true, count, .. } => format!("more than {count} artifacts mention"),
        MentionedHash { count: 1, .. } => "1 artifact mentions".to_owned(),
        MentionedHash { count, .. } => format!("{count} artifacts mention"),
    }
}
