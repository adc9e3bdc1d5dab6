//! `runvault import`

mod recordings;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, StdinLock, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::display::escaped;
use runvault::formats;
use runvault::intake::ExamineOptions;
use runvault::recorders::{ConvertInput, RecorderFormat};
use runvault::vault::add::CommonAnnotations;
use runvault::vault::bundle::{
    self, Bundle, BundleImportResult, BundledLink, ImportedLabel, ImportedLabelSummary, ImportedLinkSummary,
    ImportedNote, ImportedNoteSummary, ImportedTag, ImportedTagSummary, LabelOutcome, LinkOutcome,
    NoteOutcome, TagOutcome,
};

use super::add::{AddOutputOptions, AddPrinter};
use super::index;
use crate::cli::args::inputs::{CheckArgs, RecordedArgs};
use crate::cli::args::matching::MatchingArgs;
use crate::cli::args::settings;
use crate::cli::args::vault::{CreateArgs, VaultArgs};
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::report::ForkNotes;
use crate::cli::output::stdout::{self, CAUTION, GOOD, HASH, counted};
use crate::cli::output::terminal::Stop;
use crate::cli::output::{disk, json, time};

/// Import a bundle, or recordings of other programs
///
/// Every artifact is validated again, as by "add", with the same output. A bundle that does not match its manifest is
/// rejected as a whole. Manual links are imported if both ends are in the vault; the others are listed. Tags are
/// imported unless they already name other artifacts here, and notes and labels unless the artifacts already have
/// others.
///
/// VCR.py cassettes, OpenTelemetry spans, Inspect logs, and requests and responses as JSON Lines are recognized by
/// content. They become sessions and run packs, which "gateway --mode replay" replays, with the original as an
/// attachment. What cannot be mapped is listed. The original contains what the file contains, such as keys: use
/// --no-original to leave it out.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(crate) struct Args {
    /// A bundle written by "export", or recordings of other programs; - is standard input
    ///
    /// Requests and responses of a batch can be in two files, which are given together.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Do not store the imported files themselves
    #[arg(long)]
    no_original: bool,

    #[command(flatten)]
    matching: MatchingArgs,

    #[command(flatten)]
    checks: CheckArgs,

    #[command(flatten)]
    create: CreateArgs,

    #[command(flatten)]
    recorded: RecordedArgs,

    /// Store artifacts that were removed before; the journal records that
    #[arg(long)]
    allow_removed: bool,

    /// Print what would be done without storing anything
    #[arg(long)]
    dry_run: bool,

    /// Print one line of JSON for each capture, link, tag, note and label
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let started = Instant::now();
        let allow_removed = self.allow_removed;
        let options = ExamineOptions { allow_removed, ..self.recorded.options(self.checks.options(None)?)? };
        let annotations = self.recorded.annotations(None)?;
        let search = settings::search()?;
        if let Some(inputs) = read(&self.files, options.admit.limits.bytes)? {
            let task = ImportTask { started, options, annotations, search };
            return self.import_recordings(inputs, vault, task);
        }
        let [file] = self.files.as_slice() else {
            return Err(CommandError::Usage("give one bundle at a time".to_owned()));
        };
        if self.no_original || self.matching.is_given() {
            let message = "a bundle is imported as it is; --redact, --normalize, --ignore and --no-original are for \
                           recordings of other programs";
            return Err(CommandError::Usage(message.to_owned()));
        }
        let bundle = Self::read(file, &options)?;
        let listed = self.checks.listed()?;
        let shown = AddOutputOptions { dry_run: self.dry_run, json: self.json, listed };
        let path = vault.shown_path()?;
        let mut printer = AddPrinter::new("importing", shown, &path);
        printer.forks = Some(ForkNotes::default());
        let mut added_to = None;
        let imported = if self.dry_run {
            let vault = vault.open_for_dry_run(self.create)?;
            let snapshot = vault.as_ref().map(Vault::snapshot).transpose()?;
            bundle::dry_run(snapshot.as_deref(), &bundle, &options, &mut printer)?
        } else {
            let vault = vault.open_to_add(self.create)?;
            let stop = Stop::on_signals()?;
            let imported = vault.import_until(
                &bundle,
                (&options, &annotations),
                &|| stop.is_requested(),
                &mut printer,
            )?;
            added_to = Some(vault);
            imported
        };
        let forks = printer.forks.take().unwrap_or_default();
        let status = printer.finish(&imported.summary, started)?;
        if imported.is_interrupted {
            return Err(CommandError::Stopped);
        }
        self.print_links(&imported)?;
        self.print_tags(&imported)?;
        self.print_notes(&imported)?;
        print(&mut stdout::raw(), &imported.labels, self.json, &self.done("set"))?;
        if let Some(vault) = added_to.filter(Vault::is_created) {
            forks.report(&vault)?;
            time::warn_of_future(&vault)?;
            index::after_adding(&vault, search)?;
        }
        Ok(status)
    }

    fn read(path: &Path, options: &ExamineOptions) -> Result<Bundle, CommandError> {
        let limit = options.admit.limits.bytes;
        if path == Path::new("-") {
            return Ok(bundle::read(standard_input(), "-", limit)?);
        }
        let name = path.to_string_lossy();
        if path.is_dir() {
            let add = format!("\"runvault add {name}\" adds artifacts");
            return Err(CommandError::No(format!("{name} is a directory, not a bundle; {add}")));
        }
        let failed = |error: io::Error| CommandError::CouldNotRun(format!("cannot read {name}: {error}"));
        let mut input = io::BufReader::new(File::open(path).map_err(failed)?);
        if input.fill_buf().map_err(failed)?.starts_with(DATABASE) {
            let copy = format!("\"runvault copy {name} VAULT\" copies a vault into another one");
            return Err(CommandError::No(format!(
                "{name} is a vault or another SQLite database, not a bundle; {copy}"
            )));
        }
        Ok(bundle::read(input, path, limit)?)
    }

    /// Returns `verb` in its completed form, or in a dry run in its conditional form.
    fn done(&self, verb: &str) -> String {
        if self.dry_run { format!("would be {verb}") } else { verb.to_owned() }
    }

    fn print_links(&self, imported: &BundleImportResult) -> Result<(), CommandError> {
        let mut out = stdout::raw();
        let (mut added, mut present, mut missing) = (0, 0, 0);
        for link in &imported.links {
            match &link.outcome {
                LinkOutcome::Added => added += 1,
                LinkOutcome::Present => present += 1,
                LinkOutcome::Missing(ends) => {
                    missing += 1;
                    if !self.json {
                        note_missing(&link.link, ends);
                    }
                }
            }
            if self.json {
                json::line(&mut out, &ImportedLinkSummary::from(link))?;
            }
        }
        if !imported.links.is_empty() {
            let links = counted(added, "link");
            stdout::note(&format!(
                "{links} {}, {present} already present, {missing} with a missing end",
                self.done("added")
            ));
        }
        Ok(())
    }

    fn print_tags(&self, imported: &BundleImportResult) -> Result<(), CommandError> {
        let mut out = stdout::raw();
        let mut set = 0;
        for tag in &imported.tags {
            set += u64::from(tag.outcome == TagOutcome::Set);
            if self.json {
                json::line(&mut out, &ImportedTagSummary::from(tag))?;
            } else {
                note_tag(tag);
            }
        }
        if !imported.tags.is_empty() {
            stdout::note(&format!("{} {}", counted(set, "tag"), self.done("set")));
        }
        Ok(())
    }

    fn print_notes(&self, imported: &BundleImportResult) -> Result<(), CommandError> {
        let mut out = stdout::raw();
        let mut set = 0;
        for note in &imported.notes {
            set += u64::from(note.outcome == NoteOutcome::Set);
            if self.json {
                json::line(&mut out, &ImportedNoteSummary::from(note))?;
            } else {
                report_note(note);
            }
        }
        if !imported.notes.is_empty() {
            stdout::note(&format!("{} {}", counted(set, "note"), self.done("set")));
        }
        Ok(())
    }
}

/// The first bytes of an SQLite database.
const DATABASE: &[u8] = b"SQLite format 3\0";

fn note_missing(link: &BundledLink, ends: &[CoreHash]) {
    let BundledLink { source, relation, target, .. } = link;
    let relation = escaped(relation);
    let ends: Vec<String> = ends.iter().map(|end| format!("{HASH}{end}{HASH:#}")).collect();
    stdout::message(&format!(
        "{CAUTION}not linked{CAUTION:#} {source:.12} {GOOD}{relation}{GOOD:#} {target:.12}: not in the vault: {}",
        ends.join(", ")
    ));
}

/// Reports why a tag was not set.
fn note_tag(tag: &ImportedTag) {
    let why = match tag.outcome {
        TagOutcome::Set | TagOutcome::Present => return,
        TagOutcome::Conflict(tagged) => format!("it names {HASH}{tagged:.12}{HASH:#} here"),
        TagOutcome::Reserved => "it could also be a hash or the id of a run here".to_owned(),
        TagOutcome::Missing => format!("not in the vault: {HASH}{}{HASH:#}", tag.core),
    };
    stdout::message(&format!(
        "{CAUTION}not tagged{CAUTION:#} {:.12} @{}: {why}",
        tag.core,
        escaped(&tag.name)
    ));
}

/// Reports why a note was not set.
fn report_note(note: &ImportedNote) {
    let why = match note.outcome {
        NoteOutcome::Set | NoteOutcome::Present => return,
        NoteOutcome::Other => "it has another note here",
        NoteOutcome::Missing => "it is not in the vault",
    };
    stdout::message(&format!("{CAUTION}not noted{CAUTION:#} {HASH}{:.12}{HASH:#}: {why}", note.core));
}

/// Prints the results. `done` is what was done to the labels that are set, or would be.
fn print(
    out: &mut dyn Write,
    labels: &[ImportedLabel],
    as_json: bool,
    done: &str,
) -> Result<(), CommandError> {
    for label in labels {
        if as_json {
            json::line(out, &ImportedLabelSummary::from(label))?;
        } else {
            report(label);
        }
    }
    if !labels.is_empty() {
        let set = labels.iter().filter(|label| label.outcome == LabelOutcome::Set).count();
        stdout::note(&format!("{} {done}", counted(set as u64, "label")));
    }
    Ok(())
}

/// Reports why a label was not set.
fn report(label: &ImportedLabel) {
    let why = match label.outcome {
        LabelOutcome::Set | LabelOutcome::Present => return,
        LabelOutcome::Other => "it has another value here",
        LabelOutcome::TooMany => "it has too many labels",
        LabelOutcome::Missing => "it is not in the vault",
    };
    let ImportedLabel { core, key, value, .. } = label;
    stdout::message(&format!(
        "{CAUTION}not labeled{CAUTION:#} {HASH}{core:.12}{HASH:#} {}={}: {why}",
        escaped(key),
        escaped(value)
    ));
}

/// Returns standard input, of which [`read`] has consumed nothing.
fn standard_input() -> StdinLock<'static> {
    io::stdin().lock()
}

/// The files that can be recordings.
struct RecordingInputs {
    recordings: Vec<ConvertInput>,
    /// Why other files are not imported.
    failures: Vec<CommandError>,
}

/// Reads recordings of other programs. Returns `None` if the only file can be a bundle, which is then not consumed.
fn read(files: &[PathBuf], limit: u64) -> Result<Option<RecordingInputs>, CommandError> {
    let mut inputs = RecordingInputs { recordings: Vec::new(), failures: Vec::new() };
    for path in files {
        match read_one(path, limit) {
            Ok(Some(input)) => inputs.recordings.push(input),
            Ok(None) if files.len() == 1 => return Ok(None),
            Ok(None) => {
                let name = path.to_string_lossy();
                let message = format!("{} is not a recording; give a bundle alone", escaped(&name));
                inputs.failures.push(CommandError::Usage(message));
            }
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => inputs.failures.push(error),
        }
    }
    Ok(Some(inputs))
}

fn read_one(path: &Path, limit: u64) -> Result<Option<ConvertInput>, CommandError> {
    let name = path.to_string_lossy().into_owned();
    let failed =
        |error: io::Error| CommandError::CouldNotRun(format!("cannot read {}: {error}", escaped(&name)));
    if path == Path::new("-") {
        let Some(bytes) = candidate(standard_input(), limit).map_err(failed)? else { return Ok(None) };
        return recording(ConvertInput { name, bytes }).map(Some);
    }
    disk::expect_path(path)?;
    // A directory is reported when it is read as a bundle.
    if path.is_dir() {
        return Ok(None);
    }
    let file = File::open(path).map_err(failed)?;
    let bytes = candidate(BufReader::new(file), limit).map_err(failed)?;
    bytes.map(|bytes| recording(ConvertInput { name, bytes })).transpose()
}

/// Returns a text or a zip file if it is a recording. Bundles are neither.
fn recording(input: ConvertInput) -> Result<ConvertInput, CommandError> {
    if RecorderFormat::recognize(&input.bytes).is_some() {
        return Ok(input);
    }
    let name = escaped(&input.name);
    let add = format!("\"runvault add {name}\" adds artifacts");
    Err(CommandError::No(if input.bytes.trim_ascii().is_empty() {
        format!("{name} is empty")
    } else if let Some(reason) = RecorderFormat::unsupported(&input.bytes) {
        format!("{name}: {reason}")
    } else if let Some((kind, _)) = formats::recognize(&input.bytes) {
        format!("{name} is a {}, not a bundle; {add}", kind.noun())
    } else {
        format!(
            "{name} is neither a bundle nor a recording of VCR.py, Inspect or OpenTelemetry, nor requests and responses as \
             JSON Lines; {add}"
        )
    }))
}

/// Reads what can be a recording: a text or a zip file. One byte more than allowed is enough to reject it.
fn candidate(mut input: impl BufRead, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let head = input.fill_buf()?;
    let is_zip = head.starts_with(b"PK\x03\x04");
    let is_text = !head.contains(&0) && !head.starts_with(b"\x28\xb5\x2f\xfd");
    let is_named = || RecorderFormat::unsupported(head).is_some();
    if !is_zip && !is_text && !is_named() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    input.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// What is done with what files become.
struct ImportTask {
    started: Instant,
    options: ExamineOptions,
    annotations: CommonAnnotations,
    /// Whether the search index is to be built.
    search: bool,
}
