//! A request for a page, and what is returned for it: a page, a file, or the style sheet and the script of all pages; and
//! forms that change the vault: who may send them, and how their fields are read.
//!
//! A page of another site can send forms to any server, also to one on this machine. So the request must come from a page of
//! this server, as far as the browser says where it comes from, and the form must contain a token that only pages of this
//! server contain.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;
use std::io;

use axum::extract::{Form, FromRequest, Query, Request};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::IntoResponse;
use maud::Markup;
use serde::de::DeserializeOwned;

use super::address;
use crate::digest::CoreHash;
use crate::storage::{ErrorKind, StorageError};
use crate::vault::api::Operation;
use crate::vault::prices::ModelPrice;
use crate::vault::search::SearchError;
use crate::vault::{HashTarget, LookupError, Vault};

/// The reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// A parameter of the address is not valid.
    #[error("{0}")]
    BadRequest(String),
    /// A field of a form is not valid. The page of the form says so beside the field.
    #[error("{}: {message}", .field.replace('_', " "))]
    Field {
        /// The name of the field.
        field: &'static str,
        /// What is wrong.
        message: String,
    },
    /// There is no page at this address.
    #[error("there is no page at this address")]
    NoPage,
    /// The artifact cannot be found.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The search is not possible.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The vault cannot be read.
    #[error(transparent)]
    Store(#[from] StorageError),
}

impl PageError {
    /// Returns the status of the response.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) | Self::Field { .. } => StatusCode::BAD_REQUEST,
            Self::NoPage => StatusCode::NOT_FOUND,
            Self::Lookup(error) => of_lookup(error),
            Self::Search(error) => of_search(error),
            Self::Store(error) => of_store(error),
        }
    }

    /// Returns the artifacts that an ambiguous text can mean.
    pub(super) fn candidates(&self) -> Vec<CoreHash> {
        let core = |target: &HashTarget| match target {
            HashTarget::Artifact(core) | HashTarget::Capture(core, _) => *core,
        };
        match self {
            Self::Lookup(LookupError::Ambiguous { candidates, .. }) => candidates.iter().map(core).collect(),
            Self::Lookup(LookupError::AmbiguousName { candidates, .. }) => {
                candidates.iter().map(|artifact| artifact.core).collect()
            }
            Self::Lookup(LookupError::AmbiguousHandle { meanings, .. }) => {
                meanings.iter().map(|(_, core)| *core).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the error that a hint can be given for.
    pub(super) fn cause(&self) -> &(dyn Error + 'static) {
        match self {
            Self::BadRequest(_) | Self::Field { .. } | Self::NoPage => self,
            Self::Lookup(error) => error,
            Self::Search(error) => error,
            Self::Store(error) => error,
        }
    }
}

fn of_lookup(error: &LookupError) -> StatusCode {
    match error {
        LookupError::NotFound(_)
        | LookupError::NoSuchTag(_)
        | LookupError::NoSuchName { .. }
        | LookupError::Mentioned(_)
        | LookupError::NotMentioned { .. }
        | LookupError::LatestOutOfRange { .. }
        | LookupError::CaptureNotFound { .. } => StatusCode::NOT_FOUND,
        LookupError::Removed(_) => StatusCode::GONE,
        LookupError::Ambiguous { .. }
        | LookupError::AmbiguousName { .. }
        | LookupError::AmbiguousHandle { .. }
        | LookupError::AmbiguousMention { .. } => StatusCode::MULTIPLE_CHOICES,
        LookupError::Store(error) => of_store(error),
        LookupError::Unreadable { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn of_search(error: &SearchError) -> StatusCode {
    match error {
        SearchError::Store(error) => of_store(error),
        SearchError::NoIndex | SearchError::StaleIndex => StatusCode::NOT_FOUND,
        SearchError::Differs { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn of_store(error: &StorageError) -> StatusCode {
    match error.kind() {
        ErrorKind::Gone => StatusCode::GONE,
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Busy | ErrorKind::Connection => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns what a person can do about an error, if anything.
pub type Hint = fn(&(dyn Error + 'static)) -> Option<&'static str>;

/// A request for a page.
pub(super) struct PageRequest<'v> {
    pub(super) vault: &'v Vault,
    /// The part of the path that names an artifact; empty if the page is not of one.
    pub(super) name: &'v str,
    pub(super) uri: &'v Uri,
    pub(super) medium: Medium,
    /// The prices by which the costs of runs that state none are computed.
    pub(super) prices: &'v [ModelPrice],
    /// What forms that change the vault contain; `None` if there are none.
    pub(super) form_token: Option<&'v FormToken>,
}

/// The medium of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    /// The response to a request.
    Response,
    /// A file, which is read at any time.
    File,
}

/// A file that pages refer to.
pub(super) struct Asset {
    pub(super) name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
}

/// The style sheet.
pub(super) const STYLE: Asset = Asset {
    name: "style.css",
    content_type: "text/css; charset=utf-8",
    text: include_str!("assets/style.css"),
};

/// The script.
pub(super) const SCRIPT: Asset = Asset {
    name: "script.js",
    content_type: "text/javascript; charset=utf-8",
    text: include_str!("assets/script.js"),
};

/// Returns the file with this name.
pub(super) fn asset_named(name: &str) -> Option<&'static Asset> {
    const FILES: &[Asset] = &[STYLE, SCRIPT];
    FILES.iter().find(|asset| asset.name == name)
}

/// The content of a response.
pub(super) enum ResponseContent {
    Page(HtmlPage),
    /// The page of a form with a field that is not valid.
    Invalid(HtmlPage),
    /// The page of a form that did not change the vault, which says why.
    Unchanged(StatusCode, HtmlPage),
    /// The vault was changed as a form says. The page that shows it has this address.
    Changed(String),
    /// The page has this address.
    Redirect(String),
    Download(Download),
    Asset(&'static Asset),
}

/// A page without its frame.
pub(super) struct HtmlPage {
    pub(super) title: String,
    /// The path of the section in the navigation.
    pub(super) section: &'static str,
    pub(super) body: Markup,
}

/// Bytes to be saved as a file.
pub(super) struct Download {
    pub(super) bytes: Vec<u8>,
    pub(super) file_name: String,
}

impl PageRequest<'_> {
    /// Runs an operation of the vault.
    pub(super) fn run<O: Operation>(&self, request: &O) -> Result<O::Answer, PageError>
    where
        PageError: From<O::Error>,
    {
        Ok(self.vault.run(request)?)
    }

    /// Parses the parameters of the address.
    pub(super) fn parameters<T: DeserializeOwned>(&self) -> Result<T, PageError> {
        match Query::try_from_uri(self.uri) {
            Ok(Query(parameters)) => Ok(parameters),
            Err(_) => Err(PageError::BadRequest(invalid_parameter::<T>(self.uri))),
        }
    }
}

/// Returns what is wrong with the parameters of an address that are not valid. All parameters of pages are optional, so
/// that each can be checked alone.
fn invalid_parameter<T: DeserializeOwned>(uri: &Uri) -> String {
    let Ok(Query(parameters)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
        return "the parameters of the address are not valid".to_owned();
    };
    let mut names = BTreeSet::new();
    for (name, value) in &parameters {
        if !names.insert(name) {
            return format!("the address has the parameter {name} more than once");
        }
        let alone = address::with_query("/", &[(name, Some(value))]).parse::<Uri>();
        if let Some(error) = alone.ok().and_then(|alone| Query::<T>::try_from_uri(&alone).err()) {
            return if error.body_text().contains("unknown field `") {
                format!("the page has no parameter {name}")
            } else {
                format!("{value} is not a value of the parameter {name}")
            };
        }
    }
    "the parameters of the address are not valid".to_owned()
}

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
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[derive(Default)]
    struct Parameters {
        depth: u8,
    }

    #[test]
    fn parameters_that_are_not_valid_are_named_in_plain_words() {
        for (address, message) in [
            ("/?depth=1&depth=2", "the address has the parameter depth more than once"),
            ("/?depth=1&color%20=2", "the page has no parameter color "),
            ("/?depth=x%26y", "x&y is not a value of the parameter depth"),
        ] {
            assert_eq!(invalid_parameter::<Parameters>(&address.parse().unwrap()), message, "{address}");
        }
    }

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
