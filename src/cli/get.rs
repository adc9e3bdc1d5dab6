//! `runvault get`

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::digest::DigestPrefix;
use runvault::files;
use runvault::kinds;
use runvault::store::{CaptureRow, StoredMember};
use runvault::{Located, Vault};

use super::disk::ModeArgs;
use super::exit::{Failure, Status};
use super::hash::Named;
use super::output::{HASH, counted};
use super::signature::{self, State};
use super::vault::VaultArgs;
use super::{disk, hash, output};

/// Write an artifact's exact bytes, as they were received.
///
/// The bytes are hashed again before anything is written. Of an artifact with several captures, one whose signature was
/// verified comes first, then one that is not signed, then one whose signature was not checked; among equals the one that
/// arrived first. If they differ in that, standard error says which one it is. The hash of a capture gives exactly that one.
///
/// Without -o they go to standard output. A pack has several files: -o writes them as a directory, or as an archive if the
/// name ends with .zip, .tar, .tar.gz, .tgz, .tar.zst or .tzst; --member gives one of them.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, a capture's own hash, the first digits of one, @tag, or latest
    hash: Named,

    /// Write to this file instead, of a pack to this directory or archive; - is standard output
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Write only the file of this name, such as run.json
    #[arg(long, value_name = "NAME", conflicts_with = "core")]
    member: Option<String>,

    /// Write the canonical core, whose SHA-256 is the core hash
    #[arg(long, conflicts_with = "capture")]
    core: bool,

    /// Write the capture with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    capture: Option<DigestPrefix>,

    /// Replace the file or the directory of a pack at PATH, and write to a terminal what may control it
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    mode: ModeArgs,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
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
        let mut located = match self.hash.hash() {
            // The core is another one for each artifact that has a capture with this hash, the bytes are not.
            Some(prefix) if !self.core => vault.locate_bytes(prefix)?,
            _ => self.hash.locate(&vault)?,
        };
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

    fn write_standard_output(&self, bytes: &[u8]) -> Result<Status, Failure> {
        output::write_exactly(bytes, "the document", "-o FILE, a pipe, or --force", self.force)?;
        Ok(Status::Done)
    }
}

/// Says which capture is written if those of the artifact differ in what is known of their signatures.
fn say_which(vault: &Vault, located: &Located) -> Result<(), Failure> {
    if !kinds::named(&located.artifact.kind).is_some_and(Kind::can_be_signed) {
        return Ok(());
    }
    let captures = vault.snapshot()?.captures(located.artifact.id)?;
    let state = |capture: &CaptureRow| State::of(capture.signature.as_ref());
    let preferred = state(&located.capture);
    if captures.iter().any(|capture| state(capture) != preferred) {
        let Located { artifact, capture } = located;
        let (count, hash) = (counted(captures.len() as u64, "capture"), capture.capture);
        let said = signature::text(capture.signature.as_ref());
        output::note(&format!(
            "{:.12} has {count} whose signatures differ; this is {HASH}{hash}{HASH:#}, {said}; --capture HASH gives another",
            artifact.core
        ));
    }
    Ok(())
}

fn is_of_directories(located: &Located) -> bool {
    kinds::named(&located.artifact.kind).is_some_and(Kind::is_of_directories)
}

/// The bytes of the file `name`.
fn member(name: &str, members: Vec<StoredMember>) -> Result<Vec<u8>, Failure> {
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let found = members.into_iter().find(|member| member.name == name);
    found
        .map(|member| member.bytes)
        .ok_or_else(|| Failure::No(format!("there is no member {name}, only {}", names.join(", "))))
}
