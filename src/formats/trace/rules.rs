use super::growth::BEGINNING;
use super::record::{self, TraceRecord, digest_of};
use super::time::{self, TimestampClass};
use crate::artifact::{SupportedMajors, is_semver};
use crate::json::reader::excerpt;
use crate::json::{Number, Value};
use crate::validation::{Finder, Rule, RuleInfo};

type TraceRecordCheck = fn(&TraceRecord<'_>, &mut Finder<'_>);

/// Rules for every record. TR1 applies to the file and is in `lines.rs`.
pub(super) static RULES: [Rule<TraceRecordCheck>; 10] = [
    Rule {
        info: RuleInfo::error(
            "TR2",
            "The first record is a header, all others are steps or controls, with their required members.",
            "Required members are present, and strings are not empty. The header states a version of \
             the format whose major version is known, a time in UTC, and sha256 and json-c14n-v1, \
             the only supported hash and canonical form. Hashes of states and of the problem are 64 \
             lowercase hex digits. Unknown members are allowed; record hashes cover them.",
        ),
        check: shape,
    },
    Rule {
        info: RuleInfo::error(
            "TR3",
            "index is the number of the record, from 0.",
            "A gap shows that a record was removed, a duplicate that one was inserted. The header may omit it.",
        ),
        check: index,
    },
    Rule {
        info: RuleInfo::error(
            "TR4",
            "record_hash is the hash of the record.",
            "It is the SHA-256, in bare lowercase hex digits, of the canonical record without \
             record_hash. A record whose hash differs was changed after it was written.",
        ),
        check: record_hash,
    },
    Rule {
        info: RuleInfo::error(
            "TR5",
            "prev_hash is the record_hash of the preceding record.",
            "This chains the records: none can be changed, moved or removed without changing all that follow.",
        ),
        check: prev_hash,
    },
    Rule {
        info: RuleInfo::error(
            "TR6",
            "A step begins in the state in which the preceding record ended.",
            "state_before_hash of the first step is the header's initial_state_hash, of every \
             other step the preceding state_after_hash; a control repeats the current state.",
        ),
        check: state,
    },
    Rule {
        info: RuleInfo::error(
            "TR7",
            "A step's result conforms to the StepResult contract.",
            "success has an output and no errors, failed has errors and no output, skipped has neither; \
             versions and timestamps are well-formed; a step does not finish before it started.",
        ),
        check: record::check_result,
    },
    Rule {
        info: RuleInfo::error(
            "TR8",
            "A control record has a known action and a usable stop condition.",
            "control_type is loop; action is repeat, stop or max_iterations_reached; loop_iteration counts from 1; the \
             stop condition compares a path with a string, an integer or a boolean.",
        ),
        check: record::check_control,
    },
    Rule {
        info: RuleInfo::warning(
            "TR9",
            "An output_hash that is a digest is the hash of the output.",
            "The format leaves output_hash to the writer, so this is a warning. In the traces of the original \
                  engine it always holds; where it does not, the output may have been edited.",
        ),
        check: record::output_hash,
    },
    Rule { info: BEGINNING, check: beginning },
    Rule {
        info: RuleInfo::warning(
            "TR11",
            "created_at is a valid date and time.",
            "The format's own tools check the form only, so 2026-02-30T00:00:00Z is \
                  accepted with a warning. Do not rely on it when sorting traces by time.",
        ),
        check: created_at,
    },
];

/// The supported major versions of the format.
const VERSIONS: SupportedMajors = SupportedMajors::new(&["1"]);

/// Members that are hashes of states or of the solved problem. Hashes stated in results are not restricted.
const HASHES: [&str; 5] =
    ["problem_spec_hash", "initial_state_hash", "state_before_hash", "state_after_hash", "state_hash"];

const HEADER: [&str; 8] = [
    "version",
    "engine_version",
    "trace_id",
    "created_at",
    "hash_algorithm",
    "canonicalization",
    "problem_spec_hash",
    "initial_state_hash",
];
const STEP: [&str; 3] = ["state_before_hash", "state_after_hash", "prev_hash"];
const CONTROL: [&str; 6] = ["control_type", "action", "start_step", "end_step", "state_hash", "prev_hash"];

fn shape(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let record_type = record.record_type();
    match (record.position, record_type) {
        (0, Some("header")) | (1.., Some("step" | "control")) => {}
        (0, _) => found.add(record.path("/type"), "the first record must be a header"),
        (_, Some("header")) => found.add(record.path("/type"), "only the first record may be a header"),
        (_, Some(other)) => {
            found.add(record.path("/type"), format!("{} is neither step nor control", excerpt(other)));
        }
        (_, None) => found.add(record.path("/type"), "must be the string step or control"),
    }
    filled_string(record, "record_hash", found);
    hashes(record, found);
    match record_type {
        Some("header") => header(record, found),
        Some("step") => {
            filled_strings(record, &STEP, found);
            integer(record, "step_index", found);
            object(record, "result", found);
        }
        Some("control") => {
            filled_strings(record, &CONTROL, found);
            integer(record, "loop_iteration", found);
            object(record, "stop_condition", found);
        }
        _ => {}
    }
}

fn header(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    filled_strings(record, &HEADER, found);
    let mut expect = |name: &str, holds: fn(&str) -> bool, requirement: &str| {
        if let Some(text) = record.text(name).filter(|text| !text.is_empty() && !holds(text)) {
            found.add(record.path(&format!("/{name}")), format!("{} is not {requirement}", excerpt(text)));
        }
    };
    for name in ["version", "engine_version"] {
        expect(name, is_semver, "a semantic version, like 1.0.0");
    }
    let is_time = |text: &str| matches!(time::read(text), TimestampClass::Real | TimestampClass::Unreal);
    expect("created_at", is_time, "an ISO 8601 time in UTC, like 2026-01-31T12:00:00Z");
    expect("hash_algorithm", |text| text == "sha256", "sha256, the only one supported");
    expect("canonicalization", |text| text == "json-c14n-v1", "json-c14n-v1, the only one supported");
    if let Some(message) =
        record.text("version").filter(|text| is_semver(text)).and_then(|text| VERSIONS.objection(text))
    {
        found.add(record.path("/version"), message);
    }
}

fn hashes(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    for name in HASHES {
        let text = record.text(name).filter(|text| !text.is_empty());
        if let Some(text) = text.filter(|text| digest_of(text).is_none()) {
            let message = format!("{} is not a hash (64 lowercase hex digits)", excerpt(text));
            found.add(record.path(&format!("/{name}")), message);
        }
    }
}

fn beginning(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let Some(before) = record.text("prev_hash").filter(|_| record.is_first()) else { return };
    if !matches!(record.record_type(), Some("step" | "control")) {
        return;
    }
    let index = record.value.get("index").and_then(Value::as_number).and_then(Number::as_i64);
    let which = index.map_or_else(|| "this record".to_owned(), |index| format!("record {index}"));
    let message = format!(
        "the trace's beginning is missing: {which} follows a record with the hash {}, which is missing",
        digest_of(before).map_or_else(|| excerpt(before), |digest| digest.hex())
    );
    found.add(format!("line {}", record.line), message);
}

fn created_at(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let text = record.text("created_at").filter(|_| record.record_type() == Some("header"));
    if let Some(text) = text.filter(|text| time::read(text) == TimestampClass::Unreal) {
        found.add(record.path("/created_at"), format!("{} is not a valid date and time", excerpt(text)));
    }
}

fn filled_strings(record: &TraceRecord<'_>, names: &[&str], found: &mut Finder<'_>) {
    for name in names {
        filled_string(record, name, found);
    }
}

fn filled_string(record: &TraceRecord<'_>, name: &str, found: &mut Finder<'_>) {
    let value = record.value.get(name);
    if value.and_then(Value::as_non_empty_str).is_none() {
        missing_or(record, name, value, "a non-empty string", found);
    }
}

fn integer(record: &TraceRecord<'_>, name: &str, found: &mut Finder<'_>) {
    let value = record.value.get(name);
    if value.and_then(Value::as_number).is_none_or(|number| !number.is_integer()) {
        missing_or(record, name, value, "an integer", found);
    }
}

fn object(record: &TraceRecord<'_>, name: &str, found: &mut Finder<'_>) {
    let value = record.value.get(name);
    if value.and_then(Value::as_object).is_none() {
        missing_or(record, name, value, "an object", found);
    }
}

fn missing_or(
    record: &TraceRecord<'_>,
    name: &str,
    value: Option<&Value<'_>>,
    expected: &str,
    found: &mut Finder<'_>,
) {
    let message = match value {
        None => format!("the required member {name} is missing"),
        Some(value) => format!("must be {expected}, is {}", value.type_name()),
    };
    found.add(record.path(&format!("/{name}")), message);
}

fn index(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let index = record.value.get("index");
    let is_header = record.record_type() == Some("header");
    if is_header && (index.is_none() || record.position > 0) || !record.position_is_known() {
        return;
    }
    let number = index.and_then(Value::as_number);
    if number.and_then(|number| usize::try_from(number.as_i64()?).ok()) != Some(record.position) {
        let position = record.position;
        let message = match (index, number) {
            (None, _) => format!("missing; it must be {position}"),
            (Some(_), Some(_)) => format!("is not {position}, the position of the record from 0"),
            (Some(other), None) => format!("must be the number {position}, is {}", other.type_name()),
        };
        found.add(record.path("/index"), message);
    }
}

fn record_hash(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let Some(declared) = record.value.get("record_hash").and_then(Value::as_non_empty_str) else {
        return;
    };
    let actual = record.hash.hex();
    if declared != actual {
        found.add(record.path("/record_hash"), format!("is not the hash of the record, which is {actual}"));
    }
}

fn prev_hash(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    if record.record_type() == Some("header") {
        return;
    }
    follows(record, "prev_hash", record.previous_hash(), "the record_hash of the preceding record", found);
}

fn state(record: &TraceRecord<'_>, found: &mut Finder<'_>) {
    let name = match record.record_type() {
        Some("step") => "state_before_hash",
        Some("control") => "state_hash",
        _ => return,
    };
    follows(record, name, record.state(), "the state in which the preceding record ended", found);
}

fn follows(
    record: &TraceRecord<'_>,
    name: &str,
    expected: Option<&str>,
    meaning: &str,
    found: &mut Finder<'_>,
) {
    if let (Some(declared), Some(expected)) = (record.text(name).filter(|text| !text.is_empty()), expected)
        && declared != expected
    {
        found.add(record.path(&format!("/{name}")), format!("is not {meaning}, {}", excerpt(expected)));
    }
}
