//! The rows of an artifact that follow from its bytes.

use std::sync::Arc;

use rusqlite::OptionalExtension as _;

use super::FileInspection;
use crate::digest::CoreHash;
use crate::storage::catalog::{MentionRole, Row};
use crate::storage::check::CheckedArtifact;
use crate::storage::check::finding::{Finding, Subject};
use crate::storage::sql::{DerivedTable, Dialect, SqlSession as _, derived_row, derived_rows};
use crate::storage::sqlite::Result;
use crate::storage::sqlite::lists::MentionRow;

impl FileInspection<'_> {
    /// Returns the rows of an artifact that follow from its bytes, or `None` and a finding if they cannot be read.
    pub(super) fn rows_of_artifact(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Vec<Row>>> {
        let core = artifact.core;
        let mut rows = self.look(Subject::Artifact(core), findings, || self.mentions(core, artifact.id))?;
        for table in DerivedTable::ALL {
            let mut found = Vec::new();
            let read = self.look(Subject::Artifact(core), &mut found, || {
                let read =
                    self.connection.rows(&derived_rows(Dialect::Sqlite, table), &[artifact.id.into()])?;
                read.iter()
                    .map(|row| Ok(derived_row(table, core, row)?))
                    .collect::<rusqlite::Result<Vec<_>>>()
            })?;
            for finding in &mut found {
                finding.detail.insert_str(0, &format!("{}: ", table.name()));
            }
            findings.append(&mut found);
            rows = rows.zip(read).map(|(mut rows, read)| {
                rows.extend(read.into_iter().flatten());
                rows
            });
        }
        Ok(rows)
    }

    fn mentions(&self, core: CoreHash, artifact: i64) -> rusqlite::Result<Vec<Row>> {
        let mentions = self.lists().for_artifact(artifact)?.into_iter();
        mentions
            .map(|MentionRow { role, place, digest }| {
                Ok(Row::Mention { core, place, digest, role: self.role(role)? })
            })
            .collect()
    }

    /// Returns a role, which is read once.
    fn role(&self, id: i64) -> rusqlite::Result<Arc<MentionRole>> {
        if let Some(known) = self.roles.borrow().get(&id) {
            return Ok(known.clone());
        }
        let sql = "SELECT k.name, r.name, r.role_group, r.unit, r.relation, r.dangles
                     FROM role r LEFT JOIN kind k ON k.id = r.kind WHERE r.id = ?1";
        let role = self.connection.prepare_cached(sql)?.query_row([id], |row| {
            Ok(MentionRole {
                kind: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
                name: row.get(1)?,
                group: row.get(2)?,
                unit: row.get(3)?,
                relation: row.get(4)?,
                dangles: row.get(5)?,
            })
        });
        let role = Arc::new(role.optional()?.unwrap_or_else(|| MentionRole::missing(id)));
        self.roles.borrow_mut().insert(id, role.clone());
        Ok(role)
    }
}
