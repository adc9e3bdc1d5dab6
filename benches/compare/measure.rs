//! How long processes take, and how much memory.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// GNU time, which knows how much memory a process had at most.
const TIME: &str = "/usr/bin/time";

/// What several runs of the same thing took, in seconds.
pub struct Times(Vec<f64>);

impl Times {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn push(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64());
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            even if even % 2 == 0 => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
            odd => sorted[odd / 2],
        }
    }

    /// The median, and from where to where the times go.
    pub fn text(&self) -> String {
        let bound = |best: fn(f64, f64) -> f64| seconds(self.0.iter().copied().fold(f64::NAN, best));
        format!("{} ({} to {})", seconds(self.median()), bound(f64::min), bound(f64::max))
    }
}

/// A time as people read it.
pub fn seconds(time: f64) -> String {
    if time < 0.1 { format!("{:.2} ms", time * 1e3) } else { format!("{time:.2} s") }
}

/// Runs `command`, which must succeed, and tells how long that took. What it prints is thrown away.
pub fn time(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let started = Instant::now();
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let took = started.elapsed();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{message}", output.status);
    took
}

/// Those of the processor's instructions that hashing depends on.
pub fn processor_features() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    let has_sha = std::is_x86_feature_detected!("sha");
    #[cfg(target_arch = "aarch64")]
    let has_sha = std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let has_sha = false;
    if has_sha { "SHA instructions" } else { "no SHA instructions" }
}

/// How long it takes to sync 16 KiB that were appended to a file in `directory`.
pub fn sync_time(directory: &Path) -> Times {
    let path = directory.join("synced");
    let mut file = fs::File::create(&path).expect("created");
    let mut times = Times::new();
    for _ in 0..25 {
        file.write_all(&[1; 1 << 14]).expect("written");
        let started = Instant::now();
        file.sync_all().expect("synced");
        times.push(started.elapsed());
    }
    fs::remove_file(path).expect("removed");
    times
}

/// The most memory that `command` had, in bytes; nothing where GNU time is not installed.
pub fn peak_memory(command: &Command, directory: &Path) -> Option<u64> {
    if !is_installed(TIME) {
        return None;
    }
    let report = directory.join("memory");
    let mut measured = Command::new(TIME);
    measured.args(["-f", "%M", "-o"]).arg(&report).arg(command.get_program()).args(command.get_args());
    time(&mut measured);
    let kibibytes: u64 = fs::read_to_string(&report).ok()?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Whether a program can be run.
pub fn is_installed(program: impl AsRef<OsStr>) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not all of them know that argument.
    asked.status().is_ok()
}

/// Waits until what was written is on the disk, so that the next program does not have to wait for it.
pub fn settle() {
    let _ = Command::new("sync").status();
}

/// Reads all files in a directory, so that the next program finds them in the page cache: borg removes from there what it has
/// read.
pub fn warm(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            warm(&path);
        } else {
            fs::read(&path).expect("read");
        }
    }
}

/// The bytes of all files in a directory.
pub fn size_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let metadata = entry.metadata().expect("its size");
            if metadata.is_dir() { size_of(&entry.path()) } else { metadata.len() }
        })
        .sum()
}
