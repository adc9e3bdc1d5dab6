//! Lists journal entries.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Vault;
use super::api::{FindingSummary, Timestamp};
use crate::digest::Digest;
use crate::storage::check::{CatalogCounts, JournalInspection};
use crate::storage::{
    Capability, ErrorKind, Head, JournalCheck, JournalQuery, JournalRecord, Snapshot, StorageError,
};

/// A request for journal entries. Everything given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JournalRequest {
    /// Only entries at this time or later.
    pub since: Option<Timestamp>,
    /// Only entries before this time.
    pub until: Option<Timestamp>,
    /// Only entries of this action, such as `add`.
    pub action: Option<String>,
    /// Only entries that contain this hash, or have it as their chain value.
    pub about: Option<Digest>,
    /// Only this number of entries, the last ones. Ignored if `after` is given.
    pub last: Option<u32>,
    /// The number of an entry: only those after it.
    pub after: Option<u64>,
    /// Maximum number of entries of this page; 1000 if there is none.
    pub limit: Option<u32>,
}

/// A page of journal entries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JournalAnswer {
    /// The entries, oldest first.
    pub entries: Vec<JournalEntry>,
    /// The number of the last entry of this page; `None` if it is the last page.
    pub next: Option<u64>,
}

/// A journal entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JournalEntry {
    /// Its number: 1, 2, 3, and so on.
    pub seq: u64,
    /// Its chain value.
    pub chain: Digest,
    /// What it records.
    #[schema(value_type = Object)]
    pub entry: Map<String, Value>,
}

/// A request for the last journal entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JournalHeadRequest {}

/// The actions of all entries, in alphabetical order. A later version may write others.
pub const ACTIONS: [&str; 17] = [
    "add",
    "allow-removed",
    "gc",
    "label",
    "link",
    "note",
    "pin",
    "reindex",
    "remove",
    "repair",
    "seen",
    "signature",
    "tag",
    "unlabel",
    "unlink",
    "unpin",
    "untag",
];

/// Number of entries of a page if none is requested.
const PAGE: u32 = 1_000;

impl JournalRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or an entry is damaged.
    pub fn run(&self, vault: &Vault) -> Result<JournalAnswer, StorageError> {
        let last = self.last.filter(|_| self.after.is_none());
        let query = JournalQuery {
            since: self.since.map(|time| time.0),
            until: self.until.map(|time| time.0),
            action: self.action.clone(),
            // Which are the last ones is known only when all have been read.
            limit: last.filter(|_| self.about.is_none()),
        };
        let limit = usize::try_from(self.limit.unwrap_or(PAGE)).unwrap_or(usize::MAX);
        let from = self.after.map_or(0, |after| after.saturating_add(1));
        let snapshot = vault.snapshot()?;
        let records = match self.about {
            None => snapshot.journal(&query, from, limit)?,
            Some(digest) => {
                let limit = if last.is_some() { usize::MAX } else { limit };
                let mut records = entries_about(&*snapshot, &query, digest, from, limit)?;
                let last = last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
                records.drain(..records.len().saturating_sub(last));
                records
            }
        };
        let next = records.last().filter(|_| records.len() == limit).map(|record| record.seq);
        let entries = records.iter().map(JournalEntry::read).collect::<Result<_, _>>()?;
        Ok(JournalAnswer { entries, next })
    }
}

/// Returns up to `limit` of the entries from one on that contain a digest or have it as their chain value.
fn entries_about(
    snapshot: &dyn Snapshot,
    query: &JournalQuery,
    digest: Digest,
    mut from: u64,
    limit: usize,
) -> Result<Vec<JournalRecord>, StorageError> {
    let digits = digest.hex();
    let mut found = Vec::new();
    loop {
        let page = snapshot.journal(query, from, PAGE as usize)?;
        let Some(last) = page.last().map(|record| record.seq) else { return Ok(found) };
        from = last.saturating_add(1);
        let is_about = |record: &JournalRecord| record.chain == digest || record.entry.contains(&digits);
        found.extend(page.into_iter().filter(is_about));
        if found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
    }
}

impl JournalEntry {
    fn read(record: &JournalRecord) -> Result<Self, StorageError> {
        let damaged = |error: serde_json::Error| {
            let message = format!("entry {} of the journal cannot be read: {error}", record.seq);
            StorageError::new(ErrorKind::Damaged, message)
        };
        let entry = serde_json::from_str(&record.entry).map_err(damaged)?;
        Ok(Self { seq: record.seq, chain: record.chain, entry })
    }
}

impl JournalHeadRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<Head, StorageError> {
        vault.snapshot()?.journal_head()
    }
}

/// A request to recompute the chain of the journal from the first entry to the last. Reads no stored bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckJournalRequest {
    /// A chain value that was recorded earlier as the head of the journal: whether it is the one of an entry, and so no
    /// entry up to that one was changed since.
    pub since: Option<Digest>,
    /// The number of the entry that was recorded with it, if one was.
    pub since_seq: Option<u64>,
    /// Whether to also compare the artifacts, captures, tags, notes, pins, manual links, tombstones and signatures in the
    /// catalog with the journal, in both directions.
    pub catalog: bool,
}

/// The result of checking a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckJournalAnswer {
    /// Whether all entries chain, the recorded chain value is a former head, and the catalog matches the journal, as far
    /// as that was requested.
    pub ok: bool,
    /// The entry after which the recorded chain value was the head; 0 is before the first. `None` if it never was, or
    /// not after the recorded entry.
    pub since: Option<u64>,
    /// A description of the first defect of the chain.
    pub defect: Option<String>,
    /// The number of the entry with that defect.
    pub defect_entry: Option<u64>,
    /// The entry after which the recorded chain value was the head, whichever number was recorded with it.
    pub found: Option<u64>,
    /// The last entry, as stored.
    pub head: Head,
    /// The comparison with the catalog, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogCheck>,
}

/// The result of comparing a catalog with its journal: the number of rows that agree, and the differences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogCheck {
    /// The number of rows that agree.
    #[serde(flatten)]
    pub counts: CatalogCounts,
    /// Defects of the journal, and differences between it and the catalog.
    pub findings: Vec<FindingSummary>,
}

impl CheckJournalRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the check could not run; of the kind
    /// [`Unsupported`](crate::storage::ErrorKind::Unsupported) if the catalog is to be compared and the engine keeps no
    /// catalog beside the journal. Damage is a part of the answer, not an error.
    pub fn run(&self, vault: &Vault) -> Result<CheckJournalAnswer, StorageError> {
        if !self.catalog {
            let check = vault.snapshot()?.check_journal(self.since)?;
            return Ok(self.answer(&check, None));
        }
        vault.storage.expect(Capability::Check)?;
        let inspection = vault.storage.inspect()?.compare_journal(self.since)?;
        let JournalInspection { chain, counts, findings } = inspection;
        let findings = findings.iter().map(FindingSummary::from).collect();
        Ok(self.answer(&chain, Some(CatalogCheck { counts, findings })))
    }

    fn answer(&self, check: &JournalCheck, catalog: Option<CatalogCheck>) -> CheckJournalAnswer {
        let since = check.since.filter(|since| self.since_seq.is_none_or(|seq| seq == *since));
        let is_former_head = self.since.is_none() || since.is_some();
        let matches = catalog.as_ref().is_none_or(|catalog| catalog.findings.is_empty());
        CheckJournalAnswer {
            ok: check.defect.is_none() && is_former_head && matches,
            since,
            defect: check.defect.map(|defect| defect.to_string()),
            defect_entry: check.defect.map(|defect| defect.entry()),
            found: check.since,
            head: check.head,
            catalog,
        }
    }
}
