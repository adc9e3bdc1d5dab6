//! `runvault diff`

mod json;
mod outcome;
mod side;
mod text;

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::vault::diff::{ArtifactComparison, DiffExtent, Side};
use runvault::{LookupError, formats};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::inputs::{LimitArgs, kind};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout;

use outcome::DiffOutput;

/// Compare two artifacts and show where they diverge
///
/// Both must be of the same kind. Each is an artifact in the vault, or a file, directory or archive. An argument
/// that can be read as a hash is a hash: write ./abc123 for a file with such a name, and -- before a name that begins
/// with a hyphen. Parts are matched by their hashes, so an inserted step does not make all later steps different.
/// Values that vary between identical runs, such as times, latencies and run ids, are ignored unless --all is given.
/// Exit status: 0 no differences, 1 differences, 2 the comparison could not run.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    /// Two artifacts of the same kind, or one with --expect or --all
    ///
    /// Each is a file, a directory or an archive, or an artifact in the vault: a hash, a prefix of one, a tag, a run
    /// id, or latest. With --all and one artifact in the vault, its captures are compared.
    #[arg(required = true, value_name = "A B", num_args = 1..=2, add = CandidateSource::ArtifactsOrFiles.completer())]
    sides: Vec<OsString>,

    /// Compare with this artifact, labeled as expected
    #[arg(long, value_name = "GOLDEN", add = CandidateSource::ArtifactsOrFiles.completer())]
    expect: Option<OsString>,

    /// Read files as this kind instead of recognizing it by content; attachments must be requested explicitly
    #[arg(long, visible_alias = "as", value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
    kind: Option<Kind>,

    /// Also compare values that vary between identical runs, and values with the same canonical form, such as different
    /// line ends
    #[arg(long)]
    all: bool,

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
            (None, [artifact]) if self.all => return self.compare_captures(artifact, vault),
            (Some(_), _) => {
                return Err(CommandError::Usage("--expect GOLDEN takes exactly one other argument".into()));
            }
            (None, _) => {
                let message = "diff needs two arguments, or one with --expect GOLDEN or --all";
                return Err(CommandError::Usage(message.into()));
            }
        };
        let limits = self.limits.limits()?;
        let load = |text| side::load(text, vault, self.kind, limits);
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
        Ok(if is_different { Status::No } else { Status::Done })
    }

    /// Prints the differences, and returns whether there are any.
    fn compare(&self, one: &Side, other: &Side) -> Result<bool, CommandError> {
        let extent = match (self.first, self.stat) {
            (true, _) => DiffExtent::First,
            (_, true) => DiffExtent::Counts,
            _ => DiffExtent::All,
        };
        let comparison = ArtifactComparison::new(one, other, self.all).map_err(|error| match error {
            LookupError::Unreadable { core, message } => {
                let name = if core == one.core() { one.name() } else { other.name() };
                CommandError::CouldNotRun(format!("{name} cannot be compared: {message}"))
            }
            error => error.into(),
        })?;
        let answer = comparison.answer();
        let outcome =
            DiffOutput { comparison: &comparison, answer: &answer, expected: self.expect.is_some(), extent };
        match outcome.print(self.json) {
            // A closed pipe must not make different artifacts count as equal: the exit status reflects the comparison.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error.into()),
            _ => {}
        }
        Ok(answer.different)
    }

    /// Compares the preferred capture of an artifact with each of the others.
    fn compare_captures(&self, artifact: &OsStr, vault: &VaultArgs) -> Result<Status, CommandError> {
        let captures = side::captures(artifact, vault)?;
        let Some((first, others)) = captures.hashes.split_first() else { return Ok(Status::Done) };
        let first = captures.read(*first)?;
        let mut is_different = false;
        for (number, other) in others.iter().enumerate() {
            if number > 0 && !self.json {
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
            return json::print(&mut stdout::raw(), self);
        }
        let mut out = io::BufWriter::new(stdout::text());
        text::print(&mut out, self, text::width())?;
        out.flush()
    }
}
