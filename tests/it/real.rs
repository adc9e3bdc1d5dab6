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

#[test]
fn recorded_runs_state_their_circumstances() {
    let Some(folder) = folder() else { return };
    let sandbox = Sandbox::new();
    sandbox.run(["add".as_ref(), folder.as_os_str()]).expect(0);
    let count =
        |conditions: &[&str]| sandbox.run([&["find", "runs", "--json"], conditions].concat()).json().len();
    assert_eq!(count(&["--host", "api.example.com", "--method", "POST"]), 5);
    assert_eq!(count(&["--attr", "redaction_profile=default"]), 1);
    assert_eq!(count(&["--attr", "os=macOS"]), 3);
    assert_eq!(count(&["--has-error"]), 0);
    // Only the listener records the times of steps, and one example the durations.
    assert_eq!(count(&["--attr", "first_step>=2026-02-01"]), 3);
    assert_eq!(count(&["--attr", "latency>=16", "--attr", "latency<=16ms"]), 1);
    let rows = sandbox.run(["list", "--json"]).expect(0).json();
    assert!(rows.iter().all(|row| row["created_at"].is_string() && row["steps"].is_number()));
    assert_eq!(rows.iter().map(|row| row["members"].as_array().unwrap().len()).sum::<usize>(), 9);
}
