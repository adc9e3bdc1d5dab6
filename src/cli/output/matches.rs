//! Output of why artifacts were found, and of what they are recognized by.

use clap::ValueEnum;

use runvault::artifact::{Signature, SignatureState};
use runvault::display::{brief, escaped};
use runvault::vault::api::SignatureName;
use runvault::vault::find::ArtifactMatch;
use runvault::vault::show::AttributeSummary;

/// Formats why an artifact was found.
pub(crate) fn match_text(found: &ArtifactMatch) -> String {
    match found {
        ArtifactMatch::Mention { role, place, .. } => {
            format!("{} ({})", escaped(&place.to_string()), escaped(role))
        }
        ArtifactMatch::Hash { .. } => "has this hash".to_owned(),
        ArtifactMatch::Attribute { name, value } => format!("{} {}", escaped(name), escaped(value)),
        ArtifactMatch::Signature { signature, key_id, .. } => text_of((*signature).into(), key_id.as_deref()),
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

/// The state of a capture that is not signed.
const UNSIGNED: &str = "unsigned";

/// What can be known of the signature of a capture, for clap; the preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum CaptureSignatureStatus {
    /// The signature was verified with a key
    Verified,
    /// It is not signed
    Unsigned,
    /// The signature was not checked: there was no key for it
    Unchecked,
    /// The signature is not that of the content
    Wrong,
}

impl CaptureSignatureStatus {
    /// Returns the state of a capture.
    pub(crate) fn new(signature: Option<&Signature>) -> Self {
        match signature.map(|signature| signature.state) {
            Some(SignatureState::Verified) => Self::Verified,
            None => Self::Unsigned,
            Some(SignatureState::Unchecked) => Self::Unchecked,
            Some(SignatureState::Wrong) => Self::Wrong,
        }
    }

    /// Returns its name in arguments, JSON and SQL.
    pub(crate) fn name(self) -> &'static str {
        self.signed().map_or(UNSIGNED, SignatureState::name)
    }

    /// Returns its name in requests.
    pub(crate) fn requested(self) -> SignatureName {
        self.signed().into()
    }

    fn signed(self) -> Option<SignatureState> {
        match self {
            Self::Verified => Some(SignatureState::Verified),
            Self::Unsigned => None,
            Self::Unchecked => Some(SignatureState::Unchecked),
            Self::Wrong => Some(SignatureState::Wrong),
        }
    }
}

impl From<SignatureName> for CaptureSignatureStatus {
    fn from(name: SignatureName) -> Self {
        match name {
            SignatureName::Verified => Self::Verified,
            SignatureName::Unsigned => Self::Unsigned,
            SignatureName::Unchecked => Self::Unchecked,
            SignatureName::Wrong => Self::Wrong,
        }
    }
}

/// Describes a signature, escaped for terminals, such as `signature verified, key id ci-2026`.
pub(crate) fn text(signature: Option<&Signature>) -> String {
    text_of(
        CaptureSignatureStatus::new(signature),
        signature.and_then(|signature| signature.key_id.as_deref()),
    )
}

/// Describes a signature of this state, like [`text`].
pub(crate) fn text_of(state: CaptureSignatureStatus, key_id: Option<&str>) -> String {
    let words = match state {
        CaptureSignatureStatus::Verified => "signature verified",
        CaptureSignatureStatus::Unsigned => "not signed",
        CaptureSignatureStatus::Unchecked => "signature not checked",
        CaptureSignatureStatus::Wrong => "signature wrong",
    };
    key_id.map_or_else(|| words.to_owned(), |id| format!("{words}, key id {}", brief(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_called_the_same_everywhere() {
        for state in CaptureSignatureStatus::value_variants() {
            assert_eq!(state.to_possible_value().unwrap().get_name(), state.name());
        }
    }

    #[test]
    fn ids_cannot_control_a_terminal() {
        let key_id = Some("\u{1b}[2Jci".to_owned());
        let signature = Signature { state: SignatureState::Unchecked, key_id };
        let text = text(Some(&signature));
        assert!(!text.contains('\u{1b}') && text.starts_with("signature not checked, key id "), "{text}");
    }
}
