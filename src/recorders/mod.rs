//! The files of other programs that record calls of models: cassettes of VCR.py, go-vcr and Datadog, HTTP archives of
//! browsers, proxies and Polly.JS, logs of Inspect, spans of OpenTelemetry, recordings of context-engine-kernel, and
//! requests and responses as JSON Lines.
//!
//! [`fn@convert`] makes sessions and run packs of them, as a gateway does of the calls that it forwards, and lists what
//! it cannot map. [`fn@write`] writes the calls of a run pack as a cassette or as JSON Lines, and [`fn@trajectory`] a
//! conversation as a trajectory. The same file always becomes the same documents. `docs/import.md` specifies both.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use runvault::recorders::{ConvertInput, ConvertOptions, convert};
//!
//! let line = r#"{"request":{"model":"m","messages":[]},"response":{"object":"chat.completion","choices":[]}}"#;
//! let input = ConvertInput { name: "calls.jsonl".to_owned(), bytes: line.into() };
//! let converted = convert(vec![input], &ConvertOptions::default()).remove(0)?;
//! assert_eq!(converted.calls, 1);
//! # Ok(())
//! # }
//! ```

mod binary;
mod cassette;
mod convert;
mod datadog;
mod exchange;
mod export;
mod format;
mod go_vcr;
mod har;
mod inspect;
mod jsonl;
mod otel;
mod reading;
mod vcr;

pub use convert::{Conversion, ConvertOptions, convert};
#[cfg(feature = "gateway")]
pub(crate) use convert::{ConvertedDocument, DocumentSort};
pub use exchange::ConvertInput;
pub use export::{CallExportError, ExportFormat, TrajectoryHead, has_calls, trajectory, write};
pub use format::RecorderFormat;
#[cfg(feature = "gateway")]
pub(crate) use otel::received::{OtlpEncoding, OtlpSignal, ReceivedRecord, ReceivedRecords, received};
pub use reading::{ConvertError, RULES};
