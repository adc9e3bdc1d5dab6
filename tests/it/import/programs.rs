//! Files that the installed programs make, and the clients that replay them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use runvault::Vault;
use runvault::gateway::{Gateway, GatewayMode, GatewayOptions};

use crate::sandbox::{Ran, Sandbox, repository};

/// The Python interpreter whose packages are used.
const PYTHON: &str = "RUNVAULT_TEST_RECORDERS";

/// Returns the interpreter if it has these modules. Says what is skipped, also if the output of tests is captured.
fn python(what: &str, modules: &str) -> Option<String> {
    let skip = |why: &str| {
        let _ = writeln!(std::io::stderr(), "skipped: {what}; {why}");
    };
    let Ok(python) = std::env::var(PYTHON) else {
        skip(&format!("{PYTHON} does not name an interpreter"));
        return None;
    };
    if !Command::new(&python).args(["-c", &format!("import {modules}")]).output().unwrap().status.success() {
        skip(&format!("{modules} is not installed"));
        return None;
    }
    Some(python)
}

/// Runs tests/import/make.py.
fn make(python: &str, arguments: &[&Path]) -> Output {
    let output =
        Command::new(python).arg(repository("tests/import/make.py")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn import(sandbox: &Sandbox, path: &Path) -> Ran {
    sandbox.run(["import".as_ref(), "--create".as_ref(), path.as_os_str()]).expect(0)
}

/// What a client gets from a gateway that replays.
fn replayed(sandbox: &Sandbox, python: &str, provider: &str) -> String {
    let script = repository("tests/import/make.py").into_os_string();
    let mut command = sandbox.command();
    command.args(["exec", "--mode=replay", "--"]).args([python.into(), script]).arg(sandbox.path("none"));
    Ran::from(command.args(["answers", provider]).output().unwrap()).expect(0).stdout
}

#[test]
fn openai_replays_a_cassette_of_vcr_py() {
    let Some(python) = python("cassettes of VCR.py", "openai, vcr, requests") else { return };
    let sandbox = Sandbox::without_vault();
    let made = sandbox.path("made");
    let answers = String::from_utf8(make(&python, &[&made, Path::new("asked")]).stdout).unwrap();
    make(&python, &[&made, Path::new("vcr")]);
    import(&sandbox, &made.join("vcr.yaml"));
    assert_eq!(replayed(&sandbox, &python, "openai"), answers);

    // VCR.py answers from what is exported.
    let exported = sandbox.path("exported.yaml");
    let found = sandbox.run(["find", "rpk", "--json"]).expect(0).json();
    let core = found[0]["core_hash"].as_str().unwrap().to_owned();
    let arguments =
        ["export".as_ref(), core.as_ref(), "--as=vcr".as_ref(), "-o".as_ref(), exported.as_os_str()];
    sandbox.run(arguments).expect(0);
    let played = make(&python, &[&exported, Path::new("play")]).stdout;
    assert_eq!(String::from_utf8(played).unwrap(), answers);
}

#[test]
fn an_agent_of_pydantic_ai_replays_its_cassette() {
    let Some(python) = python("a cassette of Pydantic AI", "pydantic_ai.models.openai, vcr") else { return };
    let sandbox = Sandbox::without_vault();
    let (made, program) = (sandbox.path("made"), Path::new("pydantic-ai"));
    let answers = String::from_utf8(make(&python, &[&made, Path::new("asked"), program]).stdout).unwrap();
    make(&python, &[&made, program]);
    import(&sandbox, &made.join("pydantic-ai.yaml"));
    assert_eq!(replayed(&sandbox, &python, "pydantic-ai"), answers);
}

#[test]
fn spans_of_opentelemetry_that_were_made_now_are_imported() {
    let modules = "openai, opentelemetry.instrumentation.openai, opentelemetry.exporter.otlp.json.common";
    let Some(python) = python("spans of OpenTelemetry", modules) else { return };
    let sandbox = Sandbox::without_vault();
    let made = sandbox.path("made");
    make(&python, &[&made, Path::new("otel")]);
    for name in ["otel.jsonl", "otel-protobuf.json", "otel-events.jsonl"] {
        let report = import(&sandbox, &made.join(name)).stderr;
        assert!(report.contains("in 1 run"), "{name}: {report}");
    }
}

#[test]
fn spans_that_an_exporter_sends_are_those_of_its_file() {
    let modules = "openai, opentelemetry.instrumentation.openai, opentelemetry.exporter.otlp.proto.http, \
                   opentelemetry.exporter.otlp.json.common";
    let Some(python) = python("spans that are sent to a gateway", modules) else { return };
    let sandbox = Sandbox::without_vault();
    let mut options = GatewayOptions::new(GatewayMode::Record, &sandbox.path("spool"));
    options.otlp = true;
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    let gateway = Gateway::start(vault, "127.0.0.1:0".parse().unwrap(), options).unwrap();
    let (made, url) = (sandbox.path("made"), format!("http://{}", gateway.address()));
    make(&python, &[&made, Path::new("otlp"), Path::new(&url)]);
    let runs = gateway.stop().unwrap();
    assert_eq!((runs.len(), runs[0].calls), (1, 5));
    let path = made.join("otlp.jsonl").into_os_string();
    let report = sandbox.run(["import".into(), "--json".into(), path]).expect(0).json();
    let pack = report.iter().find(|line| line["kind"] == "rpk").unwrap();
    assert_eq!(pack["core_hash"], runs[0].run_pack.to_string());
    assert_eq!(pack["outcome"], "present");
}

/// Records what a client of a provider asks as spans, imports them, and asks it again without a server.
fn replays_spans(provider: &str, modules: &str) {
    let modules = format!("{modules}, opentelemetry.exporter.otlp.json.common");
    let Some(python) = python(&format!("spans with the client of {provider}"), &modules) else { return };
    let sandbox = Sandbox::without_vault();
    let made = sandbox.path("made");
    let asked = make(&python, &[&made, Path::new("asked"), Path::new(provider)]);
    make(&python, &[&made, Path::new(&format!("otel-{provider}"))]);
    import(&sandbox, &made.join(format!("otel-{provider}.jsonl")));
    let answers = String::from_utf8(asked.stdout).unwrap();
    assert_eq!(replayed(&sandbox, &python, provider), answers, "{provider}");
}

#[test]
fn anthropic_replays_its_spans() {
    replays_spans("anthropic", "anthropic, opentelemetry.instrumentation.anthropic");
}

#[test]
fn gemini_replays_its_spans() {
    replays_spans("gemini", "google.genai, opentelemetry.instrumentation.google_generativeai");
}

#[test]
fn logs_of_inspect_that_were_made_now_are_imported() {
    let Some(python) = python("logs of Inspect", "inspect_ai, openai") else { return };
    let sandbox = Sandbox::without_vault();
    let made = sandbox.path("made");
    make(&python, &[&made, Path::new("inspect")]);
    for name in ["inspect-mock.json", "inspect-mock.eval", "inspect-openai.eval"] {
        let report = import(&sandbox, &made.join(name)).stderr;
        assert!(report.contains("in 2 runs"), "{name}: {report}");
    }
}
