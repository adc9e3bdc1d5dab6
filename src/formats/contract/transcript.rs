//! The transcript of a contract: its effects, then the refs that it declares.

use std::borrow::Cow;

use super::read;
use super::root::ContractMembers;
use crate::artifact::{BodyContent, BodyRole, StepClass, StepVisitor, TranscriptStep};
use crate::json::Value;
use crate::json::reader::{Limits, ReadError};

/// The type of the steps that are effects. Their numbers are those of the effects.
const EFFECT: &str = "effect";
/// The type of the steps that are refs.
pub(super) const IO_REF: &str = "io_ref";

/// Calls `visit` with each effect and each ref.
pub(super) fn visit(document: &[u8], limits: &Limits, visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
    let root = read::read(document, limits, false)?;
    let Some(view) = ContractMembers::from_root(&root) else { return Ok(()) };
    let terms = view.effects.iter().map(|effect| (EFFECT, "name", effect));
    let terms = terms.chain(view.io_refs.iter().map(|io_ref| (IO_REF, "ref", io_ref)));
    for (index, (step_type, name, term)) in terms.enumerate() {
        let mut step = TranscriptStep::new(index, step_type, StepClass::Term, BodyContent::Json(term));
        let text = |name: &str| term.get(name).and_then(Value::as_non_empty_str);
        step.title = text(name).map(Cow::Borrowed);
        let target = text("target").and_then(|target| view.declared.get(target));
        let mode = target.and_then(|io_ref| io_ref.get("mode")).and_then(Value::as_str).or(text("mode"));
        step.status = mode.map(Cow::Borrowed);
        step.push(BodyRole::Details, BodyContent::Json(term));
        visit(step);
    }
    Ok(())
}
