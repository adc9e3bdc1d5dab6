//! The library in one page: archives this directory and asks the vault a few questions.
//!
//! Run it from the repository with `cargo run --example tour`. It leaves the vault in `tour.vault`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::error::Error;
use std::path::{Path, PathBuf};

use runvault::Vault;
use runvault::digest::Digest;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::vault::add::{AddMonitor, DocumentOutcome, ExaminedDocument};
use runvault::vault::details::CapturesRequest;
use runvault::vault::find::{ArtifactFilter, ArtifactMatch, Condition, FindRequest};
use runvault::vault::links::{Direction, LinksRequest};

/// Prints what becomes of every file.
struct Printer;

impl AddMonitor for Printer {
    fn examined(&mut self, examined: &ExaminedDocument) {
        let (Some(kind), Some(core)) = (&examined.kind, examined.core_hash) else { return };
        let outcome = match examined.outcome {
            DocumentOutcome::Added => "added",
            DocumentOutcome::NewCapture => "new capture",
            _ => "there already",
        };
        println!("  {outcome:<15} {kind:<9} {core:.12}  {}", examined.path);
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
    let filter = ArtifactFilter { conditions: vec![asked], ..ArtifactFilter::default() };
    for hit in vault.run(&FindRequest { filter, ..FindRequest::default() })?.hits {
        let places = hit.matches.iter().filter_map(|found| match found {
            ArtifactMatch::Mention { place, .. } => Some(place.to_string()),
            _ => None,
        });
        let places: Vec<String> = places.collect();
        println!("  {:<9} {:.12}  {}", hit.artifact.kind, hit.artifact.core_hash, places.join(", "));
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
    let captures = vault.run(&CapturesRequest::new(located.artifact.core))?.captures;
    let original = std::fs::read(examples.join("session.json"))?;
    println!("  {} captures; the first comes out byte for byte: {}", captures.len(), bytes == original);

    println!("\nFrom the run to its sessions, traces and contract:");
    let filter = ArtifactFilter { kinds: vec!["rpk".to_owned()], ..ArtifactFilter::default() };
    let run = vault.run(&FindRequest { filter, ..FindRequest::default() })?.hits.into_iter().next();
    let run = run.ok_or("there is no run")?.artifact.core_hash;
    let request = LinksRequest::new(run);
    for found in vault.run(&request)?.links() {
        let link = found.link;
        let arrow = if link.direction == Direction::Out { "->" } else { "<-" };
        let target = match (link.target.core_hash, link.target.digest, link.target.name) {
            (Some(core), ..) => format!("{:<9} {core:.12}", link.target.kind.unwrap_or_default()),
            (None, Some(digest), _) => format!("missing   {digest:.12}"),
            (None, None, name) => format!("missing   {}", name.unwrap_or_default()),
        };
        let because = match link.because {
            Some(because) if !link.manual => because,
            _ => "a person said so".to_owned(),
        };
        println!("  {arrow} {:<12} {target}  {because}", link.relation);
    }
    Ok(())
}
