//! Lists of artifacts for `find` and `search`.

use std::io::Write;

use runvault::clock;
use runvault::storage::{Snapshot, TimeBasis};
use runvault::vault::api::ArtifactSummary;
use runvault::vault::find::{ArtifactMatch, FoundArtifact};

use crate::cli::commands::find::match_text;
use crate::cli::output::columns::{Column, KIND_WIDTH, Subject};
use crate::cli::output::exit::Failure;
use crate::cli::output::stdout;
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::template::Template;

/// Returns the default columns, with the time that is used. In pipes and files the time is absolute.
fn columns(by: TimeBasis) -> [Column; 4] {
    let time = match by {
        _ if stdout::is_terminal() => Column::Age,
        TimeBasis::FirstSeen => Column::Added,
        TimeBasis::LastSeen => Column::Seen,
        TimeBasis::Created => Column::Created,
    };
    [Column::Hash, Column::Kind, time, Column::Label]
}

/// An artifact to list.
pub(crate) struct Listed<'h> {
    pub(crate) artifact: &'h ArtifactSummary,
    /// Its matches.
    pub(crate) matches: &'h [ArtifactMatch],
    /// The cells below it.
    pub(crate) below: Vec<Cell>,
}

impl<'h> From<&'h FoundArtifact> for Listed<'h> {
    fn from(hit: &'h FoundArtifact) -> Self {
        let below = hit.matches.iter().map(|place| Cell::plain(&match_text(place))).collect();
        Self { artifact: &hit.artifact, matches: &hit.matches, below }
    }
}

/// Prints artifacts with the default columns and the time that is used.
pub(crate) fn list<'h>(
    out: &mut dyn Write,
    snapshot: &dyn Snapshot,
    hits: impl IntoIterator<Item = Listed<'h>>,
    by: TimeBasis,
) -> Result<(), Failure> {
    let is_terminal = stdout::is_terminal();
    let columns = columns(by);
    let of_table = |column: &Column| match column {
        Column::Kind => column.to_table().padded(KIND_WIDTH),
        column => column.to_table(),
    };
    let mut table = Table::new(columns.iter().map(of_table).collect());
    let now = clock::now();
    for Listed { artifact, matches, below } in hits {
        let subject = Subject::new(snapshot, artifact, matches, now, by);
        let cell = |column: &Column| match column {
            Column::Label if is_terminal => Ok(subject.cell(Column::Tags)?.and(&subject.cell(*column)?)),
            column => subject.cell(*column),
        };
        table.push_with(columns.iter().map(cell).collect::<Result<_, Failure>>()?, below);
        // All columns except the last have the same width in every row, so rows can be written before all are known.
        table.write_early(out)?;
    }
    Ok(table.write(out)?)
}

/// Prints the requested columns.
pub(crate) fn table(
    out: &mut dyn Write,
    snapshot: &dyn Snapshot,
    hits: &[FoundArtifact],
    columns: &[Column],
    by: TimeBasis,
) -> Result<(), Failure> {
    let mut table = Table::new(columns.iter().map(|column| column.to_table()).collect());
    if stdout::is_terminal() && !hits.is_empty() {
        table = table.titled();
    }
    let now = clock::now();
    for hit in hits {
        let subject = Subject::new(snapshot, &hit.artifact, &hit.matches, now, by);
        table.push(columns.iter().map(|column| subject.cell(*column)).collect::<Result<_, _>>()?);
    }
    Ok(table.write(out)?)
}

/// Prints each artifact formatted by `template`.
pub(crate) fn fill(
    out: &mut dyn Write,
    snapshot: &dyn Snapshot,
    hits: &[FoundArtifact],
    template: &Template,
    by: TimeBasis,
) -> Result<(), Failure> {
    let now = clock::now();
    for hit in hits {
        let subject = Subject::new(snapshot, &hit.artifact, &hit.matches, now, by);
        writeln!(out, "{}", template.fill(&subject)?)?;
    }
    Ok(())
}
