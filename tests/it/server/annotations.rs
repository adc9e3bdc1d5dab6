//! Tags, labels and notes that are changed on pages.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use runvault::Vault;
use runvault::server::{ServerOptions, WebServer};
use serde_json::{Value, json};

use super::{HOSTILE, Response, Serving, TIMEOUT, cores_with, examples, parse};
use crate::sandbox::Sandbox;

const RUN: &str = "3941d389b337";
const SESSION: &str = "4df877dec7f4";

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// A server whose pages may change the vault, for a person with a name.
pub(super) fn writable(sandbox: &Sandbox) -> Serving {
    let mut command = sandbox.command();
    command.args(["--actor", "rita@laptop", "serve", "--listen", "127.0.0.1:0", "--allow-write"]);
    Serving::start_with(command)
}

/// The headers and the body of a form, and the status of the response.
type RefusedForm<'f> = (Vec<(&'f str, &'f str)>, String, u16);

/// Sends a request with a body.
fn send(serving: &Serving, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut stream = TcpStream::connect(serving.address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (headers, length) = (headers.concat(), body.len());
    let head =
        format!("POST {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&bytes)
}

/// Sends a form as a browser does that shows a page of the server.
fn submit(serving: &Serving, fields: &[(&str, &str)]) -> Response {
    let host = serving.address.to_string();
    let origin = format!("http://{host}");
    let headers = [("Host", host.as_str()), ("Origin", &origin), ("Sec-Fetch-Site", "same-origin"), FORM];
    send(serving, "/annotate", &headers, &encoded(fields))
}

fn encoded(fields: &[(&str, &str)]) -> String {
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    fields.join("&")
}

/// The token that a page contains.
fn token(page: &str) -> &str {
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split('"').next().unwrap()
}

fn entries(sandbox: &Sandbox) -> Vec<Value> {
    let lines = sandbox.run(["log", "--json"]).expect(0).json();
    lines.into_iter().map(|mut line| line["entry"].take()).collect()
}

fn head(sandbox: &Sandbox) -> String {
    sandbox.run(["log", "--head"]).expect(0).stdout
}

#[test]
fn tags_labels_and_notes_are_changed_by_the_actor_of_the_server() {
    let sandbox = examples();
    let serving = writable(&sandbox);
    let core = cores_with(&sandbox, RUN);
    let address = format!("/artifact/{core}");
    let page = serving.get(&address).expect(200);
    assert!(page.text().contains("tags, labels and notes can be changed"), "{}", page.text());
    let token = token(page.text());
    let change = |action: &str, name: &str, value: &str| {
        let fields = [("csrf", token), ("action", action), ("artifact", &core), (name, value)];
        let response = submit(&serving, &fields).expect(303);
        assert_eq!(response.header("location"), Some(format!("{address}#facts").as_str()));
        serving.get(&address).expect(200)
    };
    change("set-tag", "tag", " @golden");
    change("set-labels", "label", "job=https://ci.example/?a=1&b=<b>");
    let page = change("set-note", "note", "two\r\nlines <b>");
    let shown = sandbox.run(["show", RUN, "--json"]).expect(0).json().remove(0);
    assert_eq!(shown["tags"], json!(["golden"]));
    assert_eq!(shown["labels"], json!({"job": "https://ci.example/?a=1&b=<b>"}));
    assert_eq!(shown["note"], "two\nlines <b>");
    for part in ["@golden</span>", "?a=1&amp;b=&lt;b&gt;</a>", "<span class=\"note\">two\nlines &lt;b&gt;"] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    change("remove-tag", "tag", "golden");
    change("remove-labels", "key", "job");
    change("remove-note", "", "");
    let shown = sandbox.run(["show", RUN, "--json"]).expect(0).json().remove(0);
    assert_eq!((&shown["tags"], &shown["note"]), (&json!([]), &Value::Null));
    let entries = entries(&sandbox);
    let changes = &entries[entries.len() - 6..];
    for entry in changes {
        assert_eq!(entry["actor"], "rita@laptop", "{entry}");
    }
    assert_eq!(changes[2]["note"], "two\nlines <b>");
    assert!(entries[..entries.len() - 6].iter().all(|entry| entry["actor"] != "rita@laptop"));
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn forms_that_are_not_of_a_page_of_the_server_change_nothing() {
    let sandbox = examples();
    let serving = writable(&sandbox);
    let core = cores_with(&sandbox, RUN);
    let page = serving.get(&format!("/artifact/{core}")).expect(200);
    let (token, before) = (token(page.text()), head(&sandbox));
    let host = serving.address.to_string();
    let (own, port) = (format!("http://{host}"), serving.address.port());
    let body = |token: &str| {
        encoded(&[("csrf", token), ("action", "set-tag"), ("artifact", &core), ("tag", "stolen")])
    };
    let good = body(token);
    let (own_host, localhost) = (("Host", host.as_str()), format!("localhost:{port}"));
    let elsewhere = format!("evil.example:{port}");
    let (other_port, other_origin) =
        (format!("http://127.0.0.1:{}", port ^ 1), format!("http://{elsewhere}"));
    let json = ("Content-Type", "application/json");
    let origin = |origin| [own_host, ("Origin", origin), FORM];
    let refused: Vec<RefusedForm<'_>> = vec![
        (vec![own_host, FORM], body(""), 403),
        (vec![own_host, FORM], body(&"0".repeat(token.len())), 403),
        (vec![own_host, FORM], body(&token[1..]), 403),
        (vec![own_host, FORM], encoded(&[("action", "set-tag"), ("artifact", &core), ("tag", "t")]), 403),
        (origin("null").to_vec(), good.clone(), 403),
        (origin("http://evil.example").to_vec(), good.clone(), 403),
        (origin(&other_port).to_vec(), good.clone(), 403),
        (vec![("Host", &localhost), ("Origin", &own), FORM], good.clone(), 403),
        (vec![own_host, ("Origin", &own), ("Sec-Fetch-Site", "cross-site"), FORM], good.clone(), 403),
        (vec![("Host", &elsewhere), FORM], good.clone(), 421),
        (vec![("Host", &elsewhere), ("Origin", &other_origin), FORM], good.clone(), 421),
        (vec![FORM], good.clone(), 421),
        (vec![own_host], good.clone(), 415),
        (vec![own_host, ("Content-Type", "text/plain")], good.clone(), 415),
        (vec![own_host, json], format!("{{\"csrf\":\"{token}\"}}"), 415),
        (vec![own_host, FORM], format!("{good}&note={}", "a".repeat(64 << 10)), 413),
    ];
    for (headers, body, status) in refused {
        let response = send(&serving, "/annotate", &headers, &body);
        assert_eq!(response.status, status, "{headers:?}: {}", response.text());
        assert_eq!(head(&sandbox), before, "{headers:?}");
    }
    for path in ["/", "/annotate/", &format!("/artifact/{core}"), "/stats"] {
        let response = send(&serving, path, &[own_host, FORM], &good).expect(405);
        assert_eq!(response.header("allow"), Some("GET, HEAD"), "{path}");
    }
    let put = serving.request("PUT", "/annotate", &[own_host, ("Content-Length", "0")]).expect(405);
    assert_eq!(put.header("allow"), Some("GET, HEAD, POST"));
    assert_eq!(head(&sandbox), before);
    // The same form as it should be.
    send(&serving, "/annotate", &[own_host, FORM], &good).expect(303);
    assert_ne!(head(&sandbox), before);
}

#[test]
fn pages_are_read_only_without_the_option() {
    let sandbox = examples();
    let core = cores_with(&sandbox, RUN);
    sandbox.run(["note", "set", RUN, "a note"]).expect(0);
    let token = token(writable(&sandbox).get(&format!("/artifact/{core}")).text()).to_owned();
    let serving = Serving::start(&sandbox);
    let page = serving.get(&format!("/artifact/{core}")).expect(200);
    for part in ["csrf", "method=\"post\"", "<textarea", "/annotate"] {
        assert!(!page.text().contains(part), "{part}: {}", page.text());
    }
    assert!(page.text().contains("a note") && page.text().contains("read only"));
    let before = head(&sandbox);
    let fields = [("csrf", token.as_str()), ("action", "remove-note"), ("artifact", &core)];
    let response = submit(&serving, &fields).expect(405);
    assert_eq!(response.header("allow"), Some("GET, HEAD"));
    serving.get(&format!("/annotate?artifact={core}")).expect(404);
    assert_eq!(head(&sandbox), before);
}

#[test]
fn what_was_entered_is_kept_if_it_is_not_valid() {
    let sandbox = examples();
    let serving = writable(&sandbox);
    let core = cores_with(&sandbox, RUN);
    let page = serving.get(&format!("/artifact/{core}")).expect(200);
    let (token, before) = (token(page.text()).to_owned(), head(&sandbox));
    let long = "n".repeat(4097);
    for (action, field, value, message) in [
        ("set-tag", "tag", HOSTILE, "cannot be a tag"),
        ("set-tag", "tag", "latest", "latest cannot be a tag"),
        ("remove-tag", "tag", "nothing", "the artifact does not have the tag nothing"),
        ("set-labels", "label", HOSTILE, "cannot be the key of a label"),
        ("set-labels", "label", "branch", "a label is a key, = and a value"),
        ("set-note", "note", " \r\n", "a note must not be blank"),
        ("set-note", "note", &long, "has at most 4096 bytes"),
        (HOSTILE, "note", "n", "there is no action"),
    ] {
        let fields = [("csrf", token.as_str()), ("action", action), ("artifact", &core), (field, value)];
        let page = submit(&serving, &fields).expect(400);
        let text = page.text();
        assert!(text.contains("role=\"alert\"") && text.contains(message), "{message}: {text}");
        assert!(!text.contains("<script>") && !text.contains("<img"), "{text}");
        let kept = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let kept = kept.replace('"', "&quot;").replace("\r\n", "\n");
        let in_field = match field {
            "note" => text.contains(&format!(">\n{kept}</textarea>")),
            _ => text.contains(&format!("name=\"{field}\" value=\"{kept}\"")),
        };
        assert!(in_field || action == "remove-tag", "{action}: {text}");
        assert_eq!(self::token(text), token);
    }
    // The page was opened before the server was started again.
    let fields = [("csrf", "old"), ("action", "set-note"), ("artifact", &core), ("note", "long thoughts")];
    let page = submit(&serving, &fields).expect(403);
    assert!(page.text().contains("from before the server was started"), "{}", page.text());
    assert!(page.text().contains(">\nlong thoughts</textarea>"), "{}", page.text());
    assert_eq!(head(&sandbox), before);
}

#[test]
fn several_runs_are_labeled_at_once() {
    let sandbox = examples();
    let serving = writable(&sandbox);
    let [run, session] = [RUN, SESSION].map(|digits| cores_with(&sandbox, digits));
    // Lists name the artifacts that are selected in them "run", and have other fields.
    let page = serving.get(&format!("/annotate?model=&run={run}&run={session}&run={run}")).expect(200);
    assert!(page.text().contains("Labels of 2 artifacts") && !page.text().contains("<textarea"));
    let token = token(page.text());
    let fields = |action, name, value| {
        [("csrf", token), ("action", action), ("artifact", &run), ("run", &session), (name, value)]
    };
    let before = entries(&sandbox).len();
    let response = submit(&serving, &fields("set-labels", "label", "suite=<nightly>")).expect(303);
    let expected = format!("/annotate?artifact={run}&artifact={session}");
    assert_eq!(response.header("location"), Some(expected.as_str()));
    let page = serving.get(&expected).expect(200);
    assert_eq!(page.text().matches(">suite=&lt;nightly&gt;</a>").count(), 2, "{}", page.text());
    let journal = serving.get("/journal").expect(200);
    let entry = journal.text().split("<tr>").nth(2).unwrap();
    for core in [&run, &session] {
        assert!(entry.contains(&format!("<a class=\"hash\" href=\"/artifact/{core}\">")), "{entry}");
    }
    let found = sandbox.run(["find", "--label", "suite=<nightly>", "--json"]).expect(0).json();
    assert_eq!(found.len(), 2);
    // A tag and a note are those of one artifact.
    submit(&serving, &fields("set-tag", "tag", "both")).expect(400);
    submit(&serving, &fields("set-note", "note", "both")).expect(400);
    submit(&serving, &fields("remove-labels", "key", "suite")).expect(303);
    sandbox.run(["find", "--label", "suite"]).expect(1);
    assert_eq!(entries(&sandbox).len(), before + 2, "each is one change");
    serving.get("/annotate").expect(400);
    let many = format!("run={run}&").repeat(101);
    serving.get(&format!("/annotate?{many}")).expect(200);
    submit(&serving, &[("csrf", token), ("action", "set-note"), ("artifact", &"ab".repeat(32))]).expect(404);
}

#[test]
fn pages_that_change_the_vault_are_served_at_a_local_address_only() {
    let sandbox = examples();
    let refused = sandbox.run(["serve", "--allow-write", "--listen", "0.0.0.0:0"]).expect(3);
    assert!(refused.stderr.contains("--allow-write needs a local address"), "{}", refused.stderr);
    let server = WebServer::bind("0.0.0.0:0".parse().unwrap()).unwrap();
    let options = ServerOptions { allow_write: true, ..ServerOptions::default() };
    let refused = server.run(Vault::open(&sandbox.vault()).unwrap(), options, || true).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_form_that_does_not_arrive_is_not_waited_for() {
    let sandbox = examples();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let server = WebServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
    let head_timeout = Duration::from_millis(50);
    let options = ServerOptions { head_timeout, allow_write: true, ..ServerOptions::default() };
    let is_stopped = Arc::clone(&stop);
    let running =
        thread::spawn(move || server.run(vault, options, move || is_stopped.load(Ordering::SeqCst)));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!(
        "POST /annotate HTTP/1.1\r\nHost: {address}\r\n{}: {}\r\nContent-Length: 99\r\n\r\ncsrf=",
        FORM.0, FORM.1
    );
    // On a busy machine, the connection may end before anything is written to it.
    let mut bytes = Vec::new();
    let written = stream.write_all(head.as_bytes());
    let ended = written.and_then(|()| stream.read_to_end(&mut bytes)).map_err(|error| error.kind());
    assert!(!matches!(ended, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{ended:?}");
    assert!(bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&bytes));
    stop.store(true, Ordering::SeqCst);
    running.join().unwrap().unwrap();
}

#[test]
fn browsers_say_where_forms_come_from() {
    let sandbox = examples();
    // With "no-referrer", a browser sends the origin "null" with forms of every page.
    for (serving, policy) in [(writable(&sandbox), "same-origin"), (Serving::start(&sandbox), "no-referrer")]
    {
        let page = serving.get("/").expect(200);
        assert_eq!(page.header("referrer-policy"), Some(policy));
        assert!(page.header("content-security-policy").unwrap().contains("form-action 'self'"));
    }
}
