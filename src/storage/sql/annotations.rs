//! Tags, notes, pins, labels and manual links.

use std::collections::{BTreeMap, HashMap};

use super::value::{LABEL, LINK, NOTE, PIN, SqlTable, TAG};
use super::{SqlResult, SqlSession, SqlValue, artifact_numbers, in_order, read_rows, read_rows_of};
use crate::digest::CoreHash;
use crate::storage::catalog::{Row, RowKey};
use crate::storage::interface::{Annotations, Label, LabelKey, LabelValue, ManualLink, Note, Pin, Tag};

/// Returns the tags, notes, pins and labels of artifacts.
pub(in crate::storage) fn annotations<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> SqlResult<Vec<Annotations>, S> {
    let artifacts = S::DIALECT.artifacts("?1");
    let sql = format!(
        "SELECT a.core, 0, t.name, t.at, NULL AS value FROM {artifacts} JOIN tag t ON t.artifact = a.id
         UNION ALL
         SELECT a.core, 1, n.text, n.at, NULL FROM {artifacts} JOIN note n ON n.artifact = a.id
         UNION ALL
         SELECT a.core, 2, p.note, p.at, NULL FROM {artifacts} JOIN pin p ON p.artifact = a.id
         UNION ALL
         SELECT a.core, 3, l.key, l.at, l.value FROM {artifacts} JOIN label l ON l.artifact = a.id
         ORDER BY 1, 2, 3"
    );
    let mut found: HashMap<CoreHash, Annotations> = HashMap::new();
    for row in session.rows(&sql, &[of.into()])? {
        let annotations = found.entry(row.core(0)?).or_default();
        let at = row.time(3)?;
        match row.integer(1)? {
            0 => annotations.tags.push(Tag { name: row.text(2)?, at }),
            1 => annotations.note = Some(Note { text: row.text(2)?, at }),
            2 => annotations.pin = Some(Pin { note: row.optional_text(2)?, at }),
            _ => annotations.labels.push(Label { key: row.text(2)?, value: row.text(4)?, at }),
        }
    }
    Ok(in_order(of, &found))
}

/// Returns the artifact with each tag, if there is one.
pub(super) fn tagged<S: SqlSession>(session: &S, names: &[String]) -> SqlResult<Vec<Option<CoreHash>>, S> {
    let sql = format!(
        "SELECT t.name, a.core FROM tag t JOIN artifact a ON a.id = t.artifact WHERE {}",
        S::DIALECT.is_in("t.name", "?1")
    );
    let found = read_rows(session, &sql, &[names.into()], |row| Ok((row.text(0)?, Some(row.core(1)?))));
    Ok(in_order(names, &found?.into_iter().collect()))
}

/// Returns the manual links from and to each artifact, sorted by relation, source and target.
pub(super) fn manual_links<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> SqlResult<Vec<Vec<ManualLink>>, S> {
    let sql = format!(
        "SELECT a.core, l.relation, s.core, t.core, l.note FROM {} JOIN link l ON l.source = a.id OR l.target = a.id
           JOIN artifact s ON s.id = l.source JOIN artifact t ON t.id = l.target ORDER BY 1, 2, 3, 4",
        S::DIALECT.artifacts("?1")
    );
    read_rows_of(session, &sql, of, &[], |row| {
        let (source, target) = (row.core(2)?, row.core(3)?);
        Ok(ManualLink { source, relation: row.text(1)?, target, note: row.optional_text(4)? })
    })
}

/// Returns the keys of the labels that artifacts have, sorted.
pub(super) fn label_keys<S: SqlSession>(session: &S) -> SqlResult<Vec<LabelKey>, S> {
    let sql = "SELECT key, count(*), count(DISTINCT value) FROM label GROUP BY key ORDER BY key";
    read_rows(session, sql, &[], |row| {
        Ok(LabelKey { key: row.text(0)?, artifacts: row.count(1)?, values: row.count(2)? })
    })
}

/// The values of the label `?1` that do not come before `?2`, sorted. It skips from one to the next: many artifacts have the same.
const VALUES: &str = "WITH RECURSIVE v (value) AS (
      SELECT min(value) FROM label WHERE key = ?1 AND value >= ?2
      UNION ALL
      SELECT (SELECT min(l.value) FROM label l WHERE l.key = ?1 AND l.value > v.value) FROM v WHERE v.value IS NOT NULL)
    SELECT value FROM v WHERE value IS NOT NULL";

/// Returns up to `limit` values of a key that begin with `start`, sorted.
pub(super) fn label_values<S: SqlSession>(
    session: &S,
    key: &str,
    start: &str,
    limit: usize,
) -> SqlResult<Vec<LabelValue>, S> {
    let sql = format!(
        "SELECT l.value, count(DISTINCT l.artifact), count(*), CAST(sum(c.size) AS bigint)
           FROM ({VALUES} LIMIT ?3) v JOIN label l ON l.key = ?1 AND l.value = v.value
           JOIN capture c ON c.artifact = l.artifact GROUP BY l.value ORDER BY l.value"
    );
    let mut values = read_rows(session, &sql, &[key.into(), start.into(), limit.into()], |row| {
        let (artifacts, captures, bytes) = (row.count(1)?, row.count(2)?, row.count(3)?);
        Ok(LabelValue { value: row.text(0)?, artifacts, captures, bytes })
    })?;
    // Those that begin with it are the first ones that do not come before it.
    values.retain(|value| value.value.starts_with(start));
    Ok(values)
}

/// Changes of annotations. Of several changes of a row, the last one counts.
#[derive(Default)]
pub(in crate::storage) struct AnnotationChanges(BTreeMap<RowKey, Option<Row>>);

impl AnnotationChanges {
    /// Adds a row, which replaces the one with its key. Rows of other tables are ignored.
    pub(in crate::storage) fn put(&mut self, row: Row) {
        if let Some(key) = row.annotation_key() {
            self.0.insert(key, Some(row));
        }
    }

    /// Deletes the row with a key. Signatures are ignored.
    pub(in crate::storage) fn delete(&mut self, key: RowKey) {
        if !matches!(key, RowKey::Signature(..)) {
            self.0.insert(key, None);
        }
    }

    /// Writes the changes. Annotations of artifacts that are not stored are left out.
    pub(in crate::storage) fn write<S: SqlSession>(self, session: &S) -> SqlResult<(), S> {
        if self.0.is_empty() {
            return Ok(());
        }
        let named = self.0.iter().flat_map(|(key, row)| cores(key, row.as_ref())).flatten();
        let numbers = artifact_numbers(session, named)?;
        let number = |core: &CoreHash| numbers.get(core).copied().map(SqlValue::Integer);
        let mut tables: BTreeMap<&str, TableChanges> = BTreeMap::new();
        for (key, row) in self.0 {
            let Some((table, stored_key)) = stored_key(&key, number) else { continue };
            let changes = TableChanges { table, keys: Vec::new(), rows: Vec::new() };
            let TableChanges { keys, rows, .. } = tables.entry(table.name).or_insert(changes);
            let values = row.and_then(|row| stored_values(row, number));
            rows.extend(values.map(|values| stored_key.iter().cloned().chain(values).collect()));
            keys.push(stored_key);
        }
        for TableChanges { table, keys, rows } in tables.into_values() {
            session.delete(table, &keys)?;
            session.insert(table, rows)?;
        }
        Ok(())
    }
}

/// The changes of a table: the keys of the rows that are deleted, and the rows that are inserted then.
struct TableChanges {
    table: &'static SqlTable,
    keys: Vec<Vec<SqlValue>>,
    rows: Vec<Vec<SqlValue>>,
}

/// Returns the artifacts that an annotation names.
fn cores(key: &RowKey, row: Option<&Row>) -> [Option<CoreHash>; 2] {
    match (key, row) {
        (RowKey::Note(core) | RowKey::Pin(core) | RowKey::Label(core, _) | RowKey::Signature(core, _), _) => {
            [Some(*core), None]
        }
        (RowKey::Link(source, _, target), _) => [Some(*source), Some(*target)],
        (RowKey::Tag(_), Some(Row::Tag { core, .. })) => [Some(*core), None],
        (RowKey::Tag(_), _) => [None, None],
    }
}

/// Returns the table of an annotation, and the values of its key; `None` if an artifact in it is not stored.
fn stored_key(
    key: &RowKey,
    number: impl Fn(&CoreHash) -> Option<SqlValue>,
) -> Option<(&'static SqlTable, Vec<SqlValue>)> {
    Some(match key {
        RowKey::Signature(..) => return None,
        RowKey::Tag(name) => (&TAG, vec![name.clone().into()]),
        RowKey::Note(core) => (&NOTE, vec![number(core)?]),
        RowKey::Pin(core) => (&PIN, vec![number(core)?]),
        RowKey::Label(core, key) => (&LABEL, vec![number(core)?, key.clone().into()]),
        RowKey::Link(source, relation, target) => {
            (&LINK, vec![number(source)?, relation.clone().into(), number(target)?])
        }
    })
}

/// Returns the values of an annotation after those of its key; `None` if its artifact is not stored.
fn stored_values(row: Row, number: impl Fn(&CoreHash) -> Option<SqlValue>) -> Option<Vec<SqlValue>> {
    Some(match row {
        Row::Tag { core, at, .. } => vec![number(&core)?, at.into()],
        Row::Note { text, at, .. } => {
            let folded = text.to_lowercase().into_bytes();
            vec![text.into(), folded.into(), at.into()]
        }
        Row::Pin { note, at, .. } | Row::Link { note, at, .. } => vec![note.into(), at.into()],
        Row::Label { value, at, .. } => vec![value.into(), at.into()],
        _ => return None,
    })
}
