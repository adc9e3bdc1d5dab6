//! The operations of a vault as data: requests, answers, and the document that describes them.
//!
//! Every operation has a request type and an answer type in a file of its own. Both are serde types, so that the
//! command line, a server and other languages exchange the same documents. [`document`] describes all of them in
//! OpenAPI 3.1; `docs/api.json` is that document.

pub use super::openapi::{OperationVisitor, document, visit_operations};
pub use crate::artifact::{SignatureName, Timestamp};
pub use crate::storage::TimeBasis;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use super::Vault;
use crate::artifact::ArtifactLocation;
use crate::digest::{self, CaptureHash, CoreHash, Digest, DigestPrefix};
use crate::json::{Number, Object, Value};
use crate::storage::ArtifactRecord;
use crate::storage::check::finding::Finding;

/// An operation of a vault: a request, which runs and returns its answer.
pub trait Operation: Serialize + DeserializeOwned + ToSchema {
    /// The answer.
    type Answer: Serialize + DeserializeOwned + ToSchema;
    /// The reason that there is no answer.
    type Error: std::error::Error + 'static;

    /// The name of the operation, in lowercase with hyphens.
    const NAME: &'static str;
    /// The summary of the operation, as a verb phrase.
    const SUMMARY: &'static str;
    /// Whether it changes the vault.
    const CHANGES: bool = false;

    /// Runs the operation. It reads one snapshot, or writes one transaction, of the vault.
    ///
    /// # Errors
    /// Each operation documents its errors.
    fn run(&self, vault: &Vault) -> Result<Self::Answer, Self::Error>;
}

impl Vault {
    /// Runs an operation.
    ///
    /// # Errors
    /// Same as [`Operation::run`] of the request.
    pub fn run<O: Operation>(&self, request: &O) -> Result<O::Answer, O::Error> {
        request.run(self)
    }
}

/// Implements the schema of types that are written as a digest.
macro_rules! digests {
    ($($name:ident: $description:literal),+ $(,)?) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some("^sha256:[0-9a-f]{64}$"))
                    .description(Some($description))
                    .into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

digests! {
    Digest: "A SHA-256 digest.",
    CoreHash: "The core hash of an artifact.",
    CaptureHash: "The hash of a capture: one exact byte form of an artifact.",
}

impl PartialSchema for DigestPrefix {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^(sha256:)?[0-9a-f]{6,64}$"))
            .description(Some("The first digits of a SHA-256 digest, at least 6."))
            .into()
    }
}

impl ToSchema for DigestPrefix {}

/// An artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactSummary {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The name of its kind.
    pub kind: String,
    /// The time at which its first capture was added.
    pub added_at: Timestamp,
    /// The time at which one of its captures was last added or seen again.
    pub seen_at: Timestamp,
}

impl From<&ArtifactRecord> for ArtifactSummary {
    fn from(artifact: &ArtifactRecord) -> Self {
        Self {
            core_hash: artifact.core,
            kind: artifact.kind.clone(),
            added_at: artifact.added_at.into(),
            seen_at: artifact.seen_at.into(),
        }
    }
}

/// An artifact by its core hash and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactName {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
}

impl From<ArtifactRecord> for ArtifactName {
    fn from(artifact: ArtifactRecord) -> Self {
        Self { core_hash: artifact.core, kind: artifact.kind }
    }
}

/// The path of a file, which need not be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PathName {
    /// The path. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub path: String,
    /// All bytes of the path as lowercase hex digits; missing if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
}

impl From<&Path> for PathName {
    fn from(path: &Path) -> Self {
        Self { path: path.to_string_lossy().into_owned(), path_bytes: bytes_of(path.as_os_str()) }
    }
}

/// Returns the bytes of a name as hex digits if it is not UTF-8. JSON cannot represent it: the name itself then
/// contains replacement characters.
#[must_use]
pub fn bytes_of(name: &OsStr) -> Option<String> {
    name.to_str().is_none().then(|| digest::hex(name.as_encoded_bytes()))
}

/// A defect that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingSummary {
    /// Its type, such as `damaged-bytes`.
    pub finding: String,
    /// The type of its subject, such as `artifact`.
    pub about: String,
    /// The name or hash of its subject.
    pub subject: String,
    /// The details.
    pub detail: String,
    /// What findings of this type mean.
    pub meaning: String,
}

impl From<&Finding> for FindingSummary {
    fn from(finding: &Finding) -> Self {
        Self {
            finding: finding.info.id.to_owned(),
            about: finding.subject.type_name().to_owned(),
            subject: finding.subject.name(),
            detail: finding.detail.clone(),
            meaning: finding.info.meaning.to_owned(),
        }
    }
}

/// A location in an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum PlaceSummary {
    /// A numbered part.
    Index {
        /// The unit, such as `step`.
        unit: String,
        /// The number, from 0.
        index: u32,
    },
    /// A part of the document.
    Pointer {
        /// A JSON Pointer; in JSON Lines, `line 7` and a pointer into it.
        pointer: String,
    },
}

impl PlaceSummary {
    /// Creates the description of a place that is counted in `unit`.
    #[must_use]
    pub fn new(unit: &str, place: &ArtifactLocation) -> Self {
        match place {
            ArtifactLocation::Index(index) => Self::Index { unit: unit.to_owned(), index: *index },
            ArtifactLocation::Pointer(pointer) => Self::Pointer { pointer: pointer.clone() },
        }
    }
}

/// Formats the location, such as `step 3`, or a pointer.
impl fmt::Display for PlaceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index { unit, index } => write!(f, "{unit} {index}"),
            Self::Pointer { pointer } => f.write_str(pointer),
        }
    }
}

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
