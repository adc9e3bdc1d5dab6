//! Single documents: which kind they are of, and whether they are valid.

use std::io::{self, Cursor, Read, Seek};
use std::path::Path;

use super::archive::{self, ArchiveFormat};
use super::file::{self, FileContents, OpenFile};
use super::verdict::{Continuation, DocumentVerdict, ExamineOptions, Rejection, admitted};
use crate::artifact::{AdmitOptions, Admitted, Kind, document};
use crate::formats::{self, recognize_all};
use crate::json::reader::{self, Limits};
use crate::validation::{Findings, Remedy, Report, Violation};

/// Returns the rejection of a directory that was named explicitly and in which nothing was recognized. `options` are
/// those that its files were examined with.
#[must_use]
pub fn nothing_recognized(options: &ExamineOptions) -> Rejection {
    let of_kind = options.kind.map(|kind| format!(" of the kind {}", kind.name())).unwrap_or_default();
    let message = format!("neither this directory nor any file in it is recognized as an artifact{of_kind}");
    let report = Violation::new(document::UNRECOGNISED, "", message).into();
    Rejection::new(options.kind, report)
}

/// Examines a document that is intended to be an artifact, or an archive of one. `file_name` determines how an
/// unrecognized document is reported. If it ends with `.json`, the document must be JSON.
///
/// # Errors
/// Returns a rejection with the intended kind and the violations.
pub fn examine_document(
    bytes: Vec<u8>,
    file_name: &str,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    let limit = options.admit.limits.bytes.min(Limits::MAX_BYTES);
    let is_too_large = bytes.len() as u64 > limit;
    if options.may_be_archive()
        && let Some(format) = ArchiveFormat::detect(&bytes).filter(|_| !is_too_large)
    {
        return file::examine_archive(format, Cursor::new(bytes), options);
    }
    let any = options.kind_of_any_bytes();
    if archive::is_compressed(&bytes) && !is_too_large && any.is_none() {
        let document = decompress(Cursor::new(bytes), options)?;
        return examine_document(document, decompressed_name(file_name), options);
    }
    if let Some(what) = archive::unread(&bytes).filter(|_| !is_too_large && any.is_none()) {
        return Err(unread(options.kind.or_else(|| owner(file_name)), what));
    }
    let kind = meant(&bytes, options)?.or_else(|| owner(file_name));
    match kind {
        kind if is_too_large => Err(Rejection::new(kind, document::larger_than(limit).into())),
        Some(kind) if kind.is_of_directories() => {
            let message = "this is a file, neither a directory nor an archive";
            Err(Rejection::new(Some(kind), kind.unreadable(file_name, message)))
        }
        Some(kind) => admit(kind, bytes, file_name, options),
        None => Err(Rejection::new(None, unrecognized(&bytes, options).into())),
    }
}

/// Examines a file that was named explicitly.
pub(super) fn examine_named(
    path: &Path,
    file: OpenFile,
    options: &ExamineOptions,
) -> io::Result<DocumentVerdict> {
    let file_name = file_name(path);
    if archive::is_compressed(&file.head) && options.kind_of_any_bytes().is_none() {
        let document = decompress(file.file, options);
        let examine = |document| examine_document(document, decompressed_name(&file_name), options);
        return Ok(document.and_then(examine).into());
    }
    if let Some(what) = archive::unread(&file.head).filter(|_| options.kind_of_any_bytes().is_none()) {
        return Ok(DocumentVerdict::Rejected(unread(options.kind.or_else(|| owner(&file_name)), what)));
    }
    if options.may_be_archive() {
        if let Some(format) = ArchiveFormat::detect(&file.head) {
            return Ok(file::examine_archive(format, file.file, options).into());
        }
        if let Some(kind) = options.kind.filter(|kind| kind.is_of_directories()) {
            let message = "this is a file, neither a directory nor an archive";
            let report = kind.unreadable(&path.to_string_lossy(), message);
            return Ok(DocumentVerdict::Rejected(Rejection::new(Some(kind), report)));
        }
    }
    Ok(match file.read(options)? {
        FileContents::Whole(bytes) => examine_document(bytes, &file_name, options).into(),
        FileContents::TooLarge { head, report } => {
            let kind = meant(&head, options).unwrap_or_default().or_else(|| owner(&file_name));
            DocumentVerdict::Rejected(Rejection::new(kind, report))
        }
    })
}

/// Returns the kind of a document, if one is required or recognized.
///
/// # Errors
/// Returns a rejection if several kinds recognize it.
fn meant(document: &[u8], options: &ExamineOptions) -> Result<Option<Kind>, Rejection> {
    if options.kind.is_some() {
        return Ok(options.kind);
    }
    let kinds: Vec<Kind> = recognize_all(document).into_iter().map(|(kind, _)| kind).collect();
    match kinds.as_slice() {
        [] => Ok(None),
        [kind] => Ok(Some(*kind)),
        several => Err(ambiguous(several)),
    }
}

/// Returns the rejection of a document that several kinds recognize.
pub(super) fn ambiguous(kinds: &[Kind]) -> Rejection {
    Rejection::new(None, document::ambiguous(kinds).into())
}

/// Returns the kind whose file names match `file_name`. It only affects how a malformed document is reported.
pub(super) fn owner(file_name: &str) -> Option<Kind> {
    formats::ALL.into_iter().find(|kind| kind.owns_file_name(file_name))
}

/// Returns the document in a compressed file.
///
/// # Errors
/// Returns a rejection if it cannot be read, is too large, or is compressed itself.
pub(super) fn decompress(input: impl Read + Seek, options: &ExamineOptions) -> Result<Vec<u8>, Rejection> {
    let limit = options.admit.limits.bytes.min(Limits::MAX_BYTES);
    let rejected = |error| Rejection::new(options.kind, file::archive_report(&error));
    let bytes = archive::decompress(input, limit).map_err(rejected)?;
    match archive::unread(&bytes) {
        Some(what) => Err(unread(options.kind, what)),
        None => Ok(bytes),
    }
}

/// Returns the name of the document in a compressed file.
pub(super) fn decompressed_name(file_name: &str) -> &str {
    archive::decompressed_name(file_name).unwrap_or(file_name)
}

/// Returns the name of the file at `path`.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the rejection of a file in an unsupported archive or compression format.
pub(super) fn unread(kind: Option<Kind>, what: &str) -> Rejection {
    let message = format!(
        "this is {what}, which is not supported; decompress it first, or pack as zip, tar, tar.gz or tar.zst"
    );
    Rejection::new(kind, Violation::new(document::UNRECOGNISED, "", message).into())
}

/// Admits a document of `kind` in a file of this name, which may be the rest of another.
pub(super) fn admit(
    kind: Kind,
    bytes: Vec<u8>,
    file_name: &str,
    options: &ExamineOptions,
) -> Result<Admitted, Rejection> {
    if options.kind.is_none()
        && let Some(derived) = derived(kind, &bytes, &options.admit)
    {
        return admitted(
            kind,
            derived.and_then(|derived| attach_original(kind, derived, bytes, &options.admit)),
        );
    }
    let options = &options.admit;
    let json_only = AdmitOptions { json_only: true, ..options.clone() };
    let options = if is_of_json(file_name) { &json_only } else { options };
    let Some(rest) = kind.continues(&bytes, &options.limits) else {
        return admitted(kind, kind.admit(bytes, options));
    };
    let continuation = Continuation::new(kind, rest, bytes.clone());
    admitted(kind, kind.admit(bytes, options))
        .map_err(|rejection| Rejection { continuation: Some(Box::new(continuation)), ..rejection })
}

/// Admits the documents that one in another form implies; `None` if it is not in another form. One that is kept as any
/// bytes can imply documents of several kinds.
fn derived(kind: Kind, document: &[u8], options: &AdmitOptions) -> Option<Result<Vec<Admitted>, Report>> {
    let own = kind.derive(document, &options.limits)?;
    let is_kept = kind.info().takes_any_bytes;
    let others = formats::ALL.into_iter().filter(|other| is_kept && *other != kind);
    let of_others = others.filter_map(|other| Some((other, other.derive(document, &options.limits)?)));
    let admit = |(of, documents): (Kind, Result<Vec<Vec<u8>>, Report>)| {
        let admitted = documents?.into_iter().zip(1..).map(|(document, number)| {
            let admitted = of.admit(document, options);
            if of == kind { admitted } else { admitted.map_err(|report| within(&report, of, number)) }
        });
        admitted.collect::<Result<Vec<_>, Report>>()
    };
    let all = std::iter::once((kind, own)).chain(of_others).map(admit);
    Some(all.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().flatten().collect()))
}

/// Returns the report on the document `number` of a kind that is in another one, which could be kept without it.
fn within(report: &Report, kind: Kind, number: usize) -> Report {
    let mut findings = Findings::default();
    for violation in report.violations() {
        let path = format!("{} {number} {}", kind.noun(), violation.path);
        findings.add(Violation { path, remedy: Some(Remedy::RequireKind), ..violation.clone() });
    }
    findings.into_report()
}

/// Returns the artifact that a document in another form is given for, with the others: the document as it is, if its kind
/// takes any bytes, else the first of those that it implies.
fn attach_original(
    kind: Kind,
    mut derived: Vec<Admitted>,
    original: Vec<u8>,
    options: &AdmitOptions,
) -> Result<Admitted, Report> {
    let mut original = formats::of_any_bytes().admit(original, options)?;
    if kind.info().takes_any_bytes || derived.is_empty() {
        derived.retain(|document| document.core() != original.core());
        original.attach(derived);
        return Ok(original);
    }
    let mut first = derived.remove(0).derived_from(original);
    first.attach(derived);
    Ok(first)
}

fn is_of_json(file_name: &str) -> bool {
    Path::new(file_name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Returns the violation for a document that was named explicitly and that no kind recognizes.
pub(super) fn unrecognized(bytes: &[u8], options: &ExamineOptions) -> Violation {
    let limits = &options.admit.limits;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_jsonl = |text: &[u8]| {
        let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        text.contains(&b'\n') && lines.all(|line| line.starts_with(b"{") && line.ends_with(b"}"))
    };
    let read = match first {
        Some(b'{' | b'[') if !is_jsonl(bytes) => reader::read(bytes, limits).map(drop),
        _ => reader::utf8(bytes, limits).map(drop),
    };
    let message = match (read, first) {
        (Err(error), _) => return document::violation(&error),
        (Ok(()), None) => "the document is empty",
        (Ok(()), _) => return document::unrecognized("no kind recognizes the document"),
    };
    Violation::new(document::UNRECOGNISED, "", message)
}
