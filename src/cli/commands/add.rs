//! `runvault add`

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::artifact::Kind;
use runvault::digest::CoreHash;
use runvault::display::escaped;
use runvault::intake::{ArtifactSource, ExamineOptions, SourceError};
use runvault::vault::add::{self, AddMonitor, AddedDocument, DocumentOutcome, ExaminedDocument, Summary};
use runvault::vault::annotate::SetTagRequest;
use serde::Serialize;

use super::index;
use crate::cli::args::inputs::{self, InputArgs, RecordedArgs};
use crate::cli::args::label::note_text;
use crate::cli::args::vault::{CreateArgs, VaultArgs};
use crate::cli::args::{hash, settings};
use crate::cli::commands::mover::{MoveArgs, Mover};
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::report::ForkNotes;
use crate::cli::output::stdout::{self, BAD, CAUTION, FAINT, GOOD, HASH, counted};
use crate::cli::output::terminal::Stop;
use crate::cli::output::{json, matches, report, terminal, time};

/// Verify artifacts and store them
///
/// Kinds are recognized by content. An invalid artifact does not stop the others. In directories, a file that resembles
/// an artifact but is not valid is rejected; other files are skipped. A path named on the command line is never
/// skipped: it is rejected if it is not an artifact, and so is a directory in which no artifact is recognized. When a
/// line is printed, the artifact that it names has been synced to disk.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    create: CreateArgs,

    #[command(flatten)]
    moving: MoveArgs,

    #[command(flatten)]
    recorded: RecordedArgs,

    /// Set this tag on the artifact; it must be the only one that is given
    #[arg(long, value_name = "NAME", value_parser = hash::new_tag, hide_short_help = true)]
    tag: Option<String>,

    /// Set this note on every artifact that is added or already stored, replacing any other
    #[arg(long, value_name = "TEXT", value_parser = note_text, hide_short_help = true)]
    note: Option<String>,

    /// Continue after documents that are rejected or cannot be read (the default)
    #[arg(long, overrides_with = "fail_fast", hide_short_help = true)]
    keep_going: bool,

    /// Stop at the first document that is rejected or cannot be read; documents before it are stored
    #[arg(long, overrides_with = "keep_going", conflicts_with = "dry_run", hide_short_help = true)]
    fail_fast: bool,

    /// Store artifacts that were removed before; the journal records that
    #[arg(long, hide_short_help = true)]
    allow_removed: bool,

    /// Print what would be done without storing anything
    #[arg(long, conflicts_with = "moves")]
    dry_run: bool,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let started = Instant::now();
        let allow_removed = self.allow_removed;
        let options = ExamineOptions { allow_removed, ..self.recorded.options(self.input.options()?)? };
        let annotations = self.recorded.annotations(self.note.clone())?;
        let search = settings::search()?;
        let listed = self.input.checks.listed()?;
        let shown = AddOutputOptions { dry_run: self.dry_run, json: self.json, listed };
        let mover = self.moving.mover(&options)?;
        let mut printer =
            AddPrinter::new("adding", shown, &vault.shown_path()?).moving(mover).failing_fast(self.fail_fast);
        printer.progress.count_files(self.input.files());
        printer.forks = Some(ForkNotes::default());
        if self.moving.moves && self.input.has_standard_input() {
            return Err(CommandError::Usage("--move works on files, not on standard input".to_owned()));
        }
        let mut added_to = None;
        let mut agents = self.input.agent_files();
        let summary = if self.dry_run {
            let existing = vault.open_for_dry_run(self.create)?;
            let snapshot = existing.as_ref().map(Vault::snapshot).transpose()?;
            let inputs = agents.read_inputs(self.input.inputs()?, &options);
            add::dry_run(snapshot.as_deref(), inputs, &options, &mut printer)?
        } else {
            let inputs = self.input.inputs()?;
            let inputs = if self.moving.moves { inputs.recovering() } else { inputs };
            let vault = vault.open_to_add(self.create)?;
            // Standard input was read before, so that Ctrl-C ends a wait for it.
            let stop = Stop::on_signals()?;
            let inputs = stop.until_requested(agents.read_inputs(inputs, &options));
            let summary = vault.add_annotated(inputs, &options, &annotations, &mut printer)?;
            printer.is_interrupted = stop.has_ended_inputs();
            printer.look_for(&vault);
            added_to = Some(vault);
            summary
        };
        let forks = printer.forks.take().unwrap_or_default();
        let is_interrupted = printer.is_interrupted;
        let stored = std::mem::take(&mut printer.stored);
        let status = printer.finish(&summary, started)?;
        if is_interrupted {
            return Err(CommandError::Stopped);
        }
        if let Some(vault) = added_to.filter(Vault::is_created) {
            forks.report(&vault)?;
            time::warn_of_future(&vault)?;
            index::after_adding(&vault, search)?;
            self.set_tag(&vault, &stored)?;
        }
        Ok(status)
    }

    /// Sets the tag on the only artifact.
    fn set_tag(&self, vault: &Vault, stored: &BTreeSet<CoreHash>) -> Result<(), CommandError> {
        let Some(name) = &self.tag else { return Ok(()) };
        let Some(core_hash) = stored.first().copied().filter(|_| stored.len() == 1) else {
            let several = if stored.is_empty() { "no artifact was" } else { "several artifacts were" };
            return Err(CommandError::CouldNotRun(format!(
                "@{name} was not set, because {several} stored; a tag names one artifact"
            )));
        };
        let moved = match vault.run(&SetTagRequest { core_hash, name: name.clone() })?.moved_from {
            Some(before) => format!("; it was {before:.12}"),
            None => String::new(),
        };
        stdout::note(&format!("@{name} is {core_hash:.12}{moved}"));
        Ok(())
    }
}

#[derive(Serialize)]
struct AddLine {
    #[serde(flatten)]
    added: AddedDocument,
    /// Whether the files were moved, if `--move` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<bool>,
}

/// Options of the output.
#[derive(Clone, Copy)]
pub(crate) struct AddOutputOptions {
    pub(crate) dry_run: bool,
    pub(crate) json: bool,
    /// Maximum number of violations listed, if given.
    pub(crate) listed: Option<usize>,
}

/// A printer of the results of adding documents.
pub(crate) struct AddPrinter {
    shown: AddOutputOptions,
    progress: CommandProgress,
    /// The first output error. Adding continues without output.
    output_error: Option<io::Error>,
    /// Number of documents added with warnings.
    warned: u64,
    /// Number of documents rejected because they were removed before.
    refused: u64,
    /// Removes the files of stored documents, if requested.
    mover: Option<Mover>,
    /// Whether to stop at the first invalid document.
    fail_fast: bool,
    /// When adding began.
    started: Instant,
    /// The path of the vault, for the summary; `None` if there is none because nothing was stored.
    vault: Option<PathBuf>,
    /// Whether Ctrl-C ended the inputs.
    is_interrupted: bool,
    /// The first artifacts that are in the vault now, up to two.
    stored: BTreeSet<CoreHash>,
    /// The runs that were added, if their forks are to be reported.
    pub(crate) forks: Option<ForkNotes>,
}

impl AddMonitor for AddPrinter {
    fn removes_originals(&self) -> bool {
        self.mover.is_some()
    }

    fn stored(&mut self, originals: &[&ArtifactSource]) {
        // They are on disk: from here on, the original files are not needed.
        if let Some(mover) = &mut self.mover {
            mover.remove(originals);
        }
    }

    fn examined(&mut self, examined: &ExaminedDocument) {
        self.progress.file(examined.size);
        if let Some(forks) = &mut self.forks {
            forks.see(examined);
        }
        let moved = self.mover.as_mut().and_then(|mover| self.progress.aside(|| mover.take(examined)));
        if !self.shown.json && examined.outcome == DocumentOutcome::Rejected {
            self.progress.aside(|| self.print_rejected(examined));
        }
        if matches!(examined.outcome, DocumentOutcome::Added | DocumentOutcome::NewCapture)
            && !examined.violations.is_empty()
        {
            self.warned += 1;
        }
        if self.stored.len() < 2
            && !matches!(examined.outcome, DocumentOutcome::Rejected | DocumentOutcome::Skipped)
        {
            self.stored.extend(examined.core_hash);
        }
        self.refused += u64::from(was_removed(examined));
        if !examined.secrets.is_empty() {
            self.progress.aside(|| inputs::warn_of_secrets(&examined.path, &examined.secrets));
        }
        if self.output_error.is_some() {
            return;
        }
        let print = || match self.shown.json {
            true => self.print_json(examined, moved),
            false if terminal::is_quiet() => Ok(()),
            false => self.print_text(examined, moved),
        };
        self.output_error = self.progress.suspend_on_terminal(print).err();
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.progress.aside(|| stdout::error(&error.to_string()));
    }

    fn failed(&mut self, summary: &Summary) {
        self.progress.end();
        stdout::note(&format!("stored before the error: {}", text_of(summary, self, self.started)));
    }

    fn stops_at_bad(&self) -> bool {
        self.fail_fast
    }
}

impl AddPrinter {
    pub(crate) fn new(doing: &'static str, shown: AddOutputOptions, vault: &Path) -> Self {
        let progress = CommandProgress::new(doing);
        Self {
            shown,
            progress,
            output_error: None,
            warned: 0,
            refused: 0,
            mover: None,
            fail_fast: false,
            started: Instant::now(),
            vault: Some(vault.to_owned()),
            is_interrupted: false,
            stored: BTreeSet::new(),
            forks: None,
        }
    }

    /// Creates a printer without a progress bar.
    pub(crate) fn silent(shown: AddOutputOptions, vault: &Path) -> Self {
        Self { progress: CommandProgress::none(), ..Self::new("", shown, vault) }
    }

    /// Returns the printer with a mover that removes files once they are stored.
    pub(crate) fn moving(self, mover: Option<Mover>) -> Self {
        Self { mover, ..self }
    }

    /// Returns the printer, which stops at the first invalid document if `fail_fast`.
    fn failing_fast(self, fail_fast: bool) -> Self {
        Self { fail_fast, ..self }
    }

    /// Notes whether the vault exists after the additions: it is only created to store something.
    pub(crate) fn look_for(&mut self, vault: &Vault) {
        if !vault.is_created() {
            self.vault = None;
        }
    }

    /// Returns whether there are files to be removed later.
    pub(crate) fn is_waiting_to_move(&self) -> bool {
        self.mover.as_ref().is_some_and(|mover| mover.waiting() > 0)
    }

    /// Retries removing files of stored documents that could not be removed yet, and reports those that were removed.
    pub(crate) fn retry_moving(&mut self, vault: &Vault) {
        let gone = self.mover.as_mut().map(|mover| mover.retry(vault)).unwrap_or_default();
        for examined in gone {
            if self.output_error.is_some() {
                return;
            }
            let printed = if self.shown.json {
                self.print_json(&examined, Some(true))
            } else {
                let mut out = stdout::text();
                line(&mut out, "moved", GOOD, &examined).and_then(|()| out.flush())
            };
            self.output_error = printed.err();
        }
    }

    /// Prints the summary.
    pub(crate) fn finish(mut self, summary: &Summary, started: Instant) -> Result<Status, CommandError> {
        // A closed pipe is not an error: the purpose is the vault, not the output.
        if let Some(error) = self.output_error.take_if(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            return Err(error.into());
        }
        self.progress.end();
        let status = self.mover.as_ref().map_or(Status::Done, Mover::status);
        stdout::note(&text_of(summary, &self, started));
        report::hint(summary.rejected, self.refused);
        if summary.restored > 0 {
            let those = counted(summary.restored, "artifact");
            stdout::note(&format!(
                "{those} in the vault had damaged or missing bytes, which were restored from these files; \
                 \"runvault fsck\" checks the others"
            ));
        }
        if summary.unrecorded > 0 {
            let those = counted(summary.unrecorded, "artifact");
            stdout::error(&format!(
                "{those} already stored could not be recorded as seen again, because another process holds the vault's write \
                 lock; their position in the order of arrival is unchanged, add them again to update it"
            ));
        }
        if summary.left > 0 {
            let left = counted(summary.left, "document");
            let were = if summary.left == 1 { "was" } else { "were" };
            stdout::note(&format!("stopped at the first failure; {left} after it {were} not examined"));
        }
        Ok(status.or(Status::from_summary(summary)))
    }

    fn most(&self) -> usize {
        self.shown.listed.unwrap_or(report::LISTED)
    }

    /// Prints an invalid artifact with its violations.
    fn print_rejected(&self, examined: &ExaminedDocument) {
        let kind = examined.known_kind().map(|kind| format!("{} ", kind.noun())).unwrap_or_default();
        let mut text = format!("{BAD}rejected{BAD:#} {kind}{}\n", escaped(&examined.path)).into_bytes();
        // Writing to a vector cannot fail.
        let _ = report::write(&mut text, &examined.violations, examined.violations_omitted, self.most());
        stdout::message(String::from_utf8_lossy(&text).trim_end());
    }

    fn print_json(&self, examined: &ExaminedDocument, moved: Option<bool>) -> io::Result<()> {
        if examined.outcome == DocumentOutcome::Skipped {
            return Ok(());
        }
        let mut added = AddedDocument::new(examined.clone());
        json::with_hints(&mut added.document, self.shown.listed);
        let mut out = stdout::raw();
        json::line(&mut out, &AddLine { added, moved })?;
        out.flush()
    }

    fn print_text(&self, examined: &ExaminedDocument, moved: Option<bool>) -> io::Result<()> {
        let mut out = stdout::text();
        self.print_outcome(&mut out, examined)?;
        if moved == Some(true) {
            line(&mut out, "moved", GOOD, examined)?;
        }
        out.flush()
    }

    fn print_outcome(&self, out: &mut impl Write, examined: &ExaminedDocument) -> io::Result<()> {
        let (word, style) = match examined.outcome {
            DocumentOutcome::Added if self.shown.dry_run => ("would add", GOOD),
            DocumentOutcome::NewCapture if self.shown.dry_run => ("would capture", GOOD),
            DocumentOutcome::Added => ("added", GOOD),
            DocumentOutcome::NewCapture => ("new capture", GOOD),
            DocumentOutcome::Restored => ("restored", CAUTION),
            DocumentOutcome::PresentUnrecorded => ("already stored", FAINT),
            DocumentOutcome::Present if terminal::is_verbose() => ("seen again", FAINT),
            DocumentOutcome::Skipped if terminal::is_verbose() => ("skipped", FAINT),
            _ => return Ok(()),
        };
        line(out, word, style, examined)?;
        if terminal::is_verbose() {
            let can_be_signed = examined.known_kind().is_some_and(|kind| kind.info().can_be_signed);
            if can_be_signed && examined.core_hash.is_some() {
                writeln!(out, "  {}", matches::document_signature_text(examined))?;
            }
            report::write(out, &examined.violations, examined.violations_omitted, self.most())?;
        }
        Ok(())
    }
}

/// Returns whether a document was rejected because it was removed before.
fn was_removed(examined: &ExaminedDocument) -> bool {
    examined.violations.iter().any(|violation| violation.rule_id == add::REMOVED.id)
}

fn line(out: &mut impl Write, word: &str, style: Style, examined: &ExaminedDocument) -> io::Result<()> {
    let kind = examined.known_kind().map_or("", Kind::noun);
    let hash = examined.core_hash.map(|core| format!("{HASH}{core:.12}{HASH:#} ")).unwrap_or_default();
    let joined =
        examined.continues.map(|core| format!(" (continues {HASH}{core:.12}{HASH:#})")).unwrap_or_default();
    let attached = match examined.attachments.len() as u64 {
        0 => String::new(),
        count => format!(" (with {} that it refers to)", counted(count, "file")),
    };
    let path = escaped(&examined.path);
    writeln!(out, "{style}{word:<13}{style:#} {kind:<11} {hash}{path}{joined}{attached}")
}

fn text_of(summary: &Summary, printer: &AddPrinter, started: Instant) -> String {
    let AddPrinter { warned, mover, shown, vault, .. } = printer;
    let mut parts = vec![
        format!("{} added", summary.added),
        format!("{} seen again", summary.present),
        counted(summary.new_captures, "new capture"),
        format!("{} rejected", summary.rejected),
    ];
    if summary.restored > 0 {
        parts.push(format!("{} restored", summary.restored));
    }
    if summary.unrecorded > 0 {
        parts.push(format!("{} already stored but not recorded as seen again", summary.unrecorded));
    }
    if summary.skipped > 0 {
        parts.push(format!("{} skipped", counted(summary.skipped, "other file")));
    }
    if summary.unreadable > 0 {
        parts.push(format!("{} unreadable", summary.unreadable));
    }
    if let Some(mover) = mover {
        parts.push(format!("{} moved", mover.moved));
        if mover.kept > 0 {
            parts.push(format!("{} stored but not moved", mover.kept));
        }
        if mover.waiting() > 0 {
            parts.push(format!("{} stored but not moved yet", mover.waiting()));
        }
    }
    if *warned > 0 {
        parts.push(format!("{warned} with warnings (-v lists them)"));
    }
    let dry = if shown.dry_run { "dry run, nothing was stored: " } else { "" };
    let (size, seconds) = (stdout::size(summary.bytes), started.elapsed().as_secs_f64());
    let vault = vault.as_ref().map(|path| format!("vault {}", escaped(&path.to_string_lossy())));
    let vault = vault.as_deref().unwrap_or("no vault was created");
    format!("{dry}{}; {size} in {seconds:.2} s; {vault}", parts.join(", "))
}
