//! The pages over HTTP, as a browser requests them.

mod annotations;
#[cfg(feature = "gateway")]
mod browser;
#[cfg(feature = "gateway")]
mod comparisons;
#[cfg(feature = "gateway")]
mod conversations;
mod downloads;
mod fields;
mod files;
mod names;
mod places;
mod runs;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use runvault::Vault;
use runvault::server::{ServerOptions, WebServer};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use crate::sandbox::{Sandbox, repository, run_pack, session};

/// How long a response may take on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The real program, serving the vault of a sandbox.
pub(crate) struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
pub(crate) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} twice");
        value
    }

    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }
}

impl Serving {
    pub(crate) fn start(sandbox: &Sandbox) -> Self {
        Self::start_at(sandbox.command(), "127.0.0.1:0")
    }

    /// Starts the program at an address.
    pub(crate) fn start_at(mut command: Command, listen: &str) -> Self {
        command.args(["serve", "--listen", listen]);
        Self::start_with(command)
    }

    /// The same, or returns `None` if it cannot listen there.
    #[cfg_attr(
        not(feature = "objects"),
        expect(dead_code, reason = "only tests with object storage need it")
    )]
    pub(crate) fn try_start_at(mut command: Command, listen: &str) -> Option<Self> {
        command.args(["serve", "--listen", listen]);
        Self::try_start_with(command).ok()
    }

    fn start_with(command: Command) -> Self {
        Self::try_start_with(command).unwrap_or_else(|line| panic!("{line:?}"))
    }

    /// Returns its first line if it is no address.
    fn try_start_with(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        let Some(address) = address.map(|address| address.parse().unwrap()) else {
            child.wait().unwrap();
            return Err(line);
        };
        Ok(Self { child, stdout, address })
    }

    /// Returns the most memory that the process had so far, in bytes.
    #[cfg(target_os = "linux")]
    fn most_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        most.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[("Host", &self.address.to_string())])
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        request(self.address, method, path, headers)
    }
}

/// Requests a page of a server, by a name of its host.
pub(crate) fn get(address: SocketAddr, host: &str, path: &str) -> Response {
    request(address, "GET", path, &[("Host", host)])
}

fn request(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("{method} {path} HTTP/1.1\r\n{}Connection: close\r\n\r\n", headers.concat());
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&bytes)
}

/// Parses a response of known length.
fn parse(bytes: &[u8]) -> Response {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let mut head = std::str::from_utf8(&bytes[..end]).unwrap().split("\r\n");
    let status = head.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    };
    Response { status, headers: head.map(header).collect(), body: bytes[end + 4..].to_vec() }
}

/// The examples, a pack and what links them.
fn examples() -> Sandbox {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    sandbox.add(
        ["session.json", "run.rpk", "trace.ndjson", "contract.yaml", "pack"]
            .map(|name| repository("examples").join(name)),
    );
    sandbox
}

/// The core hashes of all artifacts.
fn cores(sandbox: &Sandbox) -> Vec<String> {
    let found = sandbox.run(["find", "--json"]).expect(0).json();
    found.iter().map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect()
}

/// The addresses of this server that a page refers to.
fn addresses(page: &str) -> Vec<String> {
    let links = page.split("href=\"").skip(1).chain(page.split("src=\"").skip(1));
    let links = links.map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"));
    links.filter(|link| !link.starts_with('#') && link != "data:,").collect()
}

#[test]
fn a_connection_without_a_complete_head_is_closed() {
    let sandbox = Sandbox::new();
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let server = WebServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
    let options = ServerOptions { head_timeout: Duration::from_millis(50), ..ServerOptions::default() };
    let is_stopped = Arc::clone(&stop);
    let running =
        thread::spawn(move || server.run(vault, options, move || is_stopped.load(Ordering::SeqCst)));
    for head in ["", "GET / HTTP/1.1\r\nHost"] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        // The server ends the connection, with or without a response, on a busy machine before anything is written to it.
        let mut bytes = Vec::new();
        let written = stream.write_all(head.as_bytes());
        let ended = written.and_then(|()| stream.read_to_end(&mut bytes)).map_err(|error| error.kind());
        assert!(!matches!(ended, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{ended:?}");
        assert!(!bytes.starts_with(b"HTTP/1.1 200"), "{ended:?}");
    }
    stop.store(true, Ordering::SeqCst);
    running.join().unwrap().unwrap();
}

#[test]
fn every_page_that_a_page_leads_to_exists() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let seen = follow_all_links(&|path| serving.get(path));
    for core in cores(&sandbox) {
        assert!(seen.contains(&format!("/artifact/{core}")), "{core}");
        assert!(seen.iter().any(|path| path.starts_with(&format!("/artifact/{core}/core"))), "{core}");
    }
}

/// Requests every page that another page leads to, and returns their addresses.
pub(crate) fn follow_all_links(get: &dyn Fn(&str) -> Response) -> Vec<String> {
    let mut waiting = vec!["/".to_owned()];
    let mut seen: Vec<String> = Vec::new();
    while let Some(path) = waiting.pop() {
        // Lists with other parameters are the same pages.
        if seen.contains(&path) || seen.len() > 400 {
            continue;
        }
        let response = get(&path);
        assert!(matches!(response.status, 200 | 302), "{path}: {}", String::from_utf8_lossy(&response.body));
        if response.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            for address in addresses(response.text()) {
                assert!(address.starts_with('/') && !address.starts_with("//"), "{path}: {address}");
                waiting.push(address.split('#').next().unwrap().to_owned());
            }
        }
        seen.push(path);
    }
    seen
}

#[test]
fn responses_state_what_browsers_may_do() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let core = &cores(&sandbox)[0];
    let paths = ["/", "/stats", "/nothing", "/assets/style.css", "/artifacts?kind=none", "/search?q=a"];
    for path in paths.iter().map(ToString::to_string).chain([format!("/artifact/{core}/core")]) {
        let response = serving.get(&path);
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
        if response.header("content-type").unwrap().starts_with("text/html") {
            assert!(!response.text().contains(" style=") && !response.text().contains("<style"), "{path}");
            assert!(!response.text().contains(" onclick="), "{path}");
        }
    }
}

#[test]
fn requests_for_other_hosts_are_refused() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let port = serving.address.port();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        serving.request("GET", "/stats", &[("Host", &host)]).expect(200);
    }
    for host in
        [format!("evil.example:{port}"), "127.0.0.1".to_owned(), format!("127.0.0.1.evil.example:{port}")]
    {
        let response = serving.request("GET", "/stats", &[("Host", &host)]).expect(421);
        assert!(!response.text().contains("artifacts"), "{}", response.text());
    }
    serving.request("GET", "/stats", &[]).expect(421);
    let own = format!("127.0.0.1:{port}");
    let twice = serving.request("GET", "/stats", &[("Host", &own), ("Host", "evil.example")]);
    assert!(matches!(twice.status, 400 | 421), "{}", twice.status);
}

#[test]
fn pages_can_only_be_read() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let host = serving.address.to_string();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let response = serving.request(method, "/", &[("Host", &host), ("Content-Length", "0")]).expect(405);
        assert_eq!(response.header("allow"), Some("GET, HEAD"));
    }
    let head = serving.request("HEAD", "/stats", &[("Host", &host)]).expect(200);
    assert!(head.body.is_empty());
}

#[test]
fn what_does_not_exist_is_an_error_with_a_page() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let absent = "ab".repeat(32);
    for (path, status) in [
        ("/nothing".to_owned(), 404),
        (format!("/artifact/{absent}"), 404),
        (format!("/artifact/{absent}/core"), 404),
        ("/artifact/@nothing".to_owned(), 404),
        ("/artifact/xyz".to_owned(), 404),
        ("/artifact/%ff%fe".to_owned(), 400),
        ("/artifacts?kind=nothing".to_owned(), 400),
        ("/artifacts?unknown=1".to_owned(), 400),
        ("/artifacts?since=soon".to_owned(), 400),
        ("/artifacts?attribute=model%3Dm".to_owned(), 400),
        ("/artifacts?after=%7B%7D".to_owned(), 400),
        ("/journal?before=x".to_owned(), 400),
        ("/assets/other.js".to_owned(), 404),
        ("/../Cargo.toml".to_owned(), 404),
    ] {
        let response = serving.get(&path).expect(status);
        assert!(response.text().contains("</html>"), "{path}: {}", response.text());
    }
    let core = &cores(&sandbox)[0];
    serving.get(&format!("/artifact/{core}/graph?depth=9")).expect(400);
    let twice = serving.get("/?label=a&label=b").expect(400);
    assert!(twice.text().contains("the address has the parameter label more than once"), "{}", twice.text());
}

#[test]
fn names_lead_to_artifacts_and_words_to_the_search() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let core = sandbox.run(["find", "runs", "--json"]).expect(0).json()[0]["core_hash"].clone();
    let core = core.as_str().unwrap();
    sandbox.run(["tag", "set", core, "golden"]).expect(0);
    let page = format!("/artifact/{core}");
    let digits = &core["sha256:".len()..];
    for name in [core.to_owned(), digits[..12].to_owned(), digits[..6].to_owned(), "@golden".to_owned()] {
        let response = serving.get(&format!("/go?q={name}")).expect(302);
        assert_eq!(response.header("location"), Some(page.as_str()), "{name}");
    }
    let by_prefix = serving.get(&format!("/artifact/{}", &digits[..8])).expect(302);
    assert_eq!(by_prefix.header("location"), Some(page.as_str()));
    let only = serving.get("/artifact/@golden?only=tools").expect(302);
    assert_eq!(only.header("location"), Some(format!("{page}?only=tools").as_str()));
    serving.get("/artifact/@golden?only=%0d%0ax").expect(400);
    let words = serving.get("/go?q=two%20words").expect(302);
    assert_eq!(words.header("location"), Some("/search?q=two%20words"));
}

#[test]
fn bytes_are_returned_as_they_were_received() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let core = sandbox.run(["find", "runs", "--json"]).expect(0).json()[0]["core_hash"].clone();
    let page = serving.get(&format!("/artifact/{}", core.as_str().unwrap())).expect(200);
    let links = addresses(page.text());
    let bytes = links.iter().find(|link| link.contains("/bytes?")).unwrap();
    let response = serving.get(bytes).expect(200);
    assert_eq!(response.body, std::fs::read(repository("examples/run.rpk")).unwrap());
    assert_eq!(response.header("content-type"), Some("application/octet-stream"));
    assert!(response.header("content-disposition").unwrap().starts_with("attachment; filename=\""));
    let text = serving.get(links.iter().find(|link| link.contains("/core?")).unwrap()).expect(200).body;
    let digest = runvault::digest::Digest::from_content(&text);
    assert_eq!(digest.to_string(), core.as_str().unwrap());
    assert!(page.text().contains("Verified") && page.text().contains("read and hashed for this page"));
}

#[test]
fn files_of_packs_are_returned_alone() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let core = sandbox.run(["find", "packs", "--json"]).expect(0).json()[0]["core_hash"].clone();
    let page = serving.get(&format!("/artifact/{}", core.as_str().unwrap())).expect(200);
    let links = addresses(page.text());
    let members: Vec<&String> = links.iter().filter(|link| link.contains("member=")).collect();
    assert_eq!(members.len(), std::fs::read_dir(repository("examples/pack")).unwrap().count());
    for link in members {
        let name = link.split("member=").nth(1).unwrap();
        let bytes = serving.get(link).expect(200).body;
        assert_eq!(bytes, std::fs::read(repository("examples/pack").join(name)).unwrap(), "{name}");
    }
    serving.get(&format!("/artifact/{}/bytes", core.as_str().unwrap())).expect(400);
    serving.get(&format!("/artifact/{}/bytes?member=nothing", core.as_str().unwrap())).expect(400);
}

/// Markup, terminal escapes, and marks that reverse text.
pub(crate) const HOSTILE: &str =
    "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>\u{1b}[2J\u{202e}txt\u{9b}\u{7f}";

/// A run with hostile text in everything that is free.
pub(crate) fn hostile_run() -> String {
    run_pack(
        HOSTILE,
        &[
            json!({"type": "model.request", "input": {HOSTILE: HOSTILE}, "output": HOSTILE, "metadata": {"model": HOSTILE}}),
            json!({"type": "tool.request", "input": {"name": HOSTILE, "arguments": HOSTILE}, "output": {HOSTILE: [HOSTILE]}}),
        ],
    )
}

#[test]
fn nothing_from_an_artifact_is_markup() {
    let sandbox = examples();
    let files = [
        sandbox.write("hostile.json", session(HOSTILE, &[(HOSTILE, HOSTILE)])),
        sandbox.write("hostile.rpk", hostile_run()),
        sandbox.write("hostile.bin", HOSTILE),
    ];
    let cores = sandbox.add(&files[..2]);
    sandbox.run(["add", "--as", "attachment", files[2].to_str().unwrap()]).expect(0);
    sandbox.run(["note", "set", &cores[0], HOSTILE]).expect(0);
    sandbox.run(["index", "build"]).expect(0);
    let serving = Serving::start(&sandbox);
    let mut paths: Vec<String> =
        ["/", "/artifacts", "/stats", "/journal", "/search?q=alert", "/artifacts?note=alert"]
            .map(ToOwned::to_owned)
            .to_vec();
    paths.extend(
        self::cores(&sandbox)
            .iter()
            .flat_map(|core| [format!("/artifact/{core}"), format!("/artifact/{core}/graph")]),
    );
    let mut seen = 0;
    for path in paths {
        let response = serving.get(&path);
        let text = response.text();
        for part in ["<script>", "<img", "onerror=alert(1)>", "\u{1b}", "\u{202e}", "\u{9b}", "\u{7f}"] {
            assert!(!text.contains(part), "{path} has {part:?}");
        }
        seen += text.matches("&lt;script&gt;").count();
    }
    for path in ["/search?q=", "/artifacts?note=", "/?model=", "/diff?one=", "/go?q=", "/artifact/"] {
        let response = serving.get(&format!("{path}%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E"));
        assert!(!response.text().contains("<script>"), "{path}");
    }
    assert!(seen > 5, "the hostile text is on {seen} places only");
}

#[test]
fn lists_are_paged() {
    let sandbox = Sandbox::new();
    let files: Vec<_> = (0..120)
        .map(|number| sandbox.write(&format!("{number}.json"), session("a", &[(&format!("p{number}"), "r")])))
        .collect();
    let mut expected = sandbox.add(&files);
    let serving = Serving::start(&sandbox);
    let mut found = Vec::new();
    let mut sizes = Vec::new();
    let mut next = Some("/artifacts?kind=model_io".to_owned());
    while let Some(path) = next {
        let page = serving.get(&path).expect(200);
        let main = page.text().split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
        let on_page: Vec<String> = addresses(main)
            .into_iter()
            .filter_map(|address| Some(address.strip_prefix("/artifact/")?.to_owned()))
            .collect();
        sizes.push(on_page.len());
        found.extend(on_page);
        let links = page.text().split("rel=\"next\"").nth(1);
        next = links.map(|rest| addresses(rest)[0].clone());
    }
    assert_eq!(sizes, [50, 50, 20]);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let older = serving.get("/journal").expect(200);
    assert!(
        older.text().contains("href=\"/journal?before=21\""),
        "the journal has 120 entries, 100 on a page"
    );
    let oldest = serving.get("/journal?before=21").expect(200);
    assert_eq!(oldest.text().matches("<tr>").count(), 21);
}

#[test]
fn a_changing_vault_is_shown_as_it_is() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let path = sandbox.write("new.json", session("a", &[("new prompt", "new response")]));
    let core = sandbox.add([path]).remove(0);
    serving.get(&format!("/artifact/{core}")).expect(200);
    assert!(serving.get("/artifacts").text().contains(&core));
    sandbox.run(["rm", core.as_str(), "--reason", "test"]).expect(0);
    let gone = serving.get(&format!("/artifact/{core}")).expect(410);
    assert!(gone.text().contains("removed"), "{}", gone.text());
    assert!(!serving.get("/artifacts").text().contains(&core));
}

#[test]
fn a_vault_without_a_search_index_says_so() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let response = serving.get("/search?q=ticket").expect(404);
    assert!(response.text().contains("no search index") && response.text().contains("index build"));
    sandbox.run(["index", "build"]).expect(0);
    let found = serving.get("/search?q=ticket").expect(200);
    assert!(found.text().contains("<mark>ticket</mark>"), "{}", found.text());
    assert!(serving.get("/search?q=%22").text().contains("</html>"));
}

#[test]
fn an_index_of_another_version_is_not_searched_by_who_only_reads() {
    let sandbox = examples();
    sandbox.run(["index", "build"]).expect(0);
    let connection = Connection::open_with_flags(sandbox.vault(), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    connection.execute_batch("UPDATE search_state SET version = version + 1").unwrap();
    let serving = Serving::start(&sandbox);
    let refused = serving.get("/search?q=ticket").expect(404);
    let reason = "the search index was made by another version of this program, and must be rebuilt";
    assert!(refused.text().contains(reason) && refused.text().contains("index build"), "{}", refused.text());
    // Who may write rebuilds it.
    sandbox.run(["search", "ticket"]).expect(0);
    assert!(serving.get("/search?q=ticket").expect(200).text().contains("<mark>ticket</mark>"));
}

#[cfg(unix)]
#[test]
fn signals_stop_the_server() {
    use rustix::process::{Pid, Signal, kill_process};

    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = examples();
        let mut serving = Serving::start(&sandbox);
        serving.get("/stats").expect(200);
        // A connection without a request does not keep it from stopping.
        let idle = TcpStream::connect(serving.address).unwrap();
        kill_process(Pid::from_child(&serving.child), signal).unwrap();
        assert_eq!(serving.child.wait().unwrap().code(), Some(0));
        let mut rest = String::new();
        serving.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        drop(idle);
        assert!(TcpStream::connect(serving.address).is_err());
    }
}

#[test]
fn an_address_that_cannot_be_used_is_an_error() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let ran = sandbox.run(["serve", "--listen", &serving.address.to_string()]).expect(2);
    assert!(ran.stderr.contains("cannot listen at"), "{}", ran.stderr);
    sandbox.run(["serve", "--listen", "localhost"]).expect(3);
    let missing = Sandbox::without_vault();
    missing.run(["serve"]).expect(2);
}

#[test]
fn runs_are_listed_by_label() {
    let sandbox = examples();
    let core = "3941d389b337";
    sandbox.run(["label", "set", core, "branch=main", "job=https://ci.example/?a=1&b=<b>"]).expect(0);
    let serving = Serving::start(&sandbox);
    let all = serving.get("/").expect(200);
    assert!(
        all.text().contains(r#"<a class="tag" href="/?label=branch%3Dmain">branch=main</a>"#),
        "{}",
        all.text()
    );
    assert!(all.text().contains("job=https://ci.example/?a=1&amp;b=&lt;b&gt;"), "{}", all.text());
    assert!(all.text().contains("/?label=job%3Dhttps://ci.example/%3Fa%3D1%26b%3D%3Cb%3E"), "{}", all.text());
    for (query, is_found) in [
        ("branch%3Dmain", true),
        ("branch", true),
        ("branch%3Dma", false),
        ("job%3Dhttps://ci.example/%3Fa%3D1%26b%3D%3Cb%3E", true),
        ("%3D", false),
    ] {
        let page = serving.get(&format!("/?label={query}")).expect(200);
        assert_eq!(page.text().contains("No run matches."), !is_found, "{query}");
    }
    for (query, count) in [("branch%3Dmain", 1), ("branch", 1), ("branch%3Dma", 0), ("%20", 5)] {
        let page = serving.get(&format!("/artifacts?label={query}&order=core")).expect(200);
        let rows = page.text().matches("href=\"/artifact/").count();
        assert_eq!(rows, count, "{query}: {}", page.text());
        assert!(page.text().contains("name=\"label\""), "{}", page.text());
    }
    let artifact = serving.get(&format!("/artifact/{}", cores_with(&sandbox, core))).expect(200);
    assert!(artifact.text().contains(">branch=main</a>"), "{}", artifact.text());
}

/// The whole core hash that begins with these digits.
fn cores_with(sandbox: &Sandbox, digits: &str) -> String {
    cores(sandbox).into_iter().find(|core| core.contains(digits)).unwrap()
}

#[test]
fn without_an_address_the_next_free_port_from_4780_on_is_used() {
    let sandbox = examples();
    let start = || {
        let mut command = sandbox.command();
        command.arg("serve");
        Serving::start_with(command)
    };
    let (one, other) = (start(), start());
    assert!([one.address.port(), other.address.port()].iter().all(|port| (4780..4800).contains(port)));
    assert_ne!(one.address, other.address);
    one.get("/").expect(200);
    other.get("/").expect(200);
}

#[cfg(unix)]
#[test]
fn a_vault_that_is_overwritten_or_replaced_by_another_one_is_not_read() {
    for is_replaced in [false, true] {
        let (sandbox, other) = (Sandbox::new(), Sandbox::new());
        let cores = sandbox.add([sandbox.write("one.json", session("one", &[("p", "r")]))]);
        other.add([other.write("other.json", session("other", &[("p", "other")]))]);
        let serving = Serving::start(&sandbox);
        let page = format!("/artifact/{}", cores[0]);
        serving.get(&page).expect(200);
        // Not in this process: it would change the locks of vaults that are open here.
        let program = if is_replaced { "mv" } else { "cp" };
        let copied = Command::new(program).arg(other.vault()).arg(sandbox.vault()).status().unwrap();
        assert!(copied.success());
        for path in [page.as_str(), "/artifacts", "/stats"] {
            let answer = serving.get(path);
            assert!(answer.status >= 500, "{path}: {}", answer.status);
            assert!(!answer.text().contains("adapter"), "{path}: {}", answer.text());
        }
        drop(serving);
        // A new server reads the other vault, which is as it was copied.
        assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
        Serving::start(&sandbox).get(&page).expect(404);
    }
}
