//! `runvault diff`

mod text;

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use runvault::LookupError;
use runvault::Vault;
use runvault::artifact::{AdmitOptions, Kind};
use runvault::digest::{CaptureHash, CoreHash};
use runvault::display::brief;
use runvault::formats;
use runvault::intake::{self, DocumentVerdict, ExamineOptions, Input, InputItem, Inputs, Rejection};
use runvault::json::pointer::PointerPattern;
use runvault::json::reader::Limits;
use runvault::vault::details::CapturesRequest;
use runvault::vault::diff::{ArtifactComparison, DiffExtent, Side};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::inputs::{LimitArgs, kind};
use crate::cli::args::settings;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::report::say_which;
use crate::cli::output::{json, report, stdout};
use text::DiffOutput;

/// Compare two artifacts and show where they diverge
///
/// Both must be of the same kind. Each is an artifact in the vault, or a file, directory or archive. An argument
/// that can be read as a hash is a hash: write ./abc123 for a file with such a name, and -- before a name that begins
/// with a hyphen. Parts are matched by their hashes, so an inserted step does not make all later steps different.
/// Values that vary between identical runs, such as times, latencies and run ids, are ignored unless --all is given.
/// Exit status: 0 no differences, 1 differences, 2 the comparison could not run.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Two artifacts of the same kind, or one with --expect or --all
    ///
    /// Each is a file, a directory or an archive, or an artifact in the vault: a hash, a prefix of one, a tag, a run
    /// id, or latest. With --all and one artifact in the vault, its captures are compared.
    #[arg(required = true, value_name = "A B", num_args = 1..=2, add = CandidateSource::ArtifactsOrFiles.completer())]
    pub(super) sides: Vec<OsString>,

    /// Compare with this artifact, labeled as expected
    #[arg(long, value_name = "GOLDEN", add = CandidateSource::ArtifactsOrFiles.completer())]
    pub(super) expect: Option<OsString>,

    /// Also compare values that vary between identical runs, and values with the same canonical form, such as different
    /// line ends
    ///
    /// Answers of models that say the same are equal without it, whatever their ids, times and numbers of tokens.
    #[arg(long, visible_alias = "exact")]
    pub(super) all: bool,

    /// Whether the circumstances of a run are not compared.
    #[arg(skip)]
    pub(super) without_circumstances: bool,

    #[command(flatten)]
    pub(super) options: ComparisonArgs,
}

/// Options of all commands that compare two artifacts.
#[derive(ClapArgs)]
pub(super) struct ComparisonArgs {
    /// Read files as this kind instead of recognizing it by content; attachments must be requested explicitly
    #[arg(long, visible_alias = "as", value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
    kind: Option<Kind>,

    /// Leave these values out of the comparison
    ///
    /// JSON Pointers into steps and other parts, as differences show them, in which * is any name or index, separated by
    /// commas.
    #[arg(long, value_name = "POINTER", value_delimiter = ',')]
    ignore: Vec<String>,

    /// Also fail if the stated latency of the second artifact exceeds that of the first, or of the expected one, by more
    /// than this
    ///
    /// The latencies of runs are the sums of those of their steps. If one of the artifacts states none, the comparison could
    /// not run.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32), hide_short_help = true)]
    fail_on_slowdown: Option<u32>,

    /// Show only the first difference
    #[arg(long, conflicts_with = "stat")]
    first: bool,

    /// Show only how many differences there are
    #[arg(long)]
    stat: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    limits: LimitArgs,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let (one, other) = match (&self.expect, self.sides.as_slice()) {
            (Some(golden), [run]) => (golden, run),
            (None, [one, other]) => (one, other),
            (None, [artifact]) if self.all && self.options.fail_on_slowdown.is_none() => {
                return self.compare_captures(artifact, vault);
            }
            (Some(_), _) => {
                return Err(CommandError::Usage("--expect GOLDEN takes exactly one other argument".into()));
            }
            (None, _) => {
                let message = "diff needs two arguments, or one with --expect GOLDEN or --all";
                return Err(CommandError::Usage(message.into()));
            }
        };
        let limits = self.options.limits.limits()?;
        let load = |text| {
            let side = load(text, vault, self.options.kind, limits)?;
            Ok::<_, CommandError>(if self.without_circumstances {
                side.without_circumstances()
            } else {
                side
            })
        };
        let (one, other) = (load(one)?, load(other)?);
        if one.kind() != other.kind() {
            let (kind, other_kind) = (formats::noun(one.kind().name()), formats::noun(other.kind().name()));
            return Err(CommandError::CouldNotRun(format!(
                "{} is {kind} and {} is {other_kind}; only artifacts of the same kind can be compared",
                one.name(),
                other.name()
            )));
        }
        let is_different = self.compare(&one, &other)?;
        let is_slower = self.is_slower(&one, &other)?;
        Ok(if is_different || is_slower { Status::No } else { Status::Done })
    }

    /// Returns whether `other` took longer than `one` by more than is allowed, and says by how much.
    fn is_slower(&self, one: &Side, other: &Side) -> Result<bool, CommandError> {
        let Some(allowed) = self.options.fail_on_slowdown else { return Ok(false) };
        let latency = |side: &Side| {
            side.latency_ms().filter(|latency| *latency >= 0).ok_or_else(|| {
                let message = "states no latency, which --fail-on-slowdown compares";
                CommandError::CouldNotRun(format!("{} {message}", side.name()))
            })
        };
        let (before, after) = (latency(one)?, latency(other)?);
        // In hundredths of the first, without rounding.
        let limit = i128::from(before) * (100 + i128::from(allowed));
        let is_slower = i128::from(after) * 100 > limit;
        let verdict = if is_slower { "more" } else { "not more" };
        stdout::note(&format!("latency: {before} ms, then {after} ms; {verdict} than {allowed} % slower"));
        Ok(is_slower)
    }

    /// Returns the values that are not compared, by the settings and the arguments.
    fn ignored(&self) -> Result<Vec<PointerPattern>, CommandError> {
        let configured = settings::DIFF_IGNORE.get()?.unwrap_or_default();
        let pattern = |text: &String| {
            PointerPattern::parse(text)
                .ok_or_else(|| CommandError::Usage(format!("{} is not a JSON Pointer", brief(text))))
        };
        configured.iter().chain(&self.options.ignore).map(pattern).collect()
    }

    /// Prints the differences, and returns whether there are any.
    fn compare(&self, one: &Side, other: &Side) -> Result<bool, CommandError> {
        let extent = match (self.options.first, self.options.stat) {
            (true, _) => DiffExtent::First,
            (_, true) => DiffExtent::Counts,
            _ => DiffExtent::All,
        };
        let ignored = self.ignored()?;
        let comparison =
            ArtifactComparison::new(one, other, self.all, &ignored).map_err(|error| match error {
                LookupError::Unreadable { core, message } => {
                    let name = if core == one.core() { one.name() } else { other.name() };
                    CommandError::CouldNotRun(format!("{name} cannot be compared: {message}"))
                }
                error => error.into(),
            })?;
        let answer = comparison.answer();
        let outcome =
            DiffOutput { comparison: &comparison, answer: &answer, expected: self.expect.is_some(), extent };
        match outcome.print(self.options.json) {
            // A closed pipe must not make different artifacts count as equal: the exit status reflects the comparison.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
            _ => {}
        }
        Ok(answer.different)
    }

    /// Compares the preferred capture of an artifact with each of the others.
    fn compare_captures(&self, artifact: &OsStr, vault: &VaultArgs) -> Result<Status, CommandError> {
        let captures = captures(artifact, vault)?;
        let Some((first, others)) = captures.hashes.split_first() else { return Ok(Status::Done) };
        let first = captures.read(*first)?;
        let mut is_different = false;
        for (number, other) in others.iter().enumerate() {
            if number > 0 && !self.options.json {
                writeln!(stdout::text())?;
            }
            is_different |= self.compare(&first, &captures.read(*other)?)?;
        }
        if others.is_empty() {
            stdout::note(&format!("{:.12} has one capture", first.core()));
        }
        Ok(if is_different { Status::No } else { Status::Done })
    }
}

impl DiffOutput<'_> {
    fn print(&self, json: bool) -> io::Result<()> {
        if json {
            return text::print_json(&mut stdout::raw(), self);
        }
        let mut out = io::BufWriter::new(stdout::text());
        text::print(&mut out, self, text::width())?;
        out.flush()
    }
}

/// Loads the artifact that `text` identifies: a hash or @ and a tag if it has that form, otherwise a path, otherwise a name
/// in the vault.
fn load(text: &OsStr, vault: &VaultArgs, kind: Option<Kind>, limits: Limits) -> Result<Side, CommandError> {
    match named(text) {
        Some(named @ ArtifactArg::Name(..)) if named.resolves(vault) => stored(text, &named, vault),
        None | Some(ArtifactArg::Name(..)) => file(Path::new(text), kind, limits),
        Some(named) => stored(text, &named, vault),
    }
}

fn stored(text: &OsStr, named: &ArtifactArg, vault: &VaultArgs) -> Result<Side, CommandError> {
    let name = text.to_string_lossy().into_owned();
    let is_file_as_well = Path::new(text).exists();
    let hint = if is_file_as_well {
        format!("; for the file with this name, write ./{name}")
    } else {
        String::new()
    };
    let could_not = |error: String| CommandError::CouldNotRun(format!("{error}{hint}"));
    let vault = vault.open().map_err(|error| could_not(error.to_string()))?;
    let located = named.locate(&vault).map_err(|error| could_not(with_candidates(error)))?;
    let (core, capture) = (located.artifact.core, located.capture.capture);
    let is_capture = named.is_capture(&located);
    if !is_capture {
        say_which(&vault, core, capture)?;
    }
    let side = Side::stored(&vault, core, is_capture.then_some(capture))?;
    Ok(side.named(name, None))
}

/// The captures of an artifact, the preferred one first.
struct Captures {
    vault: Vault,
    core: CoreHash,
    hashes: Vec<CaptureHash>,
}

impl Captures {
    /// Reads a capture.
    fn read(&self, hash: CaptureHash) -> Result<Side, CommandError> {
        let side = Side::stored(&self.vault, self.core, Some(hash))?;
        Ok(side.named(format!("capture {hash:.12}"), None))
    }
}

/// Lists the captures of the artifact that `text` identifies.
fn captures(text: &OsStr, vault: &VaultArgs) -> Result<Captures, CommandError> {
    let named = named(text).ok_or_else(|| {
        let message = "one hash with --all compares the captures of an artifact; for files, give two";
        CommandError::Usage(message.to_owned())
    })?;
    let vault = vault.open()?;
    let located = named.locate(&vault).map_err(|error| CommandError::CouldNotRun(with_candidates(error)))?;
    let (core, first) = (located.artifact.core, located.capture.capture);
    let captures = vault.run(&CapturesRequest::new(core))?.captures.into_iter();
    let others = captures.map(|capture| capture.capture_hash).filter(|hash| *hash != first);
    Ok(Captures { hashes: std::iter::once(first).chain(others).collect(), core, vault })
}

fn file(path: &Path, kind: Option<Kind>, limits: Limits) -> Result<Side, CommandError> {
    let name = path.to_string_lossy().into_owned();
    if !path.exists() {
        return Err(CommandError::CouldNotRun(format!(
            "there is no file, artifact, tag or run named {name}"
        )));
    }
    let item = only_item(path, kind)?;
    let options = ExamineOptions {
        kind,
        admit: AdmitOptions { limits, ..AdmitOptions::default() },
        ..ExamineOptions::default()
    };
    let verdict =
        intake::examine(item, &options).map_err(|error| CommandError::CouldNotRun(error.to_string()))?;
    match verdict {
        DocumentVerdict::Admitted(admitted) => {
            Ok(Side::admitted(&admitted).named(name, json::bytes_of(path.as_os_str())))
        }
        DocumentVerdict::Rejected(rejection) => Err(rejected(&name, &rejection)),
        DocumentVerdict::NoArtifact => Err(CommandError::CouldNotRun(format!("{name} is not an artifact"))),
    }
}

/// Returns the single artifact at a path. A directory is accepted only if it is a pack.
fn only_item(path: &Path, kind: Option<Kind>) -> Result<InputItem, CommandError> {
    match Inputs::new(vec![Input::Path(PathBuf::from(path))]).with_kind(kind).next() {
        Some(Ok(item @ (InputItem::Named(_) | InputItem::Directory { named: true, .. }))) => Ok(item),
        Some(Err(error)) => Err(CommandError::CouldNotRun(error.to_string())),
        _ => {
            let name = path.display();
            Err(CommandError::CouldNotRun(format!("{name} is a directory but not a pack; name a file in it")))
        }
    }
}

/// Formats a lookup error. A failed lookup is always an error of the command, never a negative result of the
/// comparison.
fn with_candidates(failure: CommandError) -> String {
    match failure {
        CommandError::Ambiguous { message, candidates: lines }
        | CommandError::Refused { message, because: lines } => {
            format!("{message}: {}", lines.join(", "))
        }
        failure => failure.to_string(),
    }
}

/// Parses an artifact argument, unless it is a name that a file has.
fn named(text: &OsStr) -> Option<ArtifactArg> {
    let named = text.to_str()?.parse().ok()?;
    let is_file = matches!(named, ArtifactArg::Name(..)) && Path::new(text).symlink_metadata().is_ok();
    (!is_file).then_some(named)
}

fn rejected(name: &str, rejection: &Rejection) -> CommandError {
    let mut listed = Vec::new();
    // Writing to memory cannot fail.
    let (violations, omitted) = (rejection.report.violations(), rejection.report.omitted() as u64);
    let _ = report::write(&mut listed, violations, omitted, report::LISTED);
    stdout::message(String::from_utf8_lossy(&listed).trim_end());
    let kind = rejection.kind.map_or("artifact", Kind::noun);
    CommandError::CouldNotRun(format!("{name} is not a valid {kind} and cannot be compared"))
}
