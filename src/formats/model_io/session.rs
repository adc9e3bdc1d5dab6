use crate::digest::Digest;
use crate::json::Value;
use crate::json::reader::{self, Limits, ReadError};

/// A recorded model session as typed data: the hashed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// `model_io_schema_version`.
    pub schema_version: String,
    /// The adapter that recorded it.
    pub adapter_id: String,
    /// The model that responded.
    pub model_id: String,
    /// The purpose of the recording.
    pub mode: SessionMode,
    /// The prompts and responses, in order.
    pub interactions: Vec<Interaction>,
}

/// The purpose of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionMode {
    /// It was made from live calls.
    Record,
    /// It is intended for deterministic replay.
    Replay,
}

/// One prompt and its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// The SHA-256 of the prompt's UTF-8 bytes; the prompt itself is not recorded.
    pub prompt_hash: Digest,
    /// The SHA-256 of the response's UTF-8 bytes.
    pub response_hash: Digest,
    /// The response.
    pub response_content: String,
}

impl Session {
    /// Returns the session in an admitted `document`, or `None` if the document is not an admitted session.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read as JSON.
    pub fn read(document: &[u8], limits: &Limits) -> Result<Option<Self>, ReadError> {
        let root = reader::read_keeping_overflow(document, limits)?;
        Ok(Self::from_value(&root))
    }

    fn from_value(root: &Value<'_>) -> Option<Self> {
        let text = |name: &str| root.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            schema_version: text("model_io_schema_version")?,
            adapter_id: text("adapter_id")?,
            model_id: text("model_id")?,
            mode: match text("mode")?.as_str() {
                "record" => SessionMode::Record,
                "replay" => SessionMode::Replay,
                _ => return None,
            },
            interactions: root
                .get("interactions")?
                .as_array()?
                .iter()
                .map(Interaction::from_value)
                .collect::<Option<_>>()?,
        })
    }
}

impl Interaction {
    fn from_value(value: &Value<'_>) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        Some(Self {
            prompt_hash: text("prompt_hash").and_then(Digest::parse_prefixed)?,
            response_hash: text("response_hash").and_then(Digest::parse_prefixed)?,
            response_content: text("response_content")?.to_owned(),
        })
    }
}
