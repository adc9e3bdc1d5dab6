//! `runvault import`

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, StdinLock};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args as ClapArgs;
use runvault::display::escaped;
use runvault::intake::ExamineOptions;
use runvault::recorders::{self, Conversion, ConvertInput, ConvertOptions, RecorderFormat};
use runvault::vault::add::{self, CommonAnnotations};
use runvault::vault::bundle::{
    self, Bundle, BundleImportOptions, ImportOutcome, ImportedAnnotations, ImportedLabelSummary,
    ImportedLinkSummary, ImportedNoteSummary, ImportedTagSummary, MergeOutcome,
};
use runvault::vault::rules::{ImportedValue, ValueOutcome};
use runvault::{Vault, formats};
use serde::Serialize;

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
/// Cassettes of VCR.py, go-vcr and Datadog, HTTP archives (HAR) also of Polly.JS, OpenTelemetry spans, Inspect logs, and
/// requests and responses as JSON Lines are recognized by content, also compressed with gzip. They become sessions and
/// run packs, which "gateway --mode replay" replays, with the original as an attachment. Recordings of
/// context-engine-kernel become sessions. What cannot be mapped is listed. The original contains what the file contains,
/// such as keys: use --no-original to leave it out.
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
            let is_stopped = &|| stop.is_requested();
            let until = BundleImportOptions { examine: &options, annotations: &annotations, is_stopped };
            let imported = vault.import_until(&bundle, &until, &mut printer)?;
            printer.look_for(&vault);
            added_to = Some(vault);
            imported
        };
        let forks = printer.forks.take().unwrap_or_default();
        let status = printer.finish(&imported.summary, started)?;
        if imported.is_interrupted {
            return Err(CommandError::Stopped);
        }
        self.print(&imported.annotations)?;
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
            let add = format!("\"runvault add {name}\" adds the artifacts in it");
            return Err(CommandError::No(format!(
                "{name} is a directory, not a bundle or a recording; {add}, and recordings are given by their files"
            )));
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

    /// Prints what was done with the links, tags, notes and labels.
    fn print(&self, annotations: &ImportedAnnotations) -> Result<(), CommandError> {
        let ImportedAnnotations { links, tags, notes, labels } = annotations;
        self.print_each(links, report_link)?;
        let count = |outcome| links.iter().filter(|link| link.outcome == outcome).count();
        if !links.is_empty() {
            stdout::note(&format!(
                "{} {}, {} already present, {} with a missing end",
                counted(count(ImportOutcome::Linked) as u64, "link"),
                self.done("added"),
                count(ImportOutcome::Present),
                count(ImportOutcome::NotLinked)
            ));
        }
        self.print_each(tags, report_tag)?;
        self.count_set("tag", tags.iter().map(|tag| tag.outcome));
        self.print_each(notes, report_note)?;
        self.count_set("note", notes.iter().map(|note| note.outcome));
        self.print_each(labels, report_label)?;
        self.count_set("label", labels.iter().map(|label| label.outcome));
        Ok(())
    }

    fn print_each<T: Serialize>(&self, items: &[T], report: impl Fn(&T)) -> Result<(), CommandError> {
        let mut out = stdout::raw();
        for item in items {
            if self.json {
                json::line(&mut out, item)?;
            } else {
                report(item);
            }
        }
        Ok(())
    }

    /// Prints how many of a bundle's tags, notes or labels were set.
    fn count_set(&self, noun: &str, outcomes: impl ExactSizeIterator<Item = ImportOutcome>) {
        if outcomes.len() > 0 {
            let is_set = |outcome: &ImportOutcome| {
                matches!(outcome, ImportOutcome::Tagged | ImportOutcome::Noted | ImportOutcome::Labeled)
            };
            let set = outcomes.filter(is_set).count() as u64;
            stdout::note(&format!("{} {}", counted(set, noun), self.done("set")));
        }
    }
}

/// The first bytes of an SQLite database.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Reports why a link was not added.
fn report_link(link: &ImportedLinkSummary) {
    let ImportedLinkSummary { source, relation, target, missing, .. } = link;
    if !missing.is_empty() {
        let relation = escaped(relation);
        let missing: Vec<String> = missing.iter().map(|end| format!("{HASH}{end}{HASH:#}")).collect();
        stdout::message(&format!(
            "{CAUTION}not linked{CAUTION:#} {source:.12} {GOOD}{relation}{GOOD:#} {target:.12}: not in the vault: {}",
            missing.join(", ")
        ));
    }
}

/// Reports why a tag was not set.
fn report_tag(tag: &ImportedTagSummary) {
    let ImportedTagSummary { merged, tag, core_hash: core, .. } = tag;
    let why = match merged {
        MergeOutcome::Set | MergeOutcome::Present => return,
        MergeOutcome::Conflict(Some(tagged)) => format!("it names {HASH}{tagged:.12}{HASH:#} here"),
        MergeOutcome::Reserved => "it could also be a hash or the id of a run here".to_owned(),
        _ => format!("not in the vault: {HASH}{core}{HASH:#}"),
    };
    stdout::message(&format!("{CAUTION}not tagged{CAUTION:#} {core:.12} @{}: {why}", escaped(tag)));
}

/// Reports why a note was not set.
fn report_note(note: &ImportedNoteSummary) {
    let why = match note.merged {
        MergeOutcome::Set | MergeOutcome::Present => return,
        MergeOutcome::Conflict(_) => "it has another note here",
        _ => NOT_THERE,
    };
    stdout::message(&format!("{CAUTION}not noted{CAUTION:#} {HASH}{:.12}{HASH:#}: {why}", note.core_hash));
}

/// Reports why a label was not set.
fn report_label(label: &ImportedLabelSummary) {
    let why = match label.merged {
        MergeOutcome::Set | MergeOutcome::Present => return,
        MergeOutcome::Conflict(_) => "it has another value here",
        MergeOutcome::TooMany => "it has too many labels",
        _ => NOT_THERE,
    };
    let ImportedLabelSummary { core_hash: core, key, value, .. } = label;
    stdout::message(&format!(
        "{CAUTION}not labeled{CAUTION:#} {HASH}{core:.12}{HASH:#} {}={}: {why}",
        escaped(key),
        escaped(value)
    ));
}

const NOT_THERE: &str = "it is not in the vault";

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
            "{name} is neither a bundle nor a recording of VCR.py, go-vcr, Datadog, Inspect, OpenTelemetry or \
             context-engine-kernel, nor an HTTP archive, nor requests and responses as JSON Lines; {add}"
        )
    }))
}

/// Reads what can be a recording. One byte more than allowed is enough to reject it.
fn candidate(mut input: impl BufRead, limit: u64) -> io::Result<Option<Vec<u8>>> {
    if !RecorderFormat::can_begin(input.fill_buf()?) {
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

impl Args {
    /// Converts recordings, adds what they become, and lists what cannot be mapped.
    fn import_recordings(
        &self,
        inputs: RecordingInputs,
        vault: &VaultArgs,
        task: ImportTask,
    ) -> Result<Status, CommandError> {
        if self.matching.redacts()? && !self.no_original {
            let message = "--redact does not change the original; use --no-original to leave it out";
            return Err(CommandError::Usage(message.to_owned()));
        }
        let ImportTask { started, options, annotations, search } = task;
        let limits = options.admit.limits;
        let rules = self.matching.rules()?;
        let convert = ConvertOptions { rules, limits, without_originals: self.no_original };
        let RecordingInputs { recordings, mut failures } = inputs;
        let is_only = recordings.len() + failures.len() == 1;
        let mut conversions = Vec::new();
        for converted in recorders::convert(recordings, &convert) {
            match converted {
                Ok(conversion) => conversions.push(conversion),
                Err(error) if is_only => return Err(error.into()),
                Err(error) => failures.push(error.into()),
            }
        }
        let failed = report(failures);
        let unmapped: Vec<ImportedValue> = conversions.iter().flat_map(|one| one.unmapped.clone()).collect();
        let assumed: Vec<ImportedValue> = conversions.iter().flat_map(|one| one.assumed.clone()).collect();
        let notes: Vec<String> = conversions.iter().map(note).collect();
        if conversions.iter().all(|one| one.calls == 0) {
            self.print_values(&unmapped)?;
            let message = "no call of a model can be mapped; nothing was imported".to_owned();
            return Err(match failed {
                Status::Incomplete => CommandError::CouldNotRun(message),
                _ => CommandError::No(message),
            });
        }
        let shown =
            AddOutputOptions { dry_run: self.dry_run, json: self.json, listed: self.checks.listed()? };
        let mut printer = AddPrinter::new("importing", shown, &vault.shown_path()?);
        let items = conversions.into_iter().flat_map(Conversion::into_items);
        let mut added_to = None;
        let mut is_stopped = false;
        let summary = if self.dry_run {
            let vault = vault.open_for_dry_run(self.create)?;
            let snapshot = vault.as_ref().map(Vault::snapshot).transpose()?;
            add::dry_run(snapshot.as_deref(), items, &options, &mut printer)?
        } else {
            let vault = vault.open_to_add(self.create)?;
            let stop = Stop::on_signals()?;
            let items: Vec<_> = items.collect();
            let items = stop.until_requested(items.into_iter());
            let summary = vault.add_annotated(items, &options, &annotations, &mut printer)?;
            printer.look_for(&vault);
            is_stopped = stop.has_ended_inputs();
            added_to = Some(vault);
            summary
        };
        let status = printer.finish(&summary, started)?;
        if is_stopped {
            return Err(CommandError::Stopped);
        }
        self.print_values(&unmapped)?;
        self.print_values(&assumed)?;
        for note in &notes {
            stdout::note(note);
        }
        if let Some(vault) = added_to.filter(Vault::is_created) {
            time::warn_of_future(&vault)?;
            index::after_adding(&vault, search)?;
        }
        Ok(status.or(failed))
    }

    fn print_values(&self, values: &[ImportedValue]) -> Result<(), CommandError> {
        let mut out = stdout::raw();
        for value in values {
            if self.json {
                json::line(&mut out, value)?;
                continue;
            }
            let outcome = match value.outcome {
                ValueOutcome::NotMapped => "not mapped",
                ValueOutcome::Assumed => "assumed",
            };
            let [file, location, reason] =
                [&value.file, &value.location, &value.reason].map(|text| escaped(text).to_string());
            stdout::message(&format!("{CAUTION}{outcome}{CAUTION:#} {file}: {location}: {reason}"));
        }
        Ok(())
    }
}

/// Reports the files that are not imported, and returns the status for them.
fn report(failures: Vec<CommandError>) -> Status {
    failures.into_iter().fold(Status::Done, |status, failure| {
        stdout::error(&failure.to_string());
        let could_not_run = matches!(failure, CommandError::CouldNotRun(_));
        status.or(if could_not_run { Status::Incomplete } else { Status::No })
    })
}

fn note(conversion: &Conversion) -> String {
    let (calls, runs) = (counted(conversion.calls, "call"), counted(conversion.runs, "run"));
    let unmapped = conversion.unmapped.len() as u64;
    let entries = if unmapped == 1 { "entry" } else { "entries" };
    format!("{}: {calls} in {runs}; {unmapped} {entries} not mapped", conversion.format.name())
}
