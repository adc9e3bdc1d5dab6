//! The SQL view of the artifacts.

use super::index;
use crate::artifact::{ArtifactView, AttributeInfo};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a run export pack",
    named_by: Some(AttributeInfo::RUN_ID.name),
    columns: &index::COLUMNS,
};
