//! Coding agents: recorded, replayed in another directory on another day with another home directory, and their own records
//! archived and compared with the calls.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::clients::{Providers, node, python_with, skip};
use crate::sandbox::{Ran, Sandbox, repository};

/// The aider of the package `aider-chat`.
const AIDER: &str = "RUNVAULT_TEST_AIDER";

/// An agent, and how it is run.
struct Agent {
    name: &'static str,
    program: PathBuf,
    /// Its arguments; the prompt follows.
    arguments: &'static [&'static str],
    /// Whether it keeps a record that `--agents` finds.
    has_sessions: bool,
}

/// A place in which an agent runs: a directory and a home directory. In the two time zones, it is never the same day.
struct Place<'s> {
    sandbox: &'s Sandbox,
    name: &'static str,
    zone: &'static str,
}

impl Place<'_> {
    fn directory(&self) -> PathBuf {
        self.sandbox.path(self.name).join("project")
    }

    fn home(&self) -> PathBuf {
        self.sandbox.path(self.name).join("home")
    }

    fn file(&self) -> PathBuf {
        self.directory().join("said.txt")
    }

    /// A command of runvault in this place.
    fn command(&self) -> Command {
        std::fs::create_dir_all(self.directory()).unwrap();
        std::fs::create_dir_all(self.home()).unwrap();
        let mut command = self.sandbox.command();
        command.current_dir(self.directory()).env("RUNVAULT_VAULT", self.sandbox.vault());
        command.env("HOME", self.home()).env("TZ", self.zone).env("PATH", search_path());
        for key in ["OPENAI_API_KEY", "CODEX_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
            command.env(key, "sk-not-a-key");
        }
        for (name, value) in [
            // Nothing is asked of other servers.
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("PI_OFFLINE", "1"),
            ("npm_config_offline", "true"),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            // It has no options for these.
            ("GOOSE_DISABLE_KEYRING", "1"),
            ("GOOSE_MODE", "auto"),
            ("GOOSE_MODEL", "gpt-5.1"),
            ("GOOSE_PROVIDER", "openai"),
            ("OPENAI_MODEL", "gpt-5.1"),
        ] {
            command.env(name, value);
        }
        command
    }

    fn run(&self, agent: &Agent, options: &[String], prompt: &str) -> Ran {
        let mut command = self.command();
        command.args(["exec", "--create"]).args(options).arg("--").arg(&agent.program).args(agent.arguments);
        Ran::from(command.arg(format!("{prompt} to {}", self.file().display())).output().unwrap())
    }
}

fn is_recorded_and_replayed_elsewhere(agent: &Agent) {
    let Some(python) = python_with("json", &format!("the gateway with {}", agent.name)) else { return };
    let sandbox = Sandbox::without_vault();
    let providers = Providers::start(&python);
    let there = Place { sandbox: &sandbox, name: "there", zone: "Pacific/Kiritimati" };
    let here = Place { sandbox: &sandbox, name: "here", zone: "Pacific/Pago_Pago" };
    let servers = ["openai", "anthropic", "gemini"].into_iter();
    let servers = servers.map(|name| format!("--upstream={name}=http://127.0.0.1:{}", providers.port));
    let record: Vec<String> = servers.chain(["--mode=record".to_owned()]).collect();
    let recorded = there.run(agent, &record, "Write hello").expect(0);
    let is_written =
        |place: &Place<'_>| std::fs::read_to_string(place.file()).is_ok_and(|text| text == "hello\n");
    assert!(is_written(&there) || agent.name == "aider", "{}", recorded.stderr);
    drop(providers);

    // Without servers, and with the directory of the recording gone.
    std::fs::remove_dir_all(there.directory()).unwrap();
    let replay = ["--mode=replay", "--fail-on-miss", "--fail-unused", "--session=latest"].map(str::to_owned);
    let replayed = here.run(agent, &replay, "Write hello").expect(0);
    assert!(replayed.stderr.contains(", 0 missed; 0 recordings unused"), "{}", replayed.stderr);
    assert!(is_written(&here) || agent.name == "aider", "{}", replayed.stderr);
    assert!(!there.directory().exists());

    // A changed prompt is named.
    let changed = here.run(agent, &replay, "Write goodbye");
    assert_ne!(changed.status, 0);
    let names = changed.stderr.contains("Write hello") && changed.stderr.contains("Write goodbye");
    assert!(names, "{}", changed.stderr);

    // The calls of tools can be read, and the run is labeled.
    let shown = sandbox.run(["view", "latest"]).expect(0).stdout;
    assert!(shown.contains("tee ") || agent.name == "aider", "{shown}");
    let listed =
        sandbox.run(["find", "rpk", "--json", &format!("--label=program={}", agent.name)]).expect(0).json();
    assert_eq!(listed.len(), 1);
    assert!(listed[0]["labels"]["program-version"].is_string(), "{}", listed[0]);

    // Its own record says the same as the calls.
    if agent.has_sessions {
        let watch = ["watch", "--agents", "--once", "--settle", "0s"];
        Ran::from(there.command().args(watch).output().unwrap()).expect(0);
        let session = sandbox.run(["find", "agent_session", "--json"]).expect(0).json();
        let session = session[0]["core_hash"].as_str().unwrap().to_owned();
        sandbox.run(["audit", "--wire", &session]).expect(0);
    }
}

/// Where programs are looked for: first where the newer Node of the clients is, if there is one.
fn search_path() -> OsString {
    let node = PathBuf::from(node());
    let inherited = std::env::var_os("PATH").unwrap();
    let newer = node.parent().filter(|directory| directory.is_dir()).map(Path::to_owned);
    std::env::join_paths(newer.into_iter().chain(std::env::split_paths(&inherited))).unwrap()
}

/// The program of a package of tests/agents, below its packages. Says that it is skipped if it does not run: some need a newer
/// Node.
fn package(name: &'static str, path: &str) -> Option<PathBuf> {
    let program = repository("tests/agents/node_modules").join(path);
    let version = Command::new(&program).arg("--version").env("PATH", search_path()).output();
    if !version.is_ok_and(|version| version.status.success()) {
        skip(
            &format!("the gateway with {name}"),
            "it is not installed in tests/agents, or does not run here",
        );
        return None;
    }
    Some(program)
}

fn agent_of_package(name: &'static str, arguments: &'static [&'static str], has_sessions: bool) {
    if let Some(program) = package(name, &format!(".bin/{name}")) {
        is_recorded_and_replayed_elsewhere(&Agent { name, program, arguments, has_sessions });
    }
}

#[test]
fn claude_code() {
    agent_of_package("claude", &["--allowedTools", "Bash", "-p"], true);
}

#[test]
fn codex() {
    let arguments = &[
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "-m",
        "gpt-5.1-codex",
    ];
    agent_of_package("codex", arguments, true);
}

#[test]
fn gemini_cli() {
    agent_of_package("gemini", &["--yolo", "-p"], true);
}

#[test]
fn opencode() {
    agent_of_package("opencode", &["run", "--model", "anthropic/claude-sonnet-4-5"], true);
}

#[test]
fn pi() {
    agent_of_package("pi", &["--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p"], true);
}

#[test]
fn qwen_code() {
    agent_of_package("qwen", &["--yolo", "-p"], false);
}

#[test]
fn cline() {
    agent_of_package("cline", &["-P", "openai-native", "-m", "gpt-5.1"], false);
}

#[test]
fn goose() {
    let Some(program) = package("goose", "@aaif/goose-binary-linux-x64/bin/goose") else { return };
    let arguments = &["run", "--no-session", "--text"];
    is_recorded_and_replayed_elsewhere(&Agent { name: "goose", program, arguments, has_sessions: false });
}

#[test]
fn aider() {
    let Ok(program) = std::env::var(AIDER) else {
        return skip("the gateway with aider", &format!("{AIDER} does not name the program"));
    };
    let arguments =
        &["--model", "openai/gpt-5.1", "--yes-always", "--no-git", "--no-check-update", "--message"];
    is_recorded_and_replayed_elsewhere(&Agent {
        name: "aider",
        program: program.into(),
        arguments,
        has_sessions: false,
    });
}
