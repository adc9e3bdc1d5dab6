//! The transcript of a pack: its files, in reading order.

use std::borrow::Cow;

use super::ledger;
use super::members::NAMES;
use crate::artifact::{BodyContent, BodyRole, MemberBytes, StepClass, StepVisitor, TranscriptStep};
use crate::json::reader::{self, Limits, ReadError};

/// Calls `visit` with each file.
pub(super) fn visit(
    members: &[MemberBytes<'_>],
    limits: &Limits,
    visit: &mut StepVisitor<'_>,
) -> Result<(), ReadError> {
    let present = NAMES.into_iter().filter_map(|name| members.iter().find(|member| member.name == name));
    for (index, member) in present.enumerate() {
        if member.name == ledger::NAME {
            visit(describe(index, member, BodyContent::from_bytes(member.bytes)));
        } else {
            let value = reader::read_keeping_overflow(member.bytes, limits)?;
            visit(describe(index, member, BodyContent::Json(&value)));
        }
    }
    Ok(())
}

fn describe<'v>(index: usize, member: &MemberBytes<'v>, content: BodyContent<'v>) -> TranscriptStep<'v> {
    let recorded = BodyContent::from_bytes(member.bytes);
    let mut step = TranscriptStep::new(index, "file", StepClass::Member, recorded);
    step.title = Some(Cow::Borrowed(member.name));
    step.member = Some(member.name);
    step.push(BodyRole::Content, content);
    step
}
