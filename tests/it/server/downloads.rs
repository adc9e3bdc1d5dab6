//! Downloads: clients that leave or stop reading, and bytes that the catalog does not lead to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use runvault::Vault;
use runvault::digest::Digest;
use runvault::server::{ServerOptions, WebServer};
use runvault::vault::resolve::ResolveRequest;
use rusqlite::{Connection, OpenFlags};

use super::{Response, Serving, TIMEOUT, cores, examples};
use crate::damage::CATALOG;
use crate::sandbox::{Sandbox, repository};

/// More than the buffers of a connection take.
const LARGE: usize = 24 << 20;

/// Longer than a busy machine takes for anything.
const A_LONG_TIME: Duration = Duration::from_hours(1);

/// How many downloads the server has in memory at once.
const AT_ONCE: usize = 4;

/// A vault with one large file, and the path of its bytes.
fn large() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let line = b"one of many lines of a large file\n";
    let bytes: Vec<u8> = line.iter().copied().cycle().take(LARGE).collect();
    let file = sandbox.write("large.txt", bytes);
    let core =
        sandbox.run(["add", "--kind", "attachment", file.to_str().unwrap(), "--json"]).expect(0).json();
    let path = format!("/artifact/{}/bytes", core[0]["core_hash"].as_str().unwrap());
    (sandbox, path)
}

/// Requests the bytes, and reads only the beginning of the answer.
fn begin(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    stream
}

/// Serves a vault in this process while `ask` runs.
fn serving(sandbox: &Sandbox, read_timeout: Duration, ask: impl FnOnce(SocketAddr)) {
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let server = WebServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (address, stop) = (server.address(), AtomicBool::new(false));
    let options = ServerOptions { read_timeout, ..ServerOptions::default() };
    thread::scope(|scope| {
        let running = scope.spawn(|| server.run(vault, options, || stop.load(Ordering::SeqCst)));
        let asked = catch_unwind(AssertUnwindSafe(|| ask(address)));
        stop.store(true, Ordering::SeqCst);
        running.join().unwrap().unwrap();
        asked.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

fn get(address: SocketAddr, path: &str) -> Response {
    super::get(address, &address.to_string(), path).expect(200)
}

#[test]
fn a_client_that_leaves_in_the_middle_makes_room_for_others() {
    let (sandbox, path) = large();
    serving(&sandbox, A_LONG_TIME, |address| {
        for _ in 0..2 * AT_ONCE {
            drop(begin(address, &path));
        }
        assert_eq!(get(address, &path).body.len(), LARGE);
    });
}

#[test]
fn a_client_that_stops_reading_makes_room_for_others() {
    let (sandbox, path) = large();
    let small = sandbox.add([repository("examples/session.json")]).remove(0);
    serving(&sandbox, Duration::from_millis(100), |address| {
        let stalled: Vec<TcpStream> = (0..AT_ONCE).map(|_| begin(address, &path)).collect();
        let bytes = get(address, &format!("/artifact/{small}/bytes")).body;
        assert_eq!(bytes, std::fs::read(repository("examples/session.json")).unwrap());
        // The download that made room ended early.
        let lengths = stalled.into_iter().map(|mut stream| {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            rest.len()
        });
        assert!(lengths.min().unwrap() < LARGE);
    });
}

#[test]
fn pages_are_made_while_clients_do_not_read_their_downloads() {
    let (sandbox, path) = large();
    serving(&sandbox, A_LONG_TIME, |address| {
        let waiting: Vec<TcpStream> = (0..AT_ONCE).map(|_| begin(address, &path)).collect();
        get(address, "/stats");
        // Who reads on gets everything.
        for mut stream in waiting {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            assert!(bytes.len() > LARGE, "{}", bytes.len());
        }
        get(address, &path);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn downloads_at_once_take_the_memory_of_one() {
    // The cache of the database, and buffers.
    const FIXED: usize = 16 << 20;
    let (sandbox, path) = large();
    let mut command = sandbox.command();
    command.env("MALLOC_ARENA_MAX", "1");
    let serving = Serving::start_at(command, "127.0.0.1:0");
    get(serving.address, "/stats");
    let before = serving.most_memory();
    let waiting: Vec<TcpStream> = (0..AT_ONCE).map(|_| begin(serving.address, &path)).collect();
    let taken = serving.most_memory() - before;
    drop(waiting);
    // One copy is hashed, and another one is decompressed.
    assert!(taken <= 2 * LARGE + FIXED, "{taken} bytes");
}

/// The files of artifacts, as programs in Python read them.
fn files(sandbox: &Sandbox, cores: &[String]) -> Vec<Vec<Vec<u8>>> {
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let files = |core: &String| {
        let members =
            ResolveRequest::new(core).members(&vault).unwrap_or_else(|error| panic!("{core}: {error}"));
        members.into_iter().map(|member| member.bytes).collect()
    };
    cores.iter().map(files).collect()
}

#[test]
fn artifacts_and_their_captures_are_served_whatever_the_catalog_says() {
    let whole = examples();
    let cores = cores(&whole);
    let serving = Serving::start(&whole);
    let mut downloads = Vec::new();
    for core in &cores {
        let shown = whole.run(["show", core, "--json"]).expect(0).json().remove(0);
        for capture in shown["captures"].as_array().unwrap() {
            let capture = format!("capture={}", capture["capture_hash"].as_str().unwrap());
            for part in [
                "bytes",
                "bytes?member=run.json",
                &format!("bytes?{capture}"),
                &format!("bytes?{capture}&member=run.json"),
                "core",
                &format!("core?{capture}"),
            ] {
                let path = format!("/artifact/{core}/{part}");
                let response = serving.get(&path);
                downloads.extend((response.status == 200).then_some((path, response.body)));
            }
        }
    }
    assert!(downloads.len() >= 20, "{}", downloads.len());
    let expected = files(&whole, &cores);
    for change in CATALOG {
        let sandbox = examples();
        crate::fsck::sql(&sandbox).execute_batch(change).unwrap();
        let serving = Serving::start(&sandbox);
        for core in &cores {
            serving.get(&format!("/artifact/{core}")).expect(200);
        }
        for (path, bytes) in &downloads {
            assert!(serving.get(path).expect(200).body == *bytes, "{change}: {path}");
        }
        assert!(files(&sandbox, &cores) == expected, "{change}");
    }
}

#[test]
fn intact_bytes_that_the_catalog_does_not_lead_to_are_served() {
    let whole = examples();
    let expected: Vec<(String, Vec<u8>)> = {
        let serving = Serving::start(&whole);
        let downloads = cores(&whole).into_iter().filter_map(|core| {
            let response = serving.get(&format!("/artifact/{core}/bytes"));
            (response.status == 200).then_some((core, response.body))
        });
        downloads.collect()
    };
    assert!(expected.len() > 3);
    for change in ["DELETE FROM artifact", "UPDATE artifact SET core = zeroblob(32)"] {
        let sandbox = examples();
        let [pack] = &sandbox.run(["find", "packs", "--json"]).expect(0).json()[..] else { panic!() };
        let pack = pack["core_hash"].as_str().unwrap();
        let member = format!("/artifact/{pack}/bytes?member=run.json");
        let run = std::fs::read(repository("examples/pack/run.json")).unwrap();
        let connection = Connection::open_with_flags(sandbox.vault(), OpenFlags::SQLITE_OPEN_READ_WRITE);
        connection.unwrap().execute_batch(&format!("PRAGMA foreign_keys = off; {change}")).unwrap();
        let serving = Serving::start(&sandbox);
        for (core, bytes) in &expected {
            let response = serving.get(&format!("/artifact/{core}/bytes")).expect(200);
            assert!(response.body == *bytes, "{change}: {core}");
            let text = serving.get(&format!("/artifact/{core}/core")).expect(200).body;
            assert_eq!(Digest::from_content(&text).to_string(), *core, "{change}");
            let page = serving.get(&format!("/artifact/{core}")).expect(200);
            assert!(page.text().contains("<strong>Recovered</strong>"), "{change}: {}", page.text());
            assert!(
                page.text().contains(&format!("href=\"/artifact/{core}/bytes\"")),
                "{change}: {}",
                page.text()
            );
        }
        assert!(serving.get(&member).expect(200).body == run, "{change}");
        let pack_page = serving.get(&format!("/artifact/{pack}")).expect(200);
        assert!(pack_page.text().contains(&format!("href=\"{member}\"")), "{change}: {}", pack_page.text());
        serving.get(&format!("/artifact/sha256:{}", "7".repeat(64))).expect(404);
        let members = ResolveRequest::new(pack).members(&Vault::open(&sandbox.vault()).unwrap()).unwrap();
        assert!(members.iter().any(|file| file.name == "run.json" && file.bytes == run), "{change}");
    }
}

#[test]
fn bytes_of_which_the_row_and_the_entry_are_lost_have_a_page() {
    let sandbox = examples();
    sandbox.add([repository("examples/session-rerecorded.json")]);
    let bytes = std::fs::read(repository("examples/session-rerecorded.json")).unwrap();
    let capture = Digest::from_content(&bytes);
    let page = format!("/artifact/{capture}");
    let change = format!(
        "DELETE FROM capture WHERE blob = (SELECT id FROM blob WHERE digest = x'{0}');
         DELETE FROM journal WHERE capture = x'{0}'",
        capture.hex()
    );
    crate::fsck::sql(&sandbox).execute_batch(&change).unwrap();
    let serving = Serving::start(&sandbox);
    assert!(serving.get(&format!("{page}/bytes")).expect(200).body == bytes);
    let shown = serving.get(&page).expect(200);
    for expected in ["<strong>Recovered</strong>", "does not say which", &format!("href=\"{page}/bytes\"")] {
        assert!(shown.text().contains(expected), "{expected}: {}", shown.text());
    }
    // Without the artifact, there is no canonical text.
    serving.get(&format!("{page}/core")).expect(404);
}
