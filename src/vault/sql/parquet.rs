//! Tables as Parquet files.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use chrono::DateTime;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::artifact::{Cell, Column, ColumnType};
use crate::files::{FileWriteError, StagedDirectory, WriteOptions};
use crate::storage::{ErrorKind, RowProgress, SaveSummary, SavedTable, SqlError, SqlReader, StorageError};

/// The extension of the files.
const EXTENSION: &str = "parquet";

/// Maximum number of rows that are written together.
const GROUP_ROWS: usize = 100_000;
/// Number of bytes of text from which rows are written, so that memory is bounded.
const GROUP_BYTES: usize = 32 << 20;

type FileWriter = SerializedFileWriter<BufWriter<File>>;

/// Writes a file for each table to a new directory at `path`.
pub(super) fn write(
    reader: &dyn SqlReader,
    tables: &[SavedTable],
    path: &Path,
    options: &WriteOptions<'_>,
    watch: &mut RowProgress<'_>,
) -> Result<SaveSummary, SqlError> {
    let directory = StagedDirectory::create(path, options)?;
    check_contents(path)?;
    let mut saved = SaveSummary { bytes: 0, rows: Vec::new() };
    for table in tables {
        let file = directory.create_file(&format!("{}.{EXTENSION}", table.name))?;
        let (rows, file) = write_table(reader, table, file, watch).map_err(|error| error.at(path))?;
        directory.close_file(&file)?;
        saved.bytes += file.metadata().map_err(|error| StorageError::io(path, error))?.len();
        saved.rows.push((table.name, rows));
    }
    check_contents(path)?;
    directory.commit()?;
    Ok(saved)
}

/// Checks that a directory that would be replaced has no other files.
fn check_contents(path: &Path) -> Result<(), SqlError> {
    let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = Path::new(&name).extension().is_some_and(|extension| extension == EXTENSION);
        if !is_ours || !entry.file_type().is_ok_and(|sort| sort.is_file()) {
            let reason = format!("it is not replaced because it contains {}", name.to_string_lossy());
            return Err(SqlError::Place { path: path.to_owned(), reason });
        }
    }
    Ok(())
}

/// An error of a table that is being written.
enum TableError {
    Sql(SqlError),
    Parquet(ParquetError),
    /// A cell is not of the type of its column.
    Type(String),
}

impl TableError {
    fn at(self, path: &Path) -> SqlError {
        match self {
            Self::Sql(error) => error,
            Self::Type(message) => StorageError::new(ErrorKind::Database, message).into(),
            Self::Parquet(ParquetError::External(source)) => match source.downcast() {
                Ok(source) => StorageError::io(path, *source).into(),
                Err(source) => failed(path, &source),
            },
            Self::Parquet(error) => failed(path, &error),
        }
    }
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> SqlError {
    StorageError::new(ErrorKind::Io, format!("{}: {error}", path.display())).into()
}

impl From<SqlError> for TableError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<ParquetError> for TableError {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

impl From<FileWriteError> for TableError {
    fn from(error: FileWriteError) -> Self {
        Self::Sql(error.into())
    }
}

/// Writes the rows of a table; returns their number.
fn write_table(
    reader: &dyn SqlReader,
    table: &SavedTable,
    file: File,
    watch: &mut RowProgress<'_>,
) -> Result<(u64, File), TableError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("runvault ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = FileWriter::new(BufWriter::new(file), Arc::new(schema(table)?), Arc::new(properties))?;
    let mut statement = reader.prepare(&table.query, &[])?;
    let (mut group, mut bytes, mut copied) = (Vec::new(), 0, 0_i64);
    for row in statement.rows() {
        copied += 1;
        let mut row = row?;
        if table.is_numbered {
            row.insert(0, Cell::Integer(copied));
        }
        bytes += row.iter().map(size).sum::<usize>();
        group.push(row);
        if group.len() >= GROUP_ROWS || bytes >= GROUP_BYTES {
            write_group(&mut writer, table, &group)?;
            group.clear();
            bytes = 0;
        }
        if watch(table.name, copied.unsigned_abs()).is_break() {
            return Err(SqlError::Interrupted.into());
        }
    }
    if !group.is_empty() {
        write_group(&mut writer, table, &group)?;
    }
    let buffer = writer.into_inner()?;
    let file = buffer.into_inner().map_err(|error| ParquetError::External(Box::new(error.into_error())))?;
    Ok((copied.unsigned_abs(), file))
}

fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Text(text) => text.len(),
        Cell::Blob(bytes) => bytes.len(),
        Cell::Null | Cell::Integer(_) | Cell::Real(_) => 0,
    }
}

fn schema(table: &SavedTable) -> Result<Type, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical) = match column.sort {
            ColumnType::Number => (Physical::INT64, None),
            ColumnType::Real => (Physical::DOUBLE, None),
            // Not as instants: DuckDB would show them in the time zone of the machine.
            ColumnType::Time => (Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::MILLIS))),
            ColumnType::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
            ColumnType::Text | ColumnType::Hash | ColumnType::Any => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
        };
        let repetition = if column.is_key { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let field = Type::primitive_type_builder(column.name, physical);
        field.with_repetition(repetition).with_logical_type(logical).build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(table.name).with_fields(fields).build()
}

fn write_group(writer: &mut FileWriter, table: &SavedTable, rows: &[Vec<Cell>]) -> Result<(), TableError> {
    let mut group = writer.next_row_group()?;
    for (index, column) in table.columns.iter().enumerate() {
        let cells = ParquetColumnCells { rows, index, column };
        match column.sort {
            ColumnType::Number => cells.write::<Int64Type>(&mut group, integer)?,
            ColumnType::Time => cells.write::<Int64Type>(&mut group, milliseconds)?,
            ColumnType::Real => cells.write::<DoubleType>(&mut group, real)?,
            ColumnType::Text | ColumnType::Hash | ColumnType::Json | ColumnType::Any => {
                cells.write::<ByteArrayType>(&mut group, text)?;
            }
        }
    }
    group.close()?;
    Ok(())
}

/// The cells of a column in several rows.
struct ParquetColumnCells<'r> {
    rows: &'r [Vec<Cell>],
    index: usize,
    column: &'r Column,
}

impl ParquetColumnCells<'_> {
    /// Writes the cells as the next column, with the values that `of` returns.
    fn write<T: DataType>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
        of: fn(&Cell) -> Option<T::T>,
    ) -> Result<(), TableError> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        for cell in self.rows.iter().filter_map(|row| row.get(self.index)) {
            if *cell == Cell::Null {
                levels.push(0);
                continue;
            }
            levels.push(1);
            let message = || TableError::Type(format!("a value of {} is not of its type", self.column.name));
            values.push(of(cell).ok_or_else(message)?);
        }
        let levels = (!self.column.is_key).then_some(levels.as_slice());
        if let Some(mut writer) = group.next_column()? {
            writer.typed::<T>().write_batch(&values, levels, None)?;
            writer.close()?;
        }
        Ok(())
    }
}

fn integer(cell: &Cell) -> Option<i64> {
    if let Cell::Integer(integer) = cell { Some(*integer) } else { None }
}

fn real(cell: &Cell) -> Option<f64> {
    if let Cell::Real(real) = cell { Some(*real) } else { None }
}

fn milliseconds(cell: &Cell) -> Option<i64> {
    let Cell::Text(text) = cell else { return None };
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_millis())
}

fn text(cell: &Cell) -> Option<ByteArray> {
    if let Cell::Text(text) = cell { Some(text.as_str().into()) } else { None }
}
