//! Output of violations, findings and fields, and notes on what a command adds or uses.

use std::io::{self, Write};

use anstyle::Style;
use runvault::digest::{CaptureHash, CoreHash};
use runvault::display::{brief, escaped};
use runvault::storage::StorageError;
use runvault::validation::{Severity, Violation};
use runvault::vault::add::{DocumentOutcome, ExaminedDocument};
use runvault::vault::api::FindingSummary;
use runvault::vault::details::CapturesRequest;
use runvault::vault::forks::{ForkSummary, ForkedRun, ForkedTrace, ForksOfRequest};
use runvault::vault::fsck::Finding;
use runvault::{Vault, formats};
use serde::Serialize;

use super::exit::CommandError;
use super::fit::{self, TrailingLayout};
use super::stdout::{self, BAD, CAUTION, FAINT, HASH, counted};
use super::{json, terminal};
use crate::cli::hints;

/// Maximum number of violations listed per document unless `--max-violations` is given; the others are counted.
/// `--json` lists all.
pub(crate) const LISTED: usize = 20;

/// Writes up to `most` of the violations that a report lists, indented, and the number of those `omitted` from it.
pub(crate) fn write(
    out: &mut dyn Write,
    violations: &[Violation],
    omitted: u64,
    most: usize,
) -> io::Result<()> {
    write_some(out, "  ", violations, most)?;
    match omitted {
        0 => Ok(()),
        omitted => writeln!(out, "  and {omitted} more, not listed"),
    }
}

/// Writes up to `most` violations, each on a line after `indent`.
pub(crate) fn write_some(
    out: &mut dyn Write,
    indent: &str,
    violations: &[Violation],
    most: usize,
) -> io::Result<()> {
    for violation in violations.iter().take(most) {
        let Violation { rule_id, path, severity, .. } = violation;
        let style = match severity {
            Severity::Error => BAD,
            Severity::Warning => CAUTION,
        };
        let place = if path.is_empty() { String::new() } else { format!("{}: ", escaped(path)) };
        let message = hints::for_violation(violation);
        let (message, rule_id) = (escaped(&message), escaped(rule_id));
        let lead = format!("{indent}{severity}");
        write!(out, "{indent}{style}{severity}{style:#}")?;
        let trail = TrailingLayout { used: lead.len(), below: lead.len(), least: 0 };
        trail.write(out, &format!("{place}{message} (rule {rule_id})"), Style::new())?;
    }
    match violations.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "{indent}and {more} more; --max-violations N or --json lists them"),
    }
}

/// Prints where rules are explained, if any were violated, and how to store the `refused` documents that were removed
/// before.
pub(crate) fn hint(rejected: u64, refused: u64) {
    if rejected > refused {
        stdout::note("\"runvault rules ID\" explains a rule and what to do");
    }
    if refused > 0 {
        stdout::note("--allow-removed adds removed artifacts again");
    }
}

#[derive(Serialize)]
struct FindingLine {
    #[serde(flatten)]
    finding: FindingSummary,
    remedy: &'static str,
}

/// Prints a finding as a line of text, its type in `style`.
pub(crate) fn print_text(finding: &FindingSummary, style: Style) -> io::Result<()> {
    let FindingSummary { finding, about, subject, detail, .. } = finding;
    let subject = format!("{about} {subject}");
    let mut out = stdout::text();
    writeln!(out, "{style}{finding}{style:#} {}: {}", escaped(&subject), escaped(detail))?;
    out.flush()
}

/// Prints a finding as a line of JSON.
pub(crate) fn print_json(finding: &Finding) -> io::Result<()> {
    let mut out = stdout::raw();
    let line = FindingLine { finding: finding.into(), remedy: hints::for_finding(finding.info.id) };
    json::line(&mut out, &line)?;
    out.flush()
}

/// Maximum number of forks reported.
const LISTED_FORKS: u64 = 10;

/// Maximum number of pairs of artifacts compared: enough for the runs of a day, at a small cost.
const COMPARED: u64 = 10_000;

/// The runs that were added.
#[derive(Default)]
pub(crate) struct ForkNotes {
    added: Vec<CoreHash>,
}

impl ForkNotes {
    /// Records a document if it is a new run.
    pub(crate) fn see(&mut self, examined: &ExaminedDocument) {
        if let (DocumentOutcome::Added, Some(kind), Some(core)) =
            (examined.outcome, examined.known_kind(), examined.core_hash)
            && kind.info().is_run
        {
            self.added.push(core);
        }
    }

    /// Reports which of them fork from another artifact.
    pub(crate) fn report(&self, vault: &Vault) -> Result<(), CommandError> {
        // If nothing was stored, the vault may not exist.
        if self.added.is_empty() {
            return Ok(());
        }
        let (limit, comparisons) = (Some(LISTED_FORKS), Some(COMPARED));
        let answer = vault.run(&ForksOfRequest { artifacts: self.added.clone(), limit, comparisons })?;
        for fork in &answer.forks {
            stdout::note(&fork_text(fork));
        }
        if answer.is_more {
            stdout::note("there are more forks; \"runvault forks\" lists them");
        } else if !answer.is_complete {
            stdout::note("not every run was checked for forks; \"runvault forks\" checks all");
        }
        Ok(())
    }
}

fn fork_text(fork: &ForkSummary) -> String {
    let side = |kind: &str, core: CoreHash| format!("{} {HASH}{core:.12}{HASH:#}", formats::bare_noun(kind));
    let ([one, other], shared, place) = match fork {
        ForkSummary::Traces { header, record, traces } => (
            traces.each_ref().map(|ForkedTrace { kind, core_hash, .. }| side(kind, *core_hash)),
            format!("same header {header:.12}"),
            format!("record {record}"),
        ),
        ForkSummary::Inputs { inputs, record, traces } => (
            traces.each_ref().map(|ForkedTrace { kind, core_hash, .. }| side(kind, *core_hash)),
            format!("equal inputs {inputs:.12}"),
            format!("record {record}"),
        ),
        ForkSummary::Runs { run_id, step, runs } => (
            runs.each_ref().map(|ForkedRun { kind, core_hash, .. }| side(kind, *core_hash)),
            format!("same run id {}", brief(run_id)),
            format!("step {step}"),
        ),
    };
    format!("{one} forks {other}: {shared}, first difference at {place}")
}

/// Reports which capture is used if the artifact has several: they may differ in what the core hash does not cover.
pub(crate) fn say_which(vault: &Vault, core: CoreHash, hash: CaptureHash) -> Result<(), StorageError> {
    let count = vault.run(&CapturesRequest { limit: Some(0), ..CapturesRequest::new(core) })?.count;
    if count > 1 {
        let count = counted(count, "capture");
        stdout::note(&format!(
            "{core:.12} has {count}; this is {HASH}{hash:.12}{HASH:#}, \"runvault diff --all {core:.12}\" shows how they differ"
        ));
    }
    Ok(())
}

/// Names and escaped texts, one below the other.
pub(crate) struct Fields {
    fields: Vec<(String, String, Style)>,
    least: usize,
}

impl Fields {
    /// Creates an empty list whose name column is at least this wide.
    pub(crate) fn new(least: usize) -> Self {
        Self { fields: Vec::new(), least }
    }

    /// Adds a field. Further texts of the same name are added with empty names.
    pub(crate) fn push(&mut self, name: impl Into<String>, text: impl Into<String>, style: Style) {
        self.fields.push((name.into(), text.into(), style));
    }

    /// Returns the column at which texts start.
    pub(crate) fn indent(&self) -> usize {
        INDENT + self.name_width() + 1
    }

    /// Returns the width of the name column.
    fn name_width(&self) -> usize {
        self.fields.iter().map(|(name, ..)| fit::width(name)).max().unwrap_or(0).max(self.least)
    }

    /// Returns the width available for texts; `None` if unlimited.
    pub(crate) fn room(&self) -> Option<usize> {
        terminal::width().map(|width| width.saturating_sub(self.indent()))
    }

    /// Writes the fields, each on as many lines as necessary.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, text, style) in &self.fields {
            let lines = self.room().map_or_else(|| vec![text.into()], |room| fit::fold(text, room));
            for (index, line) in lines.iter().enumerate() {
                self.lead(out, if index == 0 { name } else { "" })?;
                writeln!(out, "{style}{line}{style:#}")?;
            }
        }
        Ok(())
    }

    /// Writes the start of a line: a name, and the space before its text.
    pub(crate) fn lead(&self, out: &mut dyn Write, name: &str) -> io::Result<()> {
        let pad = self.name_width() - fit::width(name);
        write!(out, "{:INDENT$}{FAINT}{name}{FAINT:#}{:pad$} ", "", "")
    }
}

const INDENT: usize = 2;
