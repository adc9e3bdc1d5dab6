//! Names of artifacts.

use super::TestVault;
use super::kinds::{TestDocument, note, sheet};
use crate::digest::CoreHash;
use crate::storage::interface::Filter;

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
