//! Parts of URLs: decoded segments of paths, and the parameters that requests are compared by.

use crate::digest::Digest;

/// The ends of the names of parameters that contain keys, without hyphens and underscores.
const CREDENTIAL_ENDINGS: [&str; 8] =
    ["key", "token", "secret", "password", "signature", "credential", "auth", "authorization"];

/// Other names of such parameters.
const CREDENTIALS: [&str; 3] = ["code", "pwd", "sig"];

/// Decodes `%XX`. Bytes that are not UTF-8 are replaced.
pub(crate) fn percent_decoded(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the digest of the parameters of a query that are not keys, sorted by their names; `None` if there are none. Queries are
/// compared by their digests, so that they need not be stored.
pub(crate) fn query_digest(query: &str) -> Option<String> {
    let mut parameters: Vec<&str> =
        query.split('&').filter(|parameter| !parameter.is_empty() && !is_credential(parameter)).collect();
    parameters.sort_by_key(|parameter| name(parameter));
    let query = parameters.join("&");
    (!query.is_empty()).then(|| Digest::from_content(query.as_bytes()).to_string())
}

fn name(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or_default()
}

fn is_credential(parameter: &str) -> bool {
    let letters = name(parameter).chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    CREDENTIALS.contains(&name.as_str()) || CREDENTIAL_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_compared() {
        for query in ["", "key=1", "api-key=1&API_KEY=2", "access_token=1&X-Amz-Signature=2&sig=3"] {
            assert_eq!(query_digest(query), None, "{query}");
        }
        assert!(query_digest("task=a").is_some());
        assert_ne!(query_digest("task=a"), query_digest("task=b"));
        assert_eq!(query_digest("task=a&n=1&key=x"), query_digest("n=1&key=y&task=a"));
        assert_ne!(query_digest("a=1&a=2"), query_digest("a=2&a=1"));
    }
}
