//! Output of findings.

use std::io::{self, Write};

use anstyle::Style;
use runvault::vault::api::FindingSummary;
use runvault::vault::fsck::Finding;
use serde::Serialize;

use crate::cli::output::escape::escaped;
use crate::cli::output::json;
use crate::cli::output::stdout;
use crate::cli::remedies;

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
