//! The README and the tour: every command in them is run, and prints the documented output. Links between papers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::console::{self, Surroundings};
use crate::output::steady;
use crate::sandbox::{Sandbox, program, repository};

#[test]
fn the_quickstart_is_real() {
    let first = |sandbox: &Sandbox| {
        let mut program = sandbox.command();
        program.args(first_command()).current_dir(sandbox.path(""));
        assert!(program.output().unwrap().status.success());
    };
    let surroundings = Surroundings { prepare: Some(&first), ..Surroundings::default() };
    assert!(console::check_in("README.md", None, &surroundings) >= 5, "the quickstart is missing");
}

fn readme() -> String {
    std::fs::read_to_string(repository("README.md")).unwrap()
}

/// The first block of code in this language that contains a text.
fn block(language: &str, with: &str) -> String {
    let fence = format!("```{language}\n");
    let readme = readme();
    let mut texts = readme.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap());
    texts.find(|text| text.contains(with)).unwrap().to_owned()
}

/// The arguments of the program in the first command with cargo.
fn first_command() -> Vec<String> {
    let readme = readme();
    let first = readme.lines().find(|line| line.starts_with("cargo ")).unwrap();
    let command = first.split('#').next().unwrap().trim();
    let arguments = command.strip_prefix("cargo run --release -- ").unwrap();
    arguments.split(' ').map(str::to_owned).collect()
}

/// The first example, with the servers of the tests in place of those of `OpenAI`.
#[cfg(feature = "gateway")]
#[test]
fn the_recording_of_an_agent_is_real() {
    use crate::gateway::clients::{self, Providers};

    let Some(python) = clients::python_with("openai", "the first example of the README") else { return };
    let sandbox = Sandbox::without_vault();
    sandbox.write("agent.py", block("python", "openai"));
    let providers = Providers::start(&python);
    let run = |command: &str, key: Option<&str>| {
        let program = std::path::Path::new(program()).parent().unwrap();
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
    let commands = block("sh", "python agent.py");
    let commands: Vec<&str> = commands.lines().collect();
    let [record, replay, view] = commands[..] else { panic!("{commands:?}") };
    let upstream = format!("exec --upstream=openai=http://127.0.0.1:{}", providers.port);
    let recorded = run(&record.replacen("exec", &upstream, 1), Some("sk-not-a-key"));
    assert!(recorded.stdout.starts_with("echo: "), "{}", recorded.stdout);
    let stated = block("text", "sha256:…");
    let stated: Vec<&str> = stated.lines().collect();
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
    let sandbox = Sandbox::without_vault();
    std::os::unix::fs::symlink(repository("examples"), sandbox.path("examples")).unwrap();
    let output = sandbox.command().args(first_command()).current_dir(sandbox.path("")).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert!(output.status.success(), "{said}");
    assert_eq!(steady(&said), steady(&block("text", "6 added")));
    assert!(sandbox.path("demo.vault").exists());
}

#[test]
fn the_tour_is_real() {
    assert!(console::check("docs/tour.md", None) > 50, "the tour is missing");
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

/// A change that needs more places than these has no good place, or the row names what the compiler or a test names.
#[test]
fn changes_are_made_in_few_places() {
    let text = std::fs::read_to_string(repository("ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("## Where to change what").unwrap();
    let rows: Vec<&str> =
        table.lines().filter(|line| line.starts_with("| ") && !line.contains("| place")).collect();
    assert!(rows.len() > 20, "the test sees no rows");
    for row in rows {
        let places = row.split('`').skip(1).step_by(2).filter(|name| name.contains('/')).count();
        assert!((1..=5).contains(&places), "{places} places: {row}");
    }
}

#[test]
fn links_between_papers_lead_somewhere() {
    let mut papers = vec![PathBuf::from("benches/README.md"), PathBuf::from("examples/README.md")];
    for directory in ["", "docs", "docs/commands", "bindings/python", "bindings/typescript"] {
        let entries = std::fs::read_dir(repository(directory)).unwrap();
        let names = entries.map(|entry| Path::new(directory).join(entry.unwrap().file_name()));
        papers.extend(names.filter(|name| name.extension().is_some_and(|extension| extension == "md")));
    }
    let (mut seen, mut broken) = (0, Vec::new());
    for paper in &papers {
        let text = std::fs::read_to_string(repository("").join(paper)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") || link.contains(['`', ' ', '\n']) {
                continue;
            }
            seen += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { paper.clone() } else { paper.parent().unwrap().join(file) };
            let target = repository("").join(target);
            let leads = target.exists()
                && (heading.is_empty()
                    || anchors(&std::fs::read_to_string(target).unwrap()).contains(heading));
            if !leads {
                broken.push(format!("{}: {link}", paper.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(seen > 100, "the test sees no links");
}

/// The names by which the headings of a paper are linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = |character: &char| character.is_alphanumeric() || [' ', '-', '_'].contains(character);
        heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}
