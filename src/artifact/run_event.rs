use std::borrow::Cow;

use crate::json::Value;

/// An event of a run, for audits.
#[derive(Clone, Debug)]
pub enum RunEvent<'v, 'd> {
    /// A call to something outside the agent: a tool call, a step of an engine, an action of a runner.
    Call(Box<RunCall<'v, 'd>>),
    /// A statement of the recorder about the run. Requests to models and their responses are not statements.
    Statement {
        /// The number of the step or record that states it; 0 if the run as a whole does.
        at: usize,
        /// What is stated.
        value: &'v Value<'d>,
    },
}

/// A callback that receives the events of a run, in order.
pub type EventVisitor<'f> = dyn for<'v, 'd> FnMut(RunEvent<'v, 'd>) + 'f;

/// A call and its result.
#[derive(Clone, Debug)]
pub struct RunCall<'v, 'd> {
    /// The location of the request, such as `step 5`, or that of the result if there is no request.
    pub place: String,
    /// The names of the target as recorded.
    pub names: CallNames<'v>,
    /// The number of the step or record at which it began.
    pub began: usize,
    /// The number of the step or record with its result.
    pub ended: usize,
    /// The arguments, if they are recorded.
    pub arguments: Option<Cow<'v, Value<'d>>>,
    /// What else was recorded of the request, such as its headers.
    pub envelope: Vec<&'v Value<'d>>,
    /// The retry key: calls with the same key are attempts at the same operation, of which the last one decides.
    pub attempt_at: String,
    /// Whether it is part of a result that is also recorded as a whole, so that it counts only if the target is known.
    pub is_part: bool,
    /// The result of the call.
    pub answer: RunCallResult<'v, 'd>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub enum RunCallResult<'v, 'd> {
    /// No result is recorded.
    None,
    /// A result that counts as evidence.
    Result {
        /// The location of the result, such as `step 6`.
        place: String,
        /// The result.
        value: &'v Value<'d>,
    },
    /// The call failed, or its result does not prove an effect.
    Discounted {
        /// The location of the result.
        place: String,
        /// The result, if there is one.
        value: Option<&'v Value<'d>>,
        /// The reason it does not count, such as `an error follows at step 7`.
        why: String,
    },
}

/// The recorded names of the target of a call.
#[derive(Clone, Debug, Default)]
pub struct CallNames<'v> {
    /// The names of the tool. Requests and responses may state different names.
    pub tools: Vec<&'v str>,
    /// The URL of an HTTP request.
    pub url: Option<&'v str>,
    /// The IO reference, if the run states one.
    pub io_ref: Option<&'v str>,
    /// Names that may refer to an effect or a target or something else: names of steps, actions and destinations.
    pub labels: Vec<&'v str>,
    /// `read`, `write` or `mutate`, or an HTTP method, if stated.
    pub mode: Option<&'v str>,
}
