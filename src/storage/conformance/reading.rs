//! Reading what is stored.

use super::kinds::{TestDocument, core, note, sheet};
use super::{TestVault, digest, second, unknown};
use crate::artifact::SignatureState::{Unchecked, Verified, Wrong};
use crate::artifact::parse_manifest;
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::ErrorKind;
use crate::storage::interface::{CaptureTarget, Containment, Direction, Filter, Names, SharedFile};

pub(super) fn unknown_hashes_have_empty_answers(vault: &TestVault) {
    vault.add_note(&TestDocument::new("a"));
    let snapshot = vault.snapshot();
    let of = [unknown()];
    assert_eq!(snapshot.artifacts(&of).unwrap(), [None]);
    assert_eq!(snapshot.captures(&of).unwrap(), [[]]);
    assert_eq!(snapshot.attributes(&of).unwrap(), [[]]);
    assert_eq!(snapshot.annotations(&of).unwrap()[0], super::super::interface::Annotations::default());
    assert_eq!(snapshot.mentions(&of, None).unwrap(), [[]]);
    assert_eq!(snapshot.mention_counts(&of).unwrap(), [[]]);
    assert_eq!(snapshot.mentioning(&[unknown().0], None).unwrap(), [[]]);
    assert_eq!(snapshot.references(&of, Direction::In).unwrap(), [[]]);
    assert_eq!(snapshot.references(&of, Direction::Out).unwrap(), [[]]);
    assert_eq!(snapshot.names(&of).unwrap(), [Names::default()]);
    assert!(snapshot.named(&["test:none".to_owned()]).unwrap()[0].identified.is_empty());
    assert_eq!(snapshot.has_namesake(&of).unwrap(), [false]);
    assert!(snapshot.related_among(&of, "extends", "id").unwrap().is_empty());
    let any = Filter::default();
    assert!(snapshot.related_to_matching(&of, &any, "extends", "id").unwrap().is_empty());
    assert_eq!(snapshot.manual_links(&of).unwrap(), [[]]);
    assert_eq!(snapshot.containers(&of, Containment::Bytes).unwrap(), [[]]);
    assert_eq!(snapshot.files(&[BlobHash(unknown().0)]).unwrap(), [None]);
    assert_eq!(snapshot.shared_files(&of).unwrap(), [[]]);
    assert_eq!(snapshot.preferred_captures(&of).unwrap(), [None]);
    let target = CaptureTarget { capture: CaptureHash(unknown().0), artifact: core(note(), "a") };
    assert_eq!(snapshot.captures_with(&[target]).unwrap(), [None]);
    assert!(snapshot.kinds_with_group("prompt").unwrap().is_empty());
    assert!(snapshot.attribute_values("model", "", 10).unwrap().is_empty());
}

pub(super) fn no_keys_have_no_answers(vault: &TestVault) {
    vault.add_note(&TestDocument::new("a").mention("prompt", 0, digest("p")));
    let snapshot = vault.snapshot();
    assert!(snapshot.artifacts(&[]).unwrap().is_empty());
    assert!(snapshot.captures(&[]).unwrap().is_empty());
    assert!(snapshot.attributes(&[]).unwrap().is_empty());
    assert!(snapshot.annotations(&[]).unwrap().is_empty());
    assert!(snapshot.mentions(&[], None).unwrap().is_empty());
    assert!(snapshot.mention_counts(&[]).unwrap().is_empty());
    assert!(snapshot.mentioning(&[], None).unwrap().is_empty());
    assert!(snapshot.candidates(&[], &["note".to_owned()]).unwrap().is_empty());
    assert!(snapshot.references(&[], Direction::Out).unwrap().is_empty());
    assert!(snapshot.names(&[]).unwrap().is_empty());
    assert!(snapshot.named(&[]).unwrap().is_empty());
    assert!(snapshot.has_namesake(&[]).unwrap().is_empty());
    assert!(snapshot.related_among(&[], "extends", "id").unwrap().is_empty());
    assert!(snapshot.manual_links(&[]).unwrap().is_empty());
    assert!(snapshot.containers(&[], Containment::Declared).unwrap().is_empty());
    assert!(snapshot.files(&[]).unwrap().is_empty());
    assert!(snapshot.shared_files(&[]).unwrap().is_empty());
    assert!(snapshot.preferred_captures(&[]).unwrap().is_empty());
    assert!(snapshot.captures_with(&[]).unwrap().is_empty());
}

pub(super) fn answers_are_in_the_order_of_the_keys(vault: &TestVault) {
    let cores: Vec<CoreHash> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            let shared = TestDocument::new(name).mention("prompt", 0, digest(name)).attribute("model", name);
            vault.add_note(&shared.named(name))
        })
        .collect();
    let of = [cores[2], unknown(), cores[0], cores[2]];
    let snapshot = vault.snapshot();
    let found: Vec<Option<CoreHash>> =
        snapshot.artifacts(&of).unwrap().into_iter().map(|record| Some(record?.core)).collect();
    assert_eq!(found, [Some(cores[2]), None, Some(cores[0]), Some(cores[2])]);
    let values: Vec<Vec<String>> = snapshot
        .attributes(&of)
        .unwrap()
        .into_iter()
        .map(|attributes| attributes.into_iter().map(|attribute| attribute.value).collect())
        .collect();
    assert_eq!(values, [vec!["c"], vec![], vec!["a"], vec!["c"]]);
    let counts: Vec<usize> = snapshot.captures(&of).unwrap().iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 0, 1, 1]);
    let counts: Vec<usize> = snapshot.mentions(&of, None).unwrap().iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 0, 1, 1]);
    let own: Vec<Vec<String>> = snapshot.names(&of).unwrap().into_iter().map(|names| names.own).collect();
    assert_eq!(own, [vec!["test:c"], vec![], vec!["test:a"], vec!["test:c"]]);
    let digests = [digest("b"), digest("none"), digest("a")];
    let mentioning: Vec<Vec<CoreHash>> = snapshot
        .mentioning(&digests, None)
        .unwrap()
        .into_iter()
        .map(|mentions| mentions.into_iter().map(|mention| mention.artifact).collect())
        .collect();
    assert_eq!(mentioning, [vec![cores[1]], vec![], vec![cores[0]]]);
}

pub(super) fn members_and_bytes_are_returned_as_stored(vault: &TestVault) {
    let (index, part) = (TestDocument::new("folder"), TestDocument::new("part"));
    let admitted = index.admit_folder(Some(&part), Some("shared text"));
    let (core, capture) = (admitted.core(), admitted.capture());
    vault.add(admitted);
    let snapshot = vault.snapshot();
    let members = snapshot.members(core, capture).unwrap();
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["index", "part", "shared"]);
    for (member, bytes) in members.iter().zip([index.bytes(), part.bytes(), b"shared text".to_vec()]) {
        assert_eq!(member.size, bytes.len() as u64);
        assert_eq!(snapshot.read(core, capture, member.blob).unwrap(), bytes);
    }
    let document = snapshot.captures(&[super::kinds::core(note(), "part")]).unwrap().remove(0).remove(0);
    let only = snapshot.members(document.artifact, document.capture).unwrap();
    assert_eq!((only.len(), only[0].name.as_str()), (1, "document"));
    let target = CaptureTarget { capture, artifact: core };
    let with = snapshot.captures_with(&[target]).unwrap().remove(0).unwrap();
    assert_eq!(with, snapshot.captures(&[core]).unwrap().remove(0).remove(0));
}

pub(super) fn a_capture_is_its_blob(vault: &TestVault) {
    let (index, part) = (TestDocument::new("folder"), TestDocument::new("part"));
    let further = index.clone().remark("further");
    let document = part.admit(note());
    let (core, capture) = (document.core(), document.capture());
    vault.add(document);
    assert_eq!(vault.snapshot().read(core, capture, BlobHash(capture.0)).unwrap(), part.bytes());
    for (shared, index) in
        [(None, &index), (Some("shared"), &index), (Some("other"), &index), (None, &further)]
    {
        let admitted = index.admit_folder(Some(&part), shared);
        let (core, capture) = (admitted.core(), admitted.capture());
        vault.add(admitted);
        let snapshot = vault.snapshot();
        // The names of the files, and which files these are, follow from the blob of the capture.
        let manifest = snapshot.read(core, capture, BlobHash(capture.0)).unwrap();
        let files = parse_manifest(&manifest).unwrap();
        let members = snapshot.members(core, capture).unwrap().into_iter();
        assert_eq!(files, members.map(|member| (member.name, member.blob)).collect::<Vec<_>>());
        assert_eq!(files.len(), 2 + usize::from(shared.is_some()));
    }
}

pub(super) fn a_manifest_is_no_file(vault: &TestVault) {
    let folder = TestDocument::new("folder").admit_folder(None, Some("shared"));
    let (core, manifest) = (folder.core(), folder.manifest().unwrap().bytes().to_vec());
    let capture = folder.capture();
    vault.add(folder);
    let snapshot = vault.snapshot();
    assert_eq!(snapshot.files(&[BlobHash(capture.0)]).unwrap(), [None]);
    assert_eq!(vault.storage.document(core).unwrap(), None);
    drop(snapshot);
    // A file with the bytes of the manifest of another directory does not relate the two.
    let text = std::str::from_utf8(&manifest).unwrap();
    let other = vault.add(TestDocument::new("other").admit_folder(None, Some(text)));
    let snapshot = vault.snapshot();
    let file = snapshot.files(&[BlobHash(capture.0)]).unwrap().remove(0).unwrap();
    assert_eq!((file.artifact, file.name.as_str()), (other, "shared"));
    assert_eq!(snapshot.shared_files(&[core]).unwrap(), [[]]);
    assert_eq!(snapshot.shared_files(&[other]).unwrap(), [[]]);
    assert_eq!(snapshot.containers(&[core, other], Containment::Bytes).unwrap(), [[], []]);
    drop(snapshot);
    // The bytes stay for as long as one of them has them.
    vault.remove(other);
    assert_eq!(vault.snapshot().members(core, capture).unwrap().len(), 2);
}

pub(super) fn what_a_capture_does_not_have_is_an_error(vault: &TestVault) {
    let admitted = TestDocument::new("a").admit(note());
    let (core, capture) = (admitted.core(), admitted.capture());
    vault.add(admitted);
    let snapshot = vault.snapshot();
    for error in [
        snapshot.members(core, CaptureHash(unknown().0)).unwrap_err(),
        snapshot.members(unknown(), capture).unwrap_err(),
        snapshot.read(core, capture, BlobHash(unknown().0)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    }
}

pub(super) fn warnings_and_signatures_are_returned(vault: &TestVault) {
    let document = TestDocument::new("a").warned("two").warned("one").signed(Wrong, "key");
    let core = vault.add_note(&document);
    let capture = vault.snapshot().captures(&[core]).unwrap().remove(0).remove(0);
    let warnings: Vec<&str> = capture.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(warnings, ["one", "two"]);
    let signature = capture.signature.unwrap();
    assert_eq!((signature.state, signature.key_id.as_deref()), (Wrong, Some("key")));
}

pub(super) fn the_preferred_capture_depends_on_the_signatures(vault: &TestVault) {
    let plain = TestDocument::new("a");
    let forms = [
        plain.clone().signed(Wrong, "k"),
        plain.clone().signed(Unchecked, "k"),
        plain.clone(),
        plain.clone().remark("second"),
        plain.clone().signed(Verified, "k"),
    ];
    for (number, preferred) in [0, 1, 2, 2, 4].into_iter().enumerate() {
        let admitted = forms[number].admit(note());
        let core = vault.add(admitted);
        let capture = vault.snapshot().preferred_captures(&[core]).unwrap().remove(0).unwrap();
        assert_eq!(capture.capture, forms[preferred].admit(note()).capture(), "after {number}");
    }
}

pub(super) fn files_are_found_in_the_capture_that_was_added_first(vault: &TestVault) {
    let text = "the same text";
    let one = vault.add(TestDocument::new("one").admit_folder(None, Some(text)));
    let other = TestDocument::new("other").admit_folder(None, Some(text));
    let other = vault.add(other);
    let blob = BlobHash(digest(text));
    let found = |vault: &TestVault| vault.snapshot().files(&[blob]).unwrap().remove(0);
    let file = found(vault).unwrap();
    assert_eq!((file.artifact, file.name.as_str()), (one, "shared"));
    vault.remove(one);
    assert_eq!(found(vault).unwrap().artifact, other);
    vault.remove(other);
    assert_eq!(found(vault), None);
    // Documents are not files of a directory.
    let document = TestDocument::new("document");
    vault.add(document.admit(sheet()));
    let blob = BlobHash(document.admit(sheet()).capture().0);
    assert_eq!(vault.snapshot().files(&[blob]).unwrap(), [None]);
}

pub(super) fn shared_files_are_listed_with_the_artifacts_that_stay(vault: &TestVault) {
    let folders: Vec<CoreHash> = (0..8)
        .map(|number| vault.add(TestDocument::new(&format!("f{number}")).admit_folder(None, Some("text"))))
        .collect();
    let snapshot = vault.snapshot();
    let shared = snapshot.shared_files(&folders[..1]).unwrap().remove(0);
    let mut others = folders[1..].to_vec();
    others.sort_unstable();
    others.truncate(SharedFile::LISTED);
    assert_eq!(shared, [SharedFile { name: "shared".to_owned(), dependents: others, count: 7 }]);
    // What all of them have is not shared with others.
    assert_eq!(snapshot.shared_files(&folders).unwrap(), vec![vec![]; 8]);
    assert_eq!(snapshot.shared_files(&folders[..7]).unwrap()[3][0].dependents, folders[7..]);
}

pub(super) fn attribute_names_and_values_are_sorted_and_limited(vault: &TestVault) {
    for (name, model) in [("a", "beta"), ("b", "alpha"), ("c", "alpine"), ("d", "alpha")] {
        vault.add_at(TestDocument::new(name).attribute("model", model).admit(note()), second(0));
    }
    let last = vault.add_note(&TestDocument::new("e").attribute("id", "al"));
    let snapshot = vault.snapshot();
    assert_eq!(snapshot.attribute_names().unwrap(), ["id", "model"]);
    assert_eq!(snapshot.attribute_values("model", "", 10).unwrap(), ["alpha", "alpine", "beta"]);
    assert_eq!(snapshot.attribute_values("model", "al", 10).unwrap(), ["alpha", "alpine"]);
    assert_eq!(snapshot.attribute_values("model", "al", 1).unwrap(), ["alpha"]);
    assert!(snapshot.attribute_values("model", "al", 0).unwrap().is_empty());
    assert!(snapshot.attribute_values("model", "gamma", 10).unwrap().is_empty());
    drop(snapshot);
    vault.remove(last);
    assert_eq!(vault.snapshot().attribute_names().unwrap(), ["model"]);
}
