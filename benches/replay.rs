//! Playing back a session of 10,000 interactions: in the process, and through the protocol of `--serve-stdio`.
//!
//! `cargo bench --bench replay`; `benches/README.md` says how to read it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench fails by panicking"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use runvault::Vault;
use runvault::digest::Digest;
use runvault::intake::ExamineOptions;
use runvault::vault::replay::{Player, Repeat};
use serde_json::{Value, json};

const INTERACTIONS: usize = 10_000;

/// About what a prompt has, and a response.
const PROMPT_BYTES: usize = 2_000;
const RESPONSE_BYTES: usize = 1_000;

fn prompt(number: usize) -> String {
    format!("Prompt {number}: {}", "what does this mean? ".repeat(PROMPT_BYTES / 21))
}

fn session() -> Vec<u8> {
    let interactions = (0..INTERACTIONS).map(|number| {
        let response = format!("Response {number}: {}", "it says \"that\".\n".repeat(RESPONSE_BYTES / 16));
        json!({
            "i": number, "prompt_hash": Digest::from_content(prompt(number).as_bytes()),
            "response_hash": Digest::from_content(response.as_bytes()), "response_content": response,
        })
    });
    let interactions: Vec<Value> = interactions.collect();
    let session = json!({
        "model_io_schema_version": "1.0.0", "adapter_id": "a", "model_id": "m", "mode": "record",
        "interactions": interactions,
    });
    serde_json::to_vec(&session).expect("a session is JSON")
}

/// A process that serves, and its pipes.
struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Server {
    fn start(vault: &Path, recording: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runvault"));
        command.arg("--vault").arg(vault).args(["replay", recording, "--serve-stdio", "--repeat", "last"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("a process");
        let input = process.stdin.take().expect("its input");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        Self { process, input, output, line: String::new() }
    }

    /// Asks and waits for the answer, as a client does.
    fn ask(&mut self, request: &str) {
        self.input.write_all(request.as_bytes()).expect("asked");
        self.line.clear();
        self.output.read_line(&mut self.line).expect("answered");
        assert!(self.line.contains("\"response\":"), "{}", self.line);
    }

    fn end(self) {
        let Self { mut process, input, .. } = self;
        drop(input);
        assert!(process.wait().expect("it ends").success(), "the process failed");
    }
}

fn replaying(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bench.vault");
    let vault = Vault::open_or_create(&path).expect("a vault");
    let document = session();
    let core = vault.add_document(document.clone(), &ExamineOptions::default()).expect("added").core;
    let prompts: Vec<String> = (0..INTERACTIONS).map(prompt).collect();
    let line = |prompt: &String| format!("{}\n", json!({"id": 1, "prompt": prompt}));
    let requests: Vec<String> = prompts.iter().map(line).collect();

    let mut group = criterion.benchmark_group("session of 10,000 interactions");
    let mut number = 0;
    let mut next = || {
        number = (number + 7_919) % INTERACTIONS;
        number
    };
    let mut player = Player::new(document).expect("a player").repeating(Repeat::Last);
    group.bench_function("respond, in the process", |bencher| {
        bencher.iter(|| player.respond(&prompts[next()]).expect("a response").len());
    });
    for (what, recording) in [("one session", core.to_string()), ("any session", "any".to_owned())] {
        let mut server = Server::start(&path, &recording);
        medians(what, &mut server, &requests);
        group.bench_function(format!("request over stdio, {what}"), |bencher| {
            bencher.iter(|| server.ask(&requests[next()]));
        });
        server.end();
    }
    group.finish();
}

/// Asks every request once and prints what is asked of the protocol: the median.
fn medians(what: &str, server: &mut Server, requests: &[String]) {
    server.ask(&requests[0]);
    let mut times: Vec<Duration> = requests
        .iter()
        .map(|request| {
            let start = Instant::now();
            server.ask(request);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{} requests over stdio, {what}: median {:?}, 99 % {:?}", times.len(), at(50), at(99));
}

criterion_group!(benches, replaying);
criterion_main!(benches);
