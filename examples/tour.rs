//! The library in one page: archives this directory and asks the vault a few questions.
//!
//! Run it from the repository with `cargo run --example tour`. It leaves the vault in `tour.vault`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::error::Error;
use std::path::{Path, PathBuf};

use runvault::Vault;
use runvault::digest::Digest;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::storage::{Condition, Filter};
use runvault::vault::add::{Examined, Monitor, Outcome};
use runvault::vault::query::{Direction, LinkTarget, Match, Origin, Query};

/// Prints what becomes of every file.
struct Printer;

impl Monitor for Printer {
    fn examined(&mut self, examined: &Examined) {
        let (Some(kind), Some(core)) = (examined.kind, examined.core) else { return };
        let outcome = match examined.outcome {
            Outcome::Added => "added",
            Outcome::NewCapture => "new capture",
            _ => "there already",
        };
        println!("  {outcome:<15} {:<9} {core:.12}  {}", kind.name(), examined.path);
    }

    fn unreadable(&mut self, error: &SourceError) {
        eprintln!("  {error}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let examples: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let examples = examples.strip_prefix(std::env::current_dir()?).map(Path::to_owned).unwrap_or(examples);
    let vault = Vault::open_or_create(Path::new("tour.vault"))?;

    println!("Verified and archived in {}:", vault.path().display());
    vault.add(Inputs::new(vec![Input::Path(examples.clone())]), &ExamineOptions::default(), &mut Printer)?;

    let prompt = "Summarise ticket 4711 in one sentence.";
    println!("\nWho ever saw the prompt {prompt:?}?");
    let digest = Digest::from_content(prompt.as_bytes());
    let asked = Condition::Mention { group: Some("prompt".to_owned()), digest };
    for hit in vault.find(&Query { filter: asked.into(), ..Query::default() })? {
        let places: Vec<String> = hit
            .matches
            .iter()
            .map(|place| match place {
                Match::Mention(mention) => format!("{} {}", mention.unit, mention.place),
                Match::Attribute { name, value } => format!("{name} {value}"),
                Match::Note(text) => format!("note {text}"),
                Match::Signature { capture, .. } => format!("signature of {capture:.12}"),
                Match::Unsigned => "not signed".to_owned(),
                Match::Tag(name) => format!("tag {name}"),
                Match::Pinned => "pinned".to_owned(),
            })
            .collect();
        println!("  {:<9} {:.12}  {}", hit.artifact.kind, hit.artifact.core, places.join(", "));
    }

    let model_io_hash = "4df877dec7f41a5df08a2e176ed2fd872cfdbda8ab3a83d6d5059a60c4df49f7".parse()?;
    let session = vault.session(model_io_hash)?;
    println!("\nThe recording with the ModelIOHash {model_io_hash}:");
    println!(
        "  {} answered {:?}",
        session.model_id,
        session.interactions.first().map_or("", |one| &one.response_content)
    );
    let located = vault.locate(&model_io_hash.0.into())?;
    let bytes = vault.read(&located)?;
    let captures = vault.captures(&located.artifact)?;
    let original = std::fs::read(examples.join("session.json"))?;
    println!("  {} captures; the first comes out byte for byte: {}", captures.len(), bytes == original);

    println!("\nFrom the run to its sessions, traces and contract:");
    let runs = Filter { kinds: vec!["rpk".to_owned()], ..Filter::default() };
    let run = vault.find(&Query { filter: runs, ..Query::default() })?;
    for link in run.first().map(|run| vault.links(&run.artifact)).transpose()?.unwrap_or_default() {
        let arrow = if link.direction == Direction::Out { "->" } else { "<-" };
        let target = match &link.target {
            LinkTarget::Artifact(artifact) => format!("{:<9} {:.12}", artifact.kind, artifact.core),
            LinkTarget::MissingDigest(digest) => format!("missing   {digest:.12}"),
            LinkTarget::MissingName(name) => format!("missing   {name}"),
        };
        let because = match &link.origin {
            Origin::Derived(because) => because,
            Origin::Stated(_) => "a person said so",
        };
        println!("  {arrow} {:<12} {target}  {because}", link.relation);
    }
    Ok(())
}
