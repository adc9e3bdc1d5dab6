use std::borrow::Cow;

use crate::canonical::Value;

/// Something that a run recorded, as audits look at it.
#[derive(Clone, Debug)]
pub enum RunEvent<'v, 'd> {
    /// A call of something outside the agent: a tool call, a step of an engine, an action of a runner.
    Call(Box<Call<'v, 'd>>),
    /// What the recorder states about the run. Requests to models and their responses are not statements.
    Statement(&'v Value<'d>),
}

/// Receives the events of a run, in their order.
pub type EventVisitor<'f> = dyn for<'v, 'd> FnMut(RunEvent<'v, 'd>) + 'f;

/// A call, and what came back.
#[derive(Clone, Debug)]
pub struct Call<'v, 'd> {
    /// Where the request is recorded, in words, such as `step 5`; where the result is, if there is no request.
    pub place: String,
    /// What the run says was called.
    pub names: CallNames<'v>,
    /// What was sent, if it is recorded.
    pub arguments: Option<Cow<'v, Value<'d>>>,
    /// Calls with the same text here are attempts at one thing, of which the last decides.
    pub attempt_at: String,
    /// Whether it is a part of a result that is given as a whole as well, so that it counts only where it is known what
    /// was called.
    pub is_part: bool,
    /// What came back.
    pub answer: Answer<'v, 'd>,
}

/// What came back from a call.
#[derive(Clone, Debug)]
pub enum Answer<'v, 'd> {
    /// Nothing is recorded.
    None,
    /// A result that counts as evidence.
    Result {
        /// Where it is recorded, in words, such as `step 6`.
        place: String,
        /// The result.
        value: &'v Value<'d>,
    },
    /// The call failed, or its result does not show that anything happened.
    Discounted {
        /// Where that is recorded.
        place: String,
        /// The result, if there is one.
        value: Option<&'v Value<'d>>,
        /// Why it does not count, such as `an error follows at step 7`.
        why: String,
    },
}

/// What a run says of a call's target.
#[derive(Clone, Debug, Default)]
pub struct CallNames<'v> {
    /// The names of the tool. Requests and responses may state different ones.
    pub tools: Vec<&'v str>,
    /// The URL of an HTTP request.
    pub url: Option<&'v str>,
    /// The IO reference, where the run states it as such.
    pub io_ref: Option<&'v str>,
    /// Names that may be those of an effect or a target, or of something else: of steps, actions and destinations.
    pub labels: Vec<&'v str>,
    /// `read`, `write` or `mutate`, or an HTTP method, if stated.
    pub mode: Option<&'v str>,
}
