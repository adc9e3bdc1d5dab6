//! Export to pages.

use std::io;
use std::path::Path;

use runvault::Vault;
use runvault::files::{StagedDirectory, WriteError};
use runvault::server::{PageSelection, WritePagesError, WrittenPages, write_pages};
use runvault::storage::ArtifactRecord;
use runvault::vault::bundle;

use super::Args;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stdout::{self, counted};

/// How often pages are written until the vault was not changed meanwhile.
const ATTEMPTS: usize = 5;

impl Args {
    /// Writes the pages of the selected artifacts to a directory.
    pub(super) fn write_pages(&self, vault: &Vault, directory: &Path) -> Result<Status, Failure> {
        for _ in 1..ATTEMPTS {
            match self.try_to_write(vault, directory) {
                Err(Failed::Pages(WritePagesError::Changed)) => {}
                tried => return Ok(reported(directory, &tried?)),
            }
        }
        Ok(reported(directory, &self.try_to_write(vault, directory)?))
    }

    fn try_to_write(&self, vault: &Vault, directory: &Path) -> Result<WrittenPages, Failed> {
        let selection = self.pages(vault)?;
        let options = self.mode.options(false, vault.path());
        let mut staged = StagedDirectory::create_or_fill(directory, &options).map_err(existing)?;
        let written = write_pages(vault, &selection, &mut |name, bytes| {
            staged.write(name, bytes).map_err(io::Error::other)
        })?;
        staged.commit().map_err(existing)?;
        Ok(written)
    }

    fn pages(&self, vault: &Vault) -> Result<PageSelection, Failure> {
        let snapshot = vault.snapshot()?;
        let artifacts = self.selection(vault, &*snapshot)?;
        let others =
            if self.with_links { bundle::with_links(&*snapshot, artifacts.clone())? } else { Vec::new() };
        let cores = |artifacts: Vec<ArtifactRecord>| artifacts.iter().map(|artifact| artifact.core).collect();
        Ok(PageSelection { artifacts: cores(artifacts), others: cores(others) })
    }
}

/// The reason why pages were not written.
enum Failed {
    Pages(WritePagesError),
    Other(Failure),
}

impl From<WritePagesError> for Failed {
    fn from(error: WritePagesError) -> Self {
        Self::Pages(error)
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Other(failure) => failure,
            Failed::Pages(WritePagesError::Store(error)) => error.into(),
            Failed::Pages(WritePagesError::Changed) => {
                Self::CouldNotRun(format!("{}; try again", WritePagesError::Changed))
            }
            Failed::Pages(error) => Self::CouldNotRun(error.to_string()),
        }
    }
}

/// Returns the failure to write a directory, which nothing replaces.
fn existing(error: WriteError) -> Failure {
    match error {
        WriteError::Exists { .. } => {
            Failure::CouldNotRun(format!("{error} and is not an empty directory; choose another"))
        }
        error => error.into(),
    }
}

fn reported(directory: &Path, written: &WrittenPages) -> Status {
    let WrittenPages { artifacts, files, bytes } = *written;
    stdout::note(&format!(
        "wrote the pages of {} to {}: {}, {}; open {}",
        counted(artifacts, "artifact"),
        escaped(&directory.display().to_string()),
        counted(files, "file"),
        stdout::size(bytes),
        escaped(&directory.join("index.html").display().to_string()),
    ));
    Status::Done
}
