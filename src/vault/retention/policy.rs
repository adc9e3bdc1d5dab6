//! Rules of what to keep.

use std::fmt;
use std::str::FromStr;

use chrono::Duration;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::period::Period;
use crate::storage::{Condition, Label, is_tag};
use crate::vault::api::TimeBasis;

/// A retention policy: an artifact is kept if any rule keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = RetentionPolicy)]
pub struct Policy {
    /// Keep this number of the newest artifacts of each group. 0 as the only rule keeps none.
    pub keep_last: Option<usize>,
    /// Keep artifacts whose time is at most this number of milliseconds before now. If the limit cannot be computed,
    /// all are kept.
    #[serde(rename = "keep_within_ms", with = "milliseconds")]
    #[schema(value_type = Option<i64>)]
    pub keep_within: Option<Duration>,
    /// Keep the newest artifact of each of a number of last non-empty periods, and the oldest of a group while there
    /// are fewer.
    pub keep_periods: Vec<PeriodRule>,
    /// Keep artifacts with a tag that matches one of these patterns: a tag, or the beginning of one and `*`.
    #[schema(value_type = Vec<String>)]
    pub keep_tags: Vec<TagPattern>,
    /// Keep artifacts with one of these labels.
    pub keep_labels: Vec<LabelRule>,
    /// The time that is used. Artifacts without this time are kept.
    pub by: TimeBasis,
    /// The keys by which artifacts are grouped: `kind`, `label:` and the key of a label, or the name of an attribute.
    /// Without any, all artifacts are one group.
    #[schema(value_type = Vec<String>)]
    pub group_by: Vec<GroupKey>,
    /// The ids of the kinds that the policy applies to; all if empty. Other artifacts are kept, and there is no
    /// decision on them.
    pub kinds: Vec<String>,
    /// The labels that an artifact must all have for the policy to apply to it; any artifact if empty. Other artifacts
    /// are kept, and there is no decision on them.
    pub labels: Vec<LabelRule>,
    /// Remove artifacts even if a kept artifact links to them. Artifacts whose bytes a kept artifact contains are still
    /// kept.
    pub ignore_links: bool,
}

impl Default for Policy {
    /// Returns a policy without rules, by the time when artifacts were last seen, with a group for each kind.
    fn default() -> Self {
        Self {
            keep_last: None,
            keep_within: None,
            keep_periods: Vec::new(),
            keep_tags: Vec::new(),
            keep_labels: Vec::new(),
            by: TimeBasis::LastSeen,
            group_by: vec![GroupKey::Kind],
            kinds: Vec::new(),
            labels: Vec::new(),
            ignore_links: false,
        }
    }
}

impl Policy {
    /// Returns whether a rule can keep anything. Keeping the last 0 counts as a rule: it states explicitly that nothing
    /// is to be kept.
    #[must_use]
    pub fn keeps_something(&self) -> bool {
        self.keep_last.is_some()
            || self.keep_within.is_some_and(|within| within > Duration::zero())
            || self.keep_periods.iter().any(|rule| rule.count > 0)
            || !self.keep_tags.is_empty()
            || !self.keep_labels.is_empty()
    }

    /// Returns whether artifacts are grouped by attributes.
    pub(super) fn has_attributes(&self) -> bool {
        self.group_by.iter().any(|key| matches!(key, GroupKey::Attribute(_)))
    }
}

/// A label: any value of a key, or one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RetentionLabel)]
pub struct LabelRule {
    /// The key.
    pub key: String,
    /// The value; any if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl LabelRule {
    /// Returns whether `label` is such a label.
    pub(super) fn matches(&self, label: &Label) -> bool {
        self.key == label.key && self.value.as_ref().is_none_or(|value| *value == label.value)
    }

    /// Returns the condition that an artifact has such a label.
    pub(super) fn condition(&self) -> Condition {
        Condition::Label { key: self.key.clone(), value: self.value.clone() }
    }
}

impl fmt::Display for LabelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.key),
            None => f.write_str(&self.key),
        }
    }
}

/// A rule that keeps the newest artifact of each of the last periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PeriodRule {
    /// The type of period.
    pub period: Period,
    /// The number of periods.
    pub count: usize,
}

/// A key by which artifacts are grouped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum GroupKey {
    /// The kind.
    Kind,
    /// The value of the label with this key, if there is one.
    Label(String),
    /// The set of values of the attribute with this name, which may be empty.
    Attribute(String),
}

impl GroupKey {
    /// The name of the key that is the kind.
    const KIND: &'static str = "kind";

    /// The beginning of the name of a key that is a label.
    const LABEL: &'static str = "label:";

    /// Returns `kind`, `label:` and the key of the label, or the name of the attribute.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Kind => Self::KIND.to_owned(),
            Self::Label(key) => format!("{}{key}", Self::LABEL),
            Self::Attribute(name) => name.clone(),
        }
    }
}

impl From<String> for GroupKey {
    fn from(name: String) -> Self {
        match name.strip_prefix(Self::LABEL) {
            Some(key) => Self::Label(key.to_owned()),
            None if name == Self::KIND => Self::Kind,
            None => Self::Attribute(name),
        }
    }
}

impl From<GroupKey> for String {
    fn from(key: GroupKey) -> Self {
        key.name()
    }
}

/// Durations as numbers of milliseconds.
mod milliseconds {
    use chrono::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[expect(clippy::ref_option, reason = "serde passes references")]
    pub(super) fn serialize<S: Serializer>(
        length: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        length.map(|length| length.num_milliseconds()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let length: Option<i64> = Option::deserialize(deserializer)?;
        let read = |milliseconds| {
            Duration::try_milliseconds(milliseconds)
                .ok_or_else(|| de::Error::custom("the duration is out of range"))
        };
        length.map(read).transpose()
    }
}

/// A tag, or a prefix of tags: `release/1`, `release/*`, `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TagPattern {
    /// The tag or the prefix.
    text: String,
    is_prefix: bool,
}

/// The error for an invalid tag pattern, which no tag could match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is empty.
    #[error("it is empty, but tags are not")]
    Empty,
    /// A `*` is not at the end.
    #[error("a * can only be the last character, where it matches any suffix")]
    Star,
    /// No tag contains such characters or is this long.
    #[error("no tag can match it: a tag consists of 1 to 100 characters of a-z, A-Z, 0-9, - _ . /")]
    NotATag,
}

impl TagPattern {
    /// Returns whether `tag` matches.
    #[must_use]
    pub fn matches(&self, tag: &str) -> bool {
        if self.is_prefix { tag.starts_with(&self.text) } else { tag == self.text }
    }

    /// Returns whether it is a prefix pattern.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        self.is_prefix
    }
}

impl FromStr for TagPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (name, is_prefix) = text.strip_suffix('*').map_or((text, false), |prefix| (prefix, true));
        match name {
            "" if !is_prefix => Err(PatternError::Empty),
            name if name.contains('*') => Err(PatternError::Star),
            name if !name.is_empty() && !is_tag(name) => Err(PatternError::NotATag),
            name => Ok(Self { text: name.to_owned(), is_prefix }),
        }
    }
}

impl TryFrom<String> for TagPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<TagPattern> for String {
    fn from(pattern: TagPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for TagPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_prefix { "*" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn policies_are_written_as_they_are_read() {
        let text = r#"{
            "keep_last": 3, "keep_within_ms": 5400000, "keep_periods": [{"period": "day", "count": 7}],
            "keep_tags": ["release/*"], "keep_labels": [{"key": "branch", "value": "main"}, {"key": "release"}],
            "by": "created", "group_by": ["kind", "model_id", "label:branch"], "kinds": ["a"],
            "labels": [{"key": "ci"}], "ignore_links": true
        }"#;
        let policy: Policy = serde_json::from_str(text).unwrap();
        let label = |key: &str, value: Option<&str>| LabelRule {
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        let expected = Policy {
            keep_last: Some(3),
            keep_within: Some(Duration::minutes(90)),
            keep_periods: vec![PeriodRule { period: Period::Day, count: 7 }],
            keep_tags: vec!["release/*".parse().unwrap()],
            keep_labels: vec![label("branch", Some("main")), label("release", None)],
            by: TimeBasis::Created,
            group_by: vec![
                GroupKey::Kind,
                GroupKey::Attribute("model_id".to_owned()),
                GroupKey::Label("branch".to_owned()),
            ],
            kinds: vec!["a".to_owned()],
            labels: vec![label("ci", None)],
            ignore_links: true,
        };
        assert_eq!(policy, expected);
        assert_eq!(
            serde_json::to_value(&policy).unwrap(),
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        );
        assert_eq!(serde_json::from_str::<Policy>("{}").unwrap(), Policy::default());
    }

    #[test]
    fn rules_that_nothing_could_match_are_rejected() {
        for text in [
            r#"{"keep_tags": [""]}"#,
            r#"{"keep_tags": ["a*b"]}"#,
            r#"{"keep_last": -1}"#,
            r#"{"keep_within_ms": 1e30}"#,
            r#"{"keep_lasts": 1}"#,
        ] {
            serde_json::from_str::<Policy>(text).unwrap_err();
        }
    }

    #[test]
    fn what_can_match_nothing_is_not_a_pattern() {
        for (text, error) in [
            ("", PatternError::Empty),
            ("**", PatternError::Star),
            ("a*b", PatternError::Star),
            ("*a", PatternError::Star),
            (" base", PatternError::NotATag),
            ("base ", PatternError::NotATag),
            ("release/?", PatternError::NotATag),
            ("@base", PatternError::NotATag),
            (&"a".repeat(101), PatternError::NotATag),
        ] {
            assert_eq!(text.parse::<TagPattern>(), Err(error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_pattern_matches_a_tag_and_is_written_as_it_is_read(text in "[a-c/.*@ ]{0,6}") {
            if let Ok(pattern) = text.parse::<TagPattern>() {
                let tag = text.replace('*', "x");
                prop_assert!(is_tag(&tag) && pattern.matches(&tag), "{}", tag);
                prop_assert_eq!(pattern.to_string(), text);
            }
        }
    }
}
