//! Reading of bundles.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use super::container::{ContainerEntryHeader, ContainerError, Unpacker, too_dense};
use super::manifest::{self, BundledArtifact, BundledCapture, Manifest};
use super::manifest::{BLOBS, CONTAINER, ENTRIES, LIMITS};
use super::write::{MANIFEST, entry_of};
use crate::digest::{BlobHash, Digest, Hasher};
use crate::files;
use crate::intake::{DeclaredCapture, InputItem, SourceError};
use crate::json::reader::Limit;
use crate::validation::RuleInfo;
use crate::vault::add::InputResult;

/// The reason that a bundle is not read. Nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It violates a rule.
    #[error("{bundle}: {entry}: {message} (rule {rule})")]
    Broken {
        /// The bundle.
        bundle: String,
        /// The entry, or the other part of the bundle.
        entry: String,
        /// The id of the rule; [`RULES`](super::RULES) explains it.
        rule: &'static str,
        /// The message.
        message: String,
        /// The limit that it exceeds; `None` also if that limit is fixed.
        limit: Option<Limit>,
    },
    /// It cannot be read.
    #[error("{bundle}: {}", files::describe(source))]
    Io {
        /// The bundle.
        bundle: String,
        /// The cause.
        source: io::Error,
    },
}

/// A bundle that was read completely and matches its manifest. Its blobs are in an unnamed temporary file.
#[derive(Debug)]
pub struct Bundle {
    name: OsString,
    manifest: Manifest,
    spool: File,
    /// The offset of each blob in the file.
    places: BTreeMap<BlobHash, u64>,
}

/// Reads an entire bundle, from a file or a pipe. `name` identifies it in errors and need not be UTF-8. Captures of
/// more than `limit` bytes are rejected.
///
/// # Errors
/// Returns a [`BundleError`] with the bundle, the entry and the rule.
pub fn read<R: Read>(input: R, name: impl AsRef<OsStr>, limit: u64) -> Result<Bundle, BundleError> {
    let name = name.as_ref();
    let shown = name.to_string_lossy();
    let mut reader = BundleReadContext { bundle: &shown, limit, entry: "the file".to_owned() };
    let mut unpacker = Unpacker::new(input).map_err(|error| reader.failed(error))?;
    let manifest = reader.manifest(&mut unpacker)?;
    let blobs = manifest.blobs().map_err(|(rule, message)| reader.broken(rule, message))?;
    let spool = tempfile::tempfile().map_err(|source| reader.io(source))?;
    let mut out = BufWriter::new(spool);
    let (mut places, mut end) = (BTreeMap::new(), 0);
    for (blob, size) in blobs {
        reader.blob(&mut unpacker, blob, size, &mut out)?;
        places.insert(blob, end);
        end += size;
    }
    reader.end(&mut unpacker)?;
    let spool = out.into_inner().map_err(|error| reader.io(error.into_error()))?;
    Ok(Bundle { name: name.to_owned(), manifest, spool, places })
}

/// The context of errors.
struct BundleReadContext<'b> {
    bundle: &'b str,
    limit: u64,
    entry: String,
}

impl BundleReadContext<'_> {
    fn broken(&self, rule: RuleInfo, message: impl Into<String>) -> BundleError {
        self.exceeded(None, rule, message.into())
    }

    /// Returns the error for what exceeds a limit that callers set.
    fn exceeded(&self, limit: Option<Limit>, rule: RuleInfo, message: String) -> BundleError {
        let (bundle, entry) = (self.bundle.to_owned(), self.entry.clone());
        BundleError::Broken { bundle, entry, rule: rule.id, message, limit }
    }

    fn io(&self, source: io::Error) -> BundleError {
        BundleError::Io { bundle: self.bundle.to_owned(), source }
    }

    fn failed(&self, error: ContainerError) -> BundleError {
        match error {
            ContainerError::Io(source) => self.io(source),
            ContainerError::Broken(message) => self.broken(CONTAINER, message),
            ContainerError::Entry(message) => self.broken(ENTRIES, message),
            ContainerError::TooDense => self.broken(LIMITS, too_dense()),
        }
    }

    /// Reads the header of the next entry, which must have the name `expected`.
    fn expect(
        &mut self,
        unpacker: &mut Unpacker<'_>,
        expected: &str,
    ) -> Result<ContainerEntryHeader, BundleError> {
        expected.clone_into(&mut self.entry);
        match unpacker.next().map_err(|error| self.failed(error))? {
            Some(head) if head.name == expected => Ok(head),
            Some(head) => Err(self.broken(ENTRIES, format!("found the entry {:?} instead", head.name))),
            None => Err(self.broken(ENTRIES, "this entry is missing")),
        }
    }

    fn manifest(&mut self, unpacker: &mut Unpacker<'_>) -> Result<Manifest, BundleError> {
        let head = self.expect(unpacker, MANIFEST)?;
        if head.size > manifest::MAX_BYTES {
            let (size, limit) = (head.size, manifest::MAX_BYTES);
            return Err(self.broken(LIMITS, format!("it has {size} bytes, more than the limit of {limit}")));
        }
        let mut text = Vec::new();
        unpacker.copy(&head, &mut text).map_err(|error| self.failed(error))?;
        let manifest = Manifest::read(&text).map_err(|(rule, message)| self.broken(rule, message))?;
        let mut captures = manifest.artifacts.iter().flat_map(|artifact| &artifact.captures);
        if let Some(BundledCapture { capture_hash: hash, size, .. }) =
            captures.find(|capture| capture.size > self.limit)
        {
            let message =
                format!("the capture {hash} has {size} bytes, more than the limit of {}", self.limit);
            return Err(self.exceeded(Some(Limit::Bytes), LIMITS, message));
        }
        Ok(manifest)
    }

    fn blob(
        &mut self,
        unpacker: &mut Unpacker<'_>,
        blob: BlobHash,
        size: u64,
        out: &mut dyn Write,
    ) -> Result<(), BundleError> {
        let head = self.expect(unpacker, &entry_of(blob))?;
        if head.size != size {
            let message = format!("it has {} bytes, and the manifest states {size}", head.size);
            return Err(self.broken(BLOBS, message));
        }
        let mut hashed = BundleHashingWriter { hasher: Hasher::new(), out, write_error: None };
        let copied = unpacker.copy(&head, &mut hashed);
        let BundleHashingWriter { hasher, write_error, .. } = hashed;
        if let Some(source) = write_error {
            return Err(self.io(source));
        }
        copied.map_err(|error| self.failed(error))?;
        match hasher.finish() {
            digest if digest == blob.0 => Ok(()),
            other => Err(self.broken(BLOBS, format!("its bytes have the hash {other}"))),
        }
    }

    fn end(&mut self, unpacker: &mut Unpacker<'_>) -> Result<(), BundleError> {
        "the end".clone_into(&mut self.entry);
        match unpacker.next().map_err(|error| self.failed(error))? {
            None => Ok(()),
            Some(head) => Err(self.broken(
                ENTRIES,
                format!("there is an entry {:?} that the manifest does not list", head.name),
            )),
        }
    }
}

/// A writer that hashes the written bytes, and keeps write errors separate from read errors.
struct BundleHashingWriter<'o> {
    hasher: Hasher,
    out: &'o mut dyn Write,
    write_error: Option<io::Error>,
}

impl Write for BundleHashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.out.write(bytes) {
            Ok(written) => {
                let written_bytes = bytes.get(..written).ok_or(io::ErrorKind::InvalidData)?;
                self.hasher.update(written_bytes);
                Ok(written)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.write_error = Some(error);
                Err(io::Error::other("the temporary file cannot be written"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Bundle {
    /// Returns its manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns every capture as an item to examine, in the order of the manifest. A capture is named by the bundle and
    /// the first digits of its hash.
    pub fn items(&self) -> impl Iterator<Item = InputResult> + Send + '_ {
        let captures = self.manifest.artifacts.iter();
        let captures =
            captures.flat_map(|artifact| artifact.captures.iter().map(move |capture| (artifact, capture)));
        captures.map(|(artifact, capture)| self.item(artifact, capture))
    }

    fn item(&self, artifact: &BundledArtifact, capture: &BundledCapture) -> InputResult {
        let file = |member: &manifest::BundledMember| {
            Ok((member.name.clone(), self.bytes(member.blob, member.size)?))
        };
        let files: io::Result<_> = capture.members.iter().map(file).collect();
        let mut name = self.name.clone();
        name.push(format!("#{:.12}", capture.capture_hash));
        match files {
            Ok(files) => Ok(InputItem::Declared(DeclaredCapture {
                name,
                kind: artifact.kind.clone(),
                core: artifact.core_hash,
                capture: capture.capture_hash,
                files,
            })),
            Err(source) => Err(SourceError { path: name.into(), source }),
        }
    }

    fn bytes(&self, blob: BlobHash, size: u64) -> io::Result<Vec<u8>> {
        let start = self.places.get(&blob).ok_or(io::ErrorKind::NotFound)?;
        // Items are read one after another, so the file position does not change in between.
        (&self.spool).seek(SeekFrom::Start(*start))?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(usize::try_from(size).map_err(io::Error::other)?)
            .map_err(io::Error::other)?;
        (&self.spool).take(size).read_to_end(&mut bytes)?;
        if Digest::from_content(&bytes) != blob.0 {
            return Err(io::Error::other("the temporary file has changed"));
        }
        Ok(bytes)
    }
}
