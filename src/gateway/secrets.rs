//! Keys and card numbers in calls.

use super::events::GatewayEvent;
use crate::calls::call::{CallOutcome, CallRecord};
use crate::secrets::{self, SecretMatch, SecretPolicy};

/// Reports what looks like a secret in a call, and returns whether there is any. Nothing is looked for if the policy is to
/// ignore it.
pub(super) fn has_secrets(
    call: &CallRecord,
    policy: SecretPolicy,
    report: &dyn Fn(&GatewayEvent<'_>),
) -> bool {
    if policy == SecretPolicy::Ignore {
        return false;
    }
    let secrets = found(call);
    if !secrets.is_empty() {
        let refused = policy == SecretPolicy::Refuse;
        report(&GatewayEvent::Secrets {
            provider: &call.provider,
            path: &call.path,
            secrets: &secrets,
            refused,
        });
    }
    !secrets.is_empty()
}

/// Returns whether a call that was recorded before is refused now, and reports it.
pub(super) fn is_refused(
    call: &CallRecord,
    policy: SecretPolicy,
    report: &dyn Fn(&GatewayEvent<'_>),
) -> bool {
    policy == SecretPolicy::Refuse && has_secrets(call, policy, report)
}

/// Returns what looks like a secret in what is recorded of a call.
fn found(call: &CallRecord) -> Vec<SecretMatch> {
    let answer = match &call.outcome {
        CallOutcome::Answered(answer) => answer.body.as_bytes(),
        CallOutcome::Failed { partial, .. } => partial.as_bytes(),
    };
    let parts = [("request", call.request.as_bytes()), ("answer", answer)];
    let found = parts
        .into_iter()
        .flat_map(|(name, bytes)| secrets::find(bytes).into_iter().map(move |found| found.within(name)));
    found.collect()
}
