//! One artifact for each process, in a vault of a hundred thousand.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runvault::Vault;
use runvault::digest::Digest;

use super::Bench;
use crate::corpus::{self, many};
use crate::measure::{self, Times};
use crate::programs::{GIT, empty, git, runvault, runvault_add};
use crate::table::{Table, Target};

pub fn run(bench: &Bench) -> Table {
    let directory = bench.directory("single");
    empty(&directory);
    let (artifacts, singles) = (bench.many(100_000, 2_000), bench.many(10, 2) * bench.runs);
    let vault_path = directory.join("bench.vault");
    let vault = Vault::open_or_create(&vault_path).expect("a vault");
    many::fill(&vault, (0..artifacts).map(many::session));
    drop(vault);
    let mut table = Table::new(format!(
        "single: one artifact per process, a vault of {artifacts}, medians of {singles} processes"
    ));

    let files: Vec<PathBuf> = (0..singles).map(|number| single(&directory, number)).collect();
    let empty_program = compile_empty_program(&directory);
    let repository = directory.join("repository");
    if GIT.is_installed() {
        measure::time(git(&directory).args(["init", "repository"]));
    }
    measure::settle();

    let [mut adding, mut hashing, mut syncing, mut doing_nothing, mut getting] = [const { Times::new() }; 5];
    for file in &files {
        adding.push(measure::time(&mut runvault_add(&vault_path, file)));
        if GIT.is_installed() {
            hashing.push(measure::time(git(&repository).args(["hash-object", "-w"]).arg(file)));
            // Git does not write again what it has.
            let other = append_newline(file);
            let synced = ["-c", "core.fsync=loose-object", "hash-object", "-w"];
            syncing.push(measure::time(git(&repository).args(synced).arg(other)));
        }
    }
    table.plain("runvault add FILE", &adding.text());
    if GIT.is_installed() {
        let ratio = adding.median() / hashing.median();
        table.ratio("git hash-object -w FILE, not synced", &hashing.text(), ratio, Target::None);
        let ratio = adding.median() / syncing.median();
        table.ratio("the same with core.fsync=loose-object", &syncing.text(), ratio, Target::None);
    } else {
        table.note("git hash-object was skipped: git is not installed.");
    }

    let vault = Vault::open(&vault_path).expect("the vault");
    let core = |file: &PathBuf| {
        let capture = Digest::from_content(&fs::read(file).expect("read"));
        vault.locate(&capture.into()).expect("added").artifact.core
    };
    let cores: Vec<_> = files.iter().map(core).collect();
    drop(vault);
    for core in cores {
        getting.push(measure::time(&mut runvault("get", &vault_path, core.to_string())));
        if let Some(program) = &empty_program {
            doing_nothing.push(measure::time(&mut Command::new(program)));
        }
    }
    table.plain("runvault get HASH", &getting.text());
    if empty_program.is_some() {
        let ratio = getting.median() / doing_nothing.median();
        table.ratio("empty Rust process, to get", &doing_nothing.text(), ratio, Target::None);
    } else {
        table.note("An empty process was not measured: there is no rustc.");
    }
    table
}

/// Writes a new session to a file.
fn single(directory: &Path, number: usize) -> PathBuf {
    let name = format!("session-{number}.json");
    corpus::write(directory, &name, &corpus::single_session(number));
    directory.join(name)
}

/// Writes a file with the same content and one byte more.
fn append_newline(file: &Path) -> PathBuf {
    let mut bytes = fs::read(file).expect("read");
    bytes.push(b'\n');
    let other = file.with_extension("other");
    fs::write(&other, bytes).expect("written");
    other
}

/// The least that a Rust program can be.
fn compile_empty_program(directory: &Path) -> Option<PathBuf> {
    let (source, program) = (directory.join("empty.rs"), directory.join("empty"));
    fs::write(&source, "fn main() {}\n").expect("written");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let compiled = Command::new(rustc).arg("-O").arg(&source).arg("-o").arg(&program).status();
    compiled.is_ok_and(|status| status.success()).then_some(program)
}
