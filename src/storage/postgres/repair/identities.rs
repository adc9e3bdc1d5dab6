//! Repairs of the rows of artifacts and captures, as far as seals prove what they were.

use super::journal::proven;
use super::{delete_strays, repaired_if_changed};
use crate::artifact::Admitted;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::Result;
use crate::storage::annotations::ENDS;
use crate::storage::check::{CaptureId, CheckedArtifact, Repair, Subject};
use crate::storage::entry::Entry;
use crate::storage::postgres::check::entries::entries;
use crate::storage::postgres::columns::{capture, core, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::vault::PostgresStorage;
use crate::storage::postgres::write::removal::delete_captures;
use crate::storage::seal::seal;

/// Columns that refer to captures.
const OF_CAPTURES: &[(&str, &str)] = &[("member", "capture"), ("mention_list", "capture")];

impl PostgresStorage {
    /// Restores the missing row of an artifact that captures belong to, or assigns them to the one that has its hash.
    pub(super) fn repair_artifact(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Repair>> {
        self.repair_sealed((artifact, capture, admitted), |session| {
            let core = admitted.core();
            let names = NameRegistry::corrected(session, &[admitted])?;
            let sql = "INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival)
                       SELECT $1, $2, $3, min(added_at), max(seen_at), 0 FROM capture WHERE artifact = $1
                       HAVING count(*) > 0 ON CONFLICT (id) DO NOTHING";
            let repair = (Subject::Artifact(core), "restored to its table");
            Ok(repaired_if_changed(
                session,
                (sql, &[&artifact.id, &core, &names.kind_id(admitted.kind())]),
                repair,
            )?
            .into_iter()
            .collect())
        })
    }

    /// Assigns `capture` of `artifact` to the artifact that its seal proves: the admitted one, if that was sealed when the
    /// capture was added.
    pub(super) fn repair_core(
        &self,
        artifact: &CheckedArtifact,
        capture: CaptureId,
        admitted: &Admitted,
    ) -> Result<Vec<Repair>> {
        self.repair_sealed((artifact, capture, admitted), |session| {
            let core = admitted.core();
            if has_sealed(session, artifact)? {
                // Another capture proves the artifact's recorded hash; this capture's own artifact is missing.
                return Ok(Vec::new());
            }
            let sql = "UPDATE artifact SET core = $2 WHERE id = $1";
            let repair = (Subject::Artifact(core), "given its hash again");
            Ok(repaired_if_changed(session, (sql, &[&artifact.id, &core]), repair)?.into_iter().collect())
        })
    }

    /// Assigns a capture of an artifact to the one that its seal proves. Runs `without` if the vault has no such artifact.
    fn repair_sealed(
        &self,
        (artifact, capture, admitted): (&CheckedArtifact, CaptureId, &Admitted),
        without: impl FnOnce(&DatabaseTransaction<'_>) -> PostgresResult<Vec<Repair>>,
    ) -> Result<Vec<Repair>> {
        self.repair(|session| {
            if !is_sealed_as(session, capture, admitted)? {
                return Ok(Vec::new());
            }
            match artifact_id(session, admitted.core())? {
                Some(own) if own == artifact.id => Ok(Vec::new()),
                Some(own) => assign(session, (capture, admitted), own),
                None => without(session),
            }
        })
    }

    /// Corrects the hashes of captures that the journal does not have, if it has one with their seal. Deletes what refers
    /// to captures and artifacts that do not exist: others that are added could get their numbers.
    pub(super) fn repair_captures(&self) -> Result<Vec<Repair>> {
        self.repair(|session| {
            let mut repaired = restore_hashes(session)?;
            let did = "removed rows that refer to missing captures";
            repaired.append(&mut delete_strays(session, OF_CAPTURES, ("capture", did))?);
            let did = "removed rows that refer to missing artifacts";
            repaired.append(&mut delete_strays(session, &ENDS, ("artifact", did))?);
            Ok(repaired)
        })
    }

    /// Deletes a capture of the artifact `core` so that it can be added again.
    pub(super) fn drop_capture(&self, core: CoreHash, hash: CaptureHash) -> Result<Vec<Repair>> {
        self.repair(|session| {
            let sql =
                "SELECT c.id FROM capture c JOIN artifact a ON a.id = c.artifact WHERE a.core = $1 AND c.digest = $2";
            let Some(row) = session.row(sql, &[&core, &hash])? else { return Ok(Vec::new()) };
            let id: i64 = value(&row, 0)?;
            delete_captures(session, &[id])?;
            Ok(vec![Repair { subject: Subject::Capture(hash), did: "dropped, to be added again" }])
        })
    }
}

fn artifact_id(session: &DatabaseTransaction<'_>, core: CoreHash) -> PostgresResult<Option<i64>> {
    let sql = "SELECT id FROM artifact WHERE core = $1";
    let row = session.row(sql, &[&core])?;
    row.map(|row| value(&row, 0)).transpose()
}

/// Returns whether the seal of a capture proves that it was stored as `admitted`.
fn is_sealed_as(
    session: &DatabaseTransaction<'_>,
    capture: CaptureId,
    admitted: &Admitted,
) -> PostgresResult<bool> {
    let expected = seal(admitted.core(), admitted.capture());
    let sql = "SELECT 1 FROM capture WHERE id = $1 AND seal = $2";
    let row = session.row(sql, &[&capture.number(), &&expected[..]])?;
    Ok(row.is_some())
}

/// Returns whether a capture of the artifact is sealed with the artifact's core hash.
fn has_sealed(session: &DatabaseTransaction<'_>, artifact: &CheckedArtifact) -> PostgresResult<bool> {
    let sql = "SELECT digest, seal FROM capture WHERE artifact = $1";
    for row in session.rows(sql, &[&artifact.id])? {
        if value::<&[u8]>(&row, 1)? == seal(artifact.core, capture(&row, 0)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Assigns a capture to an artifact, unless that has the capture already.
fn assign(
    session: &DatabaseTransaction<'_>,
    (id, admitted): (CaptureId, &Admitted),
    artifact: i64,
) -> PostgresResult<Vec<Repair>> {
    let hash = admitted.capture();
    let sql = "UPDATE capture SET artifact = $2 WHERE id = $1
                  AND NOT EXISTS (SELECT 1 FROM capture WHERE artifact = $2 AND digest = $3)";
    let repair = (Subject::Capture(hash), "assigned to its artifact again");
    Ok(repaired_if_changed(session, (sql, &[&id.number(), &artifact, &hash]), repair)?.into_iter().collect())
}

/// Gives captures the hash that the journal has with their seal.
fn restore_hashes(session: &DatabaseTransaction<'_>) -> PostgresResult<Vec<Repair>> {
    let Some(replay) = proven(session)? else { return Ok(Vec::new()) };
    let mut sealed: Vec<(i64, i64)> = Vec::new();
    let sql = "SELECT c.id, c.digest, c.seal, a.core FROM capture c JOIN artifact a ON a.id = c.artifact";
    session.each(sql, &[], &mut |row| {
        let is_known = replay.state.capture(core(row, 3)?, capture(row, 1)?).is_some();
        let entry = replay.state.sealed(value(row, 2)?).map(|entries| entries.added);
        if let Some(entry) = entry.filter(|_| !is_known) {
            sealed.push((value(row, 0)?, entry));
        }
        Ok(())
    })?;
    let mut repaired = Vec::new();
    let entries = entries(session, sealed.iter().map(|(_, seq)| *seq).collect())?;
    for (id, seq) in sealed {
        let Some(Entry::Add { core, capture, .. }) = entries.get(&seq).map(|entry| &entry.change) else {
            continue;
        };
        let sql = "UPDATE capture c SET digest = $2 FROM artifact a WHERE c.id = $1 AND a.id = c.artifact AND a.core = $3
                      AND NOT EXISTS (SELECT 1 FROM capture d WHERE d.artifact = a.id AND d.digest = $2)";
        let repair = (Subject::Capture(*capture), "given its hash again");
        repaired.extend(repaired_if_changed(session, (sql, &[&id, &capture, &core]), repair)?);
    }
    Ok(repaired)
}
