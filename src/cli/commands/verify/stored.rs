//! Artifacts in the vault as arguments of `runvault verify`.

use std::io::{self, Write};

use runvault::digest::{CaptureHash, CoreHash};
use runvault::formats;
use runvault::intake::ExamineOptions;
use runvault::validation::Violation;
use runvault::vault::add::Summary;
use runvault::{CheckedCapture, Located, Vault};
use serde::Serialize;

use super::Printer;
use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::Failure;
use crate::cli::output::json::{self, SignatureMembers};
use crate::cli::output::report;
use crate::cli::output::signature;
use crate::cli::output::stdout::{self, BAD, GOOD, HASH};

/// The artifacts to check.
pub(super) struct Stored<'o> {
    vault: Vault,
    options: &'o ExamineOptions,
    /// The artifacts, each with the capture that was named, if any.
    located: Vec<(Located, Option<CaptureHash>)>,
}

impl<'o> Stored<'o> {
    /// Looks up the artifacts in the arguments; `None` if there are none.
    pub(super) fn locate(
        named: &[(&str, Named)],
        options: &'o ExamineOptions,
        vault: &VaultArgs,
    ) -> Result<Option<Self>, Failure> {
        let Some((first, _)) = named.first() else { return Ok(None) };
        // If something is not found, nothing was verified, so this is never the negative result.
        let no_file =
            |text: &str, error: String| Failure::CouldNotRun(format!("there is no file {text}; {error}"));
        let vault = vault.open().map_err(|error| no_file(first, error.to_string()))?;
        let mut located = Vec::new();
        for (text, named) in named {
            let found = named.locate(&vault).map_err(|error| no_file(text, error.to_string()))?;
            if let Some(kind) = options.kind.filter(|kind| kind.name() != found.artifact.kind) {
                let (found, kind) = (formats::noun(&found.artifact.kind), formats::noun(kind.name()));
                return Err(Failure::No(format!("{text} is {found}, not {kind}")));
            }
            let only = named.is_capture(&found).then_some(found.capture.capture);
            located.push((found, only));
        }
        Ok(Some(Self { vault, options, located }))
    }

    /// Checks the artifacts, prints the results, and counts them.
    pub(super) fn verify(&self, printer: &mut Printer<'_>, summary: &mut Summary) -> Result<(), Failure> {
        for (Located { artifact, .. }, only) in &self.located {
            for checked in self.vault.verify(artifact, *only, &self.options.admit)? {
                let line = Line::new(&artifact.kind, artifact.core, &checked);
                *if line.ok { &mut summary.verified } else { &mut summary.rejected } += 1;
                summary.bytes += checked.capture.size;
                printer.print(checked.capture.size, |printer| line.print(&checked, printer));
            }
        }
        Ok(())
    }
}

/// The output line of a capture.
#[derive(Serialize)]
struct Line<'c> {
    kind: &'c str,
    ok: bool,
    core_hash: CoreHash,
    capture_hash: CaptureHash,
    /// The damage of the stored bytes; `None` if they are intact.
    damage: Option<&'c str>,
    /// The core hash of the bytes; `None` if they are damaged or violate a rule.
    computed_core_hash: Option<CoreHash>,
    #[serde(flatten)]
    signature: Option<SignatureMembers<'c>>,
    violations: Vec<Violation>,
}

impl<'c> Line<'c> {
    fn new(kind: &'c str, core_hash: CoreHash, checked: &'c CheckedCapture) -> Self {
        Self {
            kind,
            // Without a core hash, the capture is damaged or breaks a rule.
            ok: checked.core == Some(core_hash),
            core_hash,
            capture_hash: checked.capture.capture,
            damage: checked.damage.as_deref(),
            computed_core_hash: checked.core,
            signature: checked.signature.as_ref().map(SignatureMembers::new),
            violations: hints::for_violations(checked.report.violations()),
        }
    }

    fn print(&self, checked: &CheckedCapture, printer: &Printer<'_>) -> io::Result<()> {
        if printer.args.json {
            return json::line(&mut stdout::raw(), self);
        }
        let (word, style) = if self.ok { ("good", GOOD) } else { ("bad", BAD) };
        let Self { kind, core_hash, capture_hash, .. } = self;
        let said = match (self.damage, self.computed_core_hash) {
            (Some(damage), _) => format!("the stored bytes are damaged: {}", escaped(damage)),
            (None, None) => "bytes intact, rules broken".to_owned(),
            (None, Some(core)) if core != *core_hash => {
                format!("bytes intact, rules satisfied, different core hash: {core}")
            }
            (None, Some(_)) => {
                let signature = signature::text(checked.signature.as_ref());
                format!("bytes intact, rules satisfied, core hash correct, {signature}")
            }
        };
        let mut out = stdout::text();
        writeln!(
            out,
            "{style}{word:<7}{style:#} {kind:<8} {HASH}{core_hash:.12}{HASH:#} capture {HASH}{capture_hash:.12}{HASH:#}"
        )?;
        writeln!(out, "  {said}")?;
        report::write(&mut out, &checked.report, printer.most())
    }
}
