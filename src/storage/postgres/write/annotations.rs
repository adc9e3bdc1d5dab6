//! Changes of tags, notes, pins, labels and manual links.

use std::collections::BTreeMap;

use crate::digest::{CoreHash, Digest};
use crate::storage::catalog::{Row, RowKey};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::parameter::Parameter;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AnnotationTable {
    Tag,
    Note,
    Pin,
    Label,
    Link,
}

/// The key of an annotation. A tag has no artifact in its key, and only a link has a target.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct AnnotationKey {
    table: AnnotationTable,
    core: Option<CoreHash>,
    target: Option<CoreHash>,
    /// A name, key or relation.
    name: String,
}

struct AnnotationValue {
    core: CoreHash,
    text: Option<String>,
    at: i64,
}

/// Changes of annotations: the new value with each key, if there is one.
#[derive(Default)]
pub(in crate::storage::postgres) struct AnnotationChanges(BTreeMap<AnnotationKey, Option<AnnotationValue>>);

impl AnnotationChanges {
    pub(in crate::storage::postgres) fn put(&mut self, row: &Row) {
        let (key, core, text, at) = match row {
            Row::Tag { name, core, at } => (RowKey::Tag(name.clone()), core, None, at),
            Row::Note { core, text, at } => (RowKey::Note(*core), core, Some(text), at),
            Row::Pin { core, note, at } => (RowKey::Pin(*core), core, note.as_ref(), at),
            Row::Label { core, key, value, at } => (RowKey::Label(*core, key.clone()), core, Some(value), at),
            Row::Link { source, relation, target, note, at } => {
                (RowKey::Link(*source, relation.clone(), *target), source, note.as_ref(), at)
            }
            _ => return,
        };
        let value = AnnotationValue { core: *core, text: text.cloned(), at: *at };
        self.0.extend(AnnotationKey::new(&key).map(|key| (key, Some(value))));
    }

    pub(super) fn delete(&mut self, key: &RowKey) {
        self.0.extend(AnnotationKey::new(key).map(|key| (key, None)));
    }

    /// Writes the changes. Annotations of artifacts that are not stored are left out.
    pub(in crate::storage::postgres) fn write(self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        let mut tables: BTreeMap<AnnotationTable, (AnnotationColumns, AnnotationColumns)> = BTreeMap::new();
        let none = CoreHash(Digest::from_bytes([0; 32]));
        for (AnnotationKey { table, core, target, name }, value) in self.0 {
            let (keys, rows) = tables.entry(table).or_default();
            let target = target.unwrap_or(none);
            keys.add((core.unwrap_or(none), target), &name, None, 0);
            if let Some(AnnotationValue { core, text, at }) = value {
                rows.add((core, target), &name, text.as_deref(), at);
            }
        }
        for (table, (keys, rows)) in tables {
            keys.delete(session, table)?;
            rows.insert(session, table)?;
        }
        Ok(())
    }
}

impl AnnotationKey {
    /// Returns the key of an annotation.
    fn new(key: &RowKey) -> Option<Self> {
        let (table, core, target, name) = match key {
            RowKey::Tag(name) => (AnnotationTable::Tag, None, None, name.as_str()),
            RowKey::Note(core) => (AnnotationTable::Note, Some(*core), None, ""),
            RowKey::Pin(core) => (AnnotationTable::Pin, Some(*core), None, ""),
            RowKey::Label(core, key) => (AnnotationTable::Label, Some(*core), None, key.as_str()),
            RowKey::Link(source, relation, target) => {
                (AnnotationTable::Link, Some(*source), Some(*target), relation.as_str())
            }
            RowKey::Signature(..) => return None,
        };
        Some(Self { table, core, target, name: name.to_owned() })
    }
}

/// The rows of [`AnnotationColumns`] whose artifacts are stored, as `n`.
pub(in crate::storage::postgres) const ANNOTATIONS: &str = "WITH n AS (SELECT n.*, a.id AS artifact FROM
       unnest($1::bytea[], $2::bytea[], $3::text[], $4::text[], $5::bytea[], $6::bigint[])
         AS n (core, target, name, text, folded, at) JOIN artifact a ON a.core = n.core)";

/// The rows of a table, by column: only some tables have all of them.
#[derive(Default)]
pub(in crate::storage::postgres) struct AnnotationColumns {
    cores: Vec<CoreHash>,
    targets: Vec<CoreHash>,
    /// Names, keys or relations.
    names: Vec<String>,
    texts: Vec<Option<String>>,
    folded: Vec<Option<Vec<u8>>>,
    times: Vec<i64>,
}

impl AnnotationColumns {
    pub(in crate::storage::postgres) fn is_empty(&self) -> bool {
        self.cores.is_empty()
    }

    pub(in crate::storage::postgres) fn add(
        &mut self,
        (core, target): (CoreHash, CoreHash),
        name: &str,
        text: Option<&str>,
        at: i64,
    ) {
        self.cores.push(core);
        self.targets.push(target);
        self.names.push(to_stored(name).into_owned());
        self.texts.push(text.map(|text| to_stored(text).into_owned()));
        self.folded.push(text.map(|text| text.to_lowercase().into_bytes()));
        self.times.push(at);
    }

    fn delete(&self, session: &DatabaseTransaction<'_>, table: AnnotationTable) -> PostgresResult<()> {
        let condition = match table {
            AnnotationTable::Tag => "tag x USING n WHERE x.name = n.name",
            AnnotationTable::Note => "note x USING n, artifact a WHERE a.core = n.core AND x.artifact = a.id",
            AnnotationTable::Pin => "pin x USING n, artifact a WHERE a.core = n.core AND x.artifact = a.id",
            AnnotationTable::Label => {
                "label x USING n, artifact a WHERE a.core = n.core AND x.artifact = a.id AND x.key = n.name"
            }
            AnnotationTable::Link => {
                "link x USING n, artifact a, artifact b WHERE a.core = n.core AND b.core = n.target
                   AND x.source = a.id AND x.relation = n.name AND x.target = b.id"
            }
        };
        let sql = format!(
            "WITH n AS (SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::text[]) AS n (core, target, name))
             DELETE FROM {condition}"
        );
        session.execute(&sql, &[&self.cores, &self.targets, &self.names]).map(drop)
    }

    fn insert(&self, session: &DatabaseTransaction<'_>, table: AnnotationTable) -> PostgresResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let rows = match table {
            AnnotationTable::Tag => "tag (name, artifact, at) SELECT name, artifact, at FROM n",
            AnnotationTable::Note => {
                "note (artifact, text, folded, at) SELECT artifact, text, folded, at FROM n"
            }
            AnnotationTable::Pin => "pin (artifact, note, at) SELECT artifact, text, at FROM n",
            AnnotationTable::Label => {
                "label (artifact, key, value, at) SELECT artifact, name, text, at FROM n"
            }
            AnnotationTable::Link => {
                "link (source, relation, target, note, at)
                 SELECT n.artifact, n.name, b.id, n.text, n.at FROM n JOIN artifact b ON b.core = n.target"
            }
        };
        session.execute(&format!("{ANNOTATIONS} INSERT INTO {rows}"), &self.parameters()).map(drop)
    }

    /// Returns the parameters of [`ANNOTATIONS`].
    pub(in crate::storage::postgres) fn parameters(&self) -> [&dyn Parameter; 6] {
        [&self.cores, &self.targets, &self.names, &self.texts, &self.folded, &self.times]
    }
}
