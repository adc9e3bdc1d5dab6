//! Filters as conditions of a statement.

use super::mentions::list_has;
use super::times::column;
use crate::artifact::{SignatureName, relation};
use crate::digest::Digest;
use crate::storage::interface::{Condition, Filter, TimePeriod};
use crate::storage::postgres::parameter::Parameter;
use crate::storage::postgres::text::to_stored;
use crate::storage::sql::{ceil_millis, text_key};

/// The parameters of a statement while its text is written.
#[derive(Default)]
pub(super) struct StatementParameters {
    values: Vec<Box<dyn Parameter>>,
}

impl StatementParameters {
    /// Adds a parameter, and returns how the statement names it.
    pub(super) fn bind(&mut self, value: impl Parameter + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    fn bind_text(&mut self, text: &str) -> String {
        self.bind(to_stored(text).into_owned())
    }

    /// Returns the parameters in their order.
    pub(super) fn parameters(&self) -> Vec<&dyn Parameter> {
        self.values.iter().map(|value| &**value).collect()
    }

    /// Returns the condition that the artifact `a` matches a filter.
    pub(super) fn matching(&mut self, filter: &Filter) -> String {
        let mut all = self.selecting(filter);
        for condition in &filter.conditions {
            let artifacts = self.with(condition);
            all.push(if filter.through_members {
                format!("a.id IN ({})", self.and_containers(&artifacts))
            } else {
                format!("a.id IN ({artifacts})")
            });
        }
        all.join(" AND ")
    }

    /// Returns the condition that the artifact `a` matches a filter by itself, which is examined for each artifact.
    pub(super) fn matching_each(&mut self, filter: &Filter) -> String {
        format!("{} AND {}", self.selecting(filter).join(" AND "), self.examined(filter))
    }

    /// Returns the condition that the artifact `a` matches each condition of a filter, which is examined for each artifact.
    pub(super) fn examined(&mut self, filter: &Filter) -> String {
        let mut all = vec!["true".to_owned()];
        for condition in &filter.conditions {
            // By an expression, attributes are read through the artifact, which has few, and not by an index of their names.
            let artifacts = self.having(condition, "name || ''");
            all.push(format!("EXISTS (SELECT 1 FROM ({artifacts}) x WHERE x.artifact = a.id OFFSET 0)"));
        }
        all.join(" AND ")
    }

    /// Returns the conditions on the kind, the times and the hash of the artifact `a`.
    pub(super) fn selecting(&mut self, filter: &Filter) -> Vec<String> {
        let mut all = vec!["true".to_owned()];
        if !filter.kinds.is_empty() {
            let kinds: Vec<String> = filter.kinds.iter().map(|kind| to_stored(kind).into_owned()).collect();
            let kinds = self.bind(kinds);
            all.push(format!("a.kind IN (SELECT id FROM kind WHERE name = ANY({kinds}))"));
        }
        all.extend(filter.period.map(|period| self.within(&period)));
        all.extend(filter.digits.as_ref().map(|digits| self.beginning_with(digits)));
        if let Some(among) = &filter.among {
            let cores = self.bind(among.clone());
            all.push(format!("a.core = ANY({cores})"));
        }
        all
    }

    fn within(&mut self, period: &TimePeriod) -> String {
        let time = column(period.basis);
        let mut all = vec![format!("{time} IS NOT NULL")];
        if let Some(since) = period.since {
            all.push(format!("{time} >= {}", self.bind(ceil_millis(since))));
        }
        if let Some(until) = period.until {
            all.push(format!("{time} < {}", self.bind(ceil_millis(until))));
        }
        all.join(" AND ")
    }

    fn beginning_with(&mut self, digits: &str) -> String {
        match (padded(digits, '0'), padded(digits, 'f')) {
            (Some(low), Some(high)) => {
                let (low, high) = (self.bind(low), self.bind(high));
                format!("a.core BETWEEN {low} AND {high}")
            }
            _ => "false".to_owned(),
        }
    }

    /// Returns a query of the numbers of the artifacts that match a condition themselves.
    pub(super) fn with(&mut self, condition: &Condition) -> String {
        self.having(condition, "name")
    }

    /// Like [`StatementParameters::with`], with an expression for the names of attributes.
    fn having(&mut self, condition: &Condition, name_of: &str) -> String {
        match condition {
            Condition::Mention { group, digest } => {
                let key = self.bind(digest.key());
                let digest = self.bind(*digest);
                let of_group = group.as_ref().map(|group| {
                    let group = self.bind_text(group);
                    format!(
                        "AND k.group_id = (SELECT min(r.group_id) FROM role r WHERE r.role_group = {group})"
                    )
                });
                format!(
                    "SELECT c.artifact FROM mention_key k
                       JOIN mention_list l ON l.capture = k.capture AND l.group_id = k.group_id
                       JOIN capture c ON c.id = k.capture
                      WHERE k.key = {key} {} AND {}",
                    of_group.unwrap_or_default(),
                    list_has(&digest)
                )
            }
            Condition::About { digest } => {
                let mention = self.with(&Condition::Mention { group: None, digest: *digest });
                let own = self.bind(*digest);
                format!(
                    "{mention}
                     UNION SELECT id FROM artifact WHERE core = {own}
                     UNION SELECT artifact FROM capture WHERE digest = {own}"
                )
            }
            Condition::AttributeLike { name, pattern } => {
                let (name, pattern) = (self.bind_text(name), self.bind_text(&like(pattern)));
                format!("SELECT artifact FROM attribute WHERE {name_of} = {name} AND value LIKE {pattern}")
            }
            Condition::LabelLike { key, pattern } => {
                let (key, pattern) = (self.bind_text(key), self.bind_text(&like(pattern)));
                format!("SELECT artifact FROM label WHERE key = {key} AND value LIKE {pattern}")
            }
            Condition::Attribute { name, value } => {
                let name = self.bind_text(name);
                let key = self.bind(text_key(value));
                let value = self.bind_text(value);
                format!(
                    "SELECT artifact FROM attribute WHERE {name_of} = {name} AND key = {key} AND value = {value}"
                )
            }
            Condition::Range { name, least, most } => {
                let name = self.bind_text(name);
                let least = self.bind(least.unwrap_or(i64::MIN));
                let most = self.bind(most.unwrap_or(i64::MAX));
                format!(
                    "SELECT artifact FROM attribute WHERE {name_of} = {name} AND number BETWEEN {least} AND {most}"
                )
            }
            Condition::Signature { state: SignatureName::Unsigned, .. } => {
                "SELECT artifact FROM capture WHERE signature IS NULL".to_owned()
            }
            Condition::Signature { state, key_id } => {
                let state = self.bind(state.name());
                let by_key = key_id.as_ref().map(|key_id| format!("AND key_id = {}", self.bind_text(key_id)));
                format!(
                    "SELECT artifact FROM capture WHERE signature = {state} {}",
                    by_key.unwrap_or_default()
                )
            }
            Condition::Note { text } => {
                let text = self.bind(text.to_lowercase().into_bytes());
                format!("SELECT artifact FROM note WHERE position({text} IN folded) > 0")
            }
            Condition::Tagged { name: None } => "SELECT artifact FROM tag".to_owned(),
            Condition::Tagged { name: Some(name) } => {
                format!("SELECT artifact FROM tag WHERE name = {}", self.bind_text(name))
            }
            Condition::Pinned => "SELECT artifact FROM pin".to_owned(),
            Condition::Label { key, value } => {
                let key = self.bind_text(key);
                let with_value = value.as_ref().map(|value| format!("AND value = {}", self.bind_text(value)));
                format!("SELECT artifact FROM label WHERE key = {key} {}", with_value.unwrap_or_default())
            }
        }
    }

    /// Returns a query of these artifacts and those that contain one of them.
    fn and_containers(&mut self, artifacts: &str) -> String {
        let relation = self.bind(relation::CONTAINS);
        format!(
            "WITH own AS MATERIALIZED ({artifacts})
             SELECT artifact FROM own
             UNION ALL
             SELECT e.artifact FROM own JOIN artifact m ON m.id = own.artifact
               JOIN edge e ON e.target = m.core AND e.artifact <> m.id JOIN role r ON r.id = e.role
              WHERE r.relation = {relation}"
        )
    }
}

/// Returns a pattern in which `*` stands for any text as one of LIKE.
fn like(pattern: &str) -> String {
    let mut like = String::with_capacity(pattern.len());
    for character in pattern.chars() {
        match character {
            '*' => like.push('%'),
            '%' | '_' | '\\' => like.extend(['\\', character]),
            _ => like.push(character),
        }
    }
    like
}

/// Returns the digest that begins with these digits and continues with `digit`, or `None` if none begins with them.
fn padded(digits: &str, digit: char) -> Option<Digest> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if !digits.bytes().all(is_hex) || digits.len() > 64 {
        return None;
    }
    let whole: String = digits.chars().chain(std::iter::repeat(digit)).take(64).collect();
    Digest::parse_hex(&whole)
}
