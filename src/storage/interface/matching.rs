//! Matches of what is recorded about an artifact with conditions.

use super::{Annotations, AttributeRecord, CaptureRecord, Condition, Match, matches_pattern};
use crate::artifact::SignatureName;

impl Condition {
    /// Returns the match of every artifact that matches the condition by itself, if all have the same one.
    pub(in crate::storage) fn certain_match(&self) -> Option<Match> {
        match self {
            Self::Attribute { name, value } => {
                Some(Match::Attribute { name: name.clone(), value: value.clone() })
            }
            Self::Label { key, value: Some(value) } => {
                Some(Match::Label { key: key.clone(), value: value.clone() })
            }
            Self::Tagged { name: Some(name) } => Some(Match::Tag(name.clone())),
            Self::Pinned => Some(Match::Pinned),
            Self::Signature { state: SignatureName::Unsigned, .. } => Some(Match::Unsigned),
            _ => None,
        }
    }

    /// Returns how the tags, the note, the pin and the labels of an artifact match the condition.
    pub(in crate::storage) fn matches_of_annotations(&self, of: Annotations) -> Vec<Match> {
        let labels = |of: Annotations, wanted: &str, is_match: &dyn Fn(&str) -> bool| {
            let labels = of.labels.into_iter().filter(|label| label.key == wanted && is_match(&label.value));
            labels.map(|label| Match::Label { key: label.key, value: label.value }).collect()
        };
        match self {
            Self::Note { text } => {
                let folded = text.to_lowercase();
                let note = of.note.filter(|note| note.text.to_lowercase().contains(&folded));
                note.map(|note| Match::Note(note.text)).into_iter().collect()
            }
            Self::Tagged { name } => {
                let tags = of.tags.into_iter().map(|tag| tag.name);
                tags.filter(|tag| name.as_ref().is_none_or(|name| name == tag)).map(Match::Tag).collect()
            }
            Self::Pinned => of.pin.map(|_| Match::Pinned).into_iter().collect(),
            Self::Label { key, value } => {
                labels(of, key, &|found| value.as_ref().is_none_or(|value| value == found))
            }
            Self::LabelLike { key, pattern } => labels(of, key, &|found| matches_pattern(pattern, found)),
            _ => Vec::new(),
        }
    }

    /// Returns how the attributes of an artifact, which are sorted by name and value, match the condition.
    pub(in crate::storage) fn matches_of_attributes(&self, mut of: Vec<AttributeRecord>) -> Vec<Match> {
        match self {
            Self::Attribute { name, value } => {
                of.retain(|found| found.name == *name && found.value == *value);
                of.truncate(1);
            }
            Self::AttributeLike { name, pattern } => {
                of.retain(|found| found.name == *name && matches_pattern(pattern, &found.value));
                of.dedup_by(|one, other| one.value == other.value);
            }
            Self::Range { name, least, most } => {
                let is_within = |number: i64| {
                    least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
                };
                of.retain(|found| found.name == *name && found.number.is_some_and(is_within));
                of.sort_by_key(|found| found.number);
            }
            _ => of.clear(),
        }
        of.into_iter().map(|found| Match::Attribute { name: found.name, value: found.value }).collect()
    }

    /// Returns how the signatures of the captures of an artifact match the condition.
    pub(in crate::storage) fn matches_of_captures(&self, of: Vec<CaptureRecord>) -> Vec<Match> {
        let Self::Signature { state, key_id } = self else { return Vec::new() };
        let mut matches: Vec<Match> = Vec::new();
        for CaptureRecord { capture, signature, .. } in of {
            if *state != SignatureName::from(signature.as_ref().map(|signature| signature.state)) {
                continue;
            }
            match signature {
                Some(signature) if key_id.is_none() || signature.key_id == *key_id => {
                    matches.push(Match::Signature { capture, signature });
                }
                None if matches.is_empty() => matches.push(Match::Unsigned),
                _ => {}
            }
        }
        matches
    }
}
