//! Vault files that were changed: every command on every one of them ends, within bounds of time and memory, without a
//! panic, an abort or another signal, and gives no wrong bytes.
//!
//! `cargo test` tries a few, with some of the commands. `RUNVAULT_FUZZ_SECONDS=600 cargo test --test it fuzzing::vaults`
//! tries all commands for ten minutes on each sort of change. What breaks is named by a number, and
//! `RUNVAULT_FUZZ_START=<number>` begins with it; all of it is written to `runvault-fuzz-vaults` in the directory for
//! temporary files meanwhile.

mod bases;
mod commands;
mod finds;
mod limited;
mod log;
mod pages;
mod rows;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use super::mutate::Random;
use super::start;
use crate::sandbox::Sandbox;
use bases::Base;
use pages::Pages;

/// What is changed of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Bytes and pages of the file.
    Pages,
    /// Rows, through the database.
    Rows,
    /// The write-ahead log, and other files beside the vault.
    Log,
}

/// A changed vault.
struct Mutant {
    /// The files, by what stands behind the vault's name.
    files: Vec<(&'static str, Vec<u8>)>,
    described: String,
}

impl Mutant {
    /// The one with this number.
    fn new(sort: Sort, number: u64) -> Self {
        let mut random = Random::new(number);
        let base = match sort {
            Sort::Log => bases::ALL.iter().find(|base| base.log.is_some()).unwrap(),
            Sort::Pages | Sort::Rows => random.of(&bases::ALL),
        };
        let mut described = vec![base.name.to_owned()];
        let mut files = match sort {
            Sort::Pages => {
                let mut bytes = base.bytes.clone();
                for _ in 0..=random.below(3) {
                    described.push(Pages::new(&mut bytes).change(&mut random));
                }
                vec![("", bytes)]
            }
            Sort::Rows => vec![("", Self::rows(base, &mut random, &mut described))],
            Sort::Log => Self::with_log(base, &mut random, &mut described),
        };
        if sort != Sort::Log
            && let Some(log) = &base.log
        {
            files.push(("-wal", log.clone()));
        }
        Self { files, described: described.join("; ") }
    }

    fn rows(base: &Base, random: &mut Random, described: &mut Vec<String>) -> Vec<u8> {
        let sandbox = Sandbox::without_vault();
        sandbox.write("v.vault", &base.bytes);
        for _ in 0..=random.below(3) {
            described.push(rows::change(&sandbox, random));
        }
        std::fs::read(sandbox.vault()).unwrap()
    }

    fn with_log(
        base: &Base,
        random: &mut Random,
        described: &mut Vec<String>,
    ) -> Vec<(&'static str, Vec<u8>)> {
        let mut log = base.log.clone().unwrap_or_default();
        for _ in 0..=random.below(3) {
            described.push(log::change(&mut log, base.page_size(), random));
        }
        let mut files = vec![("", base.bytes.clone()), ("-wal", log)];
        match random.below(6) {
            0 => {
                described.push("an index of the log that is noise".to_owned());
                let noise = (0..32_768).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
                files.push(("-shm", noise));
            }
            1 => {
                described.push("a rollback journal".to_owned());
                files.push(("-journal", rollback(base, random)));
            }
            _ => {}
        }
        files
    }

    /// Puts it into the sandbox, in place of what is there.
    fn write(&self, sandbox: &Sandbox) {
        for beside in ["-wal", "-shm", "-journal"] {
            let _ = std::fs::remove_file(sandbox.path(&format!("v.vault{beside}")));
        }
        for (beside, bytes) in &self.files {
            let path = sandbox.write(&format!("v.vault{beside}"), bytes);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

/// A rollback journal with a page of another vault, whose checksum may fit.
fn rollback(base: &Base, random: &mut Random) -> Vec<u8> {
    let size = base.page_size();
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let pages = u32::try_from(base.bytes.len() / size).unwrap();
    for number in [1, 7, *random.of(&[pages, 0, 1, u32::MAX]), 512, u32::try_from(size).unwrap()] {
        journal.extend(number.to_be_bytes());
    }
    journal.resize(512, 0);
    let page = u32::try_from(1 + random.below(base.bytes.len() / size)).unwrap();
    let content = vec![u8::try_from(random.below(256)).unwrap(); size];
    let mut sum = 7_u32;
    let mut at = size - 200;
    while at > 0 {
        sum = sum.wrapping_add(u32::from(content[at]));
        at = at.saturating_sub(200);
    }
    journal.extend(page.to_be_bytes());
    journal.extend(content);
    journal.extend(sum.to_be_bytes());
    journal
}

/// How much is tried: until a deadline, or a few with some of the commands.
struct Extent {
    deadline: Option<Instant>,
    mutants: u64,
    /// The number of commands of which one is chosen.
    stride: usize,
}

impl Extent {
    fn from_environment() -> Self {
        match std::env::var("RUNVAULT_FUZZ_SECONDS") {
            Ok(seconds) => Self {
                deadline: Some(Instant::now() + Duration::from_secs(seconds.parse().unwrap())),
                mutants: u64::MAX,
                stride: 1,
            },
            Err(_) => Self { deadline: None, mutants: 6, stride: 12 },
        }
    }
}

/// Keeps a line of what broke, so that long runs can be looked at while they go on.
fn keep(line: &str) {
    let path = std::env::temp_dir().join("runvault-fuzz-vaults");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

fn try_out(sort: Sort) {
    let extent = Extent::from_environment();
    let sandbox = commands::sandbox();
    let mut broken = Vec::new();
    let mut tried = 0;
    for number in start()..=start().saturating_add(extent.mutants - 1) {
        if extent.deadline.is_some_and(|deadline| Instant::now() > deadline) || broken.len() > 100 {
            break;
        }
        let mutant = Mutant::new(sort, number);
        let first = usize::try_from(number).unwrap() % extent.stride;
        for what in commands::try_all(&sandbox, &mutant, (first, extent.stride)) {
            let line = format!("{sort:?} RUNVAULT_FUZZ_START={number} ({}): {what}", mutant.described);
            if extent.deadline.is_some() {
                keep(&line);
            }
            broken.push(line);
        }
        tried += 1;
    }
    if extent.deadline.is_some() {
        keep(&format!("{sort:?}: {tried} tried from {}, {} broken", start(), broken.len()));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

#[test]
fn every_command_ends_on_vaults_with_changed_pages() {
    try_out(Sort::Pages);
}

#[test]
fn every_command_ends_on_vaults_with_changed_rows() {
    try_out(Sort::Rows);
}

#[test]
fn every_command_ends_on_vaults_with_a_changed_log() {
    try_out(Sort::Log);
}

#[test]
fn the_same_number_makes_the_same_vault() {
    for sort in [Sort::Pages, Sort::Rows, Sort::Log] {
        for number in 0..6 {
            let (one, other) = (Mutant::new(sort, number), Mutant::new(sort, number));
            assert_eq!(one.described, other.described);
            assert!(one.files == other.files, "{sort:?} {number}: {}", one.described);
        }
    }
}
