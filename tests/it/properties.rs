//! What must hold for all documents.

use proptest::prelude::*;
use runvault::json::Value;
use runvault::json::canonical::replaykit::{self, VolatilePolicy};
use runvault::json::canonical::{c14n_v1, rfc8785};
use runvault::json::reader::{Limits, read};
use serde_json::Value as Json;

/// Any JSON object, with the names that mean something to the rpk profile among others.
fn json() -> impl Strategy<Value = Json> {
    let text = prop_oneof!["[ -~]{0,8}", "\\PC{0,6}", "[\r\n\\\\/.:CZ0-9T+-]{0,12}"];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>()
            .prop_filter("JSON has no other numbers", |double| double.is_finite())
            .prop_map(Json::from),
        text.prop_map(Json::from),
    ];
    let name = prop_oneof![
        prop::sample::select(vec!["path", "Cwd", "timestamp", "tags", "labels", "pid", "latency_ms"])
            .prop_map(str::to_owned),
        "\\PC{0,4}",
    ];
    let value = leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map(name.clone(), inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    });
    prop::collection::btree_map("\\PC{0,4}", value, 0..5).prop_map(|map| map.into_iter().collect())
}

/// `value` as text with its members in another order, other white space and other escapes.
fn respelled(value: &Json, out: &mut String) {
    match value {
        Json::Array(elements) => {
            out.push_str("[ ");
            for (index, element) in elements.iter().enumerate() {
                out.push_str(if index > 0 { "\r\n,\t" } else { "" });
                respelled(element, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().rev().enumerate() {
                out.push_str(if index > 0 { " ,\n" } else { "\n" });
                respelled(&Json::from(name.as_str()), out);
                out.push_str(" : ");
                respelled(member, out);
            }
            out.push_str("\n}");
        }
        Json::String(text) => {
            out.push('"');
            for unit in text.encode_utf16() {
                out.push_str(&format!("\\u{unit:04X}"));
            }
            out.push('"');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn of_rpk(value: &Value<'_>) -> Vec<u8> {
    let members: Vec<_> = value.as_object().unwrap().iter().collect();
    replaykit::object(&members, VolatilePolicy::Include).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn canonical_forms_do_not_depend_on_the_spelling_and_are_their_own(value in json()) {
        let profiles: [fn(&Value<'_>) -> Vec<u8>; 3] =
            [|value| rfc8785::to_vec(value).unwrap(), |value| c14n_v1::to_vec(value).unwrap(), of_rpk];
        let plain = value.to_string();
        let mut other = String::new();
        respelled(&value, &mut other);
        let limits = Limits::default();
        for profile in profiles {
            let canonical = profile(&read(plain.as_bytes(), &limits).unwrap());
            prop_assert_eq!(&profile(&read(other.as_bytes(), &limits).unwrap()), &canonical);
            if !canonical.is_empty() {
                prop_assert_eq!(&profile(&read(&canonical, &limits).unwrap()), &canonical);
            }
        }
    }

    /// The reader and a well-known one agree on what a text means.
    #[test]
    fn the_reader_reads_what_others_write(value in json()) {
        let text = value.to_string();
        let read = read(text.as_bytes(), &Limits::default()).unwrap();
        let back: Json = serde_json::from_slice(&rfc8785::to_vec(&read).unwrap()).unwrap();
        // RFC 8785 knows doubles only.
        let expected: Json = serde_json::from_slice(&serde_json_canonicalizer::to_vec(&value).unwrap()).unwrap();
        prop_assert_eq!(back, expected);
    }
}
