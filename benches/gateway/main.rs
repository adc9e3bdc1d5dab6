//! What a gateway adds to the time of calls, beside a reverse proxy: `cargo bench --bench gateway -- [--samples N]`.
//!
//! A server and a client in this process, and between them nothing, nginx, or a gateway that records; and a gateway that
//! replays. `benches/README.md` says how to read it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "a bench fails by panicking"
)]

mod client;
mod proxies;
mod upstream;

use std::net::SocketAddr;
use std::time::Duration;

use client::{Connection, Timing};
use proxies::{Gateway, Nginx};
use upstream::{CHUNKS, Upstream};

/// A way to the server.
struct Variant {
    name: &'static str,
    address: SocketAddr,
    /// Before the path of the API: a run for each round, so that each round gets the first recording.
    has_runs: bool,
    connection: Connection,
    whole: Vec<Timing>,
    streams: Vec<Timing>,
}

impl Variant {
    fn new(name: &'static str, address: SocketAddr) -> Self {
        let connection = Connection::open(address);
        Self { name, address, has_runs: false, connection, whole: Vec::new(), streams: Vec::new() }
    }

    fn ask(&mut self, round: usize, stream: bool) -> Timing {
        let prefix = if self.has_runs { format!("/run/{round}") } else { String::new() };
        self.connection.ask(&format!("{prefix}/openai/v1/chat/completions"), round, stream)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Without any, it is being run as a test.
    if arguments.is_empty() {
        return;
    }
    let samples = arguments.iter().position(|word| word == "--samples").map(|at| &arguments[at + 1]);
    let samples: usize = samples.map_or(400, |number| number.parse().expect("a number"));
    let streams = samples / 8;
    let directory = tempfile::tempdir().expect("a directory");
    let upstream = Upstream::start();
    let server = format!("openai=http://{}", upstream.address);
    let mut variants = vec![Variant::new("direct", upstream.address)];
    let nginx = Nginx::start(directory.path(), upstream.address);
    if let Some(nginx) = &nginx {
        variants.push(Variant::new("nginx", nginx.address));
    }
    let recording = Gateway::start(&directory.path().join("recorded.vault"), "record", &server);
    variants.push(Variant::new("gateway, record", recording.address));
    let replaying = recorded(&directory.path().join("replayed.vault"), &server, (samples, streams));
    let mut replay = Variant::new("gateway, replay", replaying.address);
    replay.has_runs = true;
    variants.push(replay);
    // In turn, so that what else the machine does affects all of them.
    for round in 0..samples {
        for variant in &mut variants {
            let timing = variant.ask(round, false);
            variant.whole.push(timing);
        }
    }
    for round in 0..streams {
        for variant in &mut variants {
            let timing = variant.ask(round, true);
            variant.streams.push(timing);
        }
    }
    report(&variants);
}

/// Records every call once, and returns a gateway that replays them.
fn recorded(vault: &std::path::Path, server: &str, (samples, streams): (usize, usize)) -> Gateway {
    let recording = Gateway::start(vault, "record", server);
    let mut variant = Variant::new("", recording.address);
    for round in 0..samples {
        variant.ask(round, false);
    }
    for round in 0..streams {
        variant.ask(round, true);
    }
    let finished = Connection::open(variant.address).ask("/_runvault/finish", 0, false);
    assert!(finished.bytes > 0, "the run was not finished");
    drop(recording);
    Gateway::start(vault, "replay", server)
}

/// Prints a table for each question, with what is added to the direct way in the same round.
fn report(variants: &[Variant]) {
    println!("medians and 99th percentiles, and what is added to direct calls of the same round");
    let table = |title: &str, times: &dyn Fn(&Variant) -> Vec<Duration>| {
        println!(
            "\n#### {title}\n\n| | p50 | p99 | added p50 | added p99 | ratio to nginx |\n|---|---|---|---|---|---|"
        );
        let direct = times(&variants[0]);
        let added = |variant: &Variant| -> Vec<i128> {
            let times = times(variant);
            let pairs = times.iter().zip(&direct);
            sorted(pairs.map(|(one, other)| nanos(*one) - nanos(*other)).collect())
        };
        let of_nginx =
            variants.iter().find(|variant| variant.name == "nginx").map(|nginx| at(&added(nginx), 50));
        for variant in variants {
            let own = sorted(times(variant).into_iter().map(nanos).collect());
            if own.is_empty() {
                continue;
            }
            let added = added(variant);
            let ratio = of_nginx.filter(|_| variant.name.starts_with("gateway"));
            #[allow(clippy::cast_precision_loss, reason = "nanoseconds of a bench")]
            let ratio =
                ratio.map_or(String::new(), |nginx| format!("{:.2} ×", at(&added, 50) as f64 / nginx as f64));
            println!(
                "| {} | {} | {} | {} | {} | {ratio} |",
                variant.name,
                shown(at(&own, 50)),
                shown(at(&own, 99)),
                shown(at(&added, 50)),
                shown(at(&added, 99)),
            );
        }
    };
    table("an answer in one piece", &|variant| variant.whole.iter().map(|timing| timing.last).collect());
    table("a stream: until its first part", &|variant| {
        variant.streams.iter().map(|timing| timing.first).collect()
    });
    let delays = |variant: &Variant| -> Vec<Duration> {
        variant.streams.iter().flat_map(|timing| timing.delays.iter().take(CHUNKS).copied()).collect()
    };
    table("a stream: from the sending of a part to its arrival, without the last one", &delays);
    table("a stream: from the sending of the last part to the end", &|variant| {
        variant.streams.iter().filter_map(|timing| timing.end).collect()
    });
}

fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).expect("a time")
}

fn sorted(mut times: Vec<i128>) -> Vec<i128> {
    times.sort_unstable();
    times
}

fn at(times: &[i128], percent: usize) -> i128 {
    times[(times.len() - 1) * percent / 100]
}

fn shown(nanos: i128) -> String {
    format!("{} µs", nanos / 1_000)
}
