//! The document of the operations, held to the code.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository};

fn document() -> String {
    serde_json::to_string_pretty(&runvault::vault::api::document()).unwrap() + "\n"
}

#[test]
fn the_document_is_that_of_the_code() {
    let path = repository("docs/api.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == document(), "docs/api.json is not that of the code; UPDATE_DOCS=1 writes it");
}

#[test]
fn every_reference_is_to_a_schema_with_a_description() {
    let document: Value = serde_json::from_str(&document()).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        let schema = &schemas[name];
        assert!(schema["description"].is_string(), "{name} has no description");
    }
}

/// Collects the references in `value`.
fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(reference) if name == "$ref" => references.push(reference.clone()),
                    value => collect(value, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

/// What the command line adds to the documents of the operations: what only it knows.
const OF_THE_COMMAND_LINE: &[&str] = &["moved", "remedy", "run"];

/// Collects the names of the members that a schema describes.
fn members(document: &Value, schema: &Value, names: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        return members(document, document.pointer(reference.trim_start_matches('#')).unwrap(), names);
    }
    names.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    for part in ["allOf", "oneOf", "anyOf"] {
        schema[part].as_array().into_iter().flatten().for_each(|schema| members(document, schema, names));
    }
}

#[test]
fn what_the_command_line_prints_as_json_is_described() {
    let document: Value = serde_json::from_str(&document()).unwrap();
    // Each line is described by one of the schemas.
    let problems = |lines: &[Value], names: &str| {
        let of_schema = |line: &Value, name: &str| {
            let schema = json!({
                "$ref": format!("#/components/schemas/{name}"), "components": document["components"],
            });
            let mut described = BTreeSet::new();
            members(&document, &schema, &mut described);
            let validator = jsonschema::draft202012::new(&schema).unwrap();
            let violations = validator.iter_errors(line).map(|error| format!("{name}: {error}"));
            let is_known = |member: &&String| {
                described.contains(*member) || OF_THE_COMMAND_LINE.contains(&member.as_str())
            };
            let unknown = line.as_object().unwrap().keys().filter(|member| !is_known(member));
            violations.chain(unknown.map(|member| format!("{name}: {member}"))).collect::<Vec<_>>()
        };
        let of_line = |line: &Value| {
            let problems: Vec<_> = names.split(' ').map(|name| of_schema(line, name)).collect();
            if problems.iter().any(Vec::is_empty) { Vec::new() } else { problems.concat() }
        };
        lines.iter().flat_map(of_line).collect::<BTreeSet<String>>()
    };
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("referring.json", crate::unresolved::session())]);
    let run = |command: &str, status: i32| {
        let command = command
            .replace("SESSION", "4df877dec7f4")
            .replace("RUN", "3941d389b337")
            .replace("CONTRACT", "5c496a37feba");
        let command = command
            .replace("PACK", "54490aab8b3f")
            .replace("examples", repository("examples").to_str().unwrap());
        sandbox.run(command.split(' ').chain(["--json"])).expect(status).json()
    };
    let mut found = Vec::new();
    for (command, status, name) in [
        ("verify examples", 0, "CheckedDocument"),
        ("add examples", 0, "AddedDocument"),
        ("add examples", 0, "AddedDocument"),
        ("verify SESSION", 0, "VerifiedCapture"),
        ("find --kind rpk", 0, "FoundArtifact"),
        ("find", 0, "FoundArtifact"),
        ("list", 0, "ListRow"),
        ("show SESSION", 0, "ShowAnswer"),
        ("show PACK", 0, "ShowAnswer"),
        ("view RUN", 0, "ViewAnswer"),
        ("view CONTRACT", 0, "ViewAnswer"),
        ("links RUN", 0, "FoundLink"),
        ("path RUN PACK", 0, "PathStep"),
        ("unresolved", 0, "MissingArtifact"),
        ("diff SESSION 103ef1c54b58", 1, "DiffAnswer"),
        ("audit CONTRACT", 1, "EffectAudit AuditFinding"),
        ("rules", 0, "RuleSummary"),
        ("tag set SESSION golden", 0, "SetTagAnswer"),
        ("tag list", 0, "TagSummary"),
        ("tag remove golden", 0, "AnnotateAnswer"),
        ("label set SESSION suite=nightly", 0, "AnnotateAnswer"),
        ("label list", 0, "LabelKeySummary"),
        ("label list suite", 0, "LabelValueSummary"),
        ("label list --of SESSION", 0, "LabelSummary"),
        ("label remove SESSION suite", 0, "AnnotateAnswer"),
        ("note set SESSION why", 0, "AnnotateAnswer"),
        ("note show SESSION", 0, "NoteSummary"),
        ("note remove SESSION", 0, "AnnotateAnswer"),
        ("pin add SESSION", 0, "AnnotateAnswer"),
        ("pin list", 0, "PinSummary"),
        ("pin remove SESSION", 0, "AnnotateAnswer"),
        ("link add SESSION derived-from RUN", 0, "AnnotateAnswer"),
        ("link remove SESSION derived-from RUN", 0, "AnnotateAnswer"),
        ("index status", 1, "SearchIndexAnswer"),
        ("index build", 0, "BuildSearchIndexAnswer"),
        ("index status", 0, "SearchIndexAnswer"),
        ("search export", 0, "FieldMatch"),
        ("index drop", 0, "DropSearchIndexAnswer"),
        ("index drop", 1, "DropSearchIndexAnswer"),
        ("replay SESSION", 0, "RecordedResponse"),
        ("stats", 0, "StatsAnswer"),
        ("log", 0, "JournalEntry"),
        ("log --head", 0, "JournalHead"),
        ("sql --tables", 0, "SqlViewSummary"),
        ("upgrade", 0, "UpgradeAnswer"),
        ("forget --keep-last 1 --dry-run", 0, "RetentionDecision"),
        ("rm PACK --force --dry-run", 0, "Removed"),
        ("rm PACK --force", 0, "Removed"),
        ("tombstones", 0, "RemovedArtifact"),
        ("gc --dry-run", 0, "ReclaimableAnswer"),
        ("gc", 0, "ReclaimAnswer"),
    ] {
        let lines = run(command, status);
        assert!(!lines.is_empty(), "{command} printed nothing");
        found.extend(
            problems(&lines, name).into_iter().map(|problem| format!("{command}: {name}: {problem}")),
        );
    }
    let bundle = sandbox.path("all.bundle");
    sandbox.run(["tag", "set", "4df877dec7f4", "golden"]).expect(0);
    sandbox.run(["note", "set", "4df877dec7f4", "why"]).expect(0);
    sandbox.run(["label", "set", "4df877dec7f4", "suite=nightly"]).expect(0);
    sandbox.run(["link", "add", "4df877dec7f4", "derived-from", "3941d389b337"]).expect(0);
    sandbox.run(["export", "--all", "-o", bundle.to_str().unwrap()]).expect(0);
    let other = Sandbox::new();
    let messages = json!([{"role": "user", "content": "hello"}]);
    let call = json!({
        "request": {"model": "m-1", "messages": messages},
        "response": {"object": "chat.completion", "model": "m-1", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"},
        ]},
    });
    let calls = other.write("calls.jsonl", format!("{call}\n"));
    let copy = other.path("copy.vault");
    let saved = other.path("saved.db");
    for (command, status, names) in [
        (
            vec!["import", bundle.to_str().unwrap()],
            0,
            "AddedDocument ImportedLinkSummary ImportedTagSummary ImportedNoteSummary ImportedLabelSummary",
        ),
        (vec!["import", calls.to_str().unwrap()], 0, "AddedDocument ImportedValue"),
        (vec!["backup", copy.to_str().unwrap()], 0, "BackupAnswer"),
        (vec!["sql", "--save", saved.to_str().unwrap()], 0, "SqlSaveAnswer"),
        (vec!["fsck"], 1, "FindingSummary"),
        (vec!["fsck", "--repair"], 0, "RepairSummary"),
    ] {
        if command == ["fsck"] {
            crate::fsck::sql(&other).execute_batch("DELETE FROM unresolved_reference").unwrap();
        }
        let lines = other.run([&command[..], &["--json"]].concat()).expect(status).json();
        assert!(!lines.is_empty(), "{command:?} printed nothing");
        found.extend(problems(&lines, names).into_iter().map(|problem| format!("{command:?}: {problem}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
