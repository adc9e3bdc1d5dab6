//! Runs: documents of the kind `rpk`.
//!
//! Member names and values here have no canonical form other than the one that `serde_json` prints.

use runvault::digest::Digest;
use serde_json::{Value, json};

use super::clock::Clock;
use super::random::Random;
use super::text;

/// A run, as a recorder has it in memory.
#[derive(Clone)]
pub struct Run {
    id: String,
    /// The core hash of the contract that governs it.
    contract: Option<Digest>,
    agent: String,
    model: String,
    exchanges: Vec<Exchange>,
    clock_seed: u64,
}

#[derive(Clone)]
struct Exchange {
    prompt: String,
    answer: String,
    tool: &'static str,
    tool_output: String,
}

impl Run {
    /// `exchanges` of them with a model and a tool, four steps each, with texts of about `text_size` bytes.
    pub fn new(random: &mut Random, id: String, exchanges: usize, text_size: usize) -> Self {
        Self {
            id,
            contract: None,
            agent: format!("agent-{}", random.below(6)),
            model: format!("model-{}", random.below(5)),
            exchanges: (0..exchanges).map(|_| Exchange::new(random, text_size)).collect(),
            clock_seed: random.next(),
        }
    }

    pub fn governed_by(mut self, contract: Digest) -> Self {
        self.contract = Some(contract);
        self
    }

    /// Records it again: a few exchanges are others, and all times are.
    pub fn record_again(&mut self, random: &mut Random) {
        for _ in 0..random.between(1, 3) {
            let number = random.below(self.exchanges.len());
            let exchange = &mut self.exchanges[number];
            let mut other = Exchange::new(random, exchange.answer.len());
            if random.below(3) > 0 {
                other.prompt.clone_from(&exchange.prompt);
            }
            *exchange = other;
        }
        self.clock_seed = random.next();
    }

    /// The document.
    pub fn document(&self) -> Vec<u8> {
        let random = &mut Random::of(self.clock_seed, 0);
        let mut clock = Clock::new(random);
        let started = clock.text();
        let mut steps = Vec::new();
        for exchange in &self.exchanges {
            for (step_type, input, output) in exchange.steps(&self.model) {
                let latency = random.between(5, 4_000);
                clock.advance(latency);
                let (captured_at, latency_ms) = (clock.text(), latency);
                // What varies between recordings takes no part in the hash of a step.
                let hashed = json!({"type": step_type, "input": input, "output": output, "metadata": {}});
                steps.push(
                    json!({"id": format!("step-{:06}", steps.len() + 1), "type": step_type, "input": input,
                    "output": output, "metadata": {"captured_at": captured_at, "latency_ms": latency_ms},
                    "hash": Digest::from_content(hashed.to_string().as_bytes())}),
                );
            }
        }
        let mut metadata = json!({"run_id": self.id, "created_at": started});
        if let Some(contract) = self.contract {
            metadata["contract"] = json!(contract);
        }
        let mut document = json!({"version": "1.0", "metadata": metadata, "payload": {"run": {"id": self.id,
            "timestamp": clock.text(), "agent": self.agent, "environment_fingerprint": {"os": "linux", "cpus": 8},
            "runtime_versions": {"python": "3.12.4"}, "steps": steps}}});
        document["checksum"] = json!(Digest::from_content(document.to_string().as_bytes()));
        document.to_string().into_bytes()
    }
}

impl Exchange {
    fn new(random: &mut Random, text_size: usize) -> Self {
        let size = random.between(text_size / 2, text_size * 3 / 2);
        Self {
            prompt: text::prompt(random),
            answer: text::passage(random, size),
            tool: random.usual(&["shell", "read_file", "search", "edit", "http", "sql", "browser"]),
            tool_output: text::passage(random, size),
        }
    }

    fn steps(&self, model: &str) -> [(&'static str, Value, Value); 4] {
        let Self { prompt, answer, tool, tool_output } = self;
        [
            ("model.request", json!({"model": model, "prompt": prompt}), json!({"status": "sent"})),
            ("model.response", json!({}), json!({"content": answer})),
            ("tool.request", json!({"tool": tool, "arguments": {"query": prompt}}), Value::Null),
            ("tool.response", json!({"tool": tool}), json!({"text": tool_output})),
        ]
    }
}
