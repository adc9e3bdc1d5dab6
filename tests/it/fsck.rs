//! What is wrong with a vault is found, and mended where that needs no guessing.

use crate::sandbox::{Ran, Sandbox, repository, session};

/// The examples: artifacts of every kind, one with two captures, one within another.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    sandbox
}

#[test]
fn a_vault_that_nobody_touched_is_clean() {
    let sandbox = examples();
    for arguments in [["fsck", "--full"], ["fsck", "--quick"], ["fsck", "--sample=50%"], ["fsck", "--kind=pack"]] {
        let ran = sandbox.run(arguments).expect(0);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
    let ran = sandbox.run(["fsck"]).expect(0);
    assert!(ran.stderr.starts_with("7 artifacts checked, 0 findings; "), "{}", ran.stderr);
}
