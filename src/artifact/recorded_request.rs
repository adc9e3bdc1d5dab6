use crate::digest::Digest;
use crate::json::Value;

/// A request of a model, complete.
pub struct RecordedRequest<'r> {
    /// The number of the step that contains it.
    pub index: usize,
    /// The body of the request.
    pub payload: &'r Value<'r>,
    /// The digest of the text that the request is compared by, if it is stated.
    pub prompt_hash: Option<Digest>,
    /// Returns the text that the request is compared by.
    pub prompt: &'r dyn Fn() -> Option<String>,
}

/// A function that is called with requests.
pub type RequestVisitor<'f> = dyn for<'r> FnMut(RecordedRequest<'r>) + 'f;
