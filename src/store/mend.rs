//! Putting right what can be put right without guessing. Each step is one transaction with its entry in the journal.

mod blobs;
mod journal;

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction};

use super::check::finding::Subject;
use super::check::{CaptureId, CheckedArtifact, take_from_others};
use super::edit::secure_delete;
use super::journal::{Event, Journal};
use super::read::{artifact_id, capture_id};
use super::search;
use super::write::seal;
use super::write_lock;
use super::{Result, Store, StoreError};
use crate::artifact::Admitted;
use crate::clock;
use crate::digest::{CaptureHash, CoreHash};

pub use journal::Restored;

/// Something that was put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// What.
    pub subject: Subject,
    /// What was done, such as `dropped`.
    pub did: &'static str,
}

impl Store {
    /// Lets nobody but the owner write the vault's files; `subject` is the one that others could write.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_permissions(&self, subject: Subject) -> Result<Vec<Mended>> {
        take_from_others(&self.path).map_err(|source| StoreError::io(&self.path, source))?;
        self.mend(|_| Ok(vec![Mended { subject, did: "closed to others" }]))
    }

    /// Makes SQLite's own indexes anew, unless the file is too damaged for that.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_sql_indexes(&self) -> Result<Vec<Mended>> {
        let mended = Mended { subject: Subject::File("database".to_owned()), did: "made SQL indexes anew" };
        match self.mend(|transaction| transaction.execute_batch("REINDEX").map(|()| vec![mended])) {
            Err(StoreError::Corrupt { .. } | StoreError::Database { .. }) => Ok(Vec::new()),
            outcome => outcome,
        }
    }

    /// Says in the journal that something was put right, and gives what.
    ///
    /// # Errors
    /// What the system says.
    pub fn record_mended(&self, subject: Subject, did: &'static str) -> Result<Vec<Mended>> {
        self.mend(|_| Ok(vec![Mended { subject, did }]))
    }

    /// Takes a capture of the artifact `core` out of the vault, to be added again.
    ///
    /// # Errors
    /// What the system says.
    pub fn drop_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<Mended>> {
        self.mend(|transaction| {
            let Some(id) = capture_id(transaction, core, capture)? else { return Ok(Vec::new()) };
            search::forget(transaction, id)?;
            for sql in [
                "DELETE FROM mention_list WHERE capture = ?1",
                "DELETE FROM signature WHERE capture = ?1",
                "DELETE FROM member WHERE capture = ?1",
                "DELETE FROM capture WHERE id = ?1",
            ] {
                transaction.execute(sql, [id])?;
            }
            Ok(vec![Mended { subject: Subject::Capture(capture), did: "dropped, to be added again" }])
        })
    }

    /// Puts `capture` of `artifact` to the artifact that it is of, as its seal proves: what was admitted is what was sealed
    /// when it was added.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_core(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Mended>> {
        let expected = Self::seal_of(admitted);
        self.mend(|transaction| {
            let stored: Option<Vec<u8>> = transaction
                .query_row("SELECT seal FROM capture WHERE id = ?1", [capture.0], |row| row.get(0))
                .optional()?;
            if stored.as_deref() != Some(&expected) {
                return Ok(Vec::new());
            }
            let subject = Subject::Capture(admitted.capture());
            if let Some(own) = artifact_id(transaction, admitted.core())? {
                if own == artifact.id.0 {
                    return Ok(Vec::new());
                }
                transaction.execute("UPDATE capture SET artifact = ?2 WHERE id = ?1", (capture.0, own))?;
                return Ok(vec![Mended { subject, did: "given back to its artifact" }]);
            }
            if is_sealed(transaction, artifact)? {
                // Another capture is of the artifact as it is called; this one's own artifact is gone.
                return Ok(Vec::new());
            }
            let core = admitted.core();
            transaction
                .execute("UPDATE artifact SET core = ?2 WHERE id = ?1", (artifact.id.0, core.0.as_bytes()))?;
            Ok(vec![Mended { subject: Subject::Artifact(core), did: "given its hash again" }])
        })
    }

    /// Makes the rows of artifacts anew that captures belong to. `admitted` is what such a capture was admitted as.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_artifact(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Mended>> {
        let expected = Self::seal_of(admitted);
        self.mend(|transaction| {
            if artifact_id(transaction, admitted.core())?.is_some() {
                return Ok(Vec::new());
            }
            let changed = transaction.execute(
                "INSERT OR IGNORE INTO artifact (id, core, kind, added_at)
                 SELECT ?1, ?2, k.id, (SELECT min(added_at) FROM capture WHERE artifact = ?1)
                   FROM kind k, capture c
                  WHERE k.name = ?3 AND c.id = ?4 AND c.artifact = ?1 AND c.seal = ?5",
                (artifact.id.0, admitted.core().0.as_bytes(), admitted.kind().name(), capture.0, expected),
            )?;
            let mended =
                Mended { subject: Subject::Artifact(admitted.core()), did: "put into its table again" };
            Ok(if changed > 0 { vec![mended] } else { Vec::new() })
        })
    }

    /// What binds an artifact's capture to it in a vault.
    #[must_use]
    pub fn seal_of(admitted: &Admitted) -> [u8; 16] {
        seal(admitted.core(), admitted.capture())
    }

    /// Does `work` and journals what was mended, in one transaction.
    fn mend(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Vec<Mended>>,
    ) -> Result<Vec<Mended>> {
        self.with_connection(|connection| {
            // What is dropped is overwritten.
            secure_delete(connection, true)?;
            let transaction = write_lock::begin(connection)?;
            let mended = work(&transaction)?;
            let mut journal = Journal::of(&transaction, self.actor.as_ref(), clock::now())?;
            for Mended { subject, did } in &mended {
                journal.append(&transaction, &Event::Repair { did, subject: &subject.to_string() })?;
            }
            transaction.commit()?;
            secure_delete(connection, false)?;
            Ok(mended)
        })
    }

    fn with_connection<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = self.connection()?;
        let failed = |error| StoreError::of(Path::new(&self.path), error);
        work(&mut connection).map_err(failed)
    }
}

/// Whether a capture is of the artifact as it is called.
fn is_sealed(transaction: &Transaction<'_>, artifact: &CheckedArtifact) -> rusqlite::Result<bool> {
    let mut captures = transaction.prepare(
        "SELECT coalesce(c.digest, b.digest), c.seal FROM capture c LEFT JOIN blob b ON b.id = c.blob
          WHERE c.artifact = ?1",
    )?;
    let mut captures = captures.query([artifact.id.0])?;
    while let Some(row) = captures.next()? {
        let capture: Option<CaptureHash> = row.get(0)?;
        let seal_of = |capture| seal(artifact.core, capture);
        if capture
            .map(seal_of)
            .is_some_and(|seal| row.get_ref(1).is_ok_and(|stored| stored.as_blob() == Ok(&seal)))
        {
            return Ok(true);
        }
    }
    Ok(false)
}
