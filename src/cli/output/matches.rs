//! Output of why artifacts were found, and of what they are recognized by.

use runvault::artifact::Signature;
use runvault::display::{brief, escaped};
use runvault::vault::add::ExaminedDocument;
use runvault::vault::api::SignatureName;
use runvault::vault::find::ArtifactMatch;

/// Formats why an artifact was found.
pub(crate) fn match_text(found: &ArtifactMatch) -> String {
    match found {
        ArtifactMatch::Mention { role, place, .. } => {
            format!("{} ({})", escaped(&place.to_string()), escaped(role))
        }
        ArtifactMatch::Hash { .. } => "has this hash".to_owned(),
        ArtifactMatch::Attribute { name, value } => format!("{} {}", escaped(name), escaped(value)),
        ArtifactMatch::Signature { signature, key_id, .. } => state_text(*signature, key_id.as_deref()),
        ArtifactMatch::Note { note } => format!("note {}", escaped(note)),
        ArtifactMatch::Tag { tag } => format!("@{}", escaped(tag)),
        ArtifactMatch::Pinned { .. } => "pinned".to_owned(),
        ArtifactMatch::Label { key, value } => format!("label {}={}", escaped(key), escaped(value)),
    }
}

/// Returns the values by which a person recognizes an artifact.
pub(crate) fn artifact_label<'v>(values: impl IntoIterator<Item = &'v str>) -> String {
    values.into_iter().map(|value| brief(value).to_string()).collect::<Vec<_>>().join(" ")
}

/// Describes a signature, escaped for terminals, such as `signature verified, key id ci-2026`.
pub(crate) fn signature_text(signature: Option<&Signature>) -> String {
    let state = signature.map(|signature| signature.state).into();
    state_text(state, signature.and_then(|signature| signature.key_id.as_deref()))
}

/// Describes the signature of an examined document, like [`signature_text`].
pub(crate) fn document_signature_text(examined: &ExaminedDocument) -> String {
    state_text(examined.signature.unwrap_or(SignatureName::Unsigned), examined.key_id.as_deref())
}

/// Describes a signature of this state, like [`signature_text`].
pub(crate) fn state_text(state: SignatureName, key_id: Option<&str>) -> String {
    let words = match state {
        SignatureName::Verified => "signature verified",
        SignatureName::Unsigned => "not signed",
        SignatureName::Unchecked => "signature not checked",
        SignatureName::Wrong => "signature wrong",
    };
    key_id.map_or_else(|| words.to_owned(), |id| format!("{words}, key id {}", brief(id)))
}

#[cfg(test)]
mod tests {
    use runvault::artifact::SignatureState;

    use super::*;

    #[test]
    fn states_are_called_the_same_everywhere() {
        for state in SignatureName::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
    }

    #[test]
    fn ids_cannot_control_a_terminal() {
        let key_id = Some("\u{1b}[2Jci".to_owned());
        let signature = Signature { state: SignatureState::Unchecked, key_id };
        let text = signature_text(Some(&signature));
        assert!(!text.contains('\u{1b}') && text.starts_with("signature not checked, key id "), "{text}");
    }
}
