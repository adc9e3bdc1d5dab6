//! The views that a query names and that the schema does not have: those of kinds, and tables of what documents contain.
//!
//! Tables of contents are temporary tables if the role may create some. Otherwise, as for a role that only reads and on a
//! standby, their rows are parameters of the query, which limits their size.

use postgres::types::Type;

use super::cells::CellParameter;
use crate::artifact::{Cell, Column, ColumnType, TableRow};
use crate::storage::StorageError;
use crate::storage::interface::{ArtifactRecord, ComputedView, SqlError};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::parameters::TypedParameter;
use crate::storage::postgres::snapshot::PostgresSnapshot;
use crate::storage::sql::{ARTIFACT, SqlSession as _};

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
        let (rows, columns) = (unnest(computed, 1), CellColumn::all(computed, rows)?);
        let sql = format!("INSERT INTO pg_temp.\"{}\" {rows}", computed.name);
        let parameters: Vec<_> = columns.iter().map(CellColumn::typed).collect();
        view.session.run(&sql, &parameters).map_err(|failure| failure.at(view.session.server().name()))?;
        Ok(())
    })
}

/// A table of contents in a query.
pub(super) struct InlineTable {
    /// Its name, its columns and the query of its rows, as they stand in a `WITH` clause.
    pub(super) definition: String,
    /// The parameters with its rows.
    pub(super) columns: Vec<CellColumn>,
}

impl InlineTable {
    /// Reads a table of contents. Its first parameter has the number `first`.
    pub(super) fn read(
        view: &PostgresSnapshot<'_>,
        computed: &ComputedView,
        first: usize,
    ) -> Result<Self, SqlError> {
        let (mut all, mut bytes) = (Vec::new(), 0);
        read(view, computed, &mut |rows| {
            bytes += size(&rows);
            if bytes > MAX_INLINE_BYTES {
                return Err(SqlError::Query(format!(
                    "the rows of {} have more than {} MiB; to read them, the role of the connection needs the privilege \
                     to create temporary tables",
                    computed.name,
                    MAX_INLINE_BYTES >> 20
                )));
            }
            all.extend(rows);
            Ok(())
        })?;
        let names = computed.columns.iter().map(|column| format!(", \"{}\"", column.name));
        let names: String = names.collect();
        let definition =
            format!("\"{}\" (artifact, core_hash{names}) AS ({})", computed.name, unnest(computed, first));
        Ok(Self { definition, columns: CellColumn::all(computed, all)? })
    }
}

/// Passes the rows of a table of contents to `take`, some thousands at a time.
fn read(
    view: &PostgresSnapshot<'_>,
    computed: &ComputedView,
    take: &mut dyn FnMut(Vec<TableRow>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let name = view.session.server().name();
    let mut rows: Vec<TableRow> = Vec::new();
    let mut last = 0;
    loop {
        let artifacts = artifacts(view, computed.kind, last).map_err(|failure| failure.at(name))?;
        let Some(end) = artifacts.last() else { break };
        last = end.addition.cast_signed();
        let mut waiting = artifacts.as_slice();
        while let Some((artifact, next)) = waiting.split_first() {
            waiting = next;
            for cells in (computed.rows)(view, artifact, next)? {
                let own =
                    [Cell::Integer(artifact.addition.cast_signed()), Cell::Text(artifact.core.to_string())];
                rows.push(own.into_iter().chain(cells).collect());
            }
            if rows.len() >= MAX_ROWS {
                take(std::mem::take(&mut rows))?;
            }
        }
    }
    if rows.is_empty() { Ok(()) } else { take(rows) }
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
    let rows = view.session.rows(&sql, &[after.into(), kind.into(), STEP.into()])?;
    rows.iter().map(|row| Ok(row.artifact()?)).collect()
}

/// Returns about how many bytes rows have.
fn size(rows: &[TableRow]) -> usize {
    let size = |cell: &Cell| match cell {
        Cell::Text(text) => text.len(),
        Cell::Blob(bytes) => bytes.len(),
        Cell::Null | Cell::Integer(_) | Cell::Real(_) => 8,
    };
    rows.iter().flatten().map(size).sum()
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

/// The values of a column, which are sent as one array.
pub(super) struct CellColumn {
    of: Type,
    values: Vec<CellParameter>,
}

impl CellColumn {
    /// Returns the columns of rows, which begin with the number and the hash of an artifact.
    fn all(computed: &ComputedView, rows: Vec<TableRow>) -> Result<Vec<Self>, SqlError> {
        let own = [Type::INT8_ARRAY, Type::TEXT_ARRAY].map(|of| Self { of, values: Vec::new() });
        let others = computed.columns.iter().map(|column| {
            let of = match column.sort {
                ColumnType::Number => Type::INT8_ARRAY,
                ColumnType::Real => Type::FLOAT8_ARRAY,
                _ => Type::TEXT_ARRAY,
            };
            Self { of, values: Vec::new() }
        });
        let mut columns: Vec<Self> = own.into_iter().chain(others).collect();
        for row in rows {
            let mut cells = row.into_iter();
            for (number, column) in columns.iter_mut().enumerate() {
                let cell = cells.next().filter(|cell| column.takes(cell)).ok_or_else(|| {
                    let name = computed.columns.get(number.wrapping_sub(2)).map_or("", |column| column.name);
                    let message = format!("a value of the column {name} is not of its type");
                    SqlError::Store(StorageError::invalid(message))
                })?;
                column.values.push(CellParameter(cell));
            }
        }
        Ok(columns)
    }

    /// Returns whether a cell is of its type.
    fn takes(&self, cell: &Cell) -> bool {
        match cell {
            Cell::Null | Cell::Integer(_) => true,
            Cell::Real(_) => self.of == Type::FLOAT8_ARRAY,
            Cell::Text(_) => self.of == Type::TEXT_ARRAY,
            Cell::Blob(_) => false,
        }
    }

    /// Returns it as a parameter.
    pub(super) fn typed(&self) -> TypedParameter<'_> {
        (&self.values, self.of.clone())
    }
}
