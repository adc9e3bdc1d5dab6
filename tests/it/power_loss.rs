//! Power is lost at any moment of a command: what it acknowledged is there, and what it did not finish is whole or absent.
//!
//! The real program is recorded, with every write, sync, rename and removal. For moments of the recording, images of the
//! disk are made as they may be found afterwards ([`disk`]), and checked.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(clippy::print_stdout, reason = "how much was checked, and why something was not")]

mod chance;
mod commands;
mod disk;

use std::path::{Path, PathBuf};
use std::process::Command;

use chance::Chance;
use disk::{Disk, Loss};
use faulty::recording::{self, Event};
use runvault::Vault;
use runvault::digest::CoreHash;
use tempfile::TempDir;

use crate::sandbox::Sandbox;

/// With this variable in the environment, this number of images is made of each recording; without it, few.
const IMAGES: &str = "RUNVAULT_POWER_IMAGES";

/// The number of images of randomly chosen moments, beside those of every acknowledgment.
const FEW: usize = 16;

/// What is left after a loss of power, and what had been said before.
pub(crate) struct Image {
    directory: TempDir,
    /// The lines of standard output.
    pub(crate) lines: Vec<serde_json::Value>,
    /// Whether the command had ended well.
    pub(crate) is_done: bool,
    /// Which one it is.
    pub(crate) which: String,
}

impl Image {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(name)).ok()
    }

    /// The file `name` has what it had `before` or all of what is `new`, and that if the command had ended.
    pub(crate) fn expect_whole(&self, name: &str, before: Option<&[u8]>, new: &[u8]) {
        let found = self.read(name);
        let is_new = found.as_deref() == Some(new);
        assert!(is_new || (!self.is_done && found.as_deref() == before), "{}: {name} is broken", self.which);
    }

    /// The vault `name` has all of `cores`, and everything in it is in order.
    pub(crate) fn expect_vault(&self, name: &str, cores: &[CoreHash]) {
        let vault = Vault::open(&self.path(name)).unwrap_or_else(|error| panic!("{}: {error}", self.which));
        for core in cores {
            let located = vault.locate(&core.0.into());
            let located = located.unwrap_or_else(|error| panic!("{}: {error}", self.which));
            vault.members(&located).unwrap_or_else(|error| panic!("{}: {error}", self.which));
        }
        expect_sound(&vault, &self.which);
    }
}

pub(crate) struct Silent;

impl runvault::vault::fsck::FsckMonitor for Silent {
    fn found(&mut self, _: &runvault::vault::fsck::Finding) {}
    fn checked(&mut self, _: CoreHash, _: u64) {}
}

/// The whole vault is in order. A log that ends in something unfinished may be named: nothing that was acknowledged is there.
fn expect_sound(vault: &Vault, which: &str) {
    let report = vault.fsck(&runvault::vault::fsck::FsckOptions::default(), &mut Silent).unwrap();
    let findings: Vec<_> =
        report.findings.iter().filter(|finding| !finding.info.id.contains("log")).collect();
    assert!(findings.is_empty(), "{which}: {findings:?}");
}

/// What a command did, and from where.
pub(crate) struct Recording {
    before: Disk,
    events: Vec<Event>,
}

/// Runs the program in the sandbox, and records it. Nothing where that is not allowed.
pub(crate) fn record(sandbox: &Sandbox, arguments: &[&str]) -> Option<Recording> {
    let mut command = sandbox.command();
    command.args(arguments);
    let recording = record_command(sandbox, &mut command)?;
    let said: Vec<u8> = recording
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Error(bytes) => Some(bytes.as_slice()),
            _ => None,
        })
        .flatten()
        .copied()
        .collect();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(recording.events.last(), Some(&Event::Exit(0)), "{arguments:?}: {said}");
    Some(recording)
}

fn record_command(sandbox: &Sandbox, command: &mut Command) -> Option<Recording> {
    let before = Disk::read(&sandbox.path(""));
    match recording::record(command, &sandbox.path("")) {
        Ok(events) => Some(Recording { before, events }),
        Err(error) => {
            println!("skipped: processes cannot be watched here ({error})");
            None
        }
    }
}

impl Recording {
    /// Makes images, and lets `check` look at each.
    pub(crate) fn check(&self, check: impl Fn(&Image)) {
        let asked = std::env::var(IMAGES).ok().map(|count| count.parse().unwrap());
        let mut chance = Chance::new(self.events.len() as u64);
        let mut left: Vec<usize> =
            (0..asked.unwrap_or(FEW)).map(|_| chance.below(self.events.len())).collect();
        left.sort_unstable();
        let mut disk = self.before.clone();
        let (mut made, mut unsure) = (0, 0);
        for (number, event) in self.events.iter().enumerate() {
            disk.apply(event);
            let by_chance = left.iter().filter(|at| **at == number).count();
            let is_said = matches!(event, Event::Output(_) | Event::Exit(_));
            let always =
                if is_said { &[Loss::Everything, Loss::Bytes, Loss::Names, Loss::Some][..] } else { &[] };
            let any = [
                Loss::Some,
                Loss::Bytes,
                Loss::Everything,
                Loss::Some,
                Loss::Names,
                Loss::Some,
                Loss::Nothing,
            ];
            let chosen = (0..by_chance).map(|_| any[chance.below(any.len())]);
            for loss in chosen.chain(always.iter().copied()).collect::<Vec<_>>() {
                check(&self.image(&disk, number, loss, &mut chance));
                made += 1;
                unsure += usize::from(disk.pending() > 0);
            }
        }
        println!("{made} images of {} events, {unsure} of them with something to lose", self.events.len());
        assert!(unsure > 0, "the recording has nothing that could be lost");
    }

    /// Makes images of moments at which the process is killed and nothing is lost, and lets `check` look at each.
    pub(crate) fn check_kills(&self, check: impl Fn(&Image)) {
        const KILLS: usize = 12;
        let asked = std::env::var(IMAGES).ok().map_or(KILLS, |count| count.parse().unwrap());
        let step = (self.events.len() / asked).max(1);
        let mut disk = self.before.clone();
        for (number, event) in self.events.iter().enumerate() {
            disk.apply(event);
            if number % step == 0 {
                check(&self.image(&disk, number, Loss::Nothing, &mut Chance::new(1)));
            }
        }
    }

    /// Makes an image after every step that changed the names in the directory `name`, and lets `check` look at each.
    pub(crate) fn check_each_change_of(&self, name: &Path, check: impl Fn(&Image)) {
        let mut disk = self.before.clone();
        let mut checked = 0;
        for (number, event) in self.events.iter().enumerate() {
            disk.apply(event);
            let (Event::Rename { from: path, .. } | Event::Link { from: path, .. } | Event::Remove(path)) =
                event
            else {
                continue;
            };
            if path.starts_with(name) {
                check(&self.image(&disk, number, Loss::Nothing, &mut Chance::new(1)));
                checked += 1;
            }
        }
        assert!(checked > 0, "nothing changed in {}", name.display());
    }

    fn image(&self, disk: &Disk, number: usize, loss: Loss, chance: &mut Chance) -> Image {
        let directory = tempfile::tempdir().unwrap();
        disk.write_image(directory.path(), loss, chance);
        let happened = &self.events[..=number];
        let output = happened.iter().filter_map(|event| match event {
            Event::Output(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        let output = output.collect::<Vec<_>>().concat();
        let lines = output.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let lines = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let is_done = matches!(happened.last(), Some(Event::Exit(0)));
        let which = format!("after event {number} of {} ({loss:?} lost)", self.events.len());
        Image { directory, lines, is_done, which }
    }
}

/// The core hashes that lines of JSON name, of those whose outcome is one of `outcomes`.
pub(crate) fn cores(lines: &[serde_json::Value], outcomes: &[&str]) -> Vec<CoreHash> {
    let named = lines.iter().filter(|line| outcomes.contains(&line["outcome"].as_str().unwrap_or_default()));
    named.map(|line| line["core_hash"].as_str().unwrap().parse().unwrap()).collect()
}

/// A program that does not sync is seen to lose what it wrote, so the tests can fail.
#[test]
fn a_program_that_does_not_sync_loses_what_it_wrote() {
    let sandbox = Sandbox::without_vault();
    sandbox.write("old", "old");
    let mut command = Command::new("/bin/sh");
    command.current_dir(sandbox.path("")).args(["-c", "echo new > tmp; echo added >> old"]);
    let Some(recording) = record_command(&sandbox, &mut command) else { return };
    let mut disk = recording.before.clone();
    recording.events.iter().for_each(|event| disk.apply(event));
    let image_of = |disk: &Disk, loss| {
        let image = tempfile::tempdir().unwrap();
        disk.write_image(image.path(), loss, &mut Chance::new(1));
        image
    };
    let image = |loss| image_of(&disk, loss);
    let read = |image: &TempDir, name: &str| std::fs::read(image.path().join(name)).ok();
    assert_eq!(read(&image(Loss::Nothing), "tmp"), Some(b"new\n".to_vec()));
    assert_eq!(read(&image(Loss::Bytes), "tmp"), Some(Vec::new()));
    assert_eq!(read(&image(Loss::Everything), "tmp"), None);
    assert_eq!(read(&image(Loss::Names), "tmp"), None);
    assert_eq!(read(&image(Loss::Nothing), "old"), Some(b"oldadded\n".to_vec()));
    assert_eq!(read(&image(Loss::Everything), "old"), Some(b"old".to_vec()));
    // Renamed before it was synced.
    let path = |name: &str| std::fs::canonicalize(sandbox.path("")).unwrap().join(name);
    disk.apply(&Event::Rename { from: path("tmp"), to: path("old"), exchanged: false });
    disk.apply(&Event::Sync(std::fs::canonicalize(sandbox.path("")).unwrap()));
    let broken = image_of(&disk, Loss::Everything);
    assert_eq!((read(&broken, "old"), read(&broken, "tmp")), (Some(Vec::new()), None));
}

fn directory_of(path: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}
