//! Write-ahead logs in which a committed transaction follows damage, and those that a crash leaves, in which none does.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rusqlite::{Connection, OpenFlags};

use crate::sandbox::{Sandbox, program, session};

/// The number of artifacts that are acknowledged, each by a transaction of its own.
const ADDED: usize = 6;

/// What a writer leaves that was killed before a checkpoint: every artifact but the first is in the log only.
struct Killed {
    sandbox: Sandbox,
    cores: Vec<String>,
    log: Vec<u8>,
    index: Vec<u8>,
    file: Vec<u8>,
}

impl Killed {
    fn new() -> Self {
        Self::of("adapter")
    }

    fn of(name: &str) -> Self {
        let sandbox = Sandbox::recording_source_paths();
        let mut cores = sandbox.add([document(&sandbox, name, 0)]);
        // A process that has the vault open keeps the last writer from emptying the log, as a kill does.
        let open = Connection::open_with_flags(sandbox.vault(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        open.query_row("SELECT count(*) FROM kind", [], |_| Ok(())).unwrap();
        for number in 1..ADDED {
            cores.extend(sandbox.add([document(&sandbox, name, number)]));
        }
        let read = |ending: &str| fs::read(sandbox.path(&format!("v.vault{ending}"))).unwrap();
        let (file, log, index) = (read(""), read("-wal"), read("-shm"));
        drop(open);
        let killed = Self { sandbox, cores, log, index, file };
        killed.restore();
        killed
    }

    fn path(&self, ending: &str) -> std::path::PathBuf {
        self.sandbox.path(&format!("v.vault{ending}"))
    }

    /// Makes the files what they were after the kill.
    fn restore(&self) {
        for file in fs::read_dir(self.sandbox.path("")).unwrap().map(|entry| entry.unwrap().path()) {
            if file.file_name().unwrap().to_string_lossy().starts_with("v.vault") {
                fs::remove_file(file).unwrap();
            }
        }
        for (ending, bytes) in [("", &self.file), ("-wal", &self.log), ("-shm", &self.index)] {
            fs::write(self.path(ending), bytes).unwrap();
        }
    }

    /// The same with another log.
    fn with_log(&self, log: &[u8]) {
        self.restore();
        fs::write(self.path("-wal"), log).unwrap();
    }

    fn flipped(&self, offset: usize) -> Vec<u8> {
        let mut log = self.log.clone();
        log[offset] ^= 0x10;
        log
    }

    /// The number of frames of the log.
    fn frames(&self) -> usize {
        (self.log.len() - HEADER) / FRAME
    }

    fn present(&self) -> Vec<&String> {
        self.cores.iter().filter(|core| self.sandbox.run(["get", core]).status == 0).collect()
    }

    fn fsck(&self) -> crate::sandbox::Ran {
        self.sandbox.run(["fsck", "--json"])
    }
}

const HEADER: usize = 32;
const PAGE: usize = 8_192;
const FRAME: usize = 24 + PAGE;

fn document(sandbox: &Sandbox, name: &str, number: usize) -> std::path::PathBuf {
    sandbox.write(&format!("{name}-{number}.json"), session(&format!("{name} {number}"), &[("p", "r")]))
}

fn copies(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.contains("-wal-"));
    names.sort();
    names
}

#[test]
fn a_log_that_a_kill_leaves_is_whole() {
    let killed = Killed::new();
    let ran = killed.fsck().expect(0);
    assert_eq!(ran.stdout, "");
    assert!(!ran.stderr.contains("log"), "{}", ran.stderr);
    assert_eq!(killed.present().len(), ADDED);
    assert!(copies(&killed.sandbox.path("")).is_empty());
}

#[test]
fn a_flipped_byte_before_a_transaction_is_reported_and_the_log_is_kept() {
    let killed = Killed::new();
    // Nothing shows whether the last transaction was acknowledged.
    let frames = transactions(&killed.log).pop().unwrap();
    assert!(frames < killed.frames());
    let mut offsets = vec![0, 9, 17, 25];
    for frame in 0..frames {
        // The number of the page, the end of a transaction, the salts, the checksum, the page.
        for within in [1, 6, 10, 20, 24 + (frame * 997) % PAGE] {
            offsets.push(HEADER + frame * FRAME + within);
        }
    }
    let stride = std::env::var("RUNVAULT_LOG_STRIDE").map_or(23, |stride| stride.parse().unwrap());
    for offset in offsets.into_iter().step_by(stride) {
        let damaged = killed.flipped(offset);
        killed.with_log(&damaged);
        // The first to look is one that only reads.
        let first = killed.sandbox.run(["stats"]).expect(0).stderr;
        assert!(
            first.contains("write-ahead log") && first.contains("v.vault.damaged-wal-1"),
            "{offset}: {first}"
        );
        // More is written, and it is not reported a second time.
        killed.sandbox.add([document(&killed.sandbox, "later", offset)]);
        let second = killed.sandbox.run(["stats"]).expect(0).stderr;
        assert!(!second.contains("write-ahead log"), "{offset}: {second}");
        let findings = killed.fsck().expect(1).json();
        assert_eq!(findings.len(), 1, "{offset}: {findings:?}");
        assert_eq!(findings[0]["finding"], "log-damaged", "{offset}: {findings:?}");
        assert_eq!(findings[0]["subject"], "v.vault.damaged-wal-1");
        assert_eq!(copies(&killed.sandbox.path("")), ["v.vault.damaged-wal-1"]);
        assert!(fs::read(killed.path(".damaged-wal-1")).unwrap() == damaged, "{offset}");
        // What is lost can be added again, and whoever has looked at the copy removes it.
        for number in 0..ADDED {
            killed.sandbox.run(["add", &format!("adapter-{number}.json")]).expect(0);
        }
        killed.sandbox.run(["fsck", "--repair"]).expect(1);
        fs::remove_file(killed.path(".damaged-wal-1")).unwrap();
        assert_eq!(killed.fsck().expect(0).stdout, "", "{offset}");
        assert_eq!(killed.present().len(), ADDED, "{offset}");
    }
}

/// Frames of an earlier generation stand behind those of the current one after the log was started again from its beginning.
#[test]
fn frames_with_older_salts_are_not_reported() {
    let killed = Killed::new();
    let older = killed.log.clone();
    // Everything goes into the file; the log starts again, shorter.
    let open = Connection::open_with_flags(killed.path(""), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    open.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    killed.sandbox.add([document(&killed.sandbox, "newer", 0)]);
    let read = |ending: &str| fs::read(killed.path(ending)).unwrap();
    let (file, log, index) = (read(""), read("-wal"), read("-shm"));
    drop(open);
    assert_eq!(log.len(), older.len(), "the log was started again and not cut off");
    assert_ne!(log[16..24], older[16..24]);
    for has_index in [true, false] {
        killed.restore();
        for (ending, bytes) in [("", &file), ("-wal", &log), ("-shm", &index)] {
            fs::write(killed.path(ending), bytes).unwrap();
        }
        if !has_index {
            fs::remove_file(killed.path("-shm")).unwrap();
        }
        let ran = killed.fsck().expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.contains("log")), ("", false), "{}", ran.stderr);
        assert_eq!(killed.present().len(), ADDED);
    }
}

/// A transaction that was not finished, cut off at any byte or torn: nothing of it was acknowledged.
#[test]
fn a_tail_that_was_not_acknowledged_is_not_reported() {
    let killed = Killed::new();
    let last = transactions(&killed.log).pop().unwrap();
    let begin = HEADER + last * FRAME;
    let mut images: Vec<Vec<u8>> =
        [0, 1, 24, 500, FRAME, FRAME + 30].iter().map(|more| killed.log[..begin + more].to_vec()).collect();
    for torn in [24, 4_096, FRAME - 512] {
        // The last frame was begun, and what the file had there before is still behind it.
        let mut image = killed.log.clone();
        let frame = image.len() - FRAME;
        image[frame + torn..].fill(0xa5);
        images.push(image);
    }
    for (number, image) in images.iter().enumerate() {
        killed.with_log(image);
        fs::remove_file(killed.path("-shm")).unwrap();
        let ran = killed.fsck().expect(0);
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.contains("log")),
            ("", false),
            "{number}: {}",
            ran.stderr
        );
        assert_eq!(killed.present().len(), ADDED - 1, "{number}");
    }
}

/// The number of frames before each transaction.
fn transactions(log: &[u8]) -> Vec<usize> {
    let mut begins = vec![0];
    for number in 0..(log.len() - HEADER) / FRAME {
        let frame = &log[HEADER + number * FRAME..];
        if frame[4..8] != [0; 4] {
            begins.push(number + 1);
        }
    }
    begins.pop();
    begins
}

/// The same damage is copied once, however often the vault is opened, and also where nothing may be written beside it.
#[test]
fn a_damaged_log_is_copied_once() {
    let killed = Killed::new();
    killed.with_log(&killed.flipped(HEADER + FRAME + 3_000));
    for _ in 0..3 {
        killed.sandbox.run(["find"]);
    }
    assert_eq!(copies(&killed.sandbox.path("")), ["v.vault.damaged-wal-1"]);
    // A copy is the owner's, like the vault.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(killed.path(".damaged-wal-1")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(fs::read(killed.path(".damaged-wal-1")).unwrap(), killed.flipped(HEADER + FRAME + 3_000));
}

/// SQLite has the log beside the vault itself, whatever link leads to it.
#[cfg(unix)]
#[test]
fn a_damaged_log_is_found_through_a_link_to_the_vault() {
    let killed = Killed::new();
    killed.with_log(&killed.flipped(HEADER + FRAME + 3_000));
    std::os::unix::fs::symlink("v.vault", killed.sandbox.path("link")).unwrap();
    let ran = killed.sandbox.run(["--vault", "link", "stats"]).expect(0);
    assert!(ran.stderr.contains("v.vault.damaged-wal-1"), "{}", ran.stderr);
    assert_eq!(killed.fsck().expect(1).json().len(), 1);
}

/// Where no copy can be made, nothing opens the vault that would delete what the copy should have.
#[cfg(unix)]
#[test]
fn a_damaged_log_stays_as_it_is_while_the_disk_is_full() {
    let killed = Killed::new();
    let damaged = killed.flipped(HEADER + FRAME + 3_000);
    killed.with_log(&damaged);
    let program = program();
    let script = format!("trap '' XFSZ; ulimit -f 0; exec '{program}' stats");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(killed.sandbox.path("")).env_clear();
    command.env("RUNVAULT_VAULT", "v.vault").env("RUNVAULT_CONFIG", "none.toml");
    let full: crate::sandbox::Ran = command.output().unwrap().into();
    assert_eq!(full.status, 2, "{}", full.stderr);
    assert!(
        full.stderr.contains("disk is full") || full.stderr.contains("File too large"),
        "{}",
        full.stderr
    );
    assert_eq!(fs::read(killed.path("-wal")).unwrap(), damaged);
    assert!(copies(&killed.sandbox.path("")).is_empty());
    killed.fsck().expect(1);
    assert_eq!(fs::read(killed.path(".damaged-wal-1")).unwrap(), damaged);
}

/// A real process, killed.
#[test]
fn a_writer_that_is_killed_leaves_no_finding() {
    let sandbox = Sandbox::new();
    for number in 0..400 {
        document(&sandbox, "d/x", number);
    }
    for round in 0..4_u64 {
        let mut command = sandbox.command();
        command.args(["add", "--json", "d"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(round * 15));
        child.kill().unwrap();
        child.wait().unwrap();
        let ran = sandbox.run(["fsck", "--json"]).expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.contains("log")), ("", false), "{}", ran.stderr);
        assert!(copies(&sandbox.path("")).is_empty());
    }
}
