//! The messages of OTLP that spans and log records are made of, and the one form in JSON that each has here, as a document
//! of its own. Those of a trace together are its text, which does not depend on how they were exported.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use OtlpForm::{Bool, Bytes, Double, Enum, Fixed32, Fixed64, Id, Long, Message, Number as Integer, Text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::json::members::{at, integer, object, text};
use crate::json::{Number, Object, Value, compact};
use crate::recorders::binary::base64;
use crate::recorders::reading::{LocatedValue, RecorderResult};

/// A message of Protocol Buffers.
pub(super) struct OtlpMessage {
    pub(super) fields: &'static [OtlpField],
}

/// A field of a message.
pub(super) struct OtlpField {
    pub(super) number: u64,
    /// The name of the member in JSON.
    pub(super) name: &'static str,
    pub(super) form: OtlpForm,
    pub(super) is_repeated: bool,
    /// Whether it is one of several of which a message has one, so that its presence says something.
    pub(super) is_choice: bool,
}

/// What a field contains.
#[derive(Clone, Copy)]
pub(super) enum OtlpForm {
    Text,
    Bool,
    /// The id of a trace or span: bytes, which are hexadecimal digits in JSON.
    Id,
    Bytes,
    Double,
    /// A varint that is a number in JSON.
    Number,
    /// Numbers with these names, from zero.
    Enum(&'static [&'static str]),
    /// 32 bits that are a number in JSON.
    Fixed32,
    /// A varint that is a text in JSON.
    Long,
    /// 64 bits that are a text in JSON.
    Fixed64,
    Message(&'static OtlpMessage),
}

const fn one(number: u64, name: &'static str, form: OtlpForm) -> OtlpField {
    OtlpField { number, name, form, is_repeated: false, is_choice: false }
}

const fn list(number: u64, name: &'static str, message: &'static OtlpMessage) -> OtlpField {
    OtlpField { is_repeated: true, ..one(number, name, Message(message)) }
}

const fn choice(number: u64, name: &'static str, form: OtlpForm) -> OtlpField {
    OtlpField { is_choice: true, ..one(number, name, form) }
}

/// An `ExportTraceServiceRequest`.
pub(super) static TRACES: OtlpMessage = OtlpMessage { fields: &[list(1, "resourceSpans", &RESOURCE_SPANS)] };

/// An `ExportLogsServiceRequest`.
pub(super) static LOGS: OtlpMessage = OtlpMessage { fields: &[list(1, "resourceLogs", &RESOURCE_LOGS)] };

static RESOURCE_SPANS: OtlpMessage = OtlpMessage {
    fields: &[
        one(1, "resource", Message(&RESOURCE)),
        list(2, "scopeSpans", &SCOPE_SPANS),
        one(3, "schemaUrl", Text),
    ],
};

static RESOURCE_LOGS: OtlpMessage = OtlpMessage {
    fields: &[
        one(1, "resource", Message(&RESOURCE)),
        list(2, "scopeLogs", &SCOPE_LOGS),
        one(3, "schemaUrl", Text),
    ],
};

static RESOURCE: OtlpMessage =
    OtlpMessage { fields: &[list(1, "attributes", &KEY_VALUE), one(2, "droppedAttributesCount", Integer)] };

static SCOPE_SPANS: OtlpMessage = OtlpMessage {
    fields: &[one(1, "scope", Message(&SCOPE)), list(2, "spans", &SPAN), one(3, "schemaUrl", Text)],
};

static SCOPE_LOGS: OtlpMessage = OtlpMessage {
    fields: &[
        one(1, "scope", Message(&SCOPE)),
        list(2, "logRecords", &LOG_RECORD),
        one(3, "schemaUrl", Text),
    ],
};

static SCOPE: OtlpMessage = OtlpMessage {
    fields: &[
        one(1, "name", Text),
        one(2, "version", Text),
        list(3, "attributes", &KEY_VALUE),
        one(4, "droppedAttributesCount", Integer),
    ],
};

static SPAN: OtlpMessage = OtlpMessage {
    fields: &[
        one(1, "traceId", Id),
        one(2, "spanId", Id),
        one(3, "traceState", Text),
        one(4, "parentSpanId", Id),
        one(16, "flags", Fixed32),
        one(5, "name", Text),
        one(6, "kind", Enum(SPAN_KINDS)),
        one(7, "startTimeUnixNano", Fixed64),
        one(8, "endTimeUnixNano", Fixed64),
        list(9, "attributes", &KEY_VALUE),
        one(10, "droppedAttributesCount", Integer),
        list(11, "events", &EVENT),
        one(12, "droppedEventsCount", Integer),
        list(13, "links", &LINK),
        one(14, "droppedLinksCount", Integer),
        one(15, "status", Message(&STATUS)),
    ],
};

const SPAN_KINDS: &[&str] = &[
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];

static EVENT: OtlpMessage = OtlpMessage {
    fields: &[
        one(1, "timeUnixNano", Fixed64),
        one(2, "name", Text),
        list(3, "attributes", &KEY_VALUE),
        one(4, "droppedAttributesCount", Integer),
    ],
};

static LINK: OtlpMessage = OtlpMessage {
    fields: &[
        one(1, "traceId", Id),
        one(2, "spanId", Id),
        one(3, "traceState", Text),
        list(4, "attributes", &KEY_VALUE),
        one(5, "droppedAttributesCount", Integer),
        one(6, "flags", Fixed32),
    ],
};

static STATUS: OtlpMessage = OtlpMessage {
    fields: &[
        one(2, "message", Text),
        one(3, "code", Enum(&["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"])),
    ],
};

static LOG_RECORD: OtlpMessage = OtlpMessage {
    fields: &[
        one(1, "timeUnixNano", Fixed64),
        one(11, "observedTimeUnixNano", Fixed64),
        // Its names are in no file that was found.
        one(2, "severityNumber", Integer),
        one(3, "severityText", Text),
        one(5, "body", Message(&ANY_VALUE)),
        list(6, "attributes", &KEY_VALUE),
        one(7, "droppedAttributesCount", Integer),
        one(8, "flags", Fixed32),
        one(9, "traceId", Id),
        one(10, "spanId", Id),
        one(12, "eventName", Text),
    ],
};

static KEY_VALUE: OtlpMessage =
    OtlpMessage { fields: &[one(1, "key", Text), one(2, "value", Message(&ANY_VALUE))] };

static ANY_VALUE: OtlpMessage = OtlpMessage {
    fields: &[
        choice(1, "stringValue", Text),
        choice(2, "boolValue", Bool),
        choice(3, "intValue", Long),
        choice(4, "doubleValue", Double),
        choice(5, "arrayValue", Message(&ARRAY_VALUE)),
        choice(6, "kvlistValue", Message(&KEY_VALUES)),
        choice(7, "bytesValue", Bytes),
    ],
};

static ARRAY_VALUE: OtlpMessage = OtlpMessage { fields: &[list(1, "values", &ANY_VALUE)] };

static KEY_VALUES: OtlpMessage = OtlpMessage { fields: &[list(1, "values", &KEY_VALUE)] };

/// Returns a message with its members in one order and form, without those that have their default, so that the same
/// message is the same text, whether it was JSON or Protocol Buffers. What has another type is left as it is.
pub(super) fn normalized(value: &Value<'_>, message: &OtlpMessage) -> Value<'static> {
    let Value::Object(members) = value else { return value.to_owned_value() };
    let fields = message.fields.iter().filter_map(|field| {
        let stated = members.get(field.name).filter(|stated| !stated.is_null())?;
        let value = match stated {
            Value::Array(elements) if field.is_repeated => {
                Value::Array(elements.iter().map(|element| normalized_value(element, field.form)).collect())
            }
            stated => normalized_value(stated, field.form),
        };
        (field.is_choice || !is_default(&value, field.form)).then_some((Cow::Borrowed(field.name), value))
    });
    Value::Object(Object::from_members(fields.collect()))
}

fn normalized_value(value: &Value<'_>, form: OtlpForm) -> Value<'static> {
    let found = match form {
        Message(message) => Some(normalized(value, message)),
        Id => value.as_str().and_then(hexadecimal).map(text),
        Bytes => value.as_str().and_then(base64).map(|bytes| text(STANDARD.encode(bytes))),
        Double => value.as_number().and_then(|number| double(number.as_f64())),
        Long | Fixed64 => whole(value).map(text),
        Integer | Fixed32 => whole(value).map(|digits| Value::Number(Number::from_literal(digits))),
        Enum(names) => {
            let number = names.iter().position(|name| value.as_str() == Some(name));
            number.map(|number| integer(number as u64))
        }
        Text | Bool => None,
    };
    found.unwrap_or_else(|| value.to_owned_value())
}

/// Returns the digits of a whole number, which may be in a string.
fn whole(value: &Value<'_>) -> Option<String> {
    let digits = match value {
        Value::Number(number) => number.literal(),
        Value::String(digits) => digits,
        _ => return None,
    };
    digits.parse().ok().map(|number: i128| number.to_string())
}

/// Returns a double as a number, or as the text of one that is not finite; `None` if a text in JSON has no such number.
pub(super) fn double(number: f64) -> Option<Value<'static>> {
    number.is_finite().then(|| Value::Number(Number::from_literal(format!("{number:?}"))))
}

fn is_default(value: &Value<'_>, form: OtlpForm) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.literal() == "0",
        Value::String(said) => said.is_empty() || said == "0" && matches!(form, Long | Fixed64),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.iter().next().is_none(),
    }
}

/// Returns an id in hexadecimal digits: OTLP writes those, the JSON mapping of Protocol Buffers Base64. Returns `None` if it
/// has another form, or neither 8 nor 16 bytes.
pub(super) fn hexadecimal(id: &str) -> Option<String> {
    if [16, 32].contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(id.to_ascii_lowercase());
    }
    base64(id).filter(|bytes| [8, 16].contains(&bytes.len())).map(|bytes| digits(&bytes))
}

/// Returns bytes as hexadecimal digits.
pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The names of the members around records of a sort.
pub(super) struct RecordSort {
    pub(super) message: &'static OtlpMessage,
    resources: &'static str,
    scopes: &'static str,
    records: &'static str,
}

pub(super) static SPANS: RecordSort =
    RecordSort { message: &TRACES, resources: "resourceSpans", scopes: "scopeSpans", records: "spans" };

pub(super) static LOG_RECORDS: RecordSort =
    RecordSort { message: &LOGS, resources: "resourceLogs", scopes: "scopeLogs", records: "logRecords" };

/// A span or a log record.
pub(super) struct ExportedRecord {
    location: String,
    /// A message with this record only.
    document: Value<'static>,
    sort: &'static RecordSort,
}

impl ExportedRecord {
    /// Returns the records of a message.
    pub(super) fn of_message(
        root: &LocatedValue<'_>,
        sort: &'static RecordSort,
    ) -> RecorderResult<Vec<Self>> {
        let mut found = Vec::new();
        let Some(resources) = root.member(sort.resources) else { return Ok(found) };
        for resource in resources.elements()? {
            let Some(scopes) = resource.member(sort.scopes) else { continue };
            for scope in scopes.elements()? {
                for record in scope.list(sort.records) {
                    let inside = beside(&scope, "scope", sort.records, record.value.clone());
                    let document = beside(&resource, "resource", sort.scopes, inside);
                    let document = object([(sort.resources, Value::Array(vec![document]))]);
                    let document = normalized(&document, sort.message);
                    found.push(Self { location: record.location, document, sort });
                }
            }
        }
        Ok(found)
    }

    /// Returns the record itself.
    pub(super) fn node(&self) -> LocatedValue<'_> {
        let RecordSort { resources, scopes, records, .. } = self.sort;
        let record = at(&self.document, &[resources, "0", scopes, "0", records, "0"]);
        LocatedValue::new(record.unwrap_or(&Value::Null), self.location.clone())
    }

    /// Returns it without what rules redact.
    #[cfg(feature = "gateway")]
    pub(super) fn redacted(self, rules: &crate::calls::matching::MatchingRules) -> Self {
        Self { document: rules.redacted_owned(self.document), ..self }
    }

    /// Returns the line that it is in the text of its trace.
    pub(super) fn line(&self) -> String {
        compact::text(&self.document)
    }
}

/// Returns a resource or a scope with only one of the values in it.
fn beside<'v>(node: &LocatedValue<'v>, name: &'static str, list: &'static str, only: Value<'v>) -> Value<'v> {
    let stated =
        [name, "schemaUrl"].into_iter().filter_map(|name| Some((name, node.value.get(name)?.clone())));
    object(stated.chain([(list, Value::Array(vec![only]))]))
}

/// The lines of traces, by their ids.
#[derive(Default)]
pub(super) struct TraceTexts(HashMap<String, Vec<u8>>);

impl TraceTexts {
    pub(super) fn add(&mut self, trace: &str, line: &str) {
        let text = self.0.entry(trace.to_owned()).or_default();
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }

    pub(super) fn take(&mut self, trace: &str) -> Option<Vec<u8>> {
        self.0.remove(trace)
    }
}
