//! Values of results.

use std::error::Error;
use std::fmt::Write as _;

use postgres::Row;
use postgres::types::{FromSql, IsNull, ToSql, Type};

use crate::artifact::Cell;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::parameters::{TypedParameter, from_stored, to_stored};

/// A value as a cell.
struct DecodedCell(Cell);

/// Returns whether values of a type can be decoded. Others are converted to text by the server.
pub(super) fn is_decoded(of: &Type) -> bool {
    is_text(of)
        || [Type::BOOL, Type::INT2, Type::INT4, Type::INT8, Type::OID, Type::BYTEA].contains(of)
        || [Type::FLOAT4, Type::FLOAT8, Type::NUMERIC].contains(of)
}

fn is_text(of: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::UNKNOWN, Type::JSON].contains(of)
}

impl<'a> FromSql<'a> for DecodedCell {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *of {
            _ if is_text(of) => Cell::Text(<&str>::from_sql(of, raw)?.to_owned()),
            Type::BOOL => Cell::Integer(bool::from_sql(of, raw)?.into()),
            Type::INT2 => Cell::Integer(i16::from_sql(of, raw)?.into()),
            Type::INT4 => Cell::Integer(i32::from_sql(of, raw)?.into()),
            Type::INT8 => Cell::Integer(i64::from_sql(of, raw)?),
            Type::OID => Cell::Integer(u32::from_sql(of, raw)?.into()),
            Type::FLOAT4 => Cell::Real(f32::from_sql(of, raw)?.into()),
            Type::FLOAT8 => Cell::Real(f64::from_sql(of, raw)?),
            Type::NUMERIC => numeric(raw)?,
            _ => Cell::Blob(raw.to_vec()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Cell::Null))
    }

    fn accepts(of: &Type) -> bool {
        is_decoded(of)
    }
}

/// Decodes a decimal number: an integer if it has no decimal places and is small enough. Sums of integers are such numbers.
fn numeric(raw: &[u8]) -> Result<Cell, Box<dyn Error + Sync + Send>> {
    let (words, _) = raw.as_chunks::<2>();
    let words: Vec<u16> = words.iter().map(|word| u16::from_be_bytes(*word)).collect();
    let [_, weight, sign, scale, digits @ ..] = words.as_slice() else {
        return Err("a number is cut off".into());
    };
    let sign = match sign {
        0 => "",
        0x4000 => "-",
        0xD000 => return Ok(Cell::Real(f64::INFINITY)),
        0xF000 => return Ok(Cell::Real(f64::NEG_INFINITY)),
        _ => return Ok(Cell::Null),
    };
    // Each has four decimal digits; the first one stands before `weight` others and the point.
    let exponent = 4 * (i32::from(weight.cast_signed()) + 1 - i32::try_from(digits.len())?);
    let digits = digits.iter().fold(String::new(), |mut text, digit| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{digit:04}");
        text
    });
    if *scale == 0 {
        let zeros = "0".repeat(usize::try_from(exponent).unwrap_or(0));
        if let Ok(integer) = format!("{sign}0{digits}{zeros}").parse() {
            return Ok(Cell::Integer(integer));
        }
    }
    Ok(Cell::Real(format!("{sign}0{digits}e{exponent}").parse()?))
}

/// Returns the cells of a row.
pub(super) fn cells(row: &Row) -> PostgresResult<Vec<Cell>> {
    let cell = |index| {
        let DecodedCell(cell) = row.try_get(index)?;
        Ok(match cell {
            // A query may also make texts that look like stored ones.
            Cell::Text(text) => Cell::Text(from_stored(text.clone()).unwrap_or(text)),
            cell => cell,
        })
    };
    (0..row.len()).map(cell).collect()
}

/// A cell as the value of a parameter of a type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CellParameter(pub(super) Cell);

impl CellParameter {
    /// Returns the type of the value.
    pub(super) fn type_of(&self) -> Type {
        match self.0 {
            Cell::Integer(_) => Type::INT8,
            Cell::Real(_) => Type::FLOAT8,
            Cell::Null | Cell::Text(_) => Type::TEXT,
            Cell::Blob(_) => Type::BYTEA,
        }
    }

    /// Returns it with its type.
    pub(super) fn typed(&self) -> TypedParameter<'_> {
        (self, self.type_of())
    }
}

/// Numbers are converted to the type of the parameter, as SQLite does.
impl ToSql for CellParameter {
    fn to_sql(&self, of: &Type, out: &mut bytes::BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            Cell::Null => Ok(IsNull::Yes),
            #[expect(clippy::cast_precision_loss, reason = "as SQLite converts them")]
            Cell::Integer(integer) if *of == Type::FLOAT8 => (*integer as f64).to_sql(of, out),
            Cell::Integer(integer) if *of == Type::TEXT => integer.to_string().to_sql(of, out),
            Cell::Integer(integer) => integer.to_sql(of, out),
            Cell::Real(real) => real.to_sql(of, out),
            Cell::Text(text) => to_stored(text).to_sql(of, out),
            Cell::Blob(bytes) => bytes.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_without_places_are_integers() {
        let number = |weight: i16, sign: u16, scale: u16, digits: &[u16]| {
            let count = u16::try_from(digits.len()).unwrap();
            let head = [count, weight.cast_unsigned(), sign, scale];
            let raw: Vec<u8> = head.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect();
            numeric(&raw).unwrap()
        };
        assert_eq!(number(0, 0, 0, &[]), Cell::Integer(0));
        assert_eq!(number(1, 0, 0, &[12, 3]), Cell::Integer(120_003));
        assert_eq!(number(2, 0x4000, 0, &[5]), Cell::Integer(-500_000_000));
        assert_eq!(number(0, 0, 2, &[3, 2_500]), Cell::Real(3.25));
        assert_eq!(number(-1, 0x4000, 3, &[5_000]), Cell::Real(-0.5));
        assert_eq!(number(0, 0, 1, &[2]), Cell::Real(2.0));
        assert_eq!(number(9, 0, 0, &[1]), Cell::Real(1e36));
        assert_eq!(number(0, 0xC000, 0, &[]), Cell::Null);
        assert!(numeric(&[0, 1]).is_err());
    }
}
