//! Answers that an engine may give together, compared with those that it gives one by one.

use std::collections::BTreeSet;

use super::kinds::{TestDocument, core, note, sheet};
use super::{TestVault, digest, unknown};
use crate::artifact::group;
use crate::digest::CoreHash;
use crate::storage::interface::{
    Annotation, DigestPair, Neighborhood, NeighborsQuery, Sharers, SharersQuery, composed,
};

const GROUPS: [&str; 2] = [group::PROMPT, group::RESPONSE];

fn document(name: &str) -> TestDocument {
    TestDocument::new(name)
        .mention("prompt", 3, digest("late"))
        .mention("prompt", 1, digest("p"))
        .mention("response", 2, digest("r"))
        .mention("final_response", 2, digest("r"))
        .mention("history", 0, digest("h"))
}

/// Stores artifacts that are linked in every way, and returns their core hashes.
fn fill(vault: &TestVault) -> Vec<CoreHash> {
    let (a, b) = (core(note(), "a"), core(sheet(), "b"));
    vault.add_note(
        &document("a").mention("reference", 0, b.0).named("x").named("\0z").names("y").hints("none"),
    );
    vault.add_note(&document("a").remark("again").mention("reference", 4, digest("missing")).names("x"));
    let text = document("b").mention("reference", 0, a.0).mention("reference", 7, a.0).named("y").names("x");
    vault.add(text.admit(sheet()));
    vault.add_note(
        &TestDocument::new("c").mention("part", 0, a.0).mention("response", 0, digest("r")).named("x"),
    );
    vault.add(TestDocument::new("d").mention("prompt", 0, digest("p")).names("gone").admit(sheet()));
    for (source, relation, target) in [(a, "z", b), (a, "about", b), (core(note(), "c"), "about", a)] {
        vault.annotate(&Annotation::AddLink { source, relation, target, note: Some(relation) }).unwrap();
    }
    vec![b, unknown(), a, core(note(), "c"), core(sheet(), "d")]
}

pub(super) fn a_neighborhood_is_what_its_parts_are(vault: &TestVault) {
    let cores = fill(vault);
    let snapshot = vault.snapshot();
    let nothing = BTreeSet::new();
    let known = BTreeSet::from(["test:x".to_owned(), "test:never".to_owned()]);
    for of in [&cores[..], &cores[..1], &cores[1..2], &[]] {
        for (groups, namesakes, known) in
            [(&GROUPS[..], true, &nothing), (&GROUPS[1..], false, &known), (&[], true, &nothing)]
        {
            let query = NeighborsQuery { of, groups, namesakes, known };
            let found = snapshot.neighborhood(&query).unwrap();
            assert_eq!(found, composed(&*snapshot, &query).unwrap(), "{query:?}");
        }
    }
    let query = NeighborsQuery { of: &cores, groups: &GROUPS, namesakes: true, known: &nothing };
    let Neighborhood { artifacts, neighbors, uses } = snapshot.neighborhood(&query).unwrap();
    assert_eq!((artifacts.len(), neighbors.len(), uses.len()), (4, 4, 5));
    let of_a = &neighbors[&cores[2]];
    assert_eq!((of_a.manual_links.len(), of_a.outgoing.len(), of_a.incoming.len()), (3, 2, 3));
    assert_eq!(of_a.mentions.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    assert!(of_a.has_namesake);
}

pub(super) fn sharers_are_those_of_both_digests(vault: &TestVault) {
    let cores = fill(vault);
    let snapshot = vault.snapshot();
    let pair = |one: &str, other: &str, kind: crate::artifact::Kind| DigestPair {
        digests: [digest(one), digest(other)],
        other_than: kind.name().into(),
    };
    let pairs = [
        pair("p", "r", note()),
        pair("p", "r", sheet()),
        pair("p", "none", sheet()),
        pair("late", "r", sheet()),
        pair("p", "p", note()),
    ];
    // Others are asked for the candidates of each digest.
    let Some(engine) = snapshot.pairs() else { return };
    for limit in [0, 1, 100] {
        let query = SharersQuery { pairs: &pairs, groups: GROUPS, limit };
        let Sharers { candidates, artifacts, mentions } = engine.sharers(&query).unwrap();
        let (a, b, d) = (cores[2], cores[0], cores[4]);
        let mut both = vec![b, d];
        both.sort_unstable();
        assert_eq!(candidates, [vec![b], vec![a], vec![], vec![a], both.clone()]);
        let mut all = [both, vec![a]].concat();
        all.sort_unstable();
        assert_eq!(artifacts.iter().map(|artifact| artifact.core).collect::<Vec<_>>(), all);
        assert_eq!(mentions.len(), limit.min(3));
        for (artifact, of_groups) in mentions {
            for (group, found) in GROUPS.iter().zip(of_groups) {
                assert_eq!(found, snapshot.mentions_of(artifact, group).unwrap());
            }
        }
    }
}
