//! Parameters of a statement while its text is written.

use super::super::SqlParameter;
use crate::digest::{CoreHash, Digest};

/// The parameters of a statement.
#[derive(Default)]
pub(in crate::storage) struct StatementParameters(Vec<StatementParameter>);

/// A parameter of a statement.
pub(in crate::storage) enum StatementParameter {
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
    Integers(Vec<i64>),
    Texts(Vec<String>),
    Cores(Vec<CoreHash>),
}

impl StatementParameters {
    /// Adds a parameter, and returns how the statement names it.
    pub(in crate::storage) fn bind(&mut self, value: impl Into<StatementParameter>) -> String {
        self.0.push(value.into());
        format!("?{}", self.0.len())
    }

    /// Returns the parameters in their order.
    pub(in crate::storage) fn values(&self) -> Vec<SqlParameter<'_>> {
        let value = |value| match value {
            &StatementParameter::Integer(number) => SqlParameter::Integer(Some(number)),
            StatementParameter::Text(text) => SqlParameter::Text(Some(text)),
            StatementParameter::Bytes(bytes) => SqlParameter::Bytes(bytes),
            StatementParameter::Integers(numbers) => SqlParameter::Integers(numbers),
            StatementParameter::Texts(texts) => SqlParameter::Texts(texts),
            StatementParameter::Cores(cores) => SqlParameter::Cores(cores),
        };
        self.0.iter().map(value).collect()
    }
}

macro_rules! parameters {
    ($($type:ty: $value:ident => $parameter:expr;)+) => {
        $(impl From<$type> for StatementParameter {
            fn from($value: $type) -> Self {
                $parameter
            }
        })+
    };
}

parameters! {
    i64: number => Self::Integer(number);
    usize: number => Self::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    &str: text => Self::Text(text.to_owned());
    &String: text => Self::Text(text.clone());
    String: text => Self::Text(text);
    &Digest: digest => Self::Bytes(digest.as_bytes().to_vec());
    CoreHash: core => Self::Bytes(core.0.as_bytes().to_vec());
    Vec<u8>: bytes => Self::Bytes(bytes);
    Vec<i64>: numbers => Self::Integers(numbers);
    &[String]: texts => Self::Texts(texts.to_vec());
    &[CoreHash]: cores => Self::Cores(cores.to_vec());
}
