//! Mentions of digests, and answers that an engine may give together, compared with those that it gives one by one.

use std::collections::BTreeSet;

use super::kinds::{TestDocument, core, note, sheet};
use super::{TestVault, digest, unknown};
use crate::artifact::group;
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::storage::interface::{
    Annotation, DigestPair, MentionRecord, Neighborhood, NeighborsQuery, Sharers, SharersQuery, composed,
};

fn seen(mentions: &[MentionRecord]) -> Vec<(String, String, Digest)> {
    mentions
        .iter()
        .map(|mention| (mention.place.to_string(), mention.role.to_string(), mention.digest))
        .collect()
}

pub(super) fn mentions_are_ordered_and_grouped(vault: &TestVault) {
    let (p, q) = (digest("p"), digest("q"));
    let (first, second) = if p < q { (p, q) } else { (q, p) };
    let document = TestDocument::new("a")
        .mention("response", 10, p)
        .mention("response", 2, second)
        .mention("response", 2, first)
        .mention("prompt", 2, q)
        .mention("final_response", 2, q);
    let core = vault.add_note(&document);
    let snapshot = vault.snapshot();
    let row = |place: &str, role: &str, digest| (place.to_owned(), role.to_owned(), digest);
    let all = snapshot.mentions(&[core], None).unwrap().remove(0);
    assert_eq!(
        seen(&all),
        [
            row("2", "final_response", q),
            row("2", "prompt", q),
            row("2", "response", first),
            row("2", "response", second),
            row("10", "response", p),
        ]
    );
    assert!(all.iter().all(|mention| mention.artifact == core && &*mention.unit == "step"));
    let prompts = snapshot.mentions(&[core], Some("prompt")).unwrap().remove(0);
    assert_eq!(seen(&prompts), [row("2", "prompt", q)]);
    assert_eq!(snapshot.mentions(&[core], Some("response")).unwrap()[0].len(), 4);
    assert!(snapshot.mentions(&[core], Some("history")).unwrap()[0].is_empty());
}

pub(super) fn mentions_of_several_captures_are_counted_once(vault: &TestVault) {
    let one = TestDocument::new("a").mention("prompt", 0, digest("p")).mention("response", 0, digest("r"));
    let core = vault.add_note(&one);
    vault.add_note(&one.clone().remark("the same mentions"));
    vault.add_note(&one.mention("prompt", 1, digest("p")));
    let snapshot = vault.snapshot();
    assert_eq!(snapshot.mentions(&[core], None).unwrap()[0].len(), 3);
    let counts = snapshot.mention_counts(&[core]).unwrap().remove(0);
    let counts: Vec<(&str, u64)> = counts.iter().map(|count| (count.role.as_str(), count.count)).collect();
    assert_eq!(counts, [("prompt", 2), ("response", 1)]);
    assert_eq!(snapshot.mentioning(&[digest("p")], None).unwrap()[0].len(), 2);
}

pub(super) fn artifacts_that_mention_a_digest_are_found(vault: &TestVault) {
    let documents = ["a", "b", "c"].map(|name| {
        TestDocument::new(name)
            .mention("response", 1, digest("p"))
            .mention("prompt", 3, digest("p"))
            .mention("prompt", 0, digest("p"))
            .mention("prompt", 0, digest(name))
    });
    for document in &documents {
        vault.add_note(document);
    }
    vault.add(TestDocument::new("s").mention("prompt", 0, digest("p")).admit(sheet()));
    let snapshot = vault.snapshot();
    let mut cores = ["a", "b", "c"].map(|name| core(note(), name)).to_vec();
    cores.push(core(sheet(), "s"));
    cores.sort_unstable();
    let found = snapshot.mentioning(&[digest("p"), digest("a")], None).unwrap();
    let keys: Vec<(CoreHash, &str, String)> = found[0]
        .iter()
        .map(|mention| (mention.artifact, &*mention.role, mention.place.to_string()))
        .collect();
    let expected: Vec<(CoreHash, &str, String)> = cores
        .iter()
        .flat_map(|core| {
            let is_sheet = *core == super::kinds::core(sheet(), "s");
            let places: &[(&str, &str)] = if is_sheet {
                &[("prompt", "0")]
            } else {
                &[("prompt", "0"), ("prompt", "3"), ("response", "1")]
            };
            places.iter().map(|(role, place)| (*core, *role, (*place).to_owned())).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(keys, expected);
    assert_eq!(found[1].len(), 1);
    let prompts = snapshot.mentioning(&[digest("p")], Some("prompt")).unwrap().remove(0);
    assert_eq!(prompts.len(), 7);
    let of_kind = |kinds: &[&str]| {
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        snapshot.candidates(&[digest("p")], &kinds).unwrap().remove(0)
    };
    let sheets = of_kind(&["sheet"]);
    assert_eq!(sheets, [core(sheet(), "s")]);
    let both = of_kind(&["sheet", "note"]);
    assert_eq!(both, cores);
}

pub(super) fn kinds_are_found_by_the_groups_of_their_mentions(vault: &TestVault) {
    vault.add_note(&TestDocument::new("a").mention("final_response", 0, digest("p")));
    vault.add(
        TestDocument::new("s")
            .mention("response", 0, digest("p"))
            .mention("prompt", 0, digest("p"))
            .admit(sheet()),
    );
    let snapshot = vault.snapshot();
    assert_eq!(snapshot.kinds_with_group("response").unwrap(), ["note", "sheet"]);
    assert_eq!(snapshot.kinds_with_group("prompt").unwrap(), ["sheet"]);
    assert!(snapshot.kinds_with_group("final_response").unwrap().is_empty(), "this is a role");
}

pub(super) fn mentioned_digests_are_found_by_prefix(vault: &TestVault) {
    let mentioned = digest("wanted");
    let mut last = *mentioned.as_bytes();
    last[31] ^= 1;
    let neighbor = Digest::from_bytes(last);
    let document = TestDocument::new("a").mention("prompt", 0, mentioned).mention("response", 0, neighbor);
    vault.add_note(&document.mention("prompt", 1, digest("other")));
    let snapshot = vault.snapshot();
    let prefix: DigestPrefix = mentioned.hex()[..10].parse().unwrap();
    let mut both = vec![mentioned, neighbor];
    both.sort_unstable();
    assert_eq!(snapshot.mentioned_with_prefix(&prefix, None, 10).unwrap(), both);
    assert_eq!(snapshot.mentioned_with_prefix(&prefix, None, 1).unwrap(), both[..1]);
    assert!(snapshot.mentioned_with_prefix(&prefix, None, 0).unwrap().is_empty());
    assert_eq!(snapshot.mentioned_with_prefix(&prefix, Some("prompt"), 10).unwrap(), [mentioned]);
    assert_eq!(snapshot.mentioned_with_prefix(&mentioned.into(), None, 10).unwrap(), [mentioned]);
    let none: DigestPrefix = super::unknown().0.into();
    assert!(snapshot.mentioned_with_prefix(&none, None, 10).unwrap().is_empty());
}

pub(super) fn shared_first_mentions_are_those_of_several_artifacts(vault: &TestVault) {
    let document = |name: &str, first: &str, second: &str| {
        TestDocument::new(name).mention("history", 0, digest(first)).mention("history", 1, digest(second))
    };
    vault.add_note(&document("a", "x", "y"));
    vault.add_note(&document("a", "x", "y").remark("another capture of the same artifact"));
    let shared = |group: &str| vault.snapshot().shared_first_mentions(group).unwrap();
    assert!(shared("history").is_empty());
    vault.add_note(&document("b", "y", "x"));
    assert!(shared("history").is_empty(), "they are at different places");
    vault.add_note(&document("c", "x", "z"));
    vault.add(document("s", "y", "z").admit(sheet()));
    let mut expected = vec![digest("x"), digest("y")];
    expected.sort_unstable();
    assert_eq!(shared("history"), expected);
    assert!(shared("prompt").is_empty());
    let note = core(note(), "c");
    vault.remove(note);
    assert_eq!(shared("history"), [digest("y")]);
}

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
