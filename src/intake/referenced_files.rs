//! Files beside an artifact that it refers to by path and hash, such as an intent, a schema or an output: they are
//! stored with it, as artifacts of the kind that takes any bytes.
//!
//! The path is that of a document which anyone may have written. So a file is opened only below the directory that the
//! artifact was read from, component by component and without following links, and it is admitted only if its digest is
//! the one that the artifact states: nothing is stored that the artifact does not identify.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};

use super::original::InputLocation;
use super::tree::{self, OpenDir, ReopenResult};
use super::verdict::{DocumentVerdict, ExamineOptions, Rejection};
use crate::artifact::{AdmitOptions, Admitted, FileReference, document};
use crate::formats;
use crate::secrets::SecretPolicy;

/// Maximum total size of the files that are stored with one artifact, in bytes: they are in memory together.
const MAX_BYTES: u64 = 64 << 20;

/// Adds the files that an admitted artifact refers to, if it was read from a file or directory. Files that are missing,
/// cannot be read or have another digest are left out: the references to them remain unresolved. Calls `room` with the
/// size of each file before it is read. If secrets are refused, an artifact is rejected for one in such a file as well.
pub(crate) fn attach(
    verdict: &mut DocumentVerdict,
    place: Option<&InputLocation>,
    options: &ExamineOptions,
    room: &dyn Fn(u64),
) {
    let (DocumentVerdict::Admitted(admitted), Some(place)) = (&mut *verdict, place) else { return };
    let any = formats::ALL.into_iter().find(|kind| kind.takes_any_bytes());
    let Some(kind) = any.filter(|_| !admitted.draft().files.is_empty()) else { return };
    let Ok(directory) = directory(place) else { return };
    let mut left = MAX_BYTES.min(options.admit.limits.bytes);
    let mut known: BTreeSet<_> = admitted.embedded().iter().map(Admitted::core).collect();
    let mut found = Vec::new();
    let mut secrets = Vec::new();
    let policy = options.admit.secrets;
    let report = if policy == SecretPolicy::Refuse { SecretPolicy::Report } else { policy };
    let admit = AdmitOptions { secrets: report, ..options.admit.clone() };
    for reference in &admitted.draft().files {
        let Some(bytes) = read(&directory, reference, left, room) else { continue };
        let file = kind.admit(bytes, &admit).ok();
        let Some(file) = file.filter(|file| file.core().0 == reference.digest) else { continue };
        if known.insert(file.core()) {
            secrets.extend(file.secrets().iter().cloned().map(|found| found.within(reference.path())));
            left -= file.size();
            found.push(file);
        }
    }
    if policy == SecretPolicy::Refuse && !secrets.is_empty() {
        *verdict =
            DocumentVerdict::Rejected(Rejection::new(Some(admitted.kind()), document::secret(&secrets)));
        return;
    }
    admitted.attach(found);
    admitted.add_secrets(secrets);
}

/// Opens the directory that contains the file or directory at `place`. Fails if it is no longer the one in which the
/// file was found.
fn directory(place: &InputLocation) -> io::Result<OpenDir> {
    let parent = tree::parent(place.path());
    match place.directory_of_file() {
        None => OpenDir::open(parent),
        Some(id) => match OpenDir::reopen(parent, id)? {
            ReopenResult::Same(directory) => Ok(directory),
            ReopenResult::Replaced => Err(tree::replaced()),
        },
    }
}

/// Reads the file that a reference names, if it has at most `limit` bytes.
fn read(directory: &OpenDir, reference: &FileReference, limit: u64, room: &dyn Fn(u64)) -> Option<Vec<u8>> {
    let file = open(directory, reference).ok()?;
    let size = file.metadata().ok()?.len();
    if size > limit {
        return None;
    }
    room(size);
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    // The file may grow while it is read.
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}

/// Opens the file that a reference names, without following links.
fn open(directory: &OpenDir, reference: &FileReference) -> io::Result<File> {
    let mut names = reference.components().map(OsStr::new).peekable();
    let mut inner: Option<OpenDir> = None;
    while let Some(name) = names.next() {
        let at = inner.as_ref().unwrap_or(directory);
        if names.peek().is_none() {
            return at.open_file(name);
        }
        inner = Some(at.open_directory(name)?);
    }
    Err(io::ErrorKind::NotFound.into())
}
