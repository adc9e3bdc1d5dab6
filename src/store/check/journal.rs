//! The journal: its chain, and whether it accounts for what is in the vault.

use rusqlite::{OptionalExtension, Row};
use serde::Deserialize;

use super::Inspection;
use super::finding::{CAPTURE_LOST, CAPTURE_UNRECORDED, Finding, JOURNAL_BROKEN, Subject, TIME_DIFFERS};
use crate::digest::{CaptureHash, CoreHash, Digest, Hasher};
use crate::store::Result;
use crate::store::write::seal;

/// What an entry that is no addition says, as far as it matters here.
#[derive(Deserialize)]
struct Other {
    action: String,
    core: Option<Digest>,
    #[serde(default)]
    captures: Vec<Digest>,
    /// How many captures of the artifact were left.
    left: Option<u64>,
}

/// The action of entries that say that captures were removed.
const REMOVE: &str = "remove";

/// What the journal says of captures. In place of hashes there are numbers made of them: there may be many.
#[derive(Default)]
struct Account {
    /// Captures that were added, and when.
    added: Vec<(u64, i64)>,
    /// Artifacts and captures that were removed, and by which entry.
    removed: Vec<(i64, i64)>,
}

/// What the journal says was removed.
pub struct Removals(Account);

impl Removals {
    /// Whether an artifact, or one capture of it, was ever removed.
    #[must_use]
    pub fn has(&self, core: CoreHash, capture: CaptureHash) -> bool {
        [core.0, capture.0].iter().any(|digest| self.0.removes(digest, 0))
    }
}

/// A capture that the journal says was added.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedCapture {
    /// The artifact.
    pub core: CoreHash,
    /// The capture.
    pub capture: CaptureHash,
    /// The name of its kind, if the vault still knows that.
    pub kind: Option<String>,
}

impl Inspection<'_> {
    /// Goes through the journal: its chain, captures that it does not know, and captures that only it knows.
    ///
    /// # Errors
    /// If nobody could look.
    pub fn journal(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let account = self.chain(&mut findings)?;
        let present = self.recorded(&account, &mut findings)?;
        self.times_of_artifacts(&mut findings)?;
        for lost in self.missing(&account, &present, &mut findings)? {
            let kind = lost.kind.as_deref().unwrap_or("unknown");
            let detail = format!("of artifact {}, kind {kind}", lost.core);
            findings.push(Finding::new(CAPTURE_LOST, Subject::Capture(lost.capture), detail));
        }
        Ok(findings)
    }

    /// The captures that the journal says are in the vault, and that are not.
    ///
    /// # Errors
    /// If nobody could look.
    pub fn lost_captures(&self) -> Result<Vec<RecordedCapture>> {
        let mut findings = Vec::new();
        let account = self.chain(&mut findings)?;
        let present = self.recorded(&account, &mut findings)?;
        self.missing(&account, &present, &mut findings)
    }

    /// What the journal says of a capture that was added.
    ///
    /// # Errors
    /// If nobody could look.
    pub fn recorded_capture(&self, capture: CaptureHash) -> Result<Option<RecordedCapture>> {
        let recorded = self.look(journal(), &mut Vec::new(), || {
            let sql = "SELECT j.core, k.name FROM journal j LEFT JOIN kind k ON k.id = j.kind
                        WHERE j.capture = ?1 ORDER BY j.seq DESC LIMIT 1";
            let recorded =
                |row: &Row<'_>| Ok(RecordedCapture { core: row.get(0)?, capture, kind: row.get(1)? });
            self.connection.query_row(sql, [capture.0.as_bytes()], recorded).optional()
        })?;
        Ok(recorded.flatten())
    }

    /// What the journal says was removed.
    ///
    /// # Errors
    /// If nobody could look.
    pub fn removals(&self) -> Result<Removals> {
        Ok(Removals(self.chain(&mut Vec::new())?))
    }

    fn chain(&self, findings: &mut Vec<Finding>) -> Result<Account> {
        let mut account = Account::default();
        let mut broken = Vec::new();
        self.look(journal(), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT j.seq, e.entry, j.chain, j.at, j.core, j.capture
                   FROM journal j JOIN journal_entries e ON e.seq = j.seq ORDER BY j.seq",
            )?;
            let mut rows = statement.query([])?;
            let (mut last, mut chain) = (0, Digest::from_bytes([0; 32]));
            while let Some(row) = rows.next()? {
                let seq: i64 = row.get(0)?;
                let Some(entry) = row.get_ref(1)?.as_str_or_null()? else {
                    // Nothing was ever hashed in its place.
                    broken.push((seq, "it has no text".to_owned()));
                    (last, chain) = (seq, row.get(2)?);
                    continue;
                };
                let mut hasher = Hasher::new();
                hasher.update(chain.as_bytes());
                hasher.update(entry.as_bytes());
                chain = row.get(2)?;
                if seq != last + 1 {
                    broken.push((seq, format!("it follows entry {last}")));
                } else if hasher.finish() != chain {
                    broken.push((seq, "it, or the chain before it, is not what was written".to_owned()));
                }
                last = seq;
                account.take(row, seq, entry)?;
            }
            Ok(())
        })?;
        let finding = |(seq, detail)| Finding::new(JOURNAL_BROKEN, Subject::Entry(seq), detail);
        findings.extend(broken.into_iter().map(finding));
        account.added.sort_unstable();
        account.removed.sort_unstable();
        Ok(account)
    }

    /// Whether the journal knows the captures that are in the vault, which are given as numbers in their order.
    fn recorded(&self, account: &Account, findings: &mut Vec<Finding>) -> Result<Vec<u64>> {
        let mut present = Vec::new();
        let mut found = Vec::new();
        self.look(Subject::Table("capture".to_owned()), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT a.core, coalesce(c.digest, b.digest), c.added_at
                   FROM capture c NOT INDEXED JOIN artifact a ON a.id = c.artifact LEFT JOIN blob b ON b.id = c.blob",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                // A capture whose blob is gone is a broken reference.
                let Some(capture) = row.get::<_, Option<CaptureHash>>(1)? else { continue };
                let number = number(row.get(0)?, capture);
                present.push(number);
                let at: i64 = row.get(2)?;
                if account.added.binary_search(&(number, at)).is_ok() {
                    continue;
                }
                let first = account.added.partition_point(|entry| entry.0 < number);
                let is_known = account.added.get(first).is_some_and(|entry| entry.0 == number);
                found.push(if is_known {
                    Finding::new(TIME_DIFFERS, Subject::Capture(capture), "the journal has another time")
                } else {
                    Finding::new(CAPTURE_UNRECORDED, Subject::Capture(capture), "no entry says that it was added")
                });
            }
            Ok(())
        })?;
        present.sort_unstable();
        found.sort_by(|one, other| one.key().cmp(&other.key()));
        findings.append(&mut found);
        Ok(present)
    }

    /// Whether artifacts are as old as their first captures, or as the journal says of captures that came again since.
    fn times_of_artifacts(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let mut found = Vec::new();
        self.look(Subject::Table("artifact".to_owned()), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT core FROM artifact a WHERE added_at <>
                   (SELECT c.added_at FROM capture c WHERE c.artifact = a.id ORDER BY c.id LIMIT 1)
                    AND NOT EXISTS (SELECT 1 FROM journal j WHERE j.core = a.core AND j.at = a.added_at) ORDER BY core",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let detail = "its first capture and the journal have another time";
                found.push(Finding::new(TIME_DIFFERS, Subject::Artifact(row.get(0)?), detail));
            }
            Ok(())
        })?;
        findings.append(&mut found);
        Ok(())
    }

    fn missing(
        &self,
        account: &Account,
        present: &[u64],
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<RecordedCapture>> {
        let mut lost = Vec::new();
        self.look(journal(), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT j.seq, j.core, j.capture, k.name FROM journal j LEFT JOIN kind k ON k.id = j.kind
                  WHERE j.core IS NOT NULL",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (seq, core, capture) =
                    (row.get(0)?, row.get::<_, CoreHash>(1)?, row.get::<_, CaptureHash>(2)?);
                let is_present = present.binary_search(&number(core, capture)).is_ok();
                if !is_present && ![core.0, capture.0].iter().any(|digest| account.removes(digest, seq)) {
                    lost.push(RecordedCapture { core, capture, kind: row.get(3)? });
                }
            }
            Ok(())
        })?;
        lost.sort_unstable();
        lost.dedup();
        Ok(lost)
    }
}

impl Account {
    fn take(&mut self, row: &Row<'_>, seq: i64, entry: &str) -> rusqlite::Result<()> {
        if let (Some(core), Some(capture)) = (row.get::<_, Option<CoreHash>>(4)?, row.get::<_, Option<_>>(5)?)
        {
            self.added.push((number(core, capture), row.get(3)?));
            return Ok(());
        }
        // What is no entry is broken, and was said to be.
        if let Ok(Other { action, core, captures, left }) = serde_json::from_str(entry)
            && action == REMOVE
        {
            let whole = core.filter(|_| left == Some(0));
            self.removed.extend(captures.into_iter().chain(whole).map(|digest| (digest.key(), seq)));
        }
        Ok(())
    }

    /// Whether what has this hash was removed after entry `seq`.
    fn removes(&self, digest: &Digest, seq: i64) -> bool {
        let next = self.removed.partition_point(|entry| *entry <= (digest.key(), seq));
        self.removed.get(next).is_some_and(|entry| entry.0 == digest.key())
    }
}

fn journal() -> Subject {
    Subject::Table("journal".to_owned())
}

/// A number for a capture of an artifact, that no other has but by a rare chance.
fn number(core: CoreHash, capture: CaptureHash) -> u64 {
    seal(core, capture).first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first))
}
