//! The transcript of an attachment: its content as one step.

use crate::artifact::{BodyContent, BodyRole, StepClass, StepVisitor, TranscriptStep};
use crate::digest::Digest;

/// Calls `visit` with the content.
pub(super) fn visit(document: &[u8], visit: &mut StepVisitor<'_>) {
    let content = BodyContent::from_bytes(document);
    let step_type = if matches!(content, BodyContent::Binary(_)) { "binary" } else { "text" };
    let mut step = TranscriptStep::new(0, step_type, StepClass::Content, content.clone());
    step.digest = Some(Digest::from_content(document));
    step.push(BodyRole::Content, content);
    visit(step);
}
