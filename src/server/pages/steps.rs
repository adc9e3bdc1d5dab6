//! Common parts of transcripts and drawings of steps.

use maud::{Markup, html};

use crate::artifact::Kind;
use crate::digest::CoreHash;
use crate::display::{self, brief};
use crate::formats;
use crate::server::address;
use crate::server::text::line;
use crate::vault::view::{StepClass, ViewAnswer, ViewStep};

/// Returns the name of a class in the style sheet.
pub(super) fn class(step: &ViewStep) -> &'static str {
    match step.class {
        StepClass::Model => "model",
        StepClass::Tool => "tool",
        _ => "other",
    }
}

/// Returns whether steps took place one after the other, unlike the terms of a contract and the files of a pack.
pub(super) fn are_events(steps: &[ViewStep]) -> bool {
    steps.iter().any(|step| !matches!(step.class, StepClass::Term | StepClass::Member | StepClass::Content))
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

/// Returns a location in an artifact; as a link if it is in one of its steps or files.
pub(super) fn place_in(core: CoreHash, kind: &str, place: &str) -> Markup {
    let known = formats::named(kind);
    let step = known.and_then(|kind| kind.step_at(place)).map(|index| address::step(core, index));
    let file = || file_anchor(kind, place.split(' ').next().unwrap_or_default());
    let further = || Some(further_anchor(known?, known?.further_step_at(place)?));
    let address = step.or_else(|| Some(format!("{}#{}", address::artifact(core), further().or_else(file)?)));
    html! {
        @match address {
            Some(address) => a href=(address) { (line(place)) },
            None => (line(place)),
        }
    }
}

/// Returns the anchor of a step by its number among those of its type, if it has one. It is not known on a page that begins
/// among them.
pub(super) fn anchor_in_type(answer: &ViewAnswer, step: &ViewStep) -> Option<String> {
    let kind = formats::named(&answer.artifact.kind)?;
    let is_further = |step: &&ViewStep| Some(step.step_type.as_str()) == kind.further_step_type();
    let first = answer.steps.iter().find(is_further).filter(|_| is_further(&step))?.index;
    let is_first_known = first == 0 || answer.steps.iter().any(|before| before.index + 1 == first);
    is_first_known.then(|| further_anchor(kind, step.index - first))
}

fn further_anchor(kind: Kind, number: u64) -> String {
    format!("{}-{number}", kind.further_step_type().unwrap_or_default())
}

/// Returns the anchor of a file on the page of its artifact, if artifacts of this kind have files with names.
pub(super) fn file_anchor(kind: &str, name: &str) -> Option<String> {
    let members = formats::named(kind).filter(|kind| kind.is_of_directories())?.members();
    members.contains(&name).then(|| format!("file-{name}"))
}
