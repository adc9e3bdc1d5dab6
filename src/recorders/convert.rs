//! Makes documents of files.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;

use super::exchange::{ConvertInput, ImportedExchange, ImportedRun, ImportedRuns};
use super::format::RecorderFormat;
use super::reading::{ConvertError, Fault, SHAPE};
use super::{inspect, jsonl, kernel, otel, vcr};
use crate::artifact::AdmitOptions;
use crate::calls::call::StoredCall;
use crate::calls::matching::MatchingRules;
use crate::calls::recorded_run::KIND;
use crate::calls::request_store::RequestStore;
use crate::calls::run::{CallOrigin, ImportSource, RunHead};
use crate::calls::run_parts::{PartLimits, RunDocuments, RunSink};
use crate::calls::session;
use crate::digest::Digest;
use crate::formats;
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
    /// The values that cannot be mapped, in the order of the files.
    pub unmapped: Vec<ImportedValue>,
    /// The values that the files do not state, in the order of the files: of each run, the first call without a time.
    pub assumed: Vec<ImportedValue>,
    documents: Vec<ConvertedDocument>,
}

/// A document, with its name for reports.
#[derive(Debug)]
struct ConvertedDocument {
    name: String,
    bytes: Vec<u8>,
    is_original: bool,
}

/// Converts files. Lines of requests and of responses that refer to each other may be in several files; they become one
/// run. So may the spans and log records of a trace. Every other file is converted on its own. A file that cannot be converted does not keep others from it, except
/// those with which it would become a run.
#[must_use]
pub fn convert(inputs: Vec<ConvertInput>, options: &ConvertOptions) -> Vec<Result<Conversion, ConvertError>> {
    let mut groups: Vec<Result<(RecorderFormat, Vec<ConvertInput>), ConvertError>> = Vec::new();
    let are_several = inputs.len() > 1;
    for input in inputs {
        let Some(format) = RecorderFormat::recognize(&input.bytes) else {
            groups.push(Err(unknown(&input.name, &input.bytes)));
            continue;
        };
        let is_joined = are_several && matches!(format, RecorderFormat::Jsonl | RecorderFormat::Otel);
        // A file that cannot be read is in no group with others.
        if is_joined && let Err(error) = read(format, std::slice::from_ref(&input), &options.limits) {
            groups.push(Err(error));
            continue;
        }
        let mut same = groups.iter_mut().flatten();
        match same.find(|(other, _)| *other == format && is_joined) {
            Some((_, group)) => group.push(input),
            None => groups.push(Ok((format, vec![input]))),
        }
    }
    let converted = groups.into_iter().map(|group| {
        let (format, mut inputs) = group?;
        // The order in which files are given does not change what they become.
        inputs.sort_by_cached_key(|input| Digest::from_content(&input.bytes));
        let digests = inputs.iter().map(|input| Digest::from_content(&input.bytes)).collect();
        Converter { format, inputs: &inputs, digests, options }.run()
    });
    converted.collect()
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
    };
    let [input] = inputs else { return Ok(ImportedRuns::default()) };
    read_one(&input.bytes, limits).map_err(|fault| fault.in_file(&input.name))
}

struct Converter<'c> {
    format: RecorderFormat,
    inputs: &'c [ConvertInput],
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
            unmapped: unmapped
                .map(|(file, location, reason)| self.unmapped(file, location, reason))
                .collect(),
            assumed: Vec::new(),
            documents: Vec::new(),
        };
        for run in recording.runs {
            self.convert(run, &mut converted);
        }
        if self.format == RecorderFormat::Kernel {
            self.convert_sessions(&mut converted)?;
        }
        if converted.calls > 0 && !self.options.without_originals {
            let originals = self.inputs.iter().map(|input| ConvertedDocument {
                name: input.name.clone(),
                bytes: input.bytes.clone(),
                is_original: true,
            });
            converted.documents.splice(0..0, originals);
        }
        Ok(converted)
    }

    /// Makes the documents of files that state the responses of models, and not their requests.
    fn convert_sessions(&self, converted: &mut Conversion) -> Result<(), ConvertError> {
        for input in self.inputs {
            let (bytes, calls) = kernel::session(input, &self.options.rules, &self.options.limits)?;
            converted.runs += 1;
            converted.calls += calls as u64;
            let name = format!("{}#{}", input.name, self.format.name());
            converted.documents.push(ConvertedDocument { name, bytes, is_original: false });
        }
        Ok(())
    }

    fn unmapped(&self, file: usize, location: String, reason: String) -> ImportedValue {
        let file = self.inputs.get(file).map(|input| input.name.clone()).unwrap_or_default();
        ImportedValue { outcome: ValueOutcome::NotMapped, file, location, reason }
    }

    /// Makes the documents of a run.
    fn convert(&self, run: ImportedRun, converted: &mut Conversion) {
        let ImportedRun { name, details, files, exchanges } = run;
        let mut calls = self.calls(exchanges, converted);
        if calls.is_empty() {
            return;
        }
        let digests = self.digests.iter().enumerate();
        let of_run = digests.filter(|(file, _)| files.is_empty() || files.contains(file));
        let digests = of_run.map(|(_, digest)| *digest).collect();
        let original = ImportSource { format: self.format.name(), digests, details };
        let head = self.head(name.as_deref(), &original, &calls);
        let Some(documents) = self.documents(&head, &original, &mut calls) else {
            let reason = format!("the run {} has no canonical form", head.id);
            converted.unmapped.push(self.unmapped(0, "the document".to_owned(), reason));
            return;
        };
        converted.runs += 1;
        converted.calls += calls.len() as u64;
        converted.documents.extend(documents);
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
        }
    }

    fn documents(
        &self,
        head: &RunHead,
        original: &ImportSource,
        calls: &mut [StoredCall],
    ) -> Option<Vec<ConvertedDocument>> {
        let origin = CallOrigin::File(original);
        let file = self.inputs.first().map(|input| input.name.as_str()).unwrap_or_default();
        let mut sink = ImportedDocuments {
            name: format!("{file}#{}", head.id),
            documents: Vec::new(),
            options: self.options,
        };
        for session in session::documents(origin, head, calls) {
            sink.push(session, false);
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
    fn push(&mut self, bytes: Vec<u8>, is_original: bool) {
        self.documents.push(ConvertedDocument { name: self.name.clone(), bytes, is_original });
    }
}

impl RunSink for ImportedDocuments<'_> {
    type Error = Infallible;

    fn attachment(&mut self, bytes: Vec<u8>) -> Result<(), Infallible> {
        self.push(bytes, true);
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
            self.push(document, false);
        }
        Ok(is_accepted)
    }
}

impl Conversion {
    /// Returns the documents, as items to examine: the files themselves, unless they are left out, and the sessions and
    /// run packs.
    pub fn into_items(self) -> impl Iterator<Item = InputResult> + Send {
        self.documents.into_iter().map(|document| {
            let ConvertedDocument { name, bytes, is_original } = document;
            Ok(if is_original {
                InputItem::Declared(DeclaredCapture::attachment(name.into(), bytes))
            } else {
                InputItem::Document { name, bytes }
            })
        })
    }
}

/// Returns the error for a file that is not of a known format.
fn unknown(file: &str, bytes: &[u8]) -> ConvertError {
    let message = RecorderFormat::unsupported(bytes).unwrap_or_else(|| {
        "neither a cassette of VCR.py, nor spans of OpenTelemetry, a log of Inspect, a recording of context-engine-kernel, or requests and responses as JSON \
         Lines"
            .to_owned()
    });
    Fault::new(SHAPE, "the document", message).in_file(file)
}
