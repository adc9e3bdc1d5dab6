//! Forms that change the vault: who may send them, and how their fields are read.
//!
//! A page of another site can send forms to any server, also to one on this machine. So the request must come from a page
//! of this server, as far as the browser says where it comes from, and the form must contain a token that only pages of
//! this server contain.

use std::fmt::Write;
use std::io;

use axum::extract::{Form, FromRequest, Request};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::IntoResponse;

/// Maximum size of a form in bytes: the longest note, with each of its bytes percent-encoded, and all artifacts that can be
/// selected fit.
pub(super) const MAX_FORM_BYTES: usize = 64 << 10;

/// Number of random bytes in a token.
const RANDOM_BYTES: usize = 32;

/// What a browser says about the site of the page that sends a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The secret of a server that its forms contain.
pub(super) struct FormToken(String);

impl FormToken {
    /// Creates a token.
    ///
    /// # Errors
    /// Returns an error if the system has no random numbers.
    pub(super) fn generate() -> io::Result<Self> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let mut text = String::with_capacity(2 * RANDOM_BYTES);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// Returns the text that forms contain.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Returns whether a text is the token, in a time that does not depend on how much of it is.
    pub(super) fn is(&self, text: &str) -> bool {
        let differing = self.0.bytes().zip(text.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
        self.0.len() == text.len() && std::hint::black_box(differing) == 0
    }
}

/// Returns whether a browser says that the request does not come from a page of this server. Other programs say nothing.
pub(super) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let is_own = |origin: &[u8]| {
        let host = headers.get(HOST).map(HeaderValue::as_bytes);
        host.is_some_and(|host| origin.strip_prefix(b"http://") == Some(host))
    };
    let has_other_origin = headers.get_all(ORIGIN).iter().any(|origin| !is_own(origin.as_bytes()));
    has_other_origin || headers.get_all(FETCH_SITE).iter().any(|site| site != "same-origin")
}

/// Reads the fields of a form, or returns why they cannot be read.
pub(super) async fn fields(request: Request) -> Result<Vec<(String, String)>, (StatusCode, &'static str)> {
    match Form::from_request(request, &()).await {
        Ok(Form(fields)) => Ok(fields),
        Err(rejection) => {
            let status = rejection.into_response().status();
            Err((
                status,
                match status {
                    StatusCode::UNSUPPORTED_MEDIA_TYPE => "a form is application/x-www-form-urlencoded",
                    StatusCode::PAYLOAD_TOO_LARGE => "the form is too large",
                    _ => "the form cannot be read",
                },
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_only() {
        let (token, other) = (FormToken::generate().unwrap(), FormToken::generate().unwrap());
        assert_eq!(token.text().len(), 2 * RANDOM_BYTES);
        assert!(token.is(token.text()) && !token.is(other.text()));
        let (start, last) = token.text().split_at(2 * RANDOM_BYTES - 1);
        let changed = format!("{start}{}", if last == "0" { "1" } else { "0" });
        for text in ["", start, &changed, &format!("{}0", token.text())] {
            assert!(!token.is(text), "{text}");
        }
    }

    #[test]
    fn requests_of_other_pages_are_recognized() {
        let host = ("host", "127.0.0.1:4780");
        let is_elsewhere = |sent: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(*name, HeaderValue::from_static(value));
            }
            is_from_elsewhere(&headers)
        };
        let own = ("origin", "http://127.0.0.1:4780");
        assert!(!is_elsewhere(&[host]) && !is_elsewhere(&[host, own]));
        assert!(!is_elsewhere(&[host, own, ("sec-fetch-site", "same-origin")]));
        for origin in
            ["null", "", "http://127.0.0.1:4781", "https://127.0.0.1:4780", "http://evil.example", "http://"]
        {
            assert!(is_elsewhere(&[host, ("origin", origin)]), "{origin}");
            assert!(is_elsewhere(&[host, own, ("origin", origin)]), "{origin}");
        }
        for site in ["cross-site", "same-site", "none"] {
            assert!(is_elsewhere(&[host, own, ("sec-fetch-site", site)]), "{site}");
        }
    }
}
