//! Common parts of transcripts and drawings of steps.

use maud::{Markup, html};

use crate::digest::CoreHash;
use crate::display::{self, brief};
use crate::formats;
use crate::server::address;
use crate::server::text::line;
use crate::vault::view::{StepClassName, ViewStep};

/// Returns the name of a class in the style sheet.
pub(super) fn class(step: &ViewStep) -> &'static str {
    match step.class {
        StepClassName::Model => "model",
        StepClassName::Tool => "tool",
        _ => "other",
    }
}

/// Returns whether steps took place one after the other, unlike the terms of a contract and the files of a pack.
pub(super) fn are_events(steps: &[ViewStep]) -> bool {
    steps.iter().any(|step| {
        !matches!(step.class, StepClassName::Term | StepClassName::Member | StepClassName::Content)
    })
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
    let step = formats::named(kind).and_then(|kind| kind.step_at(place));
    let file = || file_anchor(kind, place.split(' ').next().unwrap_or_default());
    let step = step.map(|index| address::step(core, index));
    let address = step.or_else(|| Some(format!("{}#{}", address::artifact(core), file()?)));
    html! {
        @match address {
            Some(address) => a href=(address) { (line(place)) },
            None => (line(place)),
        }
    }
}

/// Returns the anchor of a file on the page of its artifact, if artifacts of this kind have files with names.
pub(super) fn file_anchor(kind: &str, name: &str) -> Option<String> {
    let members = formats::named(kind).filter(|kind| kind.is_of_directories())?.members();
    members.contains(&name).then(|| format!("file-{name}"))
}
