//! The JSON reader against another one, and canonical forms against themselves.

use runvault::json::Value;
use runvault::json::canonical::replaykit::{self, VolatilePolicy};
use runvault::json::canonical::{c14n_v1, rfc8785};
use runvault::json::reader::{self, Defect, Limits, MemberNames};
use serde_json::Value as Json;

/// The two readers agree, except where this one is stricter, or exact, on purpose.
pub(super) fn json(data: &[u8]) {
    let limits = Limits::default();
    let theirs = serde_json::from_slice::<Json>(data);
    let why_not = theirs.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let ours = reader::read(data, &limits);
    match &ours {
        Ok(value) => {
            match theirs {
                Ok(theirs) => {
                    assert!(is_same(value, &theirs), "read differently");
                    assert_eq!(
                        rfc8785::to_vec(value).unwrap(),
                        serde_json_canonicalizer::to_vec(&theirs).unwrap(),
                        "written differently"
                    );
                }
                // This reader knows integers of any size, and one more level.
                Err(_) => assert!(
                    why_not.starts_with("number out of range") || why_not.starts_with("recursion limit"),
                    "{why_not}"
                ),
            }
            canonical(value, &limits);
            names(data, value);
            assert_eq!(reader::read_keeping_overflow(data, &limits).as_ref(), Ok(value));
        }
        Err(error) => {
            let stricter = matches!(error.defect, Defect::DuplicateKey | Defect::TooDeep | Defect::Number);
            assert!(theirs.is_err() || stricter, "{error}");
            assert!(error.line > 0 && error.column > 0);
        }
    }
    // Whoever may do less, does the same within it.
    let tight = Limits { bytes: 64, depth: 3, values: 10, ..limits };
    if let Ok(value) = reader::read(data, &tight) {
        assert_eq!(ours, Ok(value));
    }
}

/// What canonical bytes stand for has these canonical bytes.
fn canonical(value: &Value<'_>, limits: &Limits) {
    if let Ok(text) = rfc8785::to_vec(value) {
        let again = reader::read(&text, limits).unwrap();
        assert_eq!(rfc8785::to_vec(&again).unwrap(), text);
    }
    let text = c14n_v1::to_vec(value).unwrap();
    let again = reader::read(&text, limits).unwrap();
    assert_eq!(c14n_v1::to_vec(&again).unwrap(), text);
    let Some(object) = value.as_object() else { return };
    let members: Vec<_> = object.iter().collect();
    if let Ok(text) = replaykit::object(&members, VolatilePolicy::Include) {
        assert!(text.is_ascii());
        let again = reader::read(&text, limits).unwrap();
        let members: Vec<_> = again.as_object().unwrap().iter().collect();
        let twice = replaykit::object(&members, VolatilePolicy::Include).unwrap();
        // Windows paths may come to light only when others were cut off, as in the original implementation.
        assert!(twice == text || text.windows(2).any(|pair| pair == b":/"));
    }
}

/// The names that kinds are told by are the names.
fn names(data: &[u8], value: &Value<'_>) {
    let mut names = MemberNames::new(std::str::from_utf8(data).unwrap());
    let expected = value.as_object().into_iter().flat_map(|object| object.iter().map(|(name, _)| name));
    for name in expected.take(1_000) {
        assert!(names.has(name), "{name:?}");
    }
    assert!(!names.has("\u{1}unused name"));
}

fn is_same(ours: &Value<'_>, theirs: &Json) -> bool {
    match (ours, theirs) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(one), Json::Bool(other)) => one == other,
        (Value::Number(one), Json::Number(other)) => {
            other.as_f64().is_some_and(|other| one.as_f64().to_bits() == other.to_bits())
                || one.as_i64().is_some() && one.as_i64() == other.as_i64()
        }
        (Value::String(one), Json::String(other)) => one == other,
        (Value::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Json::Object(other)) => {
            let same = |(name, value): (&str, &Value<'_>)| {
                other.get(name).is_some_and(|other| is_same(value, other))
            };
            one.iter().len() == other.len() && one.iter().all(same)
        }
        _ => false,
    }
}
