//! The locations of mentions, as text.

use crate::storage::MentionRecord;

/// Formats the location of a mention: `interaction 3`, or its pointer.
pub(super) fn location(mention: &MentionRecord) -> String {
    match mention.unit.as_str() {
        "" => mention.place.to_string(),
        unit => format!("{unit} {}", mention.place),
    }
}
