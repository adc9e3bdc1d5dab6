//! The views that a query names and that the schema does not have: those of kinds, and tables of what documents contain.
//!
//! Tables of contents are temporary tables if the role may create some. Otherwise, as for a role that only reads and on a
//! standby, their rows are parameters of the query, which limits their size.

use crate::artifact::{Cell, Column, ColumnType, TableRow};
use crate::storage::StorageError;
use crate::storage::interface::{ArtifactRecord, ComputedView, SqlError};
use crate::storage::postgres::columns::to_stored;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::parameter::Parameter;
use crate::storage::postgres::snapshot::{ARTIFACT, PostgresSnapshot};

/// Number of artifacts that are read in one step, and of rows that are written in one.
const STEP: i64 = 1_000;
const MAX_ROWS: usize = 5_000;

/// Maximum number of bytes of the rows of a table that are parameters of a query.
const MAX_INLINE_BYTES: usize = 64 << 20;

/// Returns the statement that creates the table of contents, which is empty.
pub(super) fn table_of_contents(computed: &ComputedView) -> String {
    let columns = computed.columns.iter().map(|column| format!(", \"{}\" {}", column.name, type_of(*column)));
    format!(
        "CREATE TEMPORARY TABLE \"{}\" (artifact bigint, core_hash text COLLATE \"C\"{}) ON COMMIT DROP",
        computed.name,
        columns.collect::<String>()
    )
}

/// The type of texts, which are ordered by their bytes.
const TEXT: &str = "text COLLATE \"C\"";

/// Returns the type of a column.
fn type_of(column: Column) -> &'static str {
    match column.sort {
        ColumnType::Number => "bigint",
        ColumnType::Real => "double precision",
        ColumnType::Text | ColumnType::Time | ColumnType::Hash | ColumnType::Json | ColumnType::Any => TEXT,
    }
}

/// Fills the temporary table of contents.
pub(super) fn fill(view: &PostgresSnapshot<'_>, computed: &ComputedView) -> Result<(), SqlError> {
    read(view, computed, &mut |rows| {
        let (rows, arrays) = (unnest(computed, 1), rows.arrays(computed)?);
        let sql = format!("INSERT INTO pg_temp.\"{}\" {rows}", computed.name);
        let parameters: Vec<&dyn Parameter> = arrays.iter().map(|array| &**array).collect();
        view.session
            .execute(&sql, &parameters)
            .map_err(|failure| failure.at(view.session.server().name()))?;
        Ok(())
    })
}

/// A table of contents in a query.
pub(super) struct InlineTable {
    /// Its name, its columns and the query of its rows, as they stand in a `WITH` clause.
    pub(super) definition: String,
    /// The parameters with its rows.
    pub(super) arrays: Vec<Box<dyn Parameter>>,
}

impl InlineTable {
    /// Reads a table of contents. Its first parameter has the number `first`.
    pub(super) fn read(
        view: &PostgresSnapshot<'_>,
        computed: &ComputedView,
        first: usize,
    ) -> Result<Self, SqlError> {
        let (mut all, mut bytes) = (ComputedRowColumns::default(), 0);
        read(view, computed, &mut |rows| {
            bytes += rows.bytes();
            if bytes > MAX_INLINE_BYTES {
                return Err(SqlError::Query(format!(
                    "the rows of {} have more than {} MiB; to read them, the role of the connection needs the privilege \
                     to create temporary tables",
                    computed.name,
                    MAX_INLINE_BYTES >> 20
                )));
            }
            all.append(rows);
            Ok(())
        })?;
        let columns = computed.columns.iter().map(|column| format!(", \"{}\"", column.name));
        let columns: String = columns.collect();
        let definition =
            format!("\"{}\" (artifact, core_hash{columns}) AS ({})", computed.name, unnest(computed, first));
        Ok(Self { definition, arrays: all.arrays(computed)? })
    }
}

/// Passes the rows of a table of contents to `take`, some thousands at a time.
fn read(
    view: &PostgresSnapshot<'_>,
    computed: &ComputedView,
    take: &mut dyn FnMut(ComputedRowColumns) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
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
                take(std::mem::take(&mut rows))?;
            }
        }
    }
    if rows.artifacts.is_empty() { Ok(()) } else { take(rows) }
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

    fn append(&mut self, mut other: Self) {
        self.artifacts.append(&mut other.artifacts);
        self.hashes.append(&mut other.hashes);
        self.cells.append(&mut other.cells);
    }

    /// Returns about how many bytes the rows have.
    fn bytes(&self) -> usize {
        let bytes = |cell: &Cell| match cell {
            Cell::Text(text) => text.len(),
            Cell::Blob(bytes) => bytes.len(),
            Cell::Null | Cell::Integer(_) | Cell::Real(_) => 8,
        };
        let hashes: usize = self.hashes.iter().map(String::len).sum();
        hashes + self.cells.iter().flatten().map(bytes).sum::<usize>()
    }

    /// Returns the rows as parameters.
    fn arrays(self, computed: &ComputedView) -> Result<Vec<Box<dyn Parameter>>, SqlError> {
        let Self { artifacts, hashes, cells } = self;
        let mut arrays: Vec<Box<dyn Parameter>> = vec![Box::new(artifacts), Box::new(hashes)];
        for (index, column) in computed.columns.iter().enumerate() {
            arrays.push(array(*column, cells.iter().map(|row| row.get(index)))?);
        }
        Ok(arrays)
    }
}

/// Returns the query of the rows that the parameters from number `first` on have.
fn unnest(computed: &ComputedView, first: usize) -> String {
    let types = ["bigint", TEXT].into_iter().chain(computed.columns.iter().map(|column| type_of(*column)));
    let (mut values, mut marks, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (index, of) in types.enumerate() {
        let (of, collation) = if of == TEXT { ("text", " COLLATE \"C\"") } else { (of, "") };
        values.push(format!("c{index}{collation}"));
        marks.push(format!("${}::{of}[]", first + index));
        names.push(format!("c{index}"));
    }
    let (values, marks, names) = (values.join(", "), marks.join(", "), names.join(", "));
    format!("SELECT {values} FROM unnest({marks}) AS u ({names})")
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
