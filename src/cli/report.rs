//! Violations as people read them.

use std::io::{self, Write};

use anstyle::Style;
use runvault::verify::{Report, Severity, Violation};

use super::escape::escaped;
use super::fit::Trail;
use super::output::{self, BAD, CAUTION};

/// So many violations of one document are listed unless `--max-violations` says otherwise; the rest is counted. `--json`
/// lists all.
pub(crate) const LISTED: usize = 20;

/// Writes the violations of a report, `most` of them, indented.
pub(crate) fn write(out: &mut dyn Write, report: &Report, most: usize) -> io::Result<()> {
    write_some(out, "  ", report.violations(), most)?;
    match report.omitted() {
        0 => Ok(()),
        omitted => writeln!(out, "  and {omitted} more that were only counted"),
    }
}

/// Writes violations, `most` of them, each on a line after `indent`.
pub(crate) fn write_some(
    out: &mut dyn Write,
    indent: &str,
    violations: &[Violation],
    most: usize,
) -> io::Result<()> {
    for Violation { rule_id, path, message, severity } in violations.iter().take(most) {
        let style = match severity {
            Severity::Error => BAD,
            Severity::Warning => CAUTION,
        };
        let place = if path.is_empty() { String::new() } else { format!("{}: ", escaped(path)) };
        let (message, rule_id) = (escaped(message), escaped(rule_id));
        let lead = format!("{indent}{severity}");
        write!(out, "{indent}{style}{severity}{style:#}")?;
        let trail = Trail { taken: lead.len(), below: lead.len(), least: 0 };
        trail.write(out, &format!("{place}{message} (rule {rule_id})"), Style::new())?;
    }
    match violations.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "{indent}and {more} more; --max-violations N or --json lists them"),
    }
}

/// Tells where rules are explained, if any were broken, and how to store what was `refused` because it was removed before.
pub(crate) fn hint(rejected: u64, refused: u64) {
    if rejected > refused {
        output::note("\"runvault rules ID\" explains a rule and what to do");
    }
    if refused > 0 {
        output::note("--allow-removed takes back what was removed");
    }
}
