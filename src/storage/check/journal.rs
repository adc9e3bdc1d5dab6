//! The journal, read by a check.

use std::ops::RangeInclusive;

use super::expected::{CatalogComparison, ExpectedCatalog, JournaledTable};
use super::finding::{BROKEN_CHAIN, DIFFERENT_ROW, Finding, FindingInfo, Subject, UNKNOWN_ENTRY};
use super::{CatalogCounts, CheckedArtifact, Inspection, JournalInspection, Row};
use crate::digest::Digest;
use crate::storage::Result;
use crate::storage::entry::{Entry, EntryText};
use crate::storage::journal::{JournalCheck, JournalDefect};

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
        let JournalRow { seq, text, chain, at } = row;
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
        let is_read = self.journal(&mut |row| replay.take(row), findings)?;
        Ok(is_read.then_some(replay))
    }

    /// Returns all artifacts, or those of one kind, ordered by core hash. Damage that prevents reading is added to `findings`.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn artifacts(&self, of: Option<&str>, findings: &mut Vec<Finding>) -> Result<Vec<CheckedArtifact>> {
        let mut artifacts = Vec::new();
        let mut take = |row| artifacts.extend(checked(row, of));
        self.rows(JournaledTable::Artifact, &mut take, findings)?;
        artifacts.sort_unstable_by_key(|artifact| (artifact.core, artifact.id));
        Ok(artifacts)
    }

    /// Returns the artifacts, or those of one kind, in ranges of core hashes, ordered by core hash. Damage that prevents reading
    /// is added to `findings`.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn artifacts_in(
        &self,
        ranges: &[RangeInclusive<Digest>],
        of: Option<&str>,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<CheckedArtifact>> {
        let mut artifacts = Vec::new();
        for range in ranges {
            let mut take = |row| artifacts.extend(checked(row, of));
            self.artifacts_between(range, &mut take, findings)?;
        }
        artifacts.sort_unstable_by_key(|artifact| (artifact.core, artifact.id));
        Ok(artifacts)
    }

    /// Returns the rows that follow from the entries that name `digest`, whether or not they chain.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn recorded_with(&self, digest: Digest) -> Result<ExpectedCatalog> {
        let mut catalog = ExpectedCatalog::default();
        self.entries_naming(digest, &mut |JournalRow { seq, text, .. }| {
            let entry = EntryText::parse(text.unwrap_or_default()).ok();
            if let (Some(entry), Ok(number)) = (entry, u64::try_from(seq)) {
                catalog.apply(number, &entry);
            }
        })?;
        Ok(catalog)
    }

    /// Computes the chain of the journal, looks for the entry whose chain value is `since`, and compares the journal with
    /// everything in the catalog that follows from it alone, in both directions. No stored bytes are read.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub fn compare_journal(&self, since: Option<Digest>) -> Result<JournalInspection> {
        let mut findings = Vec::new();
        let Some(JournalReplay { catalog, check, findings: mut defects, .. }) =
            self.replay(since, &mut findings)?
        else {
            let (chain, counts) = (JournalCheck::begin(since), CatalogCounts::default());
            return Ok(JournalInspection { chain, counts, findings });
        };
        findings.append(&mut defects);
        let mut compared = CatalogComparison::new(catalog);
        for table in JournaledTable::ALL {
            let unread = self.rows(table, &mut |row| compared.take(&row), &mut findings)?;
            compared.finish_table(table, &unread);
        }
        let (counts, mut different) = compared.into_findings();
        findings.append(&mut different);
        Ok(JournalInspection { chain: check, counts, findings })
    }
}

/// Returns the artifact of a row, if it is of a kind.
fn checked(row: Row, of: Option<&str>) -> Option<CheckedArtifact> {
    let Row::Artifact { core, entry, kind, .. } = row else { return None };
    let is_wanted = of.is_none_or(|of| of == kind);
    let kind = Some(kind).filter(|kind| !kind.is_empty());
    is_wanted.then_some(CheckedArtifact { id: entry.cast_signed(), core, kind })
}
