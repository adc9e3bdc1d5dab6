//! Removing an artifact with everything that belongs to it.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{LinkRowKey, PostgresTransaction};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::interface::{
    ArtifactQueries as _, CaptureQueries as _, ManualLink, ReferenceQueries as _,
};
use crate::storage::journal::JournalEvent;
use crate::storage::postgres::columns::{digests, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::full_text::index::forget;
use crate::storage::postgres::parameter::Parameter;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::unreferenced;
use crate::storage::{Actor, StorageError};

impl PostgresTransaction<'_> {
    pub(super) fn remove_artifact(&mut self, core: CoreHash, reason: Option<&str>) -> PostgresResult<()> {
        let artifact = self.expect_artifact(core)?;
        if self.exists("SELECT 1 FROM pin WHERE artifact = $1", &[&artifact])? {
            return Err(StorageError::pinned(core).into());
        }
        let links = self.view.manual_links(&[core])?;
        for ManualLink { relation, source, target, .. } in links.into_iter().flatten() {
            self.remove_link(&LinkRowKey { relation: &relation, source, target })?;
        }
        let annotations = self.view.annotations(&[core])?.pop().unwrap_or_default();
        for tag in annotations.tags {
            self.remove_tag(&tag.name)?;
        }
        self.remove_note(core)?;
        let keys = annotations.labels.into_iter().map(|label| label.key).collect();
        self.remove_labels(&[core], &keys)?;
        self.bury(core, artifact, reason)
    }

    /// Removes an artifact that has no annotations, and records the removal.
    fn bury(&mut self, core: CoreHash, artifact: i64, reason: Option<&str>) -> PostgresResult<()> {
        let record = self.view.artifacts(&[core])?.pop().flatten().ok_or_else(|| StorageError::gone(core))?;
        let captures = self.view.captures(&[core])?.pop().unwrap_or_default();
        let hashes: Vec<CaptureHash> = captures.iter().map(|capture| capture.capture).collect();
        let size = captures.iter().map(|capture| capture.size).sum();
        let kind = record.kind.as_str();
        delete(self.session(), artifact, self.recorder.at())?;
        self.record(&JournalEvent::Remove { captures: &hashes, core, kind, left: 0, reason, size })?;
        let removal = Removal {
            seq: self.recorder.head().seq,
            at: self.at(),
            actor: self.recorder.actor().map(Actor::name),
            core,
            kind,
            captures: &hashes,
            reason,
            size,
        };
        removal.add_tombstones(self.session())
    }
}

/// A removal, with the number, the time and the actor of its journal entry.
pub(in crate::storage::postgres) struct Removal<'r> {
    pub(in crate::storage::postgres) seq: u64,
    pub(in crate::storage::postgres) at: i64,
    pub(in crate::storage::postgres) actor: Option<&'r str>,
    pub(in crate::storage::postgres) core: CoreHash,
    pub(in crate::storage::postgres) kind: &'r str,
    pub(in crate::storage::postgres) captures: &'r [CaptureHash],
    pub(in crate::storage::postgres) reason: Option<&'r str>,
    pub(in crate::storage::postgres) size: u64,
}

impl Removal<'_> {
    /// Adds its tombstones.
    pub(in crate::storage::postgres) fn add_tombstones(
        &self,
        session: &DatabaseTransaction<'_>,
    ) -> PostgresResult<()> {
        let mut digests: Vec<Digest> = self.captures.iter().map(|capture| capture.0).collect();
        digests.push(self.core.0);
        digests.sort_unstable();
        digests.dedup();
        self.add_tombstones_of(session, &digests)
    }

    /// Adds the tombstones of some of its digests.
    pub(in crate::storage::postgres) fn add_tombstones_of(
        &self,
        session: &DatabaseTransaction<'_>,
        digests: &[Digest],
    ) -> PostgresResult<()> {
        session.execute(
            "INSERT INTO tombstone (digest, entry, at, core, kind, actor, reason, remaining, size)
             SELECT digest, $2, $3, $4, $5, $6, $7, 0, $8 FROM unnest($1::bytea[]) AS n (digest)",
            &[
                &digests,
                &self.seq.cast_signed(),
                &self.at,
                &self.core,
                &self.kind,
                &self.actor.map(to_stored),
                &self.reason.map(to_stored),
                &self.size.cast_signed(),
            ],
        )?;
        Ok(())
    }
}

/// Deletes the rows of an artifact that is removed at a time, and the bytes that no other one has.
pub(in crate::storage::postgres) fn delete(
    session: &DatabaseTransaction<'_>,
    artifact: i64,
    at: DateTime<Utc>,
) -> PostgresResult<()> {
    let of: [&dyn Parameter; 1] = [&artifact];
    let of_captures = "capture IN (SELECT id FROM capture WHERE artifact = $1)";
    let blobs = session.rows(&format!("DELETE FROM member WHERE {of_captures} RETURNING blob"), &of)?;
    let blobs: Vec<&[u8]> = blobs.iter().map(|row| value(row, 0)).collect::<PostgresResult<_>>()?;
    unreferenced::discard(session, &blobs, at)?;
    forget(session, artifact)?;
    delete_keys(session, artifact)?;
    session.execute(&format!("DELETE FROM mention_list WHERE {of_captures}"), &of)?;
    for table in ["edge", "attribute", "identity", "name_mention", "capture"] {
        session.execute(&format!("DELETE FROM {table} WHERE artifact = $1"), &of)?;
    }
    session.execute("DELETE FROM artifact WHERE id = $1", &of)?;
    Ok(())
}

/// Deletes the keys by which the lists of an artifact are found.
fn delete_keys(session: &DatabaseTransaction<'_>, artifact: i64) -> PostgresResult<()> {
    let sql =
        "SELECT c.id, l.digests FROM capture c JOIN mention_list l ON l.capture = c.id WHERE c.artifact = $1";
    let (mut captures, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for row in session.rows(sql, &[&artifact])? {
        captures.insert(value::<i64>(&row, 0)?);
        keys.extend(digests(value(&row, 1)?)?.iter().map(Digest::key));
    }
    let (captures, keys) = (Vec::from_iter(captures), Vec::from_iter(keys));
    session
        .execute("DELETE FROM mention_key WHERE key = ANY($1) AND capture = ANY($2)", &[&keys, &captures])?;
    Ok(())
}
