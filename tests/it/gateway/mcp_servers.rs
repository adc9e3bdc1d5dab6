//! Servers of the Model Context Protocol behind proxies, whose calls are recorded among those of models.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;

use runvault::gateway::{Gateway, GatewayMode};
use serde_json::{Value, json};

use super::client::{chat, request};
use super::clients::{Providers, python_with, skip};
use super::upstream::Upstream;
use super::{kinds, scripted, start, steps};
use crate::mcp::client::Client;
use crate::sandbox::{Ran, Sandbox, program, repository, session};

fn proxy(sandbox: &Sandbox, gateway: &Gateway, server: &[&str]) -> Command {
    let mut command = sandbox.command();
    command.arg("mcp-proxy").args(server);
    command.env("RUNVAULT_GATEWAY", format!("http://{}", gateway.address()));
    command
}

/// Starts a session with a proxy that reports to a gateway.
fn connect(sandbox: &Sandbox, gateway: &Gateway, server: &[&str]) -> Client {
    Client::connect(proxy(sandbox, gateway, server))
}

/// A server over standard input and output: the vault of the sandbox.
fn notes() -> [&'static str; 5] {
    ["--server", "notes", "--", program(), "mcp"]
}

/// A server that cannot be started.
const NO_NOTES: [&str; 4] = ["--server", "notes", "--", "/nonexistent"];

/// Calls a tool. The token is another one in each call.
fn call(client: &mut Client, tool: &str, arguments: &Value) -> Result<Value, Value> {
    static TOKEN: Mutex<u64> = Mutex::new(0);
    let mut token = TOKEN.lock().unwrap();
    *token += 1;
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": *token}});
    client.request("tools/call", params)
}

/// What a client asks, with the answers.
fn ask(client: &mut Client) -> Vec<Result<Value, Value>> {
    vec![
        client.request("tools/list", json!({})),
        call(client, "find_runs", &json!({"kind": "session"})),
        call(client, "read_run", &json!({"artifact": "ffffffffffff"})),
        client.request("resources/read", json!({"uri": "runvault://artifact/ffffffffffff"})),
    ]
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("session.json", session("test", &[("asked", "answered")]));
    sandbox.add(["session.json"]);
    sandbox
}

#[test]
fn a_server_is_replayed_without_being_started() {
    let (sandbox, upstream) = (sandbox(), Upstream::start());
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    let mut client = connect(&sandbox, &recording, &notes());
    let recorded = ask(&mut client);
    assert_eq!(client.end(), Some(0));
    assert!(recorded[0].is_ok() && recorded[3].is_err(), "{recorded:?}");
    assert_eq!(recorded[2].as_ref().unwrap()["isError"], true);
    let run = recording.stop().unwrap().remove(0);
    // The beginning of the session is recorded, too. None of it is a call of a model.
    assert_eq!((run.calls, run.failed, run.sessions.len()), (5, 0, 0));

    let replaying = start(&sandbox, GatewayMode::Replay, &upstream);
    let mut client = connect(&sandbox, &replaying, &NO_NOTES);
    // Ids of requests differ.
    client.request("ping", json!({})).unwrap();
    assert_eq!(ask(&mut client), recorded);
    // What a server has can be asked for again.
    client.request("tools/list", json!({})).unwrap();
    let missed = call(&mut client, "find_runs", &json!({"kind": "contract"})).unwrap_err();
    let message = missed["message"].as_str().unwrap();
    assert!(message.contains("params.arguments.kind differs: recorded \"session\""), "{message}");
    let exhausted = call(&mut client, "find_runs", &json!({"kind": "session"})).unwrap_err();
    assert!(exhausted["message"].as_str().unwrap().contains("recorded only once"), "{exhausted}");
    assert_eq!(client.end(), Some(0));
    let replayed = replaying.replayed(None).unwrap();
    assert_eq!((replayed.replayed, replayed.missed, replayed.unused.len()), (6, 2, 0));
    assert_eq!(replaying.stop().unwrap(), []);
}

#[test]
fn a_server_is_started_for_the_first_call_that_was_not_recorded() {
    let (sandbox, upstream) = (sandbox(), Upstream::start());
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    let mut client = connect(&sandbox, &recording, &notes());
    let sessions = call(&mut client, "find_runs", &json!({"kind": "session"}));
    assert_eq!(client.end(), Some(0));
    recording.stop().unwrap();

    let gateway = start(&sandbox, GatewayMode::Auto, &upstream);
    let mut client = connect(&sandbox, &gateway, &notes());
    assert_eq!(call(&mut client, "find_runs", &json!({"kind": "session"})), sessions);
    // The session of the client was answered from the recording, and that of the server is begun for this.
    call(&mut client, "find_runs", &json!({"kind": "contract"})).unwrap();
    client.request("ping", json!({})).unwrap();
    assert_eq!(client.end(), Some(0));
    let replayed = gateway.replayed(None).unwrap();
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((replayed.replayed, run.calls), (2, 1));

    // A server that cannot be started is an error of the call, which is recorded as failed.
    let gateway = start(&sandbox, GatewayMode::Auto, &upstream);
    let mut client = connect(&sandbox, &gateway, &NO_NOTES);
    let failed = call(&mut client, "find_runs", &json!({"kind": "trace"})).unwrap_err();
    assert!(failed["message"].as_str().unwrap().contains("cannot run /nonexistent"), "{failed}");
    assert_eq!(client.end(), Some(0));
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.failed), (1, 1));
}

#[test]
fn calls_are_steps_of_tools_that_are_read_as_text() {
    let (sandbox, upstream) = (sandbox(), Upstream::start());
    let recording = start(&sandbox, GatewayMode::Record, &upstream);
    let mut client = connect(&sandbox, &recording, &notes());
    ask(&mut client);
    assert_eq!(client.end(), Some(0));
    let run = recording.stop().unwrap().remove(0);
    let types: Vec<Value> = steps(&sandbox).into_iter().map(|step| step["type"].clone()).collect();
    assert_eq!(types, ["tool.request", "tool.response"].repeat(5));
    let core = run.run_pack.to_string();
    let shown = sandbox.run(["show", &core]).expect(0).stdout;
    let has = |name: &str, value: &str| {
        let line = |line: &str| line.split_whitespace().collect::<Vec<_>>() == [name, value];
        assert!(shown.lines().any(line), "{name} {value}\n{shown}");
    };
    has("tool_calls", "2");
    has("provider", "mcp");
    assert!(shown.contains("find_runs, read_run") && !shown.contains("model_id"), "{shown}");
    let view = sandbox.run(["view", &core]).expect(0).stdout;
    for text in
        ["tool.request initialize", "tool.request read_run", "find_runs: Lists runs and other artifacts"]
    {
        assert!(view.contains(text), "{text}\n{view}");
    }
    assert!(
        view.contains("error      nothing in the vault has a hash that begins with ffffffffffff"),
        "{view}"
    );
    let found = sandbox.run(["replay", &core, "--json"]).expect(0).stdout;
    assert!(found.contains("read_run") && !found.contains("initialize"), "{found}");
    sandbox.run(["fsck"]).expect(0);
}

/// A server over HTTP with one tool, which reports progress before it answers.
fn weather() -> SocketAddr {
    scripted::server_of_bytes(|line, body| {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let respond = |result: Value| json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        let response = match request["method"].as_str() {
            Some("initialize") => {
                let server = json!({"name": "weather", "version": "1"});
                let version = &request["params"]["protocolVersion"];
                let result = json!({"protocolVersion": version, "capabilities": {}, "serverInfo": server});
                scripted::response("application/json", &respond(result).to_string()).replacen(
                    "\r\n",
                    "\r\nmcp-session-id: s-1\r\n",
                    1,
                )
            }
            Some("tools/call") => {
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
                let text = format!("clear in {}", request["params"]["arguments"]["city"].as_str().unwrap());
                let result = respond(json!({"content": [{"type": "text", "text": text}]}));
                let events = format!("data: {progress}\n\nevent: message\ndata: {result}\n\n");
                scripted::response("text/event-stream", &events)
            }
            _ if line.starts_with("GET") => "HTTP/1.1 405 X\r\ncontent-length: 0\r\n\r\n".to_owned(),
            _ => "HTTP/1.1 202 X\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        vec![(0, response.into_bytes())]
    })
}

#[test]
fn a_server_over_http_is_recorded_and_its_calls_are_those_that_the_model_asked_for() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let url = format!("http://{}/mcp", weather());
    let mut client = connect(&sandbox, &gateway, &["--server", "weather", "--url", &url]);
    chat(gateway.address(), "briefly: call a tool", false).expect(200);
    let params = |city: &str| json!({"name": "get_weather", "arguments": {"city": city}});
    let asked = |client: &mut Client, city: &str| {
        client.send("tools/call", params(city));
        assert_eq!(client.receive()["method"], "notifications/progress");
        client.receive()["result"]["content"][0]["text"].clone()
    };
    assert_eq!(asked(&mut client, "Paris"), "clear in Paris");
    assert_eq!(asked(&mut client, "Rome"), "clear in Rome");
    assert_eq!(client.end(), Some(0));
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.sessions.len()), (4, 1));
    // The model asked for the first call, and the program made the other one by itself.
    let view = sandbox.run(["view", "latest"]).expect(0).stdout;
    assert_eq!(view.matches("call       get_weather").count(), 2, "{view}");
    assert!(view.contains("result     clear in Rome"), "{view}");
    let shown = sandbox.run(["show", &run.run_pack.to_string()]).expect(0).stdout;
    let calls = shown.lines().find(|line| line.contains("tool_calls")).unwrap();
    assert_eq!(calls.split_whitespace().last(), Some("2"), "{shown}");

    let gateway = start(&sandbox, GatewayMode::Replay, &upstream);
    let mut client = connect(&sandbox, &gateway, &["--server", "weather", "--url", "http://127.0.0.1:9/"]);
    let replayed = client.request("tools/call", params("Rome")).unwrap();
    assert_eq!(replayed["content"][0]["text"], "clear in Rome");
    // Another server has other recordings.
    let nothing = ["--server", "other", "--", "/nonexistent"];
    let mut other = Client::start(proxy(&sandbox, &gateway, &nothing));
    let missed = other.request("tools/call", params("Rome")).unwrap_err();
    assert!(missed["message"].as_str().unwrap().contains("/weather/tools/call"), "{missed}");
    gateway.stop().unwrap();
}

#[test]
fn a_server_over_the_older_transport_is_recorded_and_replayed() {
    let Some(python) = python_with("mcp", "a server over HTTP+SSE") else { return };
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let server = Providers::running(&python, "mcp_sse_server.py");
    let url = format!("http://127.0.0.1:{}/sse", server.port);
    let through = |mode: GatewayMode| {
        let gateway = start(&sandbox, mode, &upstream);
        let mut client = connect(&sandbox, &gateway, &["--server", "weather", "--url", &url]);
        let answers = [
            client.request("tools/list", json!({})),
            call(&mut client, "get_weather", &json!({"city": "Paris"})),
            call(&mut client, "get_weather", &json!({})),
            client.request("no/method", json!({})),
        ];
        assert_eq!(client.end(), Some(0));
        (answers, gateway)
    };
    let (recorded, gateway) = through(GatewayMode::Record);
    assert_eq!(recorded[1].as_ref().unwrap()["content"][0]["text"], "clear in Paris");
    assert!(recorded[2].as_ref().unwrap()["isError"] == true && recorded[3].is_err(), "{recorded:?}");
    let run = gateway.stop().unwrap().remove(0);
    assert_eq!((run.calls, run.failed), (5, 0));
    drop(server);
    let (replayed, gateway) = through(GatewayMode::Replay);
    assert_eq!(replayed, recorded);
    gateway.stop().unwrap();
    // What is not there any more is an error of the call.
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let mut client = Client::start(proxy(&sandbox, &gateway, &["--server", "weather", "--url", &url]));
    let failed = client.request("initialize", json!({"protocolVersion": "2025-06-18"})).unwrap_err();
    assert!(failed["message"].as_str().unwrap().contains("could not be asked"), "{failed}");
    gateway.stop().unwrap();
}

#[test]
fn a_proxy_without_a_gateway_records_a_run_of_its_own() {
    let sandbox = sandbox();
    let proxy = |options: &[&str], server: &[&str]| {
        let mut command = sandbox.command();
        command.arg("mcp-proxy").args(options).args(server);
        Client::connect(command)
    };
    let mut client = proxy(&[], &notes());
    let recorded = ask(&mut client);
    assert_eq!(client.end(), Some(0));
    assert_eq!(kinds(&sandbox), ["model_io", "rpk"]);
    let mut client = proxy(&["--mode", "replay"], &NO_NOTES);
    assert_eq!(ask(&mut client), recorded);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn requests_to_the_gateway_that_are_no_calls_are_refused() {
    let (sandbox, upstream) = (Sandbox::without_vault(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let record = |body: &Value| {
        request(gateway.address(), "POST /_runvault/record-tool-call", &[], &body.to_string()).status
    };
    assert_eq!(record(&json!({})), 400);
    let call = json!({"path": "/s/tools/call", "request": [], "requested_at": "2026-01-01T00:00:00Z",
        "latency_ms": 1, "replayed_before": 0, "outcome": {"result": {"result": {}}}});
    assert_eq!(record(&call), 400);
    assert_eq!(gateway.stop().unwrap(), []);
}

#[cfg(unix)]
#[test]
fn a_program_gets_a_configuration_with_proxies() {
    let sandbox = Sandbox::without_vault();
    let servers = json!({"notes": {"command": "srv", "args": ["-a"]}});
    sandbox.write("mcp.json", json!({"mcpServers": servers, "other": 1}).to_string());
    let run = |config: &str| {
        let program = r#"cat "$1"; test "$1" = "$RUNVAULT_MCP_CONFIG" && test "--c=$1" = "$2" && rm "$1""#;
        let mut command = sandbox.command();
        command.args(["exec", "--create", "--mcp", config, "--", "sh", "-c", program, "x", "mcp.json"]);
        command.arg("--c=mcp.json").env("PATH", std::env::var_os("PATH").unwrap());
        Ran::from(command.output().unwrap())
    };
    let config: Value = serde_json::from_str(&run("mcp.json").expect(0).stdout).unwrap();
    let server = &config["mcpServers"]["notes"];
    assert_eq!(server["args"], json!(["mcp-proxy", "--server", "notes", "--", "srv", "-a"]));
    assert_eq!((&server["command"], &config["other"]), (&json!(program()), &json!(1)));
    sandbox.write("bad.json", "{\"mcpServers\": {\"x\": {}}}");
    let refused = run("bad.json").expect(2);
    assert!(refused.stderr.contains("server x: it has neither a command nor a url"), "{}", refused.stderr);
}

#[test]
fn an_agent_is_replayed_without_model_and_tools() {
    let what = "an agent with tools of the Python SDK";
    let Some(python) = python_with("mcp", what) else { return };
    if cfg!(windows) {
        return skip(what, "its configuration has paths of Unix");
    }
    let (tools, sandbox) = (sandbox(), Sandbox::without_vault());
    let arguments = json!(["mcp", "--vault", tools.vault()]);
    let config = json!({"mcpServers": {"notes": {"command": program(), "args": arguments}}});
    sandbox.write("mcp.json", config.to_string());
    let exec = |options: &[String], artifact: &str| {
        let mut command = sandbox.command();
        command.args(["exec", "--create", "--mcp", "mcp.json"]).args(options).arg("--");
        let script = repository("tests/clients/mcp_agent.py").into_os_string();
        let program: [OsString; 5] =
            [python.clone().into(), script, "mcp.json".into(), artifact.into(), "ask".into()];
        Ran::from(command.args(program).output().unwrap())
    };
    let providers = Providers::start(&python);
    let server = format!("--upstream=openai=http://127.0.0.1:{}", providers.port);
    let recorded = exec(&[server, "--mode=record".to_owned()], "ffffffffffff").expect(0);
    assert!(recorded.stderr.contains("calls: 5 recorded"), "{}", recorded.stderr);
    drop((providers, tools));
    let replay = ["--mode=replay".to_owned(), "--fail-on-miss".to_owned(), "--fail-unused".to_owned()];
    let replayed = exec(&replay, "ffffffffffff").expect(0);
    assert_eq!(replayed.stdout, recorded.stdout);
    let changed = exec(&replay, "ffffffffff00").expect(1);
    assert!(changed.stdout.contains("failed not recorded: params.arguments.artifact"), "{}", changed.stdout);
    assert!(changed.stderr.contains("2 missed"), "{}", changed.stderr);
}

/// Requests that arrive at the same time have the answers of their own ids.
#[test]
fn answers_have_the_ids_of_their_requests() {
    let (sandbox, upstream) = (sandbox(), Upstream::start());
    let gateway = start(&sandbox, GatewayMode::Record, &upstream);
    let mut client = connect(&sandbox, &gateway, &notes());
    let kinds = ["session", "contract", "trace", "run pack"];
    let params = |kind: &str| json!({"name": "find_runs", "arguments": {"kind": kind}});
    let mut asked: Vec<u64> = kinds.iter().map(|kind| client.send("tools/call", params(kind))).collect();
    let mut answered: Vec<u64> = kinds.iter().map(|_| client.receive()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    asked.sort_unstable();
    assert_eq!(answered, asked);
    assert_eq!(client.end(), Some(0));
    assert_eq!(gateway.stop().unwrap()[0].calls, 5);
}
