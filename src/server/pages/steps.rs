//! What transcripts and drawings of steps share.

use crate::display::{self, brief};
use crate::vault::view::{StepClassName, ViewStep};

/// Returns the name of a class in the style sheet.
pub(super) fn class(step: &ViewStep) -> &'static str {
    match step.class {
        StepClassName::Model => "model",
        StepClassName::Tool => "tool",
        _ => "other",
    }
}

/// Formats a duration in milliseconds.
pub(super) fn duration(milliseconds: u64) -> String {
    display::duration(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

/// Describes a step in a drawing.
pub(super) fn label(step: &ViewStep) -> String {
    let mut label = format!("{} {}", step.index, step.step_type);
    label.extend(step.title.iter().map(|title| format!(" {title}")));
    label.extend(step.duration_ms.map(|took| format!(", {}", duration(took))));
    label.push_str(if step.failed { ", failed" } else { "" });
    brief(&label).to_string()
}
