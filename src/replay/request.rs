use std::num::NonZeroUsize;

use crate::artifact::{Arguments, Exchange, Responder};
use crate::canonical::reader::{self, Limits, ReadError};
use crate::digest::Digest;

/// In which order a recording may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In any: a response is found by what it answers. Who asks the same again gets the next recording of it.
    Lookup,
    /// In the order of the recording, each response once.
    Sequential,
}

/// What becomes of a request that was asked more often than it was recorded, in lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeat {
    /// It is a miss.
    #[default]
    Never,
    /// It gets the last recording again.
    Last,
}

/// What is asked of a recording: a prompt, a call of a tool, or whatever comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The SHA-256 of the prompt.
    pub prompt: Option<Digest>,
    /// Which of the recordings of what is asked, from 1; of a lookup only. If not given, the first that was not given yet.
    pub occurrence: Option<NonZeroUsize>,
    /// Whose response is wanted if neither a prompt nor a call is asked; whoever is next if not given.
    pub responder: Option<Responder>,
    /// The name of the tool that is called. Nothing for tools whose name was not recorded.
    pub tool: Option<String>,
    /// The SHA-256 of the arguments that the tool is called with, as [`Arguments::digest`] gives it.
    pub arguments: Option<Digest>,
}

impl Request {
    /// The request for the response to a prompt with this digest.
    #[must_use]
    pub fn prompt(digest: Digest) -> Self {
        Self { prompt: Some(digest), ..Self::default() }
    }

    /// The request for the response to a call of `tool` with `arguments`, which are JSON.
    ///
    /// ```
    /// use runvault::replay::Request;
    ///
    /// # fn main() -> Result<(), runvault::canonical::reader::ReadError> {
    /// let request = Request::call("weather", r#"{"days": 3, "city": "Paris"}"#)?;
    /// assert_eq!(request, Request::call("weather", r#"{"city":"Paris","days":3}"#)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ReadError`] if `arguments` are not JSON, or have duplicate keys or numbers without a canonical form.
    pub fn call(tool: impl Into<String>, arguments: &str) -> Result<Self, ReadError> {
        let arguments = Some(arguments_digest(arguments)?);
        Ok(Self { tool: Some(tool.into()), arguments, ..Self::default() })
    }
}

/// The digest by which calls with these arguments are asked. `json` is the arguments as JSON.
///
/// # Errors
/// [`ReadError`] if it is not JSON, or has duplicate keys or numbers without a canonical form.
pub fn arguments_digest(json: &str) -> Result<Digest, ReadError> {
    let value = reader::read(json.as_bytes(), &Limits::default())?;
    let arguments = Arguments::from_value(&value).ok_or_else(|| {
        ReadError::at(json.as_bytes(), 0, reader::Defect::Number, "a number has no canonical form")
    })?;
    Ok(arguments.digest())
}

/// A response that was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played<'p> {
    /// The response and its place.
    pub exchange: &'p Exchange,
    /// Which of the recordings of what was asked this is, from 1; nothing if nothing was asked but what comes next.
    pub occurrence: Option<Occurrence>,
}

/// Which of the recordings of a prompt or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}
