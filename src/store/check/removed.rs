//! Whether what was removed is gone.

use super::Inspection;
use super::finding::{Finding, REMOVED_PRESENT, Subject};
use crate::digest::CoreHash;
use crate::store::{Result, tombstones};

impl Inspection<'_> {
    /// Finds the artifacts that were removed and not taken back, and whose bytes are in the vault all the same.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read. What is damaged is a finding.
    pub fn removed(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let present = self.look(Subject::Table("tombstone".to_owned()), &mut findings, || {
            tombstones::with_bytes(&self.connection)
        })?;
        findings.extend(present.unwrap_or_default().into_iter().map(|(tombstone, holder)| {
            let holder = holder.map_or_else(
                || "its bytes are in the vault, and no artifact has them".to_owned(),
                |(kind, core): (String, CoreHash)| format!("its bytes are in {kind} {core}"),
            );
            let subject = Subject::Artifact(tombstone.core);
            Finding::new(REMOVED_PRESENT, subject, format!("{}; {holder}", tombstone.removal()))
        }));
        Ok(findings)
    }
}
