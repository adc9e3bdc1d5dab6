//! The order of the lists that engines return, which is part of the interface: all engines give the same answers.

use super::query::Direction;
use super::records::{MentionRecord, ReferenceEdge, UnresolvedReference, UnresolvedTarget};

/// Sorts the mentions of one artifact by place, role and digest.
pub(in crate::storage) fn sort_mentions(mentions: &mut [MentionRecord]) {
    mentions.sort_by(|one, other| {
        (&one.place, &one.role, one.digest).cmp(&(&other.place, &other.role, other.digest))
    });
}

/// Sorts the mentions of one digest by artifact, role and place.
pub(in crate::storage) fn sort_mentions_by_artifact(mentions: &mut [MentionRecord]) {
    mentions.sort_by(|one, other| {
        (one.artifact, &one.role, &one.place).cmp(&(other.artifact, &other.role, &other.place))
    });
}

/// Sorts the references from one artifact, or to it, by relation, the artifact at the other end, place and role.
pub(in crate::storage) fn sort_references(edges: &mut [ReferenceEdge], direction: Direction) {
    edges.sort_by(|one, other| {
        let end = |edge: &ReferenceEdge| match direction {
            Direction::Out => edge.mention.digest,
            Direction::In => edge.mention.artifact.0,
        };
        let ends = end(one).cmp(&end(other));
        let places =
            (&one.mention.place, &one.mention.role).cmp(&(&other.mention.place, &other.mention.role));
        one.relation.cmp(&other.relation).then(ends).then(places)
    });
}

/// Sorts references by what is missing, the referring artifact, place, role and relation.
pub(in crate::storage) fn sort_unresolved(references: &mut [UnresolvedReference]) {
    references.sort_by(|one, other| {
        (&one.missing, one.artifact, &one.place, &one.role, &one.relation).cmp(&(
            &other.missing,
            other.artifact,
            &other.place,
            &other.role,
            &other.relation,
        ))
    });
}

/// Returns the references of `sorted` to its first `limit` targets after `after`.
pub(in crate::storage) fn page_of_unresolved(
    mut sorted: Vec<UnresolvedReference>,
    after: Option<&UnresolvedTarget>,
    limit: usize,
) -> Vec<UnresolvedReference> {
    sorted.retain(|reference| after.is_none_or(|after| reference.missing > *after));
    let length = sorted.chunk_by(is_of_same_target).take(limit).map(<[_]>::len).sum();
    sorted.truncate(length);
    sorted
}

/// Returns the number of targets of sorted references.
pub(in crate::storage) fn count_targets(sorted: &[UnresolvedReference]) -> usize {
    sorted.chunk_by(is_of_same_target).count()
}

fn is_of_same_target(one: &UnresolvedReference, other: &UnresolvedReference) -> bool {
    one.missing == other.missing
}
