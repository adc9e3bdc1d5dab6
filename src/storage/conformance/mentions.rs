//! Mentions of digests.

use super::kinds::{TestDocument, core, note, sheet};
use super::{TestVault, digest};
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::storage::interface::MentionRecord;

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
