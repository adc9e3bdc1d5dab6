use std::num::NonZeroUsize;

use crate::artifact::{Arguments, Exchange, Responder};
use crate::digest::Digest;
use crate::json::reader::{self, Limits, ReadError};

/// The order in which recorded responses are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayMode {
    /// In any order: a response is found by its request. A repeated request gets its next recording.
    Lookup,
    /// In recorded order, each response once.
    Sequential,
}

/// The policy of lookups for requests that are repeated more often than they were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeat {
    /// Return a miss.
    #[default]
    Never,
    /// Repeat the last recorded response.
    Last,
}

/// A request to a player: a prompt, a call of a tool, or the next response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayerRequest {
    /// The SHA-256 of the prompt.
    pub prompt: Option<Digest>,
    /// The occurrence of the request, from 1; for lookups only. If `None`, the first unused one.
    pub occurrence: Option<NonZeroUsize>,
    /// The responder, if the request has neither a prompt nor a call; any if `None`.
    pub responder: Option<Responder>,
    /// The name of the called tool; `None` for tools whose name was not recorded.
    pub tool: Option<String>,
    /// The SHA-256 of the arguments of the call, as by [`Arguments::digest`].
    pub arguments: Option<Digest>,
}

impl PlayerRequest {
    /// Creates a request for the response to a prompt with this digest.
    #[must_use]
    pub fn prompt(digest: Digest) -> Self {
        Self { prompt: Some(digest), ..Self::default() }
    }

    /// Creates a request for the response to a call of `tool` with `arguments`, which are JSON.
    ///
    /// ```
    /// use runvault::vault::replay::PlayerRequest;
    ///
    /// # fn main() -> Result<(), runvault::json::reader::ReadError> {
    /// let request = PlayerRequest::call("weather", r#"{"days": 3, "city": "Paris"}"#)?;
    /// assert_eq!(request, PlayerRequest::call("weather", r#"{"city":"Paris","days":3}"#)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns a [`ReadError`] if `arguments` are not JSON, or have duplicate keys or numbers without a canonical form.
    pub fn call(tool: impl Into<String>, arguments: &str) -> Result<Self, ReadError> {
        let arguments = Some(arguments_digest(arguments)?);
        Ok(Self { tool: Some(tool.into()), arguments, ..Self::default() })
    }
}

/// Returns the digest by which calls with these arguments are looked up. `json` contains the arguments as JSON.
///
/// # Errors
/// Returns a [`ReadError`] if it is not JSON, or has duplicate keys or numbers without a canonical form.
pub fn arguments_digest(json: &str) -> Result<Digest, ReadError> {
    let value = reader::read(json.as_bytes(), &Limits::default())?;
    let arguments = Arguments::from_value(&value).ok_or_else(|| {
        ReadError::at(json.as_bytes(), 0, reader::Defect::Number, "a number has no canonical form")
    })?;
    Ok(arguments.digest())
}

/// A played response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayedResponse<'p> {
    /// The recorded exchange.
    pub exchange: &'p Exchange,
    /// The occurrence of the request; `None` if the next response was requested.
    pub occurrence: Option<Occurrence>,
}

/// An occurrence of a prompt or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its number, from 1.
    pub number: usize,
    /// The total number of occurrences.
    pub of: usize,
}
