//! Export to pages.

use std::io;
use std::path::Path;

use runvault::Vault;
use runvault::display::escaped;
use runvault::files::{FileWriteError, StagedDirectory};
use runvault::server::{PageSelection, WritePagesError, WrittenPages, write_pages};
use runvault::vault::bundle::{ArtifactSelection, LinkScope};

use super::Args;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, counted};

/// How often pages are written until the vault was not changed meanwhile.
const ATTEMPTS: usize = 5;

impl Args {
    /// Writes the pages of the selected artifacts to a directory.
    pub(super) fn write_pages(&self, vault: &Vault, directory: &Path) -> Result<Status, CommandError> {
        for _ in 1..ATTEMPTS {
            match self.try_to_write(vault, directory) {
                Err(HtmlExportError::Pages(WritePagesError::Changed)) => {}
                tried => return Ok(reported(directory, &tried?)),
            }
        }
        Ok(reported(directory, &self.try_to_write(vault, directory)?))
    }

    fn try_to_write(&self, vault: &Vault, directory: &Path) -> Result<WrittenPages, HtmlExportError> {
        let selection = self.pages(vault)?;
        let options = self.mode.options(false, vault.path());
        let mut staged = StagedDirectory::create_or_fill(directory, &options).map_err(existing)?;
        let written = write_pages(vault, &selection, &mut |name, bytes| {
            staged.write(name, bytes).map_err(io::Error::other)
        })?;
        staged.commit().map_err(existing)?;
        Ok(written)
    }

    fn pages(&self, vault: &Vault) -> Result<PageSelection, CommandError> {
        let selection = self.selection(vault)?;
        let links = selection.links;
        let selection = ArtifactSelection { links: LinkScope::None, ..selection };
        let artifacts = super::selected(vault, &selection)?;
        let others = if links == LinkScope::None {
            Vec::new()
        } else {
            vault.select(&ArtifactSelection { artifacts: artifacts.clone(), links, ..selection })?
        };
        Ok(PageSelection { artifacts, others })
    }
}

/// The reason why pages were not written.
enum HtmlExportError {
    Pages(WritePagesError),
    Other(CommandError),
}

impl From<WritePagesError> for HtmlExportError {
    fn from(error: WritePagesError) -> Self {
        Self::Pages(error)
    }
}

impl From<CommandError> for HtmlExportError {
    fn from(failure: CommandError) -> Self {
        Self::Other(failure)
    }
}

impl From<HtmlExportError> for CommandError {
    fn from(failed: HtmlExportError) -> Self {
        match failed {
            HtmlExportError::Other(failure) => failure,
            HtmlExportError::Pages(WritePagesError::Store(error)) => error.into(),
            HtmlExportError::Pages(WritePagesError::Changed) => {
                Self::CouldNotRun(format!("{}; try again", WritePagesError::Changed))
            }
            HtmlExportError::Pages(error) => Self::CouldNotRun(error.to_string()),
        }
    }
}

/// Returns the failure to write a directory, which nothing replaces.
fn existing(error: FileWriteError) -> CommandError {
    match error {
        FileWriteError::Exists { .. } => {
            CommandError::CouldNotRun(format!("{error} and is not an empty directory; choose another"))
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
