//! How long two runs of a hundred thousand steps take to compare, in the usual case and in the worst.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use runvault::artifact::{MemberBytes, Part};
use runvault::digest::Digest;
use runvault::formats;
use runvault::vault::diff;

const STEPS: usize = 100_000;

/// A session whose responses are made of what `number` gives for each interaction.
fn session(numbers: impl Iterator<Item = usize>) -> Vec<u8> {
    let digest = |text: &str| Digest::from_content(text.as_bytes()).to_string();
    let interactions = numbers.enumerate().map(|(index, number)| {
        let (prompt, response) = (format!("prompt {number}"), format!("response {number}"));
        serde_json::json!({
            "i": index, "prompt_hash": digest(&prompt), "response_hash": digest(&response),
            "response_content": response, "latency_ms": index,
        })
    });
    let interactions: Vec<_> = interactions.collect();
    let session = serde_json::json!({
        "model_io_schema_version": "1.0.0", "adapter_id": "a", "model_id": "m", "mode": "record",
        "interactions": interactions,
    });
    session.to_string().into_bytes()
}

fn parts(bytes: &[u8]) -> Vec<Part<'_>> {
    let kind = formats::named("model_io").unwrap();
    kind.parts(&[MemberBytes { name: "model_io.json", bytes }]).unwrap()
}

fn compare(criterion: &mut Criterion) {
    let whole = session(0..STEPS);
    let mut group = criterion.benchmark_group("diff");
    group.sample_size(10);
    for (name, other) in [
        ("one-changed", session((0..STEPS).map(|at| if at == STEPS / 2 { STEPS } else { at }))),
        ("every-tenth-gone", session((0..STEPS).filter(|at| at % 10 != 3))),
        ("all-different", session(STEPS..2 * STEPS)),
        ("reversed", session((0..STEPS).rev())),
        ("few-repeating", session((0..STEPS).map(|at| at % 7))),
    ] {
        group.bench_function(format!("read-and-compare/{name}"), |bencher| {
            bencher.iter(|| diff::compare(parts(&whole), parts(&other)).changes(false).count());
        });
        group.bench_function(format!("align/{name}"), |bencher| {
            let pair = || (parts(&whole), parts(&other));
            bencher.iter_batched(pair, |(one, other)| diff::compare(one, other), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, compare);
criterion_main!(benches);
