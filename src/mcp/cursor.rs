//! Cursors: where the next page of a result begins, as text without meaning for clients.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::ToolError;

/// Writes a cursor.
pub(super) fn encode<T: Serialize>(cursor: &T) -> Result<String, ToolError> {
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(cursor)?))
}

/// Reads the cursor of a request; `None` if there is none.
pub(super) fn decode<T: DeserializeOwned>(text: Option<&str>) -> Result<Option<T>, ToolError> {
    let Some(text) = text else { return Ok(None) };
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ToolError::Cursor)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|_| ToolError::Cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_were_written() {
        let text = encode(&(7_u64, "é")).unwrap();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')));
        assert_eq!(decode::<(u64, String)>(Some(&text)).unwrap(), Some((7, "é".to_owned())));
        assert!(decode::<u64>(None).unwrap().is_none());
        for other in ["", "!", "AAAA", &text] {
            assert!(matches!(decode::<u64>(Some(other)), Err(ToolError::Cursor)), "{other}");
        }
    }
}
