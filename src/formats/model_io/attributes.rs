//! The attributes of sessions.

use crate::artifact::AttributeInfo;

pub(super) const ADAPTER_ID: AttributeInfo =
    AttributeInfo::text("adapter_id", "the adapter that recorded it");
pub(super) const MODE: AttributeInfo = AttributeInfo::text("mode", "`record` or `replay`");
/// The number of interactions.
pub const INTERACTIONS: AttributeInfo = AttributeInfo::count("interactions", "the number of interactions");

pub(super) const ALL: [AttributeInfo; 11] = [
    ADAPTER_ID,
    AttributeInfo::CREATED_AT,
    AttributeInfo::DURATION_MS,
    AttributeInfo::FINISHED_AT,
    INTERACTIONS,
    AttributeInfo::LATENCY_MS,
    MODE,
    AttributeInfo::MODEL_ID,
    AttributeInfo::TOKENS,
    AttributeInfo::TOKENS_INPUT,
    AttributeInfo::TOKENS_OUTPUT,
];
