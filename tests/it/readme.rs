//! The README, the tour and the cookbook: every command in them is run, and prints the documented output.

use crate::console;
use crate::sandbox::{Sandbox, repository};

#[test]
fn the_quickstart_is_real() {
    assert!(console::check("README.md", None) > 8, "the quickstart is missing");
}

/// Whoever tries it first builds nothing that only tests and benchmarks need: an example would need both.
#[test]
fn the_first_command_runs_the_program_itself() {
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let first = readme.lines().find(|line| line.starts_with("cargo ")).unwrap();
    let command = first.split('#').next().unwrap().trim();
    let arguments = command.strip_prefix("cargo run --release -- ").unwrap();
    let sandbox = Sandbox::without_vault();
    let vault = sandbox.path("tour.vault");
    let mut command = sandbox.command();
    command.current_dir(repository(""));
    for argument in arguments.split(' ') {
        if argument == "tour.vault" {
            command.arg(&vault)
        } else {
            command.arg(argument)
        };
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("6 added"), "{said}");
    assert!(vault.exists());
}

#[test]
fn the_tour_is_real() {
    assert!(console::check("docs/tour.md", None) > 40, "the tour is missing");
}

#[test]
fn the_cookbook_is_real() {
    assert!(console::check("docs/cookbook.md", Some("## ")) > 30, "the cookbook is missing");
}

/// The paths in the papers for contributors exist. `KIND` stands for any kind.
#[test]
fn papers_for_contributors_name_files_that_exist() {
    let mut seen = 0;
    for paper in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(repository(paper)).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let roots = ["src/", "tests/", "migrations/", "docs/", "benches/", "bindings/"];
            if !roots.iter().any(|root| name.starts_with(root)) || name.contains(' ') {
                continue;
            }
            seen += 1;
            let path = repository(&name.replace("KIND", "trace"));
            assert!(path.exists(), "{paper} names {name}");
        }
    }
    assert!(seen > 30, "the test sees no paths");
}
