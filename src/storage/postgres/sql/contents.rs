//! Temporary tables of what documents contain.

use std::fmt::Write as _;

use crate::artifact::{Cell, Column, ColumnType, TableRow};
use crate::storage::StorageError;
use crate::storage::interface::{ArtifactRecord, ComputedView, KindView, SqlError};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::parameter::Parameter;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::view::{ARTIFACT, PostgresSnapshot};
use crate::storage::views::attribute_value;

/// Number of artifacts that are read in one step, and of rows that are written in one.
const STEP: i64 = 1_000;
const MAX_ROWS: usize = 5_000;

/// Returns the statement that creates the view of the artifacts of a kind.
pub(super) fn view_of_kind(of_kind: &KindView) -> String {
    let mut columns = String::new();
    for column in of_kind.view.columns {
        let (name, value) = (column.name, attribute_value(*column));
        // Writing to a string cannot fail.
        let _ = write!(
            columns,
            ", (SELECT {value} FROM attributes t WHERE t.artifact = a.artifact AND t.name = '{name}') AS \"{name}\""
        );
    }
    format!(
        "CREATE TEMPORARY VIEW \"{}\" AS SELECT a.artifact, a.core_hash, a.added_at, a.seen_at{columns}
           FROM artifacts a WHERE a.kind = '{}'",
        of_kind.name, of_kind.kind
    )
}

/// Returns the statement that creates the table of contents, which is empty.
pub(super) fn table_of_contents(computed: &ComputedView) -> String {
    let columns = computed.columns.iter().map(|column| format!(", \"{}\" {}", column.name, type_of(*column)));
    format!(
        "CREATE TEMPORARY TABLE \"{}\" (artifact bigint, core_hash text COLLATE \"C\"{}) ON COMMIT DROP",
        computed.name,
        columns.collect::<String>()
    )
}

/// Returns the type of a column.
fn type_of(column: Column) -> &'static str {
    match column.sort {
        ColumnType::Number => "bigint",
        ColumnType::Real => "double precision",
        ColumnType::Text | ColumnType::Time | ColumnType::Hash | ColumnType::Json | ColumnType::Any => {
            "text COLLATE \"C\""
        }
    }
}

/// Fills the table of contents.
pub(super) fn fill(view: &PostgresSnapshot<'_>, computed: &ComputedView) -> Result<(), SqlError> {
    let name = view.session.server().name();
    let mut rows = ComputedRowColumns::default();
    let mut last = 0;
    loop {
        let artifacts = artifacts(view, computed.kind, last).map_err(|failure| failure.at(name))?;
        let Some(end) = artifacts.last() else { break };
        last = end.addition.cast_signed();
        for artifact in &artifacts {
            for cells in (computed.rows)(view, artifact)? {
                rows.add(artifact, cells);
            }
            if rows.artifacts.len() >= MAX_ROWS {
                rows.write(view, computed)?;
            }
        }
    }
    rows.write(view, computed)
}

/// Returns the next artifacts of a kind, or of all, in the order of their numbers.
fn artifacts(
    view: &PostgresSnapshot<'_>,
    kind: Option<&str>,
    after: i64,
) -> PostgresResult<Vec<ArtifactRecord>> {
    let sql = format!(
        "SELECT {ARTIFACT} FROM artifact a JOIN kind k ON k.id = a.kind
          WHERE a.id > $1 AND ($2::text IS NULL OR k.name = $2) ORDER BY a.id LIMIT $3"
    );
    let rows = view.session.rows(&sql, &[&after, &kind, &STEP])?;
    rows.iter().map(|row| view.artifact_record(row, 0)).collect()
}

/// Rows that are not written yet.
#[derive(Default)]
struct ComputedRowColumns {
    artifacts: Vec<i64>,
    hashes: Vec<String>,
    cells: Vec<TableRow>,
}

impl ComputedRowColumns {
    fn add(&mut self, artifact: &ArtifactRecord, cells: TableRow) {
        self.artifacts.push(artifact.addition.cast_signed());
        self.hashes.push(artifact.core.to_string());
        self.cells.push(cells);
    }

    fn write(&mut self, view: &PostgresSnapshot<'_>, computed: &ComputedView) -> Result<(), SqlError> {
        let Self { artifacts, hashes, cells } = std::mem::take(self);
        if artifacts.is_empty() {
            return Ok(());
        }
        let mut arrays: Vec<Box<dyn Parameter>> = vec![Box::new(artifacts), Box::new(hashes)];
        for (index, column) in computed.columns.iter().enumerate() {
            arrays.push(array(*column, cells.iter().map(|row| row.get(index)))?);
        }
        let types = arrays.iter().map(|array| array.type_of()).enumerate();
        let marks: Vec<String> = types.map(|(index, of)| format!("${}::{}", index + 1, of.name())).collect();
        let sql =
            format!("INSERT INTO pg_temp.\"{}\" SELECT * FROM unnest({})", computed.name, marks.join(", "));
        let parameters: Vec<&dyn Parameter> = arrays.iter().map(|array| &**array).collect();
        view.session
            .execute(&sql, &parameters)
            .map_err(|failure| failure.at(view.session.server().name()))?;
        Ok(())
    }
}

/// Returns the values of a column, which are sent as one array.
fn array<'c>(
    column: Column,
    cells: impl Iterator<Item = Option<&'c Cell>>,
) -> Result<Box<dyn Parameter>, SqlError> {
    let wrong = || {
        let message = format!("a value of the column {} is not of its type", column.name);
        SqlError::Store(StorageError::invalid(message))
    };
    Ok(match column.sort {
        ColumnType::Number => {
            let number = |cell: Option<&Cell>| match cell {
                Some(Cell::Integer(number)) => Ok(Some(*number)),
                Some(Cell::Null) => Ok(None),
                _ => Err(wrong()),
            };
            Box::new(cells.map(number).collect::<Result<Vec<Option<i64>>, _>>()?)
        }
        ColumnType::Real => {
            #[expect(clippy::cast_precision_loss, reason = "as SQLite converts them")]
            let real = |cell: Option<&Cell>| match cell {
                Some(Cell::Real(real)) => Ok(Some(*real)),
                Some(Cell::Integer(number)) => Ok(Some(*number as f64)),
                Some(Cell::Null) => Ok(None),
                _ => Err(wrong()),
            };
            Box::new(cells.map(real).collect::<Result<Vec<Option<f64>>, _>>()?)
        }
        _ => {
            let text = |cell: Option<&Cell>| match cell {
                Some(Cell::Text(text)) => Ok(Some(to_stored(text).into_owned())),
                Some(Cell::Integer(number)) => Ok(Some(number.to_string())),
                Some(Cell::Null) => Ok(None),
                _ => Err(wrong()),
            };
            Box::new(cells.map(text).collect::<Result<Vec<Option<String>>, _>>()?)
        }
    })
}
