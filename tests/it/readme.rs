//! The README, the tour and the cookbook: every command in them is run, and prints the documented output.

use crate::console;
use crate::sandbox::{Sandbox, repository};

#[test]
fn the_quickstart_is_real() {
    assert!(console::check("README.md", None) >= 5, "the quickstart is missing");
}

/// The first example, with the servers of the tests in place of those of `OpenAI`.
#[cfg(feature = "gateway")]
#[test]
fn the_recording_of_an_agent_is_real() {
    use crate::gateway::clients::{self, Providers};

    let Some(python) = clients::python_with("openai", "the first example of the README") else { return };
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let block = |language: &str, with: &str| {
        let fence = format!("```{language}\n");
        let mut texts = readme.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap());
        texts.find(|text| text.contains(with)).unwrap()
    };
    let sandbox = Sandbox::without_vault();
    sandbox.write("agent.py", block("python", "openai"));
    let providers = Providers::start(&python);
    let run = |command: &str, key: Option<&str>| {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_runvault")).parent().unwrap();
        let directories = [program, std::path::Path::new(&python).parent().unwrap()];
        let inherited = std::env::var_os("PATH").unwrap();
        let inherited = std::env::split_paths(&inherited);
        let path = directories.into_iter().map(std::path::Path::to_owned).chain(inherited);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", command]).current_dir(sandbox.path("")).env_clear();
        shell.env("PATH", std::env::join_paths(path).unwrap()).env("HOME", sandbox.path(""));
        shell.envs(key.map(|key| ("OPENAI_API_KEY", key)));
        crate::sandbox::Ran::from(shell.output().unwrap()).expect(0)
    };
    let commands: Vec<&str> = block("sh", "runvault exec").lines().collect();
    let [record, replay, view] = commands[..] else { panic!("{commands:?}") };
    let upstream = format!("exec --upstream=openai=http://127.0.0.1:{}", providers.port);
    let recorded = run(&record.replacen("exec", &upstream, 1), Some("sk-not-a-key"));
    assert!(recorded.stdout.starts_with("echo: "), "{}", recorded.stdout);
    let stated: Vec<&str> = block("text", "run pack").lines().collect();
    let said: Vec<&str> = recorded.stderr.lines().collect();
    assert_eq!(said.len(), stated.len(), "{}", recorded.stderr);
    for (said, stated) in said.into_iter().zip(stated) {
        assert!(said.starts_with(stated.trim_end_matches('…')), "{said}: {stated}");
    }
    drop(providers);
    assert_eq!(run(replay, None).stdout, recorded.stdout);
    assert!(run(view, None).stdout.contains("Why is the sky blue?"));
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
