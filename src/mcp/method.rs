//! The methods of the protocol, and the errors of requests for which there is no handler.

use rmcp::model::{ErrorCode, ErrorData};

use crate::display::brief;

/// The methods that are answered, with what their parameters are.
const PARAMETERS: [(&str, &str); 7] = [
    ("initialize", "protocolVersion is a string, capabilities and clientInfo are objects"),
    ("ping", "they are an object, or omitted"),
    ("tools/list", "cursor is a string, or omitted"),
    ("tools/call", "name is a string, and arguments are an object, or omitted"),
    ("resources/list", "cursor is a string, or omitted"),
    ("resources/templates/list", "cursor is a string, or omitted"),
    ("resources/read", "uri is a string"),
];

/// Returns the error of a request that no handler of its method accepts: there is no such method, or its parameters are
/// not valid.
pub(super) fn error(method: &str) -> ErrorData {
    if let Some((_, expected)) = PARAMETERS.iter().find(|(known, _)| *known == method) {
        let message = format!("the parameters of {method} are not valid: {expected}");
        return ErrorData::invalid_params(message, None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method \"{}\"", brief(method)), None)
}
