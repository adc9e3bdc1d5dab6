//! Names of artifacts, and references by name.

use std::collections::{HashMap, HashSet};

use postgres::Row;

use crate::digest::CoreHash;
use crate::storage::interface::{LabelKey, LabelValue, NameMention, NameUse, Names};
use crate::storage::postgres::columns::{core, count, limit as limit_of, text, text_key, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::view::{PostgresSnapshot, in_order, texts};

/// The artifact of the name `i` does not refer to it, as redacted copies of a run do.
pub(super) const IS_ORIGINAL: &str = "NOT EXISTS
  (SELECT 1 FROM name_mention n WHERE n.artifact = i.artifact AND n.key = i.key AND n.handle = i.handle)";

/// Another artifact of the kind of the artifact `a` has one of its names, or refers to a name that it refers to.
pub(super) const HAS_NAMESAKE: &str = "(EXISTS
    (SELECT 1 FROM identity i JOIN identity j ON j.key = i.key AND j.handle = i.handle
       JOIN artifact b ON b.id = j.artifact
      WHERE i.artifact = a.id AND b.id <> a.id AND b.kind = a.kind)
   OR EXISTS
    (SELECT 1 FROM name_mention n JOIN name_mention m ON m.key = n.key AND m.handle = n.handle
       JOIN artifact b ON b.id = m.artifact
      WHERE n.artifact = a.id AND b.id <> a.id AND b.kind = a.kind))";

impl PostgresSnapshot<'_> {
    pub(super) fn names(&self, of: &[CoreHash]) -> PostgresResult<Vec<Names>> {
        let sql = format!(
            "SELECT DISTINCT a.core, 0, '', i.handle, {IS_ORIGINAL}
               FROM artifact a JOIN identity i ON i.artifact = a.id WHERE a.core = ANY($1)
             UNION ALL
             SELECT DISTINCT a.core, 1, n.relation, n.handle, n.dangles
               FROM artifact a JOIN name_mention n ON n.artifact = a.id WHERE a.core = ANY($1)
             ORDER BY 1, 2, 3, 4"
        );
        let sql = sql.replacen("''", "'' COLLATE \"C\"", 1);
        let mut found: HashMap<CoreHash, Names> = HashMap::new();
        for row in self.session.rows(&sql, &[&of])? {
            let names = found.entry(core(&row, 0)?).or_default();
            let (handle, flag) = (text(&row, 3)?, value(&row, 4)?);
            if value::<i32>(&row, 1)? == 0 {
                names.original.extend(Some(handle.clone()).filter(|_| flag));
                names.own.push(handle);
            } else {
                names.mentioned.push(NameMention { relation: text(&row, 2)?, handle, dangles: flag });
            }
        }
        Ok(in_order(of, &found))
    }

    pub(super) fn named(&self, names: &[String]) -> PostgresResult<Vec<NameUse>> {
        let sql = format!(
            "SELECT DISTINCT i.handle, 0, '' COLLATE \"C\", a.id, a.core, {IS_ORIGINAL}
               FROM identity i JOIN artifact a ON a.id = i.artifact WHERE i.key = ANY($1) AND i.handle = ANY($2)
             UNION ALL
             SELECT DISTINCT m.handle, 1, m.relation, a.id, a.core, false
               FROM name_mention m JOIN artifact a ON a.id = m.artifact WHERE m.key = ANY($1) AND m.handle = ANY($2)
             ORDER BY 1, 2, 3, 4"
        );
        let keys: Vec<i64> = names.iter().map(|name| text_key(name)).collect();
        let handles: Vec<_> = names.iter().map(|name| to_stored(name)).collect();
        let mut found: HashMap<String, NameUse> = HashMap::new();
        for row in self.session.rows(&sql, &[&keys, &handles])? {
            let uses = found.entry(text(&row, 0)?).or_default();
            let artifact = core(&row, 4)?;
            if value::<i32>(&row, 1)? == 0 {
                let is_original: bool = value(&row, 5)?;
                uses.originals.extend(Some(artifact).filter(|_| is_original));
                uses.identified.push(artifact);
            } else {
                uses.referring.push((text(&row, 2)?, artifact));
            }
        }
        Ok(in_order(names, &found))
    }

    pub(super) fn shared_names(&self, group: &str) -> PostgresResult<Vec<String>> {
        let sql = format!(
            "SELECT i.handle FROM identity i JOIN artifact a ON a.id = i.artifact
              WHERE a.kind IN (SELECT r.kind FROM role r WHERE r.role_group = $1) AND {IS_ORIGINAL}
              GROUP BY i.handle HAVING count(DISTINCT i.artifact) > 1 ORDER BY i.handle"
        );
        texts(&self.session.rows(&sql, &[&group])?, 0)
    }

    pub(super) fn has_namesake(&self, of: &[CoreHash]) -> PostgresResult<Vec<bool>> {
        let sql = format!("SELECT a.core FROM artifact a WHERE a.core = ANY($1) AND {HAS_NAMESAKE}");
        let rows = self.session.rows(&sql, &[&of])?;
        let found: HashSet<CoreHash> = rows.iter().map(|row| core(row, 0)).collect::<PostgresResult<_>>()?;
        Ok(of.iter().map(|core| found.contains(core)).collect())
    }
}

impl PostgresSnapshot<'_> {
    pub(super) fn label_keys(&self) -> PostgresResult<Vec<LabelKey>> {
        let sql = "SELECT key, count(*), count(DISTINCT value) FROM label GROUP BY key ORDER BY key";
        let key = |row: &Row| {
            Ok(LabelKey { key: text(row, 0)?, artifacts: count(row, 1)?, values: count(row, 2)? })
        };
        self.session.rows(sql, &[])?.iter().map(key).collect()
    }

    pub(super) fn label_values(
        &self,
        key: &str,
        start: &str,
        limit: usize,
    ) -> PostgresResult<Vec<LabelValue>> {
        let sql = "SELECT l.value, count(DISTINCT l.artifact), count(c.id), coalesce(sum(c.size), 0)::bigint
                     FROM label l LEFT JOIN capture c ON c.artifact = l.artifact
                    WHERE l.key = $1 AND l.value >= $2 AND starts_with(l.value, $2)
                    GROUP BY l.value ORDER BY l.value LIMIT $3";
        let value = |row: &Row| {
            Ok(LabelValue {
                value: text(row, 0)?,
                artifacts: count(row, 1)?,
                captures: count(row, 2)?,
                bytes: count(row, 3)?,
            })
        };
        self.session
            .rows(sql, &[&to_stored(key), &to_stored(start), &limit_of(limit)])?
            .iter()
            .map(value)
            .collect()
    }
}
