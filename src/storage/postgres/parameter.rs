//! Parameters of statements.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};

/// A parameter of a statement. Its Rust type says its type in the database, so that no round trip asks the server for it.
pub(super) trait Parameter: Sync {
    /// Returns the value to send.
    fn value(&self) -> &(dyn ToSql + Sync);

    /// Returns its type in the database.
    fn type_of(&self) -> Type;
}

/// A type whose values have one type in the database.
pub(super) trait StaticSqlType: ToSql + Sync {
    const TYPE: Type;
}

/// A type whose values can be the elements of an array.
pub(super) trait ArrayElement: StaticSqlType {
    const ARRAY: Type;
}

impl<T: StaticSqlType> Parameter for T {
    fn value(&self) -> &(dyn ToSql + Sync) {
        self
    }

    fn type_of(&self) -> Type {
        T::TYPE
    }
}

macro_rules! elements {
    ($($type:ty: $one:ident, $array:ident;)+) => {
        $(
            impl StaticSqlType for $type {
                const TYPE: Type = Type::$one;
            }

            impl ArrayElement for $type {
                const ARRAY: Type = Type::$array;
            }
        )+
    };
}

elements! {
    bool: BOOL, BOOL_ARRAY;
    i16: INT2, INT2_ARRAY;
    i32: INT4, INT4_ARRAY;
    i64: INT8, INT8_ARRAY;
    f64: FLOAT8, FLOAT8_ARRAY;
    &str: TEXT, TEXT_ARRAY;
    String: TEXT, TEXT_ARRAY;
    Cow<'_, str>: TEXT, TEXT_ARRAY;
    &[u8]: BYTEA, BYTEA_ARRAY;
    Vec<u8>: BYTEA, BYTEA_ARRAY;
    Digest: BYTEA, BYTEA_ARRAY;
    CoreHash: BYTEA, BYTEA_ARRAY;
    CaptureHash: BYTEA, BYTEA_ARRAY;
    BlobHash: BYTEA, BYTEA_ARRAY;
}

impl<T: ArrayElement> StaticSqlType for Vec<T> {
    const TYPE: Type = T::ARRAY;
}

impl<T: ArrayElement> StaticSqlType for &[T] {
    const TYPE: Type = T::ARRAY;
}

impl<T: StaticSqlType> StaticSqlType for Option<T> {
    const TYPE: Type = T::TYPE;
}

impl<T: ArrayElement> ArrayElement for Option<T> {
    const ARRAY: Type = T::ARRAY;
}

impl<T: StaticSqlType> StaticSqlType for &T {
    const TYPE: Type = T::TYPE;
}

impl<T: ArrayElement> ArrayElement for &T {
    const ARRAY: Type = T::ARRAY;
}

impl ToSql for Digest {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.as_bytes().as_slice().to_sql(of, out)
    }

    fn accepts(of: &Type) -> bool {
        <&[u8]>::accepts(of)
    }

    to_sql_checked!();
}

macro_rules! hashes {
    ($($hash:ty),+) => {
        $(impl ToSql for $hash {
            fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
                self.0.to_sql(of, out)
            }

            fn accepts(of: &Type) -> bool {
                Digest::accepts(of)
            }

            to_sql_checked!();
        })+
    };
}

hashes!(CoreHash, CaptureHash, BlobHash);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_can_be_sent_with_their_types() {
        fn is_accepted<T: ArrayElement>() -> bool {
            T::accepts(&T::TYPE) && Vec::<T>::accepts(&T::ARRAY)
        }
        let numbers =
            [is_accepted::<i16>(), is_accepted::<i32>(), is_accepted::<i64>(), is_accepted::<f64>()];
        let texts = [is_accepted::<&str>(), is_accepted::<Option<String>>(), is_accepted::<Cow<'_, str>>()];
        let bytes = [is_accepted::<&[u8]>(), is_accepted::<Vec<u8>>(), is_accepted::<&Digest>()];
        let hashes = [is_accepted::<CoreHash>(), is_accepted::<CaptureHash>(), is_accepted::<BlobHash>()];
        assert!(is_accepted::<bool>());
        assert!(
            [numbers.as_slice(), &texts, &bytes, &hashes].concat().iter().all(|is_accepted| *is_accepted)
        );
    }
}
