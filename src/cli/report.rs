//! Violations as people read them.

use std::io::{self, Write};

use runvault::verify::{Report, Severity, Violation};

use super::escape::Escaped;
use super::output::{self, BAD, CAUTION};

/// So many violations of one document are listed; the rest is counted. `--json` lists all.
const LISTED: usize = 20;

/// Writes the violations of a report, indented.
pub(crate) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let violations = report.violations();
    for violation in violations.iter().take(LISTED) {
        write_one(out, violation)?;
    }
    let more = violations.len().saturating_sub(LISTED);
    if more > 0 {
        writeln!(out, "  and {more} more; --json lists them")?;
    }
    if report.omitted() > 0 {
        writeln!(out, "  and {} more that were only counted", report.omitted())?;
    }
    Ok(())
}

/// Tells where rules are explained, if any were broken.
pub(crate) fn hint(rejected: u64) {
    if rejected > 0 {
        output::note("\"runvault rules ID\" explains a rule");
    }
}

/// Writes one violation, indented.
pub(crate) fn write_one(out: &mut dyn Write, violation: &Violation) -> io::Result<()> {
    let style = match violation.severity {
        Severity::Error => BAD,
        Severity::Warning => CAUTION,
    };
    let Violation { rule_id, path, message, severity } = violation;
    let (path, message) = (Escaped(path), Escaped(message));
    let place = if violation.path.is_empty() { String::new() } else { format!("{path}: ") };
    writeln!(out, "  {style}{severity}{style:#} {place}{message} (rule {rule_id})")
}
