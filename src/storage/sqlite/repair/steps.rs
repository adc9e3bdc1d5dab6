//! The interface of repairs for vault files.

use chrono::{DateTime, Utc};

use crate::artifact::{Admitted, Signature};
use crate::digest::BlobHash;
use crate::storage::check::{
    CaptureId, CheckedArtifact, Inspection, JournalRestoreResult, Repair, Repairs, Subject,
};
use crate::storage::forward::forward_to_inherent;
use crate::storage::sqlite::Store;
use crate::storage::{Prepared, PutResult, Result};

impl Repairs for Store {
    forward_to_inherent! {
        fn repair_end(&self) -> Result<Vec<Repair>>;
        fn repair_permissions(&self, subject: Subject) -> Result<Vec<Repair>>;
        fn repair_sql_indexes(&self) -> Result<Vec<Repair>>;
        fn repair_rows(&self) -> Result<Vec<Repair>>;
        fn drop_surplus(&self) -> Result<Vec<Repair>>;
        fn repair_dictionaries(&self, other: Option<&dyn Inspection>) -> Result<Vec<Repair>>;
        fn repair_blob_rows(&self) -> Result<Vec<Repair>>;
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
        fn put_again(
            &self,
            artifact: &Prepared,
            recorded: Option<Signature>,
            at: DateTime<Utc>,
        ) -> Result<PutResult>;
        fn replace_capture(
            &self,
            artifact: &Prepared,
            recorded: Option<Signature>,
            at: DateTime<Utc>,
        ) -> Result<(Vec<Repair>, PutResult)>;
        fn restore_from_journal(&self) -> Result<JournalRestoreResult>;
        fn record_repair(&self, subject: Subject, did: &'static str) -> Result<Vec<Repair>>;
        fn drop_unreferenced(&self) -> Result<Vec<Repair>>;
    }
}
