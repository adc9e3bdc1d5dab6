//! Rebuilding of what is derived from stored bytes, by admitting them again.
//!
//! The derived rows of each artifact are replaced in one transaction. So the vault answers correctly at any time, and an
//! interrupted run has done part of the work and no harm.

use std::collections::{BTreeMap, HashMap};

use super::captures::warnings;
use super::repair::SqlRepairs;
use super::restored::{correct_kind, delete_strays, derived_tables, insert_kind};
use super::stored::{seal, signature};
use super::{Dialect, SqlParameter, SqlResult, SqlSession};
use crate::artifact::{Admitted, CREATED_AT, Signature};
use crate::storage::Result;
use crate::storage::change::{renewed_signature, signature_entry};
use crate::storage::check::{ReadmittedArtifact, ReindexOutcome};
use crate::storage::entry::Entry;

/// The signatures of the captures of an artifact, by number.
type StoredSignatures = BTreeMap<i64, Option<Signature>>;

/// Rebuilds what is derived from the captures of each artifact of `batch`, in one transaction. Returns the outcome of each.
pub(in crate::storage) fn reindex<V: SqlRepairs>(
    vault: &V,
    batch: &[ReadmittedArtifact],
) -> Result<Vec<ReindexOutcome>> {
    vault.write(|session| {
        let stored = stored_signatures(session, batch)?;
        let none = StoredSignatures::new();
        let is_unchanged = |readmitted: &ReadmittedArtifact| {
            let stored = stored.get(&readmitted.artifact.id).unwrap_or(&none);
            stored.keys().copied().eq(readmitted.captures.iter().map(|(id, _)| id.number()))
        };
        let outcome = |readmitted| {
            if is_unchanged(readmitted) { ReindexOutcome::Done } else { ReindexOutcome::Changed }
        };
        let outcomes = batch.iter().map(outcome).collect();
        let artifacts: Vec<&ReadmittedArtifact> =
            batch.iter().filter(|read| is_unchanged(read) && read.admitted().next().is_some()).collect();
        correct_artifacts(session, &artifacts)?;
        delete_derived(session, &artifacts)?;
        V::write_derived(session, &artifacts)?;
        let mut entries = Vec::new();
        for readmitted in artifacts {
            let stored = stored.get(&readmitted.artifact.id).unwrap_or(&none);
            for (id, admitted) in readmitted.admitted() {
                let known = stored.get(&id).and_then(Option::as_ref);
                entries.extend(correct_capture(session, id, admitted, known)?);
            }
        }
        Ok((outcomes, entries))
    })
}

/// Completes the rebuilding: deletes derived rows without an owner, rebuilds what is derived from all artifacts, and records
/// it.
pub(in crate::storage) fn finish_reindex<V: SqlRepairs>(
    vault: &V,
    indexed: u64,
    not_admitted: u64,
) -> Result<()> {
    vault.write(|session| {
        delete_strays(session, &[])?;
        V::rebuild_indexes(session)?;
        Ok(((), vec![Entry::Reindex { indexed, not_admitted }]))
    })
}

/// Returns the captures of each artifact, by its number. A signature that cannot be read is replaced.
fn stored_signatures<S: SqlSession>(
    session: &S,
    batch: &[ReadmittedArtifact],
) -> SqlResult<HashMap<i64, StoredSignatures>, S> {
    let ids: Vec<i64> = batch.iter().map(|readmitted| readmitted.artifact.id).collect();
    let columns = match S::DIALECT {
        Dialect::Sqlite => "s.state, s.key_id FROM capture c LEFT JOIN signature s ON s.capture = c.id",
        Dialect::Postgres => "c.signature, c.key_id FROM capture c",
    };
    let condition = S::DIALECT.is_in("c.artifact", "?1");
    let sql = format!("SELECT c.artifact, c.id, {columns} WHERE {condition}");
    let mut stored: HashMap<i64, StoredSignatures> = HashMap::new();
    for row in session.rows(&sql, &[ids.as_slice().into()])? {
        let (artifact, capture) = (row.integer(0)?, row.integer(1)?);
        stored.entry(artifact).or_default().insert(capture, signature(&row, 2).unwrap_or_default());
    }
    Ok(stored)
}

/// Corrects the kinds of artifacts and the times of their creation: admission proves them.
fn correct_artifacts<S: SqlSession>(session: &S, artifacts: &[&ReadmittedArtifact]) -> SqlResult<(), S> {
    let mut kinds = BTreeMap::new();
    for (_, admitted) in artifacts.iter().flat_map(|readmitted| readmitted.admitted()) {
        kinds.insert(admitted.kind().name(), admitted);
    }
    for (name, admitted) in kinds {
        insert_kind(session, name, admitted.core())?;
        correct_kind(session, admitted.kind())?;
    }
    for readmitted in artifacts {
        let id = SqlParameter::from(readmitted.artifact.id);
        let kind = readmitted.admitted().next().map(|(_, admitted)| admitted.kind().name());
        session.execute(
            "UPDATE artifact SET kind = k.id FROM kind k
              WHERE artifact.id = ?1 AND k.name = ?2 AND artifact.kind IS DISTINCT FROM k.id",
            &[id.clone(), kind.into()],
        )?;
        if readmitted.is_complete() {
            let created = readmitted.admitted().filter_map(|(_, admitted)| created_at(admitted)).max();
            session.execute(
                "UPDATE artifact SET created_at = ?2 WHERE id = ?1 AND created_at IS DISTINCT FROM ?2",
                &[id.clone(), created.into()],
            )?;
        }
    }
    Ok(())
}

/// Returns the creation time that an artifact states.
fn created_at(admitted: &Admitted) -> Option<i64> {
    let attributes = admitted.draft().attributes.iter().filter(|attribute| attribute.name == CREATED_AT);
    attributes.filter_map(|attribute| attribute.number).max()
}

/// Deletes the derived rows of artifacts, except what their captures mention, and the rows of those that were not admitted.
fn delete_derived<S: SqlSession>(session: &S, artifacts: &[&ReadmittedArtifact]) -> SqlResult<(), S> {
    let captures: Vec<i64> =
        artifacts.iter().flat_map(|readmitted| readmitted.admitted()).map(|(id, _)| id).collect();
    let complete = artifacts.iter().filter(|readmitted| readmitted.is_complete());
    let artifacts: Vec<i64> = complete.map(|readmitted| readmitted.artifact.id).collect();
    for (table, column) in derived_tables(S::DIALECT) {
        let of = if column == "capture" { &captures } else { &artifacts };
        let sql = format!("DELETE FROM {table} WHERE {}", S::DIALECT.is_in(column, "?1"));
        session.execute(&sql, &[of.as_slice().into()])?;
    }
    Ok(())
}

/// Corrects what is stored with a capture. Returns the entry that records its signature, unless that is `known`.
fn correct_capture<S: SqlSession>(
    session: &S,
    id: i64,
    admitted: &Admitted,
    known: Option<&Signature>,
) -> SqlResult<Option<Entry>, S> {
    let (warnings, seal) = (warnings(admitted)?, seal(admitted.core(), admitted.capture()));
    let news = admitted.signature().map(|found| renewed_signature(known, found));
    let parameters: [SqlParameter; 6] = [
        id.into(),
        warnings.as_deref().into(),
        seal.into(),
        admitted.size().into(),
        news.as_ref().map(|signature| signature.state.name()).into(),
        news.as_ref().and_then(|signature| signature.key_id.as_deref()).into(),
    ];
    let statements: &[&str] = match S::DIALECT {
        Dialect::Sqlite => &[
            "UPDATE capture SET warnings = ?2, seal = ?3, size = ?4
              WHERE id = ?1 AND (warnings, seal, size) IS DISTINCT FROM (?2, ?3, ?4)",
            "DELETE FROM signature WHERE capture = ?1 AND (state, key_id) IS DISTINCT FROM (?5, ?6)",
            "INSERT OR IGNORE INTO signature (capture, state, key_id) SELECT ?1, ?5, ?6 WHERE ?5 IS NOT NULL",
        ],
        Dialect::Postgres => &["UPDATE capture SET warnings = ?2, seal = ?3, size = ?4, signature = ?5, key_id = ?6
              WHERE id = ?1 AND (warnings, seal, size, signature, key_id) IS DISTINCT FROM (?2, ?3, ?4, ?5, ?6)"],
    };
    for sql in statements {
        session.execute(sql, &parameters)?;
    }
    Ok(news.filter(|news| known != Some(news)).map(|news| signature_entry(admitted, &news)))
}
