//! The journal, read by a check.

use std::ops::RangeInclusive;

use super::expected::{CatalogComparison, ExpectedCatalog, JournaledTable};
use super::finding::{BROKEN_CHAIN, DIFFERENT_ROW, Finding, FindingInfo, Subject, UNKNOWN_ENTRY};
use super::{CatalogCounts, CheckedArtifact, Inspection, JournalInspection, Row};
use crate::digest::Digest;
use crate::storage::Result;
use crate::storage::entry::{Entry, EntryText};
use crate::storage::journal::{JournalCheck, JournalDefect};

/// Maximum number of rows that follow from the journal and are compared at a time: some 400 MB.
const MOST_ROWS: usize = 2_000_000;

/// Maximum number of artifacts that are listed at a time.
pub const MOST_ARTIFACTS: usize = 250_000;

/// An entry of the journal as stored.
#[derive(Clone, Copy, Debug)]
pub struct JournalRow<'r> {
    /// Its number.
    pub seq: i64,
    /// The text; `None` if it is not UTF-8.
    pub text: Option<&'r str>,
    /// Its chain value.
    pub chain: Digest,
    /// The time in milliseconds since 1970 that is stored beside the text.
    pub at: Option<i64>,
    /// The action that is stored beside the text, if the engine stores it there.
    pub action: Option<&'r str>,
}

/// The entries of the journal that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySelection {
    /// All.
    All,
    /// Those that name a digest.
    Naming(Digest),
    /// Those that do not add artifacts with core hashes outside of a range.
    About(RangeInclusive<Digest>),
}

/// The journal up to an entry: the check of its chain, and the rows of the catalog that follow from it.
pub struct JournalReplay {
    /// What follows from the entries that were read.
    pub catalog: ExpectedCatalog,
    /// The check of the chain.
    pub check: JournalCheck,
    /// The defects in the order of the entries.
    pub findings: Vec<Finding>,
    since: Option<Digest>,
    has_unknown: bool,
}

impl JournalReplay {
    /// Creates the state before the first entry. The chain value `since` is looked for.
    #[must_use]
    pub fn begin(since: Option<Digest>) -> Self {
        Self {
            catalog: ExpectedCatalog::default(),
            check: JournalCheck::begin(since),
            findings: Vec::new(),
            since,
            has_unknown: false,
        }
    }

    /// Reads the next entry.
    pub fn take(&mut self, row: JournalRow<'_>) {
        let JournalRow { seq, text, chain, at, action } = row;
        let last = self.check.head.seq;
        // A number below 1 has no predecessor, so it is out of order in any case.
        let number = u64::try_from(seq).unwrap_or(0);
        let defect = self.check.take(number, text, chain, self.since);
        match defect {
            Some(JournalDefect::Missing(_)) => {
                self.find(seq, BROKEN_CHAIN, format!("it follows entry {last}"));
            }
            Some(JournalDefect::Changed(_)) => {
                self.find(seq, BROKEN_CHAIN, "it or the chain before it was changed");
            }
            None => {}
        }
        let text = text.unwrap_or_default();
        let written = action.and_then(|_| EntryText::action(text).ok());
        if written.is_some_and(|written| action != Some(&written)) {
            self.find(seq, DIFFERENT_ROW, "journal: action differs from the one in its text");
        }
        let entry = EntryText::parse(text);
        match entry {
            Ok(EntryText { change: Entry::Unknown, .. }) if defect.is_none() => {
                let action = EntryText::action(text).unwrap_or_default();
                self.find(seq, UNKNOWN_ENTRY, format!("this program does not know the action {action:?}"));
            }
            Ok(entry) => {
                let written = entry.milliseconds();
                if written != at {
                    self.find(seq, DIFFERENT_ROW, "journal: at differs from the time in its text");
                }
                self.catalog.apply(number, &entry);
            }
            // An entry that breaks the chain is already reported as changed.
            Err(_) if defect.is_some() => {}
            Err(error) => self.find(seq, UNKNOWN_ENTRY, error.to_string()),
        }
    }

    fn find(&mut self, seq: i64, info: FindingInfo, detail: impl Into<String>) {
        self.has_unknown |= info == UNKNOWN_ENTRY;
        self.findings.push(Finding::new(info, Subject::Entry(seq), detail));
    }

    /// Returns whether every entry chains and was recognized, so that the catalog is proven by the journal.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.check.defect.is_none() && !self.has_unknown
    }
}

impl dyn Inspection + '_ {
    /// Reads the whole journal, and looks for the entry whose chain value is `since`. Returns `None` and a finding if it
    /// cannot be read.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn replay(
        &self,
        since: Option<Digest>,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<JournalReplay>> {
        let mut replay = JournalReplay::begin(since);
        let is_read = self.journal(&EntrySelection::All, &mut |row| replay.take(row), findings)?;
        Ok(is_read.then_some(replay))
    }

    /// Returns the first artifacts that `is_wanted` selects, ordered by core hash: all of them, or [`MOST_ARTIFACTS`]. Damage that
    /// prevents reading is added to `findings`.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn artifacts(
        &self,
        is_wanted: &dyn Fn(&CheckedArtifact) -> bool,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CheckedArtifact>> {
        let mut artifacts = Vec::new();
        let shorten = |artifacts: &mut Vec<CheckedArtifact>| {
            artifacts.sort_unstable_by_key(CheckedArtifact::position);
            artifacts.truncate(MOST_ARTIFACTS);
        };
        let mut take = |row| {
            artifacts.extend(checked(row).filter(is_wanted));
            if artifacts.len() >= 2 * MOST_ARTIFACTS {
                shorten(&mut artifacts);
            }
        };
        self.rows(JournaledTable::Artifact, None, &mut take, findings)?;
        shorten(&mut artifacts);
        Ok(artifacts)
    }

    /// Returns the artifacts in ranges of core hashes, ordered by core hash. Damage that prevents reading is added to `findings`.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn artifacts_in(
        &self,
        ranges: &[RangeInclusive<Digest>],
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CheckedArtifact>> {
        let mut artifacts = Vec::new();
        for range in ranges {
            self.artifacts_between(range, &mut |row| artifacts.extend(checked(row)), findings)?;
        }
        artifacts.sort_unstable_by_key(CheckedArtifact::position);
        Ok(artifacts)
    }

    /// Returns the rows that follow from the entries that name `digest` and can be read, whether or not they chain.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn recorded_with(&self, digest: Digest) -> Result<ExpectedCatalog> {
        let mut catalog = ExpectedCatalog::default();
        let mut take = |JournalRow { seq, text, .. }: JournalRow<'_>| catalog.apply_text(seq, text);
        self.journal(&EntrySelection::Naming(digest), &mut take, &mut Vec::new())?;
        Ok(catalog)
    }

    /// Computes the chain of the journal, looks for the entry whose chain value is `since`, and compares the journal with
    /// everything in the catalog that follows from it alone, in both directions. No stored bytes are read.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn compare_journal(&self, since: Option<Digest>) -> Result<JournalInspection> {
        self.compare_journal_in_parts(since, MOST_ROWS)
    }

    /// Like [`Inspection::compare_journal`], with at most `most_rows` rows in memory at a time, and those of one artifact.
    pub(in crate::storage) fn compare_journal_in_parts(
        &self,
        since: Option<Digest>,
        most_rows: usize,
    ) -> Result<JournalInspection> {
        let mut findings = Vec::new();
        let mut replay = JournalReplay::begin(since);
        replay.catalog = ExpectedCatalog::part(0..=u64::MAX, most_rows);
        if !self.journal(&EntrySelection::All, &mut |row| replay.take(row), &mut findings)? {
            let (chain, counts) = (JournalCheck::begin(since), CatalogCounts::default());
            return Ok(JournalInspection { chain, counts, findings });
        }
        let JournalReplay { catalog, check, findings: mut defects, .. } = replay;
        findings.append(&mut defects);
        let mut compared = CatalogComparison::new(catalog);
        self.compare_part(&mut compared, None, &mut findings)?;
        while let Some(part) = compared.expected.next_part() {
            compared.expected = ExpectedCatalog::part(part, most_rows);
            // What cannot be read was found with the first part.
            let mut known = Vec::new();
            let selection = EntrySelection::About(compared.expected.digests());
            let mut take = |row: JournalRow<'_>| compared.expected.apply_text(row.seq, row.text);
            self.journal(&selection, &mut take, &mut known)?;
            // It may be less than what was read.
            let of = compared.expected.digests();
            self.compare_part(&mut compared, Some(&of), &mut known)?;
        }
        let (counts, mut different) = compared.into_findings();
        findings.append(&mut different);
        Ok(JournalInspection { chain: check, counts, findings })
    }

    /// Compares the rows of all tables that belong to the current part.
    fn compare_part(
        &self,
        compared: &mut CatalogComparison,
        of: Option<&RangeInclusive<Digest>>,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        for table in JournaledTable::ALL {
            let unread = self.rows(table, of, &mut |row| compared.take(&row), findings)?;
            compared.finish_table(table, unread);
        }
        Ok(())
    }
}

/// Returns the artifact of a row.
fn checked(row: Row) -> Option<CheckedArtifact> {
    let Row::Artifact { core, entry, kind, .. } = row else { return None };
    let kind = Some(kind).filter(|kind| !kind.is_empty());
    Some(CheckedArtifact { id: entry.cast_signed(), core, kind })
}
