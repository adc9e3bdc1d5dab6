//! Removing an artifact with everything that belongs to it.

use std::collections::BTreeSet;

use postgres::types::Type;

use super::{Change, LinkKey};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::StorageError;
use crate::storage::interface::{ManualLink, Snapshot as _};
use crate::storage::journal::Event;
use crate::storage::postgres::columns::{digests, value};
use crate::storage::postgres::error::Outcome;
use crate::storage::postgres::full_text::index::forget;
use crate::storage::postgres::session::Parameter;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::unreferenced;

impl Change<'_> {
    pub(super) fn remove_artifact(&mut self, core: CoreHash, reason: Option<&str>) -> Outcome<()> {
        let artifact = self.expect_artifact(core)?;
        if self.exists("SELECT 1 FROM pin WHERE artifact = $1", &[(&artifact, Type::INT8)])? {
            return Err(StorageError::pinned(core).into());
        }
        let links = self.view.manual_links(&[core])?;
        for ManualLink { relation, source, target, .. } in links.into_iter().flatten() {
            self.remove_link(&LinkKey { relation: &relation, source, target })?;
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
    fn bury(&mut self, core: CoreHash, artifact: i64, reason: Option<&str>) -> Outcome<()> {
        let record = self.view.artifacts(&[core])?.pop().flatten().ok_or_else(|| StorageError::gone(core))?;
        let captures = self.view.captures(&[core])?.pop().unwrap_or_default();
        let hashes: Vec<CaptureHash> = captures.iter().map(|capture| capture.capture).collect();
        let size = captures.iter().map(|capture| capture.size).sum();
        let kind = record.kind.as_str();
        self.delete(artifact)?;
        self.record(&Event::Remove { captures: &hashes, core, kind, left: 0, reason, size })?;
        let mut digests: Vec<&[u8]> = hashes.iter().map(|capture| &capture.0.as_bytes()[..]).collect();
        digests.push(&core.0.as_bytes()[..]);
        digests.sort_unstable();
        digests.dedup();
        let actor = self.recorder.actor().map(|actor| to_stored(actor.name()));
        let parameters: [Parameter<'_>; 8] = [
            (&digests, Type::BYTEA_ARRAY),
            (&self.recorder.head().seq.cast_signed(), Type::INT8),
            (&self.at(), Type::INT8),
            (&&core.0.as_bytes()[..], Type::BYTEA),
            (&kind, Type::TEXT),
            (&actor, Type::TEXT),
            (&reason.map(to_stored), Type::TEXT),
            (&size.cast_signed(), Type::INT8),
        ];
        self.session().execute(
            "INSERT INTO tombstone (digest, entry, at, core, kind, actor, reason, remaining, size)
             SELECT digest, $2, $3, $4, $5, $6, $7, 0, $8 FROM unnest($1::bytea[]) AS n (digest)",
            &parameters,
        )?;
        Ok(())
    }

    /// Deletes the rows of an artifact, and the bytes that no other one has.
    fn delete(&self, artifact: i64) -> Outcome<()> {
        let of: [Parameter<'_>; 1] = [(&artifact, Type::INT8)];
        let session = self.session();
        let of_captures = "capture IN (SELECT id FROM capture WHERE artifact = $1)";
        let blobs = session.rows(&format!("DELETE FROM member WHERE {of_captures} RETURNING blob"), &of)?;
        let blobs: Vec<&[u8]> = blobs.iter().map(|row| value(row, 0)).collect::<Outcome<_>>()?;
        unreferenced::discard(session, &blobs, self.recorder.at())?;
        forget(session, artifact)?;
        self.delete_keys(artifact)?;
        session.execute(&format!("DELETE FROM mention_list WHERE {of_captures}"), &of)?;
        for table in ["edge", "attribute", "identity", "name_mention", "capture"] {
            session.execute(&format!("DELETE FROM {table} WHERE artifact = $1"), &of)?;
        }
        session.execute("DELETE FROM artifact WHERE id = $1", &of)?;
        Ok(())
    }

    /// Deletes the keys by which the lists of an artifact are found.
    fn delete_keys(&self, artifact: i64) -> Outcome<()> {
        let sql = "SELECT c.id, l.digests FROM capture c JOIN mention_list l ON l.capture = c.id WHERE c.artifact = $1";
        let (mut captures, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for row in self.session().rows(sql, &[(&artifact, Type::INT8)])? {
            captures.insert(value::<i64>(&row, 0)?);
            keys.extend(digests(value(&row, 1)?)?.iter().map(Digest::key));
        }
        let (captures, keys) = (Vec::from_iter(captures), Vec::from_iter(keys));
        self.session().execute(
            "DELETE FROM mention_key WHERE key = ANY($1) AND capture = ANY($2)",
            &[(&keys, Type::INT8_ARRAY), (&captures, Type::INT8_ARRAY)],
        )?;
        Ok(())
    }
}
