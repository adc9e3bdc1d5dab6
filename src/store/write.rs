//! Putting artifacts into the vault.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, Transaction, TransactionBehavior};

use super::journal::{self, Entry, Journal};
use super::payload::{Payload, Prepared};
use crate::artifact::{Admitted, Kind, Member, Place, Role};
use crate::digest::{CaptureHash, CoreHash, Digest, Hasher};

/// What putting an artifact did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The artifact is new.
    Added,
    /// The artifact was there, this byte form of it was not.
    NewCapture,
    /// This byte form was there already; nothing changed.
    Present,
}

/// An artifact that is in the vault, and what putting it there did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Which artifact.
    pub core: CoreHash,
    /// Which byte form.
    pub capture: CaptureHash,
    /// What was done.
    pub outcome: PutOutcome,
}

pub(super) fn put<'p>(
    connection: &mut Connection,
    batch: impl IntoIterator<Item = &'p Prepared>,
    at: DateTime<Utc>,
) -> rusqlite::Result<Vec<Put>> {
    in_one_transaction(connection, at, |writer| {
        batch.into_iter().map(|prepared| writer.put(prepared)).collect()
    })
}

pub(super) fn put_one(
    connection: &mut Connection,
    prepared: &Prepared,
    at: DateTime<Utc>,
) -> rusqlite::Result<Put> {
    in_one_transaction(connection, at, |writer| writer.put(prepared))
}

fn in_one_transaction<T>(
    connection: &mut Connection,
    at: DateTime<Utc>,
    work: impl FnOnce(&mut Writer<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // Taking the lock at the beginning means waiting for others there, never failing half way.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut writer = Writer::of(&transaction, at)?;
    let outcome = work(&mut writer)?;
    writer.finish()?;
    transaction.commit()?;
    Ok(outcome)
}

struct Writer<'t> {
    transaction: &'t Transaction<'t>,
    journal: Journal,
    at: DateTime<Utc>,
    at_text: String,
    kinds: HashMap<&'static str, i64>,
    roles: HashMap<(i64, &'static Role), i64>,
    /// Rows for `mention_key`, kept until the end of the batch: in the order of the keys they touch fewer pages.
    keys: Vec<(i64, i64, i64, Place)>,
}

impl<'t> Writer<'t> {
    fn of(transaction: &'t Transaction<'t>, at: DateTime<Utc>) -> rusqlite::Result<Self> {
        Ok(Self {
            transaction,
            journal: Journal::of(transaction)?,
            at,
            at_text: journal::text(at),
            kinds: HashMap::new(),
            roles: HashMap::new(),
            keys: Vec::new(),
        })
    }

    fn put(&mut self, prepared: &Prepared) -> rusqlite::Result<Put> {
        for embedded in &prepared.embedded {
            self.put(embedded)?;
        }
        let admitted = prepared.admitted();
        let (core, capture) = (admitted.core(), admitted.capture());
        let known: Option<i64> = self
            .transaction
            .prepare_cached("SELECT artifact FROM capture WHERE digest = ?1")?
            .query_row([capture.0.as_bytes()], |row| row.get(0))
            .optional()?;
        if known.is_some() {
            return Ok(Put { core, capture, outcome: PutOutcome::Present });
        }
        let kind = self.kind(admitted.kind())?;
        let (artifact, outcome) = self.artifact(core, kind)?;
        self.capture(artifact, prepared)?;
        self.index(artifact, kind, admitted)?;
        let entry = Entry::Add {
            at: &self.at_text,
            kind: admitted.kind().name(),
            core,
            capture,
            size: admitted.size(),
        };
        self.journal.append(self.transaction, &entry)?;
        Ok(Put { core, capture, outcome })
    }

    fn kind(&mut self, kind: Kind) -> rusqlite::Result<i64> {
        if let Some(id) = self.kinds.get(kind.name()) {
            return Ok(*id);
        }
        let id = self
            .transaction
            .prepare_cached(
                "INSERT INTO kind (name, stated_by) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET stated_by = excluded.stated_by RETURNING id",
            )?
            .query_row((kind.name(), kind.stated_by()), |row| row.get(0))?;
        self.kinds.insert(kind.name(), id);
        Ok(id)
    }

    fn artifact(&self, core: CoreHash, kind: i64) -> rusqlite::Result<(i64, PutOutcome)> {
        let known = self
            .transaction
            .prepare_cached("SELECT id FROM artifact WHERE core = ?1")?
            .query_row([core.0.as_bytes()], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok((id, PutOutcome::NewCapture));
        }
        self.transaction
            .prepare_cached("INSERT INTO artifact (core, kind, added_at) VALUES (?1, ?2, ?3)")?
            .execute((core.0.as_bytes(), kind, self.at.timestamp_millis()))?;
        Ok((self.transaction.last_insert_rowid(), PutOutcome::Added))
    }

    fn capture(&self, artifact: i64, prepared: &Prepared) -> rusqlite::Result<()> {
        let admitted = prepared.admitted();
        let warnings = serde_json::to_string(admitted.report().violations())
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        self.transaction
            .prepare_cached(
                "INSERT INTO capture (artifact, digest, size, added_at, warnings, seal)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((
                artifact,
                admitted.capture().0.as_bytes(),
                admitted.size().cast_signed(),
                self.at.timestamp_millis(),
                warnings,
                seal(admitted.core(), admitted.capture()).as_bytes(),
            ))?;
        let capture = self.transaction.last_insert_rowid();
        for (member, payload) in admitted.members().iter().zip(&prepared.payloads) {
            let blob = self.blob(member, payload)?;
            self.transaction
                .prepare_cached("INSERT INTO member (capture, name, blob) VALUES (?1, ?2, ?3)")?
                .execute((capture, member.name(), blob))?;
        }
        Ok(())
    }

    fn blob(&self, member: &Member, payload: &Payload) -> rusqlite::Result<i64> {
        let digest = member.blob().0;
        let known = self
            .transaction
            .prepare_cached("SELECT id FROM blob WHERE digest = ?1")?
            .query_row([digest.as_bytes()], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.transaction
            .prepare_cached("INSERT INTO blob (digest, size) VALUES (?1, ?2)")?
            .execute((digest.as_bytes(), member.bytes().len()))?;
        let id = self.transaction.last_insert_rowid();
        let bytes = if payload.compressed.is_empty() { member.bytes() } else { &payload.compressed };
        self.transaction
            .prepare_cached("INSERT INTO payload (blob, encoding, bytes) VALUES (?1, ?2, ?3)")?
            .execute((id, payload.encoding, bytes))?;
        Ok(id)
    }

    /// Adds what the artifact can be found by. What an earlier capture said already is there; the index is the union.
    fn index(&mut self, artifact: i64, kind: i64, admitted: &Admitted) -> rusqlite::Result<()> {
        let draft = admitted.draft();
        for mention in &draft.mentions {
            let role = self.role(kind, mention.role)?;
            self.transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO mention (artifact, role, place, digest) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((artifact, role, &mention.place, mention.digest.as_bytes()))?;
            self.keys.push((mention.digest.key(), artifact, role, mention.place.clone()));
        }
        for attribute in &draft.attributes {
            self.transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO attribute (artifact, name, value) VALUES (?1, ?2, ?3)",
                )?
                .execute((artifact, attribute.name, &attribute.value))?;
        }
        for handle in &draft.identified_by {
            self.transaction
                .prepare_cached("INSERT OR IGNORE INTO identity (handle, artifact) VALUES (?1, ?2)")?
                .execute((handle.as_str(), artifact))?;
        }
        for (relation, handle) in &draft.refers_to {
            self.transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO name_mention (artifact, relation, handle, dangles)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((artifact, relation.name, handle.as_str(), relation.dangles))?;
        }
        Ok(())
    }

    fn role(&mut self, kind: i64, role: &'static Role) -> rusqlite::Result<i64> {
        if let Some(id) = self.roles.get(&(kind, role)) {
            return Ok(*id);
        }
        let id = self
            .transaction
            .prepare_cached(
                "INSERT INTO role (kind, name, role_group, unit, relation, dangles)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (kind, name) DO UPDATE SET
                   role_group = excluded.role_group, unit = excluded.unit,
                   relation = excluded.relation, dangles = excluded.dangles
                 RETURNING id",
            )?
            .query_row(
                (
                    kind,
                    role.name,
                    role.group,
                    role.unit,
                    role.relation.map(|relation| relation.name),
                    role.relation.is_some_and(|relation| relation.dangles),
                ),
                |row| row.get(0),
            )?;
        self.roles.insert((kind, role), id);
        Ok(id)
    }

    fn finish(mut self) -> rusqlite::Result<()> {
        self.keys.sort_unstable();
        let mut insert = self.transaction.prepare_cached(
            "INSERT OR IGNORE INTO mention_key (key, artifact, role, place) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (key, artifact, role, place) in &self.keys {
            insert.execute((key, artifact, role, place))?;
        }
        Ok(())
    }
}

/// What binds a capture to its artifact in the vault.
pub(super) fn seal(core: CoreHash, capture: CaptureHash) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(core.0.as_bytes());
    hasher.update(capture.0.as_bytes());
    hasher.finish()
}

/// Places are numbers or texts in the database, so that they sort as people expect.
impl ToSql for Place {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Index(index) => ToSqlOutput::Owned(Value::Integer(i64::from(*index))),
            Self::Pointer(pointer) => ToSqlOutput::Borrowed(ValueRef::Text(pointer.as_bytes())),
        })
    }
}
