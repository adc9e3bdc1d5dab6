//! Artifacts, their attributes and names, and references by name.

use std::collections::{HashMap, HashSet};

use super::journal::tombstones_beginning;
use super::statistics::statistics;
use super::value::{ARTIFACT, SqlRow};
use super::{
    Dialect, SqlResult, SqlSession, SqlSnapshot, annotations, in_order, read_rows, read_rows_of, text_key,
};
use crate::digest::{CoreHash, DigestPrefix};
use crate::storage::interface::{
    Annotations, ArtifactQueries, ArtifactRecord, AttributeRecord, CaptureTarget, LabelKey, LabelValue,
    ManualLink, NameMention, NameQueries, NameUse, Names, Resolution, Statistics, UnresolvedReference,
    sort_unresolved,
};
use crate::storage::{Result, TimeBasis};

/// Returns the artifacts with these core hashes.
pub(in crate::storage) fn artifacts<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> SqlResult<Vec<Option<ArtifactRecord>>, S> {
    let artifacts = S::DIALECT.artifacts("?1");
    let sql = format!("SELECT {ARTIFACT} FROM {artifacts} JOIN kind k ON k.id = a.kind");
    let found = read_rows(session, &sql, &[of.into()], SqlRow::artifact)?;
    let found = found.into_iter().map(|artifact| (artifact.core, Some(artifact)));
    Ok(in_order(of, &found.collect()))
}

/// Returns the attributes of each artifact that have a name, sorted by value.
pub(in crate::storage) fn attributes_named<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
    name: &str,
) -> SqlResult<Vec<Vec<AttributeRecord>>, S> {
    attributes_where(session, of, Some(name))
}

fn attributes_where<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
    name: Option<&str>,
) -> SqlResult<Vec<Vec<AttributeRecord>>, S> {
    let (condition, name) = match name {
        Some(name) => ("WHERE t.name = ?2", vec![name.into()]),
        None => ("", Vec::new()),
    };
    let sql = format!(
        "SELECT DISTINCT a.core, t.name, t.value, t.number FROM {} {} {condition} ORDER BY 1, 2, 3",
        S::DIALECT.artifacts("?1"),
        S::DIALECT.attributes()
    );
    read_rows_of(session, &sql, of, &name, |row| {
        Ok(AttributeRecord { name: row.text(1)?, value: row.text(2)?, number: row.optional_integer(3)? })
    })
}

impl<S: SqlSnapshot> ArtifactQueries for S {
    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>> {
        self.answer(artifacts(self.session(), of))
    }

    fn kinds_with_group(&self, group: &str) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT k.name FROM kind k JOIN role r ON r.kind = k.id WHERE r.role_group = ?1 ORDER BY k.name";
        self.read_rows(sql, &[group.into()], |row| row.text(0))
    }

    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>> {
        self.answer(attributes_where(self.session(), of, None))
    }

    fn attribute_names(&self) -> Result<Vec<String>> {
        // Skips from one name to the next: there may be millions of values.
        let values = S::Session::DIALECT.values_of_attributes();
        let sql = format!(
            "WITH RECURSIVE names (name) AS (
               SELECT (SELECT v.name FROM {values} v ORDER BY v.name LIMIT 1)
               UNION ALL
               SELECT (SELECT v.name FROM {values} v WHERE v.name > n.name ORDER BY v.name LIMIT 1)
                 FROM names n WHERE n.name IS NOT NULL)
             SELECT name FROM names WHERE name IS NOT NULL"
        );
        self.read_rows(&sql, &[], |row| row.text(0))
    }

    fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "SELECT DISTINCT v.value FROM {} v WHERE v.name = ?1 AND {} ORDER BY v.value LIMIT ?3",
            dialect.values_of_attributes(),
            dialect.can_begin_with("v.value", "?2")
        );
        let mut values =
            self.read_rows(&sql, &[name.into(), text.into(), limit.into()], |row| row.text(0))?;
        values.retain(|value| value.starts_with(text));
        Ok(values)
    }

    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>> {
        self.answer(annotations::annotations(self.session(), of))
    }

    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>> {
        self.answer(annotations::manual_links(self.session(), of))
    }

    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>> {
        self.answer(annotations::tagged(self.session(), names))
    }

    fn label_keys(&self) -> Result<Vec<LabelKey>> {
        self.answer(annotations::label_keys(self.session()))
    }

    fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>> {
        self.answer(annotations::label_values(self.session(), key, text, limit))
    }

    /// Tombstones are looked for if there is nothing else.
    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution> {
        let dialect = S::Session::DIALECT;
        let (low, high) = prefix.range();
        let range = [(&low).into(), (&high).into(), limit.into()];
        let is_within = dialect.is_between("a.core", "?1", "?2");
        let sql = format!("SELECT a.core FROM artifact a WHERE {is_within} ORDER BY a.core LIMIT ?3");
        let artifacts = self.read_rows(&sql, &range, |row| row.core(0))?;
        let hash = dialect.capture_hash();
        let sql = format!(
            "SELECT {hash}, a.core FROM {} JOIN artifact a ON a.id = c.artifact WHERE {} ORDER BY 1, 2 LIMIT ?3",
            dialect.captures(),
            dialect.is_between(hash, "?1", "?2")
        );
        let captures = self.read_rows(&sql, &range, |row| {
            Ok(CaptureTarget { capture: row.capture(0)?, artifact: row.core(1)? })
        })?;
        let mut tombstones = Vec::new();
        if artifacts.is_empty() && captures.is_empty() {
            tombstones = self.answer(tombstones_beginning(self.session(), prefix, limit))?;
        }
        Ok(Resolution { artifacts, captures, tombstones })
    }

    fn statistics(&self, by: TimeBasis) -> Result<Statistics> {
        self.answer(statistics(self.session(), by))
    }
}

/// Returns the condition that the artifact of the name `i` does not refer to it, as redacted copies of a run do.
pub(in crate::storage) fn is_original(dialect: Dialect) -> String {
    let same = dialect.same_handle("n", "i");
    format!("NOT EXISTS (SELECT 1 FROM name_mention n WHERE n.artifact = i.artifact AND {same})")
}

/// Returns the condition that another artifact of the kind of the artifact `a` has one of its names, or refers to a name that
/// it refers to.
pub(in crate::storage) fn has_namesake_condition(dialect: Dialect) -> String {
    let shares = |table: &str| {
        // The zero keeps the databases from reading all artifacts of the kind.
        format!(
            "EXISTS (SELECT 1 FROM {table} i JOIN {table} j ON {} JOIN artifact b ON b.id = j.artifact
              WHERE i.artifact = a.id AND b.id <> a.id AND b.kind + 0 = a.kind)",
            dialect.same_handle("j", "i")
        )
    };
    format!("{} OR {}", shares("identity"), shares("name_mention"))
}

/// Returns the condition that another artifact has or refers to a name that the artifact `a` has or refers to.
pub(super) fn shares_name_condition(dialect: Dialect) -> String {
    let is_used = |table: &str| {
        let same = dialect.same_handle("j", "i");
        format!("EXISTS (SELECT 1 FROM {table} j WHERE {same} AND j.artifact <> a.id)")
    };
    let is_used = format!("({} OR {})", is_used("identity"), is_used("name_mention"));
    let shares =
        |table: &str| format!("EXISTS (SELECT 1 FROM {table} i WHERE i.artifact = a.id AND {is_used})");
    format!("{} OR {}", shares("identity"), shares("name_mention"))
}

impl<S: SqlSnapshot> NameQueries for S {
    fn names(&self, of: &[CoreHash]) -> Result<Vec<Names>> {
        let dialect = S::Session::DIALECT;
        let artifacts = dialect.artifacts("?1");
        let sql = format!(
        "SELECT a.core, 0 AS is_mentioned, NULL AS relation, i.handle, {} AS flag
           FROM {artifacts} JOIN identity i ON i.artifact = a.id
         UNION
         SELECT a.core, 1, n.relation, n.handle, n.dangles FROM {artifacts} JOIN name_mention n ON n.artifact = a.id
         ORDER BY 1, 2, 3, 4",
        is_original(dialect)
    );
        let rows = self.read_rows(&sql, &[of.into()], |row| {
            Ok((row.core(0)?, row.flag(1)?, row.optional_text(2)?, row.text(3)?, row.flag(4)?))
        })?;
        let mut found: HashMap<CoreHash, Names> = HashMap::new();
        for (artifact, is_mentioned, relation, handle, flag) in rows {
            let names = found.entry(artifact).or_default();
            if is_mentioned {
                let relation = relation.unwrap_or_default();
                names.mentioned.push(NameMention { relation, handle, dangles: flag });
            } else {
                names.original.extend(flag.then(|| handle.clone()));
                names.own.push(handle);
            }
        }
        Ok(in_order(of, &found))
    }

    fn named(&self, names: &[String]) -> Result<Vec<NameUse>> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "SELECT i.handle, 0 AS refers, NULL AS relation, a.id, a.core, {} AS is_original
           FROM identity i JOIN artifact a ON a.id = i.artifact WHERE {}
         UNION
         SELECT m.handle, 1, m.relation, a.id, a.core, m.dangles
           FROM name_mention m JOIN artifact a ON a.id = m.artifact WHERE {}
         ORDER BY 1, 2, 3, 4",
            is_original(dialect),
            dialect.has_handle("i", "?1", "?2"),
            dialect.has_handle("m", "?1", "?2")
        );
        let keys: Vec<i64> = names.iter().map(|name| text_key(name)).collect();
        let rows = self.read_rows(&sql, &[names.into(), keys.as_slice().into()], |row| {
            Ok((row.text(0)?, row.flag(1)?, row.optional_text(2)?, row.core(4)?, row.flag(5)?))
        })?;
        let mut found: HashMap<String, NameUse> = HashMap::new();
        for (name, refers, relation, artifact, is_original) in rows {
            let uses = found.entry(name).or_default();
            if refers {
                uses.referring.push((relation.unwrap_or_default(), artifact));
            } else {
                uses.originals.extend(is_original.then_some(artifact));
                uses.identified.push(artifact);
            }
        }
        Ok(in_order(names, &found))
    }

    fn shared_names(&self, group: &str) -> Result<Vec<String>> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "SELECT i.handle FROM identity i JOIN artifact a ON a.id = i.artifact
          WHERE a.kind IN (SELECT r.kind FROM role r WHERE r.role_group = ?1) AND {}
          GROUP BY i.handle HAVING count(DISTINCT i.artifact) > 1 ORDER BY i.handle",
            is_original(dialect)
        );
        self.read_rows(&sql, &[group.into()], |row| row.text(0))
    }

    fn has_namesake(&self, of: &[CoreHash]) -> Result<Vec<bool>> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "SELECT a.core FROM {} WHERE {}",
            dialect.artifacts("?1"),
            has_namesake_condition(dialect)
        );
        let found: HashSet<CoreHash> =
            self.read_rows(&sql, &[of.into()], |row| row.core(0))?.into_iter().collect();
        Ok(of.iter().map(|core| found.contains(core)).collect())
    }

    fn missing_names(&self, after: Option<&str>, limit: usize) -> Result<Vec<UnresolvedReference>> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "WITH missing AS (
           SELECT n.handle, n.artifact, n.relation FROM name_mention n
            WHERE n.dangles AND (?1 IS NULL OR n.handle > ?1)
              AND NOT EXISTS (SELECT 1 FROM identity i WHERE {} AND i.artifact <> n.artifact))
         SELECT m.handle, f.core, m.relation FROM missing m JOIN artifact f ON f.id = m.artifact
          WHERE m.handle IN (SELECT DISTINCT handle FROM missing ORDER BY handle LIMIT ?2)",
            dialect.same_handle("i", "n")
        );
        let mut missing = self.read_rows(&sql, &[after.into(), limit.into()], |row| {
            Ok(UnresolvedReference::to_name(row.text(0)?, row.core(1)?, row.text(2)?))
        })?;
        sort_unresolved(&mut missing);
        Ok(missing)
    }
}
