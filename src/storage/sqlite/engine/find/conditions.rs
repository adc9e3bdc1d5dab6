//! Conditions: which artifacts can match one, and how an artifact matches.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::artifact::SignatureState;
use crate::digest::{CoreHash, Digest};
use crate::storage::interface::{Condition, Match, matches_pattern};
use crate::storage::sql;
use crate::storage::sqlite::mention_index;
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::sqlite::rows::{ArtifactId, limit_of};
use crate::storage::{Result, StorageError};

/// A condition in SQL, with its parameters.
#[derive(Clone)]
pub(super) struct WhereClause {
    pub(super) sql: String,
    pub(super) parameters: Vec<Value>,
}

impl WhereClause {
    pub(super) fn new() -> Self {
        Self { sql: "1".to_owned(), parameters: Vec::new() }
    }

    /// Adds a condition with one `?` for each value.
    pub(super) fn and(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.parameters.extend(values);
    }
}

/// A condition with what was looked up for it.
pub(super) struct ResolvedCondition<'q> {
    condition: &'q Condition,
    /// The captures that may mention the digest, sorted.
    captures: Vec<i64>,
    /// The artifacts that have the digest as their hash or as that of a capture.
    own: Vec<ArtifactId>,
    /// The row ids of the values of the attribute that match.
    values: Vec<i64>,
    /// The values of the label that match the pattern.
    labels: Vec<String>,
}

/// Rows of the artifacts that have something.
pub(super) struct ConditionRows {
    /// The tables, one of them with the artifact as `x.artifact`: read first from the one with the condition.
    by_condition: &'static str,
    /// The tables, read first from the one with the artifact.
    by_artifact: &'static str,
    condition: WhereClause,
}

impl ConditionRows {
    /// Returns the condition that the artifact `a` has a row.
    pub(super) fn has_artifact(self) -> WhereClause {
        let Self { by_artifact, condition: WhereClause { sql, parameters }, .. } = self;
        let sql = format!("EXISTS (SELECT 1 FROM {by_artifact} WHERE x.artifact = a.id AND {sql})");
        WhereClause { sql, parameters }
    }

    /// Returns the condition that the artifact `a` is one of those of all rows.
    pub(super) fn contains_artifact(self) -> WhereClause {
        let Self { by_condition, condition: WhereClause { sql, parameters }, .. } = self;
        let sql = format!("a.id IN (SELECT x.artifact FROM {by_condition} WHERE {sql})");
        WhereClause { sql, parameters }
    }

    /// Returns the artifacts of the first rows: of all if there are at most `limit`, else of more.
    fn artifacts(self, snapshot: &SqliteSnapshot<'_>, limit: usize) -> Result<Vec<ArtifactId>> {
        let Self { by_condition, condition: WhereClause { sql, mut parameters }, .. } = self;
        let sql = format!("SELECT x.artifact FROM {by_condition} WHERE {sql} LIMIT ?");
        parameters.push(Value::Integer(limit_of(limit.saturating_add(1))));
        snapshot.rows(&sql, params_from_iter(parameters), |row| row.get(0))
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Returns the rows of one table that a condition selects.
fn rows_of(table: &'static str, condition: &str, parameters: Vec<Value>) -> ConditionRows {
    let condition = WhereClause { sql: condition.to_owned(), parameters };
    ConditionRows { by_condition: table, by_artifact: table, condition }
}

/// Returns the condition `first` on one value, and also `second` if there is another one.
fn both(first: &str, one: &str, second: &str, other: Option<&str>) -> WhereClause {
    let sql = other.map_or_else(|| first.to_owned(), |_| format!("{first} AND {second}"));
    WhereClause { sql, parameters: [Some(one), other].into_iter().flatten().map(text).collect() }
}

impl<'q> ResolvedCondition<'q> {
    pub(super) fn new(snapshot: &SqliteSnapshot<'_>, condition: &'q Condition) -> Result<Self> {
        let (captures, own, values, labels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut found = Self { condition, captures, own, values, labels };
        match condition {
            Condition::Mention { digest, .. } => found.captures = captures_stating(snapshot, digest)?,
            Condition::About { digest } => {
                for core in cores_of(snapshot, *digest)? {
                    found.own.extend(snapshot.artifact(core)?.map(|row| row.id));
                }
                found.captures = captures_stating(snapshot, digest)?;
            }
            Condition::AttributeLike { name, pattern } => {
                let sql = "SELECT id, value FROM attribute_value WHERE name = ?1";
                let mut values: Vec<(i64, String)> =
                    snapshot.rows(sql, [name], |row| Ok((row.get(0)?, row.get(1)?)))?;
                values.retain(|(_, value)| matches_pattern(pattern, value));
                found.values = values.into_iter().map(|(id, _)| id).collect();
            }
            Condition::Attribute { name, value } => {
                let sql = "SELECT id FROM attribute_value WHERE name = ?1 AND value = ?2";
                found.values = snapshot.rows(sql, (name, value), |row| row.get(0))?;
            }
            Condition::LabelLike { key, pattern } => {
                found.labels = snapshot.answer(sql::values_of_label(snapshot.connection(), key))?;
                found.labels.retain(|value| matches_pattern(pattern, value));
            }
            _ => {}
        }
        Ok(found)
    }

    /// Returns whether every artifact with a row of [`ResolvedCondition::rows`] matches.
    pub(super) fn is_exact(&self) -> bool {
        !matches!(self.condition, Condition::Mention { .. } | Condition::About { .. })
    }

    /// Returns the rows of the artifacts that match; `None` for mentions, which are in lists.
    pub(super) fn rows(&self) -> Option<ConditionRows> {
        let among = "IN (SELECT l.value FROM json_each(?) l)";
        Some(match self.condition {
            Condition::Mention { .. } | Condition::About { .. } => return None,
            Condition::AttributeLike { .. } => {
                let list = serde_json::Value::from(self.values.as_slice()).to_string();
                rows_of("attribute x", &format!("x.value {among}"), vec![Value::Text(list)])
            }
            Condition::LabelLike { key, .. } => {
                let list = serde_json::Value::from(self.labels.as_slice()).to_string();
                let parameters = vec![text(key), Value::Text(list)];
                rows_of("label x", &format!("x.key = ? AND x.value {among}"), parameters)
            }
            Condition::Attribute { .. } => {
                let id = self.values.first().map_or(Value::Null, |id| Value::Integer(*id));
                rows_of("attribute x", "x.value = ?", vec![id])
            }
            Condition::Range { name, least, most } => {
                let range = (least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX));
                ConditionRows {
                    by_condition: "attribute_value v CROSS JOIN attribute x ON x.value = v.id",
                    by_artifact: "attribute x CROSS JOIN attribute_value v ON v.id = x.value",
                    condition: WhereClause {
                        sql: "v.name = ? AND v.number BETWEEN ? AND ?".to_owned(),
                        parameters: vec![text(name), Value::Integer(range.0), Value::Integer(range.1)],
                    },
                }
            }
            Condition::Signature { state, key_id } => {
                let Some(state) = Option::<SignatureState>::from(*state) else {
                    let sql = "NOT EXISTS (SELECT 1 FROM signature s WHERE s.capture = x.id)";
                    return Some(rows_of("capture x", sql, Vec::new()));
                };
                ConditionRows {
                    by_condition: "signature s CROSS JOIN capture x ON x.id = s.capture",
                    by_artifact: "capture x CROSS JOIN signature s ON s.capture = x.id",
                    condition: both("s.state = ?", state.name(), "s.key_id = ?", key_id.as_deref()),
                }
            }
            Condition::Note { text } => {
                let folded = Value::Blob(text.to_lowercase().into_bytes());
                rows_of("note x", "instr(x.folded, ?) > 0", vec![folded])
            }
            Condition::Tagged { name: None } => rows_of("tag x", "1", Vec::new()),
            Condition::Tagged { name: Some(name) } => rows_of("tag x", "x.name = ?", vec![text(name)]),
            Condition::Pinned => rows_of("pin x", "1", Vec::new()),
            Condition::Label { key, value } => {
                let condition = both("x.key = ?", key, "x.value = ?", value.as_deref());
                ConditionRows { by_condition: "label x", by_artifact: "label x", condition }
            }
        })
    }

    /// Returns the artifacts that can match, sorted by row id, if there are at most `limit`.
    pub(super) fn candidates(
        &self,
        snapshot: &SqliteSnapshot<'_>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactId>>> {
        let mut ids = match self.rows() {
            Some(rows) => rows.artifacts(snapshot, limit)?,
            None if self.captures.len() > limit => return Ok(None),
            None => {
                let mut ids = self.own.clone();
                for capture in &self.captures {
                    ids.extend(snapshot.answer(snapshot.artifact_with(*capture))?);
                }
                ids
            }
        };
        if ids.len() > limit {
            return Ok(None);
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Some(ids))
    }

    /// Returns the match of every artifact that matches by itself, if all have the same one.
    pub(super) fn certain_match(&self) -> Option<Match> {
        self.condition.certain_match()
    }

    /// Returns the matches of an artifact.
    pub(super) fn matches(&self, snapshot: &SqliteSnapshot<'_>, artifact: ArtifactId) -> Result<Vec<Match>> {
        let mentions = |digest, group| {
            let mentions = snapshot.mentions_in(artifact, &self.captures, digest, group)?;
            Ok::<_, StorageError>(mentions.into_iter().map(Match::Mention))
        };
        match self.condition {
            Condition::Mention { group, digest } => Ok(mentions(*digest, group.as_deref())?.collect()),
            Condition::About { digest } => {
                let own = self.own.contains(&artifact).then_some(Match::Hash(*digest));
                Ok(own.into_iter().chain(mentions(*digest, None)?).collect())
            }
            Condition::Attribute { name, .. }
            | Condition::AttributeLike { name, .. }
            | Condition::Range { name, .. } => {
                let core = snapshot.core_of(artifact)?;
                let found = snapshot.answer(sql::attributes_named(snapshot.connection(), &[core], name))?;
                Ok(found.into_iter().flat_map(|found| self.condition.matches_of_attributes(found)).collect())
            }
            Condition::Signature { .. } => {
                let core = snapshot.core_of(artifact)?;
                let found = snapshot.answer(sql::captures(snapshot.connection(), &[core]))?;
                Ok(found.into_iter().flat_map(|found| self.condition.matches_of_captures(found)).collect())
            }
            Condition::Note { .. }
            | Condition::Tagged { .. }
            | Condition::Pinned
            | Condition::Label { .. }
            | Condition::LabelLike { .. } => {
                let core = snapshot.core_of(artifact)?;
                let found = snapshot.answer(sql::annotations(snapshot.connection(), &[core]))?;
                let matches = found.into_iter().map(|found| self.condition.matches_of_annotations(found));
                Ok(matches.flatten().collect())
            }
        }
    }
}

/// Returns the captures that may mention a digest, sorted.
fn captures_stating(snapshot: &SqliteSnapshot<'_>, digest: &Digest) -> Result<Vec<i64>> {
    let captures = snapshot.captures_stating(mention_index::key(digest));
    let mut captures = captures.map_err(|error| snapshot.failed(error))?;
    captures.sort_unstable();
    Ok(captures)
}

/// Returns the artifacts that have a digest as their hash or as that of a capture.
fn cores_of(snapshot: &SqliteSnapshot<'_>, digest: Digest) -> Result<Vec<CoreHash>> {
    let prefix = digest.into();
    let artifacts = snapshot.artifacts_with_prefix(&prefix, u32::MAX)?;
    let captures = snapshot.captures_beginning(&prefix, u32::MAX)?.into_iter();
    Ok(artifacts.into_iter().chain(captures.map(|(artifact, _)| artifact)).collect())
}
