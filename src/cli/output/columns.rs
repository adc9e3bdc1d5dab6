//! Columns: the properties of an artifact that tables and formats can show.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use runvault::artifact::{AttributeInfo, FINISHED_AT, ValueType};
use runvault::display::brief;
use runvault::formats;
use runvault::storage::TimeBasis;
use runvault::vault::api::{ArtifactSummary, SignatureName};
use runvault::vault::details::{ArtifactDetails, AttributeSummary, CaptureSummary, Detail};
use runvault::vault::find::ArtifactMatch;
use runvault::vault::list::{ListMember, ListRow};

use super::matches::{artifact_label, match_text};
use super::stdout::{self, FAINT, HASH, NAME};
use super::table::{self, DIGITS, TextCell};
use super::time;

/// A property of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArtifactColumn {
    Core,
    Hash,
    Kind,
    Seen,
    Added,
    Created,
    Age,
    Size,
    Bytes,
    Captures,
    /// The states of the signatures of its captures.
    Signature,
    /// The key ids that its captures state.
    KeyId,
    /// The paths that its captures were read from.
    SourcePath,
    Label,
    Tags,
    Labels,
    Note,
    Matches,
    /// The values of the attribute with this name.
    Attribute(&'static str),
    /// The largest value of this attribute, as people write it, under a name without its unit.
    Short(AttributeInfo),
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

/// The width of the nouns of kinds in lists without columns. What follows a longer one is moved.
pub(crate) const KIND_WIDTH: usize = 8;

/// Returns the names of the attributes of all kinds.
pub(crate) fn attributes() -> Vec<&'static str> {
    formats::attributes().into_iter().map(|attribute| attribute.name).collect()
}

/// Returns a value as people write it.
fn short_text(info: AttributeInfo, number: i64) -> String {
    match info.values {
        ValueType::Time => DateTime::from_timestamp_millis(number).map(time::display).unwrap_or_default(),
        ValueType::Duration => time::duration(number),
        ValueType::Text | ValueType::Count | ValueType::Amount => {
            info.values.value(number).unwrap_or_default()
        }
    }
}

/// Parses a column name, for clap. Surrounding spaces are ignored.
pub(crate) fn named(name: &str) -> Result<ArtifactColumn, String> {
    let name = name.trim();
    let own = OWN.iter().find(|(own, _)| *own == name).map(|(_, column)| *column);
    let attribute =
        || attributes().into_iter().find(|attribute| *attribute == name).map(ArtifactColumn::Attribute);
    let short = || shortened().find(|(short, _)| *short == name).map(|(_, info)| ArtifactColumn::Short(info));
    own.or_else(attribute).or_else(short).ok_or_else(|| {
        let none = if name.is_empty() { "empty name" } else { &format!("unknown name {}", brief(name)) };
        format!("{none}; known names: {}", names().join(", "))
    })
}

/// Returns the names of all columns.
pub(crate) fn names() -> Vec<&'static str> {
    let short = shortened().map(|(name, _)| name);
    OWN.iter().map(|(name, _)| *name).chain(attributes()).chain(short).collect()
}

impl ArtifactColumn {
    /// Returns the name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Attribute(name) => name,
            Self::Short(info) => short_name(info).unwrap_or(info.name),
            own => OWN.iter().find(|(_, column)| *column == own).map_or("", |(name, _)| name),
        }
    }

    /// Returns the detail of an artifact that the column shows, if it is one.
    /// `by` is the time that ages are of.
    pub(crate) fn detail(self, by: TimeBasis) -> Option<Detail> {
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
    pub(crate) fn attribute(self) -> Option<&'static str> {
        match self {
            Self::Attribute(name) => Some(name),
            Self::Short(info) => Some(info.name),
            _ => None,
        }
    }

    /// Returns the layout of the column in a table.
    pub(crate) fn to_table(self) -> table::TextColumn {
        let column = table::TextColumn::new(self.name());
        match self {
            Self::Core => column.of_hashes(),
            Self::Hash | Self::Kind | Self::Signature => column.whole(),
            Self::Seen | Self::Added | Self::Created | Self::Age => column.whole().minor(),
            Self::Short(info) if info.values == ValueType::Time => column.whole().minor(),
            Self::Size | Self::Bytes | Self::Captures | Self::Short(_) => column.whole().right(),
            Self::Attribute(name) if is_number(name) => column.whole().right(),
            Self::KeyId
            | Self::SourcePath
            | Self::Label
            | Self::Tags
            | Self::Labels
            | Self::Note
            | Self::Matches
            | Self::Attribute(_) => column,
        }
    }
}

/// Returns the cell of a column with this text. Kinds, of which runs have several, are joined by `+`.
fn cell(column: ArtifactColumn, text: &str) -> TextCell {
    match column {
        ArtifactColumn::Kind => {
            let nouns: Vec<&str> = text.split('+').map(formats::bare_noun).collect();
            TextCell::plain(&nouns.join(", "))
        }
        ArtifactColumn::Core | ArtifactColumn::Hash => TextCell::new(text, HASH),
        ArtifactColumn::Tags => TextCell::new(text, NAME),
        ArtifactColumn::Seen | ArtifactColumn::Added | ArtifactColumn::Created | ArtifactColumn::Age => {
            TextCell::new(text, FAINT)
        }
        _ => TextCell::plain(text),
    }
}

/// Returns the age of an artifact that has the time `time`. The time of arrival is not that of the run.
fn age_text(time: Option<DateTime<Utc>>, artifact: &ArtifactSummary, now: DateTime<Utc>) -> String {
    match time {
        Some(time) => time::ago(time, now),
        None => format!("added {}", time::ago(artifact.added_at.0, now)),
    }
}

/// Returns whether the values of an attribute are numbers.
fn is_number(name: &str) -> bool {
    let values = formats::attribute(name).map(|info| info.values);
    values.is_some_and(|values| values.is_ordered() && values != ValueType::Time)
}

/// An artifact, or a row of several, whose properties are shown.
#[derive(Clone, Copy)]
pub(crate) struct ColumnContext<'s> {
    pub(crate) artifact: &'s ArtifactSummary,
    /// Its details, at least those that the columns show.
    pub(crate) details: &'s ArtifactDetails,
    pub(crate) matches: &'s [ArtifactMatch],
    pub(crate) now: DateTime<Utc>,
    /// The time from which its age is computed.
    pub(crate) by: TimeBasis,
    /// The row of which it is the first artifact. What the row states of all its artifacts is shown in place of what this
    /// one states.
    pub(crate) row: Option<&'s ListRow>,
}

impl<'s> ColumnContext<'s> {
    /// Returns a row of a list; `None` if it has no artifacts.
    pub(crate) fn of_row(row: &'s ListRow, now: DateTime<Utc>) -> Option<Self> {
        let ListMember { artifact, details, .. } = row.members.first()?;
        Some(Self { artifact, details, matches: &[], now, by: TimeBasis::Created, row: Some(row) })
    }

    /// Returns the text of a column, not yet escaped for terminals.
    pub(crate) fn text(&self, column: ArtifactColumn) -> String {
        let Self { artifact, details, now, by, .. } = self;
        match column {
            ArtifactColumn::Core => artifact.core_hash.to_string(),
            ArtifactColumn::Hash => format!("{:.*}", DIGITS, artifact.core_hash),
            ArtifactColumn::Kind => self.row.map_or(vec![&*artifact.kind], ListRow::kinds).join("+"),
            ArtifactColumn::Seen => time::display(artifact.seen_at.0),
            ArtifactColumn::Added => time::display(artifact.added_at.0),
            ArtifactColumn::Created => self.time(TimeBasis::Created).map(time::display).unwrap_or_default(),
            ArtifactColumn::Age => age_text(self.time(*by), artifact, *now),
            ArtifactColumn::Size => stdout::size(self.bytes()),
            ArtifactColumn::Bytes => self.bytes().to_string(),
            ArtifactColumn::Captures => self.captures().len().to_string(),
            ArtifactColumn::Signature => {
                let states: BTreeSet<SignatureName> =
                    self.captures().iter().map(|capture| capture.signature).collect();
                states.into_iter().map(SignatureName::name).collect::<Vec<_>>().join(", ")
            }
            ArtifactColumn::KeyId => {
                let ids: BTreeSet<&str> =
                    self.captures().iter().filter_map(|capture| capture.key_id.as_deref()).collect();
                ids.into_iter().collect::<Vec<_>>().join(", ")
            }
            ArtifactColumn::SourcePath => {
                let paths: BTreeSet<&str> =
                    self.captures().iter().filter_map(|capture| capture.source_path.as_deref()).collect();
                paths.into_iter().collect::<Vec<_>>().join(", ")
            }
            ArtifactColumn::Label => artifact_label(self.attributes()),
            ArtifactColumn::Tags => self.tags_text(),
            ArtifactColumn::Labels => self.labels_text(),
            ArtifactColumn::Note => details.note.clone().unwrap_or_default(),
            ArtifactColumn::Matches => self.matches.iter().map(match_text).collect::<Vec<_>>().join(", "),
            ArtifactColumn::Attribute(name) => self.values(name).join(", "),
            ArtifactColumn::Short(info) => {
                let number = match self.row {
                    Some(row) => row.number(info),
                    None => self.values(info.name).iter().filter_map(|value| info.values.number(value)).max(),
                };
                number.map(|number| short_text(info, number)).unwrap_or_default()
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

    fn tags_text(&self) -> String {
        let tags = self.row.map_or(self.details.tags.as_deref().unwrap_or_default(), |row| &row.tags);
        tags.iter().map(|tag| format!("@{tag}")).collect::<Vec<_>>().join(" ")
    }

    fn labels_text(&self) -> String {
        let text = |(key, value): (&String, &String)| format!("{key}={value}");
        let labels: Vec<String> = match self.row {
            Some(row) => row.each_label().map(text).collect(),
            None => self.details.labels.iter().flatten().map(text).collect(),
        };
        labels.join(" ")
    }

    /// Returns the cell of a column.
    pub(crate) fn cell(&self, column: ArtifactColumn) -> TextCell {
        cell(column, &self.text(column))
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

    fn attributes(&self) -> &[AttributeSummary] {
        self.details.attributes.as_deref().unwrap_or_default()
    }

    fn captures(&self) -> &[CaptureSummary] {
        self.details.captures.as_deref().unwrap_or_default()
    }
}

/// The endings of attribute names that are a unit, which commands need not repeat.
const UNITS: [&str; 3] = ["_at", "_ms", "_usd"];

/// The attributes that have an order, except the creation time.
pub(crate) fn ordered() -> impl Iterator<Item = AttributeInfo> {
    let is_own = |info: &AttributeInfo| *info == AttributeInfo::CREATED_AT;
    formats::attributes().into_iter().filter(move |info| info.values.is_ordered() && !is_own(info))
}

/// Returns the name of an attribute without its unit; `None` if it has none, or no order.
pub(crate) fn short_name(info: AttributeInfo) -> Option<&'static str> {
    let short = UNITS.into_iter().find_map(|unit| info.name.strip_suffix(unit));
    short.filter(|_| info.values.is_ordered() && info != AttributeInfo::CREATED_AT)
}

/// Returns the attributes with short names.
pub(crate) fn shortened() -> impl Iterator<Item = (&'static str, AttributeInfo)> {
    ordered().filter_map(|info| Some((short_name(info)?, info)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_one_name() {
        let mut all = names();
        for name in &all {
            assert_eq!(named(name).unwrap().name(), *name);
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "an attribute has the name of a column");
        let error = named("modle_id").unwrap_err();
        assert!(error.starts_with("unknown name modle_id; known names: core, hash,"), "{error}");
        assert!(error.contains("model_id"), "{error}");
    }
}
