//! `runvault get`

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::digest::DigestPrefix;

use super::escape::is_hidden;
use super::exit::{Failure, Status};
use super::vault::VaultArgs;
use super::{hash, output};

/// Write an artifact's exact bytes, as they were received.
///
/// The bytes are hashed again before anything is written. Without -o they go to standard output.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, a capture's own hash, or the first digits of one
    #[arg(value_parser = hash::prefix)]
    hash: DigestPrefix,

    /// Write to this file instead; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the canonical core, whose SHA-256 is the core hash
    #[arg(long, conflicts_with = "capture")]
    core: bool,

    /// Write another capture than the first
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    capture: Option<DigestPrefix>,

    /// Overwrite FILE, and write to a terminal what may control it
    #[arg(long)]
    force: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let mut located = vault.locate(&self.hash)?;
        if let Some(capture) = &self.capture {
            located = vault.capture_of(&located, capture)?;
        }
        let bytes = if self.core { vault.read_core(&located)? } else { vault.read(&located)? };
        match &self.output {
            Some(path) if path != Path::new("-") => self.write_file(path, &bytes)?,
            _ => self.write_standard_output(&bytes)?,
        }
        Ok(Status::Done)
    }

    fn write_standard_output(&self, bytes: &[u8]) -> Result<(), Failure> {
        if output::is_terminal() && !self.force && !is_plain(bytes) {
            return Err(Failure::CouldNotRun(
                "the document has characters that may control the terminal; use -o FILE, a pipe, or --force"
                    .into(),
            ));
        }
        let mut out = output::raw();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::CouldNotRun(format!("cannot write {}: {error}", path.display()))
        };
        // What a link points to is what is meant.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let existing = target.metadata().ok();
        match &existing {
            Some(existing) if !existing.is_file() => return Err(failed(&"it is there and is not a file")),
            Some(_) if !self.force => {
                return Err(failed(&"it exists already; use --force to overwrite it"));
            }
            _ => {}
        }
        let directory = target.parent().filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        if !directory.is_dir() {
            return Err(failed(&"there is no such directory"));
        }
        // Under its own name only when it is complete: nobody reads half an artifact.
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(directory).map_err(|error| failed(&error))?;
        file.write_all(bytes).map_err(|error| failed(&error))?;
        if let Some(existing) = existing {
            file.as_file().set_permissions(existing.permissions()).map_err(|error| failed(&error))?;
        }
        let placed = if self.force { file.persist(&target) } else { file.persist_noclobber(&target) };
        placed.map(drop).map_err(|error| failed(&error.error))
    }
}

/// Whether `bytes` are text that a terminal shows and nothing else.
fn is_plain(bytes: &[u8]) -> bool {
    let harmless = |character: char| matches!(character, '\n' | '\r' | '\t') || !is_hidden(character);
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(harmless))
}
