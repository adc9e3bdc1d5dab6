//! `runvault get`

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::digest::DigestPrefix;
use runvault::files;
use runvault::formats;
use runvault::storage::StoredMember;
use runvault::vault::api::SignatureName;
use runvault::vault::details::CapturesRequest;
use runvault::vault::resolve::RequestedHashes;
use runvault::{LocatedCapture, Vault};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::{self, ArtifactArg};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::disk::ModeArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{HASH, counted};
use crate::cli::output::{disk, matches, stdout};

/// Write an artifact's bytes exactly as they were received
///
/// The bytes are hashed before they are written. If an artifact has several captures, one with a verified signature is
/// preferred, then an unsigned one, then one whose signature was not checked; among equals the first to arrive. If
/// their signature states differ, standard error says which one was chosen. The hash of a capture selects that capture.
///
/// Without -o the bytes go to standard output. For a pack, -o writes a directory, or an archive if the name ends with
/// .zip, .tar, .tar.gz, .tgz, .tar.zst or .tzst; --member writes one of its files.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// Write to this file (for a pack, to this directory or archive); - is standard output
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Write only the member with this name, such as run.json
    #[arg(long, value_name = "NAME", conflicts_with = "core")]
    member: Option<String>,

    /// Write the canonical core, whose SHA-256 is the core hash
    #[arg(long, conflicts_with = "capture", hide_short_help = true)]
    core: bool,

    /// Write the capture with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    capture: Option<DigestPrefix>,

    /// Replace an existing file or pack directory at PATH, and allow control characters to be written to a terminal
    #[arg(long, hide_short_help = true)]
    force: bool,

    #[command(flatten)]
    mode: ModeArgs,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        if let Some(path) = &self.output {
            disk::expect_path(path)?;
        }
        let vault = vault.open()?;
        let file = self.output.as_deref().filter(|path| *path != Path::new("-"));
        if file.is_none()
            && self.member.is_none()
            && self.capture.is_none()
            && !self.core
            && let Some(bytes) = vault.get_quickly(&self.hash.prefix(&vault)?)?
        {
            return self.write_standard_output(&bytes);
        }
        let found = match self.found(&vault) {
            Err(error) => self.recovered(&vault)?.ok_or(error)?,
            Ok(found) => found,
        };
        let options = self.mode.options(self.force, vault.path());
        match (found, file) {
            (FoundFiles::Directory(kind, members), Some(path)) => {
                disk::write_files(path, Some(kind), &members, &options)?;
            }
            (FoundFiles::Document(bytes), Some(path)) => files::write(path, &options, &bytes)?,
            (FoundFiles::Document(bytes), None) => return self.write_standard_output(&bytes),
            (FoundFiles::Directory(..), None) => {
                return Err(CommandError::Usage("it has several files; -o writes all of them".to_owned()));
            }
        }
        Ok(Status::Done)
    }

    /// Returns what is to be written.
    fn found(&self, vault: &Vault) -> Result<FoundFiles, CommandError> {
        // Artifacts that share a capture hash have the same bytes but different core hashes.
        let mut located = if self.core { self.hash.locate(vault)? } else { self.hash.locate_bytes(vault)? };
        if let Some(capture) = &self.capture {
            located = vault.capture_of(&located, capture)?;
        } else if !self.core && !self.hash.is_capture(&located) {
            say_which(vault, &located)?;
        }
        let kind = formats::named(&located.artifact.kind).filter(|kind| kind.is_of_directories());
        Ok(match (&self.member, kind) {
            (Some(name), _) => FoundFiles::Document(member(name, vault.members(&located)?)?),
            (None, _) if self.core => FoundFiles::Document(vault.read_core(&located)?),
            (None, Some(kind)) if self.writes_file() => FoundFiles::Directory(kind, vault.members(&located)?),
            (None, _) => FoundFiles::Document(vault.read(&located)?),
        })
    }

    /// Returns what is to be written if intact bytes have the full hash that is given, or that of the capture, although
    /// the catalog does not lead to them.
    fn recovered(&self, vault: &Vault) -> Result<Option<FoundFiles>, CommandError> {
        let requested = RequestedHashes {
            artifact: self.hash.hash(),
            capture: self.capture.as_ref(),
            is_core: self.core,
        };
        let Some(recovered) = vault.recover_requested(&requested)? else { return Ok(None) };
        if recovered.artifact.is_some() {
            stdout::warning(
                "the catalog of the vault does not lead to these bytes, which are intact and were found by their hash; \
                 \"runvault fsck\" says what is damaged",
            );
        }
        let found = match (&self.member, recovered.artifact) {
            (Some(name), _) => Some(FoundFiles::Document(member(name, recovered.files)?)),
            (None, _) if self.core => recovered.core().map(FoundFiles::Document),
            (None, Some((_, kind))) if kind.is_of_directories() && self.writes_file() => {
                Some(FoundFiles::Directory(kind, recovered.files))
            }
            (None, _) => recovered.into_document().map(FoundFiles::Document),
        };
        Ok(found)
    }

    fn writes_file(&self) -> bool {
        self.output.as_deref().is_some_and(|path| path != Path::new("-"))
    }

    fn write_standard_output(&self, bytes: &[u8]) -> Result<Status, CommandError> {
        stdout::write_exactly(bytes, "the document", "-o FILE, a pipe, or --force", self.force)?;
        Ok(Status::Done)
    }
}

/// What is written.
enum FoundFiles {
    /// One document.
    Document(Vec<u8>),
    /// The files of an artifact of this kind, to a directory or an archive.
    Directory(Kind, Vec<StoredMember>),
}

/// Reports which capture is written if the captures of the artifact have different signature states.
fn say_which(vault: &Vault, located: &LocatedCapture) -> Result<(), CommandError> {
    if !formats::named(&located.artifact.kind).is_some_and(|kind| kind.info().can_be_signed) {
        return Ok(());
    }
    let LocatedCapture { artifact, capture } = located;
    let captures = vault.run(&CapturesRequest::new(artifact.core))?.captures;
    let preferred = SignatureName::from(capture.signature.as_ref().map(|signature| signature.state));
    if captures.iter().any(|capture| capture.signature != preferred) {
        let (count, hash) = (counted(captures.len() as u64, "capture"), capture.capture);
        let said = matches::signature_text(capture.signature.as_ref());
        stdout::note(&format!(
            "{:.12} has {count} whose signatures differ; this is {HASH}{hash}{HASH:#}, {said}; --capture HASH selects another",
            artifact.core
        ));
    }
    Ok(())
}

/// Returns the bytes of the file `name`.
fn member(name: &str, members: Vec<StoredMember>) -> Result<Vec<u8>, CommandError> {
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let found = members.into_iter().find(|member| member.name == name);
    found
        .map(|member| member.bytes)
        .ok_or_else(|| CommandError::No(format!("there is no member {name}; members: {}", names.join(", "))))
}
