//! The locations of mentions, as text.

use crate::storage::MentionRecord;

/// Formats the location of a mention: `interaction 3`, or its pointer.
pub(super) fn location(mention: &MentionRecord) -> String {
    match mention.unit.as_str() {
        "" => mention.place.to_string(),
        unit => format!("{unit} {}", mention.place),
    }
}

/// Describes a name by which artifacts are linked, such as `run:17`.
pub(super) fn identified_by(handle: &str) -> String {
    match handle.split_once(':') {
        Some((namespace, name)) => format!("{namespace} id {name}"),
        None => handle.to_owned(),
    }
}
