//! Lists of artifacts for `find` and `search`.

use std::io::Write;

use chrono::{DateTime, Utc};
use runvault::artifact::AttributeInfo;
use runvault::clock;
use runvault::storage::TimeBasis;
use runvault::vault::api::ArtifactSummary;
use runvault::vault::details::{ArtifactDetails, Detail};
use runvault::vault::find::{ArtifactMatch, FoundArtifact};

use crate::cli::output::columns::{ArtifactColumn, ColumnContext, KIND_WIDTH};
use crate::cli::output::exit::CommandError;
use crate::cli::output::matches::match_text;
use crate::cli::output::table::{TextCell, TextTable};
use crate::cli::output::template::LineTemplate;
use crate::cli::output::terminal;

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
            ArtifactColumn::Kind => column.to_table().padded(KIND_WIDTH),
            column => column.to_table(),
        };
        let table = TextTable::new(columns.iter().map(of_table).collect());
        Self { form: ArtifactListLayout::Default(columns, table), by, now: clock::now() }
    }

    /// Returns the list with these columns instead.
    pub(crate) fn with_columns(self, columns: &'f [ArtifactColumn]) -> Self {
        let mut table = TextTable::new(columns.iter().map(|column| column.to_table()).collect());
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
        let subject = ColumnContext { artifact, details, matches, now: self.now, by: self.by, row: None };
        match &mut self.form {
            ArtifactListLayout::Default(columns, table) => {
                let cell = |column: &ArtifactColumn| match column {
                    ArtifactColumn::Label if terminal::is_terminal() => {
                        subject.cell(ArtifactColumn::Tags).and(&subject.cell(*column))
                    }
                    column => subject.cell(*column),
                };
                table.push_with(columns.iter().map(cell).collect(), below);
                // All columns except the last have the same width in every row, so rows can be written before all are
                // known.
                table.write_early(out)?;
            }
            ArtifactListLayout::Columns(columns, table) => {
                table.push(columns.iter().map(|column| subject.cell(*column)).collect());
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
