//! Output of violations.

use std::io::{self, Write};

use anstyle::Style;
use runvault::display::escaped;
use runvault::validation::{Report, Severity, Violation};
use runvault::vault::api::FindingSummary;
use runvault::vault::fsck::Finding;
use serde::Serialize;

use super::fit::TrailingLayout;
use super::json;
use super::stdout::{self, BAD, CAUTION};
use crate::cli::{hints, remedies};

/// Maximum number of violations listed per document unless `--max-violations` is given; the others are counted.
/// `--json` lists all.
pub(crate) const LISTED: usize = 20;

/// Writes up to `most` violations of a report, indented.
pub(crate) fn write(out: &mut dyn Write, report: &Report, most: usize) -> io::Result<()> {
    write_listed(out, report.violations(), report.omitted() as u64, most)
}

/// Writes up to `most` of the violations that a report lists, indented, and the number of those `omitted` from it.
pub(crate) fn write_listed(
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
    let line = FindingLine { finding: finding.into(), remedy: remedies::for_finding(finding.info.id) };
    json::line(&mut out, &line)?;
    out.flush()
}
