//! The SQL view of the artifacts.

use super::attributes::{AGENT, CAPTURE_MODE, PROVIDER, SOURCE, SOURCE_RUN_ID, STEPS};
use super::metrics::{PLATFORM, REDACTION_PROFILE};
use crate::artifact::{ArtifactView, AttributeInfo};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a run pack",
    named_by: Some(AttributeInfo::RUN_ID.name),
    columns: &[
        AttributeInfo::RUN_ID.column(),
        SOURCE_RUN_ID.column(),
        PROVIDER.column().facet(),
        AGENT.column().facet(),
        SOURCE.column().facet(),
        CAPTURE_MODE.column().facet(),
        STEPS.column(),
        AttributeInfo::CREATED_AT.column(),
        AttributeInfo::MODEL_ID.column().facet(),
        AttributeInfo::FIRST_STEP_AT.column(),
        AttributeInfo::LAST_STEP_AT.column(),
        AttributeInfo::DURATION_MS.column(),
        AttributeInfo::LATENCY_MS.column(),
        AttributeInfo::TOKENS_INPUT.column(),
        AttributeInfo::TOKENS_OUTPUT.column(),
        AttributeInfo::TOKENS.column(),
        AttributeInfo::COST_USD.column(),
        AttributeInfo::TOOL_CALLS.column(),
        AttributeInfo::ERRORS.column().facet(),
        AttributeInfo::OS.column(),
        PLATFORM.column(),
        REDACTION_PROFILE.column(),
    ],
};
