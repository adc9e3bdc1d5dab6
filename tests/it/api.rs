//! The document of the operations, held to the code.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository};
use crate::schemas;

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

/// A schema of the document.
struct Described {
    name: String,
    members: BTreeSet<String>,
    schema: Value,
}

impl Described {
    fn new(document: &Value, name: &str) -> Self {
        let schema =
            json!({"$ref": format!("#/components/schemas/{name}"), "components": document["components"]});
        let mut described = BTreeSet::new();
        members(document, &schema, &mut described);
        Self { name: name.to_owned(), members: described, schema }
    }

    /// Returns why `line` is not such a document.
    fn problems(&self, line: &Value) -> Vec<String> {
        let Self { name, members, schema } = self;
        let violation = schemas::violation(schema, line).map(|violation| format!("{name}: {violation}"));
        let is_known =
            |member: &&String| members.contains(*member) || OF_THE_COMMAND_LINE.contains(&member.as_str());
        let unknown = line.as_object().unwrap().keys().filter(|member| !is_known(member));
        violation.into_iter().chain(unknown.map(|member| format!("{name}: {member}"))).collect()
    }
}

/// Runs a command with `--json`, and expects that one of the schemas `names` describes each line.
fn expect_described(document: &Value, sandbox: &Sandbox, command: &[&str], (status, names): (i32, &str)) {
    let schemas: Vec<Described> = names.split(' ').map(|name| Described::new(document, name)).collect();
    let lines = sandbox.run([command, &["--json"]].concat()).expect(status).json();
    assert!(!lines.is_empty(), "{command:?} printed nothing");
    for line in lines {
        let problems: Vec<_> = schemas.iter().map(|schema| schema.problems(&line)).collect();
        assert!(problems.iter().any(Vec::is_empty), "{command:?} printed {line}: {problems:?}");
    }
}

/// Commands on the shipped examples and a session that refers to what is missing; their exit status, and the schemas of
/// their lines.
const COMMANDS: &[(&str, i32, &str)] = &[
    ("verify EXAMPLES", 0, "CheckedDocument"),
    ("add EXAMPLES", 0, "AddedDocument"),
    ("add EXAMPLES", 0, "AddedDocument"),
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
    ("label list", 0, "LabelKey"),
    ("label list suite", 0, "LabelValue"),
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
    ("forget --keep-last 1 --dry-run", 0, "RetentionDecision"),
    ("rm PACK --force --dry-run", 0, "Removed"),
    ("rm PACK --force", 0, "Removed"),
    ("tombstones", 0, "RemovedArtifact"),
    ("gc --dry-run", 0, "ReclaimableAnswer"),
    ("gc", 0, "ReclaimAnswer"),
];

#[test]
fn what_commands_print_as_json_is_described() {
    let document: Value = serde_json::from_str(&document()).unwrap();
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("referring.json", crate::unresolved::session())]);
    let examples = repository("examples");
    let named = |word| match word {
        "SESSION" => "4df877dec7f4",
        "RUN" => "3941d389b337",
        "CONTRACT" => "5c496a37feba",
        "PACK" => "54490aab8b3f",
        "EXAMPLES" => examples.to_str().unwrap(),
        word => word,
    };
    for (command, status, schemas) in COMMANDS {
        let command: Vec<&str> = command.split(' ').map(named).collect();
        expect_described(&document, &sandbox, &command, (*status, schemas));
    }
}

#[test]
fn the_introduction_names_what_commands_print() {
    let introduction = std::fs::read_to_string(repository("docs/json.md")).unwrap();
    for (command, _, schemas) in COMMANDS {
        for schema in schemas.split(' ') {
            assert!(introduction.contains(&format!("`{schema}`")), "{command}: {schema}");
        }
    }
}

#[test]
fn what_imports_copies_and_checks_print_as_json_is_described() {
    let document: Value = serde_json::from_str(&document()).unwrap();
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox.add([sandbox.write("referring.json", crate::unresolved::session())]);
    let bundle = sandbox.path("all.bundle");
    for command in [
        &["tag", "set", "4df877dec7f4", "golden"][..],
        &["note", "set", "4df877dec7f4", "why"],
        &["label", "set", "4df877dec7f4", "suite=nightly"],
        &["link", "add", "4df877dec7f4", "derived-from", "3941d389b337"],
        &["export", "--all", "-o", bundle.to_str().unwrap()],
    ] {
        sandbox.run(command).expect(0);
    }
    let other = Sandbox::new();
    let of_bundle =
        "AddedDocument ImportedLinkSummary ImportedTagSummary ImportedNoteSummary ImportedLabelSummary";
    let expect = |command: &[&str], expected| expect_described(&document, &other, command, expected);
    expect(&["import", bundle.to_str().unwrap()], (0, of_bundle));
    let messages = json!([{"role": "user", "content": "hello"}]);
    let call = json!({
        "request": {"model": "m-1", "messages": messages},
        "response": {"object": "chat.completion", "model": "m-1", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"},
        ]},
    });
    let calls = other.write("calls.jsonl", format!("{call}\n"));
    expect(&["import", calls.to_str().unwrap()], (0, "AddedDocument ImportedValue"));
    expect(&["backup", other.path("copy.vault").to_str().unwrap()], (0, "BackupAnswer"));
    expect(&["sql", "--save", other.path("s.db").to_str().unwrap()], (0, "SqlSaveAnswer"));
    crate::fsck::sql(&other).execute_batch("DELETE FROM unresolved_reference").unwrap();
    expect(&["fsck"], (1, "FindingSummary"));
    expect(&["fsck", "--repair"], (0, "RepairSummary"));
}
