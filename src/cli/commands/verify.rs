//! `runvault verify`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::LocatedCapture;
use runvault::Vault;
use runvault::artifact::{Kind, SignaturePolicy};
use runvault::digest::CaptureHash;
use runvault::display::escaped;
use runvault::formats;
use runvault::intake::{ExamineOptions, SourceError};
use runvault::vault::add::{self, AddMonitor, CheckedDocument, DocumentOutcome, ExaminedDocument, Summary};
use runvault::vault::verify::{VerifiedCapture, VerifyRequest};

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::inputs::InputArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::matches;
use crate::cli::output::progress::CommandProgress;
use crate::cli::output::stdout::{self, BAD, FAINT, GOOD, HASH, counted};
use crate::cli::output::{json, report, terminal};

/// Validate artifacts without storing them
///
/// The checks are those of "add" with an empty vault: what it would reject is invalid, what it would skip is skipped. A part
/// of a trace is invalid unless its beginning is among the files.
///
/// An argument that names an existing file is that file. Otherwise, a hash, a hash prefix, a tag, a run id or latest names an
/// artifact in the vault: each of its captures is read, hashed and checked again, with the given keys. The hash of a
/// capture names that capture only.
#[derive(ClapArgs)]
#[command(mut_arg("paths", |paths| paths.value_name("PATH|HASH").help(
    "Files, directories (recursively), packs as directories or archives, or - for standard input; or \
     artifacts in the vault: hashes, prefixes of them, tags, run ids, or latest",
)))]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let (stored, inputs) = self.input.split(vault)?;
        let options = self.input.options()?;
        let listed = self.input.checks.listed()?;
        let stored = VaultVerification::locate(&stored, &options, vault)?;
        let mut progress = CommandProgress::new("verifying");
        progress.count_files(self.input.files().filter(|_| stored.is_none()));
        let mut printer = VerifyPrinter { json: self.json, listed, progress, output_error: None };
        let mut summary = match inputs {
            Some(inputs) => {
                let mut agents = self.input.agent_files();
                add::verify(agents.read_inputs(inputs, &options), &options, &mut printer)
            }
            None => Summary::default(),
        };
        if let Some(stored) = stored {
            stored.verify(&mut printer, &mut summary)?;
        }
        // A closed pipe must not make invalid artifacts count as valid: the exit status reflects the verification.
        match printer.output_error.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
            _ => drop(printer),
        }
        let skipped = match summary.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", counted(skipped, "other file")),
        };
        stdout::note(&format!("{} good, {} bad{skipped}", summary.verified, summary.rejected));
        report::hint(summary.rejected, 0);
        Ok(Status::from_summary(&summary))
    }
}

struct VerifyPrinter {
    /// Whether to print JSON.
    json: bool,
    /// Maximum number of violations listed, if given.
    listed: Option<usize>,
    progress: CommandProgress,
    output_error: Option<io::Error>,
}

impl AddMonitor for VerifyPrinter {
    fn examined(&mut self, examined: &ExaminedDocument) {
        self.print(examined.size, |printer| {
            if printer.json { printer.print_json(examined) } else { printer.print_text(examined) }
        });
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.progress.aside(|| stdout::error(&error.to_string()));
    }
}

impl VerifyPrinter {
    /// Prints the result for an item of this size, unless an earlier write failed.
    fn print(&mut self, bytes: u64, print: impl FnOnce(&Self) -> io::Result<()>) {
        self.progress.file(bytes);
        if self.output_error.is_none() {
            self.output_error = self.progress.suspend_on_terminal(|| print(self)).err();
        }
    }

    fn most(&self) -> usize {
        self.listed.unwrap_or(report::LISTED)
    }

    fn print_json(&self, examined: &ExaminedDocument) -> io::Result<()> {
        if examined.outcome == DocumentOutcome::Skipped {
            return Ok(());
        }
        let mut verified = CheckedDocument::new(examined.clone());
        json::with_hints(&mut verified.document, self.listed);
        json::line(&mut stdout::raw(), &verified)
    }

    fn print_text(&self, examined: &ExaminedDocument) -> io::Result<()> {
        let (word, style) = match examined.outcome {
            DocumentOutcome::Verified => ("good", GOOD),
            DocumentOutcome::Rejected => ("bad", BAD),
            DocumentOutcome::Skipped if terminal::is_verbose() => ("skipped", FAINT),
            _ => return Ok(()),
        };
        let mut out = stdout::text();
        let kind = examined.known_kind().map_or("", Kind::noun);
        let hash = examined.core_hash.map(|core| format!("{HASH}{core:.12}{HASH:#} ")).unwrap_or_default();
        writeln!(out, "{style}{word:<7}{style:#} {kind:<11} {hash}{}", escaped(&examined.path))?;
        let can_be_signed =
            terminal::is_verbose() && examined.known_kind().is_some_and(|kind| kind.info().can_be_signed);
        if examined.outcome == DocumentOutcome::Verified && (can_be_signed || examined.signature.is_some()) {
            writeln!(out, "  {}", matches::document_signature_text(examined))?;
        }
        report::write(&mut out, &examined.violations, examined.violations_omitted, self.most())
    }
}

/// The artifacts to check.
struct VaultVerification<'o> {
    vault: Vault,
    options: &'o ExamineOptions,
    /// The artifacts, each with the capture that was named, if any.
    located: Vec<(LocatedCapture, Option<CaptureHash>)>,
}

impl<'o> VaultVerification<'o> {
    /// Looks up the artifacts in the arguments; `None` if there are none.
    fn locate(
        named: &[(&str, ArtifactArg)],
        options: &'o ExamineOptions,
        vault: &VaultArgs,
    ) -> Result<Option<Self>, CommandError> {
        let Some((first, _)) = named.first() else { return Ok(None) };
        // If something is not found, nothing was verified, so this is never the negative result.
        let no_file = |text: &str, error: String| {
            CommandError::CouldNotRun(format!("there is no file {text}; {error}"))
        };
        let vault = vault.open().map_err(|error| no_file(first, error.to_string()))?;
        let mut located = Vec::new();
        for (text, named) in named {
            let found = named.locate(&vault).map_err(|error| no_file(text, error.to_string()))?;
            if let Some(kind) = options.kind.filter(|kind| kind.name() != found.artifact.kind) {
                let (found, kind) = (formats::noun(&found.artifact.kind), formats::noun(kind.name()));
                return Err(CommandError::No(format!("{text} is {found}, not {kind}")));
            }
            let only = named.is_capture(&found).then_some(found.capture.capture);
            located.push((found, only));
        }
        Ok(Some(Self { vault, options, located }))
    }

    /// Checks the artifacts, prints the results, and counts them.
    fn verify(&self, printer: &mut VerifyPrinter, summary: &mut Summary) -> Result<(), CommandError> {
        for (LocatedCapture { artifact, .. }, only) in &self.located {
            // One artifact is one page.
            let request = VerifyRequest {
                artifacts: vec![artifact.core],
                capture: *only,
                require_signature: self.options.admit.signature_policy == SignaturePolicy::Require,
                keys: self.options.admit.signing_keys.clone(),
                ..VerifyRequest::default()
            };
            for verified in self.vault.run(&request)?.captures {
                *if verified.ok { &mut summary.verified } else { &mut summary.rejected } += 1;
                summary.bytes += verified.size;
                printer.print(verified.size, |printer| print(&verified, printer));
            }
        }
        Ok(())
    }
}

fn print(verified: &VerifiedCapture, printer: &VerifyPrinter) -> io::Result<()> {
    if printer.json {
        return json::line(&mut stdout::raw(), verified);
    }
    let VerifiedCapture { kind, ok, core_hash, capture_hash, .. } = verified;
    let kind = formats::bare_noun(kind);
    let (word, style) = if *ok { ("good", GOOD) } else { ("bad", BAD) };
    let mut out = stdout::text();
    writeln!(
        out,
        "{style}{word:<7}{style:#} {kind:<11} {HASH}{core_hash:.12}{HASH:#} capture {HASH}{capture_hash:.12}{HASH:#}"
    )?;
    writeln!(out, "  {}", result(verified))?;
    let omitted = verified.violations_omitted.unwrap_or(0);
    report::write(&mut out, &verified.violations, omitted, printer.most())
}

/// Describes the result of a verification.
fn result(verified: &VerifiedCapture) -> String {
    match (&verified.damage, verified.computed_core_hash) {
        (Some(damage), _) => format!("the stored bytes are damaged: {}", escaped(damage)),
        (None, None) => "bytes intact, rules broken".to_owned(),
        (None, Some(core)) if core != verified.core_hash => {
            format!("bytes intact, rules satisfied, different core hash: {core}")
        }
        (None, Some(_)) => {
            let signature = matches::signature_text(verified.signature.as_ref());
            format!("bytes intact, rules satisfied, core hash correct, {signature}")
        }
    }
}
