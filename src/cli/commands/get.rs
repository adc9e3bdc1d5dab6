//! `runvault get`

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::digest::DigestPrefix;
use runvault::files;
use runvault::formats;
use runvault::storage::StoredMember;
use runvault::vault::api::SignatureName;
use runvault::vault::captures::CapturesRequest;
use runvault::{LocatedCapture, Vault};

use crate::cli::args::hash;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::disk;
use crate::cli::output::disk::ModeArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::signature;
use crate::cli::output::stdout;
use crate::cli::output::stdout::{HASH, counted};

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
    hash: ArtifactArg,

    /// Write to this file (for a pack, to this directory or archive); - is standard output
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Write only the member with this name, such as run.json
    #[arg(long, value_name = "NAME", conflicts_with = "core")]
    member: Option<String>,

    /// Write the canonical core, whose SHA-256 is the core hash
    #[arg(long, conflicts_with = "capture")]
    core: bool,

    /// Write the capture with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    capture: Option<DigestPrefix>,

    /// Replace an existing file or pack directory at PATH, and allow control characters to be written to a terminal
    #[arg(long)]
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
        // Artifacts that share a capture hash have the same bytes but different core hashes.
        let mut located =
            if self.core { self.hash.locate(&vault)? } else { self.hash.locate_bytes(&vault)? };
        if let Some(capture) = &self.capture {
            located = vault.capture_of(&located, capture)?;
        } else if !self.core && !self.hash.is_capture(&located) {
            say_which(&vault, &located)?;
        }
        let options = self.mode.options(self.force, vault.path());
        let bytes = match (&self.member, file) {
            (Some(name), _) => member(name, vault.members(&located)?)?,
            (None, _) if self.core => vault.read_core(&located)?,
            (None, Some(path)) if is_of_directories(&located) => {
                disk::write(path, &located, &vault.members(&located)?, &options)?;
                return Ok(Status::Done);
            }
            (None, _) => vault.read(&located)?,
        };
        match file {
            Some(path) => files::write(path, &options, &bytes)?,
            None => return self.write_standard_output(&bytes),
        }
        Ok(Status::Done)
    }

    fn write_standard_output(&self, bytes: &[u8]) -> Result<Status, CommandError> {
        stdout::write_exactly(bytes, "the document", "-o FILE, a pipe, or --force", self.force)?;
        Ok(Status::Done)
    }
}

/// Reports which capture is written if the captures of the artifact have different signature states.
fn say_which(vault: &Vault, located: &LocatedCapture) -> Result<(), CommandError> {
    if !formats::named(&located.artifact.kind).is_some_and(Kind::can_be_signed) {
        return Ok(());
    }
    let LocatedCapture { artifact, capture } = located;
    let captures = vault.run(&CapturesRequest::new(artifact.core))?.captures;
    let preferred = SignatureName::from(capture.signature.as_ref().map(|signature| signature.state));
    if captures.iter().any(|capture| capture.signature != preferred) {
        let (count, hash) = (counted(captures.len() as u64, "capture"), capture.capture);
        let said = signature::text(capture.signature.as_ref());
        stdout::note(&format!(
            "{:.12} has {count} whose signatures differ; this is {HASH}{hash}{HASH:#}, {said}; --capture HASH selects another",
            artifact.core
        ));
    }
    Ok(())
}

fn is_of_directories(located: &LocatedCapture) -> bool {
    formats::named(&located.artifact.kind).is_some_and(Kind::is_of_directories)
}

/// Returns the bytes of the file `name`.
fn member(name: &str, members: Vec<StoredMember>) -> Result<Vec<u8>, CommandError> {
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let found = members.into_iter().find(|member| member.name == name);
    found
        .map(|member| member.bytes)
        .ok_or_else(|| CommandError::No(format!("there is no member {name}; members: {}", names.join(", "))))
}
