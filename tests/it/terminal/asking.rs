//! What is asked on a terminal before much is removed.

use super::pty::Terminal;
use crate::sandbox::{Sandbox, session};

/// A sandbox with three sessions.
fn three_sessions() -> Sandbox {
    let sandbox = Sandbox::at("2026-01-15T12:00:00Z");
    sandbox.add(["a", "b", "c"].map(|name| sandbox.write(name, session(name, &[]))));
    sandbox
}

fn forget(sandbox: &Sandbox, arguments: &str, typed: Option<&str>) -> (String, i32) {
    Terminal { width: 100, color: false }.dialogue(sandbox, &format!("forget {arguments}"), typed)
}

fn left(sandbox: &Sandbox) -> usize {
    sandbox.run(["find", "--json"]).json().len()
}

#[test]
fn forget_asks_before_it_removes_more_than_half_of_a_kind() {
    for no in ["\n", "n\n", "yep\n"] {
        let sandbox = three_sessions();
        let (seen, status) = forget(&sandbox, "--keep-last 1", Some(no));
        assert!(seen.contains("Remove 2 of 3 sessions? [y/N] "), "{seen}");
        assert!(seen.contains("remove session") && seen.ends_with("nothing was removed\n"), "{seen}");
        assert_eq!((status, left(&sandbox)), (1, 3), "{no:?}");
    }
    for yes in ["y\n", "YES\n"] {
        let sandbox = three_sessions();
        let (seen, status) = forget(&sandbox, "--keep-last 1", Some(yes));
        assert!(seen.ends_with("[y/N] 2 artifacts removed (202 B), 1 kept\n"), "{seen}");
        assert_eq!((status, left(&sandbox)), (0, 1), "{yes:?}");
    }
}

#[test]
fn forget_asks_nothing_that_is_answered_or_harmless() {
    let sandbox = three_sessions();
    for arguments in ["--keep-last 2", "--keep-last 0 --dry-run", "--keep-last 0 --yes"] {
        let (seen, status) = forget(&sandbox, arguments, Some(""));
        assert!(!seen.contains("[y/N]"), "{seen}");
        assert_eq!(status, 0, "{seen}");
    }
    assert_eq!(left(&sandbox), 0);
}

#[test]
fn forget_refuses_without_a_terminal_to_ask_on() {
    let sandbox = three_sessions();
    // The answer is not typed on a terminal.
    let (seen, status) = forget(&sandbox, "--keep-last 1", None);
    assert!(seen.contains("--yes removes them") && seen.contains("2 of 3 sessions"), "{seen}");
    assert_eq!((status, left(&sandbox)), (1, 3));
}
