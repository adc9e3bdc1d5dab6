//! Contracts as the programs of `TraceMind` write them, with `inputs` and `outputs` in place of `io_refs`: those of the agents
//! of bundles, and of plans. `docs/formats.md`, "Contracts of `TraceMind`".

use std::borrow::Cow;

use super::{read, rules};
use crate::artifact::document;
use crate::digest::Digest;
use crate::json::members::{integer, object, text};
use crate::json::reader::Limits;
use crate::json::{Object, Value, compact};
use crate::validation::{Findings, Report};

/// Returns the contracts of the specification that a document implies; `None` if it has none in another form.
pub(super) fn contracts(bytes: &[u8], limits: &Limits) -> Option<Result<Vec<Vec<u8>>, Report>> {
    let names: [&[u8]; 2] = [b"inputs", b"outputs"];
    if names.iter().any(|name| memchr::memmem::find(bytes, name).is_none()) {
        return None;
    }
    let mut findings = Findings::default();
    let root =
        read::read(bytes, limits, false).map_err(|error| document::report(&error, &mut findings)).ok()?;
    let stated = stated(&root);
    if stated.is_empty() {
        return None;
    }
    let original = Digest::from_content(bytes);
    let documents: Vec<Vec<u8>> =
        stated.iter().map(|contract| contract.document(original, &mut findings)).collect();
    Some(if findings.has_errors() { Err(findings.into_report()) } else { Ok(documents) })
}

/// A contract in a document.
struct StatedContract<'v> {
    value: &'v Value<'v>,
    at: String,
    /// The agent that it is for.
    agent: Option<&'v str>,
}

fn stated<'v>(root: &'v Value<'v>) -> Vec<StatedContract<'v>> {
    let is_one = |value: &Value<'_>| {
        let has_list = |name: &str| value.get(name).is_some_and(|value| value.as_array().is_some());
        has_list("inputs") && has_list("outputs") && value.get("io_refs").is_none()
    };
    // By itself, the form is not that of the specification. Only what an envelope declares to be an artifact is searched.
    let Some(body) = root.get("body").filter(|_| root.get("envelope").is_some()) else { return Vec::new() };
    let agents = body.get("agents").and_then(Value::as_array).unwrap_or_default();
    let of_agents = agents.iter().enumerate().filter_map(|(index, agent)| {
        let value = agent.get("contract")?;
        let at = format!("/body/agents/{index}/contract");
        Some(StatedContract { value, at, agent: agent.get("agent_id").and_then(Value::as_str) })
    });
    let of_plan = body.get("io_contract").map(|value| StatedContract {
        value,
        at: "/body/io_contract".to_owned(),
        agent: None,
    });
    of_agents.chain(of_plan).filter(|contract| is_one(contract.value)).collect()
}

impl StatedContract<'_> {
    /// Returns the contract in the form of the specification.
    fn document(&self, original: Digest, findings: &mut Findings) -> Vec<u8> {
        let mut refs: Vec<Value<'_>> = Vec::new();
        for list in ["inputs", "outputs"] {
            let stated = self.value.get(list).and_then(Value::as_array).unwrap_or_default();
            for (index, io_ref) in stated.iter().enumerate() {
                if let Err(message) = add(&mut refs, io_ref) {
                    findings.for_rule(rules::SCHEMA).add(format!("{}/{list}/{index}", self.at), message);
                }
            }
        }
        let effects = self.value.get("effects").cloned().unwrap_or(Value::Array(Vec::new()));
        let originals = Value::Array(vec![text(original.to_string())]);
        let import = [("format", text("tracemind")), ("originals", originals), ("profile", integer(1))];
        let mut members = vec![("io_refs", Value::Array(refs)), ("effects", effects)];
        members.extend(self.agent.map(|agent| ("agent_id", text(agent))));
        members.push(("import", object(import)));
        compact::text(&object(members)).into_bytes()
    }
}

/// Adds a ref. One that is read and written is declared in both lists, and is mutated.
fn add<'v>(refs: &mut Vec<Value<'v>>, io_ref: &'v Value<'v>) -> Result<(), String> {
    let name = io_ref.get("ref");
    let place = refs.iter().position(|known| name.is_some() && known.get("ref") == name);
    let Some(known) = place.and_then(|place| refs.get_mut(place)) else {
        refs.push(io_ref.clone());
        return Ok(());
    };
    for member in ["kind", "schema"] {
        if known.get(member) != io_ref.get(member) {
            return Err(format!("declares a ref that is declared with another {member} before"));
        }
    }
    let required = [known.get("required"), io_ref.get("required")].contains(&Some(&Value::Bool(true)));
    let is_mode = |mode: Option<&Value<'_>>| {
        mode.and_then(Value::as_str).is_some_and(|mode| ["read", "write", "mutate"].contains(&mode))
    };
    let is_mutated = known.get("mode") != io_ref.get("mode");
    if is_mutated && !(is_mode(known.get("mode")) && is_mode(io_ref.get("mode"))) {
        return Err("declares a ref whose mode is neither read, write nor mutate".to_owned());
    }
    let members = io_ref.as_object().into_iter().flat_map(Object::iter);
    let members = members.map(|(name, value)| {
        let value = match name {
            "mode" if is_mutated => text("mutate"),
            "required" => Value::Bool(required),
            _ => value.clone(),
        };
        (Cow::Borrowed(name), value)
    });
    *known = Value::Object(Object::from_members(members.collect()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{AdmitOptions, Kind};
    use crate::formats::contract::Contract;

    const BUNDLE: &str = "
envelope:
  artifact_type: agent_bundle
body:
  agents:
  - agent_id: a
    contract:
      inputs:
      - {ref: 'state:x', kind: resource, schema: {type: object}, required: true, mode: read}
      outputs:
      - {ref: 'state:x', kind: resource, schema: {type: object}, required: false, mode: write}
      - {ref: 'artifact:y', kind: artifact, schema: {type: string}, required: false, mode: read}
      effects:
      - {name: e, kind: resource, target: 'state:x', idempotency: {type: reentrant}, evidence: {type: status, path: /s}}
  - agent_id: b
    contract: {inputs: [], outputs: [], effects: []}
";

    fn contracts_of(text: &str) -> Result<Vec<Vec<u8>>, Report> {
        contracts(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn each_agent_of_a_bundle_has_a_contract() {
        let documents = contracts_of(BUNDLE).unwrap();
        let admitted = documents.into_iter().map(|document| {
            let text = String::from_utf8(document.clone()).unwrap();
            Kind::new(&Contract).admit(document, &AdmitOptions::default()).map(|_| text).unwrap()
        });
        let texts: Vec<String> = admitted.collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].contains(r#""required":true,"mode":"mutate""#), "{}", texts[0]);
        assert!(texts[0].contains("\"agent_id\":\"a\"") && texts[0].contains("artifact:y"), "{}", texts[0]);
    }

    #[test]
    fn a_ref_that_is_declared_in_two_ways_is_rejected() {
        let differing = BUNDLE.replacen("{type: object}", "{type: array}", 1);
        let report = contracts_of(&differing).unwrap_err();
        assert_eq!(report.violations()[0].path, "/body/agents/0/contract/outputs/0");
    }

    #[test]
    fn other_documents_have_no_contracts() {
        for text in [
            "inputs: []\noutputs: []\n",
            "io_refs: []\neffects: []\ninputs: []\noutputs: []\n",
            "inputs outputs",
        ] {
            assert!(contracts(text.as_bytes(), &Limits::default()).is_none(), "{text}");
        }
    }
}
