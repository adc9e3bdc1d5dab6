//! The attributes of traces.

use crate::artifact::AttributeInfo;

pub(super) const ENGINE_VERSION: AttributeInfo =
    AttributeInfo::text("engine_version", "the version of the engine");
pub(super) const RECORDS: AttributeInfo =
    AttributeInfo::count("records", "the number of records, including the header");
const STEP: AttributeInfo = AttributeInfo::text("step", "the name of a step");
pub(super) const STEPS: AttributeInfo = AttributeInfo::count("steps", "the number of steps");
pub(super) const TRACE_ID: AttributeInfo =
    AttributeInfo::text("trace_id", "its id, which is the id of the run");

pub(super) const ALL: [AttributeInfo; 10] = [
    AttributeInfo::CREATED_AT,
    AttributeInfo::DURATION_MS,
    ENGINE_VERSION,
    AttributeInfo::ERRORS,
    AttributeInfo::FINISHED_AT,
    AttributeInfo::FIRST_STEP_AT,
    RECORDS,
    STEP,
    STEPS,
    TRACE_ID,
];
