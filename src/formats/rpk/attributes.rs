//! The declarations of the attributes of run packs.

use super::calls::TOOL_PLACES;
use super::metrics::{HTTP_HOST, HTTP_METHOD, PLATFORM, REDACTION_POLICY, REDACTION_PROFILE};
use crate::artifact::AttributeInfo;

pub(super) const AGENT: AttributeInfo = AttributeInfo::text("agent", "the agent");
pub(super) const CAPTURE_MODE: AttributeInfo = AttributeInfo::text("capture_mode", "how it was recorded");
pub(super) const PROVIDER: AttributeInfo = AttributeInfo::text("provider", "the provider of the model");
pub(super) const SOURCE: AttributeInfo = AttributeInfo::text("source", "the recorder");
pub(super) const SOURCE_RUN_ID: AttributeInfo =
    AttributeInfo::text("source_run_id", "the id of the run that it was derived from");
/// The number of steps.
pub const STEPS: AttributeInfo = AttributeInfo::count("steps", "the number of steps");
const STEP_TYPE: AttributeInfo = AttributeInfo::text("step_type", "the type of a step");
const TOOL: AttributeInfo = AttributeInfo::text("tool", "a tool that was called");

pub(super) const ALL: [AttributeInfo; 28] = [
    AGENT,
    CAPTURE_MODE,
    AttributeInfo::COST_USD,
    AttributeInfo::CREATED_AT,
    AttributeInfo::DURATION_MS,
    AttributeInfo::ERRORS,
    AttributeInfo::FIRST_STEP_AT,
    HTTP_HOST,
    HTTP_METHOD,
    AttributeInfo::LAST_STEP_AT,
    AttributeInfo::LATENCY_MS,
    AttributeInfo::MODEL_ID,
    AttributeInfo::OS,
    PLATFORM,
    PROVIDER,
    REDACTION_POLICY,
    REDACTION_PROFILE,
    AttributeInfo::RUN_ID,
    AttributeInfo::RUNTIME,
    SOURCE,
    SOURCE_RUN_ID,
    STEP_TYPE,
    STEPS,
    AttributeInfo::TOKENS,
    AttributeInfo::TOKENS_INPUT,
    AttributeInfo::TOKENS_OUTPUT,
    TOOL,
    AttributeInfo::TOOL_CALLS,
];

/// The locations of attributes in steps. Tools are only read from `tool.request` and `tool.response`.
pub(super) const STEP_ATTRIBUTES: &[(&str, &[&[&str]])] = &[
    ("provider", &[&["metadata", "provider"], &["input", "provider"]]),
    ("agent", &[&["metadata", "agent"]]),
    ("model_id", &[&["input", "model"], &["metadata", "model"], &["input", "payload", "model"]]),
    ("tool", TOOL_PLACES),
];
