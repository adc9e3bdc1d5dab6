use crate::canonical::Value;
use crate::canonical::reader::{self, Limits, ReadError};
use crate::digest::Digest;

/// A recorded model session as typed data: the part that is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// `model_io_schema_version`.
    pub schema_version: String,
    /// Which adapter recorded it.
    pub adapter_id: String,
    /// Which model answered.
    pub model_id: String,
    /// What the recording is meant for.
    pub mode: Mode,
    /// Prompts and responses, in order.
    pub interactions: Vec<Interaction>,
}

/// What a recording is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It was made from live calls.
    Record,
    /// It is meant for deterministic replay.
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
    /// The session in an admitted `document`; nothing if the document is not an admitted session.
    ///
    /// # Errors
    /// What keeps the document from being read as JSON.
    pub fn read(document: &[u8], limits: &Limits) -> Result<Option<Self>, ReadError> {
        let root = reader::read_keeping_overflow(document, limits)?;
        Ok(Self::of(&root))
    }

    fn of(root: &Value<'_>) -> Option<Self> {
        let text = |name: &str| root.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            schema_version: text("model_io_schema_version")?,
            adapter_id: text("adapter_id")?,
            model_id: text("model_id")?,
            mode: match text("mode")?.as_str() {
                "record" => Mode::Record,
                "replay" => Mode::Replay,
                _ => return None,
            },
            interactions: root
                .get("interactions")?
                .as_array()?
                .iter()
                .map(Interaction::of)
                .collect::<Option<_>>()?,
        })
    }
}

impl Interaction {
    fn of(value: &Value<'_>) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        Some(Self {
            prompt_hash: text("prompt_hash").and_then(Digest::stated)?,
            response_hash: text("response_hash").and_then(Digest::stated)?,
            response_content: text("response_content")?.to_owned(),
        })
    }
}
