//! Cursors: where the next page of a result begins, as text without meaning for clients.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::failure::ToolError;

/// Writes a cursor.
pub(super) fn encode<T: Serialize>(cursor: &T) -> Result<String, ToolError> {
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(cursor)?))
}

/// The `next_cursor` of the previous result.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(crate = "rmcp::schemars", inline)]
pub(super) struct McpCursor(Option<String>);

impl McpCursor {
    pub(super) fn new(text: Option<&str>) -> Self {
        Self(text.map(str::to_owned))
    }

    /// Reads the cursor of a request; `None` if there is none.
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<Option<T>, ToolError> {
        let Some(text) = &self.0 else { return Ok(None) };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ToolError::Cursor)?;
        serde_json::from_slice(&bytes).map(Some).map_err(|_| ToolError::Cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_were_written() {
        let text = encode(&(7_u64, "é")).unwrap();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')));
        let cursor = |text: &str| McpCursor(Some(text.to_owned()));
        assert_eq!(cursor(&text).decode::<(u64, String)>().unwrap(), Some((7, "é".to_owned())));
        assert!(McpCursor(None).decode::<u64>().unwrap().is_none());
        for other in ["", "!", "AAAA", &text] {
            assert!(matches!(cursor(other).decode::<u64>(), Err(ToolError::Cursor)), "{other}");
        }
    }
}
