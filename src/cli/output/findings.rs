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
struct FindingLine<'f> {
    finding: &'f str,
    about: &'f str,
    subject: String,
    detail: &'f str,
    meaning: &'f str,
    remedy: &'f str,
}

/// Prints a finding as a line of text, its type in `style`.
pub(crate) fn print_text(finding: &FindingSummary, style: Style) -> io::Result<()> {
    let FindingSummary { finding, about, subject, detail } = finding;
    let subject = format!("{about} {subject}");
    let mut out = stdout::text();
    writeln!(out, "{style}{finding}{style:#} {}: {}", escaped(&subject), escaped(detail))?;
    out.flush()
}

/// Prints a finding as a line of JSON.
pub(crate) fn print_json(finding: &Finding) -> io::Result<()> {
    let Finding { info, subject, detail } = finding;
    let mut out = stdout::raw();
    let line = FindingLine {
        finding: info.id,
        about: subject.type_name(),
        subject: subject.name(),
        detail,
        meaning: info.meaning,
        remedy: remedies::for_finding(info.id),
    };
    json::line(&mut out, &line)?;
    out.flush()
}
