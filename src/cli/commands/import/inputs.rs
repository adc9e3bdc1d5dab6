//! Reads files that can be recordings of other programs.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, StdinLock};
use std::path::{Path, PathBuf};
use std::time::Instant;

use runvault::display::escaped;
use runvault::formats;
use runvault::intake::ExamineOptions;
use runvault::recorders::{ConvertInput, RecorderFormat};
use runvault::vault::add::CommonAnnotations;

use crate::cli::output::disk;
use crate::cli::output::exit::CommandError;

/// Returns standard input, of which [`read`] has consumed nothing.
pub(super) fn standard_input() -> StdinLock<'static> {
    io::stdin().lock()
}

/// The files that can be recordings.
pub(super) struct RecordingInputs {
    pub(super) recordings: Vec<ConvertInput>,
    /// Why other files are not imported.
    pub(super) failures: Vec<CommandError>,
}

/// Reads recordings of other programs. Returns `None` if the only file can be a bundle, which is then not consumed.
pub(super) fn read(files: &[PathBuf], limit: u64) -> Result<Option<RecordingInputs>, CommandError> {
    let mut inputs = RecordingInputs { recordings: Vec::new(), failures: Vec::new() };
    for path in files {
        match read_one(path, limit) {
            Ok(Some(input)) => inputs.recordings.push(input),
            Ok(None) if files.len() == 1 => return Ok(None),
            Ok(None) => {
                let name = path.to_string_lossy();
                let message = format!("{} is not a recording; give a bundle alone", escaped(&name));
                inputs.failures.push(CommandError::Usage(message));
            }
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => inputs.failures.push(error),
        }
    }
    Ok(Some(inputs))
}

fn read_one(path: &Path, limit: u64) -> Result<Option<ConvertInput>, CommandError> {
    let name = path.to_string_lossy().into_owned();
    let failed =
        |error: io::Error| CommandError::CouldNotRun(format!("cannot read {}: {error}", escaped(&name)));
    if path == Path::new("-") {
        let Some(bytes) = candidate(standard_input(), limit).map_err(failed)? else { return Ok(None) };
        return recording(ConvertInput { name, bytes }).map(Some);
    }
    disk::expect_path(path)?;
    // A directory is reported when it is read as a bundle.
    if path.is_dir() {
        return Ok(None);
    }
    let file = File::open(path).map_err(failed)?;
    let bytes = candidate(BufReader::new(file), limit).map_err(failed)?;
    bytes.map(|bytes| recording(ConvertInput { name, bytes })).transpose()
}

/// Returns a text or a zip file if it is a recording. Bundles are neither.
fn recording(input: ConvertInput) -> Result<ConvertInput, CommandError> {
    if RecorderFormat::recognize(&input.bytes).is_some() {
        return Ok(input);
    }
    let name = escaped(&input.name);
    let add = format!("\"runvault add {name}\" adds artifacts");
    Err(CommandError::No(if input.bytes.trim_ascii().is_empty() {
        format!("{name} is empty")
    } else if let Some(reason) = RecorderFormat::unsupported(&input.bytes) {
        format!("{name}: {reason}")
    } else if let Some((kind, _)) = formats::recognize(&input.bytes) {
        format!("{name} is a {}, not a bundle; {add}", kind.noun())
    } else {
        format!(
            "{name} is neither a bundle nor a recording of VCR.py, Inspect or OpenTelemetry, nor requests and responses as \
             JSON Lines; {add}"
        )
    }))
}

/// Reads what can be a recording: a text or a zip file. One byte more than allowed is enough to reject it.
fn candidate(mut input: impl BufRead, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let head = input.fill_buf()?;
    let is_zip = head.starts_with(b"PK\x03\x04");
    let is_text = !head.contains(&0) && !head.starts_with(b"\x28\xb5\x2f\xfd");
    let is_named = || RecorderFormat::unsupported(head).is_some();
    if !is_zip && !is_text && !is_named() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    input.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// What is done with what files become.
pub(super) struct ImportTask {
    pub(super) started: Instant,
    pub(super) options: ExamineOptions,
    pub(super) annotations: CommonAnnotations,
    /// Whether the search index is to be built.
    pub(super) search: bool,
}
