use super::directory::MemberBytes;
use crate::digest::Digest;
use crate::json::reader::ReadError;
use crate::json::{Value, compact};

/// A SQL table of the contents of artifacts of a kind. Kinds declare their tables as constants.
///
/// In SQL every row also has the columns `artifact` and `core_hash`.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The name, such as `interactions`, unique among all tables.
    pub name: &'static str,
    /// A description of a row.
    pub about: &'static str,
    /// The columns, in order.
    pub columns: &'static [Column],
    /// Returns the rows of an admitted artifact of these members, in document order. Each has a cell for every column.
    /// It is an error if a member cannot be read.
    pub rows: fn(&[MemberBytes<'_>]) -> Result<Vec<TableRow>, ReadError>,
}

/// The SQL view with a row for each artifact of a kind. Kinds declare their views as constants.
///
/// In SQL every row also has the columns `artifact`, `core_hash`, `added_at` and `seen_at`, before the others.
#[derive(Clone, Copy, Debug)]
pub struct ArtifactView {
    /// A description of a row.
    pub about: &'static str,
    /// The column whose value people call an artifact by, such as `run_id`. The others are called by their core hash.
    pub named_by: Option<&'static str>,
    /// The columns, in order. Each has the name of an attribute that an artifact usually has at most once, and its
    /// value: if there are several, one of them.
    pub columns: &'static [Column],
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name, such as `prompt_hash`.
    pub name: &'static str,
    /// The type of its cells.
    pub sort: ColumnType,
    /// A description of the value.
    pub about: &'static str,
    /// Whether the value identifies the row. It is a number.
    pub is_key: bool,
    /// The key that has this value, if it is not NULL.
    pub references: Option<ForeignKey>,
    /// Whether few values are common to many rows, so that rows can be counted and filtered by them.
    pub is_facet: bool,
    /// Whether the value is text in which words are searched.
    pub is_searched: bool,
}

impl Column {
    /// Creates a column.
    #[must_use]
    pub const fn new(name: &'static str, sort: ColumnType, about: &'static str) -> Self {
        Self { name, sort, about, is_key: false, references: None, is_facet: false, is_searched: false }
    }

    /// Returns the column, as the key of its table.
    #[must_use]
    pub const fn key(self) -> Self {
        Self { is_key: true, ..self }
    }

    /// Returns the column, as a reference to `key` of `table`.
    #[must_use]
    pub const fn referring_to(self, table: &'static str, key: &'static str) -> Self {
        Self { references: Some(ForeignKey { table, key }), ..self }
    }

    /// Returns the column, as one that rows are counted and filtered by.
    #[must_use]
    pub const fn facet(self) -> Self {
        Self { is_facet: true, ..self }
    }

    /// Returns the column, as one in which words are searched.
    #[must_use]
    pub const fn searched(self) -> Self {
        Self { is_searched: true, ..self }
    }
}

/// A reference to the key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// The name of the table.
    pub table: &'static str,
    /// The name of its key.
    pub key: &'static str,
}

/// The type of the cells of a column that are not NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Integers.
    Number,
    /// Double-precision numbers.
    Real,
    /// Text.
    Text,
    /// Times, as text in the form of [`timestamp_text`](super::timestamp_text), which is ISO 8601 in UTC.
    Time,
    /// Digests, as `sha256:` and 64 hex digits. Other text that a format allows is stored unchanged.
    Hash,
    /// JSON, as text.
    Json,
    /// Numbers or text.
    Any,
}

impl ColumnType {
    /// Returns the machine-readable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Real => "real",
            Self::Text => "text",
            Self::Time => "time",
            Self::Hash => "hash",
            Self::Json => "json",
            Self::Any => "any",
        }
    }
}

/// A row: a cell for every column.
pub type TableRow = Vec<Cell>;

/// A SQL value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL
    Null,
    /// An integer.
    Integer(i64),
    /// A double-precision number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Cell {
    /// Creates a cell with the number of an interaction, step or record.
    #[must_use]
    pub fn index(index: usize) -> Self {
        i64::try_from(index).map_or(Self::Null, Self::Integer)
    }

    /// Creates a cell with the member `name` of `value`, if it is text.
    #[must_use]
    pub fn text_of(value: &Value<'_>, name: &str) -> Self {
        value.get(name).and_then(Value::as_str).into()
    }

    /// Creates a cell with the digest in the member `name` of `value`, with or without its prefix. Other text is not
    /// changed.
    #[must_use]
    pub fn hash_of(value: &Value<'_>, name: &str) -> Self {
        let text = value.get(name).and_then(Value::as_str);
        let digest = text.and_then(Digest::parse_either);
        digest.map_or_else(|| text.into(), |digest| Self::Text(digest.to_string()))
    }

    /// Creates a cell with the member `name` of `value` as JSON.
    #[must_use]
    pub fn json_of(value: &Value<'_>, name: &str) -> Self {
        value.get(name).map_or(Self::Null, Self::json)
    }

    /// Creates a cell with `value` as JSON.
    #[must_use]
    pub fn json(value: &Value<'_>) -> Self {
        Self::Text(compact::text(value))
    }
}

impl From<Option<&str>> for Cell {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Self::Null, |text| Self::Text(text.to_owned()))
    }
}
