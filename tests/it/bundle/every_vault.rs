//! Whatever a vault has, a bundle of it is taken by another.

use proptest::prelude::*;
use runvault::Vault;
use runvault::artifact::Kind;
use runvault::digest::CoreHash;
use runvault::formats;
use runvault::intake::{ExamineOptions, SourceError};
use runvault::storage::{ArtifactRecord, ErrorKind, MAX_LINK_NOTE_BYTES, StorageError, is_note};
use runvault::vault::add::{AddMonitor, DocumentOutcome, ExaminedDocument};
use runvault::vault::annotate::{AddLinkRequest, SetLabelsRequest, SetNoteRequest, SetTagRequest};
use runvault::vault::bundle::{self, BundleRequest};
use serde_json::{Value, json};

use super::contents;
use crate::sandbox::{Sandbox, session};

struct Strict;

impl AddMonitor for Strict {
    fn examined(&mut self, examined: &ExaminedDocument) {
        assert_ne!(examined.outcome, DocumentOutcome::Rejected, "{:?}", examined.violations);
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

fn open(sandbox: &Sandbox, name: &str) -> Vault {
    Vault::open_or_create(&sandbox.path(name)).unwrap()
}

fn add(vault: &Vault, document: &str, kind: Option<Kind>) -> CoreHash {
    let options = ExamineOptions { kind, ..ExamineOptions::default() };
    vault.add_document(document.as_bytes().to_vec(), &options).unwrap().core
}

fn row(vault: &Vault, core: CoreHash) -> ArtifactRecord {
    vault.snapshot().unwrap().artifact(core).unwrap().unwrap()
}

/// Exports everything in one vault to another that is empty, and expects the same there.
fn carry_over(sandbox: &Sandbox) {
    let vault = open(sandbox, "v.vault");
    let mut packed = Vec::new();
    vault.export(&BundleRequest::default(), &mut packed).unwrap();
    let options = ExamineOptions::default();
    let bundle = bundle::read(packed.as_slice(), "v.rvz", options.admit.limits.bytes).unwrap();
    let other = open(sandbox, "other.vault");
    other.import(&bundle, &options, &mut Strict).unwrap();
    assert_eq!(contents(sandbox, "v.vault"), contents(sandbox, "other.vault"));
    assert_eq!(said(&vault), said(&other));
}

/// What people said of the artifacts.
fn said(vault: &Vault) -> Vec<Value> {
    let snapshot = vault.snapshot().unwrap();
    let of_one = |artifact: ArtifactRecord| {
        let annotations = snapshot.annotations_of(artifact.core).unwrap();
        let tags: Vec<String> = annotations.tags.into_iter().map(|tag| tag.name).collect();
        let note = annotations.note.map(|note| note.text);
        let edges = snapshot.manual_links_of(artifact.core).unwrap().into_iter();
        let mut links: Vec<String> = edges
            .map(|edge| format!("{} {} {} {:?}", edge.source, edge.relation, edge.target, edge.note))
            .collect();
        links.sort();
        let labels: Vec<String> =
            annotations.labels.iter().map(|label| format!("{}={}", label.key, label.value)).collect();
        json!({"core": artifact.core.to_string(), "tags": tags, "note": note, "labels": labels, "links": links})
    };
    snapshot.all_artifacts(None).unwrap().into_iter().map(of_one).collect()
}

fn tag(vault: &Vault, artifact: &ArtifactRecord, name: &str) -> Result<bool, StorageError> {
    let request = SetTagRequest { core_hash: artifact.core, name: name.to_owned() };
    vault.run(&request).map(|answer| answer.changed)
}

fn note(vault: &Vault, artifact: &ArtifactRecord, text: &str) -> Result<bool, StorageError> {
    let request = SetNoteRequest { core_hash: artifact.core, text: text.to_owned() };
    vault.run(&request).map(|answer| answer.changed)
}

fn label(vault: &Vault, artifact: &ArtifactRecord, key: &str, value: &str) -> Result<bool, StorageError> {
    let labels = [(key.to_owned(), value.to_owned())].into();
    let request = SetLabelsRequest { core_hashes: vec![artifact.core], labels };
    vault.run(&request).map(|answer| answer.changed)
}

fn link(
    vault: &Vault,
    source: &ArtifactRecord,
    relation: &str,
    target: &ArtifactRecord,
    note: Option<&str>,
) -> Result<bool, StorageError> {
    let (source, target, note) = (source.core, target.core, note.map(ToOwned::to_owned));
    let request = AddLinkRequest { source, relation: relation.to_owned(), target, note };
    vault.run(&request).map(|answer| answer.changed)
}

#[test]
fn an_artifact_with_thousands_of_tags_and_links_can_be_carried_over() {
    let sandbox = Sandbox::new();
    let vault = open(&sandbox, "v.vault");
    let core = add(&vault, &session("a", &[("p", "r")]), None);
    let other = add(&vault, &session("b", &[("p", "r")]), None);
    let (one, two) = (row(&vault, core), row(&vault, other));
    // More than 1,000, which was the limit once.
    for number in 0..1_010 {
        tag(&vault, &one, &format!("{number:0100}")).unwrap();
        link(&vault, &one, &format!("r{number}"), &two, Some(&"n".repeat(200))).unwrap();
    }
    carry_over(&sandbox);
}

#[test]
fn what_no_bundle_can_have_cannot_be_said_of_an_artifact() {
    let sandbox = Sandbox::new();
    let vault = open(&sandbox, "v.vault");
    let one = row(&vault, add(&vault, &session("a", &[("p", "r")]), None));
    let two = row(&vault, add(&vault, &session("b", &[("p", "r")]), None));
    let long = "n".repeat(MAX_LINK_NOTE_BYTES + 1);
    for refused in [
        tag(&vault, &one, ""),
        tag(&vault, &one, "two words"),
        tag(&vault, &one, &"t".repeat(101)),
        note(&vault, &one, " "),
        note(&vault, &one, &"n".repeat(4097)),
        label(&vault, &one, "", "v"),
        label(&vault, &one, "-k", "v"),
        label(&vault, &one, &"k".repeat(101), "v"),
        label(&vault, &one, "k", &"v".repeat(1_025)),
        label(&vault, &one, "k", "two\nlines"),
        link(&vault, &one, "Not one", &two, None),
        link(&vault, &one, "r", &one, None),
        link(&vault, &one, "r", &two, Some(&long)),
    ] {
        assert!(matches!(&refused, Err(error) if error.kind() == ErrorKind::Invalid), "{refused:?}");
    }
    link(&vault, &one, "r", &two, long.get(1..)).unwrap();
    carry_over(&sandbox);
}

fn a_note() -> impl Strategy<Value = String> {
    "\\PC{0,40}[a-z\u{1}\n\u{202e}]".prop_filter("blank notes are refused", |note| is_note(note))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn every_vault_can_be_carried_over(
        documents in prop::collection::vec(("[a-z]{1,3}", "\\PC{0,30}", 0..3_u8), 1..6),
        tags in prop::collection::vec((any::<prop::sample::Index>(), "[a-zA-Z0-9_./-]{1,100}"), 0..8),
        notes in prop::collection::vec((any::<prop::sample::Index>(), a_note()), 0..4),
        labels in prop::collection::vec(
            (any::<prop::sample::Index>(), "[a-zA-Z0-9][a-zA-Z0-9_./-]{0,99}", "\\PC{0,40}"), 0..8),
        links in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[a-z][a-z0-9-]{0,39}", prop::option::of(a_note())), 0..6),
    ) {
        let sandbox = Sandbox::new();
        let vault = open(&sandbox, "v.vault");
        let mut cores = Vec::new();
        for (adapter, response, form) in documents {
            let mut document: Value = serde_json::from_str(&session(&adapter, &[("p", &response)])).unwrap();
            // Another capture of the same artifact, or the same bytes as two kinds.
            document["stats"] = form.into();
            document["io_refs"] = json!([]);
            document["effects"] = json!([]);
            let document = document.to_string();
            cores.push(add(&vault, &document, formats::named("model_io")));
            if form == 2 {
                cores.push(add(&vault, &document, formats::named("contract")));
            }
        }
        let rows: Vec<ArtifactRecord> = cores.iter().map(|core| row(&vault, *core)).collect();
        for (artifact, name) in &tags {
            tag(&vault, artifact.get(&rows), name).unwrap();
        }
        for (artifact, note) in &notes {
            self::note(&vault, artifact.get(&rows), note).unwrap();
        }
        for (artifact, key, value) in &labels {
            label(&vault, artifact.get(&rows), key, value).unwrap();
        }
        for (source, target, relation, note) in &links {
            let (source, target) = (source.get(&rows), target.get(&rows));
            if source.core != target.core {
                link(&vault, source, relation, target, note.as_deref()).unwrap();
            }
        }
        carry_over(&sandbox);
    }
}
