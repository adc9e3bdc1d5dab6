//! Times and failures that the steps of a trace state.

use super::attributes::STEPS;
use crate::artifact::attribute::TimeSpan;
use crate::artifact::{AttributeInfo, Draft, MissingOffset, parse_timestamp};
use crate::json::Value;

/// The sums over the steps of a trace.
#[derive(Default)]
pub(super) struct Metrics {
    steps: usize,
    errors: usize,
    started: TimeSpan,
    finished: TimeSpan,
}

impl Metrics {
    /// Adds a record.
    pub(super) fn follow(&mut self, record: &Value<'_>) {
        if record.get("type").and_then(Value::as_str) != Some("step") {
            return;
        }
        self.steps += 1;
        let text = |name: &str| record.get("result")?.get(name).and_then(Value::as_str);
        self.errors += usize::from(text("status") == Some("failed"));
        // According to the specification, times are in UTC.
        let time = |name: &str| text(name).and_then(|text| parse_timestamp(text, MissingOffset::Utc));
        self.started.add(time("started_at"));
        self.finished.add(time("finished_at"));
    }

    /// Adds the attributes. The duration is from the beginning of the first step to the end of the last.
    pub(super) fn describe(self, draft: &mut Draft) {
        draft.count(STEPS, self.steps);
        draft.count(AttributeInfo::ERRORS, self.errors);
        draft.time(AttributeInfo::FIRST_STEP_AT, self.started.first());
        draft.time(AttributeInfo::FINISHED_AT, self.finished.last());
        let mut span = TimeSpan::default();
        span.add(self.started.first());
        span.add(self.finished.last());
        draft.number(AttributeInfo::DURATION_MS, span.milliseconds());
    }
}
