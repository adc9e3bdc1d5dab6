//! The interface of repairs for vaults in databases. The files and indexes of the server are its own.

use chrono::{DateTime, Utc};

use crate::artifact::{Admitted, Signature};
use crate::digest::BlobHash;
use crate::storage::check::{CaptureId, CheckedArtifact, JournalRestoreResult, Repair, Repairs, Subject};
use crate::storage::forward::forward_to_inherent;
use crate::storage::interface::Transaction as _;
use crate::storage::postgres::transaction::PostgresTransaction;
use crate::storage::postgres::vault::PostgresStorage;
use crate::storage::{BUSY_TIMEOUT, Prepared, PutResult, Result, change};

impl Repairs for PostgresStorage {
    forward_to_inherent! {
        fn repair_end(&self) -> Result<Vec<Repair>>;
        fn repair_digest(&self, blob: BlobHash) -> Result<Vec<Repair>>;
        fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>>;
        fn repair_artifact(
            &self,
            artifact: &CheckedArtifact,
            capture: CaptureId,
            admitted: &Admitted,
        ) -> Result<Vec<Repair>>;
        fn repair_core(
            &self,
            artifact: &CheckedArtifact,
            capture: CaptureId,
            admitted: &Admitted,
        ) -> Result<Vec<Repair>>;
        fn repair_captures(&self) -> Result<Vec<Repair>>;
        fn restore_from_journal(&self) -> Result<JournalRestoreResult>;
        fn drop_unreferenced(&self) -> Result<Vec<Repair>>;
    }

    fn put_again(
        &self,
        artifact: &Prepared,
        recorded: Option<Signature>,
        at: DateTime<Utc>,
    ) -> Result<PutResult> {
        let begun = PostgresTransaction::begin(&self.server, &self.names, self.actor(), at, BUSY_TIMEOUT);
        let mut transaction = begun.map_err(|failure| failure.at(self.server.name()))?;
        let put = change::put_again(&mut transaction, artifact, recorded)?;
        Box::new(transaction).commit()?;
        Ok(put)
    }

    fn replace_capture(
        &self,
        artifact: &Prepared,
        recorded: Option<Signature>,
        at: DateTime<Utc>,
    ) -> Result<(Vec<Repair>, PutResult)> {
        let admitted = artifact.admitted();
        let dropped = self.drop_capture(admitted.core(), admitted.capture())?;
        Ok((dropped, self.put_again(artifact, recorded, at)?))
    }

    fn record_repair(&self, subject: Subject, did: &'static str) -> Result<Vec<Repair>> {
        self.repair(|_| Ok(vec![Repair { subject, did }]))
    }
}
