//! Columns of artifacts as arguments and in tables.

use anstyle::Style;
use chrono::{DateTime, Utc};
use runvault::artifact::{AttributeInfo, ValueType};
use runvault::display::brief;
use runvault::formats;
use runvault::vault::columns::{
    ArtifactColumn, ColumnContext, ColumnForm, ColumnValue, IDENTIFYING_ATTRIBUTES,
};

use super::matches::{artifact_label, match_text};
use super::stdout::{self, FAINT, HASH, NAME};
use super::table::{DIGITS, TextCell, TextColumn};
use super::time;

/// The width of the nouns of kinds in lists without columns. What follows a longer one is moved.
pub(crate) const KIND_WIDTH: usize = 8;

/// Parses a column name, for clap. Surrounding spaces are ignored.
pub(crate) fn named(name: &str) -> Result<ArtifactColumn, String> {
    let name = name.trim();
    ArtifactColumn::named(name).ok_or_else(|| {
        let none = if name.is_empty() { "empty name" } else { &format!("unknown name {}", brief(name)) };
        format!("{none}; known names: {}", ArtifactColumn::names().join(", "))
    })
}

/// Returns the layout of a column in a table.
pub(crate) fn layout(column: ArtifactColumn) -> TextColumn {
    let layout = TextColumn::new(column.name());
    match column.form() {
        ColumnForm::Hash => layout.of_hashes(),
        ColumnForm::Word => layout.whole(),
        ColumnForm::Time => layout.whole().minor(),
        ColumnForm::Number => layout.whole().right(),
        ColumnForm::Text if names_artifacts(column) => layout.of_ids(),
        ColumnForm::Text => layout,
    }
}

/// Returns whether artifacts are told apart by the values of a column.
fn names_artifacts(column: ArtifactColumn) -> bool {
    let is_identifying = |name| IDENTIFYING_ATTRIBUTES.contains(&name);
    column == ArtifactColumn::Label || column.attribute().is_some_and(is_identifying)
}

/// Returns the cell of a column.
pub(crate) fn cell(context: &ColumnContext<'_>, column: ArtifactColumn) -> TextCell {
    let value = context.value(column);
    let style = match &value {
        ColumnValue::Kinds(kinds) => {
            let nouns: Vec<&str> = kinds.iter().copied().map(formats::bare_noun).collect();
            return TextCell::plain(&nouns.join(", "));
        }
        ColumnValue::Hash(_) => HASH,
        ColumnValue::Tags(_) => NAME,
        ColumnValue::Time(_) | ColumnValue::Age { .. } => FAINT,
        _ => Style::new(),
    };
    TextCell::new(&value_text(column, value), style)
}

/// Returns the text of a column, not yet escaped for terminals.
pub(crate) fn text(context: &ColumnContext<'_>, column: ArtifactColumn) -> String {
    value_text(column, context.value(column))
}

fn value_text(column: ArtifactColumn, value: ColumnValue<'_>) -> String {
    match value {
        ColumnValue::Hash(core) if column == ArtifactColumn::Hash => format!("{core:.DIGITS$}"),
        ColumnValue::Hash(core) => core.to_string(),
        ColumnValue::Kinds(kinds) => kinds.join("+"),
        ColumnValue::Time(time) => time.map(time::display).unwrap_or_default(),
        ColumnValue::Age { since: Some(since), now, .. } => time::ago(since, now),
        ColumnValue::Age { since: None, added, now } => format!("added {}", time::ago(added, now)),
        ColumnValue::Size(bytes) => stdout::size(bytes),
        ColumnValue::Count(count) => count.to_string(),
        ColumnValue::Number(info, number) => {
            number.map(|number| number_text(info, number)).unwrap_or_default()
        }
        ColumnValue::Texts(texts) if column == ArtifactColumn::Label => {
            artifact_label(texts.iter().map(String::as_str))
        }
        ColumnValue::Texts(texts) => texts.join(", "),
        ColumnValue::Tags(tags) => tags.iter().map(|tag| format!("@{tag}")).collect::<Vec<_>>().join(" "),
        ColumnValue::Labels(labels) => {
            labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        }
        ColumnValue::Matches(matches) => matches.iter().map(match_text).collect::<Vec<_>>().join(", "),
    }
}

/// Returns a number as people write it.
fn number_text(info: AttributeInfo, number: i64) -> String {
    match info.values {
        ValueType::Time => {
            DateTime::<Utc>::from_timestamp_millis(number).map(time::display).unwrap_or_default()
        }
        ValueType::Duration => time::duration(number),
        ValueType::Text | ValueType::Count | ValueType::Amount => {
            info.values.value(number).unwrap_or_default()
        }
    }
}
