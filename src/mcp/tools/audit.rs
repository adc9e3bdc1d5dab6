//! The tool `audit_contract`.

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::digest::CoreHash;
use crate::mcp::page::{self, McpCursor, ResultPage, remove_empty};
use crate::mcp::work::ToolArguments;
use crate::mcp::work::{ToolContext, ToolError};
use crate::vault::audit::{AuditRequest, RunAudit};

/// Maximum number of runs that are audited for a result.
const MOST: u64 = 10;

/// What to audit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Arguments {
    /// The contract: its hash, the first 6 or more digits of it, `@tag`, or `latest`.
    contract: String,
    /// The run; without it, every run that the contract governs.
    #[serde(default)]
    run: Option<String>,
    #[serde(default)]
    cursor: McpCursor,
}

impl ToolArguments for Arguments {
    const NAME: &'static str = "audit_contract";
    const TITLE: &'static str = "Audit runs against a contract";
    const DESCRIPTION: &'static str = "Checks what a run did against the effects that a contract declares. The results are, for \
        each run, whether it is clean, then the verdict on each effect with the reason, then the findings.";

    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError> {
        let contract = work.artifact(&self.contract)?;
        let run = self.run.as_deref().map(|run| work.artifact(run)).transpose()?;
        // The last run that was returned completely, and the number of results of the next one that were returned.
        let (mut after, mut skip): (Option<CoreHash>, usize) = self.cursor.decode()?.unwrap_or((None, 0));
        let mut runs = Vec::new();
        let request = AuditRequest { contract, run, limit: Some(MOST), after };
        let answer = request.visit::<ToolError>(work.vault, &mut |audit| {
            work.check()?;
            runs.push(audit);
            Ok(())
        })?;
        let header = json!({"core_hash": contract, "declared_effects": answer.effects});
        let mut page = ResultPage::new(header, "results");
        for audit in runs {
            let core = audit.run;
            for item in results(contract, audit)?.into_iter().skip(skip) {
                if !page.push(item) {
                    return page.into_result(Some(page::encode_cursor(&(after, skip))?));
                }
                skip += 1;
            }
            (after, skip) = (Some(core), 0);
        }
        page.into_result(answer.next.map(|next| page::encode_cursor(&(Some(next), 0))).transpose()?)
    }
}

/// Returns the audit of a run as a list: the run, its effects and the findings.
fn results(of: CoreHash, audit: RunAudit) -> Result<Vec<Value>, ToolError> {
    let RunAudit { run, kind, run_id, clean, effects, findings, omitted } = audit;
    let omitted = omitted.map_or(0, |omitted| omitted.violations_omitted);
    let of = json!(of);
    let mut head =
        json!({"run": run, "kind": kind, "run_id": run_id, "clean": clean, "findings_omitted": omitted});
    remove_empty(&mut head);
    let mut results = vec![head];
    for effect in effects {
        results.push(serde_json::to_value(effect)?);
    }
    for finding in findings {
        results.push(serde_json::to_value(finding)?);
    }
    for result in results.iter_mut().skip(1) {
        if let Value::Object(members) = result {
            // It is the same in all of them.
            members.retain(|_, value| *value != of);
        }
        remove_empty(result);
    }
    Ok(results)
}
