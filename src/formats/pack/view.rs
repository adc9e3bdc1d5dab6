//! The SQL view of the artifacts.

use super::index;
use crate::artifact::ArtifactView;

pub(super) const ARTIFACTS: ArtifactView =
    ArtifactView { about: "a run export pack", columns: &index::COLUMNS };
