//! References, containment, and names of artifacts.

use std::collections::BTreeSet;

use super::kinds::{TestDocument, core, folder, note, sheet};
use super::{TestVault, digest, start};
use crate::digest::{CoreHash, Digest};
use crate::storage::RemovedPolicy;
use crate::storage::interface::{
    Condition, Containment, Direction, Filter, UnresolvedReference, UnresolvedTarget,
};

pub(super) fn references_are_listed_from_both_ends(vault: &TestVault) {
    let target = core(sheet(), "target");
    let missing = digest("missing");
    let document = |name: &str| {
        TestDocument::new(name)
            .mention("history", 1, target.0)
            .mention("history", 2, missing)
            .mention("reference", 4, target.0)
            .mention("reference", 0, target.0)
            .mention("reference", 3, missing)
            .mention("prompt", 0, target.0)
            .mention("reference", 9, core(note(), name).0)
    };
    let (a, b) = (vault.add_note(&document("a")), vault.add_note(&document("b")));
    let outgoing = |vault: &TestVault| vault.snapshot().references(&[a], Direction::Out).unwrap().remove(0);
    // The target is not stored yet: only relations that require it are included.
    let keys = |edges: &[crate::storage::interface::ReferenceEdge]| -> Vec<(String, String, bool)> {
        let key = |edge: &crate::storage::interface::ReferenceEdge| {
            (edge.relation.clone(), edge.mention.place.to_string(), edge.target.is_some())
        };
        edges.iter().map(key).collect()
    };
    let row = |relation: &str, place: &str, is_resolved| (relation.to_owned(), place.to_owned(), is_resolved);
    assert_eq!(keys(&outgoing(vault)).len(), 3);
    assert!(outgoing(vault).iter().all(|edge| edge.target.is_none() && edge.relation == "references"));
    vault.add(TestDocument::new("target").admit(sheet()));
    let mut expected = vec![row("extends", "1", true)];
    let resolved = [row("references", "0", true), row("references", "4", true)];
    let unresolved = [row("references", "3", false)];
    if target.0 < missing {
        expected.extend(resolved.into_iter().chain(unresolved));
    } else {
        expected.extend(unresolved.into_iter().chain(resolved));
    }
    assert_eq!(keys(&outgoing(vault)), expected);
    for edge in outgoing(vault) {
        let inverse = edge.target.map(|_| "reported-by");
        assert_eq!(edge.inverse.as_deref(), inverse);
    }
    let incoming = vault.snapshot().references(&[target], Direction::In).unwrap().remove(0);
    let found: Vec<_> = incoming
        .iter()
        .map(|edge| (edge.relation.as_str(), edge.mention.artifact, edge.mention.place.to_string()))
        .collect();
    let (first, second) = if a < b { (a, b) } else { (b, a) };
    let expected = [
        ("extends", first, "1"),
        ("extends", second, "1"),
        ("references", first, "0"),
        ("references", first, "4"),
        ("references", second, "0"),
        ("references", second, "4"),
    ];
    assert_eq!(found, expected.map(|(relation, core, place)| (relation, core, place.to_owned())));
    assert!(
        incoming
            .iter()
            .all(|edge| edge.target == Some(target) && edge.inverse.as_deref() == Some("reported-by"))
    );
}

pub(super) fn references_lead_to_captures(vault: &TestVault) {
    let target = TestDocument::new("target").remark("as it was given");
    let hash = Digest::from_content(&target.bytes());
    let referring = TestDocument::new("from").mention("reference", 0, hash).mention("history", 1, hash);
    let from = vault.add_note(&referring);
    let found = |vault: &TestVault| {
        let snapshot = vault.snapshot();
        let targets = [core(note(), "target"), core(sheet(), "target")];
        let incoming = snapshot.references(&targets, Direction::In).unwrap();
        for (target, edges) in targets.iter().zip(&incoming) {
            assert!(edges.iter().all(|edge| edge.target == Some(*target) && edge.mention.artifact == from));
        }
        let mut outgoing = snapshot.references(&[from], Direction::Out).unwrap().remove(0);
        assert_eq!(outgoing.len(), 1, "only the relation that requires its target leads to captures");
        let edge = outgoing.remove(0);
        let unresolved = snapshot.unresolved(None, usize::MAX).unwrap().len();
        assert_eq!(unresolved, usize::from(edge.target.is_none()));
        let inverse = edge.target.filter(|target| *target == core(sheet(), "target")).map(|_| "reported-by");
        assert_eq!(edge.inverse.as_deref(), inverse);
        (edge.target, incoming.iter().map(Vec::len).collect::<Vec<_>>())
    };
    assert_eq!(found(vault), (None, vec![0, 0]));
    vault.add(TestDocument::new("target").admit(sheet()));
    assert_eq!(found(vault), (None, vec![0, 0]));
    vault.add(target.admit(sheet()));
    assert_eq!(found(vault), (Some(core(sheet(), "target")), vec![0, 1]));
    // Of two artifacts with these bytes, it is the one with the smallest core hash.
    vault.add_note(&target);
    let (note, sheet) = (core(note(), "target"), core(sheet(), "target"));
    let (first, counts, other, other_counts) =
        if note < sheet { (note, [1, 0], sheet, [0, 1]) } else { (sheet, [0, 1], note, [1, 0]) };
    assert_eq!(found(vault), (Some(first), counts.to_vec()));
    vault.remove(first);
    assert_eq!(found(vault), (Some(other), other_counts.to_vec()));
    vault.remove(other);
    assert_eq!(found(vault), (None, vec![0, 0]));
    // A capture of the artifact itself is not another artifact.
    vault.remove(from);
    let own = TestDocument::new("own").remark("first");
    let own_hash = Digest::from_content(&own.bytes());
    let own = vault.add_note(&own);
    vault.add_note(&TestDocument::new("own").mention("reference", 0, own_hash));
    let snapshot = vault.snapshot();
    for direction in [Direction::Out, Direction::In] {
        assert_eq!(snapshot.references(&[own], direction).unwrap(), [[]]);
    }
    assert_eq!(snapshot.unresolved(None, usize::MAX).unwrap(), []);
}

pub(super) fn references_to_what_is_missing_are_reported(vault: &TestVault) {
    let (one, other) = (digest("one"), digest("other"));
    let document = TestDocument::new("a")
        .mention("reference", 1, one)
        .mention("reference", 0, other)
        .mention("history", 0, one)
        .names("missing")
        .hints("not required")
        .named("own")
        .names("own");
    let a = vault.add_note(&document);
    let b = vault.add_note(&TestDocument::new("b").mention("reference", 0, one).names("missing"));
    vault.add_note(&TestDocument::new("c").named("found"));
    vault.add_note(&TestDocument::new("d").names("found"));
    let unresolved = vault.snapshot().unresolved(None, usize::MAX).unwrap();
    let found: Vec<_> = unresolved
        .iter()
        .map(|reference| (reference.missing.clone(), reference.artifact, reference.relation.as_str()))
        .collect();
    let mut digests = vec![
        (UnresolvedTarget::Digest(one), a, "references"),
        (UnresolvedTarget::Digest(one), b, "references"),
        (UnresolvedTarget::Digest(other), a, "references"),
    ];
    digests.sort_unstable();
    let mut names = vec![
        (UnresolvedTarget::Name("test:missing".to_owned()), a, "names"),
        (UnresolvedTarget::Name("test:missing".to_owned()), b, "names"),
        // Its own name does not resolve the reference.
        (UnresolvedTarget::Name("test:own".to_owned()), a, "names"),
    ];
    names.sort_unstable();
    assert_eq!(found, [digests, names].concat());
    assert!(unresolved[..3].iter().all(|reference| reference.role.as_deref() == Some("reference")));
    assert!(unresolved[3..].iter().all(|reference| reference.role.is_none() && reference.place.is_none()));
}

pub(super) fn missing_artifacts_are_listed_by_pages(vault: &TestVault) {
    // Digests of both halves, two that begin alike, and names.
    let one = digest("one");
    let digests: Vec<Digest> = (0..6).map(|number| digest(&format!("missing {number}"))).collect();
    let digests = [&digests[..], &[one, beginning_like(CoreHash(one))]].concat();
    let all = TestDocument::new("all").names("x").names("y");
    vault.add_note(
        &digests.iter().zip(0..).fold(all, |all, (digest, at)| all.mention("reference", at, *digest)),
    );
    vault.add_note(&TestDocument::new("some").mention("reference", 0, digests[1]).names("y"));
    let snapshot = vault.snapshot();
    let all = snapshot.unresolved(None, usize::MAX).unwrap();
    assert_eq!(all.len(), digests.len() + 1 + 3);
    let targets = all.chunk_by(|one, other| one.missing == other.missing).count();
    assert_eq!(snapshot.unresolved(None, 0).unwrap(), []);
    for limit in 1..=targets + 1 {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = snapshot.unresolved(after.as_ref(), limit).unwrap();
            let groups = page.chunk_by(|one, other| one.missing == other.missing).count();
            pages.extend(page);
            after = pages.last().map(|last: &UnresolvedReference| last.missing.clone());
            assert!(groups <= limit);
            if groups < limit {
                break;
            }
        }
        assert_eq!(pages, all, "{limit} at a time");
    }
}

pub(super) fn references_are_unresolved_exactly_while_their_artifact_is_missing(vault: &TestVault) {
    let target = core(note(), "target");
    let twin = beginning_like(target);
    let referring = |name: &str, digests: &[Digest]| {
        let mentions = digests.iter().zip(0..);
        let document = TestDocument::new(name);
        vault.add_note(&mentions.fold(document, |all, (digest, at)| all.mention("reference", at, *digest)))
    };
    let (both, only_twin) = (referring("both", &[target.0, twin]), referring("twin", &[twin]));
    let only_target = referring("target only", &[target.0]);
    let unresolved = || {
        let all = vault.snapshot().unresolved(None, usize::MAX).unwrap().into_iter();
        all.map(|reference| (reference.missing, reference.artifact)).collect::<BTreeSet<_>>()
    };
    let of_twin = BTreeSet::from([both, only_twin].map(|from| (UnresolvedTarget::Digest(twin), from)));
    let of_target = [both, only_target].map(|from| (UnresolvedTarget::Digest(target.0), from));
    let all: BTreeSet<_> = of_target.into_iter().chain(of_twin.clone()).collect();
    assert_eq!(unresolved(), all);
    vault.add_note(&TestDocument::new("target"));
    assert_eq!(unresolved(), of_twin);
    // References to an artifact that is in the vault already, and to another digest with the same first bytes.
    let later = referring("later", &[target.0, twin]);
    let with_later = |mut all: BTreeSet<_>, digests: &[Digest]| {
        all.extend(digests.iter().map(|digest| (UnresolvedTarget::Digest(*digest), later)));
        all
    };
    assert_eq!(unresolved(), with_later(of_twin.clone(), &[twin]));
    vault.remove(target);
    assert_eq!(unresolved(), with_later(all.clone(), &[target.0, twin]));
    let again = vec![TestDocument::new("target").admit(note())];
    vault.put(again, RemovedPolicy::Readmit, start()).unwrap();
    assert_eq!(unresolved(), with_later(of_twin.clone(), &[twin]));
    vault.remove(later);
    assert_eq!(unresolved(), of_twin);
    vault.remove(both);
    vault.remove(only_twin);
    vault.remove(only_target);
    assert_eq!(unresolved(), BTreeSet::new());
    vault.remove(target);
    assert_eq!(unresolved(), BTreeSet::new());
}

pub(super) fn references_within_a_batch_and_a_transaction_are_resolved(vault: &TestVault) {
    let target = core(note(), "target");
    let from = |name: &str| TestDocument::new(name).mention("reference", 0, target.0).admit(note());
    vault.add_all(vec![from("before"), TestDocument::new("target").admit(note()), from("after")]);
    let unresolved = || vault.snapshot().unresolved(None, usize::MAX).unwrap().len();
    assert_eq!(unresolved(), 0);
    // An artifact that is removed together with the one that it refers to leaves nothing.
    let mut transaction = vault.transaction();
    assert!(transaction.prepare_removal(&[target, core(note(), "after")]).unwrap());
    transaction.remove(target, None).unwrap();
    assert_eq!(transaction.snapshot().unresolved(None, usize::MAX).unwrap().len(), 2);
    transaction.remove(core(note(), "after"), None).unwrap();
    transaction.commit().unwrap();
    assert_eq!(unresolved(), 1);
    // Another capture may refer to more.
    let more = TestDocument::new("before").mention("reference", 1, digest("more"));
    vault.add_note(&more.mention("reference", 0, target.0));
    assert_eq!(unresolved(), 2);
}

/// Returns another digest with the same first 31 bytes.
fn beginning_like(core: CoreHash) -> Digest {
    let mut bytes = *core.0.as_bytes();
    bytes[31] ^= 1;
    Digest::from_bytes(bytes)
}

pub(super) fn containers_are_found_by_statement_and_by_bytes(vault: &TestVault) {
    let part = TestDocument::new("part");
    let stating = vault.add(TestDocument::new("stating").admit_folder(Some(&part), None));
    let text = String::from_utf8(part.bytes()).unwrap();
    let holding = vault.add(TestDocument::new("holding").admit_folder(None, Some(&text)));
    let twin = vault.add(part.admit(sheet()));
    let part = core(note(), "part");
    let snapshot = vault.snapshot();
    let containers = |of, by| snapshot.containers(&[of], by).unwrap().remove(0);
    assert_eq!(containers(part, Containment::Declared), [stating]);
    let mut expected = vec![stating, holding, twin];
    expected.sort_unstable();
    assert_eq!(containers(part, Containment::Bytes), expected);
    let mut expected = vec![stating, holding, part];
    expected.sort_unstable();
    assert_eq!(containers(twin, Containment::Bytes), expected);
    assert!(containers(twin, Containment::Declared).is_empty());
    // Directories that share a file do not contain each other.
    drop(snapshot);
    let other = vault.add(TestDocument::new("other").admit_folder(None, Some(&text)));
    let snapshot = vault.snapshot();
    assert!(snapshot.containers(&[other, holding], Containment::Bytes).unwrap().concat().is_empty());
    assert_eq!(other, core(folder(), "other"));
}

pub(super) fn related_artifacts_share_an_attribute(vault: &TestVault) {
    let document = |name: &str, id: &str, after: &str| {
        TestDocument::new(name).attribute("id", id).mention("history", 0, core(note(), after).0)
    };
    let short = vault.add_note(&TestDocument::new("short").attribute("id", "x"));
    let long = vault.add_note(&document("long", "x", "short"));
    let longer = vault.add_note(&document("longer", "x", "long"));
    let elsewhere = vault.add_note(&document("elsewhere", "y", "longer"));
    let all = [short, long, longer, elsewhere];
    let snapshot = vault.snapshot();
    let related =
        |among: &[_], relation, attribute| snapshot.related_among(among, relation, attribute).unwrap();
    assert_eq!(related(&all, "extends", "id"), BTreeSet::from([short, long]));
    assert_eq!(related(&[short, longer], "extends", "id"), BTreeSet::new());
    assert!(related(&all, "references", "id").is_empty());
    assert!(related(&all, "extends", "model").is_empty());
    let to_matching = |of: &[_], filter: &Filter, relation, attribute| {
        snapshot.related_to_matching(of, filter, relation, attribute).unwrap()
    };
    let any = Filter::default();
    assert_eq!(to_matching(&all, &any, "extends", "id"), BTreeSet::from([short, long]));
    assert_eq!(to_matching(&[long], &any, "extends", "id"), BTreeSet::from([long]));
    assert!(to_matching(&all, &any, "references", "id").is_empty());
    assert!(to_matching(&all, &any, "extends", "model").is_empty());
    // Only artifacts that match count as the longer ones.
    let only = Filter { digits: Some(long.0.hex()), ..Filter::default() };
    assert_eq!(to_matching(&all, &only, "extends", "id"), BTreeSet::from([short]));
    let dated = Filter {
        conditions: vec![Condition::Attribute { name: "id".to_owned(), value: "y".to_owned() }],
        ..Filter::default()
    };
    assert!(to_matching(&all, &dated, "extends", "id").is_empty());
}

fn named(name: &str) -> Vec<String> {
    vec![format!("test:{name}")]
}

pub(super) fn names_are_listed_with_their_users(vault: &TestVault) {
    let original = vault.add_note(&TestDocument::new("original").named("run").named("also"));
    let copy = vault.add_note(&TestDocument::new("copy").names("run").named("run"));
    let user = vault.add(TestDocument::new("user").hints("run").names("run").admit(sheet()));
    let other = vault.add_note(&TestDocument::new("other").hints("run"));
    let snapshot = vault.snapshot();
    let names = snapshot.names(&[original, copy, user]).unwrap();
    assert_eq!(names[0].own, ["test:also", "test:run"]);
    assert_eq!(names[0].original, names[0].own);
    assert_eq!(names[1].own, ["test:run"]);
    assert!(names[1].original.is_empty(), "it refers to its name");
    let mentioned: Vec<_> = names[2]
        .mentioned
        .iter()
        .map(|name| (name.relation.as_str(), name.handle.as_str(), name.dangles))
        .collect();
    assert_eq!(mentioned, [("hints", "test:run", false), ("names", "test:run", true)]);
    let by_name = snapshot.named(&[named("run"), named("also"), named("none")].concat()).unwrap();
    assert_eq!((&by_name[0].identified, &by_name[0].originals), (&vec![original, copy], &vec![original]));
    let referring: Vec<_> =
        by_name[0].referring.iter().map(|(relation, core)| (relation.as_str(), *core)).collect();
    // By relation, then in the order of addition.
    assert_eq!(referring, [("hints", user), ("hints", other), ("names", copy), ("names", user)]);
    assert_eq!(by_name[1].identified, [original]);
    assert!(by_name[2].identified.is_empty() && by_name[2].referring.is_empty());
}

pub(super) fn shared_names_are_those_of_several_originals(vault: &TestVault) {
    let document =
        |name: &str, run: &str| TestDocument::new(name).named(run).mention("history", 0, super::digest(name));
    vault.add_note(&document("a", "x"));
    vault.add_note(&document("b", "x"));
    vault.add_note(&document("c", "y"));
    vault.add_note(&document("d", "y").names("y"));
    vault.add_note(&document("e", "z"));
    // No artifact of this kind has mentions of the group.
    vault.add(TestDocument::new("f").named("z").admit(sheet()));
    let snapshot = vault.snapshot();
    assert_eq!(snapshot.shared_names("history").unwrap(), ["test:x"]);
    assert!(snapshot.shared_names("prompt").unwrap().is_empty());
}

pub(super) fn namesakes_are_of_the_same_kind(vault: &TestVault) {
    let one = vault.add_note(&TestDocument::new("one").named("x"));
    let sheet = vault.add(TestDocument::new("sheet").named("x").hints("y").admit(sheet()));
    let referring = vault.add_note(&TestDocument::new("referring").hints("y"));
    let has = |cores: &[_]| vault.snapshot().has_namesake(cores).unwrap();
    assert_eq!(has(&[one, sheet, referring]), [false, false, false]);
    vault.add(TestDocument::new("two").named("x").names("y").admit(note()));
    assert_eq!(has(&[one, sheet, referring]), [true, false, true]);
}

pub(super) fn what_has_names_in_common_or_is_contained_is_not_alone(vault: &TestVault) {
    let folders = ["folder".to_owned()];
    let not_alone = |filter: &Filter| vault.snapshot().not_alone(filter, &folders).unwrap();
    let sorted = |mut cores: Vec<CoreHash>| {
        cores.sort_unstable();
        cores
    };
    let [alone, x, unnamed] = [
        TestDocument::new("alone").named("alone").names("alone"),
        TestDocument::new("x").named("x").named("also"),
        TestDocument::new("unnamed"),
    ]
    .map(|document| vault.add_note(&document));
    let [y, one, other] = [
        TestDocument::new("y").named("y").hints("x"),
        TestDocument::new("one").hints("z"),
        TestDocument::new("other").names("z"),
    ]
    .map(|document| vault.add(document.admit(sheet())));
    assert_eq!(not_alone(&Filter::default()), sorted(vec![x, y, one, other]));
    let sheets = Filter { kinds: vec!["sheet".to_owned()], ..Filter::default() };
    assert_eq!(not_alone(&sheets), sorted(vec![y, one, other]));
    let among = Filter { among: Some(vec![alone, one]), ..Filter::default() };
    assert_eq!(not_alone(&among), [one]);
    // What has not exactly one name can be contained in others, if there are any.
    let part = TestDocument::new("part").named("part");
    let folder = vault.add(TestDocument::new("folder").named("folder").admit_folder(Some(&part), None));
    assert_eq!(not_alone(&Filter::default()), sorted(vec![x, unnamed, y, one, other, folder]));
}
