//! `runvault export`

mod calls;
mod format;
#[cfg(feature = "server")]
mod html;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::artifact::Kind;
use runvault::digest::CoreHash;
use runvault::json::reader::Limits;
use runvault::vault::bundle::{ArtifactSelection, BundleRequest, BundleStatistics, BundleWriteError};

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::kind::kind;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::find::FindConditionArgs;
use crate::cli::output::disk::{self, ModeArgs};
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, counted};
use crate::cli::output::terminal;

/// Export artifacts to a bundle file, as pages or for other programs
///
/// A bundle contains artifacts with all their captures, tags, notes and manual links. Read it with "import" or with
/// tar: tar --zstd -xf FILE.rvz. Pages are those that "serve" shows, and need no server: open DIR/index.html. The same
/// vault and the same selection give the same bytes.
///
/// With --as, the calls of run packs that a gateway recorded or that were imported are written in the format of another
/// program. Calls without a complete answer are left out.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    /// The artifacts: hashes, prefixes of them, tags, run ids, or latest; if none is given, all that match the
    /// conditions
    #[arg(value_name = "HASH")]
    hashes: Vec<ArtifactArg>,

    /// Write to this file, such as runs.rvz; - is standard output
    #[cfg_attr(feature = "server", arg(short, long, value_name = "FILE", required_unless_present = "html"))]
    #[cfg_attr(not(feature = "server"), arg(short, long, value_name = "FILE", required = true))]
    output: Option<PathBuf>,

    /// Write pages to this new or empty directory
    ///
    /// Pages are written of the artifacts, of those of the same run, and of the contracts that govern it. If two
    /// artifacts of one kind are given, the differences between them are written too.
    #[cfg(feature = "server")]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with_all = ["output", "force"])]
    html: Option<PathBuf>,

    /// Write the calls of run packs in the format of another program
    #[arg(long = "as", value_name = "FORMAT", conflicts_with_all = ["with_links", "no_source_path"])]
    #[cfg_attr(feature = "server", arg(conflicts_with = "html"))]
    format: Option<format::FormatName>,

    /// Also export all artifacts reachable over links
    #[arg(long)]
    with_links: bool,

    /// With --with-links, also follow links that may be coincidences, such as replays
    #[arg(long, requires = "with_links")]
    coincident: bool,

    /// Export all artifacts
    #[arg(long, conflicts_with_all = ["hashes", "with_links"])]
    all: bool,

    /// Replace FILE if it exists, and allow output to a terminal
    #[arg(long)]
    force: bool,

    /// Leave out the source paths of captures
    #[arg(long)]
    no_source_path: bool,

    #[command(flatten)]
    mode: ModeArgs,

    /// Only artifacts of this kind
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,

    #[command(flatten)]
    conditions: FindConditionArgs,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        if let Some(path) = &self.output {
            disk::expect_path(path)?;
        }
        let vault = vault.open()?;
        #[cfg(feature = "server")]
        if let Some(directory) = &self.html {
            disk::expect_path(directory)?;
            return self.write_pages(&vault, directory);
        }
        if let Some(format) = self.format {
            return self.write_calls(&vault, format);
        }
        let Some(output) = &self.output else { return Err(CommandError::Usage("give -o FILE".to_owned())) };
        let request =
            BundleRequest { selection: self.selection(&vault)?, without_source_paths: self.no_source_path };
        let written = if output == Path::new("-") {
            if terminal::is_terminal() && !self.force {
                let message = "a bundle is binary; use -o FILE, a pipe, or --force";
                return Err(CommandError::CouldNotRun(message.to_owned()));
            }
            vault.export(&request, &mut stdout::raw())?
        } else {
            let options = self.mode.options(self.force, vault.path());
            disk::write_with(output, &options, |out| Ok(vault.export(&request, out)?))?
        };
        stdout::note(&text_of(&written));
        Ok(Status::Done)
    }

    /// Returns the selection that the arguments describe.
    fn selection(&self, vault: &Vault) -> Result<ArtifactSelection, CommandError> {
        let filter = self.conditions.filter(vault, self.kind.map(Kind::name))?;
        let message = match (self.hashes.is_empty(), filter.is_any()) {
            (false, false) => "give either hashes or conditions, not both",
            (true, true) if !self.all => "give hashes, conditions, or --all",
            _ => {
                let core = |named: &ArtifactArg| Ok(named.locate(vault)?.artifact.core);
                let artifacts = self.hashes.iter().map(core).collect::<Result<_, CommandError>>()?;
                let (with_links, coincident) = (self.with_links, self.coincident);
                return Ok(ArtifactSelection { artifacts, filter, with_links, coincident });
            }
        };
        Err(CommandError::Usage(message.to_owned()))
    }
}

/// Returns the selected artifacts, of which there is at least one.
fn selected(vault: &Vault, selection: &ArtifactSelection) -> Result<Vec<CoreHash>, CommandError> {
    let artifacts = vault.select(selection)?;
    if artifacts.is_empty() { Err(BundleWriteError::Empty.into()) } else { Ok(artifacts) }
}

fn text_of(written: &BundleStatistics) -> String {
    let BundleStatistics { artifacts, captures, links, blobs, bytes, largest } = *written;
    let text = format!(
        "exported {}, {}, {}; {} in {}",
        counted(artifacts, "artifact"),
        counted(captures, "capture"),
        counted(links, "manual link"),
        stdout::size(bytes),
        counted(blobs, "blob"),
    );
    if largest <= Limits::default().bytes {
        return text;
    }
    let size = stdout::size(largest);
    format!("{text}; a capture has {size}, which \"runvault import --max-size\" must allow")
}

impl From<BundleWriteError> for CommandError {
    fn from(error: BundleWriteError) -> Self {
        match error {
            BundleWriteError::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            BundleWriteError::Empty => Self::No(error.to_string()),
            BundleWriteError::Store(error) => error.into(),
            error => Self::CouldNotRun(error.to_string()),
        }
    }
}
