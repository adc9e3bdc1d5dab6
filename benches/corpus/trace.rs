//! Documents of the kind `trace`.

use runvault::digest::Digest;
use serde_json::{Value, json};

use super::clock::Clock;
use super::random::Random;
use super::text;

/// The trace of the run `id`: a header and records of about `record_size` bytes until there are `size` bytes.
pub fn document(random: &mut Random, id: &str, size: usize, record_size: usize) -> Vec<u8> {
    let mut clock = Clock::new(random);
    let digest = |random: &mut Random| Digest::from_content(&random.next().to_le_bytes()).hex();
    let mut state = digest(random);
    let mut chain = Chain { document: Vec::with_capacity(size + 2 * record_size), previous: String::new() };
    chain.append(
        json!({"type": "header", "version": "1.0.0", "trace_id": id, "created_at": clock.whole_seconds(),
        "engine_version": "1.4.0", "hash_algorithm": "sha256", "canonicalization": "json-c14n-v1",
        "problem_spec_hash": digest(random), "initial_state_hash": state}),
    );
    let mut step = 0;
    while chain.document.len() < size {
        let output = json!({"summary": text::passage(random, record_size.saturating_sub(800))});
        let started_at = clock.whole_seconds();
        clock.advance(random.between(20, 3_000));
        let next = digest(random);
        chain.append(
            json!({"type": "step", "index": step + 1, "step_index": step, "prev_hash": chain.previous,
            "state_before_hash": state, "state_after_hash": next, "result": {"version": "1.0.0",
            "step": random.usual(&["Plan", "Search", "Read", "Summarise", "Edit", "Test", "Label"]),
            "status": "success", "errors": [], "input_hash": digest(random),
            "output_hash": Digest::from_content(output.to_string().as_bytes()).hex(), "output": output,
            "started_at": started_at, "finished_at": clock.whole_seconds()}}),
        );
        state = next;
        step += 1;
    }
    chain.document
}

/// Records, each of which states the hash of the one before.
struct Chain {
    document: Vec<u8>,
    previous: String,
}

impl Chain {
    fn append(&mut self, mut record: Value) {
        // Without line feeds outside of strings, and with sorted names: what `serde_json` prints is canonical.
        self.previous = Digest::from_content(record.to_string().as_bytes()).hex();
        record["record_hash"] = json!(self.previous);
        self.document.extend_from_slice(record.to_string().as_bytes());
        self.document.push(b'\n');
    }
}
