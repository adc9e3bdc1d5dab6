//! The pager.

use super::pty::Terminal;
use super::{Sandbox, repository};

const WIDE: Terminal = Terminal { width: 100, color: false };

fn desk() -> Sandbox {
    let sandbox = Sandbox::at("2026-01-15T12:00:00Z");
    sandbox.add([repository("examples/session.json"), repository("examples/run.rpk")]);
    sandbox
}

/// What is seen of a command with this pager, and its exit status.
fn paged(sandbox: &Sandbox, command: &str, pager: &str) -> (String, i32) {
    WIDE.with_pager(sandbox, command, pager)
}

#[test]
fn long_output_goes_through_the_pager_with_its_notes() {
    let sandbox = desk();
    let (plain, _) = paged(&sandbox, "find", "");
    let (seen, status) = paged(&sandbox, "find", "sed 's/^/| /'");
    let expected = plain.lines().fold(String::new(), |all, line| all + "| " + line + "\n");
    assert_eq!((seen, status), (expected, 0));
}

#[test]
fn lists_and_statistics_are_paged_and_removals_are_not() {
    let sandbox = desk();
    for command in ["list", "stats", "log", "forget --keep-last 1 --dry-run"] {
        let (seen, status) = paged(&sandbox, command, "sed 's/^/| /'");
        assert!(status == 0 && seen.lines().all(|line| line.starts_with("| ")), "{command}: {seen}");
    }
    let (seen, _) = paged(&sandbox, "forget --keep-last 1 --yes", "sed 's/^/| /'");
    assert!(!seen.contains("| "), "{seen}");
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let sandbox = desk();
    let (seen, status) = paged(&sandbox, "diff 4df877dec7f4 3941d389b337", "sed 's/^/| /'");
    assert_eq!(status, 2, "{seen}");
    let (seen, status) = paged(&sandbox, "find --run-id none", "sed 's/^/| /'");
    assert_eq!(status, 1, "{seen}");
    // Quitting the pager early is no error.
    assert_eq!(paged(&sandbox, "rules", "head -n 1").1, 0);
}

#[test]
fn a_pager_is_used_only_where_it_is_wanted() {
    let sandbox = desk();
    let (plain, _) = paged(&sandbox, "find", "");
    assert_eq!(paged(&sandbox, "find --no-pager", "sed 's/^/| /'").0, plain);
    assert_eq!(paged(&sandbox, "find", "cat").0, plain);
    assert_eq!(paged(&sandbox, "find", "no-such-program").0, plain);
    let (got, _) = paged(&sandbox, "get 4df877dec7f4", "sed 's/^/| /'");
    assert!(!got.starts_with("| "), "bytes are not paged");
}

#[test]
fn no_pager_is_used_without_a_terminal() {
    let sandbox = desk();
    let mut command = sandbox.command();
    let output = command.args(["find"]).env("RUNVAULT_PAGER", "sed s/^/X/").output().unwrap();
    assert!(!String::from_utf8(output.stdout).unwrap().contains('X'));
}
