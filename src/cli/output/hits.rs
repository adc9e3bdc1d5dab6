//! Lists of artifacts for `find` and `search`.

use std::io::Write;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use runvault::artifact::AttributeInfo;
use runvault::clock;
use runvault::display::{brief, whole};
use runvault::storage::TimeBasis;
use runvault::vault::api::ArtifactSummary;
use runvault::vault::columns::{ArtifactColumn, ColumnContext};
use runvault::vault::details::{ArtifactDetails, Detail};
use runvault::vault::find::{ArtifactMatch, FoundArtifact};

use super::columns::{self, KIND_WIDTH};
use super::exit::CommandError;
use super::matches::match_text;
use super::table::{TextCell, TextTable};
use super::terminal;

/// Returns the default columns, with the time that is used. In pipes and files the time is absolute.
fn default_columns(by: TimeBasis) -> [ArtifactColumn; 4] {
    let time = match by {
        _ if terminal::is_terminal() => ArtifactColumn::Age,
        TimeBasis::FirstSeen => ArtifactColumn::Added,
        TimeBasis::LastSeen => ArtifactColumn::Seen,
        TimeBasis::Created => ArtifactColumn::Created,
        TimeBasis::Finished => ArtifactColumn::Short(AttributeInfo::FINISHED_AT),
    };
    [ArtifactColumn::Hash, ArtifactColumn::Kind, time, ArtifactColumn::Label]
}

/// An artifact to list.
pub(crate) struct ArtifactListItem<'h> {
    pub(crate) artifact: &'h ArtifactSummary,
    /// Its details: those of [`ArtifactListPrinter::details`].
    pub(crate) details: &'h ArtifactDetails,
    /// Its matches.
    pub(crate) matches: &'h [ArtifactMatch],
    /// The cells below it.
    pub(crate) below: Vec<TextCell>,
}

impl<'h> From<&'h FoundArtifact> for ArtifactListItem<'h> {
    fn from(hit: &'h FoundArtifact) -> Self {
        let below = hit.matches.iter().map(|place| TextCell::plain(&match_text(place))).collect();
        Self { artifact: &hit.artifact, details: &hit.details, matches: &hit.matches, below }
    }
}

/// A list of artifacts that is printed as they arrive, as far as the layout allows it.
pub(crate) struct ArtifactListPrinter<'f> {
    form: ArtifactListLayout<'f>,
    /// The time that is used.
    by: TimeBasis,
    now: DateTime<Utc>,
}

/// The form of the list.
enum ArtifactListLayout<'f> {
    /// The default columns, and the matches below.
    Default([ArtifactColumn; 4], TextTable),
    /// The requested columns.
    Columns(&'f [ArtifactColumn], TextTable),
    /// A line for each artifact.
    Lines(&'f LineTemplate),
}

impl<'f> ArtifactListPrinter<'f> {
    /// Creates a list with the default columns and the time that is used.
    pub(crate) fn new(by: TimeBasis) -> Self {
        let columns = default_columns(by);
        let of_table = |column: &ArtifactColumn| match column {
            ArtifactColumn::Kind => columns::layout(*column).padded(KIND_WIDTH),
            column => columns::layout(*column),
        };
        let table = TextTable::new(columns.iter().map(of_table).collect());
        Self { form: ArtifactListLayout::Default(columns, table), by, now: clock::now() }
    }

    /// Returns the list with these columns instead.
    pub(crate) fn with_columns(self, columns: &'f [ArtifactColumn]) -> Self {
        let mut table = TextTable::new(columns.iter().map(|column| columns::layout(*column)).collect());
        if terminal::is_terminal() {
            table = table.titled();
        }
        Self { form: ArtifactListLayout::Columns(columns, table), ..self }
    }

    /// Returns the list with a line in this format for each artifact instead.
    pub(crate) fn with_format(self, template: &'f LineTemplate) -> Self {
        Self { form: ArtifactListLayout::Lines(template), ..self }
    }

    /// Returns the details that the list shows.
    pub(crate) fn details(&self) -> Vec<Detail> {
        let columns: Vec<ArtifactColumn> = match &self.form {
            // The label is preceded by the tags.
            ArtifactListLayout::Default(columns, _) => {
                columns.iter().copied().chain([ArtifactColumn::Tags]).collect()
            }
            ArtifactListLayout::Columns(columns, _) => columns.to_vec(),
            ArtifactListLayout::Lines(template) => template.columns().collect(),
        };
        let is_shown = |detail: &Detail| columns.iter().any(|column| column.detail(self.by) == Some(*detail));
        Detail::ALL.into_iter().filter(is_shown).collect()
    }

    /// Adds an artifact.
    pub(crate) fn add(
        &mut self,
        out: &mut dyn Write,
        listed: ArtifactListItem<'_>,
    ) -> Result<(), CommandError> {
        let ArtifactListItem { artifact, details, matches, below } = listed;
        let subject = ColumnContext { artifact, details, matches, by: self.by, now: self.now, row: None };
        match &mut self.form {
            ArtifactListLayout::Default(columns, table) => {
                let cell = |column: &ArtifactColumn| match column {
                    ArtifactColumn::Label if terminal::is_terminal() => {
                        columns::cell(&subject, ArtifactColumn::Tags).and(&columns::cell(&subject, *column))
                    }
                    column => columns::cell(&subject, *column),
                };
                table.push_with(columns.iter().map(cell).collect(), below);
                // All columns except the last have the same width in every row, so rows can be written before all are
                // known.
                table.write_early(out)?;
            }
            ArtifactListLayout::Columns(columns, table) => {
                table.push(columns.iter().map(|column| columns::cell(&subject, *column)).collect());
            }
            ArtifactListLayout::Lines(template) => writeln!(out, "{}", template.fill(&subject))?,
        }
        Ok(())
    }

    /// Prints what is left. Without artifacts there are no titles either.
    pub(crate) fn finish(self, out: &mut dyn Write) -> Result<(), CommandError> {
        match self.form {
            ArtifactListLayout::Default(_, mut table) | ArtifactListLayout::Columns(_, mut table)
                if !table.is_empty() =>
            {
                Ok(table.write(out)?)
            }
            _ => Ok(()),
        }
    }
}

/// A template of a line, such as `{{core}}\t{{model_id}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Column(ArtifactColumn),
}

impl FromStr for LineTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else {
                return Err(format!("{{{{ without }}}} at {}", brief(after)));
            };
            pieces.push(TemplatePart::Text(unescaped(before)?));
            pieces.push(TemplatePart::Column(columns::named(name)?));
            rest = after;
        }
        pieces.push(TemplatePart::Text(unescaped(rest)?));
        pieces.retain(|piece| !matches!(piece, TemplatePart::Text(text) if text.is_empty()));
        Ok(Self(pieces))
    }
}

/// Replaces `\n` by a line feed, `\t` by a tab and `\\` by a backslash in `text`.
fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('\\') => '\\',
                _ => return Err("expected n, t or \\ after \\".to_owned()),
            },
            other => other,
        });
    }
    Ok(plain)
}

impl LineTemplate {
    /// Returns the text for an artifact. Values are always escaped: a pipe often ends at a terminal, and a line feed in
    /// a value would split the line. `--json` contains them unchanged.
    pub(crate) fn fill(&self, subject: &ColumnContext<'_>) -> String {
        let mut line = String::new();
        for piece in &self.0 {
            match piece {
                TemplatePart::Text(text) => line.push_str(text),
                TemplatePart::Column(column) => line.push_str(&whole(&columns::text(subject, *column))),
            }
        }
        line
    }

    /// Returns the columns that it shows.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ArtifactColumn> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Text(_) => None,
            TemplatePart::Column(column) => Some(*column),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> TemplatePart {
        TemplatePart::Text(text.to_owned())
    }

    #[test]
    fn names_and_escapes_are_read() {
        let read = |text: &str| text.parse::<LineTemplate>().map(|template| template.0);
        let both = vec![
            TemplatePart::Column(ArtifactColumn::Core),
            text("\t"),
            TemplatePart::Column(ArtifactColumn::Attribute("tool")),
        ];
        assert_eq!(read(r"{{core}}\t{{ tool }}"), Ok(both));
        assert_eq!(read(r"a\n\\n{b}}"), Ok(vec![text("a\n\\n{b}}")]));
        assert_eq!(read(""), Ok(vec![]));
        assert!(read("{{core").unwrap_err().contains("without }} at core"));
        assert!(read("{{}}").unwrap_err().contains("known names: core, hash"));
        assert!(read(r"\e[1m").is_err());
        assert!(read("\\").is_err());
    }

    proptest! {
        #[test]
        fn what_names_nothing_stands_for_itself(before in "[^\\\\{]{0,20}", after in any::<String>()) {
            prop_assert_eq!(before.parse(), Ok(LineTemplate(if before.is_empty() { vec![] } else { vec![text(&before)] })));
            // Any text must either be parsed or rejected.
            let named: Result<LineTemplate, String> = format!("{before}{{{{core}}}}{after}").parse();
            if let Ok(LineTemplate(pieces)) = named {
                prop_assert!(pieces.contains(&TemplatePart::Column(ArtifactColumn::Core)));
            }
        }
    }
}
