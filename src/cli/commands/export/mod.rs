//! `runvault export`

mod calls;
mod format;
#[cfg(feature = "server")]
mod html;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::json::reader::Limits;
use runvault::storage::{ArtifactRecord, Filter, Order, Page, Snapshot, TimeBasis};
use runvault::vault::bundle::{self, BundleOptions, BundleStatistics, BundleWriteError};
use runvault::{LookupError, Vault};

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
        let vault = vault.open()?;
        #[cfg(feature = "server")]
        if let Some(directory) = &self.html {
            return self.write_pages(&vault, directory);
        }
        if let Some(format) = self.format {
            return self.write_calls(&vault, format);
        }
        let Some(output) = &self.output else { return Err(CommandError::Usage("give -o FILE".to_owned())) };
        // The snapshot must be taken before artifacts are located, so that it is not newer than the output.
        let snapshot = vault.snapshot()?;
        let mut artifacts = self.selection(&vault, &*snapshot)?;
        if self.with_links {
            artifacts = bundle::with_links(&*snapshot, artifacts, self.coincident)?;
        }
        let content = BundleOptions { without_source_paths: self.no_source_path };
        let written = if output == Path::new("-") {
            if terminal::is_terminal() && !self.force {
                let message = "a bundle is binary; use -o FILE, a pipe, or --force";
                return Err(CommandError::CouldNotRun(message.to_owned()));
            }
            bundle::write_with(&*snapshot, &artifacts, content, &mut stdout::raw())
                .map_err(CommandError::from)?
        } else {
            let options = self.mode.options(self.force, vault.path());
            disk::write_with(output, &options, |out| {
                Ok(bundle::write_with(&*snapshot, &artifacts, content, out)?)
            })?
        };
        stdout::note(&text_of(&written));
        Ok(Status::Done)
    }

    /// Returns the selected artifacts.
    fn selection(&self, vault: &Vault, snapshot: &dyn Snapshot) -> Result<Vec<ArtifactRecord>, CommandError> {
        let filter = self.conditions.filter(vault, self.kind.map(Kind::name))?;
        match (self.hashes.is_empty(), !filter.is_any()) {
            (false, true) => {
                return Err(CommandError::Usage("give either hashes or conditions, not both".to_owned()));
            }
            (true, false) if !self.all => {
                let message = "give hashes, conditions, or --all";
                return Err(CommandError::Usage(message.to_owned()));
            }
            (false, false) => {
                let locate = |named: &ArtifactArg| match vault.locate_in(snapshot, &named.prefix(vault)?) {
                    Err(LookupError::NotFound(_)) => Ok(named.locate(vault)?.artifact),
                    located => Ok(located?.artifact),
                };
                return self.hashes.iter().map(locate).collect();
            }
            _ => {}
        }
        let order = Order::Newest(TimeBasis::LastSeen);
        let hits = snapshot.find(&Filter::from(&filter), order, &Page::all())?.items;
        if hits.is_empty() {
            return Err(CommandError::No(
                "no artifact matches the conditions; nothing was written".to_owned(),
            ));
        }
        Ok(hits.into_iter().map(|hit| hit.artifact).collect())
    }
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
            error => Self::CouldNotRun(error.to_string()),
        }
    }
}
