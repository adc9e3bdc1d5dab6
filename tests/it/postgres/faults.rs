//! Servers and clients that die, and connections that are cut: nothing that was acknowledged is lost, nothing is there twice
//! or in part.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use runvault::Vault;
use runvault::digest::DigestPrefix;
use serde_json::Value;

use super::proxy::{Cut, Plan, Proxy};
use super::server::Server;
use super::{CLOCK, Database, Schema};
use crate::sandbox::{Sandbox, session};

/// A program that adds `paths` to the vault at `address`.
fn add(sandbox: &Sandbox, address: &str, paths: &[String]) -> Command {
    let mut command = sandbox.command();
    command.env("RUNVAULT_VAULT", address).args(["--actor", "writer", "add", "--json"]).args(paths);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Writes `count` sessions, whose content follows from `name`, and returns their paths.
fn sessions(sandbox: &Sandbox, name: &str, count: usize) -> Vec<String> {
    let write = |number: usize| {
        let text = format!("{name} {number}");
        let document = session(&format!("adapter-{name}-{number}"), &[("p", &text.repeat(50)), (&text, "r")]);
        sandbox.write(&format!("{name}/{number:04}.json"), document).to_str().unwrap().to_owned()
    };
    (0..count).map(write).collect()
}

/// What was acknowledged: the bytes by core hash.
type Acknowledged = BTreeMap<String, Vec<u8>>;

/// The artifacts in the lines that were printed whole.
fn acknowledged(printed: &str) -> Acknowledged {
    let lines = printed.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(acknowledgement).collect()
}

fn acknowledgement(line: &str) -> (String, Vec<u8>) {
    let line: Value = serde_json::from_str(line).unwrap();
    let bytes = std::fs::read(line["path"].as_str().unwrap()).unwrap();
    (line["core_hash"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned(), bytes)
}

/// Expects that the vault has everything that was acknowledged, each thing once, and nothing that a check finds.
fn expect_all(sandbox: &Sandbox, address: &str, acknowledged: &Acknowledged) {
    let vault = Vault::open(Path::new(address)).unwrap();
    for (core, bytes) in acknowledged {
        let prefix: DigestPrefix = core.parse().unwrap();
        assert_eq!(vault.get(&prefix).unwrap(), *bytes, "{core}");
    }
    let run = |arguments: &[&str]| -> crate::sandbox::Ran {
        sandbox.command().env("RUNVAULT_VAULT", address).args(arguments).output().unwrap().into()
    };
    let fsck = run(&["fsck", "--full", "--json"]);
    assert_eq!((fsck.status, fsck.stdout.as_str()), (0, ""), "{}", fsck.stderr);
    let entries = run(&["log", "--action", "add", "--json"]).expect(0).json();
    let captures: BTreeSet<String> =
        entries.iter().map(|entry| entry["entry"]["capture"].to_string()).collect();
    assert_eq!(captures.len(), entries.len(), "captures were added twice");
    assert!(entries.len() >= acknowledged.len());
}

/// How many writers there are, how often the server is killed, and how many acknowledgements there are between two kills.
const WRITERS: usize = 4;
const KILLS: usize = 10;
const BETWEEN: usize = 150;

/// Adds rounds of sessions, half of which another writer adds too, until `is_done`. Rounds that fail are added again.
fn write_until(
    (sandbox, address): (&Sandbox, &str),
    writer: usize,
    is_done: &AtomicBool,
    acknowledge: &Sender<(String, Vec<u8>)>,
) {
    for round in 0.. {
        let mut paths = sessions(sandbox, &format!("own-{writer}-{round}"), 60);
        paths.extend(sessions(sandbox, &format!("shared-{}-{round}", writer / 2), 60));
        loop {
            let mut child = add(sandbox, address, &paths).spawn().unwrap();
            let mut stderr = child.stderr.take().unwrap();
            for line in BufReader::new(child.stdout.take().unwrap()).lines() {
                acknowledge.send(acknowledgement(&line.unwrap())).unwrap();
            }
            let mut message = String::new();
            stderr.read_to_string(&mut message).unwrap();
            match child.wait().unwrap().code() {
                Some(0) => break,
                // The server was away for longer than the program waits, or when it looked for the vault.
                Some(2) => assert!(!message.contains("damaged"), "{message}"),
                other => panic!("{other:?}: {message}"),
            }
        }
        if is_done.load(Ordering::SeqCst) {
            return;
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let Some(server) = Server::start(&[]) else { return };
    let sandbox = Sandbox::at(CLOCK);
    let address = server.address.as_str();
    Vault::create(Path::new(address)).unwrap();
    let is_done = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let acknowledged: Acknowledged = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (sender, sandbox, is_done) = (sender.clone(), &sandbox, &is_done);
            scope.spawn(move || write_until((sandbox, address), writer, is_done, &sender));
        }
        drop(sender);
        let mut acknowledged = Acknowledged::new();
        for _ in 0..KILLS {
            for _ in 0..BETWEEN {
                acknowledged.extend(receiver.recv_timeout(Duration::from_mins(3)));
            }
            server.kill();
            server.start_again();
        }
        is_done.store(true, Ordering::SeqCst);
        acknowledged.extend(receiver);
        acknowledged
    });
    assert!(acknowledged.len() > KILLS * BETWEEN / 3);
    expect_all(&sandbox, address, &acknowledged);
}

/// A vault on the server of the tests, with some sessions.
struct Target {
    database: Database,
    directory: String,
}

impl Target {
    fn new() -> Option<Self> {
        let database = Database::new()?;
        let directory = database.address.split("host=").nth(1)?.split('&').next()?.to_owned();
        if !directory.starts_with('/') {
            say("skipped: cutting connections; RUNVAULT_TEST_ENGINE names no socket\n");
            return None;
        }
        database.run(["init"]).expect(0);
        Some(Self { database, directory })
    }

    /// Runs a command with each of its statements cut in turn. `prepare` gives the arguments for a number, and `check` looks
    /// at what a command with a number printed and left. Returns how many statements were cut.
    fn cut_everywhere(
        &self,
        cut: Cut,
        prepare: impl Fn(usize) -> Vec<OsString>,
        check: impl Fn(usize, bool, &str),
    ) -> usize {
        for number in 1.. {
            let plan = Plan { cut: Some((number, cut)), ..Plan::default() };
            let proxy = Proxy::start(self.directory.clone(), plan);
            let mut command = self.database.sandbox.command();
            command.env("RUNVAULT_VAULT", proxy.address(&self.database.address)).args(["--actor", "tester"]);
            let output = command.args(prepare(number)).output().unwrap();
            let (stdout, stderr) = (
                String::from_utf8(output.stdout).unwrap(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            );
            assert!(matches!(output.status.code(), Some(0 | 2)), "{number}: {stdout}{stderr}");
            assert!(!stderr.contains("damaged") && !stderr.contains("panicked"), "{number}: {stderr}");
            check(number, output.status.success(), &stdout);
            if proxy.statements() < number {
                return number - 1;
            }
        }
        0
    }

    fn has(&self, arguments: &[&str], text: &str) -> bool {
        self.database.run(arguments).stdout.contains(text)
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn an_add_is_whole_or_not_there_wherever_its_connection_is_cut() {
    for cut in [Cut::Statement, Cut::Answer] {
        let Some(target) = Target::new() else { return };
        let database = &target.database;
        let all = std::cell::RefCell::new(Acknowledged::new());
        let cuts = target.cut_everywhere(
            cut,
            |number| {
                let mut arguments = words(&["add", "--json"]);
                let paths = sessions(&database.sandbox, &format!("cut-{number}"), 3);
                arguments.extend(paths.into_iter().map(OsString::from));
                arguments
            },
            |number, is_success, stdout| {
                let lines = acknowledged(stdout);
                // What is read after the commit can fail when everything was acknowledged.
                assert!(lines.len() == 3 || (lines.is_empty() && !is_success), "{cut:?} {number}: {stdout}");
                all.borrow_mut().extend(lines);
                let sql = "SELECT count(*) FROM artifact";
                let stored: i64 = database.schema.client().query_one(sql, &[]).unwrap().get(0);
                assert_eq!(stored % 3, 0, "{cut:?} {number}: a part of a batch is there");
            },
        );
        assert!(cuts > 15, "{cuts}");
        expect_all(&database.sandbox, &database.address, &all.borrow());
    }
}

#[test]
fn changes_take_effect_or_fail_wherever_their_connection_is_cut() {
    for cut in [Cut::Statement, Cut::Answer] {
        let Some(target) = Target::new() else { return };
        let database = &target.database;
        let paths = sessions(&database.sandbox, "changed", 60);
        let mut command = add(&database.sandbox, &database.address, &paths);
        let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let cores: Vec<String> = acknowledged(&printed).into_keys().collect();
        let core = |number: usize| cores[number % cores.len()].as_str();
        let tags = target.cut_everywhere(
            cut,
            |number| words(&["tag", "set", core(number), &format!("tag-{number}.")]),
            |number, is_success, _| {
                assert_eq!(
                    is_success,
                    target.has(&["tag", "list"], &format!("tag-{number}.")),
                    "{cut:?} {number}"
                );
            },
        );
        let notes = target.cut_everywhere(
            cut,
            |number| words(&["note", "set", core(number), &format!("note {number}.")]),
            |number, is_success, _| {
                let has = target.has(&["note", "show", core(number)], &format!("note {number}."));
                assert_eq!(is_success, has, "{cut:?} {number}");
            },
        );
        let labels = target.cut_everywhere(
            cut,
            |number| words(&["label", "set", core(number), &format!("run=n{number}.")]),
            |number, is_success, _| {
                let has = target.has(&["label", "list", "run"], &format!("n{number}."));
                assert_eq!(is_success, has, "{cut:?} {number}");
            },
        );
        let removals = target.cut_everywhere(
            cut,
            |number| words(&["rm", "--force", core(number)]),
            |number, is_success, _| {
                let has = target.has(&["tombstones", "--json"], core(number));
                assert_eq!(is_success, has, "{cut:?} {number}");
            },
        );
        assert!(tags > 5 && notes > 5 && labels > 5 && removals > 10, "{tags} {notes} {labels} {removals}");
        expect_all(&database.sandbox, &database.address, &Acknowledged::new());
    }
}

/// A number that looks random and is the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_clients_are_killed() {
    let Some(database) = Database::new() else { return };
    database.run(["init"]).expect(0);
    let mut random = Random(20_261_122);
    let mut all = Acknowledged::new();
    for round in 0..20 {
        let paths = sessions(&database.sandbox, &format!("killed-{round}"), 250);
        let mut children: Vec<_> = (0..3)
            .map(|writer| {
                let part = &paths[writer * 50..(writer * 50 + 150)];
                add(&database.sandbox, &database.address, part).spawn().unwrap()
            })
            .collect();
        let mut outputs: Vec<_> = children
            .iter_mut()
            .map(|child| BufReader::with_capacity(1, child.stdout.take().unwrap()))
            .collect();
        // Some at any moment, some after they acknowledged something.
        if round % 2 == 0 {
            let mut first = String::new();
            outputs[0].read_line(&mut first).unwrap();
            all.extend(acknowledged(&first));
        }
        std::thread::sleep(Duration::from_millis(random.below(300) as u64));
        for (child, mut output) in children.iter_mut().zip(outputs) {
            child.kill().unwrap();
            child.wait().unwrap();
            let mut printed = String::new();
            output.read_to_string(&mut printed).unwrap();
            all.extend(acknowledged(&printed));
        }
    }
    // Whoever comes next does not wait for those who are gone.
    let paths = sessions(&database.sandbox, "killed-0", 250);
    let last = add(&database.sandbox, &database.address, &paths).output().unwrap();
    assert!(last.status.success());
    all.extend(acknowledged(&String::from_utf8(last.stdout).unwrap()));
    expect_all(&database.sandbox, &database.address, &all);
}

/// Adds sessions, of which each writer shares some with the next, with several processes at once.
fn race(sandbox: &Sandbox, writers: usize, command: impl Fn(&[String]) -> Command) -> Acknowledged {
    let mut paths = sessions(sandbox, "raced", writers * 40 + 20);
    paths.reverse();
    let children: Vec<_> =
        (0..writers).map(|writer| command(&paths[writer * 40..writer * 40 + 60]).spawn().unwrap()).collect();
    let mut all = Acknowledged::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        all.extend(acknowledged(&String::from_utf8(output.stdout).unwrap()));
    }
    assert_eq!(all.len(), paths.len());
    all
}

#[test]
fn writers_behind_a_slow_connection_store_each_artifact_once() {
    let Some(target) = Target::new() else { return };
    let Database { sandbox, address, .. } = &target.database;
    let plan = Plan { delay: Duration::from_micros(500), ..Plan::default() };
    let slow = Proxy::start(target.directory.clone(), plan).address(address);
    let all = race(sandbox, 4, |paths| add(sandbox, &slow, paths));
    expect_all(sandbox, address, &all);
}

#[test]
fn a_check_finds_nothing_while_others_write() {
    let Some(database) = Database::with_examples() else { return };
    let Database { sandbox, address, .. } = &database;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            race(sandbox, 3, |paths| add(sandbox, address, paths));
            is_done.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            let example = crate::sandbox::repository("examples/pack");
            for round in 0.. {
                for arguments in [
                    &["tag", "set", "5c496a37feba", "moved"][..],
                    &["label", "set", "7c8de5910f63", "a=b"],
                    &["rm", "--force", "54490aab8b3f"],
                    &["add", "--allow-removed", example.to_str().unwrap()],
                ] {
                    database.run(arguments).expect(0);
                }
                if is_done.load(Ordering::SeqCst) && round > 1 {
                    break;
                }
            }
        });
        for _ in 0..4 {
            let fsck = database.run(["fsck", "--full", "--json"]);
            assert_eq!((fsck.status, fsck.stdout.as_str()), (0, ""), "{}", fsck.stderr);
        }
    });
}

/// A network namespace, with a delay of 0.5 ms each way if the kernel has delays. It is removed at the end.
struct Namespace {
    name: String,
    /// The address of this side.
    host: String,
    has_delay: bool,
}

impl Namespace {
    /// Returns a namespace, or `None` and says so if they are not permitted.
    fn new() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let name = format!("rv{process}x{number}");
        let network = format!("10.{}.{}", 100 + process % 100, process / 100 % 250);
        let mut namespace = Self { name: name.clone(), host: format!("{network}.1"), has_delay: true };
        let steps = [
            format!("ip netns add {name}"),
            format!("ip link add h{name} type veth peer name c{name} netns {name}"),
            format!("ip addr add {network}.1/24 dev h{name}"),
            format!("ip link set h{name} up"),
            format!("ip -n {name} addr add {network}.2/24 dev c{name}"),
            format!("ip -n {name} link set c{name} up"),
        ];
        if let Some(step) = steps.iter().find(|step| !is_done(step)) {
            say(&format!("skipped: writers in network namespaces; `{step}` is not permitted\n"));
            return None;
        }
        let delays = [
            format!("tc qdisc add dev h{name} root netem delay 0.5ms"),
            format!("ip netns exec {name} tc qdisc add dev c{name} root netem delay 0.5ms"),
        ];
        if !delays.iter().all(|step| is_done(step)) {
            say("skipped: delays by the kernel, which has no netem; a proxy delays the messages\n");
            namespace.has_delay = false;
        }
        Some(namespace)
    }

    /// The command, run in the namespace.
    fn run(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                inside.env(name, value);
            }
        }
        inside.current_dir(command.get_current_dir().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
        inside
    }
}

/// Runs a command of words, and returns whether it succeeded.
fn is_done(step: &str) -> bool {
    let mut words = step.split(' ');
    Command::new(words.next().unwrap()).args(words).output().is_ok_and(|ran| ran.status.success())
}

/// Says why something is skipped. Not by a macro, whose output is shown for failures only.
fn say(reason: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), reason.as_bytes());
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The devices go with it.
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

#[test]
fn writers_in_a_namespace_with_a_slow_network_store_each_artifact_once() {
    if Schema::new().is_none() {
        return;
    }
    let Some(namespace) = Namespace::new() else { return };
    let Some(server) =
        Server::start(&[format!("listen_addresses={}", namespace.host), "port=5432".to_owned()])
    else {
        return;
    };
    let sandbox = Sandbox::at(CLOCK);
    Vault::create(Path::new(&server.address)).unwrap();
    let remote = if namespace.has_delay {
        server.address.replace(&server.directory(), &namespace.host)
    } else {
        let plan = Plan { delay: Duration::from_micros(500), ..Plan::default() };
        Proxy::start_at(&namespace.host, server.directory(), plan).address(&server.address)
    };
    let all = race(&sandbox, 4, |paths| namespace.run(&add(&sandbox, &remote, paths)));
    expect_all(&sandbox, &server.address, &all);
}
