//! Artifacts that were removed after they were located. Nothing may answer with the data of another artifact, and no
//! number of an artifact is used again.

use runvault::storage::{ErrorKind, StorageError};
use runvault::vault::annotate::{
    AddLinkRequest, PinRequest, RemoveNoteRequest, SetNoteRequest, SetTagRequest,
};
use runvault::vault::audit::AuditRequest;
use runvault::vault::details::CapturesRequest;
use runvault::vault::diff::{ComparedArtifact, DiffExtent, DiffRequest};
use runvault::vault::links::LinksRequest;
use runvault::vault::path::PathRequest;
use runvault::vault::remove::RemoveRequest;
use runvault::vault::replay::ResponsesRequest;
use runvault::vault::resolve::ResolveRequest;
use runvault::vault::show::ShowRequest;
use runvault::vault::verify::VerifyRequest;
use runvault::{LookupError, Vault};

use crate::sandbox::{Sandbox, session};

/// Returns a vault with an artifact that was removed after it was located, and another one.
fn replaced(sandbox: &Sandbox) -> (Vault, runvault::LocatedCapture) {
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    let options = runvault::intake::ExamineOptions::default();
    let add = |text: String| vault.add_document(text.into_bytes(), &options).unwrap().core;
    let one = add(session("one", &[("which color", "blue")]));
    let located = vault.locate(&one.0.into()).unwrap();
    let note =
        |core_hash, text: &str| vault.run(&SetNoteRequest { core_hash, text: text.to_owned() }).unwrap();
    note(one, "the note of the first");
    vault.run(&RemoveRequest { artifacts: vec![one], ..RemoveRequest::default() }).unwrap();
    let other = add(session("other", &[("which color", "red")]));
    let other = vault.locate(&other.0.into()).unwrap().artifact;
    assert_ne!(located.artifact.addition, other.addition);
    note(other.core, "the note of the other");
    vault.run(&SetTagRequest { core_hash: other.core, name: "other".to_owned() }).unwrap();
    (vault, located)
}

#[test]
fn a_removed_artifact_is_never_taken_for_another_one() {
    let sandbox = Sandbox::without_vault();
    let (vault, located) = replaced(&sandbox);
    let artifact = &located.artifact;
    let target = ResolveRequest::new("latest").locate(&vault).unwrap().artifact.core;
    let core_hash = artifact.core;
    let links = |depth| LinksRequest { depth, limit: Some(100), ..LinksRequest::new(core_hash) };
    let link = AddLinkRequest { source: core_hash, relation: "r".to_owned(), target, note: None };
    let outcomes: [(&str, Result<(), StorageError>); 10] = [
        ("links", vault.run(&links(1)).map(drop)),
        ("traverse", vault.run(&links(3)).map(drop)),
        ("path", vault.run(&PathRequest { from: core_hash, to: target, coincident: false }).map(drop)),
        ("captures", vault.run(&CapturesRequest::new(core_hash)).map(drop)),
        ("show", vault.run(&ShowRequest { artifact: core_hash }).map(drop)),
        ("tag", vault.run(&SetTagRequest { core_hash, name: "t".to_owned() }).map(drop)),
        ("note", vault.run(&SetNoteRequest { core_hash, text: "n".to_owned() }).map(drop)),
        ("remove note", vault.run(&RemoveNoteRequest { core_hash }).map(drop)),
        ("pin", vault.run(&PinRequest { core_hash, note: None }).map(drop)),
        ("link", vault.run(&link).map(drop)),
    ];
    for (operation, outcome) in outcomes {
        let error = outcome.expect_err(operation);
        assert_eq!(error.kind(), ErrorKind::Gone, "{operation}: {error}");
        assert!(error.to_string().contains(&artifact.core.to_string()), "{operation}: {error}");
    }
    let compared = ComparedArtifact { core_hash, capture_hash: None };
    let diff = DiffRequest {
        ignore: Vec::new(),
        one: compared,
        other: compared,
        all: false,
        extent: DiffExtent::All,
        limit: None,
        after: None,
    };
    let audit = AuditRequest { contract: core_hash, run: None, limit: None, after: None };
    let verify = VerifyRequest { artifacts: vec![core_hash], ..VerifyRequest::default() };
    for (operation, outcome) in [
        ("audit", vault.run(&audit).map(drop)),
        ("diff", vault.run(&diff).map(drop)),
        ("responses", vault.run(&ResponsesRequest::new(core_hash)).map(drop)),
        ("capture", vault.capture_of(&located, &located.capture.capture.0.into()).map(drop)),
        ("verify", vault.run(&verify).map(drop)),
    ] {
        let is_gone = matches!(&outcome, Err(LookupError::Store(error)) if error.kind() == ErrorKind::Gone);
        assert!(is_gone, "{operation}: {outcome:?}");
    }
    let read = vault.read(&located);
    assert!(read.is_err(), "{read:?}");
    assert!(vault.locate(&artifact.core.0.into()).is_err());
}
