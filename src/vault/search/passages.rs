//! Passages of captures in the vault.

use std::collections::BTreeSet;

use crate::artifact::{ArtifactLocation, Field, Passage};
use crate::digest::CaptureHash;
use crate::formats;
use crate::json::reader::Limits;
use crate::storage::{ArtifactRecord, Snapshot, StorageError, StoredMember};

/// Returns the passages of a capture, from its verified bytes; none if its kind is not supported or it cannot be
/// parsed.
pub(crate) fn capture_passages(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    capture: CaptureHash,
) -> Result<Vec<Passage>, StorageError> {
    Ok(member_passages(&artifact.kind, &snapshot.read_members(artifact.core, capture)?))
}

/// Returns the passages of an artifact of a kind with these files.
pub(crate) fn member_passages(kind: &str, members: &[StoredMember]) -> Vec<Passage> {
    let members = StoredMember::borrowed(members);
    let passages = formats::named(kind).and_then(|kind| kind.passages(&members, &Limits::most()).ok());
    passages.unwrap_or_default()
}

/// Returns the passages of a capture that are indexed: not those that the artifact's first capture has at the same
/// location.
pub(crate) fn indexed(passages: Vec<Passage>, first: &[Passage]) -> Vec<Option<(Field, String)>> {
    let known: BTreeSet<_> = first.iter().map(identity).collect();
    let text = |passage: Passage| {
        let is_known = known.contains(&identity(&passage));
        (!is_known).then_some((passage.field, passage.text))
    };
    passages.into_iter().map(text).collect()
}

/// Returns the part of a passage by which it is compared with others.
fn identity(passage: &Passage) -> (Field, &ArtifactLocation, &str) {
    (passage.field, &passage.place, &passage.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::ArtifactLocation;

    #[test]
    fn what_the_first_capture_says_in_the_same_place_is_left_out() {
        let passage = |field, index, text: &str| Passage {
            field,
            unit: "step",
            place: ArtifactLocation::Index(index),
            text: text.to_owned(),
        };
        let first =
            [passage(Field::TOOL, 1, "b"), passage(Field::TOOL, 0, "a"), passage(Field::STEP, 0, "c")];
        let second = vec![
            passage(Field::TOOL, 0, "a"),
            passage(Field::TOOL, 1, "a"),
            passage(Field::OUTPUT, 0, "c"),
            passage(Field::STEP, 0, "c"),
        ];
        let text = |field, text: &str| Some((field, text.to_owned()));
        assert_eq!(indexed(second, &first), [None, text(Field::TOOL, "a"), text(Field::OUTPUT, "c"), None]);
    }
}
