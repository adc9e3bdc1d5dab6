//! Several servers of pages, side by side on one vault, behind a proxy that passes requests to each in turn.

use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Database, Place};
use crate::sandbox::{repository, session};
use crate::server::{Serving, follow_all_links, get};

const WRITERS: usize = 8;
const SESSIONS: usize = 5;

/// A proxy that ends with the test.
struct RoundRobin {
    child: Child,
    address: SocketAddr,
}

impl RoundRobin {
    /// Starts nginx in `directory`, or says why the test is skipped.
    fn start(directory: &Path, servers: &[SocketAddr]) -> Option<Self> {
        static SKIPPED: Once = Once::new();
        let program = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists());
        let Some(program) = program else {
            SKIPPED.call_once(|| {
                let _ =
                    std::io::stderr().write_all(b"skipped: servers behind a proxy; nginx is not installed\n");
            });
            return None;
        };
        // Ports that are free now may be taken when nginx binds them; the name of a socket is not.
        let socket = directory.join("nginx.sock");
        let upstream =
            servers.iter().map(|server| format!("server {server};\n")).collect::<Vec<_>>().concat();
        let port = servers[0].port();
        let (name, socket) = (directory.display(), socket.display());
        let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|path| format!("{path}_temp_path {name}/{path};\n"))
            .concat();
        let configuration = format!(
            "daemon off; master_process off; pid {name}/pid; error_log {name}/error.log;
             events {{ worker_connections 256; }}
             http {{ access_log off; {paths}
               upstream servers {{ {upstream} }}
               server {{ listen unix:{socket};
                 location / {{ proxy_pass http://servers; proxy_set_header Host localhost:{port}; }} }} }}"
        );
        let path = directory.join("nginx.conf");
        std::fs::write(&path, configuration).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(&path).arg("-p").arg(directory).stdout(Stdio::null()).stderr(Stdio::null());
        let socket = directory.join("nginx.sock");
        let address = forward(socket.clone());
        let mut proxy = Self { child: command.spawn().unwrap(), address };
        while UnixStream::connect(&socket).is_err() {
            let ended = proxy.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", std::fs::read_to_string(directory.join("error.log")).unwrap());
            std::thread::yield_now();
        }
        Some(proxy)
    }
}

impl Drop for RoundRobin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes connections to a socket, until the process ends, and returns the address at which it does.
fn forward(socket: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { continue };
            let (requests, answers) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || io::copy(&mut &requests, &mut &server));
            std::thread::spawn(move || {
                let _ = io::copy(&mut &answers, &mut &client);
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

/// Starts three servers at addresses of this machine with one port, so that one name of the host is right for all of them.
fn start_servers(database: &Database) -> Vec<Serving> {
    loop {
        let first = Serving::start_at(command(database), "127.0.0.1:0");
        let others = [2, 3].map(|number| {
            let address = SocketAddr::from(([127, 0, 0, number], first.address.port()));
            Serving::try_start_at(command(database), &address.to_string())
        });
        // Another program may listen at one of them.
        if let [Some(second), Some(third)] = others {
            return vec![first, second, third];
        }
    }
}

/// The program on the vault in the database, with the credentials of the bucket.
fn command(database: &Database) -> Command {
    let mut command = database.sandbox.command();
    command.env("RUNVAULT_VAULT", &database.address);
    command.envs(std::env::vars().filter(|(name, _)| name.starts_with("AWS_")));
    command
}

fn sessions(database: &Database, writer: usize) -> Vec<PathBuf> {
    let write = |number: usize| {
        let document = session(&format!("writer-{writer}-{number}"), &[("p", "r"), ("q", "shared")]);
        database.sandbox.write(&format!("{writer}/{number}.json"), document)
    };
    (0..SESSIONS).map(write).collect()
}

/// Adds sessions one by one, and returns their core hashes.
fn add(database: &Database, writer: usize) -> Vec<String> {
    let added = sessions(database, writer).into_iter().map(|path| {
        let ran = command(database).args(["add", "--json"]).arg(path).output().unwrap();
        let ran = crate::sandbox::Ran::from(ran).expect(0);
        ran.json()[0]["core_hash"].as_str().unwrap().to_owned()
    });
    added.collect()
}

#[test]
fn pages_are_complete_while_one_of_three_servers_is_killed_and_eight_clients_add() {
    let Some(place) = Place::bucket() else { return };
    let Some(mut database) = Database::new() else { return };
    database.address = place.address_with(&database.address);
    database.run(["init"]).expect(0);
    let files = ["session.json", "run.rpk", "trace.ndjson", "contract.yaml", "pack"];
    let files = files.map(|name| repository("examples").join(name));
    database.run([Path::new("add")].into_iter().chain(files.iter().map(AsRef::as_ref))).expect(0);
    let mut servers = start_servers(&database);
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let Some(proxy) = RoundRobin::start(&database.sandbox.path(""), &addresses) else { return };
    let host = format!("localhost:{}", addresses[0].port());
    for server in &servers {
        // Each of them answers by itself.
        get(server.address, &host, "/stats").expect(200);
    }
    let is_done = AtomicBool::new(false);
    let (added, rounds) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let database = &database;
                    move || add(database, writer)
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut rounds = 0;
            loop {
                let was_done = is_done.load(Ordering::SeqCst);
                follow_all_links(&|path| get(proxy.address, &host, path));
                rounds += 1;
                // One round begins after everything was added.
                if was_done {
                    return rounds;
                }
            }
        });
        // While clients add and pages are read.
        drop(servers.swap_remove(1));
        let added: Vec<String> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        is_done.store(true, Ordering::SeqCst);
        (added, reader.join().unwrap())
    });
    assert_eq!(added.len(), WRITERS * SESSIONS);
    assert!(rounds > 0);
    let list = |path: &str| get(proxy.address, &host, path).expect(200).text().to_owned();
    for core in &added {
        assert!(list(&format!("/artifact/{core}")).contains(core.as_str()), "{core}");
    }
    // All servers that are left give the same list.
    assert_eq!(list("/artifacts?kind=model_io"), list("/artifacts?kind=model_io"));
    database.run(["fsck", "--full"]).expect(0);
}
