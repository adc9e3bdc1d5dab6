//! The file with the calls of a run that is not finished: lines with the properties of the run, and one for each call, in the
//! order in which they ended.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::request_store::RequestStore;
use super::run::{CallRecord, RunHead, StoredCall};

/// The ending of the names of the files of runs.
pub(crate) const ENDING: &str = "run";

/// The ending of the names of the files of traces: the line of a run, and a line for each span or log record.
#[cfg(feature = "gateway")]
pub(crate) const SPANS_ENDING: &str = "spans";

/// The ending of the names of the files that processes lock.
pub(crate) const OWNER_ENDING: &str = "owner";

/// Returns the path of the file that the process locks which writes the file of a run.
pub(crate) fn owner_of(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.rsplit_once('-').map_or(&*stem, |(owner, _)| owner);
    path.with_file_name(format!("{name}.{OWNER_ENDING}"))
}

/// A line of a file, as it is written.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpoolRecord<'l> {
    Run(Cow<'l, RunHead>),
    /// A call of an earlier build.
    Call(Box<CallRecord>),
    StoredCall(Box<Cow<'l, StoredCall>>),
}

/// The lines of a file that can be read.
#[derive(Debug, Default)]
pub(crate) struct SpoolContent {
    /// Missing if the process ended while it created the file, or if the line is damaged.
    pub(crate) head: Option<RunHead>,
    pub(crate) calls: Vec<StoredCall>,
    /// The first damage.
    pub(crate) damage: Option<String>,
}

/// The lines of a file without the bodies of its calls.
#[derive(Debug, Default)]
pub(crate) struct SpoolOutline {
    pub(crate) head: Option<RunHead>,
    pub(crate) calls: Vec<CallOutline>,
}

/// A call without its bodies.
#[derive(Debug, Deserialize)]
pub(crate) struct CallOutline {
    #[serde(rename = "asked_at")]
    pub(crate) requested_at: Option<DateTime<Utc>>,
    pub(crate) model: Option<String>,
    outcome: OutcomeOutline,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeOutline {
    Answered { status: u16 },
    Failed {},
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LineOutline {
    Run(RunHead),
    #[serde(alias = "call")]
    StoredCall(CallOutline),
}

impl CallOutline {
    /// Returns whether there is no answer, or one with an error status.
    pub(crate) fn is_failed(&self) -> bool {
        match self.outcome {
            OutcomeOutline::Answered { status } => status >= 400,
            OutcomeOutline::Failed {} => true,
        }
    }
}

/// Reads a file without the bodies of its calls. Lines that are damaged, or not complete, are left out.
pub(crate) fn outline(path: &Path) -> io::Result<SpoolOutline> {
    let mut reader = BufReader::new(File::open(path)?);
    let (mut outline, mut line) = (SpoolOutline::default(), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        match serde_json::from_slice(&line) {
            Ok(LineOutline::Run(head)) => outline.head = Some(head),
            Ok(LineOutline::StoredCall(call)) => outline.calls.push(call),
            Err(_) => {}
        }
        line.clear();
    }
    Ok(outline)
}

/// Returns the id of the run that a line of a file states, or `None` if it is another line.
pub(crate) fn run_id(line: &[u8]) -> Option<String> {
    if !line.starts_with(b"{\"run\":") {
        return None;
    }
    match serde_json::from_slice(line) {
        Ok(SpoolRecord::Run(run)) => Some(run.id.clone()),
        _ => None,
    }
}

/// Reads the file of a trace: the run, which is missing if the process ended while it created the file, and the other lines. A
/// last line that is not complete was not acknowledged.
#[cfg(feature = "gateway")]
pub(crate) fn read_spans(path: &Path) -> io::Result<(Option<RunHead>, Vec<u8>)> {
    let mut reader = BufReader::new(File::open(path)?);
    let (mut head, mut lines) = (Vec::new(), Vec::new());
    reader.read_until(b'\n', &mut head)?;
    reader.read_to_end(&mut lines)?;
    lines.truncate(memchr::memrchr(b'\n', &lines).map_or(0, |end| end + 1));
    match serde_json::from_slice(&head) {
        Ok(SpoolRecord::Run(run)) => Ok((Some(run.into_owned()), lines)),
        _ => Ok((None, lines)),
    }
}

/// Reads to the end of a line, which can have as many bytes as an answer.
struct LineReader<'r> {
    reader: &'r mut BufReader<File>,
    /// Whether the end was read, and not only that of the file.
    has_ended: bool,
}

impl Read for LineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_ended {
            return Ok(0);
        }
        let available = self.reader.fill_buf()?;
        let available = available.get(..buffer.len()).unwrap_or(available);
        let end = memchr::memchr(b'\n', available);
        let (line, _) = available.split_at(end.unwrap_or(available.len()));
        buffer.iter_mut().zip(line).for_each(|(to, from)| *to = *from);
        let read = line.len();
        self.reader.consume(read + usize::from(end.is_some()));
        self.has_ended = end.is_some();
        Ok(read)
    }
}

/// Reads a file. A last line that is not complete was not acknowledged.
pub(crate) fn read(path: &Path) -> io::Result<SpoolContent> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut content = SpoolContent::default();
    let mut earlier = RequestStore::default();
    let mut known = HashSet::new();
    for number in 1.. {
        let mut line = LineReader { reader: &mut reader, has_ended: false };
        let record = serde_json::from_reader(&mut line);
        io::copy(&mut line, &mut io::sink())?;
        if !line.has_ended {
            break;
        }
        let damage = match record {
            Ok(SpoolRecord::Run(run)) => {
                content.head = Some(run.into_owned());
                continue;
            }
            Ok(SpoolRecord::Call(call)) => match earlier.store(*call) {
                Ok((call, request)) => {
                    earlier.add(request);
                    content.calls.push(call);
                    continue;
                }
                Err(error) => error.to_string(),
            },
            Ok(SpoolRecord::StoredCall(call)) if call.bases().all(|base| known.contains(&base)) => {
                known.insert(call.number);
                content.calls.push(call.into_owned());
                continue;
            }
            Ok(SpoolRecord::StoredCall(_)) => "it is a difference from a line that is damaged".to_owned(),
            Err(error) => error.to_string(),
        };
        content.damage.get_or_insert_with(|| format!("line {number} is damaged: {damage}"));
    }
    if content.head.is_none() && !content.calls.is_empty() {
        content.damage.get_or_insert_with(|| "there is no line with the run".to_owned());
    }
    Ok(content)
}
