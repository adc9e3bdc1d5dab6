//! The tools. Each is a type of arguments in a file of its own; [`ALL`] is the only list.

mod annotate;
mod audit;
mod compare_runs;
mod find_runs;
mod links;
mod read_run;
mod search;
mod who_saw_prompt;

use rmcp::model::Tool;

use super::work::ToolInfo;

/// All tools.
const ALL: [ToolInfo; 8] = [
    ToolInfo::new::<find_runs::Arguments>(),
    ToolInfo::new::<read_run::Arguments>(),
    ToolInfo::new::<search::Arguments>(),
    ToolInfo::new::<who_saw_prompt::Arguments>(),
    ToolInfo::new::<compare_runs::Arguments>(),
    ToolInfo::new::<links::Arguments>(),
    ToolInfo::new::<audit::Arguments>(),
    ToolInfo::new::<annotate::Arguments>(),
];

/// Returns the tools for clients.
pub(super) fn list(may_write: bool) -> Vec<Tool> {
    ALL.iter().filter(|tool| may_write || !tool.changes).map(ToolInfo::describe).collect()
}

/// Returns the tool with this name.
pub(super) fn named(name: &str) -> Option<&'static ToolInfo> {
    ALL.iter().find(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;
    use crate::intake::ExamineOptions;
    use crate::mcp::work::RecentReads;
    use crate::mcp::work::ToolContext;
    use crate::mcp::work::ToolError;
    use crate::vault::Vault;

    /// A vault with examples, and the core hashes of a session and a contract.
    fn examples() -> (Vault, String, String) {
        let vault = Vault::in_memory();
        let add = |name: &str| {
            let document = std::fs::read(format!("examples/{name}")).unwrap();
            vault.add_document(document, &ExamineOptions::default()).unwrap().core.to_string()
        };
        let (session, contract) = (add("session.json"), add("contract.yaml"));
        add("run.rpk");
        (vault, session, contract)
    }

    #[test]
    fn a_cancelled_request_stops_at_every_check() {
        let (vault, session, contract) = examples();
        for (name, arguments) in [
            ("find_runs", json!({})),
            ("read_run", json!({"artifact": session})),
            ("read_run", json!({"artifact": session, "step": 0})),
            ("who_saw_prompt", json!({"prompt": "Summarise ticket 4711 in one sentence."})),
            ("compare_runs", json!({"one": session, "other": session})),
            ("links", json!({"artifact": session})),
            ("audit_contract", json!({"contract": contract})),
            ("annotate", json!({"artifact": session, "note": "n"})),
        ] {
            let arguments = arguments.as_object().unwrap();
            let call = |permitted: u32| {
                let (checks, recent) = (Cell::new(0), RecentReads::default());
                let is_cancelled = || {
                    checks.set(checks.get() + 1);
                    checks.get() > permitted
                };
                let result = named(name)
                    .unwrap()
                    .call(&ToolContext::new(&vault, true, &recent, &is_cancelled), arguments.clone());
                (result, checks.get())
            };
            let (result, checks) = call(u32::MAX);
            assert!(result.is_ok() && checks > 1, "{name}: {result:?}");
            for permitted in 0..checks {
                assert!(matches!(call(permitted).0, Err(ToolError::Cancelled)), "{name} {permitted}");
            }
        }
    }

    #[test]
    fn every_argument_is_described() {
        for tool in list(true) {
            let schema = tool.schema_as_json_value();
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&"object".into(), &false.into()));
            for (name, argument) in schema["properties"].as_object().unwrap() {
                assert!(argument["description"].is_string(), "{} {name}", tool.name);
            }
            assert!(tool.description.is_some() && tool.title.is_some());
        }
        assert!(
            list(false).iter().all(|tool| tool.annotations.as_ref().unwrap().read_only_hint == Some(true))
        );
    }
}
