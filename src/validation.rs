//! Rules and the findings of verification.
//!
//! Findings are data: an `Err` elsewhere means that a check could not run, never that a rule was broken.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::reader::Limit;

/// The severity of a rule: whether breaking it rejects the artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The artifact is rejected.
    Error,
    /// The artifact is stored with the violation.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// The documentation of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleInfo {
    /// The id, such as `MI7`.
    pub id: &'static str,
    /// The consequence of breaking it.
    pub severity: Severity,
    /// One line: the requirement.
    pub summary: &'static str,
    /// A paragraph: the reason, and how to fix a violation.
    pub why: &'static str,
}

impl RuleInfo {
    /// Creates the documentation of a rule that an artifact must not break.
    #[must_use]
    pub const fn error(id: &'static str, summary: &'static str, why: &'static str) -> Self {
        Self { id, severity: Severity::Error, summary, why }
    }

    /// Creates the documentation of a rule that an artifact may break.
    #[must_use]
    pub const fn warning(id: &'static str, summary: &'static str, why: &'static str) -> Self {
        Self { id, severity: Severity::Warning, summary, why }
    }
}

/// A row of a kind's rule table: the rule and the check that enforces it.
pub struct Rule<Check> {
    /// The documentation.
    pub info: RuleInfo,
    /// The implementation.
    pub check: Check,
}

/// Applies every one of `rules`; `run` calls its check on the subject.
pub fn apply<Check>(
    rules: &[Rule<Check>],
    findings: &mut Findings,
    mut run: impl FnMut(&Check, &mut Finder<'_>),
) {
    for rule in rules {
        run(&rule.check, &mut findings.for_rule(rule.info));
    }
}

/// A broken rule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// The id of the rule.
    #[schema(value_type = String)]
    pub rule_id: Cow<'static, str>,
    /// The location in the document, in the notation of the format's own tools.
    pub path: String,
    /// The description.
    pub message: String,
    /// Whether it rejects the artifact.
    pub severity: Severity,
    /// What would admit the document. It is not part of the finding, so it is neither stored, sent nor compared.
    #[serde(skip)]
    pub remedy: Option<Remedy>,
}

/// What a caller can do so that a document is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Raise a limit.
    Raise(Limit),
    /// Require a kind.
    RequireKind,
}

impl PartialEq for Violation {
    fn eq(&self, other: &Self) -> bool {
        (self.severity, self.report_order(other)) == (other.severity, Ordering::Equal)
    }
}

impl Eq for Violation {}

impl Violation {
    /// Creates a violation of `rule` at `path`.
    pub fn new(rule: RuleInfo, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            rule_id: rule.id.into(),
            path: path.into(),
            message: message.into(),
            severity: rule.severity,
            remedy: None,
        }
    }

    /// Returns the violation with what would admit the document.
    #[must_use]
    pub fn with_remedy(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    /// Compares violations in the order of reports: rule id, path, message, each by UTF-16 code units, like the
    /// specifications' tools.
    fn report_order(&self, other: &Self) -> Ordering {
        utf16_order(&self.rule_id, &other.rule_id)
            .then_with(|| utf16_order(&self.path, &other.path))
            .then_with(|| utf16_order(&self.message, &other.message))
    }
}

/// Formats the violation on one line, such as `/a: must be a number (rule R1)`.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (rule {})", self.path, self.message, self.rule_id)
    }
}

/// Compares strings like ECMAScript.
pub(crate) fn utf16_order(one: &str, other: &str) -> Ordering {
    one.encode_utf16().cmp(other.encode_utf16())
}

/// All violations of one artifact, sorted by rule id, path and message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    violations: Vec<Violation>,
    errors: usize,
    warnings: usize,
    /// The total size of the listed paths and messages.
    bytes: usize,
}

impl Report {
    /// Maximum number of errors listed; further ones are only counted, so that a malicious document cannot exhaust
    /// memory.
    pub const MAX_ERRORS: usize = 100_000;

    /// Maximum number of warnings listed. It is lower because they are stored with the artifact.
    pub const MAX_WARNINGS: usize = 1_000;

    /// No more violations are listed once the paths and messages of the previous ones exceed this size in bytes.
    pub const MAX_BYTES: usize = 2 << 20;

    /// Returns the total size of the listed paths and messages in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the listed violations, sorted.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Describes the first violation; empty if there is none.
    #[must_use]
    pub fn first(&self) -> String {
        self.violations.first().map(ToString::to_string).unwrap_or_default()
    }

    /// Returns the number of violations that are not listed.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.errors + self.warnings - self.violations.len()
    }

    /// Returns whether no violation is an error, listed or not.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.errors == 0
    }

    /// Returns the report for the part of a document after its first `lines` lines, with locations relative to that
    /// part. Earlier violations are omitted.
    #[must_use]
    pub fn after_lines(self, lines: usize) -> Self {
        let mut after = Self { errors: self.errors, warnings: self.warnings, ..Self::default() };
        for mut violation in self.violations {
            match place_after(&violation.path, lines) {
                Some(path) => {
                    violation.path = path;
                    after.list(violation);
                }
                None => match violation.severity {
                    Severity::Error => after.errors -= 1,
                    Severity::Warning => after.warnings -= 1,
                },
            }
        }
        after.violations.sort_by(Violation::report_order);
        after
    }

    /// Counts a violation of `severity`, and returns whether it may still be listed.
    fn count(&mut self, severity: Severity) -> bool {
        let (count, limit) = match severity {
            Severity::Error => (&mut self.errors, Self::MAX_ERRORS),
            Severity::Warning => (&mut self.warnings, Self::MAX_WARNINGS),
        };
        *count += 1;
        // The first error is always listed, so that a report always shows a reason.
        *count <= limit && self.bytes <= Self::MAX_BYTES || severity == Severity::Error && *count == 1
    }

    fn add(&mut self, violation: Violation) {
        if self.count(violation.severity) {
            self.list(violation);
        }
    }

    fn list(&mut self, violation: Violation) {
        self.bytes += violation.path.len() + violation.message.len();
        self.violations.push(violation);
    }
}

impl From<Violation> for Report {
    fn from(violation: Violation) -> Self {
        let mut report = Self::default();
        report.add(violation);
        report
    }
}

/// Returns a path relative to the line after the first `lines` ones, or `None` if it is before that. Paths without a
/// line are unchanged.
fn place_after(path: &str, lines: usize) -> Option<String> {
    let Some(rest) = path.strip_prefix("line ") else { return Some(path.to_owned()) };
    let digits = rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let (number, rest) = rest.split_at_checked(digits)?;
    let number: usize = number.parse().ok()?;
    number.checked_sub(lines).filter(|number| *number > 0).map(|number| format!("line {number}{rest}"))
}

/// The violations collected while rules are applied.
#[derive(Debug, Default)]
pub struct Findings(Report);

impl Findings {
    /// Reports a violation.
    pub fn add(&mut self, violation: Violation) {
        self.0.add(violation);
    }

    /// Returns a collector of violations of `rule`.
    pub fn for_rule(&mut self, rule: RuleInfo) -> Finder<'_> {
        Finder { report: &mut self.0, rule }
    }

    /// Returns whether an error has been found.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        !self.0.is_acceptable()
    }

    /// Returns whether the report is full, so that nothing more will be listed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.errors >= Report::MAX_ERRORS || self.0.omitted() > 0 && self.has_errors()
    }

    /// Returns the sorted report of all violations.
    #[must_use]
    pub fn into_report(mut self) -> Report {
        self.0.violations.sort_by(Violation::report_order);
        self.0
    }
}

/// A collector of the violations of one rule.
pub struct Finder<'f> {
    report: &'f mut Report,
    rule: RuleInfo,
}

impl Finder<'_> {
    /// Reports a violation of the rule.
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.find(self.rule, path, message);
    }

    /// Reports a violation as a warning, whatever the rule's severity.
    pub fn warn(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.find(RuleInfo { severity: Severity::Warning, ..self.rule }, path, message);
    }

    fn find(&mut self, rule: RuleInfo, path: impl Into<String>, message: impl Into<String>) {
        self.report.add(Violation::new(rule, path, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: RuleInfo = RuleInfo { id: "R1", severity: Severity::Error, summary: "", why: "" };

    #[test]
    fn reports_are_sorted_as_utf16_text() {
        let mut findings = Findings::default();
        for (rule, path) in [("R2", "a"), ("R10", "\u{e000}"), ("R10", "😀"), ("R10", "[2]"), ("R10", "[10]")]
        {
            findings.for_rule(RuleInfo { id: rule, ..RULE }).add(path, "");
        }
        let report = findings.into_report();
        let paths: Vec<&str> = report.violations().iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["[10]", "[2]", "😀", "\u{e000}", "a"]);
        assert!(!report.is_acceptable());
    }

    #[test]
    fn the_limits_of_reports_can_be_reached_and_not_exceeded() {
        for (errors, omitted) in [(Report::MAX_ERRORS, 0), (Report::MAX_ERRORS + 1, 1)] {
            let mut findings = Findings::default();
            (0..errors).for_each(|_| findings.for_rule(RULE).add("", ""));
            assert!(findings.is_full());
            let report = findings.into_report();
            assert_eq!((report.violations().len(), report.omitted()), (Report::MAX_ERRORS, omitted));
        }
        let text = "x".repeat(Report::MAX_BYTES);
        for (path, listed) in [("", 2), ("x", 1)] {
            let mut findings = Findings::default();
            findings.for_rule(RULE).add(path, text.as_str());
            findings.for_rule(RULE).add("", "after it");
            assert_eq!(findings.into_report().violations().len(), listed);
        }
    }

    #[test]
    fn surplus_violations_are_counted_and_errors_never_overlooked() {
        let mut findings = Findings::default();
        for _ in 0..Report::MAX_WARNINGS + 3 {
            findings.for_rule(RULE).warn("", "");
        }
        assert!(!findings.has_errors());
        findings.for_rule(RULE).add("", "");
        assert!(findings.has_errors());
        let report = findings.into_report();
        assert_eq!((report.violations().len(), report.omitted()), (Report::MAX_WARNINGS + 1, 3));
        assert!(!report.is_acceptable());
        assert!(report.violations().iter().any(|violation| violation.severity == Severity::Error));
    }

    #[test]
    fn places_are_counted_from_a_later_line() {
        let mut findings = Findings::default();
        for path in ["line 3 /a", "line 12 column 4", "line 2", "", "line 10"] {
            findings.for_rule(RULE).add(path, "");
        }
        let report = findings.into_report().after_lines(2);
        let paths: Vec<&str> = report.violations().iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["", "line 1 /a", "line 10 column 4", "line 8"]);
        assert_eq!(report.omitted(), 0);
        assert!(!report.is_acceptable());
    }
}
