//! The interface of repairs for vault files.

use chrono::{DateTime, Utc};

use crate::artifact::{Admitted, Signature};
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::check::{
    CaptureId, CheckedArtifact, Inspection, Repair, Repairs, Restored, SalvagedLog, Subject,
};
use crate::storage::sqlite::Store;
use crate::storage::{Prepared, Put, Result};

impl Repairs for Store {
    fn repair_permissions(&self, subject: Subject) -> Result<Vec<Repair>> {
        Self::repair_permissions(self, subject)
    }

    fn repair_sql_indexes(&self) -> Result<Vec<Repair>> {
        Self::repair_sql_indexes(self)
    }

    fn salvage(&self, each: &mut dyn FnMut(Box<dyn SalvagedLog + '_>) -> Result<()>) -> Result<()> {
        Self::salvage(self, each)
    }

    fn drop_surplus(&self) -> Result<Vec<Repair>> {
        Self::drop_surplus(self)
    }

    fn repair_dictionaries(&self, other: Option<&dyn Inspection>) -> Result<Vec<Repair>> {
        Self::repair_dictionaries(self, other)
    }

    fn repair_digest(&self, blob: BlobHash) -> Result<Vec<Repair>> {
        Self::repair_digest(self, blob)
    }

    fn restore_blob(&self, blob: BlobHash, bytes: &[u8]) -> Result<Vec<Repair>> {
        Self::restore_blob(self, blob, bytes)
    }

    fn repair_artifact(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Repair>> {
        Self::repair_artifact(self, artifact, capture, admitted)
    }

    fn repair_core(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Repair>> {
        Self::repair_core(self, artifact, capture, admitted)
    }

    fn drop_capture(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<Repair>> {
        Self::drop_capture(self, core, capture)
    }

    fn put_again(&self, artifact: &Prepared, recorded: Option<Signature>, at: DateTime<Utc>) -> Result<Put> {
        Self::put_again(self, artifact, recorded, at)
    }

    fn restore_from_journal(&self) -> Result<Restored> {
        Self::restore_from_journal(self)
    }

    fn record_repair(&self, subject: Subject, did: &'static str) -> Result<Vec<Repair>> {
        Self::record_repair(self, subject, did)
    }

    fn drop_unreferenced(&self) -> Result<Vec<Repair>> {
        Self::drop_unreferenced(self)
    }
}
