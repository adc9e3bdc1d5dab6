//! The times, durations and token counts that steps state.

use chrono::{DateTime, Utc};

use super::at;
use crate::artifact::{MissingOffset, count, milliseconds, parse_timestamp};
use crate::json::Value;

/// The locations of the time of a step. The format defines none; recorders write these.
const TIMES: &[&[&str]] = &[
    &["timestamp"],
    &["started_at"],
    &["metadata", "timestamp"],
    &["metadata", "started_at"],
    &["metadata", "captured_at"],
];

/// The locations of the duration of a step in milliseconds. The format names these members as volatile.
const DURATIONS: &[&[&str]] = &[
    &["metadata", "duration_ms"],
    &["metadata", "latency_ms"],
    &["metadata", "wall_time_ms"],
    &["duration_ms"],
    &["latency_ms"],
    &["output", "duration_ms"],
    &["output", "latency_ms"],
];

/// The locations of token counts.
const USAGES: &[&[&str]] = &[&["output", "output", "usage"], &["output", "usage"], &["metadata", "usage"]];

/// The names of token counts of requests and of responses in the APIs of providers.
const TOKENS: [&[&str]; 2] = [&["input_tokens", "prompt_tokens"], &["output_tokens", "completion_tokens"]];

/// Returns the time that a step states.
pub(super) fn time(step: &Value<'_>) -> Option<DateTime<Utc>> {
    let texts = TIMES.iter().filter_map(|names| at(step, names)?.as_str());
    texts.filter_map(|text| parse_timestamp(text, MissingOffset::Unknown)).next()
}

/// Returns the duration that a step states, in milliseconds.
pub(super) fn duration(step: &Value<'_>) -> Option<u64> {
    DURATIONS.iter().filter_map(|names| at(step, names)).find_map(milliseconds)
}

/// Returns the number of tokens in the request and in the response that a step states.
pub(super) fn tokens(step: &Value<'_>) -> [Option<u64>; 2] {
    let usage = USAGES.iter().find_map(|names| at(step, names));
    TOKENS.map(|names| names.iter().find_map(|name| usage?.get(name)).and_then(count))
}
