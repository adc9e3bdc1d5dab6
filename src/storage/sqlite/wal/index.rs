//! The index of a log in shared memory: a file beside the vault, which remains when a process is killed. It counts the
//! committed frames, so it shows what a log must contain.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::format::{Salts, read_or_end};

/// Size in bytes of the header, which is stored twice and followed by the checkpoint state.
const COPY_BYTES: usize = 48;
const BYTES: usize = 2 * COPY_BYTES + 4;

/// The only version of the format.
const VERSION: u32 = 3_007_000;

/// The content of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage::sqlite) struct WalIndex {
    pub(in crate::storage::sqlite) salts: Salts,
    /// Number of committed frames.
    pub(in crate::storage::sqlite) frames: u32,
    /// Number of committed frames that have also been copied into the vault's file.
    pub(in crate::storage::sqlite) in_file: u32,
}

impl WalIndex {
    /// Reads the index at `path`. Returns `None` if it is missing, not valid, or older than the last boot: it is never
    /// synced, so after a power loss it may count fewer or more frames than the log had.
    pub(in crate::storage::sqlite) fn read(path: &Path) -> io::Result<Option<Self>> {
        let Some(mut file) = open(path)? else { return Ok(None) };
        if is_of_this_boot(&file)? { Self::read_from(&mut file) } else { Ok(None) }
    }

    /// Like [`WalIndex::read`], for a copy of an index that was trusted when it was copied.
    pub(in crate::storage::sqlite) fn read_copy(path: &Path) -> io::Result<Option<Self>> {
        open(path)?.map_or(Ok(None), |mut file| Self::read_from(&mut file))
    }

    fn read_from(file: &mut File) -> io::Result<Option<Self>> {
        let mut bytes = [0; BYTES];
        Ok(if read_or_end(file, &mut bytes)? { Self::parse(&bytes) } else { None })
    }

    fn parse(bytes: &[u8; BYTES]) -> Option<Self> {
        let (first, rest) = bytes.split_at(COPY_BYTES);
        let (second, rest) = rest.split_at(COPY_BYTES);
        let number = |bytes: &[u8], offset: usize| {
            let four = bytes.get(offset..).and_then(|rest| rest.first_chunk::<4>());
            four.map_or(0, |four| u32::from_ne_bytes(*four))
        };
        let is_initialized = first.get(12) == Some(&1);
        let (mut one, mut other) = (0_u32, 0_u32);
        for pair in first.get(..40)?.as_chunks::<8>().0 {
            one = one.wrapping_add(number(pair, 0)).wrapping_add(other);
            other = other.wrapping_add(number(pair, 4)).wrapping_add(one);
        }
        let is_whole = (one, other) == (number(first, 40), number(first, 44));
        let is_index = first == second && is_initialized && is_whole && number(first, 0) == VERSION;
        let salts = first.get(32..).and_then(|rest| rest.first_chunk()).copied()?;
        is_index.then(|| Self { salts, frames: number(first, 16), in_file: number(rest, 0) })
    }
}

/// Returns whether the file was written since the last boot. Returns true if that cannot be determined.
fn is_of_this_boot(file: &File) -> io::Result<bool> {
    let Ok(statistics) = std::fs::read_to_string("/proc/stat") else { return Ok(true) };
    let boot = statistics.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok());
    let written = file.metadata()?.modified()?.duration_since(std::time::UNIX_EPOCH);
    Ok(match (boot, written) {
        (Some(boot), Ok(written)) => written.as_secs() >= boot,
        _ => true,
    })
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Returns whether a process has the vault open. That process holds a lock on the index, and SQLite does not read the
/// log again.
#[cfg(unix)]
pub(in crate::storage::sqlite) fn is_in_use(path: &Path) -> io::Result<bool> {
    use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

    /// Offset of the byte that SQLite locks while a database is open.
    const OPEN: u64 = 128;

    let Some(file) = open(path)? else { return Ok(false) };
    let lock = Flock {
        start: OPEN,
        length: 1,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    Ok(fcntl_getlk(&file, &lock)?.is_some())
}

/// Returns whether a process may have the vault open: always true, because this cannot be determined here.
#[cfg(not(unix))]
pub(in crate::storage::sqlite) fn is_in_use(_: &Path) -> io::Result<bool> {
    Ok(true)
}
