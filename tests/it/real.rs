//! Run packs that another program recorded. They are not part of the repository; where they are, they are used in place.

use std::path::PathBuf;

use crate::sandbox::Sandbox;

/// The folder that `RUNVAULT_REAL_RPK` names, if it does.
fn folder() -> Option<PathBuf> {
    std::env::var_os("RUNVAULT_REAL_RPK").map(PathBuf::from)
}

#[test]
fn recorded_runs_are_archived_found_and_returned() {
    let Some(folder) = folder() else { return };
    let sandbox = Sandbox::new();
    let added = sandbox.run(["add".as_ref(), "--json".as_ref(), folder.as_os_str()]).expect(0).json();
    assert_eq!(added.len(), 9);
    for line in added {
        assert_eq!((&line["outcome"], &line["kind"]), (&"added".into(), &"rpk".into()));
        let core = line["core_hash"].as_str().unwrap();
        let text = std::fs::read_to_string(line["path"].as_str().unwrap()).unwrap();
        assert_eq!(sandbox.run(["get", core]).expect(0).stdout, text);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["checksum"], core);
        let found_by = |option: &str, value: &serde_json::Value| {
            let found =
                sandbox.run(["find", "runs", "--json", option, value.as_str().unwrap()]).expect(0).json();
            found.iter().any(|hit| hit["core_hash"] == core)
        };
        assert!(found_by("--run-id", &document["metadata"]["run_id"]));
        let steps = document["payload"]["run"]["steps"].as_array().unwrap();
        for step in steps {
            assert!(found_by("--step-hash", &step["hash"]));
        }
        let stubs = sandbox.run(["replay", "--json", core]).expect(0).json();
        let responses = steps.iter().filter(|step| step["type"].as_str().unwrap().ends_with(".response"));
        let outputs: Vec<_> = responses.map(|step| &step["output"]).collect();
        assert_eq!(stubs.iter().map(|stub| &stub["output"]).collect::<Vec<_>>(), outputs);
    }
}
