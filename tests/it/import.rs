//! Import of the recordings of other programs, and export in their formats.
//!
//! The files in tests/import were made by the programs themselves, with tests/import/make.py.

mod cases;
#[cfg(feature = "gateway")]
mod programs;

use std::io::Write;
use std::path::PathBuf;

use proptest::prelude::*;
use runvault::recorders::{ConvertInput, ConvertOptions, RecorderFormat, convert};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository};

/// The files of a format, the numbers of their calls and of their sessions and run packs.
const FILES: &[(&str, &str, u64, usize)] = &[
    ("vcr", "vcr.yaml", 5, 2),
    ("vcr", "vcr.json", 5, 2),
    ("vcr", "vcr-encoded.yaml", 2, 2),
    ("jsonl", "pairs.jsonl", 3, 2),
    ("otel", "otel.jsonl", 5, 2),
    ("otel", "otel-protobuf.json", 5, 2),
    ("otel", "otel.binpb", 5, 2),
    ("otel", "otel-events.jsonl", 4, 2),
    ("otel", "otel-anthropic.jsonl", 5, 2),
    ("otel", "otel-gemini.jsonl", 3, 2),
    ("otel", "otel-genai.jsonl", 5, 2),
    ("otel", "otel-openinference.jsonl", 8, 2),
    ("otel", "otel-semconv.jsonl", 4, 2),
    ("otel", "otel-litellm.jsonl", 6, 4),
    ("otel", "otel-litellm-openinference.jsonl", 6, 2),
    ("otel", "otel-ai-sdk.json", 7, 2),
    ("otel", "otel-ai-sdk-7.json", 6, 2),
    ("vcr", "vcr-mapping.yaml", 2, 2),
    ("vcr", "vcr-mapping.json", 2, 2),
    ("vcr", "pydantic-ai.yaml", 4, 2),
    ("go-vcr", "go-vcr.yaml", 4, 2),
    ("har", "polly.har", 2, 2),
    ("har", "mitmproxy.har", 2, 2),
    ("datadog", "datadog.json", 1, 2),
    ("datadog", "datadog-stream.json", 1, 2),
    ("inspect", "inspect-mock.json", 3, 4),
    ("inspect", "inspect-mock.eval", 3, 4),
    ("inspect", "inspect-openai.eval", 4, 4),
];

/// The key that the clients sent.
const KEY: &str = "sk-not-a-key";

fn file(name: &str) -> PathBuf {
    repository("tests/import").join(name)
}

fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Imports files, and returns the lines of the report.
fn import(sandbox: &Sandbox, files: &[&str], options: &[&str]) -> Vec<Value> {
    let files = files.iter().map(|name| file(name).into_os_string());
    let arguments = ["import", "--create", "--json"].iter().chain(options).map(Into::into).chain(files);
    lines(&sandbox.run(arguments.collect::<Vec<std::ffi::OsString>>()).expect(0).stdout)
}

fn cores(lines: &[Value], kind: &str) -> Vec<String> {
    let of_kind = lines.iter().filter(|line| line["kind"] == kind);
    of_kind.map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn files_of_the_real_programs_become_linked_artifacts() {
    for (format, name, calls, documents) in FILES {
        let bytes = std::fs::read(file(name)).unwrap();
        assert_eq!(RecorderFormat::recognize(&bytes).map(RecorderFormat::name), Some(*format), "{name}");
        let input = ConvertInput { name: (*name).to_owned(), bytes };
        let converted = convert(vec![input], &ConvertOptions::default()).remove(0).unwrap();
        assert_eq!(converted.calls, *calls, "{name}: {:?}", converted.unmapped);

        let sandbox = Sandbox::without_vault();
        let report = import(&sandbox, &[name], &[]);
        let originals = cores(&report, "attachment");
        let [sessions, packs] = ["model_io", "rpk"].map(|kind| cores(&report, kind));
        // Each trace has an original of its own.
        let expected = if *format == "otel" { packs.len() } else { 1 };
        let found = (originals.len(), sessions.len() + packs.len());
        assert_eq!(found, (expected, *documents), "{name}: {report:?}");
        for core in sessions.iter().chain(&packs) {
            let document = sandbox.run(["get", core]).expect(0).stdout;
            let has_original = originals.iter().any(|original| document.contains(original));
            assert!(has_original && !document.contains(KEY), "{name}: {document}");
            let links = sandbox.run(["links", core]).expect(0).stdout;
            assert!(links.contains("references") && links.contains("replays"), "{name}: {links}");
        }
        // The same file gives the same hashes.
        let again = import(&sandbox, &[name], &[]);
        assert!(
            again.iter().all(|line| ["present", "not_mapped", "assumed"].contains(&line["outcome"].as_str().unwrap()))
        );
        assert_eq!([cores(&again, "model_io"), cores(&again, "rpk")], [sessions, packs], "{name}");
        sandbox.run(["fsck"]).expect(0);
    }
}

/// The prompts and answers of the calls of a file, and the reasons for what is not mapped.
fn calls(name: &str) -> (Vec<(String, String)>, Vec<String>) {
    let sandbox = Sandbox::without_vault();
    let report = import(&sandbox, &[name], &[]);
    let mut found = Vec::new();
    for core in cores(&report, "rpk") {
        let pack: Value = serde_json::from_str(&sandbox.run(["get", &core]).expect(0).stdout).unwrap();
        let steps = pack["payload"]["run"]["steps"].as_array().unwrap().clone();
        found.extend(steps.chunks(2).map(|call| (call[0].to_string(), call[1].to_string())));
    }
    let reasons = report.iter().filter(|line| line["outcome"] == "not_mapped");
    (found, reasons.map(|line| line["reason"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn spans_of_other_programs_state_all_that_they_have() {
    let (found, reasons) = calls("otel-ai-sdk.json");
    let has = |index: usize, request: &str, response: &str| {
        let (asked, answered) = &found[index];
        assert!(asked.contains(request) && answered.contains(response), "{index}: {asked} {answered}");
    };
    has(0, r#""temperature":0.5"#, "echo: ");
    has(2, r#""function":{"description":"Tells the weather""#, "call-1");
    has(3, r#""tool_call_id":"call-1""#, "rain");
    has(4, r#""input":["hello"]"#, "[0.5,1.5]");
    has(5, "fail", "slow down");
    assert_eq!(reasons.iter().filter(|reason| reason.contains("ai.generateText)")).count(), 3, "{reasons:?}");
    let (found, _) = calls("otel-ai-sdk-7.json");
    for (index, request, response) in [
        (0, r#""temperature":0.5"#, "echo: "),
        (2, r#""function":{"description":"Tells the weather""#, "call-1"),
        (3, r#""tool_call_id":"call-1""#, "rain"),
        (4, "fail", "slow down"),
    ] {
        assert!(found[index].0.contains(request) && found[index].1.contains(response), "{:?}", found[index]);
    }
    let (found, reasons) = calls("otel-litellm-openinference.jsonl");
    assert!(found[3].0.contains(r#""tool_call_id":"call-1""#) && found[3].0.contains(r#""model":"m-1""#));
    assert!(
        found[4].0.contains(r#""input":["hello"]"#) && found[4].1.contains("[0.5,1.5]"),
        "{:?}",
        found[4]
    );
    assert_eq!(reasons, ["the span is not a call of a model"]);
    let (found, reasons) = calls("otel-litellm.jsonl");
    assert!(
        found
            .iter()
            .any(|(asked, answered)| asked.contains("hello") && answered.contains("text/event-stream"))
    );
    assert!(
        reasons
            .iter()
            .any(|reason| reason.ends_with("it repeats the request of the span that it is inside of"))
    );
    let (_, reasons) = calls("otel-semconv.jsonl");
    for reason in [
        "a call of the Responses API, imported as a chat completion",
        "the span is not a call of a model: it runs a tool, whose result is in the next request to the model (weather)",
        "the span is not a call of a model: it runs an agent (clerk); its calls of models have spans of their own",
    ] {
        assert!(reasons.iter().any(|found| found == reason), "{reason}: {reasons:?}");
    }
}

#[test]
fn recordings_of_http_state_all_that_they_have() {
    for name in ["polly.har", "mitmproxy.har"] {
        let (found, reasons) = calls(name);
        assert!(
            found[0].1.contains("\"latency_ms\"") && found[1].1.contains("text/event-stream"),
            "{found:?}"
        );
        assert!(found.iter().all(|(asked, _)| asked.contains("\"timestamp\"")), "{found:?}");
        let listed =
            reasons.iter().any(|reason| reason.starts_with("these headers are not mapped: authorization"));
        assert!(listed, "{reasons:?}");
    }
    let (_, reasons) = calls("polly.har");
    assert!(reasons.contains(&"requests with GET are not calls of a model".to_owned()), "{reasons:?}");
    let (found, reasons) = calls("go-vcr.yaml");
    assert!(found[0].1.contains("\"latency_ms\":6") && found[0].1.contains("hello \\\\u00e4"), "{found:?}");
    assert!(found[0].0.contains("2026-11-29T20:41:45"), "{found:?}");
    assert!(found[1].1.contains(r#""assembled_text":"echo: "#), "{found:?}");
    assert!(found[2].1.contains("\"status_code\":429") && found[2].1.contains("slow down"), "{found:?}");
    // It was compressed.
    assert!(found[3].1.contains("hello"), "{found:?}");
    assert!(reasons.contains(&"requests with GET are not calls of a model".to_owned()), "{reasons:?}");
    let (found, _) = calls("pydantic-ai.yaml");
    assert!(found[0].0.contains("Tells the weather") && found[0].1.contains("tool_calls"), "{found:?}");
    assert!(found[1].0.contains("rain in Paris") && found[1].1.contains("echo: "), "{found:?}");
    assert!(found[3].1.contains("text/event-stream") && found[3].1.contains("echo: "), "{found:?}");
    for (name, form) in [("datadog.json", "application/json"), ("datadog-stream.json", "text/event-stream")] {
        assert!(calls(name).0[0].1.contains(form), "{name}");
    }
}

#[test]
fn yaml_and_json_cassettes_have_the_same_calls() {
    let sandbox = Sandbox::without_vault();
    // YAML 1.1 has other rules for scalars than JSON, which matters in requests that are mappings.
    for names in [["vcr.yaml", "vcr.json"], ["vcr-mapping.yaml", "vcr-mapping.json"]] {
        let [yaml, json] = names.map(|name| cores(&import(&sandbox, &[name], &[]), "model_io"));
        assert_eq!(yaml, json);
    }
}

/// Returns messages as the file exporter of the collector of OpenTelemetry writes them: each after its length.
fn framed<'m>(messages: impl IntoIterator<Item = &'m [u8]>) -> Vec<u8> {
    let with_length =
        |message: &[u8]| [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat();
    messages.into_iter().flat_map(with_length).collect()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_same_spans_are_the_same_artifacts_however_they_were_exported() {
    let [lines, json, protobuf] =
        ["otel.jsonl", "otel-protobuf.json", "otel.binpb"].map(|name| std::fs::read(file(name)).unwrap());
    let each_line = || lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let reversed: Vec<u8> =
        each_line().collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(&b'\n');
    let packed: Vec<Vec<u8>> = each_line().map(|line| zstd::encode_all(line, 1).unwrap()).collect();
    let forms = [
        ("otel.jsonl.gz", gzipped(&lines)),
        ("otel.json", json),
        ("otel.binpb.gz", gzipped(&protobuf)),
        ("framed.binpb", framed([protobuf.as_slice()])),
        ("framed.json", framed(each_line())),
        ("framed.json.zst", framed(packed.iter().map(Vec::as_slice))),
        ("otel.binpb", protobuf),
        ("reversed.jsonl", reversed),
        ("otel.jsonl", lines.clone()),
    ];
    let imported = |name: &str, bytes: &[u8]| {
        let sandbox = Sandbox::without_vault();
        let path = sandbox.path(name);
        std::fs::write(&path, bytes).unwrap();
        let arguments = ["import".into(), "--create".into(), "--json".into(), path.into_os_string()];
        let report = self::lines(&sandbox.run(arguments).expect(0).stdout);
        let found = ["attachment", "model_io", "rpk"].map(|kind| cores(&report, kind));
        assert!(found.iter().all(|cores| cores.len() == 1), "{name}: {report:?}");
        let original = sandbox.run(["get", &found[0][0]]).expect(0).stdout;
        (found, original)
    };
    let expected = imported("otel.jsonl", &lines);
    for (name, bytes) in forms {
        assert_eq!(imported(name, &bytes), expected, "{name}");
    }
    // The original is a file of spans as well.
    assert_eq!(imported("original.jsonl", expected.1.as_bytes()), expected);
}

#[test]
fn what_is_not_mapped_is_listed() {
    let sandbox = Sandbox::without_vault();
    let report = import(&sandbox, &["vcr-encoded.yaml"], &[]);
    let listed: Vec<String> = report
        .iter()
        .filter(|line| line["outcome"] == "not_mapped")
        .map(|line| format!("{}: {}", line["location"].as_str().unwrap(), line["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        listed,
        [
            "interactions: these headers are not mapped: authorization, server, user-agent, x-test",
            "interactions[1]: requests with GET are not calls of a model",
            "interactions[2]: /binary is not the path of a known API",
        ]
    );
    let printed = sandbox.run(["import".into(), file("vcr-encoded.yaml").into_os_string()]).expect(0).stderr;
    assert!(printed.contains("not mapped") && printed.contains("interactions[2]"), "{printed}");
}

#[test]
fn calls_without_a_time_are_mapped() {
    let sandbox = Sandbox::without_vault();
    let call = |content: &str| {
        json!({"request": {"model": "m", "messages": [{"role": "user", "content": content}]},
               "response": {"object": "chat.completion", "choices": [{"message": {"content": "b"}}]}})
    };
    std::fs::write(sandbox.path("calls.jsonl"), format!("{}\n{}\n", call("a"), call("b"))).unwrap();
    let import = ["import", "--create", "calls.jsonl"];
    let printed = sandbox.run(import).expect(0).stderr;
    assert!(printed.contains("assumed calls.jsonl: line 1: the file does not state the time"), "{printed}");
    assert!(printed.contains("jsonl: 2 calls in 1 run; 0 entries not mapped"), "{printed}");
    let lines = sandbox.run(import.into_iter().chain(["--json"])).expect(0).json();
    assert_eq!(lines.iter().filter(|line| line["outcome"] == "assumed").count(), 1);
}

#[test]
fn requests_and_responses_of_a_batch_are_given_together() {
    let sandbox = Sandbox::without_vault();
    let report = import(&sandbox, &["batch-output.jsonl", "batch-input.jsonl"], &[]);
    assert_eq!((cores(&report, "attachment").len(), cores(&report, "rpk").len()), (2, 1));
    let other = import(&sandbox, &["batch-input.jsonl", "batch-output.jsonl"], &[]);
    assert_eq!(cores(&other, "rpk"), cores(&report, "rpk"));
    let alone = sandbox.run(["import".into(), file("batch-input.jsonl").into_os_string()]).expect(1).stderr;
    assert!(alone.contains("there is no response to this request"), "{alone}");
}

#[test]
fn the_original_is_left_out_on_request() {
    let sandbox = Sandbox::without_vault();
    let report = import(&sandbox, &["vcr.yaml"], &["--no-original", "--redact", "hello"]);
    assert_eq!(cores(&report, "attachment"), Vec::<String>::new());
    for core in cores(&report, "model_io").iter().chain(&cores(&report, "rpk")) {
        let document = sandbox.run(["get", core]).expect(0).stdout;
        assert!(document.contains("[REDACTED]") && !document.contains("hello"), "{document}");
    }
    let path = file("vcr.yaml").into_os_string();
    let refused = sandbox.run(["import".into(), "--redact=hello".into(), path]).expect(3);
    assert!(refused.stderr.contains("--no-original"), "{}", refused.stderr);
}

#[test]
fn damaged_files_are_rejected_with_their_location() {
    let sandbox = Sandbox::without_vault();
    let cassette = std::fs::read_to_string(file("vcr.yaml")).unwrap();
    let damaged = cassette.replacen("    method: POST\n", "", 1);
    for (name, text, expected) in [
        (
            "a.yaml",
            damaged.as_str(),
            "interactions[0].request: the required member method is missing (rule IM3)",
        ),
        ("b.json", "{\"version\":1,\"interactions\":[}", "line 1 column 30:"),
        (
            "c.json",
            "{\"resourceSpans\":{}}",
            "line 1.resourceSpans: must be an array, is an object (rule IM3)",
        ),
    ] {
        let path = sandbox.path(name);
        std::fs::write(&path, text).unwrap();
        let refused = sandbox.run(["import".into(), "--create".into(), path.into_os_string()]).expect(1);
        assert!(refused.stderr.contains(name) && refused.stderr.contains(expected), "{}", refused.stderr);
    }
    let path = sandbox.path("d.yaml");
    std::fs::write(&path, &cassette).unwrap();
    let refused = sandbox.run(["import".into(), "--max-size=1KiB".into(), path.into_os_string()]).expect(1);
    assert!(refused.stderr.contains("(rule IM2); raise the limit with --max-size"), "{}", refused.stderr);
}

#[test]
fn files_that_are_no_recordings_are_named_as_such() {
    let sandbox = Sandbox::without_vault();
    for (name, text, expected) in [
        (
            "notes.txt",
            "hello\n",
            "is neither a bundle nor a recording of VCR.py, go-vcr, Datadog, Inspect, OpenTelemetry or",
        ),
        ("empty.jsonl", "\n", "is empty"),
    ] {
        let path = sandbox.write(name, text).into_os_string();
        let refused = sandbox.run(["import".into(), "--create".into(), path]).expect(1).stderr;
        assert!(refused.contains(name) && refused.contains(expected), "{refused}");
    }
    let cut_off =
        sandbox.write("cut.jsonl.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab").into_os_string();
    let refused = sandbox.run(["import".into(), "--create".into(), cut_off]).expect(1).stderr;
    assert!(refused.contains("cut.jsonl.gz: its gzip data is damaged: "), "{refused}");
    let refused = sandbox.run_on(b"{}", &["import", "--create", "-"]).expect(1).stderr;
    assert!(refused.contains("error: - is neither a bundle"), "{refused}");
}

#[test]
fn exported_calls_are_imported_as_the_same_session() {
    let sandbox = Sandbox::without_vault();
    let report = import(&sandbox, &["vcr.yaml"], &[]);
    let [sessions, packs] = ["model_io", "rpk"].map(|kind| cores(&report, kind));
    let files = [("vcr", "again.yaml"), ("jsonl", "again.jsonl")];
    for (format, name) in files {
        let path = sandbox.path(name);
        let arguments =
            ["export".as_ref(), packs[0].as_ref(), "--as".as_ref(), format.as_ref(), "-o".as_ref()];
        sandbox.run(arguments.into_iter().chain([path.as_os_str()])).expect(0);
    }
    // A session, a tag of it and a label of both are as good as the run pack.
    sandbox.run(["tag", "set", &sessions[0], "asked"]).expect(0);
    for core in [&sessions[0], &packs[0]] {
        sandbox.run(["label", "set", core, "job=7"]).expect(0);
    }
    let written = std::fs::read_to_string(sandbox.path("again.yaml")).unwrap();
    for named in [&[sessions[0].as_str()][..], &["@asked"], &["latest"], &["--label", "job=7"]] {
        let arguments = ["export"].iter().chain(named).chain(&["--as", "vcr", "-o", "-"]);
        assert_eq!(sandbox.run(arguments).expect(0).stdout, written, "{named:?}");
    }
    let original = cores(&report, "attachment");
    let refused = sandbox.run(["export", &original[0], "--as", "vcr", "-o", "-"]).expect(1);
    assert!(refused.stderr.contains("nor the session of one"), "{}", refused.stderr);
    for (format, name) in files {
        let path = sandbox.path(name).into_os_string();
        let again = sandbox.run(["import".into(), "--json".into(), path]).expect(0);
        assert_eq!(cores(&lines(&again.stdout), "model_io"), sessions, "{format}");
    }
    // Each of the files is a run pack of its own with the same session.
    let refused = sandbox.run(["export", &sessions[0], "--as", "vcr", "-o", "-"]).expect(1);
    assert!(refused.stderr.contains("the session of 3 run packs; name one"), "{}", refused.stderr);
}

/// Converts anything: a panic is a defect, an error is not.
fn converts(bytes: Vec<u8>) {
    let input = ConvertInput { name: "any".to_owned(), bytes };
    if let Ok(converted) = convert(vec![input], &ConvertOptions::default()).remove(0) {
        assert!(converted.into_items().all(|item| item.is_ok()));
    }
}

/// JSON with the members that the formats have.
fn json() -> impl Strategy<Value = Value> {
    let names = vec![
        "interactions",
        "version",
        "request",
        "response",
        "body",
        "string",
        "headers",
        "status",
        "code",
        "method",
        "uri",
        "custom_id",
        "url",
        "status_code",
        "error",
        "messages",
        "model",
        "resourceSpans",
        "scopeSpans",
        "spans",
        "attributes",
        "key",
        "value",
        "stringValue",
        "traceId",
        "spanId",
        "events",
        "name",
        "log",
        "entries",
        "postData",
        "text",
        "encoding",
        "time",
        "parentSpanId",
        "intValue",
        "eval",
        "task",
        "samples",
        "id",
        "event",
        "input",
        "input_refs",
        "output",
        "choices",
        "message",
        "role",
        "content",
        "events_data",
        "tool_calls",
        "!!binary",
        "x",
    ];
    let texts = vec![
        "POST",
        "https://api.openai.com/v1/chat/completions",
        "{\"model\":\"m\"}",
        "model",
        "gzip",
        "1",
        "gen_ai.request.model",
        "gen_ai.input.messages",
        "41bd20076d7f94aa2214df7fe4044a2e",
        "7f2372eafeab7b17",
        "content-encoding",
        "\u{e4}\u{1f600}\u{85}",
        "",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u64..300).prop_map(Value::from),
        prop::sample::select(texts).prop_map(Value::from),
    ];
    let name = prop::sample::select(names).prop_map(str::to_owned);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..7).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Changes a value somewhere in a document.
fn changed(document: &mut Value, path: &[prop::sample::Index], with: &Value) {
    let inside: Vec<&mut Value> = match document {
        Value::Array(elements) => elements.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => Vec::new(),
    };
    match (path.split_first(), inside.len()) {
        (Some((index, rest)), count) if count > 0 => {
            let index = index.index(count);
            changed(inside.into_iter().nth(index).unwrap(), rest, with);
        }
        _ => *document = with.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_json_and_yaml_is_read_without_panic(value in json(), text in "[ \\-a-z:!\"'\\[\\]{}\\n&*|>0-9]{0,80}") {
        converts(value.to_string().into_bytes());
        for begin in ["interactions:\n", "interactions: []\nversion: 1\n", "version: 1\ninteractions:\n- "] {
            converts(format!("{begin}{text}\n").into_bytes());
            converts(format!("{begin}{value}\n").into_bytes());
        }
    }

    #[test]
    fn changed_files_are_read_without_panic(
        number in any::<prop::sample::Index>(),
        path in prop::collection::vec(any::<prop::sample::Index>(), 1..9),
        with in json(),
        cut in any::<prop::sample::Index>(),
    ) {
        let names = [
            "vcr.json", "pairs.jsonl", "otel.jsonl", "otel-events.jsonl", "otel-ai-sdk.json", "otel-ai-sdk-7.json", "otel-litellm.jsonl",
            "polly.har", "datadog.json", "inspect-mock.json",
        ];
        let text = std::fs::read_to_string(file(names[number.index(names.len())])).unwrap();
        let begin = if text.lines().next().is_some_and(|line| line.len() > 1) { text.lines().next().unwrap() } else { &text };
        let mut document: Value = serde_json::from_str(begin).unwrap();
        changed(&mut document, &path, &with);
        converts(document.to_string().into_bytes());
        let bytes = text.as_bytes();
        converts(bytes[..cut.index(bytes.len())].to_vec());
        for name in ["inspect-mock.eval", "otel.binpb"] {
            let binary = std::fs::read(file(name)).unwrap();
            converts(binary[..cut.index(binary.len())].to_vec());
            converts(framed([binary.as_slice(), b"{}"])[..cut.index(binary.len())].to_vec());
            let mut damaged = binary;
            let at = cut.index(damaged.len());
            damaged[at] ^= 1 << path[0].index(8);
            converts(damaged);
        }
    }
}
