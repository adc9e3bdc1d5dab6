//! The SQL view of the artifacts.

use super::attributes::{EFFECTS, IO_REFS};
use crate::artifact::{ArtifactView, AttributeInfo};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "an IO contract",
    named_by: None,
    columns: &[EFFECTS.column(), IO_REFS.column(), AttributeInfo::CREATED_AT.column()],
};
