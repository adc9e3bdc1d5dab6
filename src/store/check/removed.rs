//! Whether what was removed is gone.

use super::Inspection;
use super::finding::{Finding, REMOVED_PRESENT, Subject};
use crate::store::Result;
use crate::store::tombstones::{self, NotGone};

impl Inspection<'_> {
    /// Finds the artifacts that were removed and not taken back, and whose bytes are in the vault all the same.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read. What is damaged is a finding.
    pub fn removed(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let table = Subject::Table("tombstone".to_owned());
        let present = self.look(table, &mut findings, || tombstones::not_gone(&self.connection))?;
        for NotGone { tombstone, holder } in present.unwrap_or_default() {
            let place = match holder {
                Some((kind, core)) => format!("its bytes are in {kind} {core}"),
                None => "its bytes are in the vault, and no artifact has them".to_owned(),
            };
            let detail = format!("{}; {place}", tombstone.removal());
            findings.push(Finding::new(REMOVED_PRESENT, Subject::Artifact(tombstone.core), detail));
        }
        Ok(findings)
    }
}
