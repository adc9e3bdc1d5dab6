//! Output of why artifacts were found, and of what they are recognized by.

use runvault::display::{brief, escaped};
use runvault::vault::find::ArtifactMatch;
use runvault::vault::show::AttributeSummary;

use crate::cli::output::signature;

/// Formats why an artifact was found.
pub(crate) fn match_text(found: &ArtifactMatch) -> String {
    match found {
        ArtifactMatch::Mention { role, place, .. } => {
            format!("{} ({})", escaped(&place.to_string()), escaped(role))
        }
        ArtifactMatch::Hash { .. } => "has this hash".to_owned(),
        ArtifactMatch::Attribute { name, value } => format!("{} {}", escaped(name), escaped(value)),
        ArtifactMatch::Signature { signature, key_id, .. } => {
            signature::text_of((*signature).into(), key_id.as_deref())
        }
        ArtifactMatch::Note { note } => format!("note {}", escaped(note)),
        ArtifactMatch::Tag { tag } => format!("@{}", escaped(tag)),
        ArtifactMatch::Pinned { .. } => "pinned".to_owned(),
        ArtifactMatch::Label { key, value } => format!("label {}={}", escaped(key), escaped(value)),
    }
}

/// The attributes used as labels, most specific first.
pub(crate) const IDENTIFYING_ATTRIBUTES: [&str; 6] =
    ["run_id", "result", "trace_id", "adapter_id", "model_id", "io_ref"];

/// Returns the values by which a person recognizes an artifact with these attributes.
pub(crate) fn label(attributes: &[AttributeSummary]) -> String {
    const VALUES: usize = 3;
    let values = IDENTIFYING_ATTRIBUTES.iter().flat_map(|name| {
        let values = attributes.iter().filter(move |attribute| attribute.name == **name);
        values.map(|attribute| brief(&attribute.value).to_string())
    });
    values.take(VALUES).collect::<Vec<_>>().join(" ")
}
