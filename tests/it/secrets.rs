//! Keys and card numbers in what is added and recorded: warnings, and refusals.

use std::ffi::OsString;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository, run_pack, session};

/// A key that no service issued, in parts.
fn key() -> String {
    ["sk-ant-", "api03-", &"aB3_dE6-gH9jK2mN5pQ8".repeat(3)].concat()
}

/// Number of artifacts in a vault.
fn count(sandbox: &Sandbox) -> usize {
    sandbox.run(["find", "--json", "--all-versions"]).expect(0).json().len()
}

#[test]
fn add_warns_of_secrets_and_never_prints_them() {
    let sandbox = Sandbox::new();
    sandbox.write("leak.json", session("a", &[("p", &format!("use {} please", key()))]));
    sandbox.write(
        "card.rpk",
        run_pack("r", &[json!({"type": "tool.response", "output": {"card": "4242 4242 4242 4242"}})]),
    );
    sandbox.write("clean.json", session("b", &[("p", "nothing here")]));
    let added = sandbox.run(["add", "leak.json", "card.rpk", "clean.json", "--json"]).expect(0);
    let warnings: Vec<&str> =
        added.stderr.lines().filter(|line| line.contains("looks like") || line.contains("(rule ")).collect();
    assert_eq!(warnings.len(), 2, "{}", added.stderr);
    let place = "leak.json: /interactions/0/response_content: an API key of Anthropic, beginning with sk-a (rule anthropic-api-key)";
    assert!(warnings[0].contains(place), "{}", warnings[0]);
    assert!(
        warnings[1]
            .contains("card.rpk: /payload/run/steps/0/output/card: a card number, beginning with 4242"),
        "{}",
        warnings[1]
    );
    let all = format!("{}{}", added.stdout, added.stderr);
    assert!(!all.contains(&key()[..12]) && !all.contains("4242 4242"), "{all}");
    let lines = added.json();
    assert_eq!(lines[0]["secrets"][0]["rule"], "anthropic-api-key");
    assert_eq!((lines[0]["outcome"].as_str(), lines[2].get("secrets")), (Some("added"), None));
    assert_eq!(count(&sandbox), 3);
    // What only reads does not look for them.
    for command in
        [&["verify", "leak.json"][..], &["fsck"], &["get", lines[0]["core_hash"].as_str().unwrap()]]
    {
        let ran = sandbox.run(command).expect(0);
        assert!(!ran.stderr.contains("anthropic-api-key"), "{}", ran.stderr);
    }
}

#[test]
fn refused_secrets_are_not_stored_anywhere() {
    let sandbox = Sandbox::new();
    let leak = sandbox.write("leak.json", session("a", &[("p", &key())]));
    sandbox.write("clean.json", session("b", &[("p", "nothing here")]));
    let refused = |ran: crate::sandbox::Ran| {
        assert!(ran.stderr.contains("rule SECRET") || ran.stderr.contains("SECRET"), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("anthropic-api-key") && !ran.stderr.contains(&key()[..12]),
            "{}",
            ran.stderr
        );
    };
    refused(sandbox.run(["add", "leak.json", "clean.json", "--refuse-secrets"]).expect(1));
    assert_eq!(count(&sandbox), 1);
    refused(sandbox.run(["add", "leak.json", "--refuse-secrets", "--dry-run"]).expect(1));
    refused(sandbox.run(["watch", ".", "--once", "--settle", "0s", "--refuse-secrets"]).expect(1));
    // By the configuration file, and by the variable, which goes before it.
    sandbox.run(["config", "set", "refuse-secrets", "on"]).expect(0);
    refused(sandbox.run_on(&std::fs::read(&leak).unwrap(), &["add", "-"]).expect(1));
    let vault = std::fs::read(sandbox.vault()).unwrap();
    let secret = key();
    assert!(memchr::memmem::find(&vault, secret.as_bytes()).is_none());
    let mut command = sandbox.command();
    command.args(["add", "leak.json"]).env("RUNVAULT_REFUSE_SECRETS", "off");
    assert!(command.output().unwrap().status.success());
    assert_eq!(count(&sandbox), 2);
}

#[test]
fn secrets_in_packs_archives_and_files_beside_are_found() {
    let sandbox = Sandbox::new();
    let pack = sandbox.path("pack");
    std::fs::create_dir(&pack).unwrap();
    for entry in std::fs::read_dir(repository("examples/pack")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), pack.join(entry.file_name())).unwrap();
    }
    sandbox.run(["add", "pack", "--refuse-secrets"]).expect(0);
    // A file beside a run that the run identifies by its digest.
    let secret = format!("token = {}", key());
    let digest = runvault::digest::Digest::from_content(secret.as_bytes());
    sandbox.write("beside/output.txt", &secret);
    let step =
        json!({"type": "tool.response", "output": {"path": "output.txt", "sha256": digest.to_string()}});
    sandbox.write("beside/run.rpk", run_pack("beside", &[step]));
    let before = count(&sandbox);
    let refused = sandbox.run(["add", "beside/run.rpk", "--refuse-secrets"]).expect(1);
    assert!(refused.stderr.contains("output.txt"), "{}", refused.stderr);
    assert_eq!(count(&sandbox), before);
    let added = sandbox.run(["add", "beside/run.rpk"]).expect(0);
    assert!(added.stderr.contains("output.txt line 1: an API key of Anthropic"), "{}", added.stderr);
    assert_eq!(count(&sandbox), before + 2);
}

/// Artifacts of the corpus and of another program contain digests, ids, times and text, and no secrets.
#[test]
fn nothing_in_real_artifacts_looks_like_a_secret() {
    let mut inputs: Vec<OsString> = vec![repository("examples").into(), repository("tests/corpus").into()];
    inputs.extend(std::env::var_os("RUNVAULT_REAL_RPK"));
    let mut seen = 0;
    for input in inputs {
        let mut waiting = vec![std::path::PathBuf::from(input)];
        while let Some(path) = waiting.pop() {
            if path.is_dir() {
                waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let found = runvault::secrets::find(&bytes);
            // One shows what another program does about card numbers.
            let has_card = path.file_name().is_some_and(|name| name == "m5_source_unredacted.rpk");
            let rules: Vec<&str> = found.iter().map(|one| one.rule.as_str()).collect();
            assert_eq!(
                rules,
                if has_card { &["card-number"][..] } else { &[] },
                "{}: {found:?}",
                path.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

/// A credential that no rule knows, so that only its place can keep it out.
const CANARY: &str = "kanarie-7Q";

/// The address of a call with a credential in each of its parts.
fn address_with_canary() -> String {
    format!("https://ann:{CANARY}@api.openai.com/v1/chat/completions?key={CANARY}#{CANARY}")
}

/// Headers with credentials, each with a list of values.
fn headers_with_canary() -> Value {
    let names = [
        "Authorization",
        "Cookie",
        "Proxy-Authorization",
        "Set-Cookie",
        "WWW-Authenticate",
        "Proxy-Authenticate",
        "Location",
        "X-Api-Key",
        "api-key",
        "x-goog-api-key",
        "x-amz-security-token",
        "openai-organization",
        "x-request-id",
    ];
    names.into_iter().map(|name| (name.to_owned(), json!([format!("Bearer {CANARY}")]))).collect()
}

fn first_values(headers: &Value) -> Value {
    let headers = headers.as_object().unwrap().iter();
    headers.map(|(name, values)| (name.clone(), values[0].clone())).collect()
}

fn chat_request() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "Hello?"}]})
}

fn chat_answer() -> Value {
    let message = json!({"role": "assistant", "content": "Hi there."});
    json!({"object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
}

/// A cassette with calls that can be mapped and others that are listed.
fn cassette() -> Value {
    let interaction = |method: &str, uri: &str| {
        json!({
            "request": {"method": method, "uri": uri, "headers": headers_with_canary(), "body": chat_request().to_string(),
                        "auth": CANARY, "proxies": {"https": CANARY}},
            "response": {"status": {"code": 200, "message": CANARY}, "headers": headers_with_canary(),
                         "body": {"string": chat_answer().to_string()}, "url": address_with_canary(), "cookies": CANARY},
            "recorded_at": "2026-01-02T03:04:05+00:00", "cookies": {"sid": CANARY},
        })
    };
    let uri = address_with_canary();
    let without_scheme = uri.strip_prefix("https:").unwrap();
    let interactions = [
        interaction("POST", &uri),
        interaction("GET", &uri),
        interaction("POST", &uri.replace("/v1/chat", "/v2/chat")),
        interaction("POST", without_scheme),
        interaction("POST", without_scheme.trim_start_matches('/')),
    ];
    json!({"version": 1, "interactions": interactions})
}

fn json_lines() -> String {
    let (uri, headers) = (address_with_canary(), first_values(&headers_with_canary()));
    let response = json!({"status_code": 200, "headers": headers, "body": chat_answer(), "cookies": CANARY});
    let (batch, anthropic) = ("batch", "anthropic");
    let lines = [
        json!({"request": {"method": "POST", "url": uri, "headers": headers, "body": chat_request(), "cookies": CANARY},
               "response": response, "auth": CANARY, "proxy": CANARY, "headers": headers, "cookies": CANARY}),
        json!({"request": {"path": format!("/v1/chat/completions?key={CANARY}"), "headers": headers, "body": chat_request()},
               "response": response}),
        json!({"request": {"endpoint": uri.replace("/v1/", "/v2/"), "body": chat_request()}, "response": response}),
        json!({"request": {"model": "m", "messages": [], "headers": headers, "extra_headers": headers, "api_key": CANARY,
                           "extra_query": {"key": CANARY}, "base_url": uri, "cookies": CANARY},
               "response": chat_answer()}),
        json!({"custom_id": batch, "method": "POST", "url": uri, "body": chat_request(), "headers": headers, "auth": CANARY}),
        json!({"custom_id": batch, "response": response, "error": null, "cookies": CANARY}),
        json!({"custom_id": anthropic, "params": {"model": "m", "max_tokens": 1, "messages": [], "api_key": CANARY}}),
        json!({"custom_id": anthropic, "result": {"type": "succeeded", "message": {"type": "message", "content": []}},
               "headers": headers}),
    ];
    lines.map(|line| line.to_string()).join("\n")
}

fn spans() -> Value {
    let attribute = |name: &str, value: &str| json!({"key": name, "value": {"stringValue": value}});
    let messages = json!([{"role": "user", "parts": [{"type": "text", "content": "Hello?"}]}]).to_string();
    let answers = json!([{"role": "assistant", "parts": [{"type": "text", "content": "Hi."}], "finish_reason": "stop"}]);
    let mut attributes = vec![
        attribute("gen_ai.operation.name", "chat"),
        attribute("gen_ai.provider.name", "openai"),
        attribute("gen_ai.request.model", "m"),
        attribute("gen_ai.input.messages", &messages),
        attribute("gen_ai.output.messages", &answers.to_string()),
    ];
    let kept = [
        "http.request.header.authorization",
        "http.request.header.cookie",
        "http.request.header.proxy-authorization",
        "http.response.header.set-cookie",
        "llm.headers",
        "llm.request.headers",
        "gen_ai.request.headers",
    ];
    attributes.extend(kept.map(|name| attribute(name, CANARY)));
    let urls =
        ["url.full", "http.url", "url.query", "http.target", "server.address", "gen_ai.openai.api_base"];
    attributes.extend(urls.map(|name| attribute(name, &address_with_canary())));
    let span = json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "chat m",
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000", "attributes": attributes,
        "traceState": CANARY});
    let resource = json!({"attributes": [attribute("process.command_args", CANARY), attribute("service.token", CANARY)]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "s"}, "spans": [span]}]}]})
}

fn inspect_log() -> Value {
    let headers = first_values(&headers_with_canary());
    let config = json!({"extra_headers": headers, "extra_query": {"key": CANARY}, "temperature": 0});
    let mut raw = chat_request();
    for name in ["extra_headers", "headers", "default_headers", "extra_query", "cookies", "api_key"] {
        raw[name] = json!({"key": CANARY});
    }
    let output = json!({"model": "m", "choices": [{"message": {"role": "assistant", "content": "Hi."}, "stop_reason": "stop"}]});
    let event = |call: &Value| {
        json!({"event": "model", "timestamp": "2026-01-02T03:04:05Z", "model": "openai/m", "tools": [], "config": config,
               "input": [{"role": "user", "content": "Hello?"}], "output": output, "call": call})
    };
    let call = json!({"request": raw, "response": chat_answer(), "headers": headers});
    json!({"version": 2, "status": "success", "eval": {"task": "t", "run_id": "r", "model": "openai/m", "model_base_url": address_with_canary(),
           "model_args": {"api_key": CANARY, "default_headers": headers}, "metadata": {"token": CANARY}},
           "samples": [{"id": 1, "epoch": 1, "events": [event(&call), event(&Value::Null)], "store": {"key": CANARY}}]})
}

#[test]
fn credentials_around_imported_calls_are_nowhere() {
    let cassette = cassette();
    for (name, text, calls) in [
        ("cassette.json", cassette.to_string(), 1),
        // JSON is YAML.
        ("cassette.yaml", format!("interactions: {}\nversion: 1\n", cassette["interactions"]), 1),
        ("calls.jsonl", json_lines(), 4),
        ("spans.json", spans().to_string(), 1),
        ("log.json", inspect_log().to_string(), 2),
    ] {
        let sandbox = Sandbox::without_vault();
        let file = sandbox.write(name, &text);
        let file = file.to_str().unwrap();
        let arguments = ["import", "--create", "--no-original", "--verbose", file];
        let imported = sandbox.run(arguments).expect(0);
        let again = sandbox.run(["import", "--no-original", "--json", file]).expect(0);
        let mut all = [imported.stdout, imported.stderr, again.stdout, again.stderr].concat();
        let mut requests = 0;
        for artifact in sandbox.run(["find", "--json", "--all-versions"]).expect(0).json() {
            let core = artifact["core_hash"].as_str().unwrap().to_owned();
            for command in ["get", "show", "view"] {
                let printed = sandbox.run([command, &core]).expect(0).stdout;
                let is_pack = command == "get" && artifact["kind"] == "rpk";
                requests += if is_pack { printed.matches("\"model.request\"").count() } else { 0 };
                all.push_str(&printed);
            }
        }
        all.push_str(&sandbox.run(["log", "--json"]).expect(0).stdout);
        assert!(requests >= calls, "{name}: {requests}: {all}");
        let at = all.find(CANARY).unwrap_or(0);
        assert!(!all.contains(CANARY), "{name}: {}", &all[at.saturating_sub(400)..(at + 20).min(all.len())]);
    }
}

#[test]
fn import_warns_of_secrets_and_refuses_them() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": format!("use {}", key())}]});
    let line =
        json!({"request": {"url": "/v1/chat/completions", "body": request}, "response": chat_answer()});
    let sandbox = Sandbox::new();
    sandbox.write("calls.jsonl", format!("{line}\n"));
    let refused = sandbox.run(["import", "--refuse-secrets", "calls.jsonl"]).expect(1);
    assert!(refused.stderr.contains("anthropic-api-key"), "{}", refused.stderr);
    // The session has the hash of the prompt only.
    let stored = sandbox.run(["find", "--json"]).expect(0).json();
    assert_eq!((stored.len(), &stored[0]["kind"]), (1, &json!("model_io")));
    sandbox.run(["import", "--refuse-secrets", "--dry-run", "calls.jsonl"]).expect(1);
    let imported = sandbox.run(["import", "calls.jsonl", "--json"]).expect(0);
    assert!(imported.stderr.contains("an API key of Anthropic, beginning with sk-a"), "{}", imported.stderr);
    assert_eq!(imported.json()[0]["secrets"][0]["rule"], "anthropic-api-key");
    let all = [imported.stdout, imported.stderr, refused.stdout, refused.stderr].concat();
    assert!(!all.contains(&key()[..12]), "{all}");
    assert_eq!(count(&sandbox), 3);
    // A bundle is scanned, too.
    sandbox.run(["export", "--all", "-o", "all.rvz"]).expect(0);
    let other = |arguments: &[&str]| {
        sandbox.run([&["--vault", "other.vault", "import", "--create"], arguments].concat())
    };
    assert!(other(&["all.rvz", "--refuse-secrets"]).expect(1).stderr.contains("anthropic-api-key"));
    assert!(other(&["all.rvz"]).expect(0).stderr.contains("beginning with sk-a"));
}

#[test]
fn addresses_that_resemble_those_of_databases_are_refused_and_not_shown() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a.json", session("a", &[]));
    let file = file.to_str().unwrap();
    let before = names(&sandbox);
    for address in [
        "'postgres://ann:pa55word@127.0.0.1:1/runs'",
        " postgres://ann:pa55word@127.0.0.1:1/runs",
        "jdbc:postgresql://127.0.0.1:1/runs?user=ann&password=pa55word",
        "postgresql+psycopg2://ann:pa55word@127.0.0.1:1/runs",
        "host=127.0.0.1 port=1 user=ann password=pa55word dbname=runs",
        "Host=127.0.0.1;Username=ann;Password=pa55word",
        "DATABASE_URL=postgres://ann:pa55word@127.0.0.1:1/runs",
        "ann:pa55word@127.0.0.1/runs",
    ] {
        for arguments in [
            &["add", "--create", "--vault", address, file][..],
            &["init", "--vault", address],
            &["gateway", "--mode", "replay", "--vault", address],
            &["copy", address, "copied.vault"],
            &["copy", "v.vault", address],
            &["backup", address],
            &["get", "latest", "-o", address],
            &["export", "--all", "-o", address],
            &["sql", "--save", address],
            &["add", address],
            &["import", address],
            &["verify", address],
            &["fsck", "--from", address],
        ] {
            let ran = sandbox.run(arguments);
            assert!(ran.status != 0, "{arguments:?}");
            let all = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!all.contains("pa55word"), "{arguments:?}: {all}");
        }
        let mut command = sandbox.command();
        let output = command.args(["config"]).env("RUNVAULT_VAULT", address).output().unwrap();
        assert!(!String::from_utf8(output.stdout).unwrap().contains("pa55word"), "{address}");
    }
    assert_eq!(names(&sandbox), before);
}

/// The names of the files in the directory of a sandbox, without those of an open vault.
fn names(sandbox: &Sandbox) -> Vec<OsString> {
    let directory = std::fs::read_dir(sandbox.path(".")).unwrap();
    let mut names: Vec<OsString> = directory.map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| !name.to_string_lossy().starts_with("v.vault-"));
    names.sort();
    names
}
