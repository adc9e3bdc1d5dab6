//! Makes what SQLite asks of the system fail on purpose: the n-th write, the n-th sync, the n-th allocation.
//!
//! And records what a program asks of the file system, so that a loss of power at any moment can be imagined.
//!
//! A file system between SQLite and the real one, and an allocator between SQLite and the real one. Both pass everything
//! on, count, and fail when it is time. This is the only code of the project that needs `unsafe`, and only tests use it.

mod files;
mod memory;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod recording;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tracing;

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// What may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writing to a file, or making it longer or shorter.
    Write,
    /// Making sure that a file is on the disk.
    Sync,
    /// Getting memory.
    Allocation,
}

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Once; then all is well again.
    Once,
    /// From then on, as when a disk is full or gone.
    ForGood,
}

/// Counts one operation.
struct Fuse {
    /// How often it was asked for.
    asked: AtomicU64,
    /// How often it may still succeed; negative: for ever.
    left: AtomicI64,
    for_good: AtomicI64,
}

impl Fuse {
    const fn new() -> Self {
        Self { asked: AtomicU64::new(0), left: AtomicI64::new(-1), for_good: AtomicI64::new(0) }
    }

    /// Whether this one fails.
    fn blows(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let spent = |left: i64| match left {
            ..0 => None,
            0 => Some(-self.for_good.load(Ordering::Relaxed).min(1) - 1),
            left => Some(left - 1),
        };
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent) {
            Ok(0) => true,
            Ok(_) => false,
            // -1: for ever well; -2: for ever broken.
            Err(left) => left == -2,
        }
    }
}

static WRITES: Fuse = Fuse::new();
static SYNCS: Fuse = Fuse::new();
static ALLOCATIONS: Fuse = Fuse::new();

fn fuse(operation: Operation) -> &'static Fuse {
    match operation {
        Operation::Write => &WRITES,
        Operation::Sync => &SYNCS,
        Operation::Allocation => &ALLOCATIONS,
    }
}

/// Gets between SQLite and the system, for all connections of the process that are opened from now on. Must come before
/// anything else that has to do with SQLite.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        memory::install();
        files::install();
    });
}

/// Lets `operation` succeed `times` times and then fail.
pub fn fail_after(operation: Operation, times: u32, failure: Failure) {
    let fuse = fuse(operation);
    fuse.for_good.store(i64::from(failure == Failure::ForGood), Ordering::Relaxed);
    fuse.left.store(i64::from(times), Ordering::Relaxed);
}

/// Whether databases can only be read, and whether that is so of all files.
static READ_ONLY: AtomicBool = AtomicBool::new(false);
static ALL_READ_ONLY: AtomicBool = AtomicBool::new(false);

/// Opens databases for reading only, as where their owner does not let anybody write, until all is repaired; with
/// `directory`, new files cannot be made beside them either.
pub fn only_read(directory: bool) {
    READ_ONLY.store(true, Ordering::Relaxed);
    ALL_READ_ONLY.store(directory, Ordering::Relaxed);
}

/// Lets everything succeed again.
pub fn repair() {
    READ_ONLY.store(false, Ordering::Relaxed);
    ALL_READ_ONLY.store(false, Ordering::Relaxed);
    for fuse in [&WRITES, &SYNCS, &ALLOCATIONS] {
        fuse.left.store(-1, Ordering::Relaxed);
    }
}

/// How often `operation` was asked for so far.
pub fn asked(operation: Operation) -> u64 {
    fuse(operation).asked.load(Ordering::Relaxed)
}
