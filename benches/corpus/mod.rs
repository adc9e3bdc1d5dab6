//! What the benches archive: generated from seeds, so that it is the same everywhere, and valid, so that all of it is
//! stored. `benches/README.md` describes the corpora.

#![allow(dead_code, reason = "no bench needs all of it")]

mod clock;
mod contract;
pub mod many;
mod pack;
mod random;
mod run;
mod session;
mod text;
mod trace;
mod words;

use std::fs;
use std::path::Path;

use random::Random;
use run::Run;
use session::Session;

/// What `unique`, `ci` and the others are told apart by: no document of one is in another.
mod seed {
    pub const UNIQUE: u64 = 1;
    pub const CI: u64 = 2;
    pub const LARGE: u64 = 3;
    pub const MIXED: u64 = 4;
    pub const SINGLE: u64 = 5;
}

/// The usual number of interactions. With it, a session of `unique` has about five kilobytes.
const INTERACTIONS: usize = 10;
const RESPONSE_SIZE: usize = 190;

/// The session of this number of the corpus *unique*.
pub fn unique_session(number: usize) -> Vec<u8> {
    Session::new(&mut Random::of(seed::UNIQUE, number), INTERACTIONS, RESPONSE_SIZE).document()
}

/// Like those of *unique*, but none of them.
pub fn single_session(number: usize) -> Vec<u8> {
    Session::new(&mut Random::of(seed::SINGLE, number), INTERACTIONS, RESPONSE_SIZE).document()
}

/// Writes `sessions` sessions, a hundred in a directory.
pub fn write_unique(root: &Path, sessions: usize) {
    for number in 0..sessions {
        let name = format!("{:03}/session-{number:05}.json", number / 100);
        write(root, &name, &unique_session(number));
    }
}

/// Writes what continuous integration leaves behind in `nights` nights: each records ten sessions and ten runs again.
pub fn write_ci(root: &Path, nights: usize) {
    for number in 0..10 {
        let random = &mut Random::of(seed::CI, number);
        let (interactions, size) = (random.between(8, 40), random.between(250, 750));
        let session = Session::new(random, interactions, size);
        let (exchanges, size) = (random.between(4, 12), random.between(250, 750));
        let run = Run::new(random, format!("run-{number}"), exchanges, size);
        for night in 0..nights {
            let (mut session, mut run) = (session.clone(), run.clone());
            if night > 0 {
                session.record_again(random);
                run.record_again(random);
            }
            write(root, &format!("night-{night:03}/session-{number}.json"), &session.document());
            write(root, &format!("night-{night:03}/run-{number}.rpk"), &run.document());
        }
    }
}

/// A session of about `size` bytes, in `interactions` interactions.
pub fn large_session(size: usize, interactions: usize) -> Vec<u8> {
    // Beside the response, an interaction has about 300 bytes, and escapes make a response some percent longer.
    let response_size = (size / interactions).saturating_sub(300) * 96 / 100;
    Session::new(&mut Random::of(seed::LARGE, interactions), interactions, response_size).document()
}

/// A trace of about `size` bytes in records of two kilobytes.
pub fn large_trace(size: usize) -> Vec<u8> {
    trace::document(&mut Random::of(seed::LARGE, size), "run-large", size, 2_000)
}

/// Writes artifacts of all kinds. In each round: five sessions, two runs with their traces, a pack with a session; in every
/// fifth a contract, which governs the runs until the next one.
pub fn write_mixed(root: &Path, rounds: usize) {
    let mut governing = None;
    for number in 0..rounds {
        let random = &mut Random::of(seed::MIXED, number);
        if number % 5 == 0 {
            let (document, core) = contract::document(random, number);
            write(root, &format!("contracts/{number:04}.json"), &document);
            governing = Some(core);
        }
        for part in 0..5 {
            let (interactions, size) = (random.between(4, 24), random.between(100, 900));
            let session = Session::new(random, interactions, size);
            write(root, &format!("sessions/{number:04}-{part}.json"), &session.document());
        }
        for part in 0..2 {
            let id = format!("run-{number}-{part}");
            let (exchanges, size) = (random.between(2, 10), random.between(100, 900));
            let mut run = Run::new(random, id.clone(), exchanges, size);
            if let Some(contract) = governing {
                run = run.governed_by(contract);
            }
            write(root, &format!("runs/{number:04}-{part}.rpk"), &run.document());
            let trace_size = random.between(2_000, 30_000);
            let trace = trace::document(random, &id, trace_size, 1_500);
            write(root, &format!("traces/{number:04}-{part}.ndjson"), &trace);
        }
        for (name, bytes) in pack::files(random, &format!("pack-{number}")) {
            write(root, &format!("packs/{number:04}/{name}"), &bytes);
        }
    }
}

/// How many artifacts [`write_mixed`] makes, those in packs included.
pub fn mixed_artifacts(rounds: usize) -> usize {
    11 * rounds + rounds.div_ceil(5)
}

/// Writes one file of a corpus.
pub fn write(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, bytes).expect("written");
}

/// How many documents [`write_mixed`] writes: a pack is one.
pub fn mixed_documents(rounds: usize) -> usize {
    10 * rounds + rounds.div_ceil(5)
}
