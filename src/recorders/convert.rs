//! Makes documents of files.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;

use super::exchange::{ConvertInput, ImportedExchange, ImportedRun, ImportedRuns};
use super::format::RecorderFormat;
use super::reading::{ConvertError, Fault, SHAPE};
use super::{binary, datadog, go_vcr, har, inspect, jsonl, otel, vcr};
use crate::artifact::AdmitOptions;
use crate::calls::matching::MatchingRules;
use crate::calls::recorded_run::KIND;
use crate::calls::request_store::RequestStore;
use crate::calls::run::{CallOrigin, CallOutcome, ImportSource, RunHead, StoredCall};
use crate::calls::run_parts::{PartLimits, RunDocuments, RunSink};
use crate::calls::session;
use crate::digest::Digest;
use crate::formats::{self, KernelRecording};
use crate::intake::{DeclaredCapture, InputItem};
use crate::json::compact;
use crate::json::reader::Limits;
use crate::vault::add::InputResult;
use crate::vault::rules::{ImportedValue, ValueOutcome};

/// The fewest bytes of a run pack that is examined before it is used: what it states can be beyond a limit of the format.
const EXAMINED: usize = 8 << 20;

/// How files are converted.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// The rules for comparing requests, and for text that is not stored.
    pub rules: MatchingRules,
    /// The limits of a file, and of what is decompressed from it.
    pub limits: Limits,
    /// Whether the files themselves are left out of the documents.
    pub without_originals: bool,
}

/// The result of a conversion.
#[derive(Debug)]
pub struct Conversion {
    /// The format.
    pub format: RecorderFormat,
    /// Number of runs.
    pub runs: u64,
    /// Number of calls in them.
    pub calls: u64,
    /// Number of calls without a complete response.
    pub failed: u64,
    /// The ids of the runs.
    pub run_ids: Vec<String>,
    /// The values that cannot be mapped, in the order of the files.
    pub unmapped: Vec<ImportedValue>,
    /// The values that the files do not state, in the order of the files: of each run, the first call without a time.
    pub assumed: Vec<ImportedValue>,
    documents: Vec<ConvertedDocument>,
}

/// A document, with its name for reports.
#[derive(Debug)]
pub(crate) struct ConvertedDocument {
    name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sort: DocumentSort,
}

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentSort {
    /// A file, or a body that is in no run pack.
    Attachment,
    Session,
    RunPack,
}

/// Converts files. Lines of requests and of responses that refer to each other may be in several files; they become one
/// run. So may the spans and log records of a trace. Every other file is converted on its own. A file that cannot be
/// converted does not keep others from it, except those with which it would become a run. Files can be compressed with gzip.
#[must_use]
pub fn convert(inputs: Vec<ConvertInput>, options: &ConvertOptions) -> Vec<Result<Conversion, ConvertError>> {
    let mut groups: Vec<Result<(RecorderFormat, Vec<ImportFile>), ConvertError>> = Vec::new();
    let are_several = inputs.len() > 1;
    for input in inputs {
        let file = match ImportFile::new(input, &options.limits) {
            Ok(file) => file,
            Err(error) => {
                groups.push(Err(error));
                continue;
            }
        };
        let Some(format) = RecorderFormat::recognize(&file.plain.bytes) else {
            groups.push(Err(unknown(&file.plain.name, &file.plain.bytes)));
            continue;
        };
        let is_joined = are_several && matches!(format, RecorderFormat::Jsonl | RecorderFormat::Otel);
        // A file that cannot be read is in no group with others.
        if is_joined && let Err(error) = read(format, std::slice::from_ref(&file.plain), &options.limits) {
            groups.push(Err(error));
            continue;
        }
        let mut same = groups.iter_mut().flatten();
        match same.find(|(other, _)| *other == format && is_joined) {
            Some((_, group)) => group.push(file),
            None => groups.push(Ok((format, vec![file]))),
        }
    }
    let converted = groups.into_iter().map(|group| {
        let (format, mut files) = group?;
        // The order in which files are given does not change what they become.
        files.sort_by_cached_key(ImportFile::digest);
        let digests = files.iter().map(ImportFile::digest).collect();
        let (inputs, packed): (Vec<_>, Vec<_>) =
            files.into_iter().map(|file| (file.plain, file.packed)).unzip();
        Converter { format, inputs: &inputs, packed: &packed, digests, options }.run()
    });
    converted.collect()
}

/// A file, without its compression.
struct ImportFile {
    plain: ConvertInput,
    /// The bytes of the file, if it is compressed.
    packed: Option<Vec<u8>>,
}

impl ImportFile {
    fn new(input: ConvertInput, limits: &Limits) -> Result<Self, ConvertError> {
        let ConvertInput { name, bytes } = input;
        let plain = binary::unpacked(&bytes, limits.bytes).map_err(|fault| fault.in_file(&name))?;
        let (plain, packed) = match plain {
            Some(plain) => (plain, Some(bytes)),
            None => (bytes, None),
        };
        Ok(Self { plain: ConvertInput { name, bytes: plain }, packed })
    }

    /// Returns the digest of the file.
    fn digest(&self) -> Digest {
        let bytes = self.packed.as_ref().unwrap_or(&self.plain.bytes);
        Digest::from_content(bytes)
    }
}

/// Reads files of a format, of which some are read one at a time.
fn read(
    format: RecorderFormat,
    inputs: &[ConvertInput],
    limits: &Limits,
) -> Result<ImportedRuns, ConvertError> {
    let read_one = match format {
        RecorderFormat::Jsonl => return jsonl::read(inputs, limits),
        RecorderFormat::Otel => return otel::read(inputs, limits),
        RecorderFormat::Vcr => vcr::read,
        RecorderFormat::Inspect => inspect::read,
        // It has no requests.
        RecorderFormat::Kernel => return Ok(ImportedRuns::default()),
        RecorderFormat::GoVcr => go_vcr::read,
        RecorderFormat::Har => har::read,
        RecorderFormat::Datadog => datadog::read,
    };
    let [input] = inputs else { return Ok(ImportedRuns::default()) };
    read_one(&input.bytes, limits).map_err(|fault| fault.in_file(&input.name))
}

struct Converter<'c> {
    format: RecorderFormat,
    inputs: &'c [ConvertInput],
    /// The bytes of the files that are compressed.
    packed: &'c [Option<Vec<u8>>],
    /// The digests of the files.
    digests: Vec<Digest>,
    options: &'c ConvertOptions,
}

impl Converter<'_> {
    fn run(&self) -> Result<Conversion, ConvertError> {
        let recording = read(self.format, self.inputs, &self.options.limits)?;
        let unmapped = recording.unmapped.into_iter();
        let mut converted = Conversion {
            format: self.format,
            runs: 0,
            calls: 0,
            failed: 0,
            run_ids: Vec::new(),
            unmapped: unmapped
                .map(|(file, location, reason)| self.unmapped(file, location, reason))
                .collect(),
            assumed: Vec::new(),
            documents: Vec::new(),
        };
        let have_originals =
            !recording.runs.is_empty() && recording.runs.iter().all(|run| run.original.is_some());
        for run in recording.runs {
            self.convert(run, &mut converted);
        }
        if self.format == RecorderFormat::Kernel {
            self.convert_sessions(&mut converted)?;
        }
        if converted.calls > 0 && !self.options.without_originals && !have_originals {
            let originals = self.inputs.iter().zip(self.packed).map(|(input, packed)| {
                let bytes = packed.as_ref().unwrap_or(&input.bytes).clone();
                ConvertedDocument { name: input.name.clone(), bytes, sort: DocumentSort::Attachment }
            });
            converted.documents.splice(0..0, originals);
        }
        Ok(converted)
    }

    /// Makes the documents of files that state the responses of models, and not their requests.
    fn convert_sessions(&self, converted: &mut Conversion) -> Result<(), ConvertError> {
        for input in self.inputs {
            let (bytes, calls) = session(input, &self.options.rules, &self.options.limits)?;
            converted.runs += 1;
            converted.calls += calls as u64;
            let name = format!("{}#{}", input.name, self.format.name());
            converted.documents.push(ConvertedDocument { name, bytes, sort: DocumentSort::Session });
        }
        Ok(())
    }

    fn unmapped(&self, file: usize, location: String, reason: String) -> ImportedValue {
        let file = self.inputs.get(file).map(|input| input.name.clone()).unwrap_or_default();
        ImportedValue { outcome: ValueOutcome::NotMapped, file, location, reason }
    }

    /// Makes the documents of a run.
    fn convert(&self, run: ImportedRun, converted: &mut Conversion) {
        let ImportedRun { name, details, original, exchanges } = run;
        let mut calls = self.calls(exchanges, converted);
        if calls.is_empty() {
            return;
        }
        let digests = original.as_ref().map(|original| vec![Digest::from_content(original)]);
        let digests = digests.unwrap_or_else(|| self.digests.clone());
        let source = ImportSource { format: self.format.name(), digests, details };
        let head = self.head(name.as_deref(), &source, &calls);
        let is_failed = |call: &&StoredCall| matches!(call.outcome, CallOutcome::Failed { .. });
        let failed = calls.iter().filter(is_failed).count() as u64;
        let Some(documents) = self.documents(&head, &source, &mut calls) else {
            let reason = format!("the run {} has no canonical form", head.id);
            converted.unmapped.push(self.unmapped(0, "the document".to_owned(), reason));
            return;
        };
        converted.runs += 1;
        converted.calls += calls.len() as u64;
        converted.failed += failed;
        let original = original.filter(|_| !self.options.without_originals);
        converted.documents.extend(original.map(|bytes| ConvertedDocument {
            name: self.name_of(&head),
            bytes,
            sort: DocumentSort::Attachment,
        }));
        converted.documents.extend(documents);
        converted.run_ids.push(head.id);
    }

    /// Returns the calls of a run. Those that cannot be stored are listed, and so is the first without a time.
    fn calls(
        &self,
        exchanges: Vec<(usize, ImportedExchange)>,
        converted: &mut Conversion,
    ) -> Vec<StoredCall> {
        let mut calls: Vec<StoredCall> = Vec::new();
        let mut requests = RequestStore::default();
        let mut undated = None;
        let mut before = None;
        for (file, mut exchange) in exchanges {
            exchange.restore(&mut before);
            for name in exchange.take_transport() {
                let reason =
                    format!("the member {name} of the request says how it is sent, and is not mapped");
                converted.unmapped.push(self.unmapped(file, exchange.location.clone(), reason));
            }
            let location = exchange.location.clone();
            let call = exchange.into_call(calls.len() as u64, &self.options.rules);
            let stored = call
                .and_then(|(call, body)| requests.store_read(call, body).map_err(|error| error.to_string()));
            match stored {
                Ok((call, request)) => {
                    requests.add(request);
                    if call.requested_at.is_none() {
                        undated.get_or_insert((file, location));
                    }
                    calls.push(call);
                }
                Err(reason) => converted.unmapped.push(self.unmapped(file, location, reason)),
            }
        }
        if let Some((file, location)) = undated {
            let reason = "the file does not state the time of this call, or not as a time with an offset from UTC; it is \
                          recorded without one";
            let value = self.unmapped(file, location, reason.to_owned());
            converted.assumed.push(ImportedValue { outcome: ValueOutcome::Assumed, ..value });
        }
        calls
    }

    fn head(&self, name: Option<&str>, original: &ImportSource, calls: &[StoredCall]) -> RunHead {
        let started_at = calls.iter().filter_map(|call| call.requested_at).min();
        let mut id = self.format.name().to_owned();
        for digest in &original.digests {
            // Writing to a string cannot fail.
            let _ = write!(id, "-{digest:.16}");
        }
        if let Some(name) = name {
            id.push('-');
            id.push_str(name);
        }
        RunHead {
            id,
            name: None,
            started_at,
            labels: BTreeMap::new(),
            rules: compact::text(&self.options.rules.to_json()),
            source_run_id: None,
        }
    }

    /// Returns the name of the documents of a run, for reports.
    fn name_of(&self, head: &RunHead) -> String {
        let file = self.inputs.first().map(|input| input.name.as_str()).unwrap_or_default();
        format!("{file}#{}", head.id)
    }

    fn documents(
        &self,
        head: &RunHead,
        original: &ImportSource,
        calls: &mut [StoredCall],
    ) -> Option<Vec<ConvertedDocument>> {
        let origin = CallOrigin::File(original);
        let name = self.name_of(head);
        let mut sink = ImportedDocuments { name, documents: Vec::new(), options: self.options };
        for session in session::documents(origin, head, calls) {
            sink.push(session, DocumentSort::Session);
        }
        let limits = PartLimits::new(&self.options.limits);
        RunDocuments { origin, head, limits }.write(calls, &mut sink).ok()?;
        Some(sink.documents)
    }
}

/// Receives the documents of a run.
struct ImportedDocuments<'s> {
    name: String,
    documents: Vec<ConvertedDocument>,
    options: &'s ConvertOptions,
}

impl ImportedDocuments<'_> {
    fn push(&mut self, bytes: Vec<u8>, sort: DocumentSort) {
        self.documents.push(ConvertedDocument { name: self.name.clone(), bytes, sort });
    }
}

impl RunSink for ImportedDocuments<'_> {
    type Error = Infallible;

    fn attachment(&mut self, bytes: Vec<u8>) -> Result<(), Infallible> {
        self.push(bytes, DocumentSort::Attachment);
        Ok(())
    }

    fn run_pack(&mut self, document: Vec<u8>, _: Digest) -> Result<bool, Infallible> {
        // Smaller ones are within all limits of the format.
        let is_accepted = document.len() < EXAMINED || {
            let options = AdmitOptions { limits: self.options.limits, ..AdmitOptions::default() };
            let kind = formats::named(KIND);
            kind.is_some_and(|kind| kind.admit(document.clone(), &options).is_ok())
        };
        if is_accepted {
            self.push(document, DocumentSort::RunPack);
        }
        Ok(is_accepted)
    }
}

impl Conversion {
    /// Returns the documents, as items to examine: the files themselves, unless they are left out, and the sessions and
    /// run packs.
    pub fn into_items(self) -> impl Iterator<Item = InputResult> + Send {
        self.documents.into_iter().map(|document| {
            let ConvertedDocument { name, bytes, sort } = document;
            Ok(if sort == DocumentSort::Attachment {
                InputItem::Declared(DeclaredCapture::attachment(name.into(), bytes))
            } else {
                InputItem::Document { name, bytes }
            })
        })
    }

    /// Returns the documents, attachments before what names them.
    #[cfg(feature = "gateway")]
    pub(crate) fn into_documents(self) -> Vec<ConvertedDocument> {
        self.documents
    }
}

/// Returns the error for a file that is not of a known format.
fn unknown(file: &str, bytes: &[u8]) -> ConvertError {
    let message = RecorderFormat::unsupported(bytes).unwrap_or_else(|| {
        "neither a cassette of VCR.py, go-vcr or Datadog, nor spans of OpenTelemetry, a log of Inspect, a recording of \
         context-engine-kernel, an HTTP archive, or requests and responses as JSON Lines"
            .to_owned()
    });
    Fault::new(SHAPE, "the document", message).in_file(file)
}

/// Makes a session of a recording, and returns it with the number of its interactions.
pub(super) fn session(
    input: &ConvertInput,
    rules: &MatchingRules,
    limits: &Limits,
) -> Result<(Vec<u8>, usize), ConvertError> {
    let recording = KernelRecording::read(&input.bytes, limits);
    let recording = recording.map_err(|report| ConvertError::first_of(&report, &input.name))?;
    let redacted = recording.with_responses(|response| rules.redacted_body(response));
    let recording = redacted.map_err(|reason| {
        Fault::new(SHAPE, "the document", format!("a response: {reason}")).in_file(&input.name)
    })?;
    let session = recording.session(Digest::from_content(&input.bytes));
    Ok((session, recording.interactions()))
}
