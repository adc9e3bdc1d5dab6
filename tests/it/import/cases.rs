//! Files that are easily misread, in `tests/import/cases`: each states what is imported of it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{cores, lines};
use crate::sandbox::{Ran, Sandbox, repository};

fn case(name: &str) -> PathBuf {
    repository("tests/import/cases").join(name)
}

fn import(sandbox: &Sandbox, names: &[&str], options: &[&str]) -> Ran {
    let files = names.iter().map(|name| case(name).into_os_string());
    let arguments = ["import", "--create", "--json"].iter().chain(options).map(Into::into).chain(files);
    sandbox.run(arguments.collect::<Vec<std::ffi::OsString>>())
}

/// An import of a file: the steps of its run pack, and what is listed.
struct Imported {
    sandbox: Sandbox,
    steps: Vec<Value>,
    listed: Vec<String>,
}

/// Imports a file of one run.
fn imported(name: &str) -> Imported {
    let sandbox = Sandbox::without_vault();
    let report = lines(&import(&sandbox, &[name], &[]).expect(0).stdout);
    let pack = sandbox.run(["get", &cores(&report, "rpk")[0]]).expect(0).stdout;
    let pack: Value = serde_json::from_str(&pack).unwrap();
    let listed = report.iter().filter(|line| line["outcome"] == "not_mapped");
    let listed = listed.map(|line| line["reason"].as_str().unwrap().to_owned()).collect();
    Imported { sandbox, steps: pack["payload"]["run"]["steps"].as_array().unwrap().clone(), listed }
}

impl Imported {
    /// Returns an attribute of the run pack, or of the session.
    fn attribute(&self, name: &str) -> Option<String> {
        let query = format!("SELECT value FROM attributes WHERE name = '{name}'");
        let rows = self.sandbox.run(["sql", "--json", &query]).expect(0).json();
        rows.first().map(|row| row["value"].as_str().unwrap().to_owned())
    }

    fn request(&self) -> &Value {
        &self.steps[0]["input"]["payload"]
    }

    fn output(&self) -> &Value {
        &self.steps[1]["output"]
    }
}

/// Returns the time of creation of the run of a file.
fn created_at(name: &str) -> String {
    imported(name).attribute("created_at").unwrap()
}

/// Returns why a file is not imported.
fn refused(name: &str) -> String {
    let sandbox = Sandbox::without_vault();
    let ran = import(&sandbox, &[name], &[]).expect(1);
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn a_response_whose_body_is_not_stated_is_not_an_empty_answer() {
    for name in ["response-no-body.json", "response-null-body.json"] {
        let refused = refused(name);
        assert!(refused.contains("the file does not state the body of the response"), "{refused}");
    }
    for name in ["response-parsed-body.json", "response-both-parsed.json"] {
        let imported = imported(name);
        assert_eq!(imported.output()["assembled_text"], "Hi there.", "{name}");
        assert_eq!(imported.request()["messages"][0]["content"], "Hello?", "{name}");
    }
}

#[test]
fn runs_without_a_time_are_not_removed_because_of_it() {
    let sandbox = Sandbox::without_vault();
    import(&sandbox, &["undated-batch.jsonl"], &[]).expect(0);
    let ran = sandbox.run(["forget", "--by", "created", "--keep-within", "90d", "--dry-run"]).expect(0);
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    assert!(printed.contains("0 artifacts to be removed"), "{printed}");
    assert!(printed.contains("3 artifacts kept as undated"), "{printed}");
    let imported = imported("undated-batch.jsonl");
    assert_eq!(imported.attribute("created_at"), None);
    assert_eq!(imported.steps[0].get("timestamp"), None);
    // The response of a cassette states when it was made.
    assert_eq!(created_at("undated-cassette.json"), "2025-05-13T14:54:09.000Z");
}

#[test]
fn dates_of_all_forms_are_read() {
    for name in ["date-asctime.json", "date-wrong-weekday.json", "date-utc.json"] {
        assert_eq!(created_at(name), "2025-05-13T14:54:09.000Z", "{name}");
    }
}

#[test]
fn only_named_members_of_envelopes_are_bodies() {
    for name in ["envelope-request-json.jsonl", "envelope-request-data.jsonl", "envelope-response-json.jsonl"]
    {
        let imported = imported(name);
        let steps = json!(imported.steps).to_string();
        assert!(!steps.contains("not-a-real"), "{name}: {steps}");
        assert_eq!(imported.request()["messages"][0]["content"], "Hello?", "{name}");
        assert_eq!(imported.output()["assembled_text"], "Hi there.", "{name}");
    }
}

#[test]
fn each_choice_of_a_stream_has_its_text() {
    for name in [
        "choices-chat-alternating.json",
        "choices-completions-alternating.json",
        "choices-chat-one-chunk.json",
    ] {
        let imported = imported(name);
        assert_eq!(imported.output()["assembled_text"], json!(["Not now.", "Yes sure."]), "{name}");
        imported.sandbox.run(["index", "build"]).expect(0);
        for word in ["now", "sure"] {
            let hits = imported.sandbox.run(["search", word]).expect(0).stdout;
            assert!(hits.contains("Not now.") || hits.contains("Yes sure."), "{hits}");
        }
    }
    assert_eq!(imported("split-surrogate-pair.json").output()["assembled_text"], "\u{1f600} ok");
    for name in ["stream-without-type-openai.json", "stream-without-type-gemini.json"] {
        assert_eq!(imported(name).output()["assembled_text"], "Hello", "{name}");
    }
}

#[test]
fn tokens_of_streams_are_counted() {
    for (name, tokens) in [
        ("tokens-openai-mixed.json", ["1009", "403"]),
        ("tokens-openai-stream.json", ["1000", "400"]),
        ("tokens-gemini-stream.json", ["1000", "400"]),
        ("span-exported-twice.jsonl", ["412", "27"]),
    ] {
        let imported = imported(name);
        let found = ["tokens_input", "tokens_output"].map(|name| imported.attribute(name));
        assert_eq!(found, tokens.map(|count| Some(count.to_owned())), "{name}");
    }
}

#[test]
fn errors_at_status_200_are_errors() {
    for name in [
        "failed-anthropic-error-event.json",
        "failed-gemini-error-chunk.json",
        "failed-responses-failed.json",
        "failed-openai-no-end.json",
    ] {
        let imported = imported(name);
        assert_eq!(imported.attribute("errors").as_deref(), Some("1"), "{name}");
        assert_eq!(imported.output().get("assembled_text"), None, "{name}");
    }
}

#[test]
fn latencies_that_are_not_stated_are_absent() {
    let imported = imported("good-1.json");
    assert_eq!(imported.attribute("latency_ms"), None);
    assert_eq!(imported.steps[1]["metadata"].get("latency_ms"), None);
}

#[test]
fn tools_and_stop_sequences_of_spans_are_mapped() {
    for name in ["span-function-call-beside-messages.json", "span-legacy-function-call.json"] {
        let imported = imported(name);
        let body: Value = serde_json::from_str(imported.output()["content"].as_str().unwrap()).unwrap();
        let call = &body["choices"][0]["message"]["tool_calls"][0]["function"];
        assert_eq!(*call, json!({"name": "track", "arguments": "{\"id\":\"A-1\"}"}), "{name}");
    }
    assert_eq!(imported("span-legacy-stop-sequences.json").request()["stop"], json!(["Observation:"]));
    let imported_ai_sdk = imported("span-ai-sdk.json");
    assert_eq!(imported_ai_sdk.request()["messages"][0]["content"], "Where is my parcel?");
    assert_eq!(imported_ai_sdk.output()["assembled_text"], "On its way.");
    assert!(refused("span-truncated.json").contains("gen_ai.output.messages is not JSON: it was cut off"));
}

#[test]
fn logs_of_inspect_of_all_versions_are_read_or_refused_by_name() {
    for (name, answer) in [
        ("inspect-transcript.json", "blue"),
        ("inspect-transcript-content.json", "blue, very blue"),
        ("inspect-nan-metric.json", "blue"),
        ("inspect-nan-score.eval", "blue"),
        ("inspect-infinity.eval", "blue"),
    ] {
        assert_eq!(imported(name).output()["assembled_text"], answer, "{name}");
    }
    for name in ["inspect-3-chunked.eval", "inspect-3-mixed.eval"] {
        let refused = refused(name);
        assert!(refused.contains("version") && refused.contains("not supported"), "{refused}");
    }
}

/// Inspect names the file of a sample by its id.
#[test]
fn samples_with_slashes_in_their_ids_are_read() {
    let sandbox = Sandbox::without_vault();
    let report = lines(&import(&sandbox, &["inspect-ids-with-slashes.eval"], &[]).expect(0).stdout);
    assert_eq!(cores(&report, "rpk").len(), 3, "{report:?}");
}

/// The thoughts of a model are not its answer, and the span around a call contains one.
#[test]
fn a_call_in_the_form_of_openinference_says_what_the_model_said() {
    let imported = imported("span-openinference-reasoning.json");
    assert_eq!(imported.output()["assembled_text"], "On its way.");
    let [reason] = &imported.listed[..] else { panic!("{:?}", imported.listed) };
    assert!(reason.ends_with("its calls of models have spans of their own"), "{reason}");
}

#[test]
fn an_error_of_a_tool_is_one_of_its_run() {
    let imported = imported("inspect-tool-error.json");
    let attributes = ["tool_calls", "errors", "error"].map(|name| imported.attribute(name).unwrap());
    assert_eq!(attributes, ["2", "1", "no such city"]);
}

#[test]
fn the_api_follows_the_path() {
    for (name, endpoint) in
        [("openai-path-chat.json", "chat.completions"), ("openai-path-embeddings.json", "embeddings")]
    {
        let imported = imported(name);
        let input = &imported.steps[0]["input"];
        assert_eq!((&input["provider"], &input["endpoint"]), (&json!("openai"), &json!(endpoint)), "{name}");
    }
}

#[test]
fn yaml_that_the_program_loads_is_read() {
    for name in ["yaml-indent.yaml", "yaml-istr-apply.yaml", "yaml-no-version.yaml"] {
        let imported = imported(name);
        assert_eq!(imported.request()["messages"][0]["content"], "Hello?", "{name}");
        assert_eq!(imported.output()["assembled_text"], "Hi.", "{name}: {:?}", imported.listed);
    }
}

#[test]
fn a_bad_file_does_not_keep_others_from_being_imported() {
    let sandbox = Sandbox::without_vault();
    let ran = import(&sandbox, &["good-1.json", "nock.json", "good-2.json"], &[]).expect(1);
    assert_eq!(cores(&lines(&ran.stdout), "rpk").len(), 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("nock.json: a fixture of nock"), "{}", ran.stderr);
    assert_eq!(imported("go-vcr-2.json").output()["assembled_text"], "Hi there.");
    for options in [&[][..], &["--no-original"]] {
        let refused = import(&sandbox, &["utf-16.json"], options).expect(1).stderr;
        assert!(refused.contains("utf-16.json: the text is not UTF-8, but UTF-16"), "{refused}");
    }
    let ran = import(&sandbox, &["utf-16.json", "good-1.json", "missing.json"], &[]).expect(2);
    assert!(ran.stderr.contains("UTF-16") && ran.stderr.contains("cannot read"), "{}", ran.stderr);
    assert_eq!(cores(&lines(&ran.stdout), "rpk").len(), 1, "{}", ran.stdout);
}

#[test]
fn requests_of_other_apis_are_generic_calls() {
    let sandbox = Sandbox::without_vault();
    let call = |url: &str, body: Value, response: Value| {
        json!({"request": {"url": url, "body": body}, "response": {"status_code": 200, "body": response}})
            .to_string()
    };
    let calls = [
        call(
            "http://localhost:11434/api/chat",
            json!({"model": "m"}),
            json!({"message": {"content": "from ollama"}}),
        ),
        call(
            "https://api.cohere.com/v2/chat?token=CANARY",
            json!({"model": "m"}),
            json!({"message": {"content": [{"type": "text", "text": "from cohere"}]}}),
        ),
        call(
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/x.y/converse",
            json!({"messages": []}),
            json!({"output": {"message": {"content": [{"text": "from bedrock"}]}}, "usage": {"inputTokens": 3, "outputTokens": 2}}),
        ),
        call(
            "https://api.openai.com/v1/moderations",
            json!({"input": "x"}),
            json!({"results": [{"flagged": false}]}),
        ),
        call(
            "https://api.anthropic.com/v1/complete",
            json!({"prompt": "x"}),
            json!({"completion": "from complete"}),
        ),
    ];
    std::fs::write(sandbox.path("calls.jsonl"), calls.join("\n")).unwrap();
    let report = sandbox.run(["import", "--create", "--json", "calls.jsonl"]).expect(0).stdout;
    let pack = sandbox.run(["get", &cores(&lines(&report), "rpk")[0]]).expect(0).stdout;
    assert!(!pack.contains("CANARY"), "{pack}");
    let pack: Value = serde_json::from_str(&pack).unwrap();
    let steps = pack["payload"]["run"]["steps"].as_array().unwrap();
    let of_request = |index: usize| steps[index * 2]["input"]["provider"].as_str().unwrap().to_owned();
    let providers: Vec<_> = (0..calls.len()).map(of_request).collect();
    assert_eq!(providers, ["ollama", "cohere", "bedrock", "openai", "anthropic"]);
    for (index, text) in [(0, "ollama"), (1, "cohere"), (2, "bedrock"), (4, "complete")] {
        assert_eq!(steps[index * 2 + 1]["output"]["assembled_text"], format!("from {text}"));
    }
}
