//! The SQL view of the artifacts.

use super::attributes::{ENGINE_VERSION, RECORDS, STEPS, TRACE_ID};
use crate::artifact::{ArtifactView, AttributeInfo};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a trace log",
    named_by: Some(TRACE_ID.name),
    columns: &[
        TRACE_ID.column(),
        ENGINE_VERSION.column().facet(),
        RECORDS.column(),
        AttributeInfo::CREATED_AT.column(),
        STEPS.column(),
        AttributeInfo::FIRST_STEP_AT.column(),
        AttributeInfo::FINISHED_AT.column(),
        AttributeInfo::DURATION_MS.column(),
        AttributeInfo::ERRORS.column().facet(),
    ],
};
