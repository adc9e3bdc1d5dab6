//! The names of kinds and actors that the journal proves.
//!
//! Entries of additions contain the row ids of the kind and the actor, but their chain values are computed with the names. If
//! the row with a name was changed or lost, the name with which the entries chain is the right one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, Row};

use super::FileInspection;
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::Actor;
use crate::storage::check::finding::{Finding, NAME_DIFFERS, Subject};
use crate::storage::entry::Entry;
use crate::storage::journal::{Head, JournalWriter};
use crate::storage::sqlite::Result;
use crate::storage::sqlite::rows::Milliseconds;

/// Maximum number of entries that are examined for each kind and actor: others may be damaged themselves.
const ATTEMPTS: u32 = 8;

/// Maximum number of actors that are tried.
const ACTORS: usize = 256;

/// A name that the journal proves, and that its row does not have.
pub(in crate::storage::sqlite) struct ProvenName {
    /// `kind` or `actor`.
    pub(in crate::storage::sqlite) table: &'static str,
    pub(in crate::storage::sqlite) id: i64,
    /// The name in its row, if there is one that can be read.
    stored: Option<String>,
    pub(in crate::storage::sqlite) name: String,
}

impl FileInspection<'_> {
    /// Finds the rows of kinds and actors that do not have the names that the journal proves. `kinds` are the known names.
    pub(super) fn names(&self, kinds: &[&str]) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let table = Subject::Table("journal".to_owned());
        let proven = self.look(table, &mut findings, || proven_names(&self.connection, kinds, self.actor))?;
        findings.extend(proven.unwrap_or_default().into_iter().map(|proven| {
            let ProvenName { table, id, stored, name } = proven;
            let detail = match stored {
                Some(stored) => {
                    format!("row {id} has the name {stored:?}; entries of the journal have {name:?}")
                }
                None => format!("row {id} is missing or has no name; entries of the journal have {name:?}"),
            };
            Finding::new(NAME_DIFFERS, Subject::Table(table.to_owned()), detail)
        }));
        Ok(findings)
    }
}

/// Returns the names that the journal proves, and that their rows do not have. The names that are tried are `kinds`, `actor`, and
/// all in the tables and the texts of entries.
pub(in crate::storage::sqlite) fn proven_names(
    connection: &Connection,
    kinds: &[&str],
    actor: Option<&Actor>,
) -> rusqlite::Result<Vec<ProvenName>> {
    let [kinds_by_id, actors_by_id] = [names(connection, "kind")?, names(connection, "actor")?];
    let kinds: BTreeSet<&str> =
        kinds.iter().copied().chain(kinds_by_id.values().map(String::as_str)).collect();
    let mut actors: BTreeSet<String> = connection
        .prepare(
            "SELECT DISTINCT CASE WHEN json_valid(entry) THEN entry ->> 'actor' END FROM journal LIMIT ?1",
        )?
        .query_map([ACTORS as u64], |row| Ok(row.get::<_, Option<String>>(0).unwrap_or_default()))?
        .filter_map(rusqlite::Result::transpose)
        .collect::<rusqlite::Result<_>>()?;
    actors.extend(actors_by_id.values().take(ACTORS).cloned());
    actors.extend(actor.map(|actor| actor.name().to_owned()));
    let mut attempts: HashMap<(i64, Option<i64>), u32> = HashMap::new();
    let mut proven = BTreeMap::new();
    let mut before = Some(Digest::from_bytes([0; 32]));
    let mut statement = connection.prepare(
        "SELECT chain, kind, actor, core, capture, size, at, source_path FROM journal ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let head = before.map(|chain| Head { seq: 0, chain });
        before = row.get(0).ok();
        let (Some(head), Some(chain), Ok(entry)) = (head, before, AdditionRow::from_row(row)) else {
            continue;
        };
        let tried = attempts.entry((entry.kind, entry.actor)).or_default();
        if *tried >= ATTEMPTS {
            continue;
        }
        *tried += 1;
        let (kind, actor) = (kinds_by_id.get(&entry.kind), entry.actor.and_then(|id| actors_by_id.get(&id)));
        let likely_kinds = kind.map(String::as_str).into_iter().chain(kinds.iter().copied());
        let is_chained = |kind: &str, actor: Option<&str>| entry.is_chained(head, chain, kind, actor);
        let found = likely_kinds.into_iter().find_map(|kind| {
            if entry.actor.is_none() {
                return is_chained(kind, None).then_some((kind, None));
            }
            let mut likely = actor.into_iter().chain(&actors);
            likely.find(|actor| is_chained(kind, Some(actor))).map(|actor| (kind, Some(actor)))
        });
        let Some((found_kind, found_actor)) = found else { continue };
        *tried = ATTEMPTS;
        if kind.map(String::as_str) != Some(found_kind) {
            proven.insert(("kind", entry.kind), (kind.cloned(), found_kind.to_owned()));
        }
        if let (Some(id), Some(found)) = (entry.actor, found_actor)
            && actor != Some(found)
        {
            proven.insert(("actor", id), (actor.cloned(), found.clone()));
        }
    }
    let named = |((table, id), (stored, name))| ProvenName { table, id, stored, name };
    Ok(proven.into_iter().map(named).collect())
}

/// Returns the names in a table by their row ids, without those that cannot be read.
fn names(connection: &Connection, table: &str) -> rusqlite::Result<HashMap<i64, String>> {
    connection
        .prepare(&format!("SELECT id, name FROM {table}"))?
        .query_map([], |row| Ok(row.get(0).ok().zip(row.get(1).ok())))?
        .filter_map(rusqlite::Result::transpose)
        .collect()
}

/// An addition as the journal stores it.
struct AdditionRow {
    kind: i64,
    actor: Option<i64>,
    core: CoreHash,
    capture: CaptureHash,
    size: u64,
    at: DateTime<Utc>,
    source_path: Option<String>,
}

impl AdditionRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            kind: row.get(1)?,
            actor: row.get(2)?,
            core: row.get(3)?,
            capture: row.get(4)?,
            size: row.get(5)?,
            at: row.get::<_, Milliseconds>(6)?.0,
            source_path: row.get(7)?,
        })
    }

    /// Whether the entry follows `head` with the chain value `chain` if its kind and actor have these names.
    fn is_chained(&self, head: Head, chain: Digest, kind: &str, actor: Option<&str>) -> bool {
        let Ok(actor) = actor.map(Actor::new).transpose() else { return false };
        let Self { core, capture, size, ref source_path, .. } = *self;
        let mut writer = JournalWriter::new(head, None, actor.as_ref(), self.at);
        let event =
            Entry::Add { capture, core, kind: kind.to_owned(), size, source_path: source_path.clone() };
        writer.append(&event).is_ok() && writer.head().chain == chain
    }
}
