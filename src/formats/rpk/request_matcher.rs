//! The request that each response answers.

use super::calls::StepCall;
use super::pending_requests::{IdMatch, PendingRequests};
use crate::artifact::Responder;
use crate::json::Value;

/// The requests that wait for a response while steps are read in order.
#[derive(Default)]
pub(super) struct RequestMatcher {
    open: PendingRequests,
}

impl RequestMatcher {
    /// Processes the step `index`, and returns the number of the request that it answers, if that is known.
    pub(super) fn follow(&mut self, index: usize, step: &Value<'_>) -> Option<usize> {
        let step_type = step.get("type").and_then(Value::as_str)?;
        if step_type == "error.event" {
            // The number of a call without a request is not that of a step.
            return self.open.take_failed(step).map(|call| call.number).filter(|number| *number < index);
        }
        let (responder, direction) = match step_type.split_once('.')? {
            ("model", direction) => (Responder::Model, direction),
            ("tool", direction) => (Responder::Tool, direction),
            _ => return None,
        };
        match direction {
            "request" => {
                self.open.push(StepCall { number: index, ..StepCall::from_request(responder, step) });
                None
            }
            "response" => self.answered_by(&StepCall::from_response(responder, step)),
            _ => None,
        }
    }

    fn answered_by(&mut self, response: &StepCall) -> Option<usize> {
        let request = match self.open.take_by_id(response) {
            IdMatch::Request(request) => Some(request),
            IdMatch::Several => None,
            IdMatch::None => self.open.take_only(response),
        };
        request.map(|request| request.number)
    }
}
