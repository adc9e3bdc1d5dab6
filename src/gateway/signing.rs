//! Signatures of requests to AWS (Signature Version 4). That of a client is of the address that it asks, which is that of the
//! gateway, so that a request that is forwarded is signed again with the same key.

use std::fmt;

use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue};
use axum::http::{Method, Uri};

use crate::digest::{Digest, hex, hmac};
use crate::server::{is_unreserved, percent_encoded};

/// The algorithm, with which the header of a signed request begins.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The headers with the time of a request, and with the digest of its body.
const TIME: &str = "x-amz-date";
const BODY_DIGEST: &str = "x-amz-content-sha256";

/// A key of AWS.
#[derive(Clone)]
pub struct AwsKey {
    id: String,
    secret: String,
}

impl AwsKey {
    /// Returns the key with this id (`AWS_ACCESS_KEY_ID`) and secret (`AWS_SECRET_ACCESS_KEY`).
    #[must_use]
    pub fn new(id: String, secret: String) -> Self {
        Self { id, secret }
    }

    /// Returns whether a signature states this key.
    pub(super) fn made(&self, signature: &AwsSignature<'_>) -> bool {
        signature.key == self.id
    }
}

/// Leaves the secret out.
impl fmt::Debug for AwsKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AwsKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What the header of a signed request states.
pub(super) struct AwsSignature<'h> {
    /// The id of the key.
    pub(super) key: &'h str,
    /// The day, the region, the service and a constant.
    scope: &'h str,
    /// The names of the headers that it is of, in lower case and sorted.
    headers: Vec<&'h str>,
}

impl<'h> AwsSignature<'h> {
    /// Returns what the header of a request states, if it is signed.
    pub(super) fn of(headers: &'h HeaderMap) -> Option<Self> {
        let stated = headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix(ALGORITHM)?;
        let stated =
            |name| stated.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
        let (key, scope) = stated("Credential")?.split_once('/')?;
        Some(Self { key, scope, headers: stated("SignedHeaders")?.split(';').collect() })
    }
}

/// A request that is forwarded.
pub(super) struct OutgoingRequest<'r> {
    pub(super) method: &'r Method,
    pub(super) url: &'r Uri,
    pub(super) headers: &'r HeaderMap,
    pub(super) body: &'r [u8],
}

impl OutgoingRequest<'_> {
    /// Returns the signature, as a header, in place of the one that its client made; `None` if that one is of another key,
    /// or does not state a time.
    pub(super) fn signed(&self, key: &AwsKey) -> Option<HeaderValue> {
        let signature = AwsSignature::of(self.headers).filter(|signature| key.made(signature))?;
        let AwsSignature { key: id, scope, headers } = signature;
        let time = self.headers.get(TIME)?.to_str().ok()?;
        // What ends at the gateway is not sent.
        let headers: Vec<(&str, String)> =
            headers.into_iter().filter_map(|name| Some((name, self.header(name)?))).collect();
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let digest = Digest::from_content(self.canonical(&headers, &names).as_bytes()).hex();
        let to_sign = [ALGORITHM, time, scope, &digest].join("\n");
        let derived = scope
            .split('/')
            .chain([&*to_sign])
            .try_fold(format!("AWS4{}", key.secret).into_bytes(), |key, part| {
                Some(hmac(&key, part.as_bytes())?.as_bytes().to_vec())
            });
        let signature = hex(&derived?);
        let header =
            format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
        HeaderValue::from_str(&header).ok()
    }

    /// Returns the canonical form of the request.
    fn canonical(&self, headers: &[(&str, String)], names: &str) -> String {
        let path = if self.url.path().is_empty() { "/" } else { self.url.path() };
        let mut parameters: Vec<&str> = self.url.query().unwrap_or_default().split('&').collect();
        parameters.sort_unstable();
        let lines: String = headers.iter().flat_map(|(name, value)| [name, ":", value, "\n"]).collect();
        let digest = self.header(BODY_DIGEST).unwrap_or_else(|| Digest::from_content(self.body).hex());
        // What is escaped in the path is escaped again.
        let path = percent_encoded(path, |byte| is_unreserved(byte) || byte == b'/');
        [self.method.as_str(), &path, &parameters.join("&"), &lines, names, &digest].join("\n")
    }

    /// Returns the value of a header in canonical form: its values separated by commas, with single spaces.
    fn header(&self, name: &str) -> Option<String> {
        if name == HOST {
            return self.url.authority().map(ToString::to_string);
        }
        if name == CONTENT_LENGTH {
            return Some(self.body.len().to_string());
        }
        let values = self.headers.get_all(name).into_iter().map(|value| value.to_str().ok());
        let words = |value: &str| value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let values: Vec<String> = values.map(|value| value.map(words)).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the documentation of Signature Version 4.
    #[test]
    fn the_example_of_the_documentation_is_signed() {
        let stated = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
            SignedHeaders=connection;content-type;host;x-amz-date, Signature=00";
        let lines = [
            ("authorization", stated),
            ("content-type", "application/x-www-form-urlencoded;  charset=utf-8"),
            (TIME, "20150830T123600Z"),
        ];
        let headers = lines.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let url: Uri = "https://iam.amazonaws.com/?Version=2010-05-08&Action=ListUsers".parse().unwrap();
        let headers: HeaderMap = headers.into_iter().collect();
        let request = OutgoingRequest { method: &Method::GET, url: &url, headers: &headers, body: b"" };
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned();
        let key = AwsKey::new("AKIDEXAMPLE".to_owned(), secret.clone());
        let signed = request.signed(&key).unwrap();
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
            SignedHeaders=content-type;host;x-amz-date, \
            Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
        assert_eq!(signed, expected);
        assert_eq!(request.signed(&AwsKey::new("OTHER".to_owned(), secret.clone())), None);
        assert!(!format!("{key:?}").contains(&secret));
    }
}
