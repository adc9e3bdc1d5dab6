//! `runvault export`

mod calls;
#[cfg(feature = "server")]
mod html;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::artifact::Kind;
use runvault::digest::CoreHash;
use runvault::json::reader::Limits;
use runvault::recorders::ExportFormat;
use runvault::storage::TimeBasis;
use runvault::vault::bundle::{
    ArtifactSelection, BundleRequest, BundleStatistics, BundleWriteError, LinkScope,
};
use runvault::vault::columns::ArtifactColumn;
use runvault::vault::details::Detail;
use runvault::vault::find::FindOrder;
use runvault::vault::list::{ListMember, ListRequest};

use super::find::conditions::FindConditionArgs;
use crate::cli::args::choice::{Choice, one_of};
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::help;
use crate::cli::args::inputs::kind;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::disk::{self, ModeArgs};
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::hits::{ArtifactListItem, ArtifactListPrinter};
use crate::cli::output::stdout::{self, counted};
use crate::cli::output::{json, terminal};

/// Export artifacts to a bundle file, as pages or for other programs
///
/// A bundle contains artifacts with all their captures, tags, notes and manual links. Read it with "import" or with
/// tar: tar --zstd -xf FILE.rvz. Pages are those that "serve" shows, and need no server: open DIR/index.html. The same
/// vault and the same selection give the same bytes.
///
/// With --as, the calls of run packs that a gateway recorded or that were imported are written in the format of another
/// program. Calls without a complete answer are left out. As atif, the conversation of any artifact is written: of its
/// longest thread.
#[derive(ClapArgs)]
#[command(mut_args(help::rarely(&["label", "run-id", "tool"])))]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    /// The artifacts: hashes, prefixes of them, tags, run ids, or latest; if none is given, all that match the
    /// conditions
    #[arg(value_name = "HASH", add = CandidateSource::ARTIFACTS.completer())]
    hashes: Vec<ArtifactArg>,

    /// Write to this file; - is standard output
    #[cfg_attr(
        feature = "server",
        arg(short, long, value_name = "FILE", required_unless_present_any = ["html", "dry_run"])
    )]
    #[cfg_attr(
        not(feature = "server"),
        arg(short, long, value_name = "FILE", required_unless_present = "dry_run")
    )]
    output: Option<PathBuf>,

    /// Write pages to this new or empty directory
    ///
    /// The artifacts have pages, and so have those of the same run and the contracts that govern it, and the prompts with
    /// several answers in them. If they are two of one kind, or up to eight recordings of one kind, their differences
    /// have pages too.
    #[cfg(feature = "server")]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with_all = ["output", "force"])]
    html: Option<PathBuf>,

    /// Write calls in the format of another program
    #[arg(long = "as", value_name = "FORMAT", value_parser = one_of(FORMATS), conflicts_with_all = ["with_links", "no_source_path"])]
    #[cfg_attr(feature = "server", arg(conflicts_with = "html"))]
    format: Option<ProgramFormat>,

    /// Also export the other artifacts of the same runs, and their contracts
    ///
    /// These are the sessions, traces, run packs and export packs of the same runs, and everything that any of them states.
    /// Hashes, names and manual links lead from an artifact to what it states, such as its contract, and never from there to
    /// others that state it too. "all" follows all links in both directions.
    #[arg(long, value_name = "SCOPE", value_parser = one_of(SCOPES), hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "stated")]
    with_links: Option<LinkScope>,

    /// With --with-links=all, also follow links that may be coincidences, such as replays
    #[arg(long, requires = "with_links", hide_short_help = true)]
    coincident: bool,

    /// List what would be exported, with sizes and labels
    #[arg(long, conflicts_with_all = ["output", "force", "format"])]
    #[cfg_attr(feature = "server", arg(conflicts_with = "html"))]
    dry_run: bool,

    /// With --dry-run, print one line of JSON for each artifact
    #[arg(long, requires = "dry_run", hide_short_help = true)]
    json: bool,

    /// Export all artifacts
    #[arg(long, conflicts_with_all = ["hashes", "with_links"], hide_short_help = true)]
    all: bool,

    /// Replace FILE if it exists, and allow output to a terminal
    #[arg(long, hide_short_help = true)]
    force: bool,

    /// Leave out the source paths of captures
    #[arg(long, hide_short_help = true)]
    no_source_path: bool,

    #[command(flatten)]
    mode: ModeArgs,

    /// Only artifacts of this kind
    #[arg(long, value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
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
        match self.format {
            Some(ProgramFormat::Calls(format)) => return self.write_calls(&vault, format),
            Some(ProgramFormat::Trajectory) => return self.write_trajectory(&vault),
            None => {}
        }
        if self.dry_run {
            return self.list(&vault);
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

    /// Returns which linked artifacts are exported too.
    fn links(&self) -> Result<LinkScope, CommandError> {
        match self.with_links {
            Some(LinkScope::Stated) if self.coincident => {
                Err(CommandError::Usage("--coincident needs --with-links=all".to_owned()))
            }
            scope => Ok(scope.unwrap_or_default()),
        }
    }

    /// Lists what would be exported.
    fn list(&self, vault: &Vault) -> Result<Status, CommandError> {
        let artifacts = selected(vault, &self.selection(vault)?)?;
        let request = ListRequest {
            artifacts,
            flat: true,
            order: FindOrder::Kind,
            details: Detail::ALL.to_vec(),
            ..ListRequest::default()
        };
        let members = vault.run(&request)?.rows.into_iter().flat_map(|row| row.members);
        let mut list = ArtifactListPrinter::new(TimeBasis::Created).with_columns(&LISTED);
        let (mut count, mut bytes) = (0, 0);
        let out: Box<dyn Write> = if self.json { Box::new(stdout::raw()) } else { Box::new(stdout::text()) };
        let mut out = io::BufWriter::new(out);
        for member in members {
            let ListMember { artifact, details, .. } = &member;
            count += 1;
            bytes += details.captures.iter().flatten().map(|capture| capture.size).sum::<u64>();
            if self.json {
                json::line(&mut out, &member)?;
            } else {
                list.add(&mut out, ArtifactListItem { artifact, details, matches: &[], below: Vec::new() })?;
            }
        }
        if !self.json {
            list.finish(&mut out)?;
        }
        out.flush()?;
        let (count, size) = (counted(count, "artifact"), stdout::size(bytes));
        stdout::note(&format!("{count} would be exported, {size} before compression"));
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
                let links = self.links()?;
                return Ok(ArtifactSelection { artifacts, filter, links, coincident: self.coincident });
            }
        };
        Err(CommandError::Usage(message.to_owned()))
    }
}

/// Which linked artifacts are exported too.
const SCOPES: &[Choice<LinkScope>] = &[
    ("stated", LinkScope::Stated, "Those of the same runs, and what the artifacts state"),
    ("all", LinkScope::All, "All that can be reached over links"),
];

/// The columns of the list of what would be exported.
const LISTED: [ArtifactColumn; 6] = [
    ArtifactColumn::Hash,
    ArtifactColumn::Kind,
    ArtifactColumn::Size,
    ArtifactColumn::Label,
    ArtifactColumn::Tags,
    ArtifactColumn::Labels,
];

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

/// The format of another program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgramFormat {
    /// Calls with their bodies.
    Calls(ExportFormat),
    /// The conversation.
    Trajectory,
}

const FORMATS: &[Choice<ProgramFormat>] = &[
    ("vcr", ProgramFormat::Calls(ExportFormat::Vcr), "A cassette of VCR.py, as YAML"),
    ("jsonl", ProgramFormat::Calls(ExportFormat::Jsonl), "A line of JSON for each call"),
    ("atif", ProgramFormat::Trajectory, "The conversation of one artifact, as a trajectory of ATIF 1.7"),
];
