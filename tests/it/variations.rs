//! The script that makes many runs of a few.

use std::process::Command;

use crate::sandbox::{Sandbox, repository};

#[test]
fn every_variation_of_a_run_is_an_artifact() {
    let sandbox = Sandbox::new();
    let mut command = Command::new("python3");
    command.arg(repository("examples/variations.py")).arg(sandbox.path("varied")).args(["--count", "60"]);
    let Ok(output) = command.arg(repository("examples/run.rpk")).output() else {
        println!("there is no python3: nothing was tested");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let added = sandbox.run(["add", "varied", "--json"]).expect(0).json();
    assert_eq!(added.len(), 60);
    assert!(added.iter().all(|one| one["outcome"] == "added" && one["kind"] == "rpk"), "{added:?}");
    // The seed is fixed, and so is their number.
    let failed = sandbox.run(["find", "runs", "--attr", "step_type=error.event", "--json"]).expect(0).json();
    assert!(!failed.is_empty() && failed.len() < 30, "{}", failed.len());
}
