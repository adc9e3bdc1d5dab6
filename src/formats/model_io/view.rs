//! The SQL view of the artifacts.

use super::attributes::{ADAPTER_ID, INTERACTIONS, MODE};
use crate::artifact::{ArtifactView, AttributeInfo};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a recorded model session",
    named_by: None,
    columns: &[
        ADAPTER_ID.column().facet(),
        AttributeInfo::MODEL_ID.column().facet(),
        MODE.column().facet(),
        INTERACTIONS.column(),
        AttributeInfo::CREATED_AT.column(),
        AttributeInfo::FINISHED_AT.column(),
        AttributeInfo::DURATION_MS.column(),
        AttributeInfo::LATENCY_MS.column(),
        AttributeInfo::TOKENS_INPUT.column(),
        AttributeInfo::TOKENS_OUTPUT.column(),
        AttributeInfo::TOKENS.column(),
    ],
};
