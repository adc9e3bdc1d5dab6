//! The programs that are compared: how each gets a fresh repository and archives a directory.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measure::{self, Times};

/// Where a program finds what it has to archive, and where it may write.
pub struct Place {
    pub corpus: PathBuf,
    /// Empty when a run begins.
    pub scratch: PathBuf,
}

impl Place {
    pub fn vault(&self) -> PathBuf {
        self.scratch.join("vault").join("bench.vault")
    }

    fn repository(&self) -> PathBuf {
        self.scratch.join("repository")
    }
}

/// A program that archives directories.
pub struct Program {
    pub name: &'static str,
    /// What must be installed for it.
    needs: Option<&'static str>,
    /// What is done before and not timed.
    prepare: fn(&Place),
    command: fn(&Place) -> Command,
    /// What holds all that it stored, and nothing else.
    stored: fn(&Place) -> PathBuf,
}

impl Program {
    pub fn is_installed(&self) -> bool {
        self.needs.is_none_or(measure::is_installed)
    }
}

fn vault_directory(place: &Place) -> PathBuf {
    place.scratch.join("vault")
}

pub static RUNVAULT: Program = Program {
    name: "runvault add",
    needs: None,
    prepare: |_| {},
    command: |place| runvault_add(&place.vault(), &place.corpus),
    stored: vault_directory,
};

pub static FLOOR: Program = Program {
    name: "floor",
    needs: None,
    prepare: |_| {},
    command: |place| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("floor").args([&place.corpus, &place.vault()]);
        command
    },
    stored: vault_directory,
};

pub static BORG: Program = Program {
    name: "borg create",
    needs: Some("borg"),
    prepare: |place| {
        measure::time(borg(place).args(["init", "-e", "none"]).arg(place.repository()));
    },
    command: |place| {
        let mut archive = place.repository().into_os_string();
        archive.push("::bench");
        let mut command = borg(place);
        command.arg("create").args([archive.as_os_str(), place.corpus.as_os_str()]);
        command
    },
    stored: Place::repository,
};

pub static RESTIC: Program = Program {
    name: "restic backup",
    needs: Some("restic"),
    prepare: |place| {
        measure::time(restic(place).arg("init"));
    },
    command: |place| {
        let mut command = restic(place);
        command.args(["backup", "--quiet"]).arg(&place.corpus);
        command
    },
    stored: Place::repository,
};

pub static GIT: Program = Program {
    name: "git add -A",
    needs: Some("git"),
    prepare: |place| {
        measure::time(git(&place.scratch).arg("init").arg(place.repository()));
        copy(&place.corpus, &place.repository().join("corpus"));
    },
    command: |place| {
        let mut command = git(&place.repository());
        command.args(["add", "-A"]);
        command
    },
    stored: |place| place.repository().join(".git"),
};

pub static BY_HAND: Program = Program {
    name: "Python script",
    needs: Some("python3"),
    prepare: |place| fs::create_dir(place.repository()).expect("a directory"),
    command: |place| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/compare/by_hand.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(&place.corpus).arg(place.repository().join("by_hand.db"));
        command
    },
    stored: Place::repository,
};

/// `runvault VERB ARGUMENT` with the vault at `vault`.
pub fn runvault(verb: &str, vault: &Path, argument: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runvault"));
    command.arg(verb).arg("--vault").arg(vault).arg(argument);
    command
}

/// `runvault add` of `argument` to the vault at `vault`, which need not exist.
pub fn runvault_add(vault: &Path, argument: impl AsRef<OsStr>) -> Command {
    let mut command = runvault("add", vault, argument);
    command.arg("--create");
    command
}

/// Git in `directory`, with no other settings than its own.
pub fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.arg("-C").arg(directory);
    command
}

fn borg(place: &Place) -> Command {
    let mut command = Command::new("borg");
    command.env("BORG_BASE_DIR", place.scratch.join("home"));
    command.env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes");
    command
}

fn restic(place: &Place) -> Command {
    let mut command = Command::new("restic");
    command.env("RESTIC_PASSWORD", "bench").env("RESTIC_CACHE_DIR", place.scratch.join("home"));
    command.arg("--repo").arg(place.repository());
    command
}

/// Copies a directory with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().expect("a type").is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("copied");
        }
    }
}

/// How a program did.
pub struct Score {
    pub program: &'static Program,
    pub times: Times,
    /// The bytes of its repository.
    pub stored: u64,
    /// The repository of the last run.
    pub place: Place,
}

/// Lets each program that is installed archive `corpus`, in turn, `runs` times, each time into a fresh repository below
/// `directory`. The others are skipped.
pub fn contest(programs: &[&'static Program], corpus: &Path, directory: &Path, runs: usize) -> Vec<Score> {
    let mut scores: Vec<Score> = programs
        .iter()
        .enumerate()
        .filter(|(_, program)| program.is_installed())
        .map(|(number, program)| Score {
            program,
            times: Times::new(),
            stored: 0,
            place: Place { corpus: corpus.to_owned(), scratch: directory.join(format!("program-{number}")) },
        })
        .collect();
    for _ in 0..runs {
        for Score { program, times, stored, place } in &mut scores {
            empty(&place.scratch);
            (program.prepare)(place);
            measure::warm(corpus);
            measure::settle();
            times.push(measure::time(&mut (program.command)(place)));
            *stored = measure::size_of(&(program.stored)(place));
        }
    }
    scores
}

/// Makes sure that there is a directory with nothing in it.
pub fn empty(directory: &Path) {
    if directory.exists() {
        fs::remove_dir_all(directory).expect("removed");
    }
    fs::create_dir_all(directory).expect("a directory");
}
