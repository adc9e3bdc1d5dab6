//! The program on a damaged vault, with bounded time and memory.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;

/// Address space in KiB. Commands on vaults of this size need a tenth.
const MEMORY_KIB: u32 = 2 << 20;

/// Processor time in seconds: however busy the machine is, a command on a small vault takes a fraction of one.
const PROCESSOR_SECONDS: u32 = 60;

/// The largest file that may be written, in units of 512 bytes.
const FILE_BLOCKS: u32 = 1 << 20;

/// For what waits and never goes on. Far more than anything takes on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(10);

/// What a command did.
pub(super) struct Outcome {
    pub(super) stdout: Vec<u8>,
    /// What it broke, if anything.
    pub(super) broken: Option<String>,
    pub(super) status: Option<i32>,
    /// How long it took.
    pub(super) elapsed: Duration,
}

/// Runs `words` in the sandbox and says whether they came to an end as they should: within time and memory, with one of the
/// documented exit statuses, and without a panic, an abort or another signal.
pub(super) fn run(sandbox: &Sandbox, words: &[&str]) -> Outcome {
    let (stdout, stderr) = (sandbox.path("stdout"), sandbox.path("stderr"));
    let limits = format!(
        "ulimit -c 0; ulimit -v {MEMORY_KIB}; ulimit -t {PROCESSOR_SECONDS}; ulimit -f {FILE_BLOCKS}; exec \"$@\""
    );
    let program = sandbox.command();
    let mut command = Command::new("sh");
    command.args(["-c", &limits, "sh"]).arg(program.get_program()).args(words);
    command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // Each thread's arena takes address space, and machines have any number of processors.
    command.env("MALLOC_ARENA_MAX", "2").env("RUNVAULT_TEST_CLOCK", CLOCK).env("RUNVAULT_ACTOR", "fuzz");
    command.current_dir(program.get_current_dir().unwrap()).stdin(Stdio::null());
    command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
    let started = Instant::now();
    let mut child = command.spawn().unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let elapsed = started.elapsed();
    let said = String::from_utf8_lossy(&std::fs::read(&stderr).unwrap()).into_owned();
    let broken = match status {
        None => Some(format!("it did not end within {TIMEOUT:?}")),
        // Exit status 3 as well: damage can make an artifact one that a command does not take.
        Some(status) if !matches!(status.code(), Some(0..=3)) => Some(status.to_string()),
        Some(_) if said.contains("panicked at") => Some("it panicked".to_owned()),
        Some(_) => None,
    };
    Outcome {
        stdout: std::fs::read(&stdout).unwrap(),
        broken: broken.map(|what| format!("{what}\n{}", said.chars().take(2000).collect::<String>())),
        status: status.and_then(|status| status.code()),
        elapsed,
    }
}

/// When everything happens, so that the same seed makes the same vaults.
pub(super) const CLOCK: &str = "2020-02-01T10:00:00Z";
