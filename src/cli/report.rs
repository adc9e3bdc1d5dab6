//! Violations as people read them.

use std::borrow::Cow;
use std::io::{self, Write};

use runvault::verify::{Report, Severity, Violation};

use super::escape::Escaped;
use super::output::{self, BAD, CAUTION};

/// So many violations of one document are listed; the rest is counted. `--json` lists all.
const LISTED: usize = 20;

/// Longer texts are shown without their middle, which could be megabytes; `--json` has them whole.
const SHOWN_CHARACTERS: usize = 1000;

fn shortened(text: &str) -> Cow<'_, str> {
    let half = SHOWN_CHARACTERS / 2;
    let start = text.char_indices().nth(half).map_or(text.len(), |(at, _)| at);
    let end = text.char_indices().nth_back(half).map_or(0, |(at, _)| at);
    match (text.get(..start), text.get(end..)) {
        (Some(head), Some(tail)) if start < end => Cow::Owned(format!("{head}…{tail}")),
        _ => Cow::Borrowed(text),
    }
}

/// Writes the violations of a report, indented.
pub(crate) fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    write_some(out, "  ", report.violations())?;
    match report.omitted() {
        0 => Ok(()),
        omitted => writeln!(out, "  and {omitted} more that were only counted"),
    }
}

/// Writes violations, each on a line after `indent`.
pub(crate) fn write_some(out: &mut dyn Write, indent: &str, violations: &[Violation]) -> io::Result<()> {
    for Violation { rule_id, path, message, severity } in violations.iter().take(LISTED) {
        let style = match severity {
            Severity::Error => BAD,
            Severity::Warning => CAUTION,
        };
        let place = if path.is_empty() { String::new() } else { format!("{}: ", Escaped(&shortened(path))) };
        let message = shortened(message);
        let message = Escaped(&message);
        writeln!(out, "{indent}{style}{severity}{style:#} {place}{message} (rule {rule_id})")?;
    }
    match violations.len().saturating_sub(LISTED) {
        0 => Ok(()),
        more => writeln!(out, "{indent}and {more} more; --json lists them"),
    }
}

/// Tells where rules are explained, if any were broken.
pub(crate) fn hint(rejected: u64) {
    if rejected > 0 {
        output::note("\"runvault rules ID\" explains a rule");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_lose_their_middle() {
        let whole = "é".repeat(SHOWN_CHARACTERS);
        assert_eq!(shortened(&whole), whole);
        let long = format!("/a{}/z", "é".repeat(1 << 20));
        let shown = shortened(&long);
        assert!(shown.starts_with("/aé") && shown.contains("é…é") && shown.ends_with("é/z"));
        assert_eq!(shown.chars().count(), SHOWN_CHARACTERS + 2);
    }
}
