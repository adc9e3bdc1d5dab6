//! Lists of artifacts for `find` and `search`.

use std::io::Write;

use chrono::{DateTime, Utc};
use runvault::artifact::AttributeInfo;
use runvault::clock;
use runvault::storage::TimeBasis;
use runvault::vault::api::ArtifactSummary;
use runvault::vault::details::{ArtifactDetails, Detail};
use runvault::vault::find::{ArtifactMatch, FoundArtifact};

use crate::cli::output::columns::{Column, KIND_WIDTH, Subject};
use crate::cli::output::exit::Failure;
use crate::cli::output::matches::match_text;
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::template::Template;
use crate::cli::output::terminal;

/// Returns the default columns, with the time that is used. In pipes and files the time is absolute.
fn default_columns(by: TimeBasis) -> [Column; 4] {
    let time = match by {
        _ if terminal::is_terminal() => Column::Age,
        TimeBasis::FirstSeen => Column::Added,
        TimeBasis::LastSeen => Column::Seen,
        TimeBasis::Created => Column::Created,
        TimeBasis::Finished => Column::Short(AttributeInfo::FINISHED_AT),
    };
    [Column::Hash, Column::Kind, time, Column::Label]
}

/// An artifact to list.
pub(crate) struct Listed<'h> {
    pub(crate) artifact: &'h ArtifactSummary,
    /// Its details: those of [`Hits::details`].
    pub(crate) details: &'h ArtifactDetails,
    /// Its matches.
    pub(crate) matches: &'h [ArtifactMatch],
    /// The cells below it.
    pub(crate) below: Vec<Cell>,
}

impl<'h> From<&'h FoundArtifact> for Listed<'h> {
    fn from(hit: &'h FoundArtifact) -> Self {
        let below = hit.matches.iter().map(|place| Cell::plain(&match_text(place))).collect();
        Self { artifact: &hit.artifact, details: &hit.details, matches: &hit.matches, below }
    }
}

/// A list of artifacts that is printed as they arrive, as far as the layout allows it.
pub(crate) struct Hits<'f> {
    form: Form<'f>,
    /// The time that is used.
    by: TimeBasis,
    now: DateTime<Utc>,
}

/// The form of the list.
enum Form<'f> {
    /// The default columns, and the matches below.
    Default([Column; 4], Table),
    /// The requested columns.
    Columns(&'f [Column], Table),
    /// A line for each artifact.
    Lines(&'f Template),
}

impl<'f> Hits<'f> {
    /// Creates a list with the default columns and the time that is used.
    pub(crate) fn new(by: TimeBasis) -> Self {
        let columns = default_columns(by);
        let of_table = |column: &Column| match column {
            Column::Kind => column.to_table().padded(KIND_WIDTH),
            column => column.to_table(),
        };
        let table = Table::new(columns.iter().map(of_table).collect());
        Self { form: Form::Default(columns, table), by, now: clock::now() }
    }

    /// Returns the list with these columns instead.
    pub(crate) fn with_columns(self, columns: &'f [Column]) -> Self {
        let mut table = Table::new(columns.iter().map(|column| column.to_table()).collect());
        if terminal::is_terminal() {
            table = table.titled();
        }
        Self { form: Form::Columns(columns, table), ..self }
    }

    /// Returns the list with a line in this format for each artifact instead.
    pub(crate) fn with_format(self, template: &'f Template) -> Self {
        Self { form: Form::Lines(template), ..self }
    }

    /// Returns the details that the list shows.
    pub(crate) fn details(&self) -> Vec<Detail> {
        let columns: Vec<Column> = match &self.form {
            // The label is preceded by the tags.
            Form::Default(columns, _) => columns.iter().copied().chain([Column::Tags]).collect(),
            Form::Columns(columns, _) => columns.to_vec(),
            Form::Lines(template) => template.columns().collect(),
        };
        let is_shown = |detail: &Detail| columns.iter().any(|column| column.detail(self.by) == Some(*detail));
        Detail::ALL.into_iter().filter(is_shown).collect()
    }

    /// Adds an artifact.
    pub(crate) fn add(&mut self, out: &mut dyn Write, listed: Listed<'_>) -> Result<(), Failure> {
        let Listed { artifact, details, matches, below } = listed;
        let subject = Subject { artifact, details, matches, now: self.now, by: self.by };
        match &mut self.form {
            Form::Default(columns, table) => {
                let cell = |column: &Column| match column {
                    Column::Label if terminal::is_terminal() => {
                        subject.cell(Column::Tags).and(&subject.cell(*column))
                    }
                    column => subject.cell(*column),
                };
                table.push_with(columns.iter().map(cell).collect(), below);
                // All columns except the last have the same width in every row, so rows can be written before all are
                // known.
                table.write_early(out)?;
            }
            Form::Columns(columns, table) => {
                table.push(columns.iter().map(|column| subject.cell(*column)).collect());
            }
            Form::Lines(template) => writeln!(out, "{}", template.fill(&subject))?,
        }
        Ok(())
    }

    /// Prints what is left. Without artifacts there are no titles either.
    pub(crate) fn finish(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.form {
            Form::Default(_, mut table) | Form::Columns(_, mut table) if !table.is_empty() => {
                Ok(table.write(out)?)
            }
            _ => Ok(()),
        }
    }
}
