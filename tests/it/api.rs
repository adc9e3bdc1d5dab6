//! The document of the operations, held to the code.

use serde_json::Value;

use crate::sandbox::repository;

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
