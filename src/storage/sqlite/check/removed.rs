//! Check that removed artifacts are gone.

use super::FileInspection;
use crate::storage::check::finding::{Finding, SURPLUS_ROW, Subject};
use crate::storage::sqlite::Result;
use crate::storage::sqlite::tombstones::{self, UndeletedArtifact};

impl FileInspection<'_> {
    /// Finds the artifacts that are recorded as removed and whose bytes are still in the vault.
    pub(super) fn undeleted(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let table = Subject::Table("tombstone".to_owned());
        let present =
            self.look(table, &mut findings, || tombstones::undeleted_artifacts(&self.connection))?;
        for UndeletedArtifact { tombstone, owner } in present.unwrap_or_default() {
            let place = match owner {
                Some((kind, core)) => format!("its bytes are in {kind} {core}"),
                None => "its bytes are in the vault, but no artifact has them".to_owned(),
            };
            let detail = format!("tombstone: {}; {place}", tombstone.removal());
            findings.push(Finding::new(SURPLUS_ROW, Subject::Artifact(tombstone.core), detail));
        }
        Ok(findings)
    }
}
