//! Keys and card numbers in calls.

use super::events::GatewayEvent;
use crate::calls::body;
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

/// Returns what looks like a secret in what is recorded of a call: in its bytes, or in the texts that a client reads from
/// them.
fn found(call: &CallRecord) -> Vec<SecretMatch> {
    let answer = match &call.outcome {
        CallOutcome::Answered(answer) => &answer.body,
        CallOutcome::Failed { partial, .. } => partial,
    };
    let mut found: Vec<SecretMatch> = Vec::new();
    for (name, body) in [("request", &call.request.payload), ("answer", answer)] {
        found.extend(secrets::find(body.as_bytes()).into_iter().map(|secret| secret.within(name)));
        body::visit_decoded(body, &mut |text| {
            for secret in secrets::find(text.as_bytes()) {
                let is_known = |known: &SecretMatch| {
                    (&known.rule, &known.beginning) == (&secret.rule, &secret.beginning)
                };
                // What the bytes contain is in the texts, too.
                if !found.iter().any(is_known) {
                    found.push(secret.within(&format!("text of the {name}")));
                }
            }
        });
    }
    found
}
