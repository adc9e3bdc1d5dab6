//! JSON values in answers.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{PartialSchema, ToSchema};

use crate::json::{Number, Object, Value};

/// A JSON value of an artifact. Numbers that neither 64 bits nor a double represent exactly are written as strings of
/// their digits.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonValue(pub Value<'static>);

/// A value, for serde.
struct BorrowedJsonValue<'v>(&'v Value<'v>);

impl Serialize for JsonValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        BorrowedJsonValue(&self.0).serialize(serializer)
    }
}

impl Serialize for BorrowedJsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            Value::String(text) => serializer.serialize_str(text),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => serializer.serialize_i64(integer),
                (None, double) if !number.is_integer() && double.is_finite() => {
                    serializer.serialize_f64(double)
                }
                _ => serializer.serialize_str(number.literal()),
            },
            Value::Array(elements) => serializer.collect_seq(elements.iter().map(BorrowedJsonValue)),
            Value::Object(object) => {
                serializer.collect_map(object.iter().map(|(name, member)| (name, BorrowedJsonValue(member))))
            }
        }
    }
}

impl<'de> Deserialize<'de> for JsonValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonValueVisitor).map(Self)
    }
}

struct JsonValueVisitor;

impl<'de> Visitor<'de> for JsonValueVisitor {
    type Value = Value<'static>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Value::Number(Number::from_literal(value.to_string())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Value::Number(Number::from_literal(value.to_string())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Value::Number(Number::from_literal(value.to_string())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Value::String(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(JsonValue(value)) = elements.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut named = Vec::new();
        while let Some((name, JsonValue(value))) = members.next_entry::<String, JsonValue>()? {
            named.push((Cow::Owned(name), value));
        }
        Ok(Value::Object(Object::from_members(named)))
    }
}

impl PartialSchema for JsonValue {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some(
                "A JSON value. Numbers that neither 64 bits nor a double represent exactly are strings of their digits.",
            ))
            .into()
    }
}

impl ToSchema for JsonValue {}

/// A JSON value as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// Creates the value from its text; `None` if that is not JSON.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(&self.0).map_err(ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|value| Self(value.get().to_owned()))
    }
}

impl PartialSchema for JsonText {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some("A JSON value, as it is recorded."))
            .into()
    }
}

impl ToSchema for JsonText {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        for text in [r#"{"b":[1,-2.5,null,true,"x"],"a":{}}"#, "12", "\"text\"", "[]"] {
            let value: JsonValue = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
        }
    }

    #[test]
    fn texts_are_written_as_they_are() {
        let text = r#"{"a":1.50,"b":123456789012345678901234567890}"#;
        let value = JsonText::parse(text).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        assert_eq!(JsonText::parse("{"), None);
    }

    #[test]
    fn numbers_that_nothing_represents_are_strings() {
        let number = Value::Number(Number::from_literal("123456789012345678901234567890"));
        let text = serde_json::to_string(&JsonValue(number)).unwrap();
        assert_eq!(text, "\"123456789012345678901234567890\"");
    }
}
