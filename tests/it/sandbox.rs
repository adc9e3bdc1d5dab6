//! A directory with a vault, and the real program to run on it.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Commands that only read, with their exit statuses on the examples.
#[cfg(unix)]
pub(crate) const READING: &[(&[&str], i32)] = &[
    (&["find"], 0),
    (&["find", "--prompt", "Summarise ticket 4711 in one sentence."], 0),
    (&["get", "4df877dec7f4"], 0),
    (&["show", "3941d389b337"], 0),
    (&["links", "5c496a37feba"], 0),
    (&["search", "cut off by mistake"], 0),
    (&["sql", "SELECT count(*) FROM artifacts"], 0),
    (&["diff", "4df877dec7f4", "103ef1c54b58", "--first"], 1),
    (&["log"], 0),
    (&["log", "--head"], 0),
    (&["stats"], 0),
    (&["fsck"], 0),
    (&["tag", "list"], 0),
];

use runvault::json::canonical::replaykit::{self, VolatilePolicy};
use runvault::json::reader::{self, Limits};
use serde_json::Value;
use tempfile::TempDir;

/// The program: the one that was built with the tests, or the one that `RUNVAULT_TEST_PROGRAM` names, such as one that is
/// optimized. It must have been built from the same files with the same features.
pub(crate) fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let named = std::env::var("RUNVAULT_TEST_PROGRAM");
        named.unwrap_or_else(|_| env!("CARGO_BIN_EXE_runvault").to_owned())
    })
}

pub(crate) struct Sandbox {
    directory: TempDir,
    clock: Option<&'static str>,
    records_source_paths: bool,
}

pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// One JSON value for each line of standard output.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.stdout, self.stderr);
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Sandbox {
    /// One with an empty vault.
    pub(crate) fn new() -> Self {
        let sandbox = Self::without_vault();
        runvault::Vault::create(&sandbox.vault()).unwrap();
        sandbox
    }

    pub(crate) fn without_vault() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), clock: None, records_source_paths: false }
    }

    /// One in which the paths of captures are recorded.
    pub(crate) fn recording_source_paths() -> Self {
        Self { records_source_paths: true, ..Self::new() }
    }

    /// One in which the program's clock stands still at `time`, an RFC 3339 timestamp.
    pub(crate) fn at(time: &'static str) -> Self {
        Self { clock: Some(time), ..Self::new() }
    }

    /// From now on, the program's clock stands still at `time`.
    pub(crate) fn set_clock(&mut self, time: &'static str) {
        self.clock = Some(time);
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn vault(&self) -> PathBuf {
        self.path("v.vault")
    }

    /// The program, working in the directory on its vault, with nothing else from the environment but the date that
    /// `faketime` makes up for the tests.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.current_dir(self.directory.path()).env_clear().env("RUNVAULT_VAULT", "v.vault");
        // Not that of whoever runs the tests.
        command.env("RUNVAULT_CONFIG", self.path("config.toml"));
        // Paths differ from one machine to the next: tests of them turn this on.
        command.env("RUNVAULT_SOURCE_PATH", if self.records_source_paths { "on" } else { "off" });
        let kept = |(name, _): &(OsString, OsString)| {
            name.to_str().is_some_and(|name| name == "LD_PRELOAD" || name.contains("FAKE"))
        };
        command.envs(std::env::vars_os().filter(kept));
        if let Some(time) = self.clock {
            command.env("RUNVAULT_TEST_CLOCK", time);
        }
        command
    }

    pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        self.command().args(arguments).output().unwrap().into()
    }

    /// Runs with `input` on standard input.
    pub(crate) fn run_on(&self, input: &[u8], arguments: &[&str]) -> Ran {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.args(arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A program that ends before it has read everything closes the pipe.
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output().unwrap().into()
        })
    }

    /// Adds paths, which must all be admitted, and gives the core hashes.
    pub(crate) fn add<P: AsRef<Path>>(&self, paths: impl IntoIterator<Item = P>) -> Vec<String> {
        let mut arguments = vec!["add".into(), "--json".into()];
        arguments.extend(paths.into_iter().map(|path| path.as_ref().as_os_str().to_owned()));
        let lines = self.run::<std::ffi::OsString>(arguments).expect(0).json();
        lines.iter().map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect()
    }
}

/// A file or directory of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The pages of all commands in `docs/commands/`, one after the other.
pub(crate) fn command_pages() -> String {
    let pages = std::fs::read_dir(repository("docs/commands")).unwrap();
    pages.map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap()).collect()
}

/// A valid session with the given prompts and responses.
pub(crate) fn session(adapter: &str, exchanges: &[(&str, &str)]) -> String {
    let digest = |text: &str| runvault::digest::Digest::from_content(text.as_bytes()).to_string();
    let interactions: Vec<Value> = exchanges
        .iter()
        .enumerate()
        .map(|(index, (prompt, response))| {
            serde_json::json!({
                "i": index, "prompt_hash": digest(prompt),
                "response_hash": digest(response), "response_content": response,
            })
        })
        .collect();
    serde_json::json!({
        "model_io_schema_version": "1.0.0", "adapter_id": adapter, "model_id": "m", "mode": "record",
        "interactions": interactions,
    })
    .to_string()
}

/// A valid run pack of these steps, which need a `type` and may have what else steps have.
pub(crate) fn run_pack(run_id: &str, steps: &[Value]) -> String {
    let steps = steps.iter().enumerate().map(|(index, given)| {
        let mut step =
            serde_json::json!({"id": format!("step-{index}"), "input": null, "output": null, "metadata": {}});
        step.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        let hash = replaykit_hash(&step, &["type", "input", "output", "metadata"], VolatilePolicy::Omit);
        step["hash"] = hash.into();
        step
    });
    let steps: Vec<Value> = steps.collect();
    let time = "2026-11-18T09:00:00Z";
    let pack = serde_json::json!({
        "version": "1.0", "metadata": {"run_id": run_id, "created_at": time},
        "payload": {"run": {"id": run_id, "timestamp": time, "environment_fingerprint": {}, "runtime_versions": {},
            "steps": steps}},
    });
    sealed(pack)
}

/// A run pack with the checksum of its content.
pub(crate) fn sealed(mut pack: Value) -> String {
    pack["checksum"] =
        replaykit_hash(&pack, &["version", "metadata", "payload"], VolatilePolicy::Include).into();
    pack.to_string()
}

fn replaykit_hash(value: &Value, names: &[&'static str], volatile: VolatilePolicy) -> String {
    let text = value.to_string();
    let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
    let members: Vec<_> = names.iter().map(|name| (*name, value.get(name).unwrap())).collect();
    runvault::digest::Digest::from_content(&replaykit::object(&members, volatile).unwrap()).to_string()
}
