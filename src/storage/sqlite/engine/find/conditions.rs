//! Conditions: which artifacts can match one, and how an artifact matches.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Params, params_from_iter};

use crate::artifact::{Signature, SignatureState};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::Result;
use crate::storage::interface::{Condition, Match, matches_pattern};
use crate::storage::sqlite::mention_index;
use crate::storage::sqlite::read::SqliteSnapshot;
use crate::storage::sqlite::rows::{ArtifactId, limit_of};

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
pub(super) enum ResolvedCondition<'q> {
    Mention {
        group: Option<&'q str>,
        digest: Digest,
        /// The captures that may mention the digest, sorted.
        captures: Vec<i64>,
    },
    About {
        digest: Digest,
        /// The captures that may mention the digest, sorted.
        captures: Vec<i64>,
        /// The artifacts that have it as their hash or as that of a capture.
        own: Vec<ArtifactId>,
    },
    AttributeLike {
        name: &'q str,
        pattern: &'q str,
        /// The row ids of the values that match.
        ids: Vec<i64>,
    },
    LabelLike {
        key: &'q str,
        pattern: &'q str,
        /// The row ids of the labels that match.
        ids: Vec<i64>,
    },
    Attribute {
        name: &'q str,
        value: &'q str,
        /// The row id of the value; `None` if no artifact has it.
        id: Option<i64>,
    },
    Range {
        name: &'q str,
        least: i64,
        most: i64,
    },
    Signature {
        state: SignatureState,
        key_id: Option<&'q str>,
    },
    Unsigned,
    /// The text in lowercase.
    Note(String),
    Tagged(Option<&'q str>),
    Pinned,
    Label {
        key: &'q str,
        value: Option<&'q str>,
    },
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

/// The condition that a row has one of the values in a list.
const AMONG: &str = "x.value IN (SELECT l.value FROM json_each(?) l)";

/// Returns row ids as the parameter of [`AMONG`].
fn list(ids: &[i64]) -> Value {
    Value::Text(serde_json::Value::from(ids).to_string())
}

impl<'q> ResolvedCondition<'q> {
    pub(super) fn new(snapshot: &SqliteSnapshot<'_>, condition: &'q Condition) -> Result<Self> {
        Ok(match condition {
            Condition::Mention { group, digest } => {
                let captures = captures_stating(snapshot, digest)?;
                Self::Mention { group: group.as_deref(), digest: *digest, captures }
            }
            Condition::About { digest } => {
                let mut own = Vec::new();
                for core in cores_of(snapshot, *digest)? {
                    own.extend(snapshot.artifact(core)?.map(|row| row.id));
                }
                Self::About { digest: *digest, captures: captures_stating(snapshot, digest)?, own }
            }
            Condition::AttributeLike { name, pattern } => {
                let sql = "SELECT id, value FROM attribute_value WHERE name = ?1";
                Self::AttributeLike { name, pattern, ids: matching(snapshot, sql, name, pattern)? }
            }
            Condition::LabelLike { key, pattern } => {
                let sql = "SELECT id, value FROM label_value WHERE key = ?1";
                Self::LabelLike { key, pattern, ids: matching(snapshot, sql, key, pattern)? }
            }
            Condition::Attribute { name, value } => {
                let sql = "SELECT id FROM attribute_value WHERE name = ?1 AND value = ?2";
                let id = snapshot.rows(sql, (name, value), |row| row.get(0))?.pop();
                Self::Attribute { name, value, id }
            }
            Condition::Range { name, least, most } => {
                let (least, most) = (least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX));
                Self::Range { name, least, most }
            }
            Condition::Signature { state, key_id } => match Option::from(*state) {
                Some(state) => Self::Signature { state, key_id: key_id.as_deref() },
                None => Self::Unsigned,
            },
            Condition::Note { text } => Self::Note(text.to_lowercase()),
            Condition::Tagged { name } => Self::Tagged(name.as_deref()),
            Condition::Pinned => Self::Pinned,
            Condition::Label { key, value } => Self::Label { key, value: value.as_deref() },
        })
    }

    /// Returns whether every artifact with a row of [`ResolvedCondition::rows`] matches.
    pub(super) fn is_exact(&self) -> bool {
        !matches!(self, Self::Mention { .. } | Self::About { .. } | Self::Note(_))
    }

    /// Returns the rows of the artifacts that can match; `None` for mentions, which are in lists.
    pub(super) fn rows(&self) -> Option<ConditionRows> {
        let text = |text: &str| Value::Text(text.to_owned());
        let rows = |table, condition: &str, parameters: Vec<Value>| {
            let condition = WhereClause { sql: condition.to_owned(), parameters };
            ConditionRows { by_condition: table, by_artifact: table, condition }
        };
        let both = |first: &str, one: &str, second: &str, other: Option<&str>| {
            let sql = other.map_or_else(|| first.to_owned(), |_| format!("{first} AND {second}"));
            WhereClause { sql, parameters: [Some(one), other].into_iter().flatten().map(text).collect() }
        };
        Some(match self {
            Self::Mention { .. } | Self::About { .. } => return None,
            Self::AttributeLike { ids, .. } => rows("attribute x", AMONG, vec![list(ids)]),
            Self::LabelLike { ids, .. } => rows("label x", AMONG, vec![list(ids)]),
            Self::Attribute { id, .. } => {
                let id = id.map_or(Value::Null, Value::Integer);
                rows("attribute x", "x.value = ?", vec![id])
            }
            Self::Range { name, least, most } => ConditionRows {
                by_condition: "attribute_value v CROSS JOIN attribute x ON x.value = v.id",
                by_artifact: "attribute x CROSS JOIN attribute_value v ON v.id = x.value",
                condition: WhereClause {
                    sql: "v.name = ? AND v.number BETWEEN ? AND ?".to_owned(),
                    parameters: vec![text(name), Value::Integer(*least), Value::Integer(*most)],
                },
            },
            Self::Signature { state, key_id } => ConditionRows {
                by_condition: "signature s CROSS JOIN capture x ON x.id = s.capture",
                by_artifact: "capture x CROSS JOIN signature s ON s.capture = x.id",
                condition: both("s.state = ?", state.name(), "s.key_id = ?", *key_id),
            },
            Self::Unsigned => {
                let sql = "NOT EXISTS (SELECT 1 FROM signature s WHERE s.capture = x.id)";
                rows("capture x", sql, Vec::new())
            }
            Self::Note(_) => rows("note x", "1", Vec::new()),
            Self::Tagged(None) => rows("tag x", "1", Vec::new()),
            Self::Tagged(Some(name)) => rows("tag x", "x.name = ?", vec![text(name)]),
            Self::Pinned => rows("pin x", "1", Vec::new()),
            Self::Label { key, value } => ConditionRows {
                by_condition: "label_value v CROSS JOIN label x ON x.value = v.id",
                by_artifact: "label x CROSS JOIN label_value v ON v.id = x.value",
                condition: both("v.key = ?", key, "v.value = ?", *value),
            },
        })
    }

    /// Returns the artifacts that can match, sorted by row id, if there are at most `limit`.
    pub(super) fn candidates(
        &self,
        snapshot: &SqliteSnapshot<'_>,
        limit: usize,
    ) -> Result<Option<Vec<ArtifactId>>> {
        let mut ids = match self {
            Self::Mention { captures, .. } | Self::About { captures, .. } if captures.len() > limit => {
                return Ok(None);
            }
            Self::Mention { captures, .. } | Self::About { captures, .. } => {
                let mut ids = if let Self::About { own, .. } = self { own.clone() } else { Vec::new() };
                for capture in captures {
                    ids.extend(snapshot.artifact_with(*capture).map_err(|error| snapshot.failed(error))?);
                }
                ids
            }
            _ => self.rows().map_or(Ok(Vec::new()), |rows| rows.artifacts(snapshot, limit))?,
        };
        if ids.len() > limit {
            return Ok(None);
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Some(ids))
    }

    /// Adds the matches of an artifact.
    pub(super) fn add_matches(
        &self,
        snapshot: &SqliteSnapshot<'_>,
        artifact: ArtifactId,
        matches: &mut Vec<Match>,
    ) -> Result<()> {
        match self {
            Self::Mention { group, digest, captures } => {
                let mentions = snapshot.mentions_in(artifact, captures, *digest, *group)?;
                matches.extend(mentions.into_iter().map(Match::Mention));
            }
            Self::About { digest, captures, own } => {
                matches.extend(own.contains(&artifact).then_some(Match::Hash(*digest)));
                let mentions = snapshot.mentions_in(artifact, captures, *digest, None)?;
                matches.extend(mentions.into_iter().map(Match::Mention));
            }
            Self::AttributeLike { name, pattern, .. } => {
                let sql = "SELECT DISTINCT v.value FROM attribute t JOIN attribute_value v ON v.id = t.value
                            WHERE t.artifact = ?1 AND v.name = ?2 ORDER BY v.value";
                let values: Vec<String> = snapshot.rows(sql, (artifact.0, name), |row| row.get(0))?;
                let values = values.into_iter().filter(|value| matches_pattern(pattern, value));
                matches.extend(values.map(|value| Match::Attribute { name: (*name).to_owned(), value }));
            }
            Self::LabelLike { key, pattern, .. } => {
                let labels = snapshot.labels_of(artifact)?.into_iter().filter(|label| label.key == *key);
                let labels = labels.filter(|label| matches_pattern(pattern, &label.value));
                matches.extend(labels.map(|label| Match::Label { key: label.key, value: label.value }));
            }
            Self::Attribute { name, value, id } => {
                let sql = "SELECT 1 FROM attribute WHERE value = ?1 AND artifact = ?2";
                if id.is_some() && exists(snapshot, sql, (id, artifact.0))? {
                    let (name, value) = ((*name).to_owned(), (*value).to_owned());
                    matches.push(Match::Attribute { name, value });
                }
            }
            Self::Range { name, least, most } => {
                let sql = "SELECT v.value FROM attribute t JOIN attribute_value v ON v.id = t.value
                            WHERE t.artifact = ?1 AND v.name = ?2 AND v.number BETWEEN ?3 AND ?4
                            ORDER BY v.number";
                let values = snapshot.rows(sql, (artifact.0, name, least, most), |row| row.get(0))?;
                let named = |value: String| Match::Attribute { name: (*name).to_owned(), value };
                matches.extend(values.into_iter().map(named));
            }
            Self::Signature { state, key_id } => matches.extend(signed(snapshot, artifact, *state, *key_id)?),
            Self::Unsigned => {
                let sql = "SELECT 1 FROM capture c WHERE c.artifact = ?1
                              AND NOT EXISTS (SELECT 1 FROM signature s WHERE s.capture = c.id) LIMIT 1";
                if exists(snapshot, sql, [artifact.0])? {
                    matches.push(Match::Unsigned);
                }
            }
            Self::Note(text) => {
                let note = snapshot.note_of(artifact)?.map(|note| note.text);
                matches.extend(note.filter(|note| note.to_lowercase().contains(text)).map(Match::Note));
            }
            Self::Tagged(name) => {
                let tags = snapshot.tags(artifact)?.into_iter().map(|tag| tag.name);
                matches.extend(tags.filter(|tag| name.is_none_or(|name| name == tag)).map(Match::Tag));
            }
            Self::Label { key, value } => {
                let labels = snapshot.labels_of(artifact)?.into_iter().filter(|label| label.key == *key);
                let labels = labels.filter(|label| value.is_none_or(|value| value == label.value));
                matches.extend(labels.map(|label| Match::Label { key: label.key, value: label.value }));
            }
            Self::Pinned => matches.extend(snapshot.pin_of(artifact)?.map(|_| Match::Pinned)),
        }
        Ok(())
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

/// Returns the row ids of the values of `name`, which `sql` selects, that match a pattern.
fn matching(snapshot: &SqliteSnapshot<'_>, sql: &str, name: &str, pattern: &str) -> Result<Vec<i64>> {
    let values: Vec<(i64, String)> = snapshot.rows(sql, [name], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(values.into_iter().filter(|(_, value)| matches_pattern(pattern, value)).map(|(id, _)| id).collect())
}

/// Returns the signed captures of an artifact in this state, in the order in which they were added.
fn signed(
    snapshot: &SqliteSnapshot<'_>,
    artifact: ArtifactId,
    state: SignatureState,
    key_id: Option<&str>,
) -> Result<Vec<Match>> {
    let sql = "SELECT b.digest, s.key_id
                 FROM capture c JOIN signature s ON s.capture = c.id LEFT JOIN blob b ON b.id = c.blob
                WHERE c.artifact = ?1 AND s.state = ?2 AND (?3 IS NULL OR s.key_id = ?3) ORDER BY c.id";
    snapshot.rows(sql, (artifact.0, state.name(), key_id), |row| {
        let capture: CaptureHash = row.get(0)?;
        Ok(Match::Signature { capture, signature: Signature { state, key_id: row.get(1)? } })
    })
}

fn exists(snapshot: &SqliteSnapshot<'_>, sql: &str, parameters: impl Params) -> Result<bool> {
    let find = || -> rusqlite::Result<Option<i64>> {
        snapshot.connection().prepare_cached(sql)?.query_row(parameters, |row| row.get(0)).optional()
    };
    Ok(find().map_err(|error| snapshot.failed(error))?.is_some())
}
