//! Rebuilding what is derived from the stored bytes.
//!
//! The derived rows of each artifact are replaced in one transaction. So the vault answers correctly at any time, and an
//! interrupted run has done part of the work and no harm.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use crate::artifact::{Admitted, CREATED_AT, Signature};
use crate::digest::CoreHash;
use crate::storage::catalog::facts;
use crate::storage::change::{renewed_signature, signature_entry};
use crate::storage::check::{ReadmittedArtifact, ReindexOutcome};
use crate::storage::entry::Entry;
use crate::storage::postgres::columns::{signature, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::journal::PostgresJournalWriter;
use crate::storage::postgres::names::{NameCache, NameRegistry};
use crate::storage::postgres::pool::PostgresServer;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::write::captures::warnings;
use crate::storage::postgres::write::derived::DerivedRows;
use crate::storage::postgres::write::removal::delete_lists;
use crate::storage::seal::seal;
use crate::storage::{Actor, BUSY_TIMEOUT};

/// Rows of tables without references that belong to nothing, and keys of lists that do not have the digest.
const STRAYS: &str = "
    DELETE FROM mention_list x WHERE NOT EXISTS (SELECT 1 FROM capture c WHERE c.id = x.capture);
    DELETE FROM edge x WHERE NOT EXISTS (SELECT 1 FROM artifact a WHERE a.id = x.artifact);
    DELETE FROM attribute x WHERE NOT EXISTS (SELECT 1 FROM artifact a WHERE a.id = x.artifact);
    DELETE FROM identity x WHERE NOT EXISTS (SELECT 1 FROM artifact a WHERE a.id = x.artifact);
    DELETE FROM name_mention x WHERE NOT EXISTS (SELECT 1 FROM artifact a WHERE a.id = x.artifact);
    DELETE FROM mention_key k WHERE NOT EXISTS
      (SELECT 1 FROM
         (SELECT l.capture, l.group_id, substr(l.digests, i, 8) AS beginning
            FROM mention_list l, generate_series(1, octet_length(l.digests), 32) AS i) d
        WHERE d.capture = k.capture AND d.group_id = k.group_id AND d.beginning = int8send(k.key))";

/// Statements that derive objects from the rows of blobs. Objects may be larger than the blobs in them.
const OBJECTS: &str = "
    UPDATE object o SET size = n.size FROM
      (SELECT object, max(start + length) AS size FROM blob WHERE object IS NOT NULL GROUP BY object) AS n
     WHERE o.name = n.object AND o.size < n.size;
    INSERT INTO object (name, size)
    SELECT object, max(start + length) FROM blob b
     WHERE object IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object o WHERE o.name = b.object) GROUP BY object";

/// Rebuilding in a vault.
pub(in crate::storage::postgres) struct Rebuild<'r> {
    pub(in crate::storage::postgres) server: &'r PostgresServer,
    pub(in crate::storage::postgres) names: &'r NameCache,
    pub(in crate::storage::postgres) actor: Option<&'r Actor>,
    pub(in crate::storage::postgres) at: DateTime<Utc>,
}

/// A stored capture: its number and the state of its signature.
type CaptureSignatureRow = (i64, Option<Signature>);

impl Rebuild<'_> {
    /// Replaces the derived rows of each artifact of `batch`, in one transaction.
    pub(in crate::storage::postgres) fn artifacts(
        &self,
        batch: &[ReadmittedArtifact],
    ) -> PostgresResult<Vec<ReindexOutcome>> {
        let session = DatabaseTransaction::to_write(self.server, BUSY_TIMEOUT)?;
        let mut recorder = PostgresJournalWriter::lock(&session, self.actor, self.at)?;
        let all: Vec<&Admitted> = batch.iter().flat_map(admitted).map(|(_, admitted)| admitted).collect();
        let names = NameRegistry::corrected(&session, &all)?;
        let stored = stored_captures(&session, batch)?;
        let mut rows = DerivedRows::default();
        let mut outcomes = Vec::new();
        for readmitted in batch {
            let stored = stored.get(&readmitted.artifact.id).map_or(&[][..], Vec::as_slice);
            let given = readmitted.captures.iter().map(|(id, _)| id.number());
            if !stored.iter().map(|(id, _)| *id).eq(given) {
                outcomes.push(ReindexOutcome::Changed);
                continue;
            }
            take_out(&session, readmitted)?;
            add(&mut rows, readmitted, &names)?;
            describe(&session, readmitted, stored, &mut recorder)?;
            correct_artifact(&session, readmitted, &names)?;
            outcomes.push(ReindexOutcome::Done);
        }
        rows.write(&session)?;
        correct_sizes(&session, &all)?;
        recorder.flush(&session)?;
        session.commit()?;
        self.names.set(names.into());
        Ok(outcomes)
    }

    /// Removes derived rows without an owner, and records the rebuild.
    pub(in crate::storage::postgres) fn finish(&self, indexed: u64, not_admitted: u64) -> PostgresResult<()> {
        let session = DatabaseTransaction::to_write(self.server, BUSY_TIMEOUT)?;
        let mut recorder = PostgresJournalWriter::lock(&session, self.actor, self.at)?;
        session.batch(STRAYS)?;
        session.batch(OBJECTS)?;
        recorder.append(Entry::Reindex { indexed, not_admitted })?;
        recorder.flush(&session)?;
        session.commit()
    }
}

/// Returns the captures that were admitted again, with their numbers.
fn admitted(readmitted: &ReadmittedArtifact) -> impl Iterator<Item = (i64, &Admitted)> {
    readmitted.captures.iter().filter_map(|(id, admitted)| Some((id.number(), admitted.as_ref()?)))
}

/// Returns whether all captures were admitted, so that the rows of the artifact follow from them.
fn is_complete(readmitted: &ReadmittedArtifact) -> bool {
    readmitted.captures.iter().all(|(_, admitted)| admitted.is_some())
}

fn stored_captures(
    session: &DatabaseTransaction<'_>,
    batch: &[ReadmittedArtifact],
) -> PostgresResult<HashMap<i64, Vec<CaptureSignatureRow>>> {
    let ids: Vec<i64> = batch.iter().map(|readmitted| readmitted.artifact.id).collect();
    let cores: Vec<CoreHash> = batch.iter().map(|readmitted| readmitted.artifact.core).collect();
    let sql =
        "SELECT c.artifact, c.id, c.signature, c.key_id FROM capture c JOIN artifact a ON a.id = c.artifact
                WHERE (a.id, a.core) IN (SELECT * FROM unnest($1::bigint[], $2::bytea[])) ORDER BY c.id";
    let mut stored: HashMap<i64, Vec<CaptureSignatureRow>> = HashMap::new();
    for row in session.rows(sql, &[&ids, &cores])? {
        // A state that cannot be read is replaced.
        let signature = signature(&row, 2).unwrap_or_default();
        stored.entry(value(&row, 0)?).or_default().push((value(&row, 1)?, signature));
    }
    Ok(stored)
}

/// Deletes the derived rows of an artifact, except those of captures that were not admitted.
fn take_out(session: &DatabaseTransaction<'_>, readmitted: &ReadmittedArtifact) -> PostgresResult<()> {
    let captures: Vec<i64> = admitted(readmitted).map(|(id, _)| id).collect();
    // Keys can be left of lists that were lost.
    let mentions = admitted(readmitted).flat_map(|(_, admitted)| &admitted.draft().mentions);
    let keys = mentions.map(|mention| mention.digest.key()).collect();
    delete_lists(session, &captures, keys)?;
    session.execute("DELETE FROM member WHERE capture = ANY($1)", &[&captures])?;
    if is_complete(readmitted) {
        for table in ["edge", "attribute", "identity", "name_mention"] {
            let sql = format!("DELETE FROM {table} WHERE artifact = $1");
            session.execute(&sql, &[&readmitted.artifact.id])?;
        }
    }
    Ok(())
}

fn add(rows: &mut DerivedRows, readmitted: &ReadmittedArtifact, names: &NameRegistry) -> PostgresResult<()> {
    let artifact = readmitted.artifact.id;
    for (capture, admitted) in admitted(readmitted) {
        let owner = is_complete(readmitted).then_some(artifact);
        rows.add_members(capture, admitted.members());
        rows.add_mentions((owner, capture), admitted, names)?;
        if owner.is_some() {
            facts(admitted.core(), admitted).for_each(|fact| rows.add_fact(fact, |_| Some(artifact)));
        }
    }
    Ok(())
}

/// Corrects what is stored with captures.
fn describe(
    session: &DatabaseTransaction<'_>,
    readmitted: &ReadmittedArtifact,
    stored: &[CaptureSignatureRow],
    recorder: &mut PostgresJournalWriter,
) -> PostgresResult<()> {
    let known: BTreeMap<i64, Option<&Signature>> =
        stored.iter().map(|(id, signature)| (*id, signature.as_ref())).collect();
    for (id, admitted) in admitted(readmitted) {
        let known = known.get(&id).copied().flatten();
        let news = admitted.signature().map(|found| renewed_signature(known, found));
        if let Some(news) = news.as_ref().filter(|news| known != Some(*news)) {
            recorder.append(signature_entry(admitted, news))?;
        }
        let state = news.as_ref().map(|signature| signature.state.name());
        let key_id = news.as_ref().and_then(|signature| signature.key_id.as_deref().map(to_stored));
        let seal = seal(admitted.core(), admitted.capture());
        session.execute(
            "UPDATE capture SET warnings = $2, seal = $3, size = $4, signature = $5, key_id = $6
              WHERE id = $1 AND (warnings, seal, size, signature, key_id) IS DISTINCT FROM ($2, $3, $4, $5, $6)",
            &[
                &id,
                &warnings(admitted)?,
                &&seal[..],
                &admitted.size().cast_signed(),
                &state,
                &key_id,
            ],
        )?;
    }
    Ok(())
}

/// Corrects the sizes of blobs, which were hashed. If the size is wrong of one that is compressed, it cannot be read.
fn correct_sizes(session: &DatabaseTransaction<'_>, all: &[&Admitted]) -> PostgresResult<()> {
    let members: Vec<_> = all.iter().flat_map(|admitted| admitted.stored()).collect();
    let blobs: Vec<_> = members.iter().map(|member| member.blob()).collect();
    let lengths = members.iter().map(|member| i64::try_from(member.bytes().len()).unwrap_or(i64::MAX));
    session.execute(
        "UPDATE blob b SET size = n.size FROM unnest($1::bytea[], $2::bigint[]) AS n (digest, size)
          WHERE b.digest = n.digest AND b.encoding = 0 AND b.size <> n.size",
        &[&blobs, &lengths.collect::<Vec<i64>>()],
    )?;
    Ok(())
}

/// Corrects the kind of an artifact and the time of its creation: admission proves them.
fn correct_artifact(
    session: &DatabaseTransaction<'_>,
    readmitted: &ReadmittedArtifact,
    names: &NameRegistry,
) -> PostgresResult<()> {
    let Some((_, first)) = admitted(readmitted).next() else { return Ok(()) };
    let id = readmitted.artifact.id;
    let kind = names.kind_id(first.kind().name());
    session.execute("UPDATE artifact SET kind = $2 WHERE id = $1 AND kind <> $2", &[&id, &kind])?;
    if is_complete(readmitted) {
        let created: Option<i64> =
            admitted(readmitted).filter_map(|(_, admitted)| created_at(admitted)).max();
        session.execute(
            "UPDATE artifact SET created_at = $2 WHERE id = $1 AND created_at IS DISTINCT FROM $2",
            &[&id, &created],
        )?;
    }
    Ok(())
}

/// Returns the creation time that an artifact states.
fn created_at(admitted: &Admitted) -> Option<i64> {
    let attributes = admitted.draft().attributes.iter().filter(|attribute| attribute.name == CREATED_AT);
    attributes.filter_map(|attribute| attribute.number).max()
}
