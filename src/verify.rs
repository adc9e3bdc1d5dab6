//! What a rule is, and what verification finds.
//!
//! Findings are data: an `Err` elsewhere means that something could not be looked at, never that a rule was broken.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a broken rule keeps an artifact out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The artifact is refused.
    Error,
    /// The artifact is stored, and the violation with it.
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

/// A rule as people read about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleInfo {
    /// The id, such as `MI7`.
    pub id: &'static str,
    /// What breaking it means for the artifact.
    pub severity: Severity,
    /// One line: what must hold.
    pub summary: &'static str,
    /// A paragraph: why it must hold, and what to do.
    pub why: &'static str,
}

/// A row of a kind's rule table: the rule and the check that enforces it.
pub struct Rule<Check> {
    /// What people read.
    pub info: RuleInfo,
    /// What the program does.
    pub check: Check,
}

/// Applies every rule of `rules`; `run` calls its check on the subject.
pub fn apply<Check>(
    rules: &[Rule<Check>],
    findings: &mut Findings,
    mut run: impl FnMut(&Check, &mut Finder<'_>),
) {
    for rule in rules {
        run(&rule.check, &mut findings.of(rule.info));
    }
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The id of the rule.
    pub rule_id: Cow<'static, str>,
    /// Where in the document, as the format's own tools write places.
    pub path: String,
    /// What is wrong there.
    pub message: String,
    /// Whether it keeps the artifact out.
    pub severity: Severity,
}

impl Violation {
    /// A violation of `rule` at `path`.
    pub fn new(rule: RuleInfo, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule_id: rule.id.into(), path: path.into(), message: message.into(), severity: rule.severity }
    }

    /// The order of reports: rule id, path, message, each by UTF-16 code units, as the specifications' tools sort.
    fn report_order(&self, other: &Self) -> Ordering {
        utf16_order(&self.rule_id, &other.rule_id)
            .then_with(|| utf16_order(&self.path, &other.path))
            .then_with(|| utf16_order(&self.message, &other.message))
    }
}

/// The order of ECMAScript's strings.
pub(crate) fn utf16_order(one: &str, other: &str) -> Ordering {
    one.encode_utf16().cmp(other.encode_utf16())
}

/// All violations of one artifact, sorted by rule id, path and message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    violations: Vec<Violation>,
    errors: usize,
    warnings: usize,
    /// Of paths and messages that are listed.
    bytes: usize,
}

impl Report {
    /// Reports list at most this many errors and count the rest: a hostile document must not fill the memory with
    /// complaints about it.
    pub const MAX_ERRORS: usize = 100_000;

    /// The same for warnings, of which there are fewer because they are stored with the artifact.
    pub const MAX_WARNINGS: usize = 1_000;

    /// No more violations are listed when the paths and messages of those before have more bytes than this.
    pub const MAX_BYTES: usize = 2 << 20;

    /// The bytes of the paths and messages that are listed.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The violations, sorted.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// How many more there are than are listed.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.errors + self.warnings - self.violations.len()
    }

    /// Whether no violation is an error, listed or not.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.errors == 0
    }

    /// The report of what comes after the first `lines` lines of a document, with places that are counted from there.
    /// Violations before that are left out.
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

    /// Counts a violation of `severity`; whether it may still be listed.
    fn count(&mut self, severity: Severity) -> bool {
        let (count, limit) = match severity {
            Severity::Error => (&mut self.errors, Self::MAX_ERRORS),
            Severity::Warning => (&mut self.warnings, Self::MAX_WARNINGS),
        };
        *count += 1;
        // The first error is always listed: whoever reads a report must see why.
        *count <= limit && self.bytes <= Self::MAX_BYTES || severity == Severity::Error && *count == 1
    }

    fn list(&mut self, violation: Violation) {
        self.bytes += violation.path.len() + violation.message.len();
        self.violations.push(violation);
    }
}

impl From<Violation> for Report {
    fn from(violation: Violation) -> Self {
        let mut report = Self::default();
        report.count(violation.severity);
        report.list(violation);
        report
    }
}

/// A path counted from the line after the first `lines` ones; nothing if it is before that. Paths without a line stay.
fn place_after(path: &str, lines: usize) -> Option<String> {
    let Some(rest) = path.strip_prefix("line ") else { return Some(path.to_owned()) };
    let digits = rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let (number, rest) = rest.split_at_checked(digits)?;
    let number: usize = number.parse().ok()?;
    number.checked_sub(lines).filter(|number| *number > 0).map(|number| format!("line {number}{rest}"))
}

/// Collects violations while rules are applied.
#[derive(Debug, Default)]
pub struct Findings(Report);

impl Findings {
    /// What `rule` finds goes here.
    pub fn of(&mut self, rule: RuleInfo) -> Finder<'_> {
        Finder { report: &mut self.0, rule }
    }

    /// Whether an error was found so far.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        !self.0.is_acceptable()
    }

    /// Whether so many errors were found that nothing more will be listed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.errors >= Report::MAX_ERRORS || self.0.omitted() > 0 && self.has_errors()
    }

    /// The sorted report of all that was found.
    #[must_use]
    pub fn into_report(mut self) -> Report {
        self.0.violations.sort_by(Violation::report_order);
        self.0
    }
}

/// Where one rule reports what it finds.
pub struct Finder<'f> {
    report: &'f mut Report,
    rule: RuleInfo,
}

impl Finder<'_> {
    /// Reports a violation of the rule.
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.find(self.rule, path, message);
    }

    /// Reports a violation that does not keep the artifact out, whatever the rule's severity.
    pub fn warn(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.find(RuleInfo { severity: Severity::Warning, ..self.rule }, path, message);
    }

    fn find(&mut self, rule: RuleInfo, path: impl Into<String>, message: impl Into<String>) {
        if self.report.count(rule.severity) {
            self.report.list(Violation::new(rule, path, message));
        }
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
            findings.of(RuleInfo { id: rule, ..RULE }).add(path, "");
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
            (0..errors).for_each(|_| findings.of(RULE).add("", ""));
            assert!(findings.is_full());
            let report = findings.into_report();
            assert_eq!((report.violations().len(), report.omitted()), (Report::MAX_ERRORS, omitted));
        }
        let text = "x".repeat(Report::MAX_BYTES);
        for (path, listed) in [("", 2), ("x", 1)] {
            let mut findings = Findings::default();
            findings.of(RULE).add(path, text.as_str());
            findings.of(RULE).add("", "after it");
            assert_eq!(findings.into_report().violations().len(), listed);
        }
    }

    #[test]
    fn surplus_violations_are_counted_and_errors_never_overlooked() {
        let mut findings = Findings::default();
        for _ in 0..Report::MAX_WARNINGS + 3 {
            findings.of(RULE).warn("", "");
        }
        assert!(!findings.has_errors());
        findings.of(RULE).add("", "");
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
            findings.of(RULE).add(path, "");
        }
        let report = findings.into_report().after_lines(2);
        let paths: Vec<&str> = report.violations().iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["", "line 1 /a", "line 10 column 4", "line 8"]);
        assert_eq!(report.omitted(), 0);
        assert!(!report.is_acceptable());
    }
}
