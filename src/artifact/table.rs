use super::MemberBytes;
use crate::canonical::reader::{Limits, ReadError};
use crate::canonical::{Value, compact};
use crate::digest::Digest;

/// What artifacts of a kind contain, as a table for people who ask in SQL. Kinds declare theirs as constants.
///
/// In SQL every row also has the columns `artifact` and `core_hash`.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The name, such as `interactions`. No two tables have the same.
    pub name: &'static str,
    /// What a row is, in words.
    pub about: &'static str,
    /// The columns, in order.
    pub columns: &'static [Column],
    /// The rows of an admitted artifact of these members, in its order. Each has a cell for every column. It is an error
    /// if a member cannot be read.
    pub rows: fn(&[MemberBytes<'_>], &Limits) -> Result<Vec<Cells>, ReadError>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name, such as `prompt_hash`.
    pub name: &'static str,
    /// What its cells are.
    pub sort: ColumnSort,
    /// What it says, in words.
    pub about: &'static str,
}

impl Column {
    /// A column of this name and sort.
    #[must_use]
    pub const fn new(name: &'static str, sort: ColumnSort, about: &'static str) -> Self {
        Self { name, sort, about }
    }
}

/// What the cells of a column are, where they are not NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnSort {
    /// Whole numbers.
    Number,
    /// Text.
    Text,
    /// Digests, as `sha256:` and 64 hex digits. Text that a format allows there instead stands as it is.
    Hash,
    /// JSON, as text.
    Json,
    /// Numbers or text.
    Any,
}

impl ColumnSort {
    /// The name, as programs write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Text => "text",
            Self::Hash => "hash",
            Self::Json => "json",
            Self::Any => "any",
        }
    }
}

/// A row: a cell for every column.
pub type Cells = Vec<Cell>;

/// A value in SQL.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL
    Null,
    /// A whole number.
    Integer(i64),
    /// A double.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Cell {
    /// The number of an interaction, step or record.
    #[must_use]
    pub fn index(index: usize) -> Self {
        i64::try_from(index).map_or(Self::Null, Self::Integer)
    }

    /// The member `name` of `value`, if it is text.
    #[must_use]
    pub fn text_of(value: &Value<'_>, name: &str) -> Self {
        value.get(name).and_then(Value::as_str).into()
    }

    /// The digest in the member `name` of `value`, with its prefix or without. Other text is not changed.
    #[must_use]
    pub fn hash_of(value: &Value<'_>, name: &str) -> Self {
        let text = value.get(name).and_then(Value::as_str);
        let digest = text.and_then(Digest::stated_either);
        digest.map_or_else(|| text.into(), |digest| Self::Text(digest.to_string()))
    }

    /// The member `name` of `value` as JSON.
    #[must_use]
    pub fn json_of(value: &Value<'_>, name: &str) -> Self {
        value.get(name).map_or(Self::Null, Self::json)
    }

    /// `value` as JSON.
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
