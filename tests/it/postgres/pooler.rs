//! A pooler that assigns connections of the server per transaction, and servers that do not answer.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::Database;
use crate::sandbox::{Sandbox, repository};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// `PgBouncer` before the server of the tests, which ends with the test. Before version 1.21, it does not know prepared
/// statements.
struct Pooler {
    directory: TempDir,
    process: Child,
}

impl Pooler {
    /// Starts a pooler with one connection of the server for each database and user, which all clients share.
    fn start(address: &str) -> Option<Self> {
        let host = address.split(['?', '&']).find_map(|part| part.strip_prefix("host="))?;
        if !Path::new(PROGRAM).exists() || !host.starts_with('/') {
            let _ = std::io::stderr().write_all(b"skipped: PgBouncer is not installed\n");
            return None;
        }
        let directory = tempfile::Builder::new().prefix("rv").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let path = directory.path().display();
        let settings = format!(
            "[databases]\n* = host={host} port=5432\n[pgbouncer]\nunix_socket_dir = {path}\nlisten_port = 5432\n\
             listen_addr =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nlogfile = {path}/log\n\
             server_tls_sslmode = disable\n"
        );
        // Without authentication, the pooler asks the server as one user.
        let settings = settings.replace("port=5432\n", "port=5432 user=runvault\n");
        std::fs::write(directory.path().join("settings"), settings).unwrap();
        // It refuses to run as root.
        let is_root = rustix::process::geteuid().is_root();
        let mut command = if is_root { Command::new("setpriv") } else { Command::new(PROGRAM) };
        if is_root {
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--", PROGRAM]);
        }
        let process = command
            .arg("--quiet")
            .arg(directory.path().join("settings"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pooler = Self { directory, process };
        while !pooler.directory.path().join(".s.PGSQL.5432").exists() {
            assert!(pooler.process.try_wait().unwrap().is_none(), "the pooler ended");
            std::thread::yield_now();
        }
        Some(pooler)
    }

    fn address(&self, address: &str) -> String {
        let directory = self.directory.path().display();
        let parts = address.split_inclusive(['?', '&']).map(|part| match part.strip_prefix("host=") {
            Some(host) if host.ends_with('&') => format!("host={directory}&"),
            Some(_) => format!("host={directory}"),
            None => part.to_owned(),
        });
        parts.collect()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn processes_that_share_a_pooler_do_not_run_statements_of_each_other() {
    let Some(database) = Database::new() else { return };
    let Some(pooler) = Pooler::start(&database.address) else { return };
    let address = pooler.address(&database.address);
    let sandbox = Sandbox::at(super::CLOCK);
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command();
        command.env("RUNVAULT_VAULT", &address).args(["--actor", "tester"]).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let examples = repository("examples");
    let examples = examples.to_str().unwrap();
    assert!(run(&["init"]).status().unwrap().success());
    // Every statement is run often enough to be prepared, by processes that share connections.
    let commands: [&[&str]; 5] = [
        &["add", examples],
        &["add", examples],
        &["fsck"],
        &["links", "5c496a37feba", "--depth", "3"],
        &["export", "--all", "-o", "all.rvz", "--force"],
    ];
    run(commands[0]).output().unwrap();
    for _ in 0..3 {
        let running: Vec<Child> = commands.iter().map(|arguments| run(arguments).spawn().unwrap()).collect();
        for (arguments, child) in commands.iter().zip(running) {
            let ran = crate::sandbox::Ran::from(child.wait_with_output().unwrap());
            assert_eq!(ran.status, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        }
    }
    let direct = database.run(["find", "--json"]).expect(0);
    let ran = crate::sandbox::Ran::from(run(&["find", "--json"]).output().unwrap()).expect(0);
    assert_eq!(ran.stdout, direct.stdout);
    database.run(["fsck", "--full"]).expect(0);
}

#[test]
fn a_server_that_never_answers_is_named_and_given_up() {
    let sandbox = Sandbox::new();
    // Connections are accepted by the system, and nothing is ever answered.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("postgres://ann:s3cret@{}/runs?connect_timeout=2", listener.local_addr().unwrap());
    let ran =
        crate::sandbox::Ran::from(sandbox.command().args(["--vault", &address, "list"]).output().unwrap());
    let (notice, error) = ran.stderr.split_once("error: ").unwrap_or_default();
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(
        notice.contains("waiting for an answer of the server at postgresql://ann@127.0.0.1:"),
        "{}",
        ran.stderr
    );
    assert!(error.contains("the server did not answer for 6 s"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
}

#[test]
fn the_next_host_is_tried_if_one_does_not_answer() {
    let Some(database) = Database::with_examples() else { return };
    let listener = TempDir::new().unwrap();
    let _silent = std::os::unix::net::UnixListener::bind(listener.path().join(".s.PGSQL.5432")).unwrap();
    let silent = format!("host={},", listener.path().display());
    let address = format!("{}&connect_timeout=1", database.address.replace("host=", &silent));
    let mut command = database.sandbox.command();
    let ran =
        crate::sandbox::Ran::from(command.args(["--vault", &address, "find", "--json"]).output().unwrap());
    assert_eq!(ran.expect(0).stdout, database.run(["find", "--json"]).expect(0).stdout);
}
