//! The interface of repairs for vaults in databases. The files and indexes of the server are its own.

use chrono::{DateTime, Utc};

use crate::artifact::{Admitted, Signature};
use crate::digest::BlobHash;
use crate::storage::check::{CaptureId, CheckedArtifact, JournalRestoreResult, Repair, Repairs, Subject};
use crate::storage::forward::forward_to_inherent;
use crate::storage::interface::PutOptions;
use crate::storage::postgres::put::PostgresPutBatch;
use crate::storage::postgres::vault::PostgresStorage;
use crate::storage::{BUSY_TIMEOUT, Prepared, PutResult, RemovedPolicy, Result};

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
        let key = (artifact.admitted().core(), artifact.admitted().capture());
        let recorded = recorded.map(|signature| (key, signature));
        let options = PutOptions { policy: RemovedPolicy::default(), at, busy_timeout: BUSY_TIMEOUT };
        let batch = PostgresPutBatch {
            server: &self.server,
            names: &self.names,
            actor: self.actor(),
            prepared: &[artifact],
            options: &options,
            recorded: recorded.as_ref(),
        };
        let put = batch.put().map_err(|failure| failure.at(self.server.name()))?;
        put.into_iter().next().ok_or_else(|| crate::storage::StorageError::gone(key.0))
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
