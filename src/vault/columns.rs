//! Columns: the properties of artifacts that lists, formats and pages show, with their values. Front ends write the
//! values in their own way.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::api::ArtifactSummary;
use super::details::{ArtifactDetails, AttributeSummary, CaptureSummary, Detail};
use super::find::ArtifactMatch;
use super::list::{ListMember, ListRow};
use crate::artifact::{AttributeInfo, FINISHED_AT, SignatureName, ValueType};
use crate::digest::CoreHash;
use crate::formats;
use crate::storage::TimeBasis;

/// A property of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactColumn {
    /// The core hash.
    Core,
    /// The first digits of the core hash.
    Hash,
    /// The kind, or the kinds of the artifacts of a row.
    Kind,
    /// The time at which it was last added or seen again.
    Seen,
    /// The time at which it was first added.
    Added,
    /// The creation time that it states.
    Created,
    /// The time since its creation, or since another of its times.
    Age,
    /// The size of its captures, with a unit.
    Size,
    /// The size of its captures in bytes.
    Bytes,
    /// The number of its captures.
    Captures,
    /// The states of the signatures of its captures.
    Signature,
    /// The key ids that its captures state.
    KeyId,
    /// The paths that its captures were read from.
    SourcePath,
    /// The values by which a person recognizes it.
    Label,
    /// Its tags.
    Tags,
    /// Its labels.
    Labels,
    /// Its note.
    Note,
    /// The reasons for which it was found.
    Matches,
    /// The values of the attribute with this name.
    Attribute(&'static str),
    /// The largest value of this attribute, as people write it, under a name without its unit.
    Short(AttributeInfo),
}

/// The form of the values of a column, by which tables arrange it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnForm {
    /// Whole hashes.
    Hash,
    /// Short texts that are misleading if a part is missing.
    Word,
    /// Times.
    Time,
    /// Numbers, which are aligned to the right.
    Number,
    /// Other texts.
    Text,
}

/// The columns of all artifacts, by name. Attributes of kinds follow them.
const OWN: [(&str, ArtifactColumn); 18] = [
    ("core", ArtifactColumn::Core),
    ("hash", ArtifactColumn::Hash),
    ("kind", ArtifactColumn::Kind),
    ("seen", ArtifactColumn::Seen),
    ("added", ArtifactColumn::Added),
    ("created", ArtifactColumn::Created),
    ("age", ArtifactColumn::Age),
    ("size", ArtifactColumn::Size),
    ("bytes", ArtifactColumn::Bytes),
    ("captures", ArtifactColumn::Captures),
    ("signature", ArtifactColumn::Signature),
    ("key_id", ArtifactColumn::KeyId),
    ("source_path", ArtifactColumn::SourcePath),
    ("label", ArtifactColumn::Label),
    ("tags", ArtifactColumn::Tags),
    ("labels", ArtifactColumn::Labels),
    ("note", ArtifactColumn::Note),
    ("matches", ArtifactColumn::Matches),
];

impl ArtifactColumn {
    /// Returns the column with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let own = OWN.iter().find(|(own, _)| *own == name).map(|(_, column)| *column);
        let attribute = || formats::attribute(name).map(|info| Self::Attribute(info.name));
        let short = || shortened().find(|(short, _)| *short == name).map(|(_, info)| Self::Short(info));
        own.or_else(attribute).or_else(short)
    }

    /// Returns the names of all columns.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let own = OWN.iter().map(|(name, _)| *name);
        let attributes = formats::attributes().into_iter().map(|info| info.name);
        own.chain(attributes).chain(shortened().map(|(name, _)| name)).collect()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Attribute(name) => name,
            Self::Short(info) => short_name(info).unwrap_or(info.name),
            own => OWN.iter().find(|(_, column)| *column == own).map_or("", |(name, _)| name),
        }
    }

    /// Returns the detail of an artifact that the column shows, if it is one. `by` is the time that ages are of.
    #[must_use]
    pub fn detail(self, by: TimeBasis) -> Option<Detail> {
        match self {
            Self::Age if by == TimeBasis::Finished => Some(Detail::Attributes),
            Self::Size | Self::Bytes | Self::Captures | Self::Signature | Self::KeyId | Self::SourcePath => {
                Some(Detail::Captures)
            }
            Self::Label | Self::Attribute(_) | Self::Short(_) => Some(Detail::Attributes),
            Self::Tags | Self::Labels | Self::Note => Some(Detail::Annotations),
            Self::Core
            | Self::Hash
            | Self::Kind
            | Self::Seen
            | Self::Added
            | Self::Created
            | Self::Age
            | Self::Matches => None,
        }
    }

    /// Returns the name of the attribute that it shows.
    #[must_use]
    pub fn attribute(self) -> Option<&'static str> {
        match self {
            Self::Attribute(name) => Some(name),
            Self::Short(info) => Some(info.name),
            _ => None,
        }
    }

    /// Returns the form of its values.
    #[must_use]
    pub fn form(self) -> ColumnForm {
        match self {
            Self::Core => ColumnForm::Hash,
            Self::Hash | Self::Kind | Self::Signature => ColumnForm::Word,
            Self::Seen | Self::Added | Self::Created | Self::Age => ColumnForm::Time,
            Self::Short(info) if info.values == ValueType::Time => ColumnForm::Time,
            Self::Size | Self::Bytes | Self::Captures | Self::Short(_) => ColumnForm::Number,
            Self::Attribute(name) if is_number(name) => ColumnForm::Number,
            Self::KeyId
            | Self::SourcePath
            | Self::Label
            | Self::Tags
            | Self::Labels
            | Self::Note
            | Self::Matches
            | Self::Attribute(_) => ColumnForm::Text,
        }
    }
}

/// Returns whether the values of an attribute are numbers.
fn is_number(name: &str) -> bool {
    let values = formats::attribute(name).map(|info| info.values);
    values.is_some_and(|values| values.is_ordered() && values != ValueType::Time)
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValue<'s> {
    /// A core hash.
    Hash(CoreHash),
    /// Names of kinds.
    Kinds(Vec<&'s str>),
    /// A time, if there is one.
    Time(Option<DateTime<Utc>>),
    /// An age.
    Age {
        /// The time from which it is computed, if there is one.
        since: Option<DateTime<Utc>>,
        /// The time of the first addition, which is not that of the run.
        added: DateTime<Utc>,
        /// The time until which it is computed.
        now: DateTime<Utc>,
    },
    /// A size in bytes.
    Size(u64),
    /// A number.
    Count(u64),
    /// The number of an attribute, if there is one.
    Number(AttributeInfo, Option<i64>),
    /// Texts.
    Texts(Vec<String>),
    /// Tags.
    Tags(&'s [String]),
    /// Labels: keys and values.
    Labels(Vec<(&'s str, &'s str)>),
    /// The reasons for which an artifact was found.
    Matches(&'s [ArtifactMatch]),
}

/// An artifact, or a row of several, whose properties are shown.
#[derive(Clone, Copy, Debug)]
pub struct ColumnContext<'s> {
    /// The artifact.
    pub artifact: &'s ArtifactSummary,
    /// Its details, at least those that the columns show.
    pub details: &'s ArtifactDetails,
    /// The reasons for which it was found.
    pub matches: &'s [ArtifactMatch],
    /// The time from which its age is computed.
    pub by: TimeBasis,
    /// The time until which its age is computed, the same for all that are shown together.
    pub now: DateTime<Utc>,
    /// The row of which it is the first artifact. What the row states of all its artifacts is shown in place of what this
    /// one states.
    pub row: Option<&'s ListRow>,
}

impl<'s> ColumnContext<'s> {
    /// Returns a row of a list; `None` if it has no artifacts.
    #[must_use]
    pub fn of_row(row: &'s ListRow, now: DateTime<Utc>) -> Option<Self> {
        let ListMember { artifact, details, .. } = row.members.first()?;
        Some(Self { artifact, details, matches: &[], by: TimeBasis::Created, now, row: Some(row) })
    }

    /// Returns the value of a column.
    #[must_use]
    pub fn value(&self, column: ArtifactColumn) -> ColumnValue<'s> {
        let Self { artifact, details, .. } = *self;
        match column {
            ArtifactColumn::Core | ArtifactColumn::Hash => ColumnValue::Hash(artifact.core_hash),
            ArtifactColumn::Kind => {
                ColumnValue::Kinds(self.row.map_or_else(|| vec![&*artifact.kind], ListRow::kinds))
            }
            ArtifactColumn::Seen => ColumnValue::Time(Some(artifact.seen_at.0)),
            ArtifactColumn::Added => ColumnValue::Time(Some(artifact.added_at.0)),
            ArtifactColumn::Created => ColumnValue::Time(self.time(TimeBasis::Created)),
            ArtifactColumn::Age => {
                ColumnValue::Age { since: self.time(self.by), added: artifact.added_at.0, now: self.now }
            }
            ArtifactColumn::Size => ColumnValue::Size(self.bytes()),
            ArtifactColumn::Bytes => ColumnValue::Count(self.bytes()),
            ArtifactColumn::Captures => ColumnValue::Count(self.captures().len() as u64),
            ArtifactColumn::Signature => {
                let states: BTreeSet<SignatureName> =
                    self.captures().iter().map(|capture| capture.signature).collect();
                ColumnValue::Texts(states.into_iter().map(|state| state.name().to_owned()).collect())
            }
            ArtifactColumn::KeyId => self.of_captures(|capture| capture.key_id.as_ref()),
            ArtifactColumn::SourcePath => self.of_captures(|capture| capture.source_path.as_ref()),
            ArtifactColumn::Label => {
                ColumnValue::Texts(identifying_values(self.attributes()).map(str::to_owned).collect())
            }
            ArtifactColumn::Tags => ColumnValue::Tags(
                self.row.map_or(details.tags.as_deref().unwrap_or_default(), |row| &row.tags),
            ),
            ArtifactColumn::Labels => ColumnValue::Labels(match self.row {
                Some(row) => row.each_label().map(|(key, value)| (&**key, &**value)).collect(),
                None => details.labels.iter().flatten().map(|(key, value)| (&**key, &**value)).collect(),
            }),
            ArtifactColumn::Note => ColumnValue::Texts(details.note.iter().cloned().collect()),
            ArtifactColumn::Matches => ColumnValue::Matches(self.matches),
            ArtifactColumn::Attribute(name) => ColumnValue::Texts(self.values(name)),
            ArtifactColumn::Short(info) => {
                let largest =
                    || self.values(info.name).iter().filter_map(|value| info.values.number(value)).max();
                ColumnValue::Number(info, self.row.map_or_else(largest, |row| row.number(info)))
            }
        }
    }

    /// Returns the values of an attribute.
    fn values(&self, name: &str) -> Vec<String> {
        if let Some(row) = self.row {
            return row.values(name);
        }
        let values = self.attributes().iter().filter(|attribute| attribute.name == name);
        values.map(|attribute| attribute.value.clone()).collect()
    }

    /// Returns the different texts that its captures have.
    fn of_captures(&self, text: impl Fn(&CaptureSummary) -> Option<&String>) -> ColumnValue<'s> {
        let texts: BTreeSet<&String> = self.captures().iter().filter_map(text).collect();
        ColumnValue::Texts(texts.into_iter().cloned().collect())
    }

    /// Returns one of its times; `None` if it does not have it.
    fn time(&self, basis: TimeBasis) -> Option<DateTime<Utc>> {
        match basis {
            TimeBasis::FirstSeen => Some(self.artifact.added_at.0),
            TimeBasis::LastSeen => Some(self.artifact.seen_at.0),
            TimeBasis::Created => {
                self.row.map_or(self.details.created_at, |row| row.created_at).map(|time| time.0)
            }
            TimeBasis::Finished => {
                let end_times = self.attributes().iter().filter(|attribute| attribute.name == FINISHED_AT);
                let latest = end_times.map(|attribute| attribute.value.as_str()).max()?;
                DateTime::parse_from_rfc3339(latest).ok().map(|time| time.to_utc())
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.captures().iter().map(|capture| capture.size).sum()
    }

    fn attributes(&self) -> &'s [AttributeSummary] {
        self.details.attributes.as_deref().unwrap_or_default()
    }

    fn captures(&self) -> &'s [CaptureSummary] {
        self.details.captures.as_deref().unwrap_or_default()
    }
}

/// The attributes by which people recognize artifacts, most specific first.
pub const IDENTIFYING_ATTRIBUTES: [&str; 6] =
    ["run_id", "result", "trace_id", "adapter_id", "model_id", "io_ref"];

/// Returns the values by which a person recognizes an artifact with these attributes.
pub fn identifying_values(attributes: &[AttributeSummary]) -> impl Iterator<Item = &str> {
    const VALUES: usize = 3;
    let values = IDENTIFYING_ATTRIBUTES.iter().flat_map(|name| {
        let values = attributes.iter().filter(move |attribute| attribute.name == **name);
        values.map(|attribute| attribute.value.as_str())
    });
    values.take(VALUES)
}

/// The endings of attribute names that are a unit, which need not be repeated.
const UNITS: [&str; 3] = ["_at", "_ms", "_usd"];

/// Returns the attributes that have an order, except the creation time.
pub fn ordered() -> impl Iterator<Item = AttributeInfo> {
    let is_own = |info: &AttributeInfo| *info == AttributeInfo::CREATED_AT;
    formats::attributes().into_iter().filter(move |info| info.values.is_ordered() && !is_own(info))
}

/// Returns the name of an attribute without its unit; `None` if it has none, or no order.
#[must_use]
pub fn short_name(info: AttributeInfo) -> Option<&'static str> {
    let short = UNITS.into_iter().find_map(|unit| info.name.strip_suffix(unit));
    short.filter(|_| info.values.is_ordered() && info != AttributeInfo::CREATED_AT)
}

/// Returns the attributes with short names.
pub fn shortened() -> impl Iterator<Item = (&'static str, AttributeInfo)> {
    ordered().filter_map(|info| Some((short_name(info)?, info)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_one_name() {
        let mut all = ArtifactColumn::names();
        for name in &all {
            assert_eq!(ArtifactColumn::named(name).unwrap().name(), *name);
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "an attribute has the name of a column");
        assert!(all.contains(&"model_id"));
        assert_eq!(ArtifactColumn::named("modle_id"), None);
    }
}
